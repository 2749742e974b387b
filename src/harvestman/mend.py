"""Surgery on a crawl that stands still: its queues made anew, dead letters driven again, traps and hosts pardoned.

What is to be done follows from pure functions of single records (the first half); `StillCrawl` does it (the second).
Changes are committed batch by batch, each batch leaves the crawl no worse than it was, and what was done already is
left alone: whatever is cut short, by kill -9 too, may simply be run again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

import msgspec

from harvestman import regions
from harvestman.embedded.opening import Damaged, salvage
from harvestman.embedded.reshard import position
from harvestman.embedded.roster import StaticRoster
from harvestman.embedded.rows import WAITING, Row, dated_row, id_in, queue_row
from harvestman.embedded.state import RocksState
from harvestman.errors import StateError, UsageError
from harvestman.frontier.routing import Router
from harvestman.layout import CrawlFile, Layout
from harvestman.lock import locked
from harvestman.model import (
    BUCKETS,
    HostKey,
    HostRecord,
    Instant,
    JobTally,
    Partition,
    SiteKey,
    Status,
    Trap,
    UrlId,
    UrlRecord,
    Visit,
)
from harvestman.policy import traps
from harvestman.policy.novelty import EVERY
from harvestman.policy.sites import site_of
from harvestman.policy.urls import host_of
from harvestman.ports import Changes
from harvestman.store.files import serial_of
from harvestman.store.pages import PageLog
from harvestman.store.replay import replay
from harvestman.views import View, kind_of

BATCH = 2_000
"""Records in one commit."""
TELL_EVERY = 50_000
DROPPED = "dropped by hand"
VISITED_AGAIN = (Status.FETCHED, Status.DUPLICATE, Status.REDIRECTED)

Tell = Callable[[int], None]
"""Hears now and then how many URLs were read."""
T = TypeVar("T")


# -- what is to be done: pure ----------------------------------------------------------------------------------------


def rows_of(url: UrlId, record: UrlRecord) -> list[Row]:
    """Where a URL may wait to be asked for, the place to put it first; empty when it waits for nothing."""
    if record.status is Status.PENDING:
        return [dated_row("due", record.due, url) if record.due > 0 else queue_row(host_of(record.url), url, record)]
    if record.status in VISITED_AGAIN and record.due > 0:
        # When its day has come it moves to the queue, and from there, without a robots.txt, to the retries.
        queue = queue_row(host_of(record.url), url, record)
        return [dated_row("revisit", record.due, url), queue, dated_row("due", record.due, url)]
    return []


def render_rows(url: UrlId, record: UrlRecord) -> list[Row]:
    """Where a page waits for a browser, if it does."""
    return [dated_row("render", record.render.due, url)] if record.render and record.render.due > 0 else []


def difference(wanted: Sequence[list[Row]], held: Sequence[list[bool]]) -> tuple[list[Row], list[Row]]:
    """(missing, surplus): every URL that waits has to wait in one of its places, and in no more than one."""
    missing: list[Row] = []
    surplus: list[Row] = []
    for rows, here in zip(wanted, held, strict=True):
        found = [row for row, is_here in zip(rows, here, strict=True) if is_here]
        missing += [] if found else rows[:1]
        surplus += found[1:]
    return missing, surplus


@dataclass(frozen=True, slots=True)
class Choice:
    """Which dead letters are meant: those that fit everything that is given."""

    host: str = ""
    site: str = ""
    kind: str = ""

    def picks(self, record: UrlRecord) -> bool:
        if record.status is not Status.DEAD:
            return False
        host = host_of(record.url)
        return (
            (not self.host or host == self.host)
            and (not self.site or site_of(host) == self.site)
            and (not self.kind or kind_of(record).lower() == self.kind.lower())
        )


def redriven(record: UrlRecord) -> UrlRecord:
    """As if it had never been tried."""
    return msgspec.structs.replace(record, status=Status.PENDING, attempts=0, trail=[], due=Instant(0.0))


def dropped(record: UrlRecord) -> UrlRecord:
    """Never to be asked for again. The record stays, so that no link brings it back; so does its trail."""
    visit = msgspec.structs.replace(record.visit or Visit(record.found, 0), reason=DROPPED)
    return msgspec.structs.replace(record, status=Status.REFUSED, visit=visit, due=Instant(0.0))


def caught_by(record: UrlRecord, trap: Trap, key: str) -> bool:
    """Was a URL refused as part of this trap, which its site has under `key`: a shape, or its name and a shape?"""
    said = record.visit.reason if record.status is Status.REFUSED and record.visit else ""
    name = f"{trap.name} "
    if not said.startswith(f"trap: {name}"):
        return False
    shape = key.removeprefix(name)
    return shape in (EVERY, said.removeprefix(f"trap: {name}").removeprefix(name))


def released(record: UrlRecord) -> UrlRecord:
    """As if it had never been refused. One that was not even queued is neither more nor less urgent than others."""
    return msgspec.structs.replace(redriven(record), visit=None, bucket=record.bucket if record.seq else BUCKETS // 2)


def forgiven(host: HostRecord) -> HostRecord:
    """Off the sick list. What the server itself asked for beyond it (its delay, a Retry-After) stays in force."""
    by_sickness = host.next_allowed <= host.sick_until
    return msgspec.structs.replace(
        host, failures=0, sick_until=Instant(0.0), next_allowed=Instant(0.0) if by_sickness else host.next_allowed
    )


# -- doing it --------------------------------------------------------------------------------------------------------


class Mended(msgspec.Struct):
    """What was found wrong with one worker's queues, and what they hold when it is mended."""

    worker: str
    urls: int = 0
    queued: int = 0
    retries: int = 0
    revisits: int = 0
    renders: int = 0
    missing: int = 0
    """URLs that were to wait and did so nowhere."""
    stale: int = 0
    """Entries for URLs that are not to wait there."""
    hidden: int = 0
    """Entries before the place where reading began, which would never have been read."""
    unreadable: list[str] = []
    """Families of the database that could not be read."""
    lost: list[str] = []
    """Files of the database that could not be read."""

    @property
    def whole(self) -> bool:
        return not (self.missing or self.stale or self.hidden or self.unreadable or self.lost)


