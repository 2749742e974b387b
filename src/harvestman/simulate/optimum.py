"""How fresh a copy of a web could be kept at best: by somebody who knew every page's rate of change and importance.

A page that changes at rate r (Poisson) and is visited at frequency f, evenly, is fresh for a share of the time,
F = f/r (1 - e^(-r/f)). Under a budget the best frequencies give all pages that are visited the same marginal value
w dF/df, and leave out those that change too fast to be worth it (Cho and Garcia-Molina 2003, section 4; Azar and others
2018).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, expm1

_RATIOS = [0.001 * 1.002**step for step in range(5_300)]
"""Changes between two visits, from 0.001 to 40."""
_GAINS = [1.0 - (1.0 + x) * exp(-x) for x in _RATIOS]
"""What one more visit is worth at each, in units of weight / rate."""


@dataclass(frozen=True, slots=True)
class Known:
    """A page as one who knows everything sees it; it stands for `count` like it."""

    rate: float
    weight: float
    count: float = 1.0


def freshness(rate: float, frequency: float) -> float:
    """The share of the time that a page is fresh."""
    if frequency <= 0.0:
        return 0.0
    x = rate / frequency
    return -expm1(-x) / x if x > 1e-9 else 1.0


def best_freshness(pages: Sequence[Known], visits: float) -> float:
    """The highest weighted average freshness of these pages that so many visits a second can buy."""
    total = sum(page.weight * page.count for page in pages)
    if not total or visits <= 0.0:
        return 0.0
    low, high = 0.0, max(page.weight / page.rate for page in pages)
    for _ in range(50):
        middle = (low + high) / 2
        if _spent(pages, middle)[0] > visits:
            low = middle
        else:
            high = middle
    # Few visits buy freshness in proportion, at one price: what they bring lies between those at the two prices.
    (more, most), (less, least) = _spent(pages, low), _spent(pages, high)
    share = (visits - less) / (more - less) if more > visits else 1.0
    return (least + min(1.0, share) * (most - least)) / total


def _spent(pages: Sequence[Known], price: float) -> tuple[float, float]:
    """How many visits the pages ask for when each must bring this price, and what all of them bring."""
    visits = bought = 0.0
    for page in pages:
        frequency = _frequency(page, price)
        if frequency:
            visits += page.count * frequency
            bought += page.count * page.weight * freshness(page.rate, frequency)
    return visits, bought


def _frequency(page: Known, price: float) -> float:
    """Where one more visit brings just the price: w/r (1 - (1 + x) e^-x) = price with x = r/f."""
    wanted = price * page.rate / page.weight
    if wanted >= _GAINS[-1]:
        return 0.0
    return page.rate / _RATIOS[bisect_right(_GAINS, wanted)]
