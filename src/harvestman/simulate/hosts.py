"""The hosts of the modelled web: how large each is, how it behaves, what its robots.txt says."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, gcd, log
from typing import TypeVar

from harvestman.model import HostKey, Instant
from harvestman.simulate.chance import draw
from harvestman.simulate.plan import DAY, START, Plan

_T = TypeVar("_T")
HOUR = 3_600.0
DIRECTORY = 8
"""Home pages link to so many hosts smaller than theirs, as a directory does: every host can be found."""
STORM = (Instant(START + 2 * HOUR), Instant(START + 26 * HOUR))
"""When the hosts of the profile `storm` are ill, all of them; the day before the storm's is two hours long."""
SHARED = 16
"""Hosts on each shared address."""


class Fate(enum.StrEnum):
    """What is wrong with a host, when something is."""

    WELL = "well"
    SLOW = "slow"
    """Seconds to the first byte; one answer in ten never comes."""
    DOWN = "down"
    """No connection for hours on end."""
    FLAPPING = "flapping"
    """Twenty minutes of each hour without connection."""
    LIMITING = "limiting"
    """In some ten-minute windows 429 or 503, most with Retry-After."""


class Robots(enum.StrEnum):
    """Its robots.txt."""

    NONE = "none"
    RULES = "rules"
    """Disallow: /private/"""
    DELAY = "delay"
    """The same, and a Crawl-delay."""
    CLOSED = "closed"
    """Disallow: /"""
    LATE = "late"
    """503 in the first hours of the simulation, rules from then on."""


class Oddity(enum.StrEnum):
    """What would lead a careless crawler astray."""

    NONE = "none"
    CALENDAR = "calendar"
    """A page for each month, for ever."""
    SESSIONS = "sessions"
    """Links carry a session id, a new one on each page."""
    FARM = "farm"
    """All pages are nearly the same."""


_FATES = {
    "clean": (),
    "mixed": ((Fate.SLOW, 0.04), (Fate.DOWN, 0.04), (Fate.FLAPPING, 0.03), (Fate.LIMITING, 0.04)),
    "wild": ((Fate.SLOW, 0.15), (Fate.DOWN, 0.15), (Fate.FLAPPING, 0.15), (Fate.LIMITING, 0.15)),
    "storm": ((Fate.SLOW, 0.25), (Fate.DOWN, 0.25), (Fate.FLAPPING, 0.25), (Fate.LIMITING, 0.25)),
}
_ROBOTS = {
    "clean": ((Robots.RULES, 0.4),),
    "mixed": ((Robots.RULES, 0.4), (Robots.DELAY, 0.05), (Robots.CLOSED, 0.02), (Robots.LATE, 0.02)),
    "wild": ((Robots.RULES, 0.4), (Robots.DELAY, 0.1), (Robots.CLOSED, 0.05), (Robots.LATE, 0.1)),
    "storm": ((Robots.RULES, 0.4), (Robots.DELAY, 0.05)),
}
_ODDITIES = {
    "clean": (),
    "mixed": ((Oddity.CALENDAR, 0.01), (Oddity.SESSIONS, 0.01), (Oddity.FARM, 0.02)),
    "wild": ((Oddity.CALENDAR, 0.1), (Oddity.SESSIONS, 0.1), (Oddity.FARM, 0.15)),
    "storm": (),
}


@dataclass(frozen=True, slots=True)
class Host:
    """One of them. Everything follows from the plan and its number."""

    number: int
    name: HostKey
    rank: int
    """1 is the largest and best known."""
    size: int
    """Pages."""
    address: str
    fate: Fate
    ill: tuple[float, float]
    """From when to when its fate holds."""
    robots: Robots
    crawl_delay: float
    oddity: Oddity