class Repaired(msgspec.Struct):
    """A crawl after its repair, or as it would be."""

    data: str
    dry_run: bool
    discovered: int
    """URLs there should be, as counted when they came."""
    workers: list[Mended]

    @property
    def whole(self) -> bool:
        return all(worker.whole for worker in self.workers)

    @property
    def urls(self) -> int:
        return sum(worker.urls for worker in self.workers)


class Redriven(msgspec.Struct):
    """What was queued again."""

    urls: int = 0
    hosts: int = 0
    """Forgiven."""


class StillCrawl:
    """The databases of a crawl that does not run, to be changed. See `still`."""

    def __init__(self, layout: Layout, facts: CrawlFile, states: list[RocksState], lost: dict[int, list[str]]) -> None:
        self._layout = layout
        self._facts = facts
        self.states = states
        self._lost = lost
        self.router: Router = regions.router(layout, facts)
        self._roster = StaticRoster(facts.partitions, facts.split, 0)

    async def repair(self, tell: Tell) -> Repaired:
        """Queues, schedules and the seen-filter from the URL records alone."""
        discovered = sum(state.tally().discovered for state in self.states)
        done = Repaired(str(self._layout.data), False, discovered, [])
        for index, state in enumerate(self.states):
            found = Mended(self._layout.worker(index), lost=self._lost.get(index, []))
            await mend(state, found, True, tell)
            # The filter is made anew from State when there is no snapshot of it.
            (self._layout.data / self._layout.seen(index)).unlink(missing_ok=True)
            done.workers.append(found)
        return done

    def cut_tails(self) -> None:
        """What a crash left half-written behind the last commit goes, as the next start would have it."""
        for index, state in enumerate(self.states):
            content, files = self._facts.region(index).content, self._facts.files(index)
            replay(self._layout.warc_of(content), files, position(state, "warc", files))
            if any(self._layout.pages_of(content).glob(f"{files}-*")):
                PageLog(self._layout.pages_of(content), files, position(state, "pages", files)).close()

    def committed(self, warc: Path) -> int:
        """How many bytes of a file of raw records were taken in; what lies behind is read at the next start."""
        for index, state in enumerate(self.states):
            files = self._facts.files(index)
            if warc.name.startswith(f"{files}-"):
                name, length = position(state, "warc", files) or ("", 0)
                if warc.name == name:
                    return length
                return warc.stat().st_size if serial_of(warc) < serial_of(Path(name)) else 0
        return warc.stat().st_size

    async def redrive(self, chosen: Choice | Sequence[str], limit: int | None, forgive: bool, now: Instant) -> Redriven:
        """Dead letters back into their queues."""
        done = Redriven()
        async for desk, batch in self._batches(chosen, limit, now):
            for url, record in batch:
                desk.queue(url, redriven(record))
            desk.tally.settled -= len(batch)
            done.urls += len(batch)
            if forgive:
                done.hosts += await desk.forgive({host_of(record.url) for _, record in batch}, self.router)
            await desk.commit()
        return done

    async def drop(self, chosen: Choice | Sequence[str], limit: int | None, now: Instant) -> int:
        """Dead letters for good. They were settled before, and are now."""
        count = 0
        async for desk, batch in self._batches(chosen, limit, now):
            desk.changes.records.update((url, dropped(record)) for url, record in batch)
            count += len(batch)
            await desk.commit()
        return count

    async def pardon(self, site: str, shape: str, now: Instant) -> int:
        """A trap that is none: its URLs are followed from now on, and those refused so far are queued."""
        name = SiteKey(site)
        partition = self.router.place(HostKey(site))[2]
        state = self._state_of(HostKey(site))
        record = (await state.sites([(partition, name)]))[0]
        if record is None or not traps.pardon(record, shape):
            known = ", ".join(map(repr, record.traps)) if record else ""
            raise UsageError(f"{site} has no trap of shape {shape!r}{f', but {known}' if known else ''}")
        trap = record.traps[shape]
        await state.commit(Changes(sites={name: (partition, record)}))
        desk, count = _Desk(state, now), 0
        refused = (row for row in state.url_rows() if caught_by(row[1], trap, shape) and _on(row[1], name))
        for batch in _batches(refused):
            for url, each in batch:
                desk.queue(url, released(each))
            count += len(batch)
            desk.tally.settled -= len(batch)
            desk.tally.traps[trap.name] = desk.tally.traps.get(trap.name, 0) - len(batch)
            await desk.commit()
        return count

    async def look_up(self, urls: Sequence[str]) -> dict[str, UrlRecord | None]:
        """What is known of these URLs, in request form."""
        found: dict[str, UrlRecord | None] = {}
        for url in urls:
            state = self._state_of(host_of(url))
            found[url] = (await state.records([self.router.id_of(url)]))[0]
        return found

    async def unknown_hosts(self, names: Iterable[HostKey]) -> list[HostKey]:
        """Those of which there is no record."""
        places = ((name, self.router.place(name)[2]) for name in names)
        return [name for name, place in places if not (await self._state_of(name).hosts([(place, name)]))[0]]

    def _state_of(self, host: HostKey) -> RocksState:
        return self.states[self._roster.owner(self.router.place(host)[2])]

    async def forgive(self, hosts: Iterable[HostKey] | None, now: Instant) -> list[HostKey]:
        """Forget the failures of these hosts, of all with None. Returns those that had any."""
        wanted = None if hosts is None else set(hosts)
        done: list[HostKey] = []
        for state in self.states:
            meant = (row for row in state.host_rows() if wanted is None or row[1].host in wanted)
            for batch in _batches(row for row in meant if _has_failed(row[1], now)):
                changed = {record.host: (partition, forgiven(record)) for partition, record in batch}
                await state.commit(Changes(hosts=changed))
                done += changed
        return done

    async def _batches(
        self, chosen: Choice | Sequence[str], limit: int | None, now: Instant
    ) -> AsyncIterator[tuple[_Desk, list[tuple[UrlId, UrlRecord]]]]:
        """The dead letters that are meant, worker by worker."""
        for index, state in enumerate(self.states):
            if isinstance(chosen, Choice):
                rows: Iterable[tuple[UrlId, UrlRecord]] = (row for row in state.url_rows() if chosen.picks(row[1]))
            else:
                rows = await self._named(index, chosen)
            desk = _Desk(state, now)
            for batch in _batches(islice(rows, limit)):
                limit = None if limit is None else limit - len(batch)
                yield desk, batch

    async def _named(self, index: int, urls: Sequence[str]) -> list[tuple[UrlId, UrlRecord]]:
        mine = [url for url in urls if self._state_of(host_of(url)) is self.states[index]]
        ids = list(dict.fromkeys(self.router.id_of(url) for url in mine))
        records = await self.states[index].records(ids)
        return [
            (url, record)
            for url, record in zip(ids, records, strict=True)
            if record is not None and record.status is Status.DEAD
        ]


