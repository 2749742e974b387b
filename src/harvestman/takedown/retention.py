"""Retention: what is older than an age is deleted, all of it or some kinds only, with the tools of a takedown.

Nothing is blocked. Kinds are of two sorts: what a thing is in the archive (a raw record by its WARC-Type, or a parsed
page), and what it is on the web (its medium). Of the sort that no kind is named of, all are meant.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from harvestman import media
from harvestman.blocking import read_entries
from harvestman.config import MEDIA, STORED
from harvestman.fetch.decode import BadBody, decode
from harvestman.layout import Layout
from harvestman.mend import StillCrawl, still
from harvestman.model import Instant, Page
from harvestman.policy.blocklist import Which
from harvestman.removals import Removal, Removals
from harvestman.store.erase import Redo
from harvestman.store.members import Member
from harvestman.store.records import header_fields, instant

from . import deed
from .record import append, hashes, names
from .survey import Found, survey

NOBODY = Which(())
UNKNOWN = "other"
_END = b"\r\n\r\n"


class Wanted(msgspec.Struct, frozen=True):
    """What goes."""

    older_than: Instant
    kinds: tuple[str, ...] = ()
    """Of `config.STORED` and `config.MEDIA`; none for all."""

    @property
    def stored(self) -> frozenset[str]:
        return frozenset(STORED).intersection(self.kinds) or frozenset(STORED)

    @property
    def media(self) -> frozenset[str]:
        """Empty for all, so that nobody has to ask of which one a record is."""
        return frozenset(MEDIA).intersection(self.kinds)


class Retained(msgspec.Struct):
    """What retention deleted: a line of takedowns.jsonl."""

    at: Instant
    by: str
    older_than: Instant
    kinds: list[str]
    """As they were asked for; empty for all."""
    kind: str = "retention"
    dry_run: bool = False
    records: dict[str, int] = {}
    pages: int = 0
    size: int = 0
    """Bytes of raw records."""
    files: list[str] = []
    """Those that were written over ..."""
    removed: list[str] = []
    """... and those that went as a whole, with what was made of them."""
    held: int = 0
    """Records and pages that are old enough and under legal hold."""


def retain(data: Path, wanted: Wanted, by: str, now: Instant, dry_run: bool, tell: deed.Tell) -> Retained:
    """Delete what is wanted gone, but for what is under legal hold and what was not yet taken in."""
    layout = Layout(data)
    done = Retained(now, by, wanted.older_than, sorted(wanted.kinds), dry_run=dry_run)
    with still(data) as crawl, asyncio.Runner() as runner:
        judge = _Judge(wanted, Which(read_entries(layout.holds)), crawl, runner)
        if not dry_run:
            redo = Redo(data)
            Removals(layout).finish()
            crawl.cut_tails()
        tell("survey")
        found = survey(layout, judge.record_goes, judge.page_goes, wanted.older_than)
        done.held = judge.held
        whole = [path for path in found.whole if not _is_newest(path)]
        done.records, done.pages, done.size = found.kinds, sum(found.logs.values()), found.size
        done.files = names(layout, {*found.cuts, *found.logs} - {*whole})
        done.removed = names(layout, whole)
        if dry_run or not found.urls:
            return done
        _remove(layout, crawl, judge, found, whole, redo, done, tell)
    append(layout, done)
    return done


def _remove(
    layout: Layout, crawl: StillCrawl, judge: _Judge, found: Found, whole: list[Path], redo: Redo, done: Retained,
    tell: deed.Tell,
) -> None:  # fmt: skip
    removals = Removals(layout)
    tell("state")
    removals.begin(_told(found, done.kind))
    deed.forget(crawl, NOBODY, found, done.at)
    for path in whole:
        found.cuts.pop(path, None)
        found.logs.pop(path, None)
    tell("records")
    deed.erase_records(found, redo, done.at)
    tell("pages")
    deed.erase_log_pages(found, judge.page_goes, redo)
    tell("files")
    deed.remove_files(whole)
    removals.finish()
    tell("derived")
    done.removed += deed.remove_derived(layout, pages=bool(done.pages))


def _told(found: Found, why: str) -> list[Removal]:
    """Up to the newest page of a URL that goes: of another medium, a later one stays that is old enough, too."""
    before: dict[str, Instant] = {}
    for url, last in found.pages.items():
        (name,) = hashes([url])
        before[name] = max(before.get(name, Instant(0.0)), _behind(last.at))
    return [Removal(name, at, why) for name, at in sorted(before.items())]


def _behind(at: Instant) -> Instant:
    """The moment after, as readers of the feed are told moments: to the millisecond."""
    return Instant((round(at * 1000) + 1) / 1000)


class _Judge:
    """Says of each raw record and page whether it goes. Records are shown in the order they lie in."""

    def __init__(self, wanted: Wanted, holds: Which, crawl: StillCrawl, runner: asyncio.Runner) -> None:
        self._older_than = wanted.older_than
        self._stored, self._media = wanted.stored, wanted.media
        self._holds = holds
        self._crawl = crawl
        self._runner = runner
        self._taken_in = _remembered(crawl.committed)
        self._last = "", ""
        """The last answer, by its record's identity, and its medium: its request lies behind it."""
        self._looked: dict[str, str] = {}
        """Of URLs whose server did not say it, what their bodies look like: few, and their pages are asked for last."""
        self.held = 0

    def record_goes(self, path: Path, member: Member, fields: Mapping[str, str], block: bytes) -> bool:
        if instant(fields["warc-date"]) >= self._older_than:
            return False
        if self._media and self._medium(fields, block) not in self._media:
            return False
        if _kind(fields) not in self._stored or member.offset + member.length > self._taken_in(path):
            return False
        return not self._is_held(fields["warc-target-uri"])

    def page_goes(self, page: Page) -> bool:
        if "page" not in self._stored or page.fetched_at >= self._older_than:
            return False
        if self._media and (self._looked.get(page.url) or medium_of(page)) not in self._media:
            return False
        return not self._is_held(page.url)

    def _is_held(self, url: str) -> bool:
        is_held = bool(self._holds) and self._holds.of(url) is not None
        self.held += is_held
        return is_held

    def _medium(self, fields: Mapping[str, str], block: bytes) -> str:
        if fields.get("warc-type") == "request":
            identity, medium = self._last
            return medium if fields.get("warc-concurrent-to") == identity else self._known(fields)
        if fields.get("warc-type") == "conversion":
            return "html"
        head, _, body = block.partition(_END)
        headers = header_fields(head)
        found = _said(headers.get("content-type", ""))
        if not found and (found := _looks(body, headers.get("content-encoding", ""))):
            self._looked[fields["warc-target-uri"]] = found
        found = found or self._known(fields)
        self._last = fields.get("warc-record-id", ""), found
        return found

    def _known(self, fields: Mapping[str, str]) -> str:
        """As State has it: of a 304, which need not say it, and of a request whose answer is gone."""
        url = fields["warc-target-uri"]
        record = self._runner.run(self._crawl.look_up([url]))[url]
        return (_said(record.visit.content_type) if record and record.visit else "") or UNKNOWN


