"""From markup to a tree, within limits: what a page can cost is known before it is parsed, or watched while it is.

The parser is linear in honest pages. Four things cost more, and each is met before it hurts: attributes of repeated
<html> and <body>, formatting elements that are never closed (every later paragraph gets a copy of each), end tags of
nothing far down in a tree, and mere numbers of tags. bench/hostile_cpu.py has the pages.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from turbohtml import Document, IncrementalParser
from turbohtml import parse as parse_html

_WATCHED: Final = 5_000
_LONG: Final = 1_000_000
"""Tags or characters from which on the parser is watched, which makes it slower by half."""
_MANY_TAGS: Final = 10_000
_TOO_MANY_TAGS: Final = 100_000
_TAGS_READ: Final = 80_000
"""So many are read of a page with too many: a directory of 7,000 files keeps three quarters of its links."""
_MANY_COPIES: Final = 300_000
"""Formatting elements with attributes, times tags: so many elements could come of them. Of those without, no more than
three of a kind are kept open."""
_TOO_DEEP: Final = 512
"""Browsers stop nesting here; beyond, the text of nested elements would be read over and over."""
_TOO_LARGE: Final = 120_000
"""Elements: more than the tags that we read can make in good faith."""
_PIECE: Final = 2_048
_PACE: Final = 2.5e-8
"""CPU seconds for a character: honest pages take half of it."""
_PATIENCE: Final = 0.035
"""CPU seconds that it may take beyond: a machine three times as slow still reads all of an honest page."""
_REMARKABLE: Final = re.compile(
    rb"<[bBcCeEfFhHiInNsStTuU](?i:((?<=h)tml|(?<=b)ody)|ig|ode|m|ont|obr|mall|trike|trong|t|)[\s/]"
)
"""<html>, <body>, and formatting elements with attributes: b, big, code, em, font, i, nobr, s, small, strike, strong,
tt, u. The letters in front make it faster by half."""
_ROOT: Final = re.compile(r"<(?:h(?=(tml)[\s/])|b(?=(ody)[\s/]))", re.ASCII | re.IGNORECASE)


@dataclass(slots=True)
class Tree:
    """A page as a tree."""

    document: Document
    size: int
    """Characters that were parsed."""
    tags: int
    cut: list[str] = field(default_factory=list)
    """The limits that were reached: `Parsed.cut`."""
    deep: bool = False
    """It is nested beyond reason, or far larger than its markup: only what is found by an index is read of it."""


def survey_python(body: bytes) -> tuple[int, int, bool]:
    """How many tags, how many of them formatting elements with attributes, and whether a root with attributes comes
    twice. The definition; `survey` is this or its compiled twin."""
    remarkable = _REMARKABLE.findall(body)
    roots = [name.lower() for name in remarkable if name]
    return body.count(b"<"), len(remarkable) - len(roots), len(roots) > len(set(roots))


try:
    from ._tags import survey as survey
except ImportError:
    survey = survey_python


def grow(markup: str, body: bytes) -> Tree:
    """Parse a page; `body` is what it was decoded from: bytes are counted faster than a text beyond ASCII."""
    cut: list[str] = []
    if b"\0" in body:
        if "\0" in markup:  # a browser drops them from text too; a megabyte of them costs us 60 ms
            markup = markup.replace("\0", "")
        body = markup.encode("utf-8", "replace")  # it may have been UTF-16
    tags, formats, roots = survey(body)
    if tags > _TOO_MANY_TAGS:
        cut.append("tags")
        markup = _first(markup, _TAGS_READ)
    if roots:
        markup = _with_one_root(markup)
    watched = tags > _WATCHED or len(markup) > _LONG or formats * tags > _MANY_COPIES
    if not watched:
        return Tree(_without_templates(parse_html(markup, positions=False)), len(markup), tags, cut)
    document, whole = _watched(markup)
    deep = _is_large(document) or ((tags > _MANY_TAGS or not whole) and _is_deep(document))
    cut += [limit for limit, reached in (("time", not whole), ("depth", deep)) if reached]
    return Tree(_without_templates(document), len(markup), tags, cut, deep)


def _without_templates(document: Document) -> Document:
    if document.find("template") is not None:
        document.remove("template")
    return document


def _first(markup: str, tags: int) -> str:
    """The page up to so many tags."""
    pieces = markup.split("<", tags + 1)
    return markup[: -len(pieces[-1]) - 1] if len(pieces) > tags + 1 else markup


def _with_one_root(markup: str) -> str:
    """Every further <html> or <body> made an end tag of nothing, which is dropped.

    By the standard it only adds attributes to the first one, but each of them is compared with all that are there: two
    tags of 20,000 attributes cost 1.3 s.
    """
    met = set()
    for root in _ROOT.finditer(markup):
        if root.lastindex in met:
            return markup[: root.start()] + _ROOT.sub("</", markup[root.start() :])
        met.add(root.lastindex)
    return markup


def _watched(markup: str) -> tuple[Document, bool]:
    """The tree of what could be parsed in time, and whether that is all. Honest pages are nowhere near the limit.

    Being early is not counted: a hostile part behind a cheap one gets no more time than alone.
    """
    parser = IncrementalParser(positions=False)
    late, before = 0.0, time.thread_time()
    for start in range(0, len(markup), _PIECE):
        if late > _PATIENCE:
            return parser.close(), False
        parser.feed(markup[start : start + _PIECE])
        now = time.thread_time()
        late, before = max(0.0, late + now - before - _PIECE * _PACE), now
    return parser.close(), True


def _is_large(document: Document) -> bool:
    return float(document.xpath("count(//*)")) > _TOO_LARGE  # type: ignore[arg-type]  # a count is a number


def _is_deep(document: Document) -> bool:
    """Whether much of a large page is nested beyond reason, judged by every so many elements."""
    elements = document.find_all()
    sample = elements[:: max(1, len(elements) // 64)]
    return any(sum(1 for _ in islice(element.ancestors, _TOO_DEEP)) == _TOO_DEEP for element in sample)
