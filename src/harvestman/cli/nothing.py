"""Why a crawl that fetched nothing fetched nothing: what became of its first seeds, in words."""

from __future__ import annotations

from itertools import islice

import msgspec

from harvestman.cli.explain import explain
from harvestman.cli.reasons import verdict
from harvestman.config import Config
from harvestman.jobs import Jobs
from harvestman.layout import Layout
from harvestman.model import Instant
from harvestman.views import View

SEEDS_SHOWN = 3


class FailedSeed(msgspec.Struct):
    """A seed from which nothing came."""

    url: str
    reason: str
    assumed_https: bool = False
    """It was given without a scheme."""


async def failed_seeds(layout: Layout, config: Config, bare: frozenset[str], now: Instant) -> list[FailedSeed]:
    """The first seeds and their fates. `bare`: those that were given without a scheme."""
    jobs = Jobs(layout)
    seeds = (seed for job in jobs.all() for seed in jobs.seeds(job.id))
    with View(layout) as view:
        return [
            FailedSeed(seed, await _fate(seed, view, config, now), seed in bare) for seed in islice(seeds, SEEDS_SHOWN)
        ]


async def _fate(url: str, view: View, config: Config, now: Instant) -> str:
    """What became of a URL, or of the one that its redirects end at."""
    found = await explain(url, view, config, now)
    words = [verdict(found, now)]
    for _ in range(config.limits.max_hops):
        target = found.visit.target if found.verdict == "redirected" and found.visit else ""
        if not target:
            break
        found = await explain(target, view, config, now)
        words.append(verdict(found, now))
    return ", which is ".join(words)


def told(seed: FailedSeed) -> list[str]:
    """Two or three lines for the summary."""
    lines = [f"  {seed.url}", f"    {seed.reason}"]
    if seed.assumed_https:
        lines.append(f"    it came without a scheme, so https was assumed: try http://{seed.url.partition('://')[2]}")
    return lines
