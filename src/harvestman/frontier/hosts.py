"""One host with a place in RAM: its clock, its window on its queue, where it stands."""

from __future__ import annotations

import enum

from harvestman.model import (
    BUCKETS,
    HostKey,
    HostRecord,
    Instant,
    Lease,
    Partition,
    Seconds,
    SiteKey,
    SiteRecord,
    UrlId,
    UrlRecord,
)
from harvestman.policy.politeness import HostClock, inherited
from harvestman.policy.priority import shares
from harvestman.ports import Pending, State

ALL_BUCKETS = (1 << BUCKETS) - 1


class Place(enum.IntEnum):
    """A host is in exactly one place, so it cannot be leased twice."""

    IDLE = 0
    """Nothing queued."""
    WAITING = 1
    """In the heap, until its next allowed moment."""
    READY = 2
    """In a bucket of the front, allowed now."""
    LEASED = 3
    BEHIND = 4
    """Its address is leased to another host; woken when that ends."""


class Errand:
    """A robots.txt that lies behind a redirect: to be asked of this host on behalf of `origin`."""

    __slots__ = ("depth", "hops", "job", "origin", "url")

    def __init__(self, url: str, lease: Lease) -> None:
        """`lease`: the one whose answer pointed here."""
        self.url = url
        self.origin = lease.origin
        self.hops = lease.hops + 1
        self.job = lease.job
        self.depth = lease.depth


class Host:
    """See the module. `tails` has a bit per bucket that may hold more on disk than the window has read."""

    __slots__ = (
        "address", "address_until", "away", "clock", "crawl_delay", "cursors", "errands", "failed", "fetched",
        "hurried", "name", "partition", "place", "read", "ready_in", "record_of_site", "served", "site", "slot",
        "stands", "tails", "turn", "window",
    )  # fmt: skip

    def __init__(self, name: HostKey, site: SiteKey, partition: Partition) -> None:
        self.name = name
        self.site = site
        self.partition = partition
        self.clock = HostClock()
        self.crawl_delay: Seconds | None = None
        self.failed = UrlId(b"")
        """Which URL was asked for when it failed last."""
        self.fetched = 0
        self.served = 0
        self.cursors = [0] * BUCKETS
        self.read = [0] * BUCKETS
        self.tails = 0
        # Lists, not deques: an empty deque holds 760 bytes, which for 20,000 hosts and two of them is 30 MB.
        self.window: list[Pending] = []
        self.place = Place.IDLE
        self.ready_in = BUCKETS
        """The bucket of the front it stands in; `BUCKETS` when it is not ready."""
        self.stands = 0
        """A bit per bucket of the front that has an entry of it, old or new."""
        self.address = ""
        self.address_until = Instant(0.0)
        self.slot = Instant(0.0)
        self.record_of_site: SiteRecord | None = None
        """Shared by the hosts of a site; set when a lease is first looked for."""
        self.errands: list[Errand] = []
        self.away = False
        """Its robots.txt is being asked for on another host: until then it runs errands, but none of its own."""
        self.turn = 0
        """Refills so far: over several of them every bucket has its share."""
        self.hurried = 0
        """Refills until more urgent links may make it read again; else a stream of them would starve the rest."""

    @classmethod
    def restored(cls, record: HostRecord, partition: Partition, floor: Seconds, opened: Instant) -> Host:
        """A host taken over from disk. `opened`: when this process began; a full interval is waited from then."""
        host = cls(record.host, record.site, partition)
        clock = HostClock(record.next_allowed, record.delay, record.failures, record.sick_until)
        host.clock = inherited(clock, floor, opened)
        host.fetched = record.fetched
        host.cursors = list(record.cursors) or [0] * BUCKETS
        host.read = list(host.cursors)
        return host

    def record(self) -> HostRecord:
        clock = self.clock
        return HostRecord(
            self.name, self.site, clock.next_allowed, clock.delay, clock.failures, clock.sick_until, self.fetched,
            self.cursors.copy(),
        )  # fmt: skip

    @property
    def bucket(self) -> int:
        """How urgent its most urgent URL is: it may stand behind one that has waited long, and must not wait for it."""
        if self.errands:
            return 0
        waiting = self.tails
        for entry in self.window:
            waiting |= 1 << entry.bucket
        return (waiting & -waiting).bit_length() - 1 if waiting else BUCKETS - 1

    @property
    def has_work(self) -> bool:
        return bool(self.errands or (not self.away and (self.window or self.tails)))

    def queued(self, mask: int) -> None:
        """New entries lie on disk in these buckets. More urgent ones than the window holds make it read again."""
        self.tails |= mask
        if not self.hurried and self.window and mask & ((1 << self.window[0].bucket) - 1):
            self.hurried = 2
            self.turn -= 1  # whose turn it was has it again, or whoever is always interrupted would starve
            self.forget_window()

    def forget_window(self) -> None:
        """All but what may be leased: the head of a leased host."""
        for entry in self.window:
            self.tails |= 1 << entry.bucket
        head = self.window[0] if self.window and self.place is Place.LEASED else None
        self.window.clear()
        self.read = self.cursors.copy()
        if head is not None:
            self.window.append(head)
            self.read[head.bucket] = head.seq + 1

    def under_way(self, url: UrlId) -> UrlRecord | None:
        """The record of a URL that is being asked for."""
        leased = self.place is Place.LEASED and self.window
        return self.window[0].record if leased and self.window[0].id == url else None

    def held(self, url: UrlId) -> UrlRecord | None:
        """The record of a URL in the window: the one that will be written when the URL is settled."""
        return next((entry.record for entry in self.window if entry.id == url), None)

    def take_out(self, url: UrlId) -> None:
        """An entry that leaves the queue on disk leaves the window too."""
        self.window[:] = [entry for entry in self.window if entry.id != url]

    def consumed(self, entry: Pending) -> None:
        """The head of the window is settled: reads after a restart begin behind it."""
        self.cursors[entry.bucket] = max(self.cursors[entry.bucket], entry.seq + 1)

    async def refill(self, state: State, limit: int) -> bool:
        """Read the next entries from disk: each bucket its share, then the most urgent first."""
        self.hurried = max(0, self.hurried - 1)
        self.turn += 1
        for share in (shares(limit, self.turn), (limit,) * BUCKETS):
            for bucket in range(BUCKETS):
                wanted = min(share[bucket], limit - len(self.window))
                if self.tails >> bucket & 1 and wanted > 0:
                    await self._read(state, bucket, wanted)
        return bool(self.window)

    async def _read(self, state: State, bucket: int, wanted: int) -> None:
        entries = await state.window(self.partition, self.name, bucket, self.read[bucket], wanted)
        self.window.extend(entries)
        if entries:
            self.read[bucket] = entries[-1].seq + 1
        if len(entries) < wanted:
            self.tails &= ~(1 << bucket)
