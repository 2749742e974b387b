"""What to ask for next.

Front: ready hosts in priority buckets, sampled by weight. Back: one queue per host (tails on disk, a window in RAM) and
a heap of hosts by their next allowed moment. A lease takes the host and its address out of circulation, so two
requests at once to one host cannot happen; `next = max(host, address, site)`.

Nothing here sleeps, opens a socket or looks at a clock. Changes are staged in `changes` and take effect when the caller
commits them (`take` -> State.commit -> `committed`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random

from harvestman.config import Config
from harvestman.frontier.book import RobotsBook
from harvestman.frontier.doors import Doors
from harvestman.frontier.gates import Gates
from harvestman.frontier.hosts import Host, Place
from harvestman.frontier.intake import Intake
from harvestman.frontier.learning import Learning
from harvestman.frontier.residents import Residents
from harvestman.frontier.routing import Routed, Router
from harvestman.frontier.rules import RobotsDesk
from harvestman.frontier.schedule import NEVER, Schedule
from harvestman.frontier.seen import Seen
from harvestman.frontier.sites import Sites
from harvestman.frontier.staging import Staging
from harvestman.model import (
    DIRECT,
    RESOURCE,
    Answer,
    Attempt,
    FailureKind,
    HostKey,
    Instant,
    Lease,
    Origin,
    Page,
    Partition,
    Response,
    RobotsRecord,
    Route,
    SiteKey,
    SiteRecord,
    Status,
    Tally,
    UrlId,
    UrlRecord,
    Visit,
)  # fmt: skip
from harvestman.policy import budget, outcomes, politeness, regions, revisit, traps, urls, validators
from harvestman.policy.egress import Egress
from harvestman.policy.ladder import Standing
from harvestman.policy.outcomes import Decision
from harvestman.policy.robots import Verdict
from harvestman.ports import Changes, Jobs, Pending, State

BUDGET_PAUSE = 3_600.0
"""A site without budget left is looked at again after this many seconds, so that a larger budget takes effect soon."""
TRAIL = 10
"""Failed attempts that a URL's record keeps, the latest."""
BLOCKED_AT_ONCE = 256
"""URLs refused by robots.txt in one go before other hosts have their turn."""


