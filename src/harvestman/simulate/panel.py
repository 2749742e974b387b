"""A sample of the pages that were fetched, to measure freshness on: bounded, unbiased, and the same for the same web.

A page is in when its lot (a hash of its URL) times the threshold is below its weight; when the panel is full the
threshold doubles and about half of it goes. So pages of great weight are all in, and each of the others stands for as
many as its chance of being in says (Horvitz and Thompson).
"""

from __future__ import annotations

from dataclasses import dataclass

from harvestman.simulate.chance import draw
from harvestman.simulate.model import Truth
from harvestman.simulate.optimum import Known


@dataclass(slots=True)
class Member:
    lot: float
    weight: float
    truth: Truth
    stale: float
    """When the page changes, or changed, for the first time after our last look at it."""


class Panel:
    """See the module. With `weighted`, a page counts by its importance, else all count alike."""

    def __init__(self, capacity: int, weighted: bool) -> None:
        self._capacity = capacity
        self._weighted = weighted
        self._members: dict[str, Member] = {}
        self._threshold = 1.0

    def __len__(self) -> int:
        return len(self._members)

    def saw(self, url: str, truth: Truth, now: float) -> None:
        """A page was fetched, or not modified, at this moment."""
        member = self._members.get(url)
        if member is not None:
            member.stale = truth.changes(now)
            return
        lot, weight = draw(f"panel {url}"), truth.weight if self._weighted else 1.0
        if lot * self._threshold < weight:
            self._members[url] = Member(lot, weight, truth, truth.changes(now))
            while len(self._members) > self._capacity:
                self._thin()

    def _thin(self) -> None:
        self._threshold *= 2
        kept = {url: each for url, each in self._members.items() if each.lot * self._threshold < each.weight}
        self._members = kept

    def fresh(self, now: float) -> float:
        """The share of what we have, by count or by importance, that is as the web has it."""
        total = good = 0.0
        for member in self._members.values():
            counted = max(member.weight, self._threshold)
            total += counted
            if now < member.stale:
                good += counted
        return good / total if total else 0.0

    def known(self) -> list[Known]:
        """The panel as one who knows everything would see it."""
        return [
            Known(each.truth.rate, each.weight, max(1.0, self._threshold / each.weight))
            for each in self._members.values()
        ]
