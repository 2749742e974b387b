"""From a body to a page: links, text, language, SimHash."""