@contextmanager
def still(data: Path, *, save: bool = False) -> Iterator[StillCrawl]:
    """Hold a crawl still and open it. StateError while it runs, or when there is none.

    `save`: a damaged database is made one that can be opened, without the files that cannot be read.
    """
    layout = Layout(data)
    layout.read()
    with locked(data), ExitStack() as stack:
        # What cannot be read cannot be swept either: the next start does that.
        facts = layout.read() if save else regions.settled(layout)
        states: list[RocksState] = []
        lost: dict[int, list[str]] = {}
        for index in range(facts.workers):
            try:
                state = RocksState(layout.state(index))
            except Damaged:
                if not save:
                    raise
                lost[index] = salvage(layout.state(index)) or ["files that are missing"]
                state = RocksState(layout.state(index))
            stack.callback(state.shut)
            states.append(state)
            if not save:  # else it may not be readable yet
                state.drop_foreign(StaticRoster(facts.partitions, facts.split, index).owns)
        yield StillCrawl(layout, facts, states, lost)
        for state in states:
            state.flush()


async def examine(data: Path, tell: Tell) -> Repaired:
    """What `repair` would find; nothing is changed, and the crawl may be running."""
    with View(Layout(data)) as view:
        found = Repaired(str(data), True, view.tally().discovered, [])
        for name, state in view.workers():
            found.workers.append(Mended(name))
            await mend(state, found.workers[-1], False, tell)
    return found


