"""A takedown, its proof and its record; and retention, which deletes by age with the same tools."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from harvestman.blocking import add_entries, read_entries
from harvestman.errors import StateError
from harvestman.layout import Layout
from harvestman.mend import StillCrawl, still
from harvestman.model import Instant, Page
from harvestman.policy.blocklist import Entry, Which
from harvestman.policy.urls import key, url_hash
from harvestman.removals import Removal, Removals
from harvestman.store.erase import Redo
from harvestman.store.members import Member
from harvestman.store.records import instant

from . import deed
from .proof import Proof, Row, Search
from .survey import Found, survey

KINDS = ("response", "revisit", "request", "page")
"""What retention tells apart: raw records by WARC-Type, and parsed pages."""
NOBODY = Which(())


class Order(msgspec.Struct, frozen=True):
    """A takedown as it was asked for."""

    entry: Entry
    text: str
    """What stood behind the option, or in the file."""
    dry_run: bool = False
    despite_hold: bool = False
    keep_pattern: bool = False
    more: tuple[Entry, ...] = ()
    """Of a list of URLs, those after the first."""

    @property
    def which(self) -> Which:
        return Which([self.entry, *self.more])


class Takedown(msgspec.Struct):
    """A line of takedowns.jsonl: what was done, told without telling what was there."""

    at: Instant
    by: str
    reason: str
    kind: str
    what: str
    """SHA-256 of what was asked for, in hex."""
    pattern: str = ""
    """The same in plain, when it was to be kept."""
    dry_run: bool = False
    despite_hold: bool = False
    urls: list[str] = []
    """SHA-256 of the key of each URL, as the feed and the exports have it (`url_hash`)."""
    records: dict[str, int] = {}
    """Raw records by WARC-Type."""
    pages: int = 0
    files: list[str] = []
    """Those that were written over."""
    removed: list[str] = []
    """What was made of them: to be made again."""
    proof: Proof | None = None
    """None when it begins: there is a line then, too, so that one that was cut short is known by it."""


class Retained(msgspec.Struct):
    """What retention deleted: a line of takedowns.jsonl."""

    at: Instant
    by: str
    older_than: Instant
    kinds: list[str]
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


def take_down(data: Path, order: Order, tell: deed.Tell, phrases: Iterable[bytes] = ()) -> Takedown:
    """Block, forget, write over, search. Run again after a crash it does what is left to do."""
    layout, which = Layout(data), order.which
    done = _begun(order)
    with still(data) as crawl:
        if not order.dry_run:
            redo = Redo(data)
            crawl.cut_tails()
        _refuse_held(layout, crawl, which, order)
        tell("survey")
        found = survey(layout, lambda _, __, fields: bool(which.of(fields["warc-target-uri"])), _page_of(which))
        told = [Removal(each, order.entry.at, order.entry.kind) for each in _hashes(found.urls)]
        found.urls |= {record.url for _, record in deed.matching(crawl, which)}
        _count(layout, found, done)
        if order.dry_run:
            return done
        removals = Removals(layout)
        removals.begin(told)
        _remove(layout, crawl, order, found, redo, done, tell)
        removals.finish()
    tell("proof")
    done.proof = verify(data, which, [*phrases, *found.phrases], found.urls)
    tell("record")
    append(layout, done)
    return done


def _remove(
    layout: Layout, crawl: StillCrawl, order: Order, found: Found, redo: Redo, done: Takedown, tell: deed.Tell
) -> None:
    which, now = order.which, order.entry.at
    tell("block")
    append(layout, done)
    add_entries(layout.blocked, which.entries)
    tell("state")
    deed.forget(crawl, which, found.refs, now)
    tell("records")
    deed.erase_records(found, redo, now)
    tell("pages")
    deed.erase_log_pages(found, _page_of(which), redo)
    tell("derived")
    if found.urls:
        done.removed = deed.remove_derived(layout, pages=True)
    tell("compact")
    deed.compact(crawl)


def verify(data: Path, which: Which, phrases: Iterable[bytes], urls: Iterable[str]) -> Proof:
    """Search a crawl that stands still for what should be gone."""
    with still(data) as crawl:
        rows: Iterable[Row] = (row for state in crawl.states for row in state.rows())
        return Search(Layout(data), which, phrases, urls).run(rows)


def blocked(data: Path) -> Which:
    """All that was ever taken down."""
    return Which(read_entries(Layout(data).blocked))


def retain(
    data: Path, older_than: Instant, kinds: Iterable[str], by: str, now: Instant, dry_run: bool, tell: deed.Tell
) -> Retained:
    """Delete what is older than a moment, but for what is under legal hold and what was not yet taken in."""
    layout, wanted = Layout(data), set(kinds)
    done = Retained(now, by, older_than, sorted(wanted), dry_run=dry_run)
    holds = Which(read_entries(layout.holds))

    def old_record(path: Path, member: Member, fields: Mapping[str, str]) -> bool:
        if fields.get("warc-type") not in wanted or instant(fields["warc-date"]) >= older_than:
            return False
        return member.offset + member.length <= taken_in(path) and not held(fields["warc-target-uri"])

    def old_page(page: Page) -> bool:
        return "page" in wanted and page.fetched_at < older_than and not held(page.url)

    def held(url: str) -> bool:
        is_held = bool(holds) and holds.of(url) is not None
        done.held += is_held
        return is_held

    with still(data) as crawl:
        taken_in = _remembered(crawl.committed)
        removals = Removals(layout)
        if not dry_run:
            redo = Redo(data)
            removals.finish()
            crawl.cut_tails()
        tell("survey")
        found = survey(layout, old_record, old_page)
        whole = [path for path in found.whole if not _is_newest(path)]
        done.records, done.pages, done.size = found.kinds, sum(found.logs.values()), found.size
        done.files = _names(layout, {*found.cuts, *found.logs} - {*whole})
        done.removed = _names(layout, whole)
        if dry_run or not found.urls:
            return done
        counted = done.held
        tell("state")
        removals.begin(Removal(url, older_than, done.kind) for url in _hashes(found.pages))
        deed.forget(crawl, NOBODY, found.refs, now)
        for path in whole:
            found.cuts.pop(path, None)
            found.logs.pop(path, None)
        tell("records")
        deed.erase_records(found, redo, now)
        tell("pages")
        deed.erase_log_pages(found, old_page, redo)
        tell("files")
        deed.remove_files(whole)
        removals.finish()
        tell("derived")
        done.removed += deed.remove_derived(layout, pages=bool(done.pages))
        done.held = counted
    append(layout, done)
    return done


def append(layout: Layout, line: msgspec.Struct) -> None:
    """Add to the record of what was deleted; durable when it returns."""
    with layout.takedowns.open("ab") as file:
        file.write(msgspec.json.encode(line) + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _begun(order: Order) -> Takedown:
    entry = order.entry
    return Takedown(
        entry.at, entry.by, entry.reason, entry.kind, hashlib.sha256(order.text.encode()).hexdigest(),
        order.text if order.keep_pattern else "", order.dry_run, order.despite_hold,
    )  # fmt: skip


def _count(layout: Layout, found: Found, done: Takedown) -> None:
    done.urls = _hashes(found.urls)
    done.records, done.pages = found.kinds, sum(found.logs.values())
    done.files = _names(layout, {*found.cuts, *found.logs})


def _hashes(urls: Iterable[str]) -> list[str]:
    return sorted({url_hash(key(url)) for url in urls})


def _refuse_held(layout: Layout, crawl: StillCrawl, which: Which, order: Order) -> None:
    holds = Which(read_entries(layout.holds))
    if order.despite_hold or not holds:
        return
    held = [entry for _, record in deed.matching(crawl, which) if (entry := holds.of(record.url))]
    if held:
        reasons = ", ".join(sorted({entry.reason for entry in held}))
        raise StateError(
            f"{len(held):,} of these URLs are under legal hold ({reasons}): nothing was deleted; "
            "`harvestman hold list` names the holds, --despite-hold overrides them"
        )


def _page_of(which: Which) -> Callable[[Page], bool]:
    return lambda page: which.of(page.url) is not None


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


def _names(layout: Layout, paths: Iterable[Path]) -> list[str]:
    return sorted(path.relative_to(layout.data).as_posix() for path in paths)
