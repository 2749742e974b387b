"""What to ask for next.

Front: ready hosts in priority buckets, sampled by weight. Back: one queue per host (tails on disk, a window in RAM) and
a heap of hosts by their next allowed moment. A lease takes the host and its address out of circulation, so two
requests at once to one host cannot happen; `next = max(host, address, site)`.

Nothing here sleeps, opens a socket or looks at a clock. Changes are staged in `changes` and take effect when the caller
commits them (`take` -> State.commit -> `committed`).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from random import Random

from harvestman.config import Config
from harvestman.frontier.book import Entry, RobotsBook
from harvestman.frontier.hosts import ALL_BUCKETS, Errand, Host, Place
from harvestman.frontier.routing import Routed, Router
from harvestman.frontier.seen import Seen
from harvestman.model import (
    BUCKETS,
    Answer,
    Failure,
    FailureKind,
    HostKey,
    HostRecord,
    Instant,
    Lease,
    Origin,
    Partition,
    Response,
    RobotsRecord,
    Seconds,
    SiteKey,
    Status,
    UrlId,
    UrlRecord,
    Visit,
)  # fmt: skip
from harvestman.policy import ladder, politeness, urls
from harvestman.policy.ladder import Standing
from harvestman.policy.outcomes import Decision
from harvestman.policy.priority import BUCKET_WEIGHTS
from harvestman.policy.robots import Verdict
from harvestman.ports import Changes, Pending, State

NEVER = Instant(1e12)
"""Later than any date of a crawl, and still a number that State can sort."""
TURN = 64
"""Requests after which a host gives its place in RAM to one that waits on disk."""
LONG = Seconds(30.0)
"""A host that waits longer than this for its robots.txt gives its place in RAM to one that waits on disk."""
BLOCKED_AT_ONCE = 256
"""URLs refused by robots.txt in one go before other hosts have their turn."""


class Gate:
    """An address: one request at a time over all hosts that share it."""

    __slots__ = ("busy", "next_allowed", "waiting")

    def __init__(self) -> None:
        self.busy = False
        self.next_allowed = Instant(0.0)
        self.waiting: list[Host] = []


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
        self._rng = rng
        self._opened = opened
        self.changes = Changes()
        self._touched: dict[HostKey, tuple[Partition, SiteKey, int]] = {}
        self._hosts: dict[HostKey, Host] = {}
        self._heap: list[tuple[float, int, Host]] = []
        self._pushes = 0
        self._ready: list[deque[Host]] = [deque() for _ in range(BUCKETS)]
        self._gates: dict[str, Gate] = {}
        self._site_next: dict[SiteKey, float] = {}
        self._seq = 0
        self._overflow = True
        self._missed = False
        self._disk_cursor: tuple[Partition, HostKey] | None = None
        self._sick_check = NEVER
        self._leased = 0
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
        self._queue(routed.partition, routed.host, routed.site, found.bucket, seq, url_id)

    def _queue(self, partition: Partition, host: HostKey, site: SiteKey, bucket: int, seq: int, url: UrlId) -> None:
        self.changes.queued.append((partition, host, bucket, seq, url))
        mask = self._touched[host][2] if host in self._touched else 0
        self._touched[host] = (partition, site, mask | 1 << bucket)

    def next_seq(self, now: Instant) -> int:
        """A number larger than any given before."""
        # Microseconds, always growing: an entry never lands before a cursor, whoever owned the host before.
        self._seq = max(self._seq + 1, int(now * 1e6))
        return self._seq

    async def ripen(self, now: Instant) -> None:
        """Put the URLs whose retry is due back into their hosts' queues."""
        due = await self._state.due(now, 1_000)
        if not due:
            return
        records = await self._state.records([url for _, url in due])
        for (when, url), record in zip(due, records, strict=True):
            self.changes.undue.append((when, url))
            if record is not None and record.status is Status.PENDING:
                host, site, partition = self._router.place(urls.host_of(record.url))
                record.seq = self.next_seq(now)
                record.due = Instant(0.0)
                self.changes.records[url] = record
                self._queue(partition, host, site, record.bucket, record.seq, url)

    # -- commit ------------------------------------------------------------------------------------------------

    def take(self) -> Changes:
        """What has been staged since the last take, for one atomic commit."""
        changes, self.changes = self.changes, Changes()
        return changes

    async def committed(self, now: Instant) -> None:
        """The taken changes are durable: what they queued can be read now."""
        touched, self._touched = self._touched, {}
        strangers: list[tuple[Partition, HostKey]] = []
        for name, (partition, _, mask) in touched.items():
            host = self._hosts.get(name)
            if host is None:
                strangers.append((partition, name))
            else:
                host.queued(mask)
                self._enqueue(host)
        # Only now: making room for strangers puts out idle hosts, and a host with new links is not idle.
        await self._admit(strangers, now)
        if now >= self._sick_check:
            # A round that is under way may have passed the host by: there must be another one after it.
            self._overflow = self._missed = True
            self._sick_check = NEVER
        if self._overflow:
            await self._admit_from_disk(now)

    async def _admit(self, names: list[tuple[Partition, HostKey]], now: Instant) -> None:
        """Give hosts a place in RAM, with the clocks they had; those beyond the limit wait on disk."""
        self._make_room(len(names))
        room = self._config.memory.resident_hosts - len(self._hosts)
        if len(names) > room:
            self._overflow = self._missed = True
            names = names[: max(0, room)]
        for host in await self._load(names):
            if host.clock.sick_until > now:
                self._sick_check = min(self._sick_check, host.clock.sick_until)
                continue
            self._hosts[host.name] = host
            host.tails = ALL_BUCKETS
            self._enqueue(host)

    async def _load(self, names: list[tuple[Partition, HostKey]]) -> list[Host]:
        """Hosts as they were left, by us or by an earlier owner."""
        floor = self._config.politeness.delay
        loaded: list[Host] = []
        for (partition, name), stored in zip(names, await self._state.hosts(names), strict=True):
            staged = self.changes.hosts.get(name)
            record = staged[1] if staged else stored or HostRecord(name, self._router.place(name)[1])
            loaded.append(Host.restored(record, partition, floor, self._opened))
        return loaded

    def _make_room(self, wanted: int) -> None:
        excess = len(self._hosts) + wanted - self._config.memory.resident_hosts
        if excess <= 0:
            return
        idle = [
            h for h in self._hosts.values()
            if h.place is Place.IDLE and not h.away and h.name not in self.changes.hosts
        ]  # fmt: skip
        for host in idle[: excess + 100]:
            del self._hosts[host.name]

    async def _admit_from_disk(self, now: Instant) -> None:
        room = self._config.memory.resident_hosts - len(self._hosts)
        if room <= 0:
            self._make_room(256)
            return
        limit = min(room, 256)
        waiting = await self._state.waiting_hosts(self._disk_cursor, limit)
        await self._admit([name for name in waiting if name[1] not in self._hosts], now)
        if len(waiting) < limit:
            # The round is over: all that waited has been met, but for those turned away meanwhile.
            self._overflow, self._missed = self._missed, False
            self._disk_cursor = None
        else:
            self._disk_cursor = waiting[-1]

    # -- leases out --------------------------------------------------------------------------------------------

    async def next(self, now: Instant) -> Lease | None:
        """A lease on the best host that may be asked now, or None. An empty `address` must be claimed first."""
        self._wake(now)
        while (host := self._pick()) is not None:
            lease = await self._try(host, now)
            if lease is not None:
                return lease
        return None

    def _wake(self, now: Instant) -> None:
        heap = self._heap
        while heap and heap[0][0] <= now:
            host = heapq.heappop(heap)[2]
            host.place = Place.READY
            self._ready[host.bucket].append(host)

    def _pick(self) -> Host | None:
        filled = [bucket for bucket in range(BUCKETS) if self._ready[bucket]]
        if not filled:
            return None
        bucket = filled[0]
        if len(filled) > 1:
            bucket = self._rng.choices(filled, [BUCKET_WEIGHTS[b] for b in filled])[0]
        return self._ready[bucket].popleft()

    async def _try(self, host: Host, now: Instant) -> Lease | None:
        gate = self._open_gate(host, now)
        if gate is None:
            return None
        wanted = await self._choose(host, now)
        if wanted is None or not self._site_slot(host, now):
            return None
        url, url_id, record, origin, robots, hops = wanted
        host.place = Place.LEASED
        host.slot = Instant(0.0)
        host.served += 1
        self._leased += 1
        address = host.address if host.address_until > now else ""
        if address:
            gate.busy = True
        return Lease(host.name, address, url, url_id, record, origin, robots, hops, now)

    def _open_gate(self, host: Host, now: Instant) -> Gate | None:
        """The gate of the host's address, if it may be passed now; otherwise the host is put where it waits."""
        if host.address_until <= now:
            return Gate()
        gate = self._gates.setdefault(host.address, Gate())
        if gate.busy:
            host.place = Place.BEHIND
            gate.waiting.append(host)
            return None
        if gate.next_allowed > now:
            self._push(host, gate.next_allowed)
            return None
        return gate

    async def _choose(self, host: Host, now: Instant) -> tuple[str, UrlId, UrlRecord | None, Origin, bool, int] | None:
        """The next thing to ask of a host: an errand, its robots.txt, or the first URL that robots.txt allows."""
        if host.errands:
            errand = host.errands[0]
            return errand.url, UrlId(b""), None, errand.origin, True, errand.hops
        blocked = self.blocked
        while host.window or await host.refill(self._state, self._window_size()):
            if self.blocked - blocked >= BLOCKED_AT_ONCE:
                self._push(host, now)
                return None
            head = host.window[0]
            origin = urls.origin_of(head.record.url)
            standing, entry = await self._book.standing(host.partition, origin, now)
            if standing is Standing.ASK or entry is None:
                return f"{origin}/robots.txt", UrlId(b""), None, origin, True, 0
            if standing is Standing.FORBID:
                self._park(host, entry.record, now)
                return None
            if not self._obeys_crawl_delay(host, entry, now):
                return None
            verdict = entry.rules.verdict(urls.path_of(head.record.url))
            if verdict.allowed:
                return head.record.url, head.id, head.record, origin, False, head.record.hops
            self._block(host, head, verdict, now)
        host.place = Place.IDLE
        return None

    def _window_size(self) -> int:
        return max(4, min(32, self._config.memory.window // max(1, len(self._hosts))))

    def _site_slot(self, host: Host, now: Instant) -> bool:
        """Take the site's next slot (at most `site_rate` a second); the host waits if the slot is not now."""
        interval = 1.0 / self._config.politeness.site_rate
        if host.slot and now < host.slot + interval:
            return True
        # No slot yet, or one that went by while the host waited for something else.
        slot = max(now, self._site_next.get(host.site, 0.0))
        self._site_next[host.site] = slot + interval
        if slot <= now:
            return True
        host.slot = Instant(slot)
        self._push(host, host.slot)
        return False

    def _block(self, host: Host, head: Pending, verdict: Verdict, now: Instant) -> None:
        host.window.pop(0)
        host.consumed(head)
        head.record.status = Status.BLOCKED
        head.record.visit = Visit(now, 0, f"robots.txt line {verdict.line}: {verdict.rule}")
        self.changes.records[head.id] = head.record
        self.changes.unqueued.append((host.partition, host.name, head.bucket, head.seq))
        self.blocked += 1

    def _park(self, host: Host, robots: RobotsRecord, now: Instant) -> None:
        """Its robots.txt cannot be had, which forbids everything: wait and ask again (RFC 9309)."""
        origin = robots.origin
        if not host.tails and all(urls.origin_of(entry.record.url) == origin for entry in host.window):
            until = Instant(max(robots.expires, host.clock.next_allowed))
            if self._overflow and until > now + LONG:
                # Others wait for a place: this one rests on disk, like a sick one.
                host.clock = replace(host.clock, next_allowed=until, sick_until=until)
                self._back(host)
            else:
                self._push(host, until)
            return
        # Another origin of the host may answer, here or further on: only these URLs wait. From the head alone, since
        # the cursor may not pass an entry that is still to be asked for.
        while host.window and urls.origin_of(host.window[0].record.url) == origin:
            head = host.window.pop(0)
            host.consumed(head)
            head.record.due = robots.expires
            self.changes.records[head.id] = head.record
            self.changes.due.append((robots.expires, head.id))
            self.changes.unqueued.append((host.partition, host.name, head.bucket, head.seq))
        self._push(host, host.clock.next_allowed)

    def claim(self, lease: Lease, address: str, until: Instant, now: Instant) -> bool:
        """The address of a lease is known now. False: it is taken or too early, the lease is over, the host waits."""
        host = self._hosts[lease.host]
        host.address, host.address_until = address, until
        gate = self._open_gate(host, now)
        if gate is None:
            self._leased -= 1
            return False
        gate.busy = True
        lease.address = address
        return True

    # -- leases back -------------------------------------------------------------------------------------------

    def settle(self, lease: Lease, answer: Answer, decision: Decision, visit: Visit, chance: float) -> None:
        """A page lease is over: record what came of the URL, set the host's clock, put the host back."""
        host = self._return(lease, answer, chance)
        head = host.window.pop(0)
        host.consumed(head)
        self.changes.unqueued.append((host.partition, host.name, head.bucket, head.seq))
        self._record(head.id, head.record, decision, visit)
        host.fetched += decision.status is Status.FETCHED
        self._back(host)

    def settle_replayed(self, lease: Lease, record: UrlRecord, decision: Decision, visit: Visit) -> None:
        """The same for an answer that an earlier process stored and did not live to take in: no host was leased."""
        _, _, partition = self._router.place(lease.host)
        self.changes.unqueued.append((partition, lease.host, record.bucket, record.seq))
        self._record(lease.id, record, decision, visit)

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
        host = self._hosts.get(HostKey(urls.host_of(lease.origin)), asked)
        previous = await self._book.record(host.partition, lease.origin)
        record = ladder.settle(lease.origin, previous, answer, body, answer.finished)
        entry = self._book.learn(record)
        self.changes.robots[lease.origin] = (host.partition, record)
        self._obeys_crawl_delay(host, entry, None)
        if asked.errands and asked.errands[0].origin == lease.origin:
            asked.errands.pop(0)
        host.away = False
        await self._give_up_errands(asked, answer.finished)
        self._back(asked)
        if host is not asked and host.place is Place.IDLE:
            self._back(host)

    async def follow_robots(self, lease: Lease, answer: Response, target: str, chance: float) -> None:
        """robots.txt moved: ask for it where it is now, in turn and at the pace of the host it is on."""
        asked = self._return(lease, answer, chance)
        if asked.errands and asked.errands[0].origin == lease.origin:
            asked.errands.pop(0)
        owner = self._hosts.get(HostKey(urls.host_of(lease.origin)), asked)
        host = await self._host(target)
        host.errands.append(Errand(target, lease.origin, lease.hops + 1))
        owner.away = host is not owner
        await self._give_up_errands(host, answer.finished)
        self._back(asked)
        for other in {owner, host} - {asked}:
            if other.place is Place.IDLE:
                self._back(other)

    async def _give_up_errands(self, host: Host, now: Instant) -> None:
        """A sick host is not asked for hours: those who wait for a robots.txt on it take it for unreachable."""
        if host.clock.sick_until <= now:
            return
        for errand in host.errands:
            owner = self._hosts[urls.host_of(errand.origin)]
            sick = Failure(errand.url, FailureKind.CONNECT, f"{host.name} is on the sick list", "", now, now)
            previous = await self._book.record(owner.partition, errand.origin)
            record = ladder.settle(errand.origin, previous, sick, b"", now)
            self._book.learn(record)
            self.changes.robots[errand.origin] = (owner.partition, record)
            owner.away = False
            self._enqueue(owner)
        host.errands.clear()

    async def _host(self, url: str) -> Host:
        name, _, partition = self._router.place(urls.host_of(url))
        if name not in self._hosts:
            self._hosts[name] = (await self._load([(partition, name)]))[0]
            self._hosts[name].tails = ALL_BUCKETS
        return self._hosts[name]

    def _obeys_crawl_delay(self, host: Host, entry: Entry, now: Instant | None) -> bool:
        """Keep to what this robots.txt asks; False when that makes the host wait beyond `now` (it is put there)."""
        host.crawl_delay = entry.rules.crawl_delay
        host.clock = politeness.at_least(host.clock, politeness.asked_delay(self._config.politeness, host.crawl_delay))
        if now is None or host.clock.next_allowed <= now:
            return True
        self._push(host, host.clock.next_allowed)
        return False

    def _return(self, lease: Lease, answer: Answer, chance: float) -> Host:
        """Give back what a lease took: the address at once, the host's clock by what the answer was."""
        host = self._hosts[lease.host]
        self._leased -= 1
        rules = self._config.politeness
        if lease.address:
            self._release(lease.address, Instant(answer.finished + rules.ip_delay))
        floor = politeness.asked_delay(rules, host.crawl_delay)
        host.clock = politeness.after(host.clock, answer, floor, rules, self._config.retry, chance)
        return host

    def _release(self, address: str, next_allowed: Instant) -> None:
        gate = self._gates[address]
        gate.busy = False
        gate.next_allowed = next_allowed
        when = next_allowed
        for host in gate.waiting:
            # One after the other, so that they do not all wake to find the gate taken again.
            self._push(host, Instant(max(when, host.clock.next_allowed)))
            when = Instant(when + self._config.politeness.ip_delay)
        gate.waiting.clear()
        if len(self._gates) + len(self._site_next) > 4 * self._config.memory.resident_hosts:
            self._forget_quiet(Instant(next_allowed - self._config.politeness.ip_delay))

    def _forget_quiet(self, now: Instant) -> None:
        self._gates = {a: g for a, g in self._gates.items() if g.busy or g.waiting or g.next_allowed > now}
        self._site_next = {s: at for s, at in self._site_next.items() if at > now}

    def _back(self, host: Host) -> None:
        self.changes.hosts[host.name] = (host.partition, host.record())
        stays = host.away or host.errands
        if host.clock.sick_until > 0 and not stays:
            self._sick_check = min(self._sick_check, host.clock.sick_until)
            del self._hosts[host.name]
            return
        full = len(self._hosts) >= self._config.memory.resident_hosts
        if self._overflow and host.served >= TURN and full and not stays:
            self._missed = True
            del self._hosts[host.name]
            return
        host.place = Place.IDLE
        self._enqueue(host)

    def _enqueue(self, host: Host) -> None:
        if host.place is Place.IDLE and host.has_work:
            self._push(host, host.clock.next_allowed)

    def _push(self, host: Host, when: Instant) -> None:
        host.place = Place.WAITING
        self._pushes += 1
        heapq.heappush(self._heap, (when, self._pushes, host))

    # -- how it stands -----------------------------------------------------------------------------------------

    def wake_at(self) -> Instant:
        """When the next host may be asked; `NEVER` when none waits."""
        if any(self._ready):
            return Instant(0.0)
        return Instant(self._heap[0][0]) if self._heap else NEVER

    async def horizon(self) -> Instant:
        """The earliest moment at which anything at all could be done; `NEVER` when all is done."""
        if self._leased or self.changes or self._overflow:
            return Instant(0.0)
        due = await self._state.due(NEVER, 1)
        return min(self.wake_at(), due[0][0] if due else NEVER, self._sick_check)

    def counts(self) -> dict[str, int]:
        ready = sum(len(bucket) for bucket in self._ready)
        return {"ready": ready, "waiting": len(self._heap), "leased": self._leased, "resident": len(self._hosts)}
