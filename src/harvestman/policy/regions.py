"""Which region a site belongs to: by its name, by the address of its servers, by how fast they answer from where.

Names come first: an ending is the operator's word, and known before a site is ever asked. Addresses and times are known
only afterwards, so they are put down while crawling (`measure`), judged between runs (`choose`), and kept in a `Table`
that stays as it is while a crawl runs: every worker knows the one owner of every site at every moment, without asking.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Final, Literal, TypeAlias

import xxhash

from harvestman.config import Region
from harvestman.errors import ConfigError
from harvestman.model import (
    Answer,
    Failure,
    FailureKind,
    HostKey,
    Reach,
    Response,
    Seconds,
    SiteKey,
    SiteRecord,
)
from harvestman.policy.sites import site_of

ENOUGH: Final = 8
"""Answers after which a time is believed."""
BETTER: Final = 0.8
"""A site moves to where it answers within this part of the time: with less to gain it would go back and forth."""
UNREACHED: Final = Seconds(60.0)
"""What an answer counts that never came: from elsewhere it may come, and a trial must have an end."""
STEP: Final = 0.05
"""How far one answer moves the estimate, in the long run."""

Why: TypeAlias = Literal["tld", "address", "latency", "trial", "default"]


@dataclass(frozen=True, slots=True)
class Choice:
    """A region, and by which rule."""

    region: int
    why: Why


class Rules:
    """What the settings say, ready to be asked. Raises ConfigError for an ending that lies within a site."""

    def __init__(self, regions: Sequence[Region]) -> None:
        self.names = tuple(region.name for region in regions)
        self.slow = tuple(region.slow for region in regions)
        self._endings = {
            _whole(ending.lower()): number for number, region in enumerate(regions) for ending in region.tlds
        }
        self._networks: dict[tuple[int, int], dict[int, int]] = {}
        """(IP version, bits that do not count) -> those that do -> region."""
        for number, region in enumerate(regions):
            for text in region.networks:
                network = ip_network(text)
                loose = network.max_prefixlen - network.prefixlen
                block = self._networks.setdefault((network.version, loose), {})
                block[int(network.network_address) >> loose] = number

    def by_ending(self, site: SiteKey) -> int | None:
        """By the longest ending that fits: 'example.co.uk', then 'co.uk', then 'uk'."""
        if not self._endings:
            return None
        ending = str(site)
        while ending:
            if (found := self._endings.get(ending)) is not None:
                return found
            ending = ending.partition(".")[2]
        return None

    def by_address(self, address: str) -> int | None:
        """By the smallest network that the address lies in."""
        if not address or not self._networks:
            return None
        ip = ip_address(address)
        for version, loose in sorted(self._networks):
            found = self._networks[version, loose].get(int(ip) >> loose) if version == ip.version else None
            if found is not None:
                return found
        return None


def _whole(ending: str) -> str:
    if (site := site_of(HostKey(ending))) != ending:
        raise ConfigError(f"regions: tlds {ending!r} is a part of the site {site!r}, and a site is in one region")
    return ending


class Table:
    """The sites that were given to a region for what was learned of them: eight bytes each, whatever their names.

    A site whose hash (56 bits) is that of another has its region too: the same for every worker, so no harm is done.
    """

    def __init__(self, rows: Iterable[tuple[str, int]] = ()) -> None:
        self._rows = array("Q", sorted(_hash(site) << 8 | region for site, region in rows))

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, site: SiteKey) -> int | None:
        if not self._rows:
            return None
        wanted = _hash(site)
        place = bisect_left(self._rows, wanted << 8)
        if place < len(self._rows) and self._rows[place] >> 8 == wanted:
            return self._rows[place] & 0xFF
        return None


def _hash(site: str) -> int:
    return xxhash.xxh3_64_intdigest(site.encode()) >> 8


class Assignment:
    """The region of every site there is or will be, as a number: 0 is the first, which has what no rule names."""

    def __init__(self, rules: Rules, table: Table) -> None:
        self._rules = rules
        self._table = table

    def __call__(self, site: SiteKey) -> int:
        named = self._rules.by_ending(site)
        return (self._table.get(site) or 0) if named is None else named


# -- what is learned -------------------------------------------------------------------------------------------------


def measure(site: SiteRecord, region: str, answer: Answer) -> None:
    """Put down where a site is and how long it took to answer, seen from a region."""
    match answer:
        case Response():
            site.address, seconds = answer.address, Seconds(answer.first_byte - answer.started)
        case Failure(kind=FailureKind.CONNECT | FailureKind.TIMEOUT):
            seconds = UNREACHED
        case _:
            return
    site.reach[region] = reached(site.reach.get(region), seconds)


def reached(before: Reach | None, seconds: Seconds) -> Reach:
    """The median follows each answer by a step, so that one that hangs counts as one and not as a thousand."""
    if before is None:
        return Reach(seconds, 1)
    step = 1 + max(STEP, 1 / (before.answers + 1))
    middle = max(before.seconds / step, min(before.seconds * step, seconds))
    return Reach(Seconds(middle), before.answers + 1)


def choose(site: SiteRecord, home: int, rules: Rules) -> Choice:
    """Where a site should be that is in region `home` now."""
    if (named := rules.by_ending(site.site)) is not None:
        return Choice(named, "tld")
    if (near := rules.by_address(site.address)) is not None:
        return Choice(near, "address")
    return _by_latency(site.reach, home, rules)


def _by_latency(reach: Mapping[str, Reach], home: int, rules: Rules) -> Choice:
    """Slow here? Then each other region has one trial, and the fastest keeps it."""
    known = {number: reach[name].seconds for number, name in enumerate(rules.names) if _told(reach.get(name))}
    if home not in known:
        return Choice(home, "trial" if known else "default")
    best = min(known, key=lambda number: (known[number], number))
    if known[best] < BETTER * known[home]:
        return Choice(best, "latency")
    untried = next((number for number in range(len(rules.names)) if number not in known), None)
    if untried is not None and 0 < rules.slow[home] < known[home]:
        return Choice(untried, "trial")
    return Choice(home, "latency" if home or len(known) > 1 else "default")


def _told(reach: Reach | None) -> bool:
    return reach is not None and reach.answers >= ENOUGH
