"""Which raw records and pages go: one pass over the files, nothing is changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from math import inf
from pathlib import Path
from typing import NamedTuple

import msgspec

from harvestman.layout import Layout
from harvestman.model import Instant, Page
from harvestman.store.erase import Cut
from harvestman.store.frames import frames
from harvestman.store.members import Member, members
from harvestman.store.pages import SUFFIX
from harvestman.store.records import parse_record

PHRASES = 32
"""What is searched for in the end, at most: each costs a look at every byte of the crawl."""
WINDOW = 48
"""Bytes of a phrase ..."""
SHORTEST = 16
"""... and the fewest that say which page they are from."""

NEVER = Instant(inf)
SLOWEST = 3_600.0
"""Seconds: an answer that was asked for before a file was begun may be in it, but not one of an hour before."""
_STAMP = re.compile(r"-(\d{14})-")
STRETCHES = 8
"""Of each body: of several, for pages of one site share their menus."""

GoneRecord = Callable[[Path, Member, Mapping[str, str], bytes], bool]
"""Asked with where a record lies, its fields and its block."""
GonePage = Callable[[Page], bool]


class Last(NamedTuple):
    """Of the pages of one URL that go, the newest."""

    at: Instant
    digest: bytes
    """Of the newest as its server sent it, as `Visit` has it; empty when a later page that stays says the same."""


class Found(msgspec.Struct):
    """What goes."""

    cuts: dict[Path, list[Cut]] = {}
    whole: list[Path] = []
    """Files of records or pages of which nothing else is left."""
    kinds: dict[str, int] = {}
    """Raw records by WARC-Type."""
    logs: dict[Path, int] = {}
    """Pages by file."""
    urls: set[str] = set()
    pages: dict[str, Last] = {}
    """Those of them that go as pages, too: a reader of the feed may have a copy."""
    phrases: list[bytes] = []
    """Stretches of what goes, from all over it."""
    pace: int = 1
    """One stretch in so many is kept ..."""
    passed: int = 0
    """... out of those that came so far."""
    size: int = 0
    """Bytes of raw records."""

    @property
    def refs(self) -> set[tuple[str, int]]:
        """Where the raw records lie that go, as `RecordRef` has it."""
        return {(path.name, cut.offset) for path, cuts in self.cuts.items() for cut in cuts}


def raw_files(layout: Layout) -> list[Path]:
    return [path for directory in layout.warcs() for path in sorted(directory.glob("*.warc.gz"))]


def log_files(layout: Layout) -> list[Path]:
    return [path for directory in layout.page_logs() for path in sorted(directory.glob(f"*{SUFFIX}"))]


def survey(layout: Layout, gone_record: GoneRecord, gone_page: GonePage, before: Instant = NEVER) -> Found:
    """Look at every raw record and every page; what was fetched at or after `before` need not be looked at."""
    found = Found()
    for path in raw_files(layout):
        if _begun(path) < before + SLOWEST:
            _survey_records(path, gone_record, found)
    for path in log_files(layout):
        _survey_pages(path, gone_page, found)
    return found


def _begun(path: Path) -> Instant:
    """When a file of raw records was begun, as its name says; the beginning of time when it does not."""
    named = _STAMP.search(path.name)
    return Instant(datetime.strptime(f"{named[1]}Z", "%Y%m%d%H%M%S%z").timestamp() if named else 0.0)


def _survey_pages(path: Path, gone: GonePage, found: Found) -> None:
    going = kept = 0
    for page in (page for frame in frames(path) for page in frame.pages()):
        last = found.pages.get(page.url)
        if not gone(page):
            kept += 1
            if last and last.digest.hex() == page.digest:
                found.pages[page.url] = Last(last.at, b"")
            continue
        going += 1
        found.urls.add(page.url)
        if last is None or last.at < page.fetched_at:
            before = last.digest if last else b""
            digest = before if page.rendered else bytes.fromhex(page.digest)
            found.pages[page.url] = Last(page.fetched_at, digest)
        _keep(found, phrases_of(page.text.encode()))
    if going:
        found.logs[path] = going
        found.whole += [] if kept else [path]


def _survey_records(path: Path, gone: GoneRecord, found: Found) -> None:
    cuts: list[Cut] = []
    kept = 0
    for member in members(path):
        fields, block = parse_record(member.data)
        url = fields.get("warc-target-uri", "")
        if not url:
            continue
        if not gone(path, member, fields, block):
            kept += 1
            continue
        cuts.append(Cut(member.offset, member.length))
        kind = fields.get("warc-type", "")
        found.kinds[kind] = found.kinds.get(kind, 0) + 1
        found.urls.add(url)
        found.size += member.length
        if kind == "response":
            _keep(found, phrases_of(block.partition(b"\r\n\r\n")[2]))
        elif kind == "conversion":
            _keep(found, phrases_of(block))
    if cuts:
        found.cuts[path] = cuts
        if not kept:
            found.whole.append(path)


def _keep(found: Found, phrases: Iterator[bytes]) -> None:
    for phrase in phrases:
        found.passed += 1
        if found.passed % found.pace or phrase in found.phrases:
            continue
        found.phrases.append(phrase)
        if len(found.phrases) > PHRASES:
            found.phrases, found.pace = found.phrases[::2], 2 * found.pace


def phrases_of(body: bytes) -> Iterator[bytes]:
    """Stretches of a body, from all over it: in some places pages of one site say the same."""
    body = body.strip()
    for part in range(1, STRETCHES + 1):
        start = len(body) * part // (STRETCHES + 1)
        phrase = body[max(0, min(start, len(body) - WINDOW)) :][:WINDOW].strip()
        if len(phrase) >= SHORTEST:
            yield phrase
