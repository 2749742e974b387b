"""Removing it: State forgets, raw records and pages are written over, what was made of them goes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TypeVar

import msgspec

from harvestman.layout import Layout
from harvestman.mend import BATCH, StillCrawl, render_rows, rows_of
from harvestman.model import RESOURCE, Instant, JobTally, SiteRecord, Status, UrlId, UrlRecord, Visit
from harvestman.policy.blocklist import Which
from harvestman.ports import Content, Near
from harvestman.store.erase import Redo, erase_pages, filler
from harvestman.store.files import sync_directory

from .proof import Row, is_cleared
from .survey import Found, GonePage, Last

DERIVED = ("query", "export", "corpus", "corpus.part", "graph", "browser")
"""What verbs made of records and pages: each makes it again when it is asked to. The last is what a browser needs while
it runs, and one that was killed left behind."""
FORGOTTEN = {"digest": b"", "etag": "", "last_modified": ""}
"""Of a visit: what it takes to find a page unchanged."""
Refs = set[tuple[str, int]]
Tell = Callable[[str], None]
"""Hears what is done next."""

T = TypeVar("T")

_encode = msgspec.msgpack.encode
_content = msgspec.msgpack.Decoder(Content).decode
_near = msgspec.msgpack.Decoder(Near).decode
_site = msgspec.msgpack.Decoder(SiteRecord).decode


# -- what becomes of a record: pure ----------------------------------------------------------------------------------


def taken(record: UrlRecord, reason: str, now: Instant) -> UrlRecord:
    """It says nothing any more but that it is never asked for."""
    return UrlRecord(
        record.url, Status.REFUSED, record.depth, record.bucket, record.seq, record.found, record.via,
        visit=Visit(now, 0, reason), kind=record.kind, job=record.job,
    )  # fmt: skip


def parted(record: UrlRecord, which: Which, refs: Refs, pages: Mapping[str, Last]) -> UrlRecord:
    """A URL that stays, without what it had from one that goes; the same object when it had nothing.

    The copy of a page is known by that page's record alone: it is fetched whole at its next visit. So is a URL whose
    own page goes, or it would be found unchanged for ever, and its page never stored again.
    """
    visit = record.visit
    if visit is None:
        return record
    if which and record.render is not None and any(map(which.of, record.render.wants)):
        wants = [want for want in record.render.wants if not which.of(want)]
        record = msgspec.structs.replace(record, render=msgspec.structs.replace(record.render, wants=wants))
    said: dict[str, object] = {}
    if which and record.status is Status.DUPLICATE and which.of(visit.target):
        said |= FORGOTTEN | {"target": ""}
    if visit.digest and (last := pages.get(record.url)) and last.digest == visit.digest:
        said |= FORGOTTEN
    if which and visit.near and which.of(visit.near):
        said |= {"near": "", "distance": 0}
    if visit.ref is not None and (visit.ref.file, visit.ref.offset) in refs:
        said |= {"ref": None, **(FORGOTTEN if record.kind == RESOURCE else {})}
    return msgspec.structs.replace(record, visit=msgspec.structs.replace(visit, **said)) if said else record


# -- State -----------------------------------------------------------------------------------------------------------


def forget(crawl: StillCrawl, which: Which, found: Found, now: Instant) -> int:
    """Everything in State that is about URLs that go, or refers to what goes. Returns how many URLs went."""
    count, refs = 0, found.refs
    for index in range(len(crawl.states)):
        count += _forget_urls(crawl, index, which, refs, found.pages, now)
        _forget_rows(crawl, index, which, refs)
    return count


def _forget_urls(
    crawl: StillCrawl, index: int, which: Which, refs: Refs, pages: Mapping[str, Last], now: Instant
) -> int:
    state, count = crawl.states[index], 0
    tally = state.tally()
    for batch in _batches(state.url_rows()):
        put: list[Row] = []
        delete: list[Row] = []
        for url, record in batch:
            reason = which.refusal(record.url) if which else None
            if reason is None:
                changed = parted(record, which, refs, pages)
            elif is_cleared(record):
                continue
            else:
                changed = taken(record, reason, now)
                delete += [*rows_of(url, record), *render_rows(url, record)]
                if record.render is not None and record.render.due > 0:
                    tally.unrendered -= 1
                    tally.jobs.setdefault(record.job, JobTally()).unrendered -= 1
                count += 1
                tally.blocked -= record.status is Status.BLOCKED
                tally.settled += record.status in (Status.PENDING, Status.BLOCKED)
                if record.status is Status.PENDING:
                    tally.jobs.setdefault(record.job, JobTally()).settled += 1
            if changed is not record:
                put.append(("url", url, _encode(changed)))
        if put:
            # One commit: a URL is never without its queue entry and yet to be asked for.
            state.write_rows([*put, ("mark", b"tally", _encode(tally))], delete)
    return count


def _forget_rows(crawl: StillCrawl, index: int, which: Which, refs: Refs) -> None:
    state = crawl.states[index]

    def goes(row: Row) -> bool:
        family, key, value = row
        match family:
            case "content":
                content = _content(value)
                return which.of(content.url) is not None or (content.ref.file, content.ref.offset) in refs
            case "near":
                near = _near(value)
                return which.of(near.url) is not None or which.of(near.canonical) is not None
            case "robots":
                return which.of(f"{key[2:].decode()}/robots.txt") is not None
        return which.whole(_site(value).site)

    for family in ("content", *(("near", "robots", "site") if which else ())):
        for batch in _batches(row for row in state.waiting_rows(family) if goes(row)):
            state.write_rows([], batch)


def matching(crawl: StillCrawl, which: Which) -> Iterator[tuple[UrlId, UrlRecord]]:
    """The URLs that are meant, as far as State knows them."""
    for state in crawl.states:
        yield from (row for row in state.url_rows() if which.of(row[1].url))


def resources(crawl: StillCrawl, which: Which, holds: Which) -> set[str]:
    """The data that scripts of these pages asked for: what a page says stands in them.

    They are not blocked: they go, and are fetched again when another page asks for them. Scripts stay, for many pages
    have them; so does what is under legal hold.
    """
    rows = (record for state in crawl.states for _, record in state.url_rows() if record.kind == RESOURCE)
    data = (record for record in rows if record.visit and "javascript" not in record.visit.content_type)
    return {record.url for record in data if which.of(record.via) and not holds.of(record.url)}


def compact(crawl: StillCrawl) -> None:
    """State forgets for good."""
    for state in crawl.states:
        state.compact()


# -- files -----------------------------------------------------------------------------------------------------------


def erase_records(found: Found, redo: Redo, now: Instant) -> None:
    for path, cuts in found.cuts.items():
        for cut in cuts:
            redo.put(path, cut.offset, filler(path.name, cut, now))
    redo.flush()


def erase_log_pages(found: Found, gone: GonePage, redo: Redo) -> int:
    count = sum(erase_pages(path, gone, redo) for path in found.logs)
    redo.flush()
    return count


def remove_files(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
        sync_directory(path.parent)


def remove_derived(layout: Layout, pages: bool) -> list[str]:
    """Indexes of raw records and, if `pages` went, datasets and caches: returns what was there."""
    gone: list[Path] = []
    if pages:
        gone += [layout.data / name for name in DERIVED]
        gone += [layout.state(index) / "lost" for index in layout.workers()]  # files that `repair` could not read
    for directory in layout.warcs():
        gone += [*sorted(directory.glob("*.cdxj")), *sorted(directory.glob("*.unfinished"))]
    gone = [path for path in gone if path.exists()]
    for path in gone:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    return [path.relative_to(layout.data).as_posix() for path in gone]


def _batches(rows: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(rows)
    while batch := list(islice(rest, BATCH)):
        yield batch
