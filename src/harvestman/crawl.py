"""The loop: lease, ask, take in, commit. It decides nothing; it reads like the drawing in ARCHITECTURE.md.

frontier -lease-> asking -answer-> harvest (raw record, page, links) -> frontier, dispatch -> one commit per group
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from hashlib import sha256

import msgspec

from harvestman.asking import Asking
from harvestman.config import Config
from harvestman.dispatch import Dispatch
from harvestman.fetch.decode import decode
from harvestman.frontier.frontier import Frontier
from harvestman.frontier.seen import Keeper
from harvestman.harvest import Handed, Harvest, Taken
from harvestman.model import Answer, Failure, FailureKind, Instant, Lease, Origin, Page, Response, Status, Tally
from harvestman.policy import outcomes
from harvestman.ports import Bus, Changes, Clock, State
from harvestman.rendering import Rendering
from harvestman.store.pages import PageLog
from harvestman.store.warc import WarcWriter

GROUP = 64
"""Pages per commit at most."""
PULSE = 0.01
"""Seconds between looks at the frontier: leases are handed out, and small groups taken in, at this pace."""
RIPEN_EVERY = 0.5
SYNC_EVERY = 5.0
STILL_EVERY = 0.1
SNAPSHOT_AFTER = 500_000
"""New URLs after which the seen-filter is written again, so that a restart has little to replay."""

ALERTS = 10
"""The last so many are remembered."""

_encode = msgspec.msgpack.Encoder().encode
SeePage = Callable[[Page], None]


class Crawler:
    """One worker's crawl. Everything it stands on is handed to it by `wiring`."""

    def __init__(
        self, *, config: Config, clock: Clock, state: State, bus: Bus, frontier: Frontier, asking: Asking,
        harvest: Harvest, dispatch: Dispatch, warc: WarcWriter, log: PageLog, tally: Tally,
        rendering: Rendering, keeper: Keeper, see: SeePage | None = None,
    ) -> None:  # fmt: skip
        self._config = config
        self._clock = clock
        self._state = state
        self._bus = bus
        self._frontier = frontier
        self._asking = asking
        self._harvest = harvest
        self._dispatch = dispatch
        self._rendering = rendering
        self._warc = warc
        self._log = log
        self._keeper = keeper
        self._see = see
        self.tally = tally
        self.allowance: float = config.limits.max_pages or float("inf")
        """Pages this run may still fetch."""
        self.draining = False
        """Ask for nothing new."""
        self.halted = False
        """Stop at once: what is in flight stays queued."""
        self.idle = False
        """Nothing to do, nothing under way, nothing that will come up within the patience."""
        self._ripe_at = 0.0
        self._sync_at = 0.0
        self._still_at = 0.0
        self._syncing: asyncio.Task[None] | None = None

    # -- the loop ----------------------------------------------------------------------------------------------

    async def run(self, until: Callable[[], bool]) -> None:
        """Crawl until `until()` says so; it is asked when nothing is under way and nothing will come up soon."""
        while not (await self.step() and until()) and not self.halted:
            pass

    async def step(self) -> bool:
        """One turn: lease out, wait a little, take in, commit. True when it stands still."""
        now = self._clock.now()
        while self._may_ask() and (lease := await self._frontier.next(now)) is not None:
            self._asking.ask(lease)
        await self._asking.wait(GROUP, PULSE)
        await self._take_in()
        return not self._asking.under_way and await self._stands_still(now)

    def _may_ask(self) -> bool:
        """Back-pressure: answers that wait to be taken in slow fetching down."""
        asking = self._asking
        return not self.draining and asking.under_way < self._config.in_flight and asking.pages < self.allowance

    async def _take_in(self) -> None:
        """A group of answers, and what came over the bus: one commit."""
        now = self._clock.now()
        answers = self._asking.take(GROUP)
        for lease, answer in answers:
            if lease.robots:
                await self._take_robots(lease, answer)
        handed: list[Handed] = [(lease, lease.record, answer, None) for lease, answer in answers if lease.record]
        group = await self._take_pages(handed) if handed else []
        group += await self._take_shown(now)
        while self._frontier.unlisted:
            await self._list(*self._frontier.unlisted.pop())
        if now >= self._ripe_at:
            self._ripe_at = now + RIPEN_EVERY
            await self._frontier.ripen(now)
            if not self.draining:
                self._asking.expect(now)
                await self._show_pages(now)
        parcels = self._bus.receive(GROUP)
        self.tally.received += len(parcels)
        self.idle = self.idle and not (answers or parcels or self._asking.under_way)
        self.tally.discovered += await self._dispatch.take_in(parcels, now)
        self._rendering.told(self._dispatch.answered())
        await self._commit(now)
        if parcels:
            await self._bus.acknowledge()
        self._show(group)

    async def _take_pages(self, handed: list[Handed]) -> list[Taken]:
        group = await self._harvest.gather(handed)
        for taken in group:
            self._asking.pages -= 1
            visit, chance = taken.visit(), self._harvest.chance()
            self._frontier.settle(taken.lease, taken.answer, taken.decision, visit, chance, taken.news)
            if taken.scripted or taken.record.render is not None:
                self._rendering.want(taken)
        await self._keep(group)
        return group

    async def _show_pages(self, now: Instant) -> None:
        """Have the browser go on, and what it lacks asked for."""
        idle = not (self._asking.under_way or self._frontier.counts()["ready"])
        self.tally.discovered += await self._dispatch.route(await self._rendering.look(now, idle), now)

    async def _take_shown(self, now: Instant) -> list[Taken]:
        """What the browser made of a page."""
        if not self._rendering.ready:
            return []
        group, asks = await self._rendering.take(now)
        self._harvest.contents = {}
        await self._keep(group)
        self.tally.discovered += await self._dispatch.route(asks, now)
        self._ripe_at = now  # its place is free
        return group

    async def _keep(self, group: list[Taken]) -> None:
        """Pages to the log, links to their owners."""
        for taken in group:
            self.allowance -= taken.count(self.tally)
        self._log.append([taken.page for taken in group if taken.page is not None])
        self._frontier.changes.contents.update(self._harvest.contents)
        self._frontier.changes.near.update(self._harvest.copying.take())
        links = [link for taken in group for link in taken.links]
        self.tally.discovered += await self._dispatch.route(links, self._clock.now())

    async def _list(self, origin: Origin, named: Sequence[str], job: int, depth: int) -> None:
        links = self._harvest.sitemaps(origin, named, job, depth)
        self.tally.discovered += await self._dispatch.route(links, self._clock.now())

    async def _take_robots(self, lease: Lease, answer: Answer) -> None:
        self.tally.robots += 1
        chance = self._harvest.chance()
        decision = outcomes.decide(lease.url, answer, 1, lease.hops, self._config.retry, self._config.limits, chance)
        if decision.error and decision.status is not Status.GONE:
            self.tally.error(f"robots_{decision.error}")
        target = decision.target or decision.rename
        if not isinstance(answer, Response):
            await self._frontier.settle_robots(lease, answer, b"", chance)
            return
        self._warc.write(answer, digest=sha256(answer.body).hexdigest())
        if target:
            await self._frontier.follow_robots(lease, answer, target, chance)
            return
        body = decode(answer.body, answer.headers.get("content-encoding", ""))
        if isinstance(body, bytes):
            named = await self._frontier.settle_robots(lease, answer, body, chance)
            if named is not None:
                await self._list(lease.origin, named, lease.job, lease.depth)
        else:
            # Rules we cannot read may forbid anything.
            unread = FailureKind.PROTOCOL, f"robots.txt cannot be decoded: {body.reason}"
            failure = Failure(answer.url, *unread, answer.address, answer.started, answer.finished)
            await self._frontier.settle_robots(lease, failure, b"", chance)

    def _show(self, group: list[Taken]) -> None:
        if self._see is not None:
            for taken in group:
                if taken.page is not None:
                    self._see(taken.page)

    # -- what comes from outside -------------------------------------------------------------------------------

    async def add_seeds(self, seeds: Sequence[str], via: str, job: int = 1) -> int:
        """Take seeds in; when this returns they are durable. Returns how many were new."""
        now = self._clock.now()
        new = await self._dispatch.route(self._harvest.seeds(seeds, via, job), now)
        self.tally.discovered += new
        await self._commit(now)
        return new

    async def recovered(self, group: list[Taken]) -> None:
        """Finish what an earlier process began: pages it stored but did not take in, links it did not deliver."""
        for taken in group:
            self._rendering.want(taken)
        await self._keep(group)
        now = self._clock.now()
        self.tally.discovered += await self._dispatch.take_back(now)
        await self._commit(now)

    # -- commit ------------------------------------------------------------------------------------------------

    async def _commit(self, now: Instant) -> None:
        changes = self._frontier.take()
        self._dispatch.stage(changes, now)
        if changes:
            self._mark(changes)
            await self._state.commit(changes)
        await self._frontier.committed(now)
        await self._dispatch.publish(changes.outbox)
        if now >= self._sync_at and (self._syncing is None or self._syncing.done()):
            self._sync_at = now + SYNC_EVERY
            if self._syncing is not None:
                self._syncing.result()  # a disk that cannot be written to ends the worker, loudly
            self._syncing = asyncio.create_task(self._sync())

    def _mark(self, changes: Changes) -> None:
        self.tally.blocked = self._frontier.staging.blocked
        self.tally.unrendered = self._rendering.waiting
        self.tally.requests += self._asking.requests
        self.tally.dns_hits += self._asking.known
        self.tally.dns_misses += self._asking.waited
        self._asking.requests = self._asking.known = self._asking.waited = 0
        if self._asking.alerts or self._rendering.alerts:
            self._alert()
        self.tally.traps = self._frontier.intake.trapped
        self.tally.jobs = jobs = self._frontier.staging.jobs
        waiting = sum(job.discovered - job.settled for job in jobs.values())
        self.tally.settled = self.tally.discovered - self.tally.blocked - waiting
        changes.marks["seq"] = b"%d" % self._frontier.staging.seq
        changes.marks["crawled"] = b"%d" % self._frontier.crawled
        changes.marks["price"] = b"%r" % self._frontier.learning.price.value
        changes.marks["warc"] = _encode(self._warc.position)
        changes.marks["pages"] = _encode(self._log.position)
        changes.marks["tally"] = _encode(self.tally)

    def _alert(self) -> None:
        """To whoever looks at the crawl, and to the log."""
        alerts = self._asking.alerts + self._rendering.alerts
        for words in alerts:
            print(f"alert: {words}", file=sys.stderr, flush=True)
        self.tally.alerts = [*self.tally.alerts, *alerts][-ALERTS:]
        self._asking.alerts, self._rendering.alerts = [], []

    async def _sync(self) -> None:
        """From the kernel to the disk, now and then: raw records first."""
        await asyncio.to_thread(self._warc.sync)
        await asyncio.to_thread(self._log.sync)
        await self._state.sync()
        await self._keeper.snapshot(SNAPSHOT_AFTER)

    # -- the end -----------------------------------------------------------------------------------------------

    async def _stands_still(self, now: Instant) -> bool:
        """Draining or out of pages: enough that nothing is under way. Else there must be nothing left to do soon."""
        if self.draining or now < self._still_at:
            return self.draining
        self._still_at = now + STILL_EVERY
        under_way = self._dispatch.under_way
        ahead = min(await self._frontier.horizon(), await self._rendering.horizon())
        waits = ahead > now + self._config.limits.patience
        self.idle = not under_way and waits and not self._config.recrawl.keep
        return self.idle or (not under_way and self.allowance <= 0)

    def unused(self) -> int:
        """Pages that may be fetched and are not under way."""
        return max(0, int(self.allowance - self._asking.pages))

    def next_at(self) -> Instant:
        """When the next host may be asked."""
        return self._frontier.wake_at()

    def counts(self) -> dict[str, int]:
        return self._frontier.counts()

    async def close(self) -> None:
        """Everything to disk, in order: raw records, state, the seen-filter."""
        await self._asking.close()
        await self._rendering.close()
        await self._bus.close()
        if self._syncing is not None:
            await self._syncing
        self._warc.close()
        self._log.close()
        await self._state.sync()
        await self._keeper.close()
        await self._state.close()
