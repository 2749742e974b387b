"""What the links of a worker's pages say about other pages: OPIC-style importance, told seldom.

A fetched page shares its rank among its links ('cash', in units of an average page). Whoever met the links adds up what
they gave to each URL, and tells its owner at first sight and then whenever the sum passes a power of two; of a page
that was fetched here, whose place in the queue is past, a power of sixteen. So a link costs a dictionary entry here,
and State is asked a handful of times in the life of a URL, however often it is linked.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NewType

Grains = NewType("Grains", int)
"""Cash as a whole number: 2**20 grains are one average page."""

PAGE = Grains(1 << 20)
DAMPING = 0.85
"""The share of its cash that a page passes on, as in PageRank; the rest everybody has from the start."""
FEW = 40
"""A page with fewer links gives each no more than if it had so many: four links are no better advice than forty. What
it keeps is nobody's. Without this the cash of a URL says more about how few links its linkers had than about itself."""
WORTH_TELLING = Grains(PAGE >> 7)
"""After first sight nothing is told below this: it would hardly move anybody."""
_FETCHED = 1
"""The lowest bit of a sum, which shares leave alone."""


def rank(cash: float, seed: bool = False) -> float:
    """What a page is worth, in average pages, by the cash its in-links gave it; a seed is worth one at least."""
    worth = 1.0 - DAMPING + DAMPING * cash
    return max(1.0, worth) if seed else worth


def share(rank: float, links: int) -> Grains:
    """What each of its links gets: an even number of grains, at least 2."""
    return Grains(int(rank * PAGE / max(links, FEW)) & ~_FETCHED or 2)


class Importance:
    """The cash of links met lately, in two generations, so that forgetting costs nothing.

    It is asked before a link is even normalised to its key, and answers 0.0 for most links of a page.
    """

    __slots__ = ("_half", "_new", "_old")

    def __init__(self, capacity: int) -> None:
        self._half = max(1, capacity // 2)
        self._new: dict[str, int] = {}
        self._old: dict[str, int] = {}

    @property
    def met(self) -> Container[str]:
        """URLs met lately; not all that are remembered."""
        return self._new

    @property
    def remembered(self) -> int:
        return len(self._new) + len(self._old)

    def told(self, url: str, share: Grains) -> float:
        """Add a link's share; the cash to tell the owner of `url`, or 0.0 when there is nothing to tell.

        Integers, because whether a sum passed a power of two is then one comparison: only if its highest bit moved
        does `before ^ cash` exceed `before`. bench/crawl_order.py prints the time it takes.
        """
        new = self._new
        before = new.get(url)
        if before is None:
            return self._meet(url, share)
        new[url] = cash = before + share
        if before ^ cash <= before or cash < WORTH_TELLING:
            return 0.0
        return _grown(before, cash)

    def fetched(self, url: str) -> None:
        """The page is here: what its links are worth is told at leisure from now on."""
        self._keep(url, (self._new.get(url) or self._old.get(url, 0)) | _FETCHED)

    def _meet(self, url: str, share: Grains) -> float:
        """A URL that is new, or was met a generation ago."""
        before = self._old.get(url, 0)
        cash = before + share
        self._keep(url, cash)
        if not before:
            return cash / PAGE
        if before ^ cash <= before or cash < WORTH_TELLING:
            return 0.0
        return _grown(before, cash)

    def _keep(self, url: str, cash: int) -> None:
        new = self._new
        new[url] = cash
        if len(new) >= self._half:
            self._old, self._new = new, {}


def _grown(before: int, cash: int) -> float:
    """What to tell of a sum that passed a power of two."""
    if cash & _FETCHED and before.bit_length() + 3 >> 2 == cash.bit_length() + 3 >> 2:
        return 0.0
    return cash / PAGE
