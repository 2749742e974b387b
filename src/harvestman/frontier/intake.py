"""Links in: those nobody has seen are queued by how urgent they are, those we know may become more urgent.

A link is told of at first sight and again each time its importance has doubled (`policy.importance`), so what happens
here is rare enough to look at the URL's record.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from harvestman.config import Config
from harvestman.frontier.learning import Learning
from harvestman.frontier.residents import Residents
from harvestman.frontier.routing import Routed, Router
from harvestman.frontier.seen import Seen
from harvestman.frontier.sites import Sites
from harvestman.frontier.staging import Staging
from harvestman.model import (
    ANSWER,
    LISTING,
    MENTION,
    RESOURCE,
    Discovery,
    FailureKind,
    HostKey,
    Instant,
    SiteRecord,
    Status,
    UrlId,
    UrlRecord,
    Visit,
)  # fmt: skip
from harvestman.policy import budget, outcomes, revisit, traps, urgency
from harvestman.policy.blocklist import Which
from harvestman.policy.guard import Guard
from harvestman.policy.urls import host_of
from harvestman.ports import Jobs, State

AT_ONCE = 1_000
"""URLs that fall due and are queued in one go."""
SAME = 0.01
"""Seconds: State keeps dates to the millisecond."""


class Intake:
    """See the module. It stages; `Frontier` commits."""

    def __init__(
        self, state: State, seen: Seen, sites: Sites, router: Router, residents: Residents, staging: Staging,
        learning: Learning, jobs: Jobs, config: Config,
    ) -> None:  # fmt: skip
        self._state = state
        self._seen = seen
        self._sites = sites
        self._router = router
        self._residents = residents
        self._staging = staging
        self._learning = learning
        self._jobs = jobs
        self._config = config
        self._guard = Guard(config.allow, config.ports)
        self.blocked: Which | None = None
        """What was taken down (`harvestman takedown`) and is never asked for again."""
        self.trapped: dict[str, int] = {}
        """URLs refused as part of a trap, by its name."""
        self._spendable = 1.0
        self._filled = Instant(0.0)
        self._led_on: list[Routed] = []

    # -- links -------------------------------------------------------------------------------------------------

    async def add(self, found: Iterable[Routed], now: Instant) -> int:
        """Stage what the links change; returns how many of them nobody had seen before."""
        candidates: dict[UrlId, Routed] = {}
        mentions: list[Routed] = []
        for routed in found:
            if routed.found.kind == MENTION:
                mentions.append(routed)
                continue
            other = candidates.setdefault(routed.id, routed)
            if (other.found.job, other.found.cash) < (routed.found.job, routed.found.cash):
                candidates[routed.id] = routed
        staged = self._staging.changes.records
        known = {url: staged[url] for url in candidates if url in staged}
        new, stored = await self._seen.sort([url for url in candidates if url not in known])
        known.update(stored)
        await self._sites.bring({(each.partition, each.site) for each in chain(candidates.values(), mentions)}, now)
        for mention in mentions:
            self._credit(self._sites[mention.site], mention, 0.0)
        for url in new:
            self._stage(url, candidates[url], now)
        for url, record in known.items():
            self._met_again(url, self._held(url, candidates[url].host) or record, candidates[url], now)
        return len(new)

    def _held(self, url: UrlId, name: HostKey) -> UrlRecord | None:
        """The record of a URL that is in its host's window or being asked for: there it lives, State has a copy."""
        host = self._residents.get(name)
        return host.held(url) if host is not None else None

    async def at_hand(self, url: UrlId, name: HostKey) -> UrlRecord | None:
        """The record of a URL as it is now, to be changed and staged."""
        found = self._staging.changes.records.get(url) or self._held(url, name)
        return found if found is not None else (await self._state.records([url]))[0]

    def _stage(self, url: UrlId, routed: Routed, now: Instant) -> None:
        found = routed.found
        site = self._sites[routed.site]
        self._credit(site, routed, found.cash)
        record = UrlRecord(
            found.url, Status.PENDING, found.depth, 0, 0, now, found.via, found.hops, kind=found.kind, job=found.job,
            cash=found.cash, modified=found.modified, behind=found.behind,
        )  # fmt: skip
        changes, job = self._staging.changes, self._staging.job(found.job)
        changes.new.append(url)
        job.discovered += 1
        refusal = None if self.blocked is None else self.blocked.refusal(found.url)
        refusal = refusal or self._closed_port(found.url) or self._trap(site, routed, now)
        if refusal is None:
            record.bucket = self.bucket(record, site, 1.0)
            self._staging.queue(routed.partition, routed.host, url, record, now)
        else:
            record.status, record.visit = Status.REFUSED, Visit(now, 0, refusal)
            changes.records[url] = record
            job.settled += 1

    def _is_blocked(self, url: str) -> bool:
        return self.blocked is not None and self.blocked.of(url) is not None

    def _closed_port(self, url: str) -> str | None:
        """Why it is not even queued: no address could make its port one that may be asked."""
        reason = self._guard.port_refusal(url)
        return None if reason is None else f"{FailureKind.GUARD}: {reason}"

    def _opened(self, record: UrlRecord) -> bool:
        """Whether the guard refused it and may not any more: what it stands for is said by the settings of a run."""
        refused = record.visit is not None and record.visit.reason.startswith(FailureKind.GUARD)
        return refused and self._closed_port(record.url) is None

    def _trap(self, site: SiteRecord, routed: Routed, now: Instant) -> str | None:
        """Why it is not even queued."""
        found, rules = routed.found, self._config.traps
        name = traps.refusal(found.url, rules)
        if name is not None and not traps.refused(site, name, found.url, now).pardoned:
            self._sites.changed(routed.partition, site)
            return self.refused(name, traps.shape_of(found.url))
        key = traps.caught(site, found.url, found.via) if site.traps else ""
        if not key:
            return None
        self._sites.changed(routed.partition, site)
        return self.turned_away(site, key)

    def turned_away(self, site: SiteRecord, key: str) -> str:
        """Count a URL of a trap that is stopped; the reason that is kept with the URL, by which a pardon finds it."""
        return self.refused(traps.turned_away(site, key, self._config.budget).name, key)

    def refused(self, name: str, key: str) -> str:
        self.trapped[name] = self.trapped.get(name, 0) + 1
        return f"trap: {name} {key}"

    def _credit(self, site: SiteRecord, routed: Routed, cash: float) -> None:
        """What a link from elsewhere does for a site. Written when it matters: new linkers, a doubled sum."""
        found = routed.found
        if found.kind == "seed":
            if not site.vouched:
                site.vouched = True
                self._sites.changed(routed.partition, site)
            return
        linker = self._router.place(host_of(found.via))[1] if found.via.startswith("http") else site.site
        if linker == site.site:
            return
        sketch, before = budget.linked(site.linkers, budget.linker(linker)), site.cash
        site.cash += cash
        if sketch != site.linkers or int(before).bit_length() != int(site.cash).bit_length():
            site.linkers = sketch
            self._sites.changed(routed.partition, site)

    def bucket(self, record: UrlRecord, site: SiteRecord, need: float) -> int:
        """How urgent a URL is; `need`: how much our copy needs a new look."""
        if record.kind == RESOURCE:
            return 0  # a page waits for it, and it costs one request
        job = self._jobs.get(record.job)
        return urgency.bucket(record, site, job, need, self._config)

    # -- links we know -----------------------------------------------------------------------------------------

    def _met_again(self, url: UrlId, record: UrlRecord, routed: Routed, now: Instant) -> None:
        found = routed.found
        site = self._sites[routed.site]
        if found.kind == RESOURCE:
            self._asked(url, record, routed, site, now)
            return
        self._credit(site, routed, max(0.0, found.cash - record.cash))
        if record.kind == RESOURCE:  # a page links to it: it is one itself
            if self._is_blocked(record.url):
                return
            record.kind = found.kind
            self._adopt(url, record, routed, site, now)
            return
        if target := outcomes.leads_to(record, now):
            self._lead_on(url, record, found, target)
            return
        if found.behind and record.status is Status.PENDING and not record.behind:
            record.behind = found.behind
            self._staging.changes.records[url] = record
        if found.job > record.job and (record.status is not Status.REFUSED or self._opened(record)):
            self._adopt(url, record, routed, site, now)
            return
        if found.cash > record.cash:
            record.cash = found.cash
            self._staging.changes.records[url] = record
            if record.status is Status.PENDING and not record.due:
                self._promote(url, record, routed, site, now)
        if found.modified > record.modified and record.change is not None:
            self._bring_forward(url, record, found, site, now)

    def _asked(self, url: UrlId, record: UrlRecord, routed: Routed, site: SiteRecord, now: Instant) -> None:
        """A page wants it as a resource: told at once if we have it, or know that it cannot be had.

        While it is under way nothing is said: the page asks again.
        """
        found, visit = routed.found, record.visit
        if record.status is Status.PENDING or visit is None:
            return
        lost = record.status is Status.FETCHED and visit.ref is None  # deleted since, by age or on request
        stale = record.kind == RESOURCE and (visit.at < found.modified or lost)
        unread = record.kind != RESOURCE and visit.reason.startswith(FailureKind.UNWANTED)
        if (stale or unread) and not self._is_blocked(record.url):
            record.kind = RESOURCE
            self._adopt(url, record, routed, site, now)
            return
        # What a duplicate has is stored once, with the other URL.
        had = visit.code > 0 and record.status not in (Status.REFUSED, Status.DUPLICATE)
        ref = visit.ref if had else None
        at = max(visit.at, found.modified)  # a page that we have is as new as it is to be had
        told = Discovery(found.via, found.depth, found.url, ANSWER, job=found.job, modified=at, ref=ref)
        self._led_on.append(self._router.route(told))

    def _lead_on(self, url: UrlId, record: UrlRecord, found: Discovery, target: str) -> None:
        """A link to a permanent redirect counts for where it leads: for its importance, and for a newer job."""
        newer = found.job > record.job
        if not newer and found.cash <= record.cash:
            return
        if newer:
            self._give(record, found)
            self._staging.job(found.job).settled += 1
        record.cash = max(record.cash, found.cash)
        self._staging.changes.records[url] = record
        kind = LISTING if record.kind == LISTING else "redirect"
        job, routed = self._jobs.get(found.job), self._router.route(
            Discovery(
                target, found.depth, record.url, kind, found.hops + 1, found.job, found.cash,
                behind=(*found.behind, record.url),
            )
        )  # fmt: skip
        wanted = self._jobs.scope(found.job).admits(target, routed.host, routed.site)
        if wanted and found.depth <= job.max_depth and routed.found.hops <= self._config.limits.max_hops:
            self._led_on.append(routed)

    def led_on(self) -> list[Routed]:
        """The links that permanent redirects have made of others: theirs to be routed, once."""
        taken, self._led_on = self._led_on, []
        return taken

    def _promote(self, url: UrlId, record: UrlRecord, routed: Routed, site: SiteRecord, now: Instant) -> None:
        bucket = self.bucket(record, site, 1.0)
        if bucket < record.bucket and self._take_out(url, record, routed):
            record.bucket = bucket
            self._staging.queue(routed.partition, routed.host, url, record, now)

    def _take_out(self, url: UrlId, record: UrlRecord, routed: Routed) -> bool:
        """Out of its host's queue; False when it is being asked for right now."""
        host = self._residents.get(routed.host)
        if host is not None and host.under_way(url) is not None:
            return False
        if host is not None:
            host.take_out(url)
        self._staging.changes.unqueued.append((routed.partition, routed.host, record.bucket, record.seq))
        return True

    def _adopt(self, url: UrlId, record: UrlRecord, routed: Routed, site: SiteRecord, now: Instant) -> None:
        """A newer job wants it too: it is asked for again, with that job's depth, so that its links are followed."""
        changes, host = self._staging.changes, self._residents.get(routed.host)
        under_way = host.under_way(url) if host is not None else None
        if under_way is not None:
            # The answer that is coming will do, if it is read: a further visit is made a first one.
            self._reopen(under_way, routed.found)
            changes.records[url] = under_way
            return
        self._take_out(url, record, routed)
        if record.due:
            (changes.undue if record.status is Status.PENDING else changes.unrevisit).append((record.due, url))
        if record.visit is not None:
            record.visit.etag = record.visit.last_modified = ""
        self._reopen(record, routed.found)
        record.bucket = self.bucket(record, site, 1.0)
        self._staging.queue(routed.partition, routed.host, url, record, now)

    def _reopen(self, record: UrlRecord, found: Discovery) -> None:
        """As if it had never been asked for, for a newer job."""
        self._give(record, found)
        self._staging.blocked -= record.status is Status.BLOCKED
        record.status, record.due, record.change = Status.PENDING, Instant(0.0), None

    def _give(self, record: UrlRecord, found: Discovery) -> None:
        """A URL to a job, and out of the one before."""
        if record.status is Status.PENDING:
            self._staging.job(record.job).settled += 1
        if record.render is not None and record.render.due:
            self._staging.job(record.job).unrendered -= 1
            self._staging.job(found.job).unrendered += 1
        self._staging.job(found.job).discovered += 1
        record.job, record.depth, record.via, record.hops = found.job, found.depth, found.via, found.hops
        record.behind = found.behind
        record.attempts = 0
        if found.kind == "seed":
            record.kind = "seed"
        record.cash = max(record.cash, found.cash)

    def _bring_forward(self, url: UrlId, record: UrlRecord, found: Discovery, site: SiteRecord, now: Instant) -> None:
        """A sitemap says that it changed: worth as much as the site's dates have proven to be."""
        assert record.change is not None
        record.modified = found.modified
        trusted = revisit.trust(site.dated, site.truthful)
        sooner = self._learning.sooner(record, record.change, trusted, now)
        if sooner < record.due:
            self._staging.changes.unrevisit.append((record.due, url))
            self._staging.changes.revisit.append((sooner, url))
            record.due = sooner
        self._staging.changes.records[url] = record

    # -- what falls due ----------------------------------------------------------------------------------------

    def _affordable(self, now: Instant) -> int:
        """How many further visits the budget has room for: it fills by the second and holds an hour's worth."""
        per_day = self._config.recrawl.per_day / self._config.workers
        if not per_day:
            return AT_ONCE
        since, self._filled = now - (self._filled or now), now
        self._spendable = min(max(1.0, per_day / 24), self._spendable + since * per_day / 86_400)
        return min(AT_ONCE, int(self._spendable))

    def affordable_at(self) -> Instant:
        """When the budget has room for a further visit."""
        per_day = self._config.recrawl.per_day / self._config.workers
        missing = max(0.0, 1.0 - self._spendable) if per_day else 0.0
        return Instant(self._filled + missing / per_day * 86_400) if missing else Instant(0.0)

    async def ripen(self, now: Instant, visits_until: Instant) -> None:
        """Put what is due back into the hosts' queues."""
        retries = await self._state.due(now, AT_ONCE)
        visits = await self._state.revisits(Instant(min(now, visits_until)), self._affordable(now))
        due = [(when, url, True) for when, url in retries] + [(when, url, False) for when, url in visits]
        # What has just been changed and is not committed yet is looked at in the next round.
        due = [entry for entry in due if entry[1] not in self._staging.changes.records]
        records = await self._state.records([url for _, url, _ in due]) if due else []
        places = [self._router.place(host_of(record.url)) for record in records if record is not None]
        await self._sites.bring({(partition, site) for _, site, partition in places}, now)
        for (when, url, retry), record in zip(due, records, strict=True):
            (self._staging.changes.undue if retry else self._staging.changes.unrevisit).append((when, url))
            # An entry counts only if the record agrees: the date may have been changed since.
            if record is not None and abs(record.due - when) < SAME and url not in self._staging.changes.records:
                self._ripe(url, record, now)
                self._spendable -= not retry

    def _ripe(self, url: UrlId, record: UrlRecord, now: Instant) -> None:
        host, site, partition = self._router.place(host_of(record.url))
        if record.status is Status.PENDING:
            record.due = Instant(0.0)
        else:
            record.bucket = self.bucket(record, self._sites[site], urgency.need(record, now))
        self._staging.queue(partition, host, url, record, now)