class Hosts:
    """Finds hosts by number, name and rank, without ever making a list of them."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._count = plan.hosts
        self._harmonic = log(plan.hosts) + 0.5772 + 0.5 / plan.hosts
        self._step = _coprime(plan.hosts, int(draw(f"{plan.seed} step") * plan.hosts))
        self._back = pow(self._step, -1, plan.hosts) if plan.hosts > 1 else 0
        self.at = lru_cache(maxsize=1 << 15)(self._make)

    def named(self, name: str) -> Host | None:
        """The host of this name, if there is one: s12.test, or h15.s12.test, a second host of the same site."""
        label = name.partition(".")[0]
        number = int(label[1:]) if label[1:].isdecimal() and label[1:].isascii() else self._count
        return self.at(number) if number < self._count and _name(number) == name else None

    def ranked(self, rank: int) -> Host:
        return self.at((rank - 1) * self._back % self._count)

    def size(self, rank: int) -> int:
        """Zipf: the second has half as many pages as the first, the third a third."""
        return max(1, round(self._plan.pages / (self._harmonic * rank)))

    def pages(self) -> int:
        """Those of all hosts that let crawlers in."""
        closed = (rank for rank in range(1, self._count + 1) if self._robots(self._number(rank), rank) is Robots.CLOSED)
        return sum(self.size(rank) for rank in range(1, self._count + 1)) - sum(map(self.size, closed))

    def _number(self, rank: int) -> int:
        return (rank - 1) * self._back % self._count

    def _make(self, number: int) -> Host:
        rank = number * self._step % self._count + 1
        robots = self._robots(number, rank)
        wait = 2.0 + int(draw(self._words("delay", number)) * 9)
        return Host(
            number, _name(number), rank, self.size(rank), self._address(number), self._fate(number), self._ill(number),
            robots, wait if robots is Robots.DELAY else 0.0, self._pick("oddity", number, _ODDITIES, Oddity.NONE),
        )  # fmt: skip

    def _fate(self, number: int) -> Fate:
        return self._pick("fate", number, _FATES, Fate.WELL)

    def _robots(self, number: int, rank: int) -> Robots:
        found = self._pick("robots", number, _ROBOTS, Robots.NONE)
        # A host that others are found through lets crawlers in, or a part of the web could not be reached.
        through = self._count > 1 and rank <= ceil(self._count / DIRECTORY)
        return Robots.RULES if found is Robots.CLOSED and through else found

    def _ill(self, number: int) -> tuple[float, float]:
        """In a storm at once; else those that are down have hours of their own, the others are as they are."""
        if self._plan.profile == "storm":
            return STORM
        if self._fate(number) is not Fate.DOWN:
            return (0.0, float("inf"))
        begin = START + draw(self._words("begin", number)) * 10 * DAY
        return (begin, begin + HOUR * (1 + 47 * draw(self._words("length", number))))

    def _address(self, number: int) -> str:
        """Every fifth host shares its address with others."""
        shared = draw(self._words("address", number))
        if shared < 0.2:
            return f"shared-{int(shared * 5 * ceil(self._count / (5 * SHARED)))}"
        return f"own-{number}"

    def _pick(self, what: str, number: int, table: dict[str, tuple[tuple[_T, float], ...]], otherwise: _T) -> _T:
        chance = draw(self._words(what, number))
        for value, share in table[self._plan.profile]:
            if chance < share:
                return value
            chance -= share
        return otherwise

    def _words(self, what: str, number: int) -> str:
        return f"{self._plan.seed} {what} {number}"


def _name(number: int) -> HostKey:
    """Every fourth host is a second one of the site three numbers before it."""
    return HostKey(f"h{number}.s{number - 3}.test" if number % 4 == 3 else f"s{number}.test")


def site_number(number: int) -> int:
    """The number of the host that gave a host's site its name."""
    return number - 3 if number % 4 == 3 else number


def _coprime(count: int, start: int) -> int:
    """A step by which one meets every number below `count` before meeting one again."""
    step = max(1, start)
    while gcd(step, count) != 1:
        step += 1
    return step
