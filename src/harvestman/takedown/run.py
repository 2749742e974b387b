"""A takedown, its proof and its record."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

import msgspec

from harvestman.blocking import add_entries, read_entries
from harvestman.errors import StateError
from harvestman.layout import Layout
from harvestman.mend import StillCrawl, still
from harvestman.model import Instant, Page
from harvestman.policy.blocklist import Entry, Which
from harvestman.removals import Removal, Removals
from harvestman.store.erase import Redo
from harvestman.store.members import Member

from . import deed
from .proof import Proof, Row, Search
from .record import append, hashes, names
from .survey import Found, GoneRecord, survey


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
        data_of = deed.resources(crawl, which, Which(() if order.despite_hold else read_entries(layout.holds)))
        found = survey(layout, _record_of(which, data_of), _page_of(which))
        told = [Removal(each, order.entry.at, order.entry.kind) for each in hashes(found.urls)]
        found.urls |= {record.url for _, record in deed.matching(crawl, which)}
        _count(layout, found, done)
        if order.dry_run:
            return done
        tell("block")
        append(layout, done)
        add_entries(layout.blocked, which.entries)
        # Not sooner: a crash before they are blocked leaves them as they were, and nothing to tell.
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
    tell("state")
    deed.forget(crawl, which, found, now)
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


def _begun(order: Order) -> Takedown:
    entry = order.entry
    return Takedown(
        entry.at, entry.by, entry.reason, entry.kind, hashlib.sha256(order.text.encode()).hexdigest(),
        order.text if order.keep_pattern else "", order.dry_run, order.despite_hold,
    )  # fmt: skip


def _count(layout: Layout, found: Found, done: Takedown) -> None:
    done.urls = hashes(found.urls)
    done.records, done.pages = found.kinds, sum(found.logs.values())
    done.files = names(layout, {*found.cuts, *found.logs})


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


def _record_of(which: Which, others: Collection[str]) -> GoneRecord:
    def goes(path: Path, member: Member, fields: Mapping[str, str], block: bytes) -> bool:
        url = fields["warc-target-uri"]
        return which.of(url) is not None or url in others

    return goes


def _page_of(which: Which) -> Callable[[Page], bool]:
    return lambda page: which.of(page.url) is not None
