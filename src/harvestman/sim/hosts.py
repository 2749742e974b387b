"""The hosts of a simulated web and what is odd about each, dealt like cards: a small web has some of everything."""

from __future__ import annotations

import enum
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import NamedTuple

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
    API = "api"
    """Disallow: /api/. Only scripted hosts have it."""


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
    NESTED = "nested"
    FACETS = "facets"
    FARM = "farm"
    """A content farm: 24 of 25 pages say the same."""
    HUB = "hub"
    """It has a page with thousands of links to other sites."""
    NXDOMAIN = "nxdomain"
    SERVFAIL = "servfail"
    SCRIPTED = "scripted"
    """Its pages are shells, which JavaScript fills: see `Host.app`."""


class Variety(enum.StrEnum):
    """How the pages of a scripted host get their content."""

    OWN = "own"
    """One script, on the same host, asks for the content."""
    CDN = "cdn"
    """A library on the host of another site, then a script of its own."""
    MODULE = "module"
    """A module on the host of another site; browsers want its leave (CORS)."""
    CHAIN = "chain"
    """A script that loads the script."""
    CONFIG = "config"
    """The script asks the host of another site first where the content is (CORS)."""
    LATE = "late"
    """It waits half a second with the content in hand."""


class App(NamedTuple):
    """What is behind the shell of a scripted host."""

    variety: Variety
    xhr: bool
    """It asks by XMLHttpRequest, not by fetch."""
    keyed: bool
    """The shell says which page it is. Else it is the same for all pages, and the script goes by its address."""
    frame: int
    """Which framework's markup the shell has."""
    cdn: int
    """The index of the other site's host."""


class Sitemap(enum.StrEnum):
    """What sort of sitemap a host has, and who tells of it."""

    NONE = "none"
    KNOWN = "known"
    """At /sitemap.xml, and nobody tells."""
    XML = "xml"
    """This and the next ones are named in robots.txt."""
    INDEX = "index"
    GZIP = "gzip"
    TEXT = "text"
    HIDDEN = "hidden"
    """Where robots.txt itself forbids to go."""
    ELSEWHERE = "elsewhere"
    """On the host before this one, which is of the same site."""


class Feed(enum.StrEnum):
    """What sort of feed a home page links to."""

    NONE = "none"
    RSS = "rss"
    ATOM = "atom"


RULED = frozenset({Robots.RULES, Robots.DELAY, Robots.HUGE, Robots.MOVED})
NAMING = RULED | {Robots.ALLOW}
"""A robots.txt that can name a sitemap."""
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
               changing burst binaries oversized bomb nxdomain redirects calendar servfail sessions pagination plain
               nested facets farm hub""",
}
_SITEMAP_DECKS = {
    "naming": "xml none none index! none none gzip none none hidden none none text none none known! none none",
    "other": "known none none known! none none",
    "changing": "xml known! gzip index!",
}
"""By what a host is: one whose robots.txt can name a sitemap, one without, one with pages that change (it always has a
sitemap). Where there is a mark, its dates are lies."""
_FEED_DECK = "rss none none none atom none none none"


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
    sitemap: Sitemap = Sitemap.NONE
    lying: bool = False
    """Its sitemap says that everything has just changed."""
    feed: Feed = Feed.NONE
    app: App | None = None
    """There is one on scripted hosts."""

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
    def walled(self) -> bool:
        """Its pages are shells whose content nobody may ask for."""
        return self.robots is Robots.API

    @property
    def crawl_delay(self) -> float:
        return 2.0 if self.robots is Robots.DELAY else 0.0

    def disallows(self, path: str) -> bool:
        """What the robots.txt we serve means for this path; written apart from any robots parser, to judge them by."""
        if self.shut:
            return True
        if self.walled:
            return path.startswith("/api/")
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


def _sitemaps(robots: list[str], features: list[str], rng: random.Random) -> list[str]:
    """A card for each host but the first, of the deck for its like; the www. hosts' is always with their neighbour."""
    decks = {name: cycle(deck.split()) for name, deck in _SITEMAP_DECKS.items()}
    order = list(range(1, len(robots)))
    rng.shuffle(order)
    hand = [""] * len(robots)
    for index in order:
        naming = robots[index] in NAMING
        hand[index] = next(
            decks["changing" if features[index] == Feature.CHANGING else "naming" if naming else "other"]
        )
        if naming and (index + 1) % 10 == 8:
            hand[index] = "elsewhere"
    return hand


def _sitemap(card: str, robots: str) -> Sitemap:
    """What a card means on a host with such a robots.txt."""
    sitemap = Sitemap(card.rstrip("!") or Sitemap.NONE)
    if sitemap is not Sitemap.NONE and robots not in NAMING:
        return Sitemap.KNOWN
    return Sitemap.XML if sitemap is Sitemap.HIDDEN and robots not in RULED else sitemap


def deal(plan: Plan) -> list[Host]:
    """All hosts of a plan, in order of their index."""
    rng = random.Random(f"hosts/{plan.seed}/{plan.profile}")
    robots = _dealt(_ROBOTS_DECK[plan.profile], plan.hosts, rng)
    features = _dealt(_FEATURE_DECK[plan.profile], plan.hosts, rng)
    oddities = plan.profile != "clean"
    lists = random.Random(f"lists/{plan.seed}/{plan.profile}")
    sitemaps = _sitemaps(robots, features, lists) if oddities else [""] * plan.hosts
    feeds = _dealt(_FEED_DECK if oddities else "none", plan.hosts, lists)
    return [
        Host(
            index=index,
            name=_name(index, oddities),
            address=_address(index, oddities),
            layout=rng.randrange(LAYOUTS),
            language=rng.choice(LANGUAGES),
            robots=Robots(robots[index] or Robots.NONE),
            feature=Feature(features[index] or Feature.PLAIN),
            sitemap=_sitemap(sitemaps[index], robots[index]),
            lying=sitemaps[index].endswith("!"),
            feed=Feed(feeds[index] or Feed.NONE),
        )
        for index in range(plan.hosts)
    ]
