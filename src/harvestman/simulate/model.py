"""The modelled web: what any URL answers at any moment, computed when asked for, with nothing stored for a page.

Hosts have Zipf sizes. The pages of a host are numbered and form a tree (page n links to 10n+1 ... 10n+10), so that all
can be found from its home page; besides, a page links to popular pages of its own host and of others, the popular ones
most often, and each home page to those of eight smaller hosts. Pages change by a Poisson process at a rate of their own
(lognormal around that of their kind). The importance of a page is the number of links to it that these laws lead to
expect: a truth that the crawler has to find out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from math import ceil, exp, log

from harvestman.model import FailureKind, Instant
from harvestman.policy.urls import host_of, path_of
from harvestman.simulate.chance import draw, last_event, next_event, normal
from harvestman.simulate.hosts import DIRECTORY, HOUR, Fate, Host, Hosts, Oddity, Robots
from harvestman.simulate.plan import DAY, START, Plan
from harvestman.simulate.reply import Reply

BRANCHES = 10
"""Children of a page in the tree of its host."""
NEAR, FAR = 4, 3
"""Links to popular pages of the same host and of others."""
HOME_SHARE = 0.6
"""The share of links from other hosts that lead to the home page."""
KINDS = ("news", "blog", "docs")
EVERY = {"home": 12 * HOUR, "news": 12 * HOUR, "blog": 5 * DAY, "docs": 60 * DAY}
"""The median time between two changes of a page, by its kind."""
SPREAD = 1.2
"""The standard deviation of the logarithm of that time."""
FASTEST, SLOWEST = 900.0, 365 * DAY
LATE_FOR = 6 * HOUR
WINDOW = 600.0
"""How long a host that limits the rate keeps its mood."""

_PATH = re.compile(r"/(news|blog|docs)/([1-9][0-9]*)(?:\?sid=[0-9a-f]+)?")
_CALENDAR = re.compile(r"/calendar/([0-9]+)/([0-9]+)")


@dataclass(frozen=True, slots=True)
class Spot:
    """A page of the web (as against an endless list, or a page that is not there)."""

    host: Host
    page: int
    """0 is the home page."""
    kind: str


@dataclass(frozen=True, slots=True)
class Truth:
    """What only the model knows of a page."""

    words: str
    """What its changes follow from."""
    rate: float
    """Changes a second."""
    weight: float
    """Its importance: the number of links to it, about."""

    def changed(self, now: float) -> float:
        """When it last changed."""
        return last_event(self.words, self.rate, now)

    def changes(self, now: float) -> float:
        """When it changes next."""
        return next_event(self.words, self.rate, now)


class ModelWeb:
    """See the module. It is a `reply.Web`."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.hosts = Hosts(plan)
        self._seed = plan.seed

    def __call__(self, url: str, now: Instant) -> Reply:
        host = self.hosts.named(host_of(url))
        if host is None:
            return Reply(failure=FailureKind.DNS, took=0.1)
        path = path_of(url)
        reply = self._trouble(host, url, now) or (
            self._robots(host, now) if path == "/robots.txt" else self._page(host, url, path, now)
        )
        if reply.failure is None:
            reply.took = self._latency(host, url, now)
        return reply

    def seeds(self, most: int = 1_000) -> list[str]:
        """The home pages of the best known hosts: a tenth of all; of a storm, of every host."""
        count = self.plan.hosts if self.plan.profile == "storm" else min(most, ceil(self.plan.hosts / 10))
        return [self.url(self.hosts.ranked(rank), 0) for rank in range(1, count + 1)]

    # -- pages -------------------------------------------------------------------------------------------------

    def spot(self, url: str) -> Spot | None:
        """The page behind a URL, if it is one."""
        host = self.hosts.named(host_of(url))
        return self._spot(host, path_of(url)) if host else None

    def _spot(self, host: Host, path: str) -> Spot | None:
        if path == "/":
            return Spot(host, 0, "home")
        found = _PATH.fullmatch(path)
        if found is None:
            return None
        page = int(found[2])
        return Spot(host, page, found[1]) if page < host.size and self._kind(host, page) == found[1] else None

    def truth(self, spot: Spot) -> Truth:
        words = f"{self._seed} {spot.host.number} {spot.page}"
        every = EVERY[spot.kind] * exp(SPREAD * normal(f"{words} rate"))
        return Truth(words, 1.0 / min(max(every, FASTEST), SLOWEST), self._weight(spot))

    def _weight(self, spot: Spot) -> float:
        """Links expected from its own host and from all others."""
        size = spot.host.size
        popular = log((spot.page + 2) / (spot.page + 1)) / log(size + 1)
        from_far = FAR * size * (HOME_SHARE * (spot.page == 0) + (1 - HOME_SHARE) * popular)
        return 1.0 + NEAR * size * popular + from_far

    def _kind(self, host: Host, page: int) -> str:
        """Two pages in three are of the kind that their host leans to."""
        leaning = draw(f"{self._seed} leaning {host.number}")
        chance = draw(f"{self._seed} kind {host.number} {page}")
        return KINDS[int(3 * (leaning if chance < 0.5 else 2 * (chance - 0.5)))]

    def url(self, host: Host, page: int) -> str:
        return f"https://{host.name}/{self._kind(host, page)}/{page}" if page else f"https://{host.name}/"

    def _page(self, host: Host, url: str, path: str, now: Instant) -> Reply:
        spot = self._spot(host, path)
        if spot is not None:
            return self._content(spot, url, now)
        if host.oddity is Oddity.CALENDAR and (month := _CALENDAR.fullmatch(path)):
            return self._month(host, int(month[1]), int(month[2]))
        return Reply(404)

    def _content(self, spot: Spot, url: str, now: Instant) -> Reply:
        truth = self.truth(spot)
        changed = truth.changed(now)
        version = f"{truth.words} {changed!r}"
        headers = {"content-type": "text/html"}
        if draw(f"{truth.words} etag") < 0.7:
            headers["etag"] = f'"{sha256(version.encode()).hexdigest()[:16]}"'
        farm = spot.host.oddity is Oddity.FARM
        return Reply(
            headers=headers, links=list(self._links(spot, url)), digest=sha256(version.encode()).digest(),
            simhash=_near(f"{self._seed} farm {spot.host.number}" if farm else version, version),
        )  # fmt: skip

    def _links(self, spot: Spot, url: str) -> Iterator[str]:
        host, page, seed = spot.host, spot.page, self._seed
        name = f"{seed} link {host.number} {page}"
        session = f"?sid={int(draw(url) * 1e9):x}" if host.oddity is Oddity.SESSIONS else ""
        near = [int(host.size ** draw(f"{name} near {n}")) - 1 for n in range(NEAR)]
        children = range(BRANCHES * page + 1, min(host.size, BRANCHES * page + BRANCHES + 1))
        yield f"https://{host.name}/"
        yield from (self.url(host, child) for child in children)
        yield from (self.url(host, other) + (session if other else "") for other in near)
        yield from (self._far(f"{name} far {n}") for n in range(FAR))
        if page == 0:
            yield f"https://{host.name}/private/1"
            first = DIRECTORY * (host.rank - 1) + 2
            for rank in range(first, min(self.plan.hosts + 1, first + DIRECTORY)):
                yield self.url(self.hosts.ranked(rank), 0)
            if host.oddity is Oddity.CALENDAR:
                yield f"https://{host.name}/calendar/2026/1"

    def _far(self, name: str) -> str:
        """A page elsewhere: a popular host's more often, and most often its home page."""
        host = self.hosts.ranked(int(self.plan.hosts ** draw(name)) or 1)
        if draw(f"{name} home") < HOME_SHARE:
            return self.url(host, 0)
        return self.url(host, int(host.size ** draw(f"{name} page")) - 1)

    def _month(self, host: Host, year: int, month: int) -> Reply:
        """A calendar: always one more month, always the same words around another number."""
        words = f"{self._seed} calendar {host.number}"
        following = f"{year + month // 12}/{month % 12 + 1}"
        before = f"{year - (month == 1)}/{(month - 2) % 12 + 1}"
        return Reply(
            headers={"content-type": "text/html"},
            links=[f"https://{host.name}/{path}" for path in ("", f"calendar/{following}", f"calendar/{before}")],
            digest=sha256(f"{words} {year} {month}".encode()).digest(), simhash=_near(words, f"{year} {month}"),
        )  # fmt: skip

    # -- servers -----------------------------------------------------------------------------------------------

    def forbids(self, url: str) -> bool:
        """Does the host's robots.txt forbid this page?"""
        host = self.hosts.named(host_of(url))
        if host is None or host.robots is Robots.NONE:
            return False
        return host.robots is Robots.CLOSED or path_of(url).startswith("/private/")

    def _robots(self, host: Host, now: Instant) -> Reply:
        match host.robots:
            case Robots.NONE:
                return Reply(404)
            case Robots.LATE if now < START + LATE_FOR:
                return Reply(503)
            case Robots.CLOSED:
                return Reply(body=b"User-agent: *\nDisallow: /\n")
            case Robots.DELAY:
                return Reply(body=b"User-agent: *\nDisallow: /private/\nCrawl-delay: %d\n" % host.crawl_delay)
        return Reply(body=b"User-agent: *\nDisallow: /private/\n")

    def _trouble(self, host: Host, url: str, now: Instant) -> Reply | None:
        """What the host says instead of an answer, if it is not well."""
        if not host.ill[0] <= now < host.ill[1]:
            return None
        match host.fate:
            case Fate.DOWN:
                return Reply(failure=FailureKind.CONNECT, took=5.0)
            case Fate.FLAPPING if (now + HOUR * draw(f"{self._seed} phase {host.number}")) % HOUR < 1_200:
                return Reply(failure=FailureKind.CONNECT, took=0.2)
            case Fate.SLOW if draw(f"{self._seed} never {url} {now}") < 0.1:
                return Reply(failure=FailureKind.TIMEOUT, took=10.0)
            case Fate.LIMITING:
                return self._limited(host, now)
        return None

    def _limited(self, host: Host, now: Instant) -> Reply | None:
        window = int(now // WINDOW)
        mood = draw(f"{self._seed} mood {host.number} {window}")
        if mood > 0.5:
            return None
        wait = {"retry-after": str(ceil((window + 1) * WINDOW - now))} if mood > 0.15 else {}
        return Reply(429 if mood > 0.25 else 503, wait)

    def _latency(self, host: Host, url: str, now: Instant) -> float:
        words = f"{self._seed} took {url} {now}"
        if host.fate is Fate.SLOW and host.ill[0] <= now < host.ill[1]:
            return 3.0 + 5.0 * draw(words)
        return 0.05 + 0.15 * exp(normal(words))


def _near(words: str, version: str) -> int:
    """A SimHash: that of all with the same words, but for one bit of each version's own."""
    return (int(draw(words) * 2**53) << 11) ^ (1 << int(draw(version) * 64))