def _kind(fields: Mapping[str, str]) -> str:
    """What a browser made of a response goes with it."""
    said = fields.get("warc-type", "")
    return "response" if said == "conversion" else said


def medium_of(page: Page) -> str:
    """What a page is on the web; of one whose server did not say, as what was made of it suggests."""
    if said := _said(page.content_type):
        return said
    if page.title or page.links:
        return "html"
    return "text" if page.text else UNKNOWN


def _said(content_type: str) -> str:
    """What a Content-Type says it is; '' when it says nothing."""
    said = media.essence(content_type)
    return "" if said in media.UNTOLD else media.kind_of(said)


def _looks(body: bytes, encoding: str) -> str:
    """What a body looks like; '' when there is none."""
    decoded = decode(body, encoding) if body else b""
    return "" if not decoded or isinstance(decoded, BadBody) else media.kind_of(media.sniffed(decoded[: media.HEAD]))


def _remembered(committed: Callable[[Path], int]) -> Callable[[Path], int]:
    known: dict[Path, int] = {}

    def look(path: Path) -> int:
        if path not in known:
            known[path] = committed(path)
        return known[path]

    return look


def _is_newest(path: Path) -> bool:
    """Whether it is the last file of its writer: the next one's number follows from it."""
    prefix = path.name.partition("-")[0]
    suffix = "".join(path.suffixes[-2:])
    return path == max(path.parent.glob(f"{prefix}-*{suffix}"), key=_number)


def _number(path: Path) -> int:
    return int(path.name.partition(".")[0].rpartition("-")[2])