async def mend(state: RocksState, found: Mended, write: bool, tell: Tell) -> None:
    """Compare what waits with what the URL records say, and make it so if `write`. `found` is filled in."""
    entries = sum(_count(state, family, found, write) for family in WAITING)
    try:
        held, highest = await _put_missing(state, found, write, tell)
        if entries > held:
            await _drop_stale(state, found, write)
    except Damaged as error:
        raise StateError(f"what the queues follow from is damaged too, restore a copy ({error.__cause__})") from error
    if write:
        await _forget_cursors(state)
        seq = max(highest, int(state.read_mark("seq") or 0))
        await state.commit(Changes(marks={"seq": b"%d" % seq}))


def _count(state: RocksState, family: str, found: Mended, write: bool) -> int:
    """How many entries a family holds; one that cannot be read is made anew."""
    try:
        return sum(1 for _ in state.waiting_rows(family))
    except Damaged:
        found.unreadable = [*found.unreadable, family]
        if write:
            state.renew(family)
        return 0


async def _put_missing(state: RocksState, found: Mended, write: bool, tell: Tell) -> tuple[int, int]:
    """Every URL into a place of its own. Returns how many entries had a reason, and the highest sequence number."""
    held = highest = 0
    for batch in _batches(state.url_rows()):
        wanted = [rows_of(url, record) for url, record in batch]
        wanted += [rows for url, record in batch if (rows := render_rows(url, record))]
        flat = [row for rows in wanted for row in rows]
        here = iter(state.holding(flat) if write or not found.unreadable else _blind(state, flat, found))
        known = [list(islice(here, len(rows))) for rows in wanted]
        missing, surplus = difference(wanted, known)
        if write and (missing or surplus):
            state.write_rows(missing, surplus)
        held += sum(map(sum, known))
        highest = max(highest, *(record.seq for _, record in batch))
        found.missing += len(missing)
        found.stale += len(surplus)
        found.hidden += await _hidden(state, batch)
        found.urls += len(batch)
        _add(found, wanted)
        if found.urls // TELL_EVERY > (found.urls - len(batch)) // TELL_EVERY:
            tell(found.urls)
    return held, highest


