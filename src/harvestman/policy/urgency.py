"""How urgent one URL is, from all that is known of it, its site and its job: what `why` shows and the queues go by."""

from __future__ import annotations

from harvestman.config import Config
from harvestman.model import BUCKETS, Instant, Job, SiteRecord, UrlRecord
from harvestman.policy import budget, kinds, novelty, priority, traps


def need(record: UrlRecord, now: Instant) -> float:
    """How much our copy needs a new look: how likely it is stale, 1 when there is none."""
    change = record.change
    if change is None:
        return 1.0
    waited = max(0.0, now - change.looked)
    # The chance of no change in that time, over all the rates that are possible.
    return 1.0 - float((change.exposure / (change.exposure + waited)) ** change.shape)


def parts(record: UrlRecord, site: SiteRecord, job: Job, need: float, config: Config) -> priority.Parts:
    """The score, by what it is made of; `need`: how much our copy needs a new look, 1 for a page never seen."""
    esteem = priority.authority(site.cash, budget.linkers(site.linkers), site.fetched, record.cash)
    near = priority.near(record.depth, job.max_depth, priority.steps(record.url))
    kind = kinds.page_kind(record.url, record.kind)
    return priority.score(esteem, need, record.kind, near, kind, config.priority)


def bucket(record: UrlRecord, site: SiteRecord, job: Job, need: float, config: Config) -> int:
    """Where it is queued.

    Last comes, whatever its links are worth, a site whose last pages brought nothing new, and a URL that looks like
    part of a trap: while it waits, the pages before it show whether it is one.
    """
    last = BUCKETS - 1
    if novelty.exhausted(site, config.traps):
        return last
    earned = priority.explicit(job.priority, priority.bucket(parts(record, site, job, need, config).total))
    return last if earned < last and record.change is None and traps.suspect(record.url) else earned
