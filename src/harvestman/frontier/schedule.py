"""Who is next: a heap of hosts by their next allowed moment, and ready hosts in priority buckets, sampled by weight."""

from __future__ import annotations

import heapq
from collections import deque
from itertools import islice
from random import Random

from harvestman.frontier.hosts import Host, Place
from harvestman.model import BUCKETS, Instant
from harvestman.policy.priority import pick

NEVER = Instant(1e12)
"""Later than any date of a crawl, and still a number that State can sort."""


class Schedule:
    """Hosts with work, each in the heap or in one bucket."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._heap: list[tuple[float, int, Host]] = []
        self._pushes = 0
        self._ready: list[deque[Host]] = [deque() for _ in range(BUCKETS)]

    def push(self, host: Host, when: Instant) -> None:
        host.place = Place.WAITING
        self._pushes += 1
        heapq.heappush(self._heap, (when, self._pushes, host))

    def wake(self, now: Instant) -> None:
        """Those whose moment has come are ready."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            host = heapq.heappop(heap)[2]
            host.place = Place.READY
            self._stand(host, host.bucket)

    def promote(self, host: Host) -> None:
        """A ready host has been given something more urgent."""
        bucket = host.bucket
        if host.place is Place.READY and bucket < host.ready_in:
            self._stand(host, bucket)  # where it stood before is passed over

    def _stand(self, host: Host, bucket: int) -> None:
        host.ready_in = bucket
        if not host.stands >> bucket & 1:  # else where it stood before is its place
            host.stands |= 1 << bucket
            self._ready[bucket].append(host)

    def pick(self) -> Host | None:
        """A ready host: the most urgent most often, the least urgent too."""
        while filled := [bucket for bucket in range(BUCKETS) if self._ready[bucket]]:
            bucket = pick(filled, self._rng.random()) if len(filled) > 1 else filled[0]
            host = self._ready[bucket].popleft()
            host.stands &= ~(1 << bucket)
            if host.place is Place.READY and host.ready_in == bucket:
                host.ready_in = BUCKETS
                return host
        return None

    def soon(self, until: Instant, most: int) -> list[Host]:
        """Hosts whose moment comes by then, about in order, and some that are ready; at most so many of either."""
        found = [host for bucket in self._ready for host in islice(bucket, most // BUCKETS)]
        heap, places = self._heap, [0]
        for place in places:  # a walk down the heap, which ends where everything is later
            if place < len(heap) and heap[place][0] <= until and len(places) < 2 * most:
                found.append(heap[place][2])
                places += (2 * place + 1, 2 * place + 2)
        return found

    def wake_at(self) -> Instant:
        """When the next host may be asked; `NEVER` when none waits."""
        if any(self._ready):
            return Instant(0.0)
        return Instant(self._heap[0][0]) if self._heap else NEVER

    @property
    def ready(self) -> int:
        return sum(len(bucket) for bucket in self._ready)

    @property
    def waiting(self) -> int:
        return len(self._heap)
