"""From a lease to an answer: the address is found, vetted and claimed, then the request goes out."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial

from harvestman.config import Watch
from harvestman.fetch.curl import Fetcher
from harvestman.fetch.dns import Resolution, Resolver
from harvestman.frontier.frontier import Frontier
from harvestman.model import LISTING, Answer, Failure, FailureKind, Instant, Lease, Request
from harvestman.policy.guard import Guard
from harvestman.policy.watch import Shares
from harvestman.ports import Clock


class Asking:
    """What is under way. Every lease given to `ask` ends up in `answers`, or goes back to the frontier unasked."""

    def __init__(
        self, frontier: Frontier, resolver: Resolver, guard: Guard, fetcher: Fetcher, clock: Clock, watch: Watch
    ) -> None:
        self._frontier = frontier
        self._resolver = resolver
        self._guard = guard
        self._fetcher = fetcher
        self._clock = clock
        self._watch = watch
        self._shares = Shares()
        self._resolving: set[asyncio.Task[None]] = set()
        self._full = 0
        self._wake = asyncio.Event()
        self.answers: deque[tuple[Lease, Answer]] = deque()
        self.requests = 0
        self.pages = 0
        """Page leases under way, until their answers are settled."""
        self.alerts: list[str] = []
        """Targets that got too large a share of the requests."""

    @property
    def under_way(self) -> int:
        return self._fetcher.in_flight + len(self._resolving) + len(self.answers)

    def ask(self, lease: Lease) -> None:
        self.pages += not lease.robots
        if lease.address:
            self._fetch(lease)
        elif (known := self._resolver.peek(lease.host)) is not None:
            self._resolved(lease, known)
        else:
            task = asyncio.create_task(self._resolve(lease))
            self._resolving.add(task)
            task.add_done_callback(self._resolving.discard)

    async def _resolve(self, lease: Lease) -> None:
        self._resolved(lease, await self._resolver.resolve(lease.host))

    def _resolved(self, lease: Lease, found: Resolution) -> None:
        now = self._clock.now()
        refusals = [self._guard.refusal(address) for address in found.addresses]
        if not found.addresses:
            self._failed(lease, FailureKind.DNS, found.error or "no address", now)
        elif all(refusals):
            self._failed(lease, FailureKind.GUARD, f"{refusals[0]}; --allow names networks that may be touched", now)
        elif self._frontier.claim(lease, found.addresses[refusals.index(None)], found.expires, now):
            self._fetch(lease)
        else:
            self.pages -= not lease.robots

    def _failed(self, lease: Lease, kind: FailureKind, detail: str, now: Instant) -> None:
        self._arrived(lease, Failure(lease.url, kind, detail, "", now, now))

    def _fetch(self, lease: Lease) -> None:
        self.requests += 1
        self.alerts += self._shares.asked(lease.site, lease.address, self._watch)
        self._fetcher.start(_request(lease), partial(self._arrived, lease))

    def _arrived(self, lease: Lease, answer: Answer) -> None:
        self.answers.append((lease, answer))
        if len(self.answers) >= self._full:
            self._wake.set()

    async def wait(self, full: int, longest: float) -> None:
        """Until `full` answers are there, or for the longest time."""
        if len(self.answers) >= full:
            await asyncio.sleep(0)
            return
        self._full = full
        self._wake.clear()
        timer = asyncio.get_running_loop().call_later(longest, self._wake.set)
        await self._wake.wait()
        timer.cancel()

    def take(self, most: int) -> list[tuple[Lease, Answer]]:
        return [self.answers.popleft() for _ in range(min(most, len(self.answers)))]

    async def close(self) -> None:
        """Give up what is in flight: it stays queued."""
        await self._fetcher.close()
        await self._resolver.close()


def _request(lease: Lease) -> Request:
    """A page that we have is asked for only if it changed."""
    record = lease.record
    if record is None:
        return Request(lease.url, lease.address, lease.robots)
    listing = record.kind == LISTING
    if record.change is None or record.visit is None:
        return Request(lease.url, lease.address, listing=listing)
    known = record.visit
    return Request(lease.url, lease.address, listing=listing, etag=known.etag, last_modified=known.last_modified)
