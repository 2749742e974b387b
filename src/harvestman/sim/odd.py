"""The URLs of a host beyond its ordinary pages: redirects, refused paths, binaries, bodies out of all bounds, traps.

Each has a `Kind`, which is what the audit goes by: it is the label of what a good crawler does with that URL.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cache

from harvestman.sim.hosts import Feature


class Kind(enum.StrEnum):
    """What a URL is for the judge."""

    PAGE = "page"
    """A good page: a full crawl has it."""
    DUPLICATE = "duplicate"
    """A good page whose body is byte for byte that of page `like`."""
    NEAR = "near"
    """A good page whose text is nearly that of page `like`."""
    REDIRECT = "redirect"
    MISSING = "missing"
    BINARY = "binary"
    OVERSIZED = "oversized"
    BOMB = "bomb"
    TRAP = "trap"
    """One of many URLs with nothing new behind them."""
    QUIET = "quiet"
    """Only led to by links that must not be followed, or from places that must not be entered."""
    PRIVATE = "private"
    """Linked, and disallowed by robots.txt."""
    HUB = "hub"
    """A good page with thousands of links to other sites."""
    FARM = "farm"
    """One of the many pages of a content farm, all nearly the same: neither wanted nor a trap."""
    LISTING = "listing"
    """A sitemap or feed."""
    INDEX = "index"
    """A sitemap that lists sitemaps."""
    RESOURCE = "resource"
    """What a script is, loads or asks for: no page, and no link leads to it."""


GOOD = frozenset({Kind.PAGE, Kind.DUPLICATE, Kind.NEAR, Kind.HUB})
LISTINGS = frozenset({Kind.LISTING, Kind.INDEX})
READ = GOOD | {Kind.PRIVATE, Kind.QUIET}
"""Those with HTML that a scripted host can have."""


@dataclass(slots=True, frozen=True)
class Odd:
    """One such URL."""

    path: str
    kind: Kind = Kind.PAGE
    status: int = 200
    links: tuple[str, ...] = ()
    """Paths on the same host. Home is always linked as well, but by a sitemap or feed."""
    target: str | int | None = None
    """Where it redirects to, or what page a resource is the content of: a path, or the number of an ordinary page."""
    away: int = 0
    """How many hosts further along the redirect leads, or the pages are that a sitemap lists."""
    like: int = 0
    content_type: str = "text/html"
    tag: str = ""
    """noindex or nofollow, said by a meta element or (`header:nofollow`) by X-Robots-Tag."""

    @property
    def follow(self) -> bool:
        return not self.tag.endswith("nofollow")


@dataclass(slots=True, frozen=True)
class Entry:
    """A link to an odd URL, on the home page and the section pages of its host."""

    path: str
    nofollow: bool = False


def _redirects() -> list[Odd]:
    hop = Kind.REDIRECT
    odd = [Odd(f"/go/{k}", hop, 301 if k % 2 else 302, target=k) for k in range(4)]
    odd += [Odd("/away", hop, 301, target=0, away=7)]
    odd += [Odd(f"/chain/{k}", hop, 302, target=f"/chain/{k - 1}" if k > 1 else "/landing/5") for k in range(1, 6)]
    odd += [Odd(f"/long/{k}", hop, 302, target=f"/long/{k - 1}" if k > 1 else "/landing/6") for k in range(1, 7)]
    odd += [Odd("/loop/a", hop, 302, target="/loop/b"), Odd("/loop/b", hop, 302, target="/loop/a")]
    odd += [Odd("/loop/self", hop, 301, target="/loop/self")]
    return [*odd, Odd("/landing/5"), Odd("/landing/6", Kind.QUIET)]


def _tagged() -> list[Odd]:
    return [
        Odd("/tagged/nofollow", tag="nofollow", links=("/quiet/1",)),
        Odd("/tagged/nofollow-header", tag="header:nofollow", links=("/quiet/2",)),
        Odd("/tagged/noindex", tag="noindex", links=("/tagged/behind-noindex",)),
        Odd("/tagged/noindex-header", tag="header:noindex", links=("/tagged/behind-noindex",)),
        Odd("/tagged/behind-noindex"),
        *(Odd(f"/quiet/{k}", Kind.QUIET) for k in (1, 2, 3)),
    ]


def _binaries() -> list[Odd]:
    types = {"photo.jpg": "image/jpeg", "archive.zip": "application/zip", "film.mp4": "video/mp4"}
    odd = [Odd(f"/media/{name}", Kind.BINARY, content_type=kind) for name, kind in types.items()]
    return [*odd, Odd("/media/download", Kind.BINARY, content_type="application/octet-stream")]


@cache
def odd_urls(feature: Feature) -> dict[str, Odd]:
    """The odd URLs every host with this feature has, by path."""
    odd: list[Odd] = []
    match feature:
        case Feature.REDIRECTS:
            odd = _redirects()
        case Feature.GONE:
            odd = [Odd(f"/missing/{k}", Kind.MISSING, 404) for k in range(3)]
            odd += [Odd(f"/gone/{k}", Kind.MISSING, 410) for k in range(2)]
        case Feature.DUPLICATES:
            odd = [Odd(f"/copy/{k}", Kind.DUPLICATE, like=k) for k in range(4)]
            odd += [Odd(f"/near/{k}", Kind.NEAR, like=k) for k in range(4)]
        case Feature.TAGGED:
            odd = _tagged()
        case Feature.BINARIES:
            odd = _binaries()
        case Feature.OVERSIZED:
            odd = [Odd("/big/stream", Kind.OVERSIZED), Odd("/big/announced", Kind.OVERSIZED)]
        case Feature.BOMB:
            odd = [Odd("/bomb", Kind.BOMB)]
        case Feature.HUB:
            odd = [Odd("/links", Kind.HUB)]
        case _:
            pass
    return {each.path: each for each in odd}


RULED_URLS = {
    each.path: each
    for each in (
        *(Odd(f"/private/{k}", Kind.PRIVATE, links=(f"/private/{k + 1}", "/hidden/1")) for k in (1, 2)),
        Odd("/private/3", Kind.PRIVATE, links=("/hidden/2",)),
        Odd("/private/open"),
        Odd("/story.print", Kind.PRIVATE),
        Odd("/story.print.html"),
        Odd("/hidden/1", Kind.QUIET),
        Odd("/hidden/2", Kind.QUIET),
    )
}
"""What hosts with robots rules have as well: paths under the rules, and pages only they lead to."""

RULED_ENTRIES = tuple(
    Entry(path) for path in ("/private/1", "/private/3", "/private/open", "/story.print", "/story.print.html")
)

_ENTERED = {
    Feature.REDIRECTS: ("/go/0", "/go/1", "/go/2", "/go/3", "/away", "/chain/5", "/long/6", "/loop/a", "/loop/self"),
    Feature.TAGGED: ("/tagged/nofollow", "/tagged/nofollow-header", "/tagged/noindex", "/tagged/noindex-header"),
}


@cache
def entries(feature: Feature) -> tuple[Entry, ...]:
    """The links to a feature's odd URLs."""
    if feature is Feature.TAGGED:
        return (*map(Entry, _ENTERED[feature]), Entry("/quiet/3", nofollow=True))
    return tuple(map(Entry, _ENTERED.get(feature, tuple(odd_urls(feature)))))
