"""Pages that are built by scripts: rendered by a browser that has no network, from what the archive holds."""
