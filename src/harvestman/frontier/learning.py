"""What a visit teaches: of the page, when to come again; of its site, whether it is worth more visits."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec

from harvestman.config import Config
from harvestman.frontier.sites import Sites
from harvestman.frontier.staging import Staging
from harvestman.model import (
    LISTING,
    Change,
    Instant,
    Page,
    Partition,
    Seconds,
    SiteRecord,
    Status,
    UrlId,
    UrlRecord,
    Visit,
)  # fmt: skip
from harvestman.policy import budget, importance, kinds, novelty, rendering, revisit, traps, validators
from harvestman.ports import Jobs

MORE = 1_000
"""New pages after which the rules are looked at again."""


class Learning:
    """See the module. Asked once for every page that came."""

    def __init__(self, sites: Sites, staging: Staging, jobs: Jobs, config: Config, rng: Random) -> None:
        self._rng = rng
        self._sites = sites
        self._staging = staging
        self._jobs = jobs
        self._config = config
        self.price = revisit.Price()
        """What a further visit must be worth; carried over restarts."""
        self._pages = 0
        self._rules = self._share = config.recrawl
        if config.recrawl.per_day:
            self._share = msgspec.structs.replace(config.recrawl, per_day=config.recrawl.per_day / config.workers)
        self.know(0)

    def know(self, pages: int) -> None:
        """How many pages there are to keep fresh: with too many for the budget even the longest wait is stretched."""
        self._pages = pages
        self._rules = revisit.affordable(self._share, pages)

    def visited(
        self, partition: Partition, site: SiteRecord, url: UrlId, record: UrlRecord, before: Visit | None,
        links: Sequence[str], sent: tuple[str, str] = ("", ""),
    ) -> None:  # fmt: skip
        """A page came; `before` is what we had of it. `record` has the new visit already.

        `sent`: the ETag and the date it was asked for with.
        """
        visit = record.visit
        assert visit is not None
        now = visit.at
        # A page that was deleted here, by age or on request, comes again without its digest.
        budget.spent(site, now, again=record.change is not None or (before is not None and bool(before.digest)))
        old, due = record.change, record.due
        change = (
            self._again(site, record, old, visit, before, sent)
            if old
            else self._first(site, record, visit, before, links)
        )
        # A visit that needed several attempts has no date of its own any more.
        previous = Seconds((due or now) - old.looked) if old else None
        record.change = change
        record.due = self._next(record, change, previous)
        if old and previous:
            self._pay(Seconds(now - old.looked), previous, Seconds(record.due - now), now)
        self._staging.changes.revisit.append((record.due, url))
        self._sites.changed(partition, site)

    def shown(
        self, partition: Partition, site: SiteRecord, record: UrlRecord, page: Page | None, links: Sequence[str],
        at: Instant,
    ) -> None:  # fmt: skip
        """A page was in the browser: was that worth it, and is it new?"""
        render = record.render
        assert render is not None
        more = page is not None and rendering.gained(render.text, render.links, len(page.text), len(page.links))
        site.render = rendering.learn(site.render, more)
        if page is not None and not render.done:
            traps.learn(site, record.url, page.simhash, False, links, at, self._config.traps)
        self._sites.changed(partition, site)

    def redirected(self, url: UrlId, record: UrlRecord, permanent: bool) -> None:
        """A URL that leads elsewhere is asked again too: rarely when it says that it will for good."""
        visit = record.visit
        assert visit is not None
        wait = self._rules.longest if permanent else self._jobs.get(record.job).ttl or self._rules.docs
        record.change, record.due = None, Instant(visit.at + wait)
        self._staging.changes.revisit.append((record.due, url))

    def _first(
        self, site: SiteRecord, record: UrlRecord, visit: Visit, before: Visit | None, links: Sequence[str]
    ) -> Change:
        """Is the page new, and is there an end to pages like it?"""
        rules = self._config
        if self._pages % MORE == 0:
            self.know(self._pages)
        self._pages += 1
        copy = record.status is Status.DUPLICATE
        if before is None or not before.digest:  # adopted by another job: it would be found to be like itself
            traps.learn(site, record.url, visit.simhash, copy, links, visit.at, rules.traps)
        if not site.flagged:
            site.flagged = novelty.farm(site, rules.budget)
        kind = "blog" if record.kind == LISTING else kinds.page_kind(record.url, record.kind)
        return revisit.prior(kind, rules.recrawl, visit.at)

    def _again(
        self, site: SiteRecord, record: UrlRecord, old: Change, visit: Visit, before: Visit | None,
        sent: tuple[str, str],
    ) -> Change:  # fmt: skip
        """Has it changed since?"""
        changed = before is not None and revisit.significant(before.digest, visit.digest, before.simhash, visit.simhash)
        if before is not None:
            site.validators = validators.learned(site.validators, sent, before, visit, changed)
        if before is not None and not changed:
            # Compared with the last real change, or small edits would creep past the limit unseen.
            visit.simhash = before.simhash
        if record.modified:
            told = site.dated, site.truthful, record.modified, old.looked, changed
            site.dated, site.truthful = revisit.checked(*told)
            record.modified = Instant(0.0)
        return revisit.observed(old, changed, visit.at)

    def _next(self, record: UrlRecord, change: Change, previous: Seconds | None) -> Instant:
        ttl = self._jobs.get(record.job).ttl
        if ttl:
            return Instant(change.looked + ttl)
        rules, price = self._rules, self.price.value
        weight, chance = self.weight(record), self._rng.random()
        return revisit.next_visit(change, weight, price, rules, chance, previous)

    def _pay(self, waited: Seconds, previous: Seconds, planned: Seconds, now: Instant) -> None:
        """Learn the price from what a further visit cost and what the page asks for now."""
        self.price = self.price.after(waited, previous, planned, now, self._rules.per_day)

    @staticmethod
    def weight(record: UrlRecord) -> float:
        """What a fresh copy of a page is worth, in average pages."""
        return importance.rank(record.cash, record.kind == "seed")

    def sooner(self, record: UrlRecord, change: Change, trusted: float, now: Instant) -> Instant:
        """When a page is due after its site said that it changed (`record.modified`): never later than before."""
        weight, price, rules = self.weight(record), self.price.value, self._rules
        if rules.policy == "double":  # its next wait is made from this one
            return record.due
        return revisit.lastmod_due(change, record.due, record.modified, trusted, weight, price, rules, now)
