"""Virtual time: a clock that is a number, and a crawl of an imagined web driven by nothing but that number.

`Drive` plays the part of `crawl.Crawler` (lease, fetch, settle, commit) with a real `Frontier` over a real `State`;
the network is a function. Hours of crawling pass in milliseconds. Its journal is what the servers saw.
"""

from __future__ import annotations

import asyncio
import functools
import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import ParamSpec

import msgspec

from harvestman.config import Config, Memory
from harvestman.frontier.book import RobotsBook
from harvestman.frontier.frontier import Frontier
from harvestman.frontier.routing import Router
from harvestman.frontier.schedule import NEVER
from harvestman.frontier.seen import Seen
from harvestman.model import (
    Answer,
    Discovery,
    Failure,
    FailureKind,
    HostKey,
    Instant,
    Job,
    Lease,
    RecordRef,
    Response,
    SiteRecord,
    Status,
    UrlRecord,
    Visit,
)  # fmt: skip
from harvestman.policy import outcomes
from harvestman.policy.scope import Scope
from harvestman.policy.sites import site_of
from harvestman.policy.urls import host_of, path_of, request_form
from harvestman.ports import State

_P = ParamSpec("_P")
START = Instant(1_700_000_000.0)
HOUR = 3600.0
BUCKET = "bucket "
"""The kind of a link that a test puts into a bucket of its choice."""


def in_a_loop(test: Callable[_P, Coroutine[None, None, None]]) -> Callable[_P, None]:
    """Let pytest call a coroutine."""

    @functools.wraps(test)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return called


class VirtualClock:
    """`ports.Clock` for tests: its hands are moved by hand."""

    def __init__(self, now: Instant = START) -> None:
        self._now = now

    def now(self) -> Instant:
        return self._now

    def advance(self, seconds: float) -> Instant:
        self._now = Instant(self._now + seconds)
        return self._now


@dataclass
class Reply:
    """What an imagined server says: a status with its headers, or a failure; for pages, the links on them."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    links: Sequence[str] = ()
    failure: FailureKind | None = None
    took: float = 0.05
    digest: bytes = b""
    simhash: int = 0


Web = Callable[[str, Instant], Reply]


@dataclass
class Asked:
    """One line of the servers' log."""

    host: HostKey
    address: str
    url: str
    robots: bool
    started: float
    finished: float


def config(**changes: object) -> Config:
    """The defaults, with a few fields of the tree replaced: `politeness=Politeness(delay=5)`."""
    return msgspec.structs.replace(Config(memory=Memory(seen_capacity=10_000)), **changes)


class _NoObjects:
    """`ports.Objects` with nothing in it."""

    async def put(self, name: str, body: bytes | bytearray) -> None:
        raise AssertionError("nothing is stored here")

    async def get(self, name: str, start: int = 0, length: int | None = None) -> bytes | None:
        return None

    async def list(self, prefix: str) -> list[str]:
        return []

    async def delete(self, name: str) -> None:
        return None


def own_address(host: str) -> str:
    """Every host an address of its own."""
    return f"addr-of-{host}"


class OneJob:
    """`ports.Jobs` for a crawl with one job that wants everything."""

    def get(self, number: int) -> Job:
        return Job(number, "test", START, scope="all")

    def scope(self, number: int) -> Scope:
        return Scope("all")


