"""A look at a crawl from outside: read-only, and possible while the crawl runs (it sees what was committed so far)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

import msgspec

from harvestman.embedded.roster import StaticRoster
from harvestman.embedded.state import RocksState
from harvestman.layout import Layout
from harvestman.model import (
    HostKey,
    HostRecord,
    Instant,
    Origin,
    Partition,
    RobotsRecord,
    Seconds,
    SiteKey,
    SiteRecord,
    Status,
    Tally,
    UrlRecord,
)
from harvestman.policy.revisit import Tier, tier
from harvestman.policy.urls import host_of
from harvestman.regions import router

HOSTS_AT_ONCE = 10_000
LONGEST_CHAIN = 100
MAX_PLACE = 10_000
"""Queue entries that are looked at to find the place of one."""
TELL_EVERY = 50_000


class HostCount(msgspec.Struct):
    """The URLs of one host."""

    host: str
    fetched: int = 0
    waiting: int = 0
    other: int = 0

    @property
    def total(self) -> int:
        return self.fetched + self.waiting + self.other


class SickHost(msgspec.Struct):
    """A host that is left alone after too many failures, with URLs queued."""

    host: HostKey
    until: Instant


class Census(msgspec.Struct):
    """Every URL of a crawl, counted."""

    urls: int
    by_status: dict[str, int]
    hosts: int
    top_hosts: list[HostCount]
    dead: dict[str, int]
    """Dead letters by what went wrong last."""
    retrying: int
    """Waiting URLs that failed before."""
    tiers: dict[Tier, int]
    """Pages by how often they are visited again."""
    due: int
    """Pages whose next visit is due."""
    regions: dict[str, int] = {}
    """Pages by region; empty where there are none."""


class SitesCount(msgspec.Struct):
    """The sites of a crawl, counted."""

    sites: int
    trapped: int
    """Those with a trap ..."""
    shapes: int
    """... and the shapes of URLs that are stopped on them."""
    flagged: int
    """Those that a person should look at."""


class View:
    """The databases of a crawl's workers, opened to be read. Close it, or use it in a `with` block."""

    def __init__(self, layout: Layout) -> None:
        """Raises StateError when there is no crawl."""
        self.layout = layout
        self.facts = layout.read()
        self.router = router(layout, self.facts)
        self._roster = StaticRoster(self.facts.partitions, self.facts.split, 0)
        self._states = {index: _opened(layout.state(index)) for index in layout.workers()}

    def __enter__(self) -> View:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for state in self._states.values():
            if state is not None:
                state.shut()

    # -- sums ----------------------------------------------------------------------------------------------------

    def tally(self) -> Tally:
        """The workers' counters, summed."""
        whole = Tally()
        for state in self._open():
            whole.add(state.tally())
        return whole

    def records(self) -> Iterator[UrlRecord]:
        """Every URL known, in no useful order."""
        for state in self._open():
            yield from state.url_records()

    def census(self, top: int, now: Instant, tell: Callable[[int], None]) -> Census:
        """Count all URLs; some 5 seconds a million. `tell` hears now and then how many were read."""
        statuses: Counter[Status] = Counter()
        places: dict[str, list[int]] = {}
        dead: Counter[str] = Counter()
        tiers: dict[Tier, int] = {"hourly": 0, "daily": 0, "weekly+": 0}
        retrying = due = 0
        regions = {region.name: 0 for region in self.facts.regions}
        for number, record in enumerate(self.records(), 1):
            status = record.status
            statuses[status] += 1
            place = places.setdefault(host_of(record.url), [0, 0, 0])
            place[_COLUMN[status]] += 1
            if regions and status in (Status.FETCHED, Status.DUPLICATE) and record.is_page:
                regions[self.region_of(host_of(record.url))] += 1
            if status is Status.DEAD:
                dead[kind_of(record)] += 1
            elif status is Status.PENDING:
                retrying += record.attempts > 0
            elif record.due and record.change is not None and record.is_page:
                tiers[tier(Seconds(record.due - record.change.looked))] += 1
                due += record.due <= now
            if number % TELL_EVERY == 0:
                tell(number)
        hosts = [HostCount(host, *counts) for host, counts in places.items()]
        hosts.sort(key=lambda each: (-each.total, each.host))
        by_status = {status.name.lower(): statuses[status] for status in Status}
        return Census(statuses.total(), by_status, len(hosts), hosts[:top], dict(dead), retrying, tiers, due, regions)

    def region_of(self, host: HostKey) -> str:
        """The name of its region; empty where there are none."""
        return self.facts.name_of(self.router.place(host)[2])

    def sites_count(self) -> SitesCount:
        """Count all sites."""
        found = SitesCount(0, 0, 0, 0)
        for site in self.sites():
            shapes = sum(not trap.pardoned for trap in site.traps.values())
            found.sites += 1
            found.trapped += shapes > 0
            found.shapes += shapes
            found.flagged += site.flagged != ""
        return found

    async def sick(self, now: Instant) -> list[SickHost]:
        """Hosts on the sick list that have URLs queued, the first to be well again first."""
        found: list[SickHost] = []
        for state in self._open():
            cursor: tuple[Partition, HostKey] | None = None
            while names := await state.waiting_hosts(cursor, HOSTS_AT_ONCE):
                records = await state.hosts(names)
                found += [SickHost(r.host, r.sick_until) for r in records if r is not None and r.sick_until > now]
                cursor = names[-1]
        return sorted(found, key=lambda host: host.until)

    async def waiting_sites(self) -> list[tuple[SiteRecord, int]]:
        """The sites with URLs queued, each with the pages of the worker that owns it."""
        found: list[tuple[SiteRecord, int]] = []
        for state in self._open():
            sites: dict[tuple[Partition, SiteKey], None] = {}
            cursor: tuple[Partition, HostKey] | None = None
            while names := await state.waiting_hosts(cursor, HOSTS_AT_ONCE):
                sites.update(((partition, self.router.place(host)[1]), None) for partition, host in names)
                cursor = names[-1]
            crawled = state.tally().pages
            found += [(record, crawled) for record in await state.sites(list(sites)) if record is not None]
        return found

    def workers(self) -> Iterator[tuple[str, RocksState]]:
        """Name and State of every worker."""
        return ((self.layout.worker(i), state) for i, state in self._states.items() if state is not None)

    def hosts(self) -> Iterator[HostRecord]:
        """Every host that was ever asked."""
        for state in self._open():
            yield from (host for _, host in state.host_rows())

    def sites(self) -> Iterator[SiteRecord]:
        """Every site of which something is known."""
        for index, state in self._states.items():
            # A robots.txt may have led to a site of another worker, who knows better.
            rows = state.site_rows() if state is not None else ()
            yield from (site for partition, site in rows if self._roster.owner(partition) == index)

    # -- one URL -------------------------------------------------------------------------------------------------

    def worker_of(self, url: str) -> int:
        return self._roster.owner(self.router.place(host_of(url))[2])

    async def record(self, url: str) -> UrlRecord | None:
        """What is known of a URL in request form, in whatever spelling it was found first."""
        state = self._state_of(url)
        return (await state.records([self.router.id_of(url)]))[0] if state else None

    async def host(self, url: str) -> HostRecord | None:
        state = self._state_of(url)
        name, _, partition = self.router.place(host_of(url))
        return (await state.hosts([(partition, name)]))[0] if state else None

    async def site(self, url: str) -> SiteRecord | None:
        state = self._state_of(url)
        _, name, partition = self.router.place(host_of(url))
        return (await state.sites([(partition, name)]))[0] if state else None

    def crawled(self, url: str) -> int:
        """Pages of the worker that owns a URL: what the share of its site is a share of."""
        state = self._state_of(url)
        return state.tally().pages if state else 0

    async def robots(self, origin: Origin) -> RobotsRecord | None:
        state = self._state_of(f"{origin}/")
        return await state.robots(self.router.place(host_of(f"{origin}/"))[2], origin) if state else None

    async def place(self, record: UrlRecord) -> int:
        """How many URLs of its host stand before a waiting one, at most MAX_PLACE."""
        state = self._state_of(record.url)
        if state is None:
            return 0
        name, _, partition = self.router.place(host_of(record.url))
        known = await self.host(record.url)
        cursors = known.cursors if known and known.cursors else [0] * (record.bucket + 1)
        before = 0
        for bucket in range(record.bucket + 1):
            entries = await state.window(partition, name, bucket, cursors[bucket], MAX_PLACE - before)
            before += sum(bucket < record.bucket or entry.seq < record.seq for entry in entries)
        return before

    async def chain(self, record: UrlRecord) -> list[str]:
        """How a URL was found: the page that links to it, the page that links to that one, and so on to a seed."""
        steps: list[str] = []
        step: UrlRecord | None = record
        while step is not None and step.via and len(steps) < LONGEST_CHAIN and step.via not in steps:
            steps.append(step.via)
            step = await self.record(step.via) if step.via.startswith(("http://", "https://")) else None
        return steps

    async def onward(self, record: UrlRecord) -> list[str]:
        """Where a redirect leads, where that one leads, and so on; one that was met before ends it: a loop."""
        steps: list[str] = []
        step: UrlRecord | None = record
        while step is not None and step.status is Status.REDIRECTED and step.visit and step.visit.target:
            met = [record.url, *steps]
            steps.append(step.visit.target)
            if step.visit.target in met or len(steps) == LONGEST_CHAIN:
                break
            step = await self.record(step.visit.target)
        return steps

    def _state_of(self, url: str) -> RocksState | None:
        return self._states[self.worker_of(url)]

    def _open(self) -> list[RocksState]:
        return [state for state in self._states.values() if state is not None]


_COLUMN = dict.fromkeys(Status, 2) | {Status.FETCHED: 0, Status.DUPLICATE: 0, Status.PENDING: 1}


def _opened(directory: Path) -> RocksState | None:
    """None while a worker has not made its database yet."""
    if not (directory / "CURRENT").exists():
        return None
    return RocksState(directory, read_only=True, patience=2.0)


def kind_of(record: UrlRecord) -> str:
    """'timeout' of 'timeout: no first byte (attempt 5 of 5)'."""
    reason = record.visit.reason if record.visit else ""
    return reason.partition(" (attempt")[0].partition(":")[0] or "unknown"


def disk_use(data: Path) -> dict[str, int]:
    """Bytes by the first name below the data directory."""
    sizes: Counter[str] = Counter()
    for path in data.rglob("*"):
        try:
            if path.is_file():
                sizes[path.relative_to(data).parts[0]] += path.stat().st_size
        except FileNotFoundError:
            continue  # a running crawl tidies up behind itself
    return dict(sizes)
