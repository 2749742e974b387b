"""Every seam of the crawler on one page.

A port has few verbs, each atomic, each batched, each asynchronous: there is never a call per link. The promises in the
docstrings are tests in `tests/contracts`, run against every implementation.

| port    | embedded (one machine)             | cluster             |
|---------|------------------------------------|---------------------|
| State   | RocksDB (`embedded.state`)         | Cassandra           |
| Bus     | local sockets (`embedded.bus`)     | Kafka               |
| Objects | a directory (`embedded.objects`)   | S3 API              |
| Roster  | a static split (`embedded.roster`) | Kafka consumer group|
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from harvestman.model import (
    HostKey,
    HostRecord,
    Instant,
    Job,
    Origin,
    Partition,
    RecordRef,
    RobotsRecord,
    SiteKey,
    SiteRecord,
    UrlId,
    UrlRecord,
)
from harvestman.policy.scope import Scope


class Pending(msgspec.Struct, array_like=True, frozen=True):
    """One entry of a host's queue: read in (bucket, seq) order."""

    bucket: int
    seq: int
    id: UrlId
    record: UrlRecord


class Content(msgspec.Struct, array_like=True, frozen=True):
    """The first URL seen with some content, and the payload digest of its raw record."""

    url: str
    at: Instant
    payload_digest: str
    ref: RecordRef
    job: int = 1
    """Whose links were followed from it."""


class Near(msgspec.Struct, array_like=True, frozen=True):
    """A page that stands for all that say nearly the same; known by its SimHash."""

    url: str
    at: Instant
    canonical: str = ""
    """What it says its own address is."""
    sample: bytes = b""
    """Of its shingles: what a second look is taken at."""


class Parcel(msgspec.Struct, array_like=True, frozen=True):
    """Links for the owner of one partition. `seq` orders the parcels of one sender."""

    partition: Partition
    seq: int
    body: bytes
    """msgpack of list[Discovery]."""


@dataclass(slots=True)
class Changes:
    """What one group of pages changes: committed whole or not at all."""

    records: dict[UrlId, UrlRecord] = field(default_factory=dict)
    new: list[UrlId] = field(default_factory=list)
    """Those of `records` that were not known before: replayed into the seen-filter after a crash."""
    queued: list[tuple[Partition, HostKey, int, int, UrlId]] = field(default_factory=list)
    """(partition, host, bucket, seq, id)"""
    unqueued: list[tuple[Partition, HostKey, int, int]] = field(default_factory=list)
    due: list[tuple[Instant, UrlId]] = field(default_factory=list)
    """Retries."""
    undue: list[tuple[Instant, UrlId]] = field(default_factory=list)
    revisit: list[tuple[Instant, UrlId]] = field(default_factory=list)
    """Next visits of pages that we have."""
    unrevisit: list[tuple[Instant, UrlId]] = field(default_factory=list)
    render: list[tuple[Instant, UrlId]] = field(default_factory=list)
    """Pages that are to be looked at in a browser."""
    unrender: list[tuple[Instant, UrlId]] = field(default_factory=list)
    hosts: dict[HostKey, tuple[Partition, HostRecord]] = field(default_factory=dict)
    sites: dict[SiteKey, tuple[Partition, SiteRecord]] = field(default_factory=dict)
    robots: dict[Origin, tuple[Partition, RobotsRecord]] = field(default_factory=dict)
    contents: dict[bytes, Content] = field(default_factory=dict)
    near: dict[int, Near | None] = field(default_factory=dict)
    """By SimHash; None for a page that no longer stands for anything."""
    outbox: list[Parcel] = field(default_factory=list)
    delivered: list[tuple[Partition, int]] = field(default_factory=list)
    marks: dict[str, bytes] = field(default_factory=dict)
    """Small named values: the WARC position, the tally."""

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__slots__)


