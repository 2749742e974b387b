"""How urgent a URL is: a score whose parts can be shown, the bucket it falls into, and how often each bucket is served.

What predicts the importance of a page nobody has fetched was measured (bench/crawl_order.py): the cash of its links,
what its site has and from how many sites, how much of the site has been taken already, and how near to the root of its
host it lies. Each tells something that the others do not; the score has them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import NamedTuple

from harvestman.config import Priority
from harvestman.model import BUCKETS
from harvestman.policy.urls import path_of

SOURCE_WEIGHT = {
    "seed": 1.0,
    "redirect": 1.0,
    "sitemap": 0.9,
    "feed": 0.9,
    "canonical": 0.8,
    "refresh": 0.7,
    "a": 0.6,
    "area": 0.5,
    "frame": 0.5,
}
LISTED = ("sitemap", "feed")
NEWS_LIKE = ("news",)
"""Not what looks like a blog: every home page does, and to boost them all was measured to cost order."""

PAGE_CASH, SITE_CASH, LINKERS, TAKEN = 0.48, 0.3, 0.33, 0.4
"""What a doubling of each adds to the logarithm of a page's expected importance; `TAKEN` is subtracted."""
LEAST, MOST = -5.0, -1.7
"""The ends of the scale of authority, as such logarithms."""
ROOT = 0.55
"""How much nearness to the root of the host counts against nearness to a seed."""

BOUNDS = (0.793, 0.786, 0.779, 0.771, 0.764, 0.757, 0.749)
"""The least score of each bucket but the last. Of the links of a crawl nine in ten and more score less than all
of them: among those, first come, first served, from all hosts alike, was measured to be a better order."""
BUCKET_WEIGHTS = (128.0, 64.0, 32.0, 16.0, 8.0, 4.0, 2.0, 2.0)
"""Buckets are sampled by these, so that the lowest is slow but never starves."""

HIGH, LOW = 1, BUCKETS - 2
"""The least urgent bucket of what was given a high priority, the most urgent of what was given a low one."""


class Parts(NamedTuple):
    """A score, by what it is made of."""

    authority: float
    freshness: float
    source: float
    depth: float
    boosts: float

    @property
    def total(self) -> float:
        return sum(self)


def authority(site_cash: float, linkers: float, taken: int, page_cash: float) -> float:
    """What others think of a page, in 0..1.

    `site_cash`: what links from other sites brought to its site; `linkers`: how many sites they are on; `taken`: pages
    of the site that we have, for the best of a site is found first; `page_cash`: what links gave to the page itself.
    """
    expected = (
        PAGE_CASH * log2(max(page_cash, 1e-6))
        + SITE_CASH * log2(1.0 + site_cash)
        + LINKERS * log2(1.0 + linkers)
        - TAKEN * log2(1.0 + taken)
    )
    return min(1.0, max(0.0, (expected - LEAST) / (MOST - LEAST)))


def steps(url: str) -> int:
    """How far a URL is from the root of its host: the segments of its path, and one more for a query."""
    path, asked, _ = path_of(url).partition("?")
    path = path.strip("/")
    return (path.count("/") + 1 if path else 0) + bool(asked)


def near(depth: int, max_depth: int, steps: int) -> float:
    """How near a page is to a seed and to the root of its host, in 0..1. Breadth first falls out."""
    shallow = 1.0 - min(depth, max_depth) / max_depth if max_depth else 1.0
    return (1.0 - ROOT) * shallow + ROOT / (1 + steps)


def score(authority: float, freshness: float, kind: str, near: float, page: str, weights: Priority) -> Parts:
    """DESIGN section 4. `freshness`: how much our copy needs a new look; `page`: news, blog, docs or other."""
    boosts = (weights.news_boost if page in NEWS_LIKE else 0.0) + (weights.sitemap_boost if kind in LISTED else 0.0)
    return Parts(
        weights.authority * authority,
        weights.freshness * freshness,
        weights.source * SOURCE_WEIGHT.get(kind, 0.5),
        weights.depth * near,
        boosts,
    )


def bucket(score: float) -> int:
    """The bucket of a score, 0 for the highest."""
    for number, bound in enumerate(BOUNDS):
        if score >= bound:
            return number
    return BUCKETS - 1


def explicit(priority: str, bucket: int) -> int:
    """The bucket of a URL that somebody gave a priority: critical, high, normal (what its score says) or low."""
    match priority:
        case "critical":
            return 0
        case "high":
            return min(bucket, HIGH)
        case "low":
            return max(bucket, LOW)
    return bucket


def pick(filled: Sequence[int], chance: float) -> int:
    """Which of the buckets that hold something is served now."""
    left = chance * sum(BUCKET_WEIGHTS[number] for number in filled)
    for number in filled:
        left -= BUCKET_WEIGHTS[number]
        if left < 0.0:
            return number
    return filled[-1]


def shares(total: int, turn: int) -> tuple[int, ...]:
    """How many of `total` places each bucket is promised in this turn; over the turns it gets its weight's part.

    A bucket whose part is less than one place has to wait for its turn; the least urgent are given theirs first. The
    buckets are out of step, so that their turns do not fall together.
    """
    whole, left = sum(BUCKET_WEIGHTS), total
    promised = [0] * BUCKETS
    for number in range(BUCKETS - 1, 0, -1):
        rate, step = total * BUCKET_WEIGHTS[number] / whole, number / BUCKETS
        promised[number] = min(left, int((turn + 1) * rate + step) - int(turn * rate + step))
        left -= promised[number]
    promised[0] = left
    return tuple(promised)
