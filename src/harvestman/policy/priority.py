"""How urgent a URL is: a score in 0..1 and the bucket it falls into."""

from __future__ import annotations

from harvestman.model import BUCKETS

SOURCE_WEIGHT = {
    "seed": 1.0,
    "redirect": 1.0,
    "sitemap": 0.9,
    "canonical": 0.8,
    "a": 0.6,
    "area": 0.5,
    "frame": 0.5,
    "refresh": 0.7,
}
BUCKET_WEIGHTS = (64.0, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0, 1.0)
"""Buckets are sampled by these, so that the lowest is slow but never starves."""


def score(authority: float, freshness_need: float, kind: str, depth: int, max_depth: int) -> float:
    """DESIGN section 4: 0.3 authority + 0.3 freshness need + 0.2 source + 0.2 depth. Breadth first falls out."""
    shallow = 1.0 - min(depth, max_depth) / max_depth if max_depth else 1.0
    return 0.3 * authority + 0.3 * freshness_need + 0.2 * SOURCE_WEIGHT.get(kind, 0.5) + 0.2 * shallow


def bucket(score: float) -> int:
    """The bucket of a score: the scores of never-seen pages (0.4 .. 1.0) are spread over all of them."""
    return min(BUCKETS - 1, max(0, int((1.0 - score) / 0.6 * BUCKETS)))


def shares(total: int, weights: tuple[float, ...] = BUCKET_WEIGHTS) -> tuple[int, ...]:
    """How many of `total` places each bucket is promised: one each, the rest in proportion to the weights."""
    whole, rest = sum(weights), max(0, total - len(weights))
    return tuple(1 + int(rest * weight / whole) for weight in weights)
