"""How urgent one URL is, from all that is known of it, its site and its job: what `why` shows and the queues go by."""

from __future__ import annotations

from harvestman.config import Config
from harvestman.model import BUCKETS, Instant, Job, SiteRecord, UrlRecord
from harvestman.policy import novelty, priority


def need(record: UrlRecord, now: Instant) -> float:
    """How much our copy needs a new look: how likely it is stale, 1 when there is none."""
    change = record.change
    if change is None:
        return 1.0
    waited = max(0.0, now - change.looked)
    # The chance of no change in that time, over all the rates that are possible.
    return 1.0 - float((change.exposure / (change.exposure + waited)) ** change.shape)


def bucket(record: UrlRecord, site: SiteRecord, job: Job, need: float, config: Config) -> int:
    """Where it is queued. A site whose last pages brought nothing new comes last, whatever its links are worth."""
    if novelty.exhausted(site, config.traps):
        return BUCKETS - 1
    return priority.bucket(priority.score(min(1.0, record.cash), need, record.kind, record.depth, job.max_depth))
