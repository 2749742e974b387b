"""The crawler's loop in virtual time: what `crawl.Crawler` does, with a number for a clock, a function for a network.

The frontier, the State below it and every policy are the real ones. Time jumps from one event to the next, so nothing
sleeps; what a server saw is told to `watch`, request by request.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from random import Random
from typing import TypeAlias

import msgspec

from harvestman.config import Config
from harvestman.frontier.frontier import Frontier
from harvestman.frontier.routing import Routed, Router
from harvestman.model import (
    Answer,
    Discovery,
    Failure,
    HostKey,
    Instant,
    Lease,
    RecordRef,
    Response,
    Status,
    Tally,
    UrlRecord,
    Visit,
)  # fmt: skip
from harvestman.policy import importance, outcomes
from harvestman.policy.importance import Importance
from harvestman.policy.outcomes import Decision, excused
from harvestman.ports import Content, State
from harvestman.simulate.reply import Reply, Web

RIPEN_EVERY = 5.0
"""Virtual seconds between looks at what has fallen due; the real loop looks every half second of its own."""
ADDRESS_KEPT = 300.0
NOT_MODIFIED = 304
_NOWHERE = RecordRef("", 0, 0)


@dataclass(slots=True)
class Asked:
    """One request, as its server saw it."""

    host: HostKey
    address: str
    url: str
    robots: bool
    started: float
    finished: float
    reply: Reply


Watch: TypeAlias = Callable[[Asked], None]
"""Told of every request when it is made."""
Settled: TypeAlias = Callable[[Asked, UrlRecord, Decision], None]
"""Told of every answer for a page when it is taken in; the record is as it was before."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the crawler's machine and line can do."""

    in_flight: int = 1_000
    rate: float = inf
    """Requests a second."""
    group: float = 0.05
    """Answers that come within this many seconds share a commit."""


