"""The record of what was deleted: lines that tell it without telling what was there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from harvestman.layout import Layout
from harvestman.policy.urls import key, url_hash


def append(layout: Layout, line: msgspec.Struct) -> None:
    """Add to takedowns.jsonl; durable when it returns."""
    with layout.takedowns.open("ab") as file:
        file.write(msgspec.json.encode(line) + b"\n")
        file.flush()
        os.fsync(file.fileno())


def hashes(urls: Iterable[str]) -> list[str]:
    """URLs as the feed and the exports name them (`url_hash`)."""
    return sorted({url_hash(key(url)) for url in urls})


def names(layout: Layout, paths: Iterable[Path]) -> list[str]:
    """Files by their place below the data directory."""
    return sorted(path.relative_to(layout.data).as_posix() for path in paths)
