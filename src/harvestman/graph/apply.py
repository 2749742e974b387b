"""Ranks fed back to the queues of a crawl that stands still.

While it runs, a crawl learns what a page and its site are worth from the links it meets ('cash', `policy.importance`):
quickly, from a part of the links, and each page's part as it was when it was fetched. The ranks know all links. So the
cash there is is shared out anew, to sites and to queued pages, in proportion to what links bring them by rank, and
whatever is queued moves to the bucket that its score then says. The sum of the cash stays as it was: the bounds of the
buckets were measured for it. Done again with the same ranks, nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol, TypeVar

import msgspec
import numpy as np

from harvestman.config import Config
from harvestman.errors import StateError
from harvestman.frontier.routing import Router
from harvestman.graph.rank import Floats, Hashes
from harvestman.graph.spill import hash_of
from harvestman.graph.tables import Folder, GraphFile
from harvestman.mend import BATCH, StillCrawl
from harvestman.model import Instant, Partition, SiteKey, SiteRecord, Status, UrlId, UrlRecord
from harvestman.policy import urgency
from harvestman.policy.urls import host_of
from harvestman.ports import Changes, Jobs

T = TypeVar("T")


class Still(Protocol):
    """What is asked of the State of a worker that does not run."""

    def url_rows(self) -> Iterator[tuple[UrlId, UrlRecord]]: ...
    def read_mark(self, name: str) -> bytes | None: ...
    async def sites(self, names: Sequence[tuple[Partition, SiteKey]]) -> list[SiteRecord | None]: ...
    async def commit(self, changes: Changes) -> None: ...


class Applied(msgspec.Struct):
    """What changed."""

    sites: int = 0
    """That have their share by rank now."""
    pages: int = 0
    """Queued ones, likewise."""
    sooner: int = 0
    """Those of them that are more urgent than before ..."""
    later: int = 0
    """... and less."""


class Shares:
    """What links bring, by rank, and what cash that makes."""

    def __init__(self) -> None:
        self.cash = 0.0
        self.brought = 0.0

    def count(self, cash: float, brought: float) -> None:
        self.cash += cash
        self.brought += brought

    def of(self, brought: float) -> float:
        """The cash of one, out of all that was counted."""
        return self.cash * brought / self.brought if self.brought > 0.0 else 0.0


class PageRanks:
    """What links bring to a page, by its URL. Memory: 16 bytes a node."""

    def __init__(self, folder: Folder, graph: GraphFile, floor: float) -> None:
        table = folder.opened("nodes", graph.source).read(["key", "rank"])
        self._keys: Hashes = table.column("key").to_numpy()
        self._brought: Floats = np.maximum(table.column("rank").to_numpy() - floor, 0.0)

    def brought(self, url: str) -> float | None:
        """None for one that is not in the graph."""
        name = np.uint64(hash_of(url))
        place = int(np.searchsorted(self._keys, name))
        found = place < len(self._keys) and self._keys[place] == name
        return float(self._brought[place]) if found else None


async def apply(
    crawl: StillCrawl, folder: Folder, graph: GraphFile, jobs: Jobs, config: Config, now: Instant
) -> Applied:
    """Share the cash out by rank, sites first. May be cut short and run again."""
    if graph.ranking is None:
        raise StateError(f"{folder.root} is not ranked: run `harvestman graph rank {folder.data}`")
    done = Applied()
    await _apply_to_sites(crawl, _sites(folder, graph, graph.ranking.site_floor), done)
    ranks, shares = PageRanks(folder, graph, graph.ranking.floor), Shares()
    for state in crawl.states:
        for record in state.url_records():
            brought = ranks.brought(record.url) if record.status is Status.PENDING else None
            if brought is not None:
                shares.count(record.cash, brought)
    for state in crawl.states:
        await _Desk(state, crawl.router, jobs, config, now).apply(ranks, shares, done)
    return done


def _sites(folder: Folder, graph: GraphFile, floor: float) -> dict[str, float]:
    """What links bring to each site."""
    table = folder.opened("hosts", graph.source).read(["site", "rank"])
    return {site: max(0.0, rank - floor) for site, rank in zip(*(c.to_pylist() for c in table.columns), strict=True)}


async def _apply_to_sites(crawl: StillCrawl, brought: dict[str, float], done: Applied) -> None:
    shares = Shares()
    for state in crawl.states:
        for _, site in state.site_rows():
            if site.site in brought:
                shares.count(site.cash, brought[site.site])
    for state in crawl.states:
        for batch in _batches(row for row in state.site_rows() if row[1].site in brought):
            for _, site in batch:
                site.cash = shares.of(brought[site.site])
            await state.commit(Changes(sites={site.site: (place, site) for place, site in batch}))
            done.sites += len(batch)


class _Desk:
    """The queued pages of one worker."""

    def __init__(self, state: Still, router: Router, jobs: Jobs, config: Config, now: Instant) -> None:
        self._state = state
        self._router = router
        self._jobs = jobs
        self._config = config
        self._now = now
        self._seq = int(state.read_mark("seq") or 0)

    async def apply(self, ranks: PageRanks, shares: Shares, done: Applied) -> None:
        waiting = (row for row in self._state.url_rows() if row[1].status is Status.PENDING)
        for batch in _batches(waiting):
            sites = await self._sites(record for _, record in batch)
            changes = Changes()
            for url, record in sorted(batch, key=lambda row: row[1].seq):  # those that move keep their order
                brought = ranks.brought(record.url)
                if brought is not None:
                    record.cash = shares.of(brought)
                    done.pages += 1
                changes.records[url] = record
                if not record.due:  # else it is in no queue: it waits for another attempt
                    self._move(url, record, sites[self._router.place(host_of(record.url))[1]], changes, done)
            changes.marks["seq"] = b"%d" % self._seq
            await self._state.commit(changes)

    async def _sites(self, records: Iterable[UrlRecord]) -> dict[SiteKey, SiteRecord]:
        places = {self._router.place(host_of(record.url))[1:] for record in records}
        names: list[tuple[Partition, SiteKey]] = [(partition, site) for site, partition in places]
        found = zip(names, await self._state.sites(names), strict=True)
        return {site: record or SiteRecord(site, self._now) for (_, site), record in found}

    def _move(self, url: UrlId, record: UrlRecord, site: SiteRecord, changes: Changes, done: Applied) -> None:
        """To the bucket that its score says, behind all that is there."""
        bucket = urgency.bucket(record, site, self._jobs.get(record.job), 1.0, self._config)
        if bucket == record.bucket:
            return
        host, _, partition = self._router.place(host_of(record.url))
        changes.unqueued.append((partition, host, record.bucket, record.seq))
        done.sooner += bucket < record.bucket
        done.later += bucket > record.bucket
        self._seq = record.seq = max(self._seq + 1, int(self._now * 1e6))
        record.bucket = bucket
        changes.queued.append((partition, host, bucket, record.seq, url))


def _batches(rows: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(rows)
    while batch := list(islice(rest, BATCH)):
        yield batch