def _blind(state: RocksState, rows: list[Row], found: Mended) -> list[bool]:
    """The same while some families cannot be read: they hold nothing."""
    readable = [row for row in rows if row[0] not in found.unreadable]
    here = dict(zip(readable, state.holding(readable), strict=True))
    return [here.get(row, False) for row in rows]


def _add(found: Mended, wanted: list[list[Row]]) -> None:
    families = [rows[0][0] for rows in wanted if rows]
    found.queued += families.count("queue")
    found.retries += families.count("due")
    found.revisits += families.count("revisit")
    found.renders += families.count("render")


async def _hidden(state: RocksState, batch: list[tuple[UrlId, UrlRecord]]) -> int:
    """How many of these are queued before their host's cursor."""
    queued = [(url, record) for url, record in batch if record.status is Status.PENDING and not record.due]
    names = {(Partition(int.from_bytes(url[:2])), host_of(record.url)) for url, record in queued}
    hosts = await state.hosts(sorted(names))
    cursors = {host.host: host.cursors or [0] * BUCKETS for host in hosts if host is not None}
    return sum(
        record.seq < cursors[host_of(record.url)][record.bucket]
        for _, record in queued
        if host_of(record.url) in cursors
    )


async def _drop_stale(state: RocksState, found: Mended, write: bool) -> None:
    """Entries that no record asks for."""
    for family in WAITING:
        if family in found.unreadable:
            continue
        for batch in _batches(state.waiting_rows(family)):
            records = await state.records([id_in(row) for row in batch])
            stale = [
                row
                for row, record in zip(batch, records, strict=True)
                if record is None or row not in (*rows_of(id_in(row), record), *render_rows(id_in(row), record))
            ]
            found.stale += len(stale)
            if write and stale:
                state.write_rows([], stale)


async def _forget_cursors(state: RocksState) -> None:
    """Reading begins at the head of every queue; the clocks stay as they are."""
    for batch in _batches(row for row in state.host_rows() if row[1].cursors):
        for _, host in batch:
            host.cursors = []
        await state.commit(Changes(hosts={host.host: (partition, host) for partition, host in batch}))


class _Desk:
    """URLs of one worker on their way back into its queues."""

    def __init__(self, state: RocksState, now: Instant) -> None:
        self._state = state
        self._now = now
        self._seq = int(state.read_mark("seq") or 0)
        self.tally = state.tally()
        self.changes = Changes()

    def queue(self, url: UrlId, record: UrlRecord) -> None:
        """Behind all that is there; its job has it before it again."""
        self._seq = record.seq = max(self._seq + 1, int(self._now * 1e6))
        self.changes.records[url] = record
        place = Partition(int.from_bytes(url[:2])), host_of(record.url)
        self.changes.queued.append((*place, record.bucket, record.seq, url))
        self.tally.jobs.setdefault(record.job, JobTally()).settled -= 1

    async def forgive(self, hosts: Iterable[HostKey], router: Router) -> int:
        names = [(router.place(host)[2], host) for host in hosts]
        known = zip(names, await self._state.hosts(names), strict=True)
        sick = {host: (place, forgiven(r)) for (place, host), r in known if r is not None and _has_failed(r, self._now)}
        self.changes.hosts.update(sick)
        return len(sick)

    async def commit(self) -> None:
        self.changes.marks = {"seq": b"%d" % self._seq, "tally": msgspec.msgpack.encode(self.tally)}
        await self._state.commit(self.changes)
        self.changes = Changes()


def _has_failed(host: HostRecord, now: Instant) -> bool:
    return host.sick_until > now or host.failures > 0


def _on(record: UrlRecord, site: SiteKey) -> bool:
    return site_of(host_of(record.url)) == site


def _batches(rows: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(rows)
    while batch := list(islice(rest, BATCH)):
        yield batch