class Frontier:
    """See the module. One per worker; all its sites are ours alone."""

    def __init__(
        self, state: State, seen: Seen, book: RobotsBook, router: Router, jobs: Jobs, config: Config, rng: Random,
        opened: Instant,
    ) -> None:  # fmt: skip
        """`opened`: when this process took over existing work, or 0 for a new crawl."""
        self._state = state
        self._book = book
        self._router = router
        self._config = config
        self._residents = Residents(state, router, config, opened)
        self._schedule = Schedule(rng)
        self.staging = Staging()
        self._sites = Sites(state, self.staging, config.memory.resident_hosts)
        self.learning = Learning(self._sites, self.staging, jobs, config, rng)
        self.intake = Intake(
            state, seen, self._sites, router, self._residents, self.staging, self.learning, jobs, config
        )
        self._rules = RobotsDesk(book, self._residents, router, self.staging, config, self._back, self._enqueue)
        self._gates = Gates(config.politeness, 4 * config.memory.resident_hosts)
        self._egress = Egress(config.proxies, config.egress)
        self._doors = Doors(self._egress, config.retry)
        self._leased = 0
        self.unlisted: list[tuple[Origin, tuple[str, ...], int, int]] = []
        """Sitemaps of an origin whose robots.txt was there before a job came to it, with the job and its depth."""
        self.crawled = 0
        """Pages of this worker so far, in all runs."""
        self.region = ""
        """The name of ours; empty where there are none, and nothing is measured."""
        self.visits_until = NEVER if config.recrawl.keep else opened
        """Pages that we have are visited again when they fall due before this moment."""

    @property
    def changes(self) -> Changes:
        """What is staged for the next commit."""
        return self.staging.changes

    async def restore(self, tally: Tally) -> None:
        """Go on where an earlier process was."""
        self.staging.blocked = tally.blocked
        self.crawled = int(await self._state.mark("crawled") or tally.pages)
        self.staging.seq = int(await self._state.mark("seq") or 0)
        self.staging.jobs = tally.jobs
        self.intake.trapped = tally.traps
        self.learning.know(sum(job.pages for job in tally.jobs.values()))
        self.learning.price = revisit.Price(float(await self._state.mark("price") or self.learning.price.value))

    # -- links in ----------------------------------------------------------------------------------------------

    async def add(self, found: Iterable[Routed], now: Instant) -> int:
        """Stage what the links change; returns how many of them nobody had seen before."""
        return await self.intake.add(found, now)

    async def ripen(self, now: Instant) -> None:
        """Put retries and visits that are due into their hosts' queues."""
        await self.intake.ripen(now, self.visits_until)

    # -- commit ------------------------------------------------------------------------------------------------

    def take(self) -> Changes:
        """What has been staged since the last take, for one atomic commit."""
        return self.staging.take()

    async def committed(self, now: Instant) -> None:
        """The taken changes are durable: what they queued can be read now."""
        self._book.committed()
        touched, self.staging.touched = self.staging.touched, {}
        strangers: list[tuple[Partition, HostKey]] = []
        for name, (partition, mask) in touched.items():
            host = self._residents.get(name)
            if host is None:
                strangers.append((partition, name))
            else:
                host.queued(mask)
                self._enqueue(host)
                self._schedule.promote(host)
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
        route = self._egress.route(host.name, host.site, address)
        key = _gate_key(host.site, address, route)
        if key and not self._passes(host, key, route, now):
            return None
        wanted = await self._choose(host, now)
        # Without an address the slot is taken by `claim`: a slow resolver must not bunch requests to a site.
        if wanted is None or (key and not self._site_slot(host, now)):
            return None
        host.place = Place.LEASED
        host.slot = Instant(0.0)
        host.served += 1
        self._leased += 1
        if key:
            self._gates.at(key).busy = True
            self._doors.enter(route)
        wanted.address, wanted.site, wanted.route = address, host.site, route
        wanted.failures, wanted.own = host.clock.failures, host.failed == wanted.id
        return wanted

    def _passes(self, host: Host, key: str, route: Route, now: Instant) -> bool:
        """May its address be asked now, and by this route? If not, the host is put where it waits."""
        gate = self._gates.at(key)
        opens = self._doors.opens(route, now)
        if opens > now:
            self._schedule.push(host, opens)
        elif gate.busy:
            host.place = Place.BEHIND
            gate.waiting.append(host)
        elif gate.next_allowed > now:
            self._schedule.push(host, gate.next_allowed)
        else:
            return True
        return False

    async def _choose(self, host: Host, now: Instant) -> Lease | None:
        """The next thing to ask of a host: an errand, its robots.txt, or the first URL that may be asked for."""
        if host.errands:
            errand = host.errands[0]
            return _robots_lease(host, errand.url, errand.origin, errand.hops, errand.job, errand.depth, now)
        site = await self._site_of(host, now)
        looked_at = 0
        while host.window or await host.refill(self._state, self._window_size()):
            looked_at += 1
            if looked_at > BLOCKED_AT_ONCE:
                self._schedule.push(host, now)
                return None
            record = host.window[0].record
            origin = urls.origin_of(record.url)
            standing, entry = await self._book.standing(host.partition, origin, now)
            if standing is Standing.ASK or entry is None:
                return _robots_lease(host, f"{origin}/robots.txt", origin, 0, record.job, record.depth, now)
            if standing is Standing.FORBID:
                if not self._forbidden(host, entry.bare, now):
                    return None
                continue
            self._rules.obey(host, entry)
            if host.clock.next_allowed > now:
                self._schedule.push(host, host.clock.next_allowed)
                return None
            if not self._refused(host, site, entry.rules.verdict(urls.path_of(record.url)), now):
                lease = self._within_budget(host, site, now)
                if lease is not None and record.job > entry.bare.job:
                    told = await self._book.told(host.partition, entry, record.job)
                    if told is not None:
                        self.changes.robots[origin] = (host.partition, told)
                    self.unlisted.append((origin, entry.rules.sitemaps, record.job, record.depth))
                return lease
        self._residents.idle(host)
        return None

    def _forbidden(self, host: Host, robots: RobotsRecord, now: Instant) -> bool:
        """Its robots.txt cannot be had: True when its first URL is dropped for it, False when the host waits."""
        if robots.reason.startswith(FailureKind.GUARD):
            # Not a matter of waiting: no request to this host is ever made.
            self._drop(host, Status.REFUSED, robots.reason, now)
            return True
        self._park(host, robots, now)
        return False

    def _refused(self, host: Host, site: SiteRecord, verdict: Verdict, now: Instant) -> bool:
        """Whether the first URL of a host is not asked for at all; it is dropped then."""
        record = host.window[0].record
        if not verdict.allowed:
            self._drop(host, Status.BLOCKED, f"robots.txt line {verdict.line}: {verdict.rule}", now)
        elif (reason := self._trap(host, site, record)) is not None:
            self._drop(host, Status.REFUSED, reason, now)
        elif _never_had(record) and self._budget_wait(site, now) == NEVER:
            self._drop(host, Status.REFUSED, f"budget: the site has had its {site.fetched} pages", now)
        else:
            return False
        return True

    def _within_budget(self, host: Host, site: SiteRecord, now: Instant) -> Lease | None:
        """A lease for the first URL of a host; None when its site has no budget left for now."""
        until = self._budget_wait(site, now)
        if until is not None and until < NEVER:
            self._wait_for_budget(host, until, now)
            return None
        head = host.window[0]
        url, origin, hops = head.record.url, urls.origin_of(head.record.url), head.record.hops
        etag, date = validators.conditions(site.validators, head.record, now)
        return Lease(host.name, "", url, head.id, head.record, origin, False, hops, now, etag=etag, last_modified=date)

    async def _site_of(self, host: Host, now: Instant) -> SiteRecord:
        site = host.record_of_site
        if site is None:
            await self._sites.bring([(host.partition, host.site)], now)
            site = host.record_of_site = self._sites[host.site]
        return site

    def _trap(self, host: Host, site: SiteRecord, record: UrlRecord) -> str | None:
        """Why it is not asked for: it was queued before its like was known for a trap."""
        key = traps.caught(site, record.url, record.via) if site.traps and record.status is Status.PENDING else ""
        if not key:
            return None
        self._sites.changed(host.partition, site)
        return self.intake.turned_away(site, key)

    def _budget_wait(self, site: SiteRecord, now: Instant) -> Instant | None:
        """When a site may be asked, as far as budgets go. Sites are spread evenly over workers, and so are pages."""
        return budget.wait(site, self.crawled * self._config.workers, self._config.budget, now)

    def _wait_for_budget(self, host: Host, until: Instant, now: Instant) -> None:
        until = Instant(min(until, now + BUDGET_PAUSE))
        polite = host.record()
        host.clock = replace(host.clock, next_allowed=max(host.clock.next_allowed, until))
        self._back(host, now)
        self.changes.hosts[host.name] = (host.partition, polite)  # the next run may have a larger budget

    def _window_size(self) -> int:
        # A long window goes stale: with 32 entries a tenth less of the best pages comes first (bench/crawl_order.py).
        return max(2, min(8, self._config.memory.window // max(1, len(self._residents))))

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

    def _drop(self, host: Host, status: Status, reason: str, now: Instant) -> None:
        """The head of the window is not asked for."""
        head = self._consume(host)
        self._settled(head.record, status)
        before, head.record.visit = head.record.visit, Visit(now, 0, reason)
        _remember(head.record.visit, before)
        self.changes.records[head.id] = head.record

    def _settled(self, record: UrlRecord, status: Status) -> None:
        """Its status, and the progress of its job."""
        was, record.status = record.status, status
        self.staging.blocked += (status is Status.BLOCKED) - (was is Status.BLOCKED)
        if (was is Status.PENDING) != (status is Status.PENDING):
            job = self.staging.job(record.job)
            job.settled += 1 if was is Status.PENDING else -1
            page = status in (Status.FETCHED, Status.DUPLICATE) and record.is_page
            job.pages += page and was is Status.PENDING

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
        route = self._egress.route(host.name, host.site, address)
        if not self._passes(host, address, route, now) or not self._site_slot(host, now):
            self._leased -= 1
            return False
        host.slot = Instant(0.0)
        self._gates.at(address).busy = True
        self._doors.enter(route)
        lease.address, lease.route = address, route
        return True

    # -- leases back -------------------------------------------------------------------------------------------

    def settle(
        self, lease: Lease, answer: Answer, decision: Decision, visit: Visit, chance: float,
        links: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """A page lease is over: record what came of the URL, set the host's clock, put the host back.

        `links`: those of the page that nobody here had met before.
        """
        host = self._return(lease, answer, chance)
        head = self._consume(host)
        self._record(host, lease, head.record, answer, decision, visit, links)
        host.fetched += decision.status is Status.FETCHED
        self._back(host, answer.finished)

    async def settle_replayed(
        self, lease: Lease, record: UrlRecord, answer: Answer, decision: Decision, visit: Visit, chance: float,
        links: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """The same for an answer that an earlier process stored and did not live to take in: no host was leased.

        What the answer asked of us (Retry-After) is obeyed all the same.
        """
        name, _, partition = self._router.place(lease.host)
        host = await self._residents.bring(name, partition, self.changes.hosts)
        before = host.clock.next_allowed
        self._set_clock(host, answer, chance)
        host.clock = replace(host.clock, next_allowed=max(before, host.clock.next_allowed))
        self.changes.unqueued.append((partition, name, record.bucket, record.seq))
        await self._site_of(host, visit.at)
        self._record(host, lease, record, answer, decision, visit, links)
        self.changes.hosts[name] = (partition, host.record())
        self._enqueue(host)

    def _record(
        self, host: Host, lease: Lease, record: UrlRecord, answer: Answer, decision: Decision, visit: Visit,
        links: Sequence[str],
    ) -> None:  # fmt: skip
        url, before, record.visit = lease.id, record.visit, visit
        self._settled(record, decision.status)
        if decision.rename:
            record.behind = (*record.behind, record.url)
            record.url, record.hops = decision.rename, record.hops + 1
        elif decision.error:
            record.attempts += not outcomes.excused(lease, answer)
            host.failed = url
            record.trail = [*record.trail[1 - TRAIL :], Attempt(visit.at, decision.reason)]
            _remember(visit, before)
        else:
            record.attempts = 0
            record.trail.clear()
        if decision.retry_at is not None:
            record.due = decision.retry_at
            self.changes.due.append((decision.retry_at, url))
        elif record.kind == RESOURCE:
            record.due, record.behind, record.hops = Instant(0.0), (), 0  # asked for again by a page or not at all
            assert host.record_of_site is not None  # a lease was looked for, or it was brought
            budget.spent(host.record_of_site, visit.at, again=True)
            self._sites.changed(host.partition, host.record_of_site)
        elif decision.status in (Status.FETCHED, Status.DUPLICATE):
            assert host.record_of_site is not None  # a lease was looked for, or it was brought
            self.crawled += 1
            record.behind, record.hops = (), 0
            sent = lease.etag, lease.last_modified
            self.learning.visited(host.partition, host.record_of_site, url, record, before, links, sent)
        elif decision.target:
            self.learning.redirected(url, record, decision.permanent)
        elif decision.status is Status.REDIRECTED:
            self.learning.redirected(url, record, permanent=True)  # it leads nowhere that we go: asked again rarely
        self.changes.records[url] = record

    async def shown(
        self, lease: Lease, record: UrlRecord, page: Page | None, links: Sequence[str], at: Instant
    ) -> None:
        """A page was in the browser, and `page` is what came of it; `links`: those that nobody here had met before."""
        _, site, partition = self._router.place(lease.host)
        await self._sites.bring([(partition, site)], at)
        self.learning.shown(partition, self._sites[site], record, page, links, at)

    async def settle_robots(self, lease: Lease, answer: Answer, body: bytes, chance: float) -> tuple[str, ...] | None:
        """A robots.txt lease is over; returns the sitemaps it names, None when it cannot be had."""
        return await self._rules.settled(self._return(lease, answer, chance), lease, answer, body)

    async def follow_robots(self, lease: Lease, answer: Response, target: str, chance: float) -> None:
        """robots.txt moved: ask for it where it is now, in turn and at the pace of the host it is on."""
        await self._rules.moved(self._return(lease, answer, chance), lease, answer, target)

    def _return(self, lease: Lease, answer: Answer, chance: float) -> Host:
        """Give back what a lease took: the address at once, the host's clock by what the answer was."""
        host = self._residents[lease.host]
        self._leased -= 1
        if key := _gate_key(lease.site, lease.address, lease.route):
            self._doors.leave(lease.route, answer, chance)
            for other, when in self._gates.leave(key, answer.finished):
                self._schedule.push(other, when)
        self._set_clock(host, answer, chance)
        if self.region and host.record_of_site is not None and not lease.route.proxy:
            regions.measure(host.record_of_site, self.region, answer)
            self._sites.changed(host.partition, host.record_of_site)
        return host

    def _set_clock(self, host: Host, answer: Answer, chance: float) -> None:
        rules = self._config.politeness
        floor = politeness.asked_delay(rules, host.name, host.crawl_delay)
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

    def soon(self, until: Instant, most: int) -> list[HostKey]:
        """Hosts that are ready or will be by then, and whose address will not be known."""
        return [
            host.name
            for host in self._schedule.soon(until, most)
            # Behind a proxy it is the proxy that looks the name up, and nobody else may hear of it.
            if host.address_until <= until and self._egress.route(host.name, host.site) is DIRECT
        ]

    def reaches(self, address: str) -> bool:
        """Whether one of our addresses can be the source of a connection to it."""
        return self._egress.reaches(address)

    def site_at_hand(self, name: HostKey) -> SiteRecord | None:
        """What is known of the site of a host, when the host has been asked for something lately."""
        host = self._residents.get(name)
        return host.record_of_site if host is not None else None

    def wake_at(self) -> Instant:
        """When the next host may be asked; `NEVER` when none waits."""
        return self._schedule.wake_at()

    async def horizon(self) -> Instant:
        """The earliest moment at which anything at all could be done; `NEVER` when all is done."""
        if self._leased or self.changes or self._residents.overflow:
            return Instant(0.0)
        due = [when for when, _ in await self._state.due(NEVER, 1)]
        affordable = self.intake.affordable_at()
        due += [max(when, affordable) for when, _ in await self._state.revisits(self.visits_until, 1)]
        return min(self.wake_at(), self._residents.rest_ends, *due, NEVER)

    def counts(self) -> dict[str, int]:
        schedule = self._schedule
        resident = len(self._residents)
        return {"ready": schedule.ready, "waiting": schedule.waiting, "leased": self._leased, "resident": resident}


def _gate_key(site: SiteKey, address: str, route: Route) -> str:
    """What is asked one request at a time: an address, or behind a proxy, where none is known, a site."""
    return site if route.proxy else address


def _robots_lease(host: Host, url: str, origin: Origin, hops: int, job: int, depth: int, now: Instant) -> Lease:
    return Lease(host.name, "", url, UrlId(b""), None, origin, True, hops, now, job=job, depth=depth)


def _never_had(record: UrlRecord) -> bool:
    """Neither the page nor where it leads."""
    return record.change is None and record.status is Status.PENDING


def _remember(visit: Visit, before: Visit | None) -> None:
    """What we have of a page stays known when a later attempt fails."""
    if before is not None and not visit.digest:
        visit.digest, visit.simhash, visit.etag = before.digest, before.simhash, before.etag
        visit.last_modified, visit.ref = before.last_modified, before.ref