class Drive:
    """A worker in virtual time."""

    def __init__(
        self, state: State, frontier: Frontier, router: Router, config: Config, web: Web, *, rng: Random, now: Instant,
        addresses: Callable[[HostKey], str], capacity: Capacity, watch: Watch, settled: Settled,
        going: Callable[[], bool] = lambda: True,
    ) -> None:  # fmt: skip
        self.now = now
        self.tally = Tally()
        self.stopped = False
        """`going` said no."""
        self._state = state
        self._frontier = frontier
        self._router = router
        self._config = config
        self._web = web
        self._rng = rng
        self._addresses = addresses
        self._capacity = capacity
        self._watch = watch
        self._settled = settled
        self._going = going
        self._importance = Importance(config.memory.recent_links)
        self._flying: list[tuple[float, int, Lease, Asked]] = []
        self._next_request = float(now)
        self._ripe_at = 0.0
        self._links: list[Routed] = []
        self._contents: dict[bytes, Content] = {}

    # -- moving ------------------------------------------------------------------------------------------------

    async def seed(self, urls: Iterable[str]) -> None:
        """Take seeds in."""
        self._links += [self._router.route(Discovery(url, 0, "seeds", "seed", cash=1.0)) for url in urls]
        await self._add_links()
        await self._commit()

    async def run(self, until: Instant, requests: float = inf) -> None:
        """Crawl until the hour strikes, or enough requests were made; what is in flight then stays so."""
        while self.now < until and self.tally.requests < requests:
            if not self._going():
                self.stopped = True
                return
            await self._turn()
            following = await self._following()
            self.now = Instant(min(until, max(following, self.now + self._capacity.group)))

    async def finish(self) -> None:
        """Let what is in flight come in, and ask for nothing more."""
        while self._flying:
            self.now = max(self.now, Instant(self._flying[0][0]))
            await self._take_in()
            await self._commit()

    async def _turn(self) -> None:
        await self._lease_out()
        await self._take_in()
        if self.now >= self._ripe_at:
            self._ripe_at = self.now + RIPEN_EVERY
            await self._frontier.ripen(self.now)
        await self._commit()

    async def _following(self) -> float:
        """When the next thing happens."""
        landing = self._flying[0][0] if self._flying else inf
        if len(self._flying) >= self._capacity.in_flight:
            return landing
        wake = max(self._frontier.wake_at(), self._next_request)
        if not self._flying and wake > self._ripe_at:
            # Nothing to do for a while: how long a while is worth asking State for.
            return max(await self._frontier.horizon(), self._next_request)
        return min(landing, wake, self._ripe_at)

    async def _commit(self) -> None:
        self._frontier.changes.contents.update(self._contents)
        self._contents = {}
        changes = self._frontier.take()
        if changes:
            await self._state.commit(changes)
        await self._frontier.committed(self.now)

    # -- out ---------------------------------------------------------------------------------------------------

    async def _lease_out(self) -> None:
        while len(self._flying) < self._capacity.in_flight and self._next_request <= self.now:
            lease = await self._frontier.next(self.now)
            if lease is None:
                return
            self._ask(lease)

    def _ask(self, lease: Lease) -> None:
        if not lease.address and not lease.route.proxy:
            address = self._addresses(lease.host)
            if not self._frontier.claim(lease, address, Instant(self.now + ADDRESS_KEPT), self.now):
                return
        reply = self._conditional(lease, self._web(lease.url, self.now))
        asked = Asked(lease.host, lease.address, lease.url, lease.robots, self.now, self.now + reply.took, reply)
        self.tally.requests += 1
        # Capacity that was not used is lost, but for what one group of answers takes.
        earliest = self.now - self._capacity.group
        self._next_request = max(self._next_request, earliest) + 1.0 / self._capacity.rate
        self._watch(asked)
        heapq.heappush(self._flying, (asked.finished, self.tally.requests, lease, asked))

    @staticmethod
    def _conditional(lease: Lease, reply: Reply) -> Reply:
        """If-None-Match: a server that still has what we have says so, and no more."""
        etag = lease.etag
        if not etag or reply.headers.get("etag") != etag:
            return reply
        return Reply(NOT_MODIFIED, {"etag": etag}, took=reply.took)

    # -- in ----------------------------------------------------------------------------------------------------

    async def _take_in(self) -> None:
        landed: list[tuple[Lease, Asked]] = []
        while self._flying and self._flying[0][0] <= self.now:
            landed.append(heapq.heappop(self._flying)[2:])
        if not landed:
            return
        digests = {asked.reply.digest for _, asked in landed if asked.reply.digest}
        known = dict(zip(digests, await self._state.contents(list(digests)), strict=True))
        for lease, asked in landed:
            if lease.robots:
                await self._settle_robots(lease, asked)
            else:
                self._settle(lease, asked, known.get(asked.reply.digest))
        await self._add_links()

    async def _add_links(self) -> None:
        links, self._links = self._links, []
        self.tally.discovered += await self._frontier.add(links, self.now)

    async def _settle_robots(self, lease: Lease, asked: Asked) -> None:
        self.tally.robots += 1
        answer = _answer(asked)
        decision = self._decide(lease, answer, 1)
        target = decision.target or decision.rename
        if isinstance(answer, Response) and target:
            await self._frontier.follow_robots(lease, answer, target, self._rng.random())
        else:
            await self._frontier.settle_robots(lease, answer, asked.reply.body, self._rng.random())

    def _settle(self, lease: Lease, asked: Asked, known: Content | None) -> None:
        record = lease.record
        assert record is not None
        answer, reply = _answer(asked), asked.reply
        before = msgspec.structs.replace(record)
        decision = self._decide(lease, answer, record.attempts + (not excused(lease, answer)))
        if decision.status is Status.FETCHED and reply.digest:
            decision = self._recognise(record, reply, known, decision, answer)
        visit = _visit(record, asked, decision)
        links, share = self._links_of(record, reply, decision)
        news = [link.found.url for link in links if link.found.cash <= share]
        self._count(decision)
        self._frontier.settle(lease, answer, decision, visit, self._rng.random(), news)
        self._links += links
        self._settled(asked, before, decision)

    def _links_of(self, record: UrlRecord, reply: Reply, decision: Decision) -> tuple[list[Routed], float]:
        """What the page leads to, and the importance that it gives to each."""
        if decision.target:
            to, hops = decision.target, record.hops + 1
            found = Discovery(to, record.depth, record.url, "redirect", hops, record.job, record.cash)
            return [self._router.route(found)], 0.0
        if decision.status is Status.FETCHED and reply.links and not _unchanged(record, reply):
            return self._follow(record, reply)
        return [], 0.0

    def _decide(self, lease: Lease, answer: Answer, attempts: int) -> Decision:
        rules, chance = self._config, self._rng.random()
        return outcomes.decide(lease.url, answer, attempts, lease.hops, rules.retry, rules.limits, chance)

    def _recognise(
        self, record: UrlRecord, reply: Reply, known: Content | None, decision: Decision, answer: Answer
    ) -> Decision:
        """Is it an exact duplicate of another page?"""
        known = known or self._contents.get(reply.digest)
        if known is None:
            self._contents[reply.digest] = Content(record.url, answer.finished, "", _NOWHERE)
        elif known.url != record.url:
            return Decision(Status.DUPLICATE, "same content as another URL")
        return decision

    def _follow(self, record: UrlRecord, reply: Reply) -> tuple[list[Routed], float]:
        """The links that are new to us, or whose importance has grown."""
        depth = record.depth + 1
        if depth > self._config.limits.max_depth:
            return [], 0.0
        # Once: a page that shared its rank again with each of its versions would make cash of nothing, without end.
        rank = importance.rank(record.cash, record.kind == "seed") if record.change is None else 0.0
        worth = importance.share(rank, len(reply.links))
        told = ((url, self._importance.told(url, worth)) for url in reply.links)
        found = (Discovery(url, depth, record.url, "a", 0, record.job, cash) for url, cash in told if cash)
        return [self._router.route(each) for each in found], worth / importance.PAGE

    def _count(self, decision: Decision) -> None:
        tally = self.tally
        if decision.error:
            tally.error(decision.error)
        if decision.status in (Status.FETCHED, Status.DUPLICATE):
            tally.pages += 1
            tally.duplicates += decision.status is Status.DUPLICATE


def _answer(asked: Asked) -> Answer:
    reply, began, ended = asked.reply, Instant(asked.started), Instant(asked.finished)
    if reply.failure is not None:
        return Failure(asked.url, reply.failure, "", asked.address, began, ended)
    return Response(asked.url, reply.status, b"", reply.headers, reply.body, asked.address, began, ended, ended)


def _unchanged(record: UrlRecord, reply: Reply) -> bool:
    """We have this page as it is: the server says so, or it is the same byte for byte."""
    if record.change is None or record.visit is None or reply.failure is not None:
        return False
    return reply.status == NOT_MODIFIED or bool(reply.digest and reply.digest == record.visit.digest)


def _visit(record: UrlRecord, asked: Asked, decision: Decision) -> Visit:
    """The durable summary."""
    reply, ended, before = asked.reply, Instant(asked.finished), record.visit
    code = 0 if reply.failure is not None else reply.status
    if before is not None and _unchanged(record, reply):
        return msgspec.structs.replace(before, at=ended, code=code, reason="unchanged")
    return Visit(ended, code, decision.reason, reply.digest, reply.simhash, reply.headers.get("etag", ""))
