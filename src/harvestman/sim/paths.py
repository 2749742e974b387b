"""How pages are named and linked: eight manners, as real sites have them, and the spellings that mean the same page."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from harvestman.sim.prose import titles

SECTIONS = ("news", "sport", "culture", "science", "travel", "business", "opinion", "life")
BLOCK = 8
"""Links come in blocks: block k leads to the pages 8k+1 .. 8k+8, so block p of page p makes a tree of all pages."""
_TRACKING = re.compile(r"^(utm_[a-z]+|fbclid|gclid)=")
_HEX = re.compile(r"%[0-9a-f]{2}", re.I)


def _slug(page: int) -> str:
    return titles()[page % len(titles())].replace(" ", "-")


def _section(page: int) -> str:
    return SECTIONS[page % len(SECTIONS)]


_MANNERS: tuple[Callable[[int], str], ...] = (
    lambda page: f"/{_section(page)}/{_slug(page)}-{page}",
    lambda page: f"/{_section(page)}/{_slug(page)}-{page}.html",
    lambda page: f"/articles/{2015 + page % 11}/{1 + page % 12:02d}/{_slug(page)}-{page}",
    lambda page: f"/item?id={page}",
    lambda page: f"/index.php?cat={_section(page)}&id={page}",
    lambda page: f"/wiki/{_slug(page).title()}_%C3%A9t%C3%A9_{page}",
    lambda page: f"/p/{page}/{_slug(page)}",
    lambda page: f"/{_section(page)}/{_slug(page)},{page}.htm",
)


@cache
def paths(layout: int, pages: int) -> tuple[str, ...]:
    """The path (with query) of every page, home first, in the form `normal` gives."""
    return ("/", *(_MANNERS[layout](page) for page in range(1, pages)))


@cache
def numbers(layout: int, pages: int) -> dict[str, int]:
    """The page behind a normal path."""
    return {path: page for page, path in enumerate(paths(layout, pages))}


def normal(target: str) -> str:
    """The one form of all spellings of a path: no tracking, sorted query, upper-case escapes, no trailing slash."""
    path, _, query = target.partition("#")[0].partition("?")
    if "%" in path:
        path = _HEX.sub(lambda escape: escape[0].upper(), path)
    path = path.rstrip("/") or "/"
    if not query:
        return path
    kept = sorted(part for part in query.split("&") if part and not _TRACKING.match(part))
    return f"{path}?{'&'.join(kept)}" if kept else path


def spelling(path: str, turn: int) -> str:
    """Another way to write a link to `path`; all of them are one page."""
    mark = "&" if "?" in path else "?"
    match turn % 8:
        case 3:
            return f"../../../..{path}"
        case 4:
            return f"{path}#part-{turn % 5}"
        case 5:
            return f"{path}{mark}utm_source=feed&utm_medium=rss"
        case 6:
            return _odd_spelling(path)
    return path


def _odd_spelling(path: str) -> str:
    if "&" in path:
        base, _, query = path.partition("?")
        return f"{base}?{'&'.join(reversed(query.split('&')))}"
    if "%" in path:
        return _HEX.sub(lambda escape: escape[0].lower(), path)
    return f"{path}/" if "." not in path and "?" not in path and path != "/" else path


def anchor(page: int) -> str:
    return titles()[page % len(titles())].capitalize() if page else "Home"


def block_count(pages: int) -> int:
    return max(1, (pages + BLOCK - 2) // BLOCK)


def block_pages(block: int, pages: int) -> range:
    """The pages that block `block` links to."""
    return range(BLOCK * block + 1, min(BLOCK * block + BLOCK + 1, pages))