class State(Protocol):
    """The durable truth of the partitions one worker owns.

    Promises:
    1. `commit` is atomic: after a crash all of a `Changes` is there or none of it.
    2. What `commit` has returned for survives kill -9 of the process; what `sync` has returned for survives power loss.
    3. `window` returns a host's entries of one bucket in sequence order, starting at the given sequence number, and
       costs the same however many entries before it were removed.
    4. `records` is exact: a record for every URL that was committed, and for no other.
    5. `due`, `revisits` and `renders` return entries in order of time, none later than asked.
    6. `waiting_hosts` visits every host with a queued entry, in a fixed order, resumable after any host.
    7. Reads see every earlier commit.
    8. `near` finds, among the SimHashes committed last (how many is fixed beforehand), every one that differs from the
       one asked for in 3 bits or fewer, those that `weak` names not counted; and none that differs in more than `most`.
    """

    async def records(self, ids: Sequence[UrlId]) -> list[UrlRecord | None]: ...
    async def window(
        self, partition: Partition, host: HostKey, bucket: int, start: int, limit: int
    ) -> list[Pending]: ...
    async def due(self, until: Instant, limit: int) -> list[tuple[Instant, UrlId]]: ...
    async def revisits(self, until: Instant, limit: int) -> list[tuple[Instant, UrlId]]: ...
    async def renders(self, until: Instant, limit: int) -> list[tuple[Instant, UrlId]]: ...
    async def sites(self, names: Sequence[tuple[Partition, SiteKey]]) -> list[SiteRecord | None]: ...
    async def hosts(self, names: Sequence[tuple[Partition, HostKey]]) -> list[HostRecord | None]: ...
    async def waiting_hosts(
        self, after: tuple[Partition, HostKey] | None, limit: int
    ) -> list[tuple[Partition, HostKey]]: ...
    async def robots(self, partition: Partition, origin: Origin) -> RobotsRecord | None: ...
    async def contents(self, digests: Sequence[bytes]) -> list[Content | None]: ...
    async def near(self, prints: Sequence[tuple[int, int]], most: int) -> list[list[tuple[int, int, Near]]]:
        """For each (SimHash, weak bits) the nearest, those first: (how many other bits differ, SimHash, page)."""
        ...

    async def outbox(self, limit: int) -> list[Parcel]: ...
    async def mark(self, name: str) -> bytes | None: ...
    async def commit(self, changes: Changes) -> None: ...
    async def sync(self) -> None: ...

    async def fresh(self) -> list[UrlId]:
        """The URLs that were new in commits not forgotten: what a snapshot of the seen-filter lacks."""
        ...

    def last_fresh(self) -> int:
        """The number of the last commit with new URLs."""
        ...

    async def forget_fresh(self, until: int) -> None:
        """A snapshot holds what came up to and with this commit."""
        ...

    def ids(self) -> AsyncIterator[list[UrlId]]:
        """Every known URL, in batches: what a lost seen-filter is rebuilt from."""
        ...

    async def close(self) -> None: ...


class Bus(Protocol):
    """Links on their way to the owner of their partition.

    Promises:
    1. A published parcel is received at least once by the owner, in sequence order within a partition and sender.
    2. `delivered` names a parcel only after its receiver has acknowledged it, that is after the receiver's commit.
    3. `room` says how many parcels may be published now; what finds no room waits in the outbox, on disk.
    """

    def room(self) -> int: ...
    def under_way(self) -> int:
        """Parcels published and not yet acknowledged."""
        ...

    async def publish(self, parcels: Sequence[Parcel]) -> None: ...
    def delivered(self) -> list[tuple[Partition, int]]: ...
    def receive(self, limit: int) -> list[Parcel]: ...
    async def acknowledge(self) -> None:
        """All that `receive` has returned so far is durable now."""
        ...

    async def close(self) -> None: ...


class Roster(Protocol):
    """Who owns which partition now.

    Promises: `partitions` is the number fixed when the crawl began; `owns` is true for exactly one worker at a time.
    """

    partitions: int

    def owns(self, partition: Partition) -> bool: ...


class Objects(Protocol):
    """Files by name: WARC, CDXJ, Parquet, snapshots.

    Promises: `put` is atomic (a reader sees the old or the new, never a part); `get` reads a byte range; `list` is
    sorted; a missing name is `None`, never an exception.
    """

    async def put(self, name: str, body: bytes | bytearray) -> None: ...
    async def get(self, name: str, start: int = 0, length: int | None = None) -> bytes | None: ...
    async def list(self, prefix: str) -> list[str]: ...
    async def delete(self, name: str) -> None: ...


class Jobs(Protocol):
    """What each job asks for. A job that a link names is known: it was written down before its seeds were taken in."""

    def get(self, number: int) -> Job: ...
    def scope(self, number: int) -> Scope: ...


class Clock(Protocol):
    """Time as an argument: the wall in production, a number in tests."""

    def now(self) -> Instant: ...