class Drive:
    """A worker in virtual time."""

    def __init__(
        self, state: State, web: Web, *, settings: Config | None = None, now: Instant = START, resumed: bool = False,
        seed: int = 1, addresses: Callable[[str], str] = own_address, in_flight: int = 100, jobs: OneJob | None = None,
    ) -> None:  # fmt: skip
        self.settings = settings or config()
        self.web = web
        self.now = now
        self.state = state
        self.journal: list[Asked] = []
        self._addresses = addresses
        self._in_flight = in_flight
        self._rng = Random(seed)
        self._flying: list[tuple[float, int, Lease, Reply, Asked]] = []
        self.router = Router(self.settings.partitions)
        self.seen = Seen(state, self.settings.memory.seen_capacity)
        book = RobotsBook(state, "harvestman", capacity=50)
        opened = now if resumed else Instant(0.0)
        self.frontier = Frontier(
            state, self.seen, book, self.router, jobs or OneJob(), self.settings, self._rng, opened
        )

        self._judge = self.frontier.intake.bucket
        setattr(self.frontier.intake, "bucket", self._bucket)  # noqa: B010 - a method, which mypy would not let us replace

    def _bucket(self, record: UrlRecord, site: SiteRecord, need: float) -> int:
        if record.kind.startswith(BUCKET):
            return int(record.kind.removeprefix(BUCKET))
        return self._judge(record, site, need)

    async def crash(self, pause: float = 0.0) -> Drive:
        """The process dies here with all it had staged; its successor, `pause` seconds later, knows only State."""
        heir = Drive(
            self.state, self.web, settings=self.settings, now=Instant(self.now + pause), resumed=True,
            seed=self._rng.randrange(1 << 30), addresses=self._addresses, in_flight=self._in_flight,
        )  # fmt: skip
        for line in self.journal:
            line.finished = min(line.finished, self.now)
        heir.journal = self.journal
        if await heir.seen.restore(_NoObjects(), "none") == "lost":
            await heir.seen.rebuild()
        await heir.commit()
        return heir

    # -- moving ------------------------------------------------------------------------------------------------

    async def add(self, links: Iterable[str], bucket: int | None = None, depth: int = 1, cash: float = 0.0) -> int:
        """Links, into the bucket that is theirs or into a given one."""
        kind = "a" if bucket is None else f"{BUCKET}{bucket}"
        routed = [self.router.route(Discovery(request_form(url), depth, "test", kind, 0, 1, cash)) for url in links]
        new = await self.frontier.add(routed, self.now)
        await self.commit()
        return new

    async def commit(self) -> None:
        changes = self.frontier.take()
        if changes:
            await self.state.commit(changes)
        await self.frontier.committed(self.now)

    async def run(self, *, patience: float = HOUR, requests: int = 100_000, until: Instant = NEVER) -> None:
        """Crawl until nothing can be done within the patience, or enough requests were made, or the hour strikes."""
        for _ in range(20 * requests):
            await self.turn()
            following = await self._following()
            if following > min(until, self.now + patience) or len(self.journal) >= requests:
                return
            self.now = Instant(max(following, self.now + 0.001))
        raise AssertionError("the crawl does not end")

    async def turn(self) -> None:
        """One round of the loop at this moment."""
        await self.lease_out()
        await self.take_in()
        await self.frontier.ripen(self.now)
        await self.commit()

    async def _following(self) -> float:
        if len(self._flying) >= self._in_flight:
            return self._flying[0][0]
        if self._flying:
            return min(self._flying[0][0], self.frontier.wake_at())
        horizon = await self.frontier.horizon()
        return horizon if horizon else min(self.now + 0.05, max(self.now, self.frontier.wake_at()))

    async def lease_out(self) -> None:
        while len(self._flying) < self._in_flight:
            lease = await self.frontier.next(self.now)
            if lease is None:
                return
            self._start(lease)

    def _start(self, lease: Lease) -> None:
        if not lease.address and not lease.route.proxy:
            address = self._addresses(lease.host)
            if not self.frontier.claim(lease, address, Instant(self.now + 300), self.now):
                return
        for _, _, other, _, _ in self._flying:
            assert other.host != lease.host, f"two requests at once to {lease.host}"
            one, two = other.address or other.site, lease.address or lease.site  # behind a proxy no address is known
            assert one != two, f"two requests at once to {two}"
        assert host_of(lease.url) == lease.host
        reply = self.web(lease.url, self.now)
        asked = Asked(lease.host, lease.address, lease.url, lease.robots, self.now, self.now + reply.took)
        self.journal.append(asked)
        heapq.heappush(self._flying, (asked.finished, len(self.journal), lease, reply, asked))

    async def take_in(self) -> None:
        while self._flying and self._flying[0][0] <= self.now:
            _, _, lease, reply, asked = heapq.heappop(self._flying)
            await self._settle(lease, reply, self._answer(lease, reply, asked))

    def _answer(self, lease: Lease, reply: Reply, asked: Asked) -> Answer:
        began, ended = Instant(asked.started), Instant(asked.finished)
        if reply.failure is not None:
            return Failure(lease.url, reply.failure, "", lease.address, began, ended)
        return Response(lease.url, reply.status, b"", reply.headers, reply.body, lease.address, began, ended, ended)

    async def _settle(self, lease: Lease, reply: Reply, answer: Answer) -> None:
        chance = self._rng.random()
        attempts = 1 if lease.record is None else lease.record.attempts + (not outcomes.excused(lease, answer))
        rules = self.settings
        decision = outcomes.decide(lease.url, answer, attempts, lease.hops, rules.retry, rules.limits, chance)
        target = decision.target or decision.rename
        if not lease.robots:
            code = 0 if isinstance(answer, Failure) else answer.status
            visit = Visit(answer.finished, code, decision.reason, reply.digest, reply.simhash)
            visit.ref = RecordRef("virtual", 0, 1) if code else None
            self.frontier.settle(lease, answer, decision, visit, chance)
            await self._links([*reply.links, *([decision.target] if decision.target else [])])
        elif isinstance(answer, Response) and target:
            await self.frontier.follow_robots(lease, answer, target, chance)
        else:
            await self.frontier.settle_robots(lease, answer, reply.body, chance)

    async def _links(self, links: Iterable[str]) -> None:
        routed = [self.router.route(Discovery(request_form(url), 1, "test")) for url in links]
        await self.frontier.add(routed, self.now)

    # -- what the servers saw ----------------------------------------------------------------------------------

    def pages(self, host: str | None = None) -> list[Asked]:
        return [line for line in self.journal if not line.robots and host in (None, line.host)]

    def gaps(self) -> dict[HostKey, list[float]]:
        """Per host, from the end of each answer to the next request."""
        return {host: [b.started - a.finished for a, b in pairwise(lines)] for host, lines in self.by_host().items()}

    def by_host(self) -> dict[HostKey, list[Asked]]:
        lines: dict[HostKey, list[Asked]] = defaultdict(list)
        for line in self.journal:
            lines[line.host].append(line)
        return lines

    def busiest_second(self, site: str) -> int:
        """The most requests the site saw in any second (from one request on)."""
        at = [line.started for line in self.journal if site_of(line.host) == site]
        return max((sum(1 for other in at[i:] if other < start + 1.0 - 1e-6) for i, start in enumerate(at)), default=0)

    async def statuses(self) -> Counter[Status]:
        found: Counter[Status] = Counter()
        async for ids in self.state.ids():
            found.update(record.status for record in await self.state.records(ids) if record is not None)
        return found

    async def queued(self) -> int:
        """Hosts that State says have something queued."""
        return len(await self.state.waiting_hosts(None, 1_000_000))


def web(robots: Reply | None = None, page: Reply | None = None) -> Web:
    """Hosts that all have this robots.txt and answer every page with this."""

    def answer(url: str, now: Instant) -> Reply:
        return (robots or Reply(404)) if path_of(url) == "/robots.txt" else (page or Reply())

    return answer


def rules(text: str) -> Reply:
    """A robots.txt."""
    return Reply(body=text.encode())
