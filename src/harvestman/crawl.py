"""The loop: lease, fetch, take in, commit. It decides nothing; it reads like the drawing in ARCHITECTURE.md.

frontier -lease-> fetcher -answer-> harvest (raw record, page, links) -> frontier, bus -> one commit per group
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec

from harvestman.config import Config
from harvestman.fetch.curl import Fetcher
from harvestman.fetch.decode import decode
from harvestman.fetch.dns import Resolution, Resolver
from harvestman.frontier.frontier import Frontier
from harvestman.frontier.routing import Routed, Router
from harvestman.frontier.seen import Seen
from harvestman.harvest import Handed, Harvest, Taken
from harvestman.model import (
    Answer,
    Discovery,
    Failure,
    FailureKind,
    Instant,
    Lease,
    Page,
    Partition,
    Request,
    Response,
    Status,
    Tally,
)  # fmt: skip
from harvestman.policy import outcomes
from harvestman.policy.guard import Guard
from harvestman.ports import Bus, Changes, Clock, Parcel, Roster, State
from harvestman.store.pages import PageLog
from harvestman.store.warc import WarcWriter

GROUP = 64
"""Pages per commit at most."""
PULSE = 0.01
"""Seconds between looks at the frontier: leases are handed out, and small groups taken in, at this pace."""
RIPEN_EVERY = 0.5
SYNC_EVERY = 5.0
STILL_EVERY = 0.1

_encode = msgspec.msgpack.Encoder().encode
_discoveries = msgspec.msgpack.Decoder(list[Discovery]).decode
SeePage = Callable[[Page], None]


class Crawler:
    """One worker's crawl. Everything it stands on is handed to it by `wiring`."""

    def __init__(
        self, *, config: Config, clock: Clock, state: State, bus: Bus, roster: Roster, router: Router, seen: Seen,
        frontier: Frontier, fetcher: Fetcher, resolver: Resolver, guard: Guard, harvest: Harvest, warc: WarcWriter,
        log: PageLog, tally: Tally, snapshot: Callable[[], Awaitable[None]],
        see: SeePage | None = None,
    ) -> None:  # fmt: skip
        self._config = config
        self._clock = clock
        self._state = state
        self._bus = bus
        self._roster = roster
        self._router = router
        self._seen = seen
        self._frontier = frontier
        self._fetcher = fetcher
        self._resolver = resolver
        self._guard = guard
        self._harvest = harvest
        self._warc = warc
        self._log = log
        self._snapshot = snapshot
        self._see = see
        self.tally = tally
        self.allowance: float = config.limits.max_pages or float("inf")
        """Pages this run may still fetch."""
        self.draining = False
        self.halted = False
        """Stop at once: what is in flight stays queued."""
        self.idle = False
        """Nothing to do, nothing under way, nothing that will come up within the patience."""
        self.page_leases = 0
        """Pages under way."""
        self._resolving: set[asyncio.Task[None]] = set()
        self._answers: deque[tuple[Lease, Answer]] = deque()
        self._outgoing: dict[Partition, list[Discovery]] = {}
        self._backlog = True
        self._wake = asyncio.Event()
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
        await self._lease_out(now)
        await self._pause()
        await self._take_in()
        return self._quiet() and await self._stands_still(now)

    async def _lease_out(self, now: Instant) -> None:
        while self._may_ask():
            lease = await self._frontier.next(now)
            if lease is None:
                return
            self.page_leases += not lease.robots
            if lease.address:
                self._fetch(lease)
            elif (known := self._resolver.peek(lease.host)) is not None:
                self._resolved(lease, known)
            else:
                task = asyncio.create_task(self._resolve(lease))
                self._resolving.add(task)
                task.add_done_callback(self._resolving.discard)

    def _may_ask(self) -> bool:
        """Back-pressure: answers that wait to be taken in slow fetching down."""
        under_way = self._fetcher.in_flight + len(self._resolving) + len(self._answers)
        return not self.draining and under_way < self._config.in_flight and self.page_leases < self.allowance

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
            self.page_leases -= not lease.robots

    def _failed(self, lease: Lease, kind: FailureKind, detail: str, now: Instant) -> None:
        self._arrived(lease, Failure(lease.url, kind, detail, "", now, now))

    def _fetch(self, lease: Lease) -> None:
        self.tally.requests += 1
        self._fetcher.start(Request(lease.url, lease.address, lease.robots), partial(self._arrived, lease))

    def _arrived(self, lease: Lease, answer: Answer) -> None:
        self._answers.append((lease, answer))
        if len(self._answers) >= GROUP:
            self._wake.set()

    async def _pause(self) -> None:
        """Until a full group has arrived, or one pulse."""
        if len(self._answers) >= GROUP:
            await asyncio.sleep(0)
            return
        self._wake.clear()
        timer = asyncio.get_running_loop().call_later(PULSE, self._wake.set)
        await self._wake.wait()
        timer.cancel()

    # -- answers in --------------------------------------------------------------------------------------------

    async def _take_in(self) -> None:
        now = self._clock.now()
        if self._answers:
            self.idle = False
        answers = [self._answers.popleft() for _ in range(min(GROUP, len(self._answers)))]
        pages: list[Handed] = [(lease, lease.record, answer, None) for lease, answer in answers if lease.record]
        for lease, answer in answers:
            if lease.robots:
                await self._take_robots(lease, answer)
        taken = await self._take_pages(pages) if pages else []
        if now >= self._ripe_at:
            self._ripe_at = now + RIPEN_EVERY
            await self._frontier.ripen(now)
        received = self._bus.receive(GROUP)
        for parcel in received:
            self.tally.received += 1
            await self._route([self._router.route(found) for found in _discoveries(parcel.body)], now)
        await self._commit(now)
        if received:
            await self._bus.acknowledge()
        if self._see is not None:
            for item in taken:
                if item.page is not None:
                    self._see(item.page)

    async def _take_pages(self, answers: Sequence[Handed]) -> list[Taken]:
        group = await self._harvest.gather(answers)
        links: list[Routed] = []
        for taken in group:
            self.page_leases -= 1
            self._count(taken)
            chance = self._harvest.chance()
            self._frontier.settle(taken.lease, taken.answer, taken.decision, taken.visit(), chance)
            links += taken.links
        self._log.append([taken.page for taken in group if taken.page is not None])
        self._frontier.changes.contents.update(self._harvest.contents)
        await self._route(links, self._clock.now())
        return group

    async def _take_robots(self, lease: Lease, answer: Answer) -> None:
        self.tally.robots += 1
        chance = self._harvest.chance()
        decision = outcomes.decide(lease.url, answer, 1, lease.hops, self._config.retry, self._config.limits, chance)
        target = decision.target or decision.rename
        if isinstance(answer, Response) and target:
            await self._frontier.follow_robots(lease, answer, target, chance)
            return
        body = b""
        if isinstance(answer, Response):
            self._warc.write(answer, digest="")
            decoded = decode(answer.body, answer.headers.get("content-encoding", ""))
            body = decoded if isinstance(decoded, bytes) else b""
        elif decision.error:
            self.tally.error(f"robots_{decision.error}")
        await self._frontier.settle_robots(lease, answer, body, chance)

    def _count(self, taken: Taken) -> None:
        tally, decision = self.tally, taken.decision
        if isinstance(taken.answer, Response):
            tally.bytes += len(taken.answer.body)
        if decision.status in (Status.FETCHED, Status.DUPLICATE):
            tally.pages += 1
            tally.duplicates += decision.status is Status.DUPLICATE
            self.allowance -= 1
        if decision.error:
            self.tally.error(decision.error)

    # -- links out ---------------------------------------------------------------------------------------------

    async def _route(self, links: list[Routed], now: Instant) -> None:
        """Ours to the frontier, the others' to the outbox."""
        owns = self._roster.owns
        mine = [routed for routed in links if owns(routed.partition)]
        for routed in links:
            if not owns(routed.partition):
                self._outgoing.setdefault(routed.partition, []).append(routed.found)
        if mine:
            self.tally.discovered += await self._frontier.add(mine, now)

    async def add_seeds(self, seeds: Sequence[str], via: str) -> int:
        """Take seeds in; when this returns they are durable. Returns how many were new."""
        before = self.tally.discovered
        now = self._clock.now()
        await self._route(self._harvest.seeds(seeds, via), now)
        await self._commit(now)
        return self.tally.discovered - before

    # -- commit ------------------------------------------------------------------------------------------------

    async def _commit(self, now: Instant) -> None:
        changes = self._frontier.take()
        changes.delivered += self._bus.delivered()
        changes.outbox = [
            Parcel(partition, self._frontier.next_seq(now), _encode(found))
            for partition, found in self._outgoing.items()
        ]
        self._outgoing = {}
        if changes:
            self._mark(changes)
            await self._state.commit(changes)
        await self._frontier.committed(now)
        await self._publish(changes.outbox)
        if now >= self._sync_at and self._syncing is None:
            self._sync_at = now + SYNC_EVERY
            self._syncing = asyncio.create_task(self._sync())

    def _mark(self, changes: Changes) -> None:
        self.tally.blocked = self._frontier.blocked
        changes.marks["warc"] = _encode(self._warc.position)
        changes.marks["pages"] = _encode(self._log.position)
        changes.marks["tally"] = _encode(self.tally)

    async def _publish(self, parcels: list[Parcel]) -> None:
        """Hand parcels to the bus; what finds no room stays in the outbox and is read again from there."""
        room = self._bus.room()
        if self._backlog and room > 0:
            stored = await self._state.outbox(4 * GROUP)
            self._backlog = len(stored) == 4 * GROUP
            parcels = stored
        elif len(parcels) > room:
            self._backlog = True
            return
        if parcels:
            await self._bus.publish(parcels)

    async def _sync(self) -> None:
        await asyncio.to_thread(self._warc.sync)
        await self._state.sync()
        self._syncing = None

    # -- the end -----------------------------------------------------------------------------------------------

    def _quiet(self) -> bool:
        return not (self._fetcher.in_flight or self._resolving or self._answers)

    async def _stands_still(self, now: Instant) -> bool:
        """Draining or out of pages: enough that nothing is under way. Else there must be nothing left to do soon."""
        if self.draining or now < self._still_at:
            return self.draining
        self._still_at = now + STILL_EVERY
        under_way = self._bus.under_way() + len(self._outgoing) + self._backlog
        waits = await self._frontier.horizon() > now + self._config.limits.patience
        self.idle = not under_way and waits
        return self.idle or (not under_way and self.allowance <= 0)

    async def recovered(self, group: list[Taken]) -> None:
        """Finish what an earlier process began: pages it stored but did not take in, links it did not deliver."""
        now = self._clock.now()
        self._log.append([taken.page for taken in group if taken.page is not None])
        for taken in group:
            self._count(taken)
            await self._route(taken.links, now)
        own = [parcel for parcel in await self._state.outbox(1_000_000) if self._roster.owns(parcel.partition)]
        for parcel in own:
            await self._route([self._router.route(found) for found in _discoveries(parcel.body)], now)
        self._frontier.changes.delivered += [(parcel.partition, parcel.seq) for parcel in own]
        await self._commit(now)

    def next_at(self) -> Instant:
        return self._frontier.wake_at()

    def counts(self) -> Counter[str]:
        return Counter(self._frontier.counts())

    async def close(self) -> None:
        """Everything to disk, in order: raw records, state, the seen-filter."""
        await self._fetcher.close()
        await self._resolver.close()
        await self._bus.close()
        if self._syncing is not None:
            await self._syncing
        self._warc.close()
        self._log.close()
        await self._state.sync()
        await self._snapshot()
        await self._state.close()
