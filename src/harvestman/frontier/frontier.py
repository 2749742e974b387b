"""What to ask for next.

Front: ready hosts in priority buckets, sampled by weight. Back: one queue per host (tails on disk, a window in RAM) and
a heap of hosts by their next allowed moment. A lease takes the host and its address out of circulation, so two
requests at once to one host cannot happen; `next = max(host, address, site)`.

Nothing here sleeps, opens a socket or looks at a clock. Changes are staged in `changes` and take effect when the caller
commits them (`take` -> State.commit -> `committed`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random

from harvestman.config import Config
from harvestman.frontier.book import Entry, RobotsBook
from harvestman.frontier.gates import Gates
from harvestman.frontier.hosts import Errand, Host, Place
from harvestman.frontier.residents import Residents
from harvestman.frontier.routing import Routed, Router
from harvestman.frontier.schedule import NEVER, Schedule
from harvestman.frontier.seen import Seen
from harvestman.model import (
    Answer,
    Failure,
    FailureKind,
    HostKey,
    Instant,
    Lease,
    Origin,
    Partition,
    Response,
    RobotsRecord,
    Status,
    UrlId,
    UrlRecord,
    Visit,
)  # fmt: skip
from harvestman.policy import ladder, politeness, urls
from harvestman.policy.ladder import Standing
from harvestman.policy.outcomes import Decision
from harvestman.policy.robots import Verdict
from harvestman.ports import Changes, Pending, State

BLOCKED_AT_ONCE = 256
"""URLs refused by robots.txt in one go before other hosts have their turn."""


class Frontier:
    """See the module. One per worker; all its sites are ours alone."""

    def __init__(
        self, state: State, seen: Seen, book: RobotsBook, router: Router, config: Config, rng: Random, opened: Instant
    ) -> None:
        """`opened`: when this process took over existing work, or 0 for a new crawl."""
        self._state = state
        self._seen = seen
        self._book = book
        self._router = router
        self._config = config
        self._residents = Residents(state, router, config, opened)
        self._schedule = Schedule(rng)
        self._gates = Gates(config.politeness, 4 * config.memory.resident_hosts)
        self.changes = Changes()
        self._touched: dict[HostKey, tuple[Partition, int]] = {}
        self._leased = 0
        self.seq = 0
        """The last sequence number given out; carried over restarts, for a wall clock may be set back."""
        self.blocked = 0

    # -- links in ----------------------------------------------------------------------------------------------

    async def add(self, found: Iterable[Routed], now: Instant) -> int:
        """Stage the links nobody has seen before; returns how many there were."""
        staged = self.changes.records
        candidates: dict[UrlId, Routed] = {}
        for routed in found:
            url_id = routed.id
            if url_id not in staged:
                candidates.setdefault(url_id, routed)
        new = await self._seen.unseen(list(candidates))
        for url_id in new:
            self._stage(url_id, candidates[url_id], now)
        return len(new)

    def _stage(self, url_id: UrlId, routed: Routed, now: Instant) -> None:
        found = routed.found
        seq = self.next_seq(now)
        self.changes.records[url_id] = UrlRecord(
            found.url, Status.PENDING, found.depth, found.bucket, seq, now, found.via, found.hops
        )
        self.changes.new.append(url_id)
        self._queue(routed.partition, routed.host, found.bucket, seq, url_id)

    def _queue(self, partition: Partition, host: HostKey, bucket: int, seq: int, url: UrlId) -> None:
        self.changes.queued.append((partition, host, bucket, seq, url))
        mask = self._touched[host][1] if host in self._touched else 0
        self._touched[host] = (partition, mask | 1 << bucket)

    def next_seq(self, now: Instant) -> int:
        """A number larger than any given before."""
        # Microseconds, always growing: an entry never lands before a cursor, whoever owned the host before.
        self.seq = max(self.seq + 1, int(now * 1e6))
        return self.seq

    async def ripen(self, now: Instant) -> None:
        """Put the URLs whose retry is due back into their hosts' queues."""
        due = await self._state.due(now, 1_000)
        if not due:
            return
        records = await self._state.records([url for _, url in due])
        for (when, url), record in zip(due, records, strict=True):
            self.changes.undue.append((when, url))
            if record is not None and record.status is Status.PENDING:
                host, _, partition = self._router.place(urls.host_of(record.url))
                record.seq = self.next_seq(now)
                record.due = Instant(0.0)
                self.changes.records[url] = record
                self._queue(partition, host, record.bucket, record.seq, url)

    # -- commit ------------------------------------------------------------------------------------------------

    def take(self) -> Changes:
        """What has been staged since the last take, for one atomic commit."""
        changes, self.changes = self.changes, Changes()
        return changes

    async def committed(self, now: Instant) -> None:
        """The taken changes are durable: what they queued can be read now."""
        touched, self._touched = self._touched, {}
        strangers: list[tuple[Partition, HostKey]] = []
        for name, (partition, mask) in touched.items():
            host = self._residents.get(name)
            if host is None:
                strangers.append((partition, name))
            else:
                host.queued(mask)
                self._enqueue(host)
        # Only now: making room for strangers puts out idle hosts, and a host with new links is not idle.
        staged = self.changes.hosts
        for host in await self._residents.admit(strangers, staged, now) if strangers else ():
            self._enqueue(host)
        for host in await self._residents.next_round(staged, now):
            self._enqueue(host)

    # -- leases out --------------------------------------------------------------------------------------------

    async def next(self, now: Instant) -> Lease | None:
        """A lease on the best host that may be asked now, or None. An empty `address` must be claimed first."""
        self._schedule.wake(now)
        while (host := self._schedule.pick()) is not None:
            lease = await self._try(host, now)
            if lease is not None:
                return lease
        return None

    async def _try(self, host: Host, now: Instant) -> Lease | None:
        if host.clock.next_allowed > now:
            # Its clock was set while it waited for something else.
            self._schedule.push(host, host.clock.next_allowed)
            return None
        address = host.address if host.address_until > now else ""
        if address and not self._passes(host, address, now):
            return None
        wanted = await self._choose(host, now)
        # Without an address the slot is taken by `claim`: a slow resolver must not bunch requests to a site.
        if wanted is None or (address and not self._site_slot(host, now)):
            return None
        url, url_id, record, origin, robots, hops = wanted
        host.place = Place.LEASED
        host.slot = Instant(0.0)
        host.served += 1
        self._leased += 1
        if address:
            self._gates.at(address).busy = True
        return Lease(host.name, address, url, url_id, record, origin, robots, hops, now)

    def _passes(self, host: Host, address: str, now: Instant) -> bool:
        """May its address be asked now? If not, the host is put where it waits."""
        gate = self._gates.at(address)
        if gate.busy:
            host.place = Place.BEHIND
            gate.waiting.append(host)
        elif gate.next_allowed > now:
            self._schedule.push(host, gate.next_allowed)
        else:
            return True
        return False

    async def _choose(self, host: Host, now: Instant) -> tuple[str, UrlId, UrlRecord | None, Origin, bool, int] | None:
        """The next thing to ask of a host: an errand, its robots.txt, or the first URL that robots.txt allows."""
        if host.errands:
            errand = host.errands[0]
            return errand.url, UrlId(b""), None, errand.origin, True, errand.hops
        looked_at = 0
        while host.window or await host.refill(self._state, self._window_size()):
            looked_at += 1
            if looked_at > BLOCKED_AT_ONCE:
                self._schedule.push(host, now)
                return None
            head = host.window[0]
            origin = urls.origin_of(head.record.url)
            standing, entry = await self._book.standing(host.partition, origin, now)
            if standing is Standing.ASK or entry is None:
                return f"{origin}/robots.txt", UrlId(b""), None, origin, True, 0
            if standing is Standing.FORBID and entry.record.reason.startswith(FailureKind.GUARD):
                # Not a matter of waiting: no request to this host is ever made.
                self._drop(host, Status.REFUSED, entry.record.reason, now)
                continue
            if standing is Standing.FORBID:
                self._park(host, entry.record, now)
                return None
            if not self._obeys_crawl_delay(host, entry, now):
                return None
            verdict = entry.rules.verdict(urls.path_of(head.record.url))
            if verdict.allowed:
                return head.record.url, head.id, head.record, origin, False, head.record.hops
            self._block(host, verdict, now)
        self._residents.idle(host)
        return None

    def _window_size(self) -> int:
        return max(2, min(32, self._config.memory.window // max(1, len(self._residents))))

    def _site_slot(self, host: Host, now: Instant) -> bool:
        """Take the site's next slot (at most `site_rate` a second); the host waits if the slot is not now."""
        if host.slot and now < host.slot + self._gates.site_interval:
            return True
        # No slot yet, or one that went by while the host waited for something else.
        slot = self._gates.site_slot(host.site, now)
        if slot <= now:
            return True
        host.slot = slot
        self._schedule.push(host, slot)
        return False

    def _block(self, host: Host, verdict: Verdict, now: Instant) -> None:
        self._drop(host, Status.BLOCKED, f"robots.txt line {verdict.line}: {verdict.rule}", now)
        self.blocked += 1

    def _drop(self, host: Host, status: Status, reason: str, now: Instant) -> None:
        """The head of the window is not asked for."""
        head = self._consume(host)
        head.record.status = status
        head.record.visit = Visit(now, 0, reason)
        self.changes.records[head.id] = head.record

    def _consume(self, host: Host) -> Pending:
        head = host.window.pop(0)
        host.consumed(head)
        self.changes.unqueued.append((host.partition, host.name, head.bucket, head.seq))
        return head

    def _park(self, host: Host, robots: RobotsRecord, now: Instant) -> None:
        """Its robots.txt cannot be had, which forbids everything: wait and ask again (RFC 9309)."""
        origin = robots.origin
        if not host.tails and all(urls.origin_of(entry.record.url) == origin for entry in host.window):
            until = Instant(max(robots.expires, host.clock.next_allowed))
            host.clock = replace(host.clock, next_allowed=until)
            self._back(host, now)
            return
        # Another origin of the host may answer, here or further on: only these URLs wait. From the head alone, since
        # the cursor may not pass an entry that is still to be asked for.
        while host.window and urls.origin_of(host.window[0].record.url) == origin:
            head = self._consume(host)
            head.record.due = robots.expires
            self.changes.records[head.id] = head.record
            self.changes.due.append((robots.expires, head.id))
        self._schedule.push(host, host.clock.next_allowed)

    def claim(self, lease: Lease, address: str, until: Instant, now: Instant) -> bool:
        """The address of a lease is known now. False: it is taken or too early, the lease is over, the host waits."""
        host = self._residents[lease.host]
        host.address, host.address_until = address, until
        if not self._passes(host, address, now) or not self._site_slot(host, now):
            self._leased -= 1
            return False
        host.slot = Instant(0.0)
        self._gates.at(address).busy = True
        lease.address = address
        return True

    # -- leases back -------------------------------------------------------------------------------------------

    def settle(self, lease: Lease, answer: Answer, decision: Decision, visit: Visit, chance: float) -> None:
        """A page lease is over: record what came of the URL, set the host's clock, put the host back."""
        host = self._return(lease, answer, chance)
        head = self._consume(host)
        self._record(head.id, head.record, decision, visit)
        host.fetched += decision.status is Status.FETCHED
        self._back(host, answer.finished)

    async def settle_replayed(
        self, lease: Lease, record: UrlRecord, answer: Answer, decision: Decision, visit: Visit, chance: float
    ) -> None:
        """The same for an answer that an earlier process stored and did not live to take in: no host was leased.

        What the answer asked of us (Retry-After) is obeyed all the same.
        """
        name, _, partition = self._router.place(lease.host)
        host = await self._residents.bring(name, partition, self.changes.hosts)
        before = host.clock.next_allowed
        self._set_clock(host, answer, chance)
        host.clock = replace(host.clock, next_allowed=max(before, host.clock.next_allowed))
        self.changes.unqueued.append((partition, name, record.bucket, record.seq))
        self._record(lease.id, record, decision, visit)
        self.changes.hosts[name] = (partition, host.record())
        self._enqueue(host)

    def _record(self, url: UrlId, record: UrlRecord, decision: Decision, visit: Visit) -> None:
        if decision.rename:
            record.url, record.hops = decision.rename, record.hops + 1
        elif decision.error:
            record.attempts += 1
        record.status, record.visit = decision.status, visit
        if decision.retry_at is not None:
            record.due = decision.retry_at
            self.changes.due.append((decision.retry_at, url))
        self.changes.records[url] = record

    async def settle_robots(self, lease: Lease, answer: Answer, body: bytes, chance: float) -> None:
        """A robots.txt lease is over."""
        asked = self._return(lease, answer, chance)
        host = self._residents.get(urls.host_of(lease.origin)) or asked
        previous = await self._book.record(host.partition, lease.origin)
        if lease.hops and isinstance(answer, Failure) and answer.kind is FailureKind.GUARD:
            # Its robots.txt leads where we may not go, which says nothing against the host itself.
            detail = f"robots.txt leads to {answer.url}: {answer.detail}"
            answer = replace(answer, kind=FailureKind.CONNECT, detail=detail)
        record = ladder.settle(lease.origin, previous, answer, body, answer.finished)
        entry = self._book.learn(record)
        self.changes.robots[lease.origin] = (host.partition, record)
        self._obeys_crawl_delay(host, entry, None)
        if asked.errands and asked.errands[0].origin == lease.origin:
            asked.errands.pop(0)
        host.away = False
        await self._give_up_errands(asked, answer.finished)
        self._back(asked, answer.finished)
        if host is not asked and host.place is Place.IDLE:
            self._back(host, answer.finished)

    async def follow_robots(self, lease: Lease, answer: Response, target: str, chance: float) -> None:
        """robots.txt moved: ask for it where it is now, in turn and at the pace of the host it is on."""
        asked = self._return(lease, answer, chance)
        if asked.errands and asked.errands[0].origin == lease.origin:
            asked.errands.pop(0)
        owner = self._residents.get(urls.host_of(lease.origin)) or asked
        name, _, partition = self._router.place(urls.host_of(target))
        host = await self._residents.bring(name, partition, self.changes.hosts)
        host.errands.append(Errand(target, lease.origin, lease.hops + 1))
        owner.away = host is not owner
        await self._give_up_errands(host, answer.finished)
        self._back(asked, answer.finished)
        for other in {owner, host} - {asked}:
            if other.place is Place.IDLE:
                self._back(other, answer.finished)

    async def _give_up_errands(self, host: Host, now: Instant) -> None:
        """A sick host is not asked for hours: those who wait for a robots.txt on it take it for unreachable."""
        if host.clock.sick_until <= now:
            return
        for errand in host.errands:
            owner = self._residents[urls.host_of(errand.origin)]
            sick = Failure(errand.url, FailureKind.CONNECT, f"{host.name} is on the sick list", "", now, now)
            previous = await self._book.record(owner.partition, errand.origin)
            record = ladder.settle(errand.origin, previous, sick, b"", now)
            self._book.learn(record)
            self.changes.robots[errand.origin] = (owner.partition, record)
            owner.away = False
            self._enqueue(owner)
        host.errands.clear()

    def _obeys_crawl_delay(self, host: Host, entry: Entry, now: Instant | None) -> bool:
        """Keep to what this robots.txt asks; False when that makes the host wait beyond `now` (it is put there)."""
        host.crawl_delay = entry.rules.crawl_delay
        host.clock = politeness.at_least(host.clock, politeness.asked_delay(self._config.politeness, host.crawl_delay))
        if now is None or host.clock.next_allowed <= now:
            return True
        self._schedule.push(host, host.clock.next_allowed)
        return False

    def _return(self, lease: Lease, answer: Answer, chance: float) -> Host:
        """Give back what a lease took: the address at once, the host's clock by what the answer was."""
        host = self._residents[lease.host]
        self._leased -= 1
        if lease.address:
            for other, when in self._gates.leave(lease.address, answer.finished):
                self._schedule.push(other, when)
        self._set_clock(host, answer, chance)
        return host

    def _set_clock(self, host: Host, answer: Answer, chance: float) -> None:
        rules = self._config.politeness
        floor = politeness.asked_delay(rules, host.crawl_delay)
        host.clock = politeness.after(host.clock, answer, floor, rules, self._config.retry, chance)

    def _back(self, host: Host, now: Instant) -> None:
        """A host is free again: to disk if others need its place more, else to where it waits for its turn."""
        self.changes.hosts[host.name] = (host.partition, host.record())
        if not self._residents.leaves(host, now):
            self._residents.idle(host)
            self._enqueue(host)

    def _enqueue(self, host: Host) -> None:
        if host.place is Place.IDLE and host.has_work:
            self._residents.busy(host)
            self._schedule.push(host, host.clock.next_allowed)

    # -- how it stands -----------------------------------------------------------------------------------------

    def wake_at(self) -> Instant:
        """When the next host may be asked; `NEVER` when none waits."""
        return self._schedule.wake_at()

    async def horizon(self) -> Instant:
        """The earliest moment at which anything at all could be done; `NEVER` when all is done."""
        if self._leased or self.changes or self._residents.overflow:
            return Instant(0.0)
        due = await self._state.due(NEVER, 1)
        return min(self.wake_at(), due[0][0] if due else NEVER, self._residents.rest_ends)

    def counts(self) -> dict[str, int]:
        schedule = self._schedule
        resident = len(self._residents)
        return {"ready": schedule.ready, "waiting": schedule.waiting, "leased": self._leased, "resident": resident}
