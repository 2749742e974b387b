"""From a lease to an answer: the address is found, vetted and claimed, then the request goes out."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from functools import partial

from harvestman.config import Watch
from harvestman.fetch.curl import Fetcher
from harvestman.fetch.dns import Resolution, Resolver
from harvestman.fetch.nameservers import as_address
from harvestman.fetch.ways import proxy_host
from harvestman.frontier.frontier import Frontier
from harvestman.model import Answer, Failure, FailureKind, HostKey, Instant, Lease, Request, Response
from harvestman.policy.guard import Guard
from harvestman.policy.urls import port_of
from harvestman.policy.watch import Moves, Shares, esteemed
from harvestman.ports import Clock

AHEAD = 2.0
"""Seconds before its turn that a host's address is looked up: as long as a name server may take."""
EXPECTED = 1_000
"""Hosts looked at for that, at a time."""
LOOPBACK = "127.0.0.1"


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
        self._moves = Moves()
        resolver.changed = self._changed
        self._resolving: set[asyncio.Task[None]] = set()
        self._full = 0
        self._wake = asyncio.Event()
        self.answers: deque[tuple[Lease, Answer]] = deque()
        self.requests = 0
        self.known = 0
        """Leases whose address was at hand, and those that had to wait for a name server."""
        self.waited = 0
        self.pages = 0
        """Page leases under way, until their answers are settled."""
        self.alerts: list[str] = []
        """Targets that got too large a share of the requests, sites that moved."""

    @property
    def under_way(self) -> int:
        return self._fetcher.in_flight + len(self._resolving) + len(self.answers)

    def ask(self, lease: Lease) -> None:
        self.pages += not lease.robots
        if (reason := self._guard.port_refusal(lease.url)) is not None:
            self._failed(lease, FailureKind.GUARD, reason, self._clock.now())
        elif lease.address:
            self.known += 1
            self._fetch(lease, lease.address)
        elif lease.route.refusal:
            self._failed(lease, FailureKind.GUARD, lease.route.refusal, self._clock.now())
        elif lease.route.proxy:
            self._ask_proxy(lease)
        elif (known := self._resolver.peek(lease.host)) is not None:
            self.known += 1
            self._resolved(lease, known)
        else:
            self.waited += 1
            self._later(self._resolve(lease))

    def _later(self, looking: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(looking)
        self._resolving.add(task)
        task.add_done_callback(self._resolving.discard)

    def _ask_proxy(self, lease: Lease) -> None:
        """The proxy finds the host; only an address written as a name can be vetted before."""
        name = lease.host
        literal = LOOPBACK if name == "localhost" or name.endswith(".localhost") else as_address(name)
        reason = self._guard.refusal(literal, port_of(lease.url)) if literal else None
        proxy = proxy_host(lease.route.proxy)
        if reason is not None:
            self._failed(lease, FailureKind.GUARD, reason, self._clock.now())
        elif (known := self._resolver.peek(proxy)) is not None:
            self._proxy_found(lease, known)
        else:
            self._later(self._find_proxy(lease, proxy))

    async def _find_proxy(self, lease: Lease, proxy: str) -> None:
        self._proxy_found(lease, await self._resolver.resolve(proxy))

    def _proxy_found(self, lease: Lease, found: Resolution) -> None:
        if found.addresses:
            self._fetch(lease, found.addresses[0])
        else:
            words = f"{proxy_host(lease.route.proxy)} has no address: {found.error}"
            self._failed(lease, FailureKind.PROXY, words, self._clock.now())

    def expect(self, now: Instant) -> None:
        """Have the addresses of hosts whose turn comes soon looked up, so that none of them waits for it."""
        until = Instant(now + AHEAD)
        self._resolver.prefetch(self._frontier.soon(until, EXPECTED), until)

    def _changed(self, host: str, before: tuple[str, ...], after: tuple[str, ...]) -> None:
        site = self._frontier.site_at_hand(HostKey(host))
        if site is not None and esteemed(site, self._watch) and (alert := self._moves.moved(host, before, after)):
            self.alerts.append(alert)

    async def _resolve(self, lease: Lease) -> None:
        self._resolved(lease, await self._resolver.resolve(lease.host))

    def _resolved(self, lease: Lease, found: Resolution) -> None:
        now = self._clock.now()
        reachable = [address for address in found.addresses if self._frontier.reaches(address)]
        refusals = [self._guard.refusal(address) for address in reachable]
        if not found.addresses:
            self._failed(lease, FailureKind.DNS, found.error or "no address", now)
        elif not reachable:
            words = f"none of egress.addresses is of the family of {found.addresses[0]}"
            self._failed(lease, FailureKind.CONNECT, words, now)
        elif all(refusals):
            self._failed(lease, FailureKind.GUARD, f"{refusals[0]}; --allow names networks that may be touched", now)
        elif reason := self._guard.refusal(address := reachable[refusals.index(None)], port_of(lease.url)):
            self._failed(lease, FailureKind.GUARD, reason, now)
        elif self._frontier.claim(lease, address, found.expires, now):
            self._fetch(lease, address)
        else:
            self.pages -= not lease.robots

    def _failed(self, lease: Lease, kind: FailureKind, detail: str, now: Instant) -> None:
        self._arrived(lease, Failure(lease.url, kind, detail, "", now, now))

    def _fetch(self, lease: Lease, address: str) -> None:
        """`address`: where the connection goes, the host's or the proxy's."""
        self.requests += 1
        self.alerts += self._shares.asked(lease.site, lease.address or lease.site, self._watch)
        self._fetcher.start(_request(lease, address), partial(self._arrived, lease))

    def _arrived(self, lease: Lease, answer: Answer) -> None:
        self.answers.append((lease, answer))
        if isinstance(answer, Response):
            self._fetcher.hold(len(answer.body))
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
        taken = [self.answers.popleft() for _ in range(min(most, len(self.answers)))]
        self._fetcher.hold(-sum(len(answer.body) for _, answer in taken if isinstance(answer, Response)))
        return taken

    async def close(self) -> None:
        """Give up what is in flight: it stays queued."""
        await self._fetcher.close()
        await self._resolver.close()


def _request(lease: Lease, address: str) -> Request:
    """A page that we have is asked for only if it changed."""
    record, route = lease.record, lease.route
    if record is None:
        return Request(lease.url, address, lease.robots, route=route)
    return Request(lease.url, address, False, not record.is_page, lease.etag, lease.last_modified, route)
