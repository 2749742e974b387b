"""The hosts of a simulated web and what is odd about each, dealt like cards: a small web has some of everything."""

from __future__ import annotations

import enum
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle

from harvestman.sim.plan import Plan

LANGUAGES = ("en",) * 17 + ("de", "fr", "es")
LAYOUTS = 8


class Robots(enum.StrEnum):
    """How a host answers /robots.txt."""

    NONE = "404"
    ALLOW = "allow"
    RULES = "rules"
    DELAY = "delay"
    """Rules and Crawl-delay: 2."""
    HUGE = "huge"
    """Rules within the first MiB; a 'Disallow: /' after them, which must not count."""
    MOVED = "moved"
    """Rules behind a redirect on the same host."""
    FORBIDDEN = "403"
    CLOSED = "closed"
    """Disallow: /"""
    BROKEN = "503"
    SILENT = "silent"
    """Takes the request and never answers."""


class Feature(enum.StrEnum):
    """What else is odd about a host. One each, so that an audit line points at one cause."""

    PLAIN = "plain"
    REDIRECTS = "redirects"
    GONE = "gone"
    THROTTLED = "throttled"
    BURST = "burst"
    SLOW = "slow"
    DUPLICATES = "duplicates"
    MALFORMED = "malformed"
    CHARSETS = "charsets"
    BINARIES = "binaries"
    OVERSIZED = "oversized"
    BOMB = "bomb"
    CHANGING = "changing"
    TAGGED = "tagged"
    CALENDAR = "calendar"
    PAGINATION = "pagination"
    SESSIONS = "sessions"
    NXDOMAIN = "nxdomain"
    SERVFAIL = "servfail"


RULED = frozenset({Robots.RULES, Robots.DELAY, Robots.HUGE, Robots.MOVED})
SHUT = frozenset({Robots.CLOSED, Robots.BROKEN, Robots.SILENT})
UNRESOLVED = frozenset({Feature.NXDOMAIN, Feature.SERVFAIL})

_ROBOTS_DECK = {
    "clean": "404 allow",
    "mixed": """404 rules allow delay closed 404 rules huge 403 allow 503 rules moved 404 silent rules allow 404 rules
                404 404 allow rules allow 404 delay closed rules allow 404 moved rules 404 403 allow 404 huge rules
                404 404""",
    "wild": "rules delay closed 404 huge 403 503 rules moved silent rules delay allow rules 404",
}
_FEATURE_DECK = {
    "clean": "plain",
    "mixed": """redirects gone throttled duplicates tagged slow calendar malformed charsets changing burst binaries
                oversized pagination bomb sessions redirects nxdomain plain plain duplicates gone plain tagged
                plain redirects plain gone plain changing plain servfail plain plain plain binaries plain plain plain
                plain""",
    "wild": """calendar redirects sessions gone pagination throttled duplicates tagged slow malformed charsets sessions
               changing burst binaries oversized bomb nxdomain redirects calendar servfail sessions pagination plain""",
}


@dataclass(slots=True, frozen=True)
class Host:
    """One host name of the simulated web."""

    index: int
    name: str
    address: str
    layout: int
    """Which of the eight manners of naming pages it has."""
    language: str
    robots: Robots
    feature: Feature

    @property
    def site(self) -> str:
        """Its registrable domain: `.test` is no listed suffix, so the last two labels."""
        return ".".join(self.name.split(".")[-2:])

    @property
    def resolves(self) -> bool:
        return self.feature not in UNRESOLVED

    @property
    def ruled(self) -> bool:
        """It has the rules of `disallows`."""
        return self.robots in RULED

    @property
    def shut(self) -> bool:
        """No page of it may be asked for, by its robots.txt or for want of one."""
        return self.robots in SHUT

    @property
    def crawl_delay(self) -> float:
        return 2.0 if self.robots is Robots.DELAY else 0.0

    def disallows(self, path: str) -> bool:
        """What the robots.txt we serve means for this path; written apart from any robots parser, to judge them by."""
        if self.shut:
            return True
        if not self.ruled or path.startswith("/private/open"):
            return False
        return path.startswith("/private/") or path.endswith(".print")


def _name(index: int, oddities: bool) -> str:
    """h0001.test, ...; where there are oddities, of every ten the 8th and 9th are subdomains of the 7th."""
    number = index + 1
    label = {8: "www.", 9: "blog."}.get(number % 10, "") if oddities else ""
    site = 10 * (number // 10) + 7 if label else number
    return f"{label}h{site:04d}.test"


def _address(index: int, oddities: bool) -> str:
    """127.x.y.z by index; with oddities, of every ten the 4th shares that of the 3rd, the 8th that of the 7th."""
    place = index - 1 if oddities and (index + 1) % 10 in (4, 8) else index
    return f"127.{1 + place // 62_500}.{place // 250 % 250}.{1 + place % 250}"


def _dealt(deck: str, count: int, rng: random.Random) -> list[str]:
    """A card for each host; the first host always gets the plainest one."""
    order = list(range(1, count))
    rng.shuffle(order)
    cards: Iterator[str] = cycle(deck.split())
    hand = [""] * count
    for index in order:
        hand[index] = next(cards)
    return hand


def deal(plan: Plan) -> list[Host]:
    """All hosts of a plan, in order of their index."""
    rng = random.Random(f"hosts/{plan.seed}/{plan.profile}")
    robots = _dealt(_ROBOTS_DECK[plan.profile], plan.hosts, rng)
    features = _dealt(_FEATURE_DECK[plan.profile], plan.hosts, rng)
    oddities = plan.profile != "clean"
    return [
        Host(
            index=index,
            name=_name(index, oddities),
            address=_address(index, oddities),
            layout=rng.randrange(LAYOUTS),
            language=rng.choice(LANGUAGES),
            robots=Robots(robots[index] or Robots.NONE),
            feature=Feature(features[index] or Feature.PLAIN),
        )
        for index in range(plan.hosts)
    ]
