"""What is new about a page, judged against the last pages of its site by SimHash.

Runs once per page seen for the first time; a visit to a page we have says nothing about its site and is not judged.
CPU time of `novel` with 50 pages remembered: 3.5 us for a new page, 1.2 us for one that was met ten pages ago.
"""

from __future__ import annotations

from typing import Final

from harvestman.config import Budget, Traps
from harvestman.model import SiteRecord

EVERY: Final = "*"
"""The shape of all URLs of a site: its entry in `SiteRecord.shapes` counts the dull pages in a row."""
SAME: Final = "same content"
"""The trap of pages that have nothing in common but their text."""
NEAR: Final = 3
"""SimHashes that differ in no more bits are of the same text."""
LOOSE: Final = 6
"""The same for URLs that look like a trap's: a month's name in a short text makes more of a difference than 3 bits."""
LOOKS: Final = 16
"""How many of those are remembered, apart from the others: between two of them many ordinary pages may come."""
ENOUGH: Final = 200
"""Pages a site has shown before it can be called a farm: with fewer, one trap would look like one."""


def novel(site: SiteRecord, simhash: int, duplicate: bool, rules: Traps, suspicious: bool = False) -> bool:
    """Whether a page is unlike the last different ones of its site; the site remembers it.

    A page whose URL looks like a trap's is compared with its like too. A page without text that is no copy either (a
    picture) gets the benefit of the doubt and counts for nothing.
    """
    known, room, near = (site.looks, LOOKS, LOOSE) if suspicious else (site.recent, rules.novelty_pages, NEAR)
    at = alike(known, simhash, near) if simhash else -1
    if at >= 0:
        known.append(known.pop(at))  # what comes again and again stays in mind
    if at >= 0 or duplicate or (suspicious and simhash and alike(site.recent, simhash, near) >= 0):
        site.dull += 1
        site.shapes[EVERY] = site.shapes.get(EVERY, 0) + 1
        return False
    if simhash:
        site.novel += 1
        site.shapes.pop(EVERY, None)
        known.append(simhash)
        if len(known) > room:
            del known[:-room]
    return True


def alike(recent: list[int], simhash: int, near: int = NEAR) -> int:
    """Where in a list there is nearly this SimHash; -1 when it is nowhere."""
    for other in recent:  # the hot loop: counting along would cost half as much again
        if (other ^ simhash).bit_count() <= near:
            return recent.index(other)
    return -1


def exhausted(site: SiteRecord, rules: Traps) -> bool:
    """Whether the last pages of a site brought nothing new, so that all others come first."""
    return site.shapes.get(EVERY, 0) >= rules.novelty_pages


def share(site: SiteRecord) -> float:
    """The part of a site's pages that were new, 1 before anything is known."""
    return (site.novel + 1) / (site.novel + site.dull + 1)


def farm(site: SiteRecord, rules: Budget, spared: bool = False) -> str:
    """What to flag a content farm with; empty for any other site.

    `spared`: the URLs stopped for having the same content count as if they had been fetched. That is enough for a flag,
    which somebody will look at, and not for less budget.
    """
    dull, pages = site.dull, site.novel + site.dull
    left = sum(trap.refused for trap in site.traps.values() if trap.name == SAME) if spared else 0
    if pages + left < ENOUGH or dull + left < rules.farm * (pages + left):
        return ""
    more = f", and {left:,} like them were not asked for" if left else ""
    return f"content farm: {dull:,} of {pages:,} pages say what others of the site say{more}"
