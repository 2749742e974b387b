"""Near-duplicates: which two pages are, and which of the two stands for both.

A page is a near-duplicate of another when their SimHashes hardly differ and their shingles are mostly the same. Bits of
the SimHash that the text hardly decided (`Print.weak`) are left out: a word more or less turns them over. What the
remaining 44 cannot tell from chance, among millions of pages, a sample of the shingles does. decisions/0014 has the
figures; docs/near_duplicates.md says it at length.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from harvestman.model import Instant, SiteKey, SiteRecord
from harvestman.policy.urls import key

FARTHEST: Final = 6
"""Firm bits that may differ."""
SHARED: Final = 0.5
"""The part of the sampled shingles that two pages must have in common."""


class Print(NamedTuple):
    """The fingerprint of a text (`pages.simhash.fingerprint`)."""

    simhash: int
    weak: int
    sample: bytes


@dataclass(slots=True, frozen=True)
class Copy:
    """One of two pages that say nearly the same."""

    url: str
    at: Instant
    canonical: str
    """What it says its own address is; empty when it does not say."""
    site: SiteKey


def distance(print: Print, simhash: int) -> int:
    """How many of the firm bits differ."""
    return ((print.simhash ^ simhash) & ~print.weak).bit_count()


def neighbours(print: Print, simhashes: Iterable[int]) -> list[tuple[int, int]]:
    """Those that are near enough: (how far, SimHash). The hot loop: it runs for every two pages of a group."""
    own, firm = print.simhash, ~print.weak
    return [(far, other) for other in simhashes if (far := ((own ^ other) & firm).bit_count()) <= FARTHEST]


def shared(one: bytes, other: bytes) -> float:
    """The part of two samples that is the same; an empty bin (0) of both says nothing."""
    said = sum(a != 0 or b != 0 for a, b in zip(one, other, strict=True))
    same = sum(a == b != 0 for a, b in zip(one, other, strict=True))
    return same / said if said else 0.0


def alike(print: Print, simhash: int, sample: bytes) -> bool:
    """Whether a text is a near-duplicate of another, of which we know SimHash and sample."""
    return distance(print, simhash) <= FARTHEST and shared(print.sample, sample) >= SHARED


def stands(known: Copy, new: Copy, sites: dict[SiteKey, SiteRecord]) -> bool:
    """Whether the page we know stands for both; else the new one does.

    The one that the other names as canonical; if neither names the other, or each does, the one whose site others
    think more of; if that is the same, the one that was seen first.
    """
    named, names = _names(new, known), _names(known, new)
    if named != names:
        return named
    if known.site != new.site:
        before, after = esteem(sites.get(known.site)), esteem(sites.get(new.site))
        if before != after:
            return before > after
    return known.at <= new.at


def _names(page: Copy, other: Copy) -> bool:
    return page.canonical != "" and key(page.canonical) == key(other.url) != key(page.url)


def esteem(site: SiteRecord | None) -> tuple[int, float]:
    """The authority of a site: how many others link to it (as its sketch tells), then how important those links are."""
    return (site.linkers.bit_count(), site.cash) if site else (0, 0.0)
