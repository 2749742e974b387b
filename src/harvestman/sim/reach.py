"""What a polite crawl of a simulated web should see: a walk over the model along every link that may be followed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from harvestman.sim.hosts import Host
from harvestman.sim.listings import FEEDS, NEWS, ORPHANS
from harvestman.sim.odd import GOOD, LISTINGS, Kind, Odd
from harvestman.sim.paths import block_pages
from harvestman.sim.web import HUB_ROLLS, SECTIONS_END, Web

HOPS = 5
"""Redirects a crawler follows in a row."""


@dataclass(slots=True)
class Reach:
    """The URLs a crawl may come to, by the fewest links from a seed."""

    web: Web
    open: list[bool]
    """By host: whether its pages may be asked for at all."""
    pages: bytearray
    """By host and page: 1 when it is reached."""
    odd: dict[tuple[int, str], Odd] = field(default_factory=dict)

    def good(self) -> Iterator[tuple[Host, str]]:
        """Every page a full crawl has, in its normal spelling."""
        size = self.web.plan.pages
        for host in self.web.hosts:
            reached = self.pages[host.index * size : (host.index + 1) * size]
            yield from ((host, self.web.path(host, page)) for page in range(size) if reached[page])
        yield from ((self.web.hosts[at], path) for (at, path), odd in self.odd.items() if odd.kind in GOOD)

    def orphans(self) -> set[tuple[str, str]]:
        """Of those pages the ones that only a sitemap or feed leads to, by name of host and path."""
        return {(self.web.hosts[at].name, path) for at, path in self.odd if path in ORPHANS + NEWS}


class _Walk:
    """A breadth-first walk, one level of depth at a time."""

    def __init__(self, web: Web, scope: set[str] | None, browser: bool) -> None:
        self._web, self._size, self._browser = web, web.plan.pages, browser
        open_hosts = [host.resolves and not host.shut and (scope is None or host.site in scope) for host in web.hosts]
        self.reach = Reach(web, open_hosts, bytearray(len(web.hosts) * self._size))
        self._pages: list[tuple[int, int]] = []
        self._odd: list[tuple[int, Odd]] = []
        self._met = bytearray(len(web.hosts))
        self._own = [block_pages(block, self._size) for block in range(self._size)]

    def walk(self, depth: int) -> Reach:
        for host in self._web.seed_hosts():
            self._add_page(host.index, 0)
        for _ in range(depth):
            pages, self._pages = self._pages, []
            odd, self._odd = self._odd, []
            if not pages and not odd:
                break
            for at, page in pages:
                host = self._web.hosts[at]
                if host.app is None or self._fills(host):
                    self._follow_page(host, page)
            for at, each in odd:
                host = self._web.hosts[at]
                if host.app is None or each.kind in LISTINGS or self._fills(host):
                    self._follow_odd(host, each)
        return self.reach

    def _fills(self, host: Host) -> bool:
        """Whether the shells of a scripted host become pages; without that they lead to its feed and nowhere else."""
        if host.feed in FEEDS:
            self._add(host, FEEDS[host.feed])
        return self._browser and not host.walled

    def _add_page(self, at: int, page: int) -> None:
        place = at * self._size + page
        if self.reach.open[at] and not self.reach.pages[place]:
            self.reach.pages[place] = 1
            self._pages.append((at, page))
            if not self._met[at]:
                self._meet(self._web.hosts[at])

    def _meet(self, host: Host) -> None:
        """A host is met for the first time: its robots.txt is read, and its sitemap found."""
        self._met[host.index] = 1
        where = self._web.sitemap(host)
        if where:
            self._add(*where)

    def _add(self, host: Host, path: str, hops: int = 0) -> None:
        """A link or redirect to a path that may be anything."""
        page = self._web.page(host, path)
        if page is not None:
            self._add_page(host.index, page)
            return
        odd = self._web.odd(host, path)
        known = (host.index, path) in self.reach.odd
        if odd is None or known or not self.reach.open[host.index] or host.disallows(path):
            return
        self.reach.odd[host.index, path] = odd
        if not self._met[host.index]:
            self._meet(host)
        if odd.kind is Kind.REDIRECT and hops < HOPS:
            self._add(*self._web.redirect(host, odd), hops + 1)
        elif odd.kind in LISTINGS or (odd.kind in GOOD and odd.follow):
            self._odd.append((host.index, odd))

    def _follow_page(self, host: Host, page: int) -> None:
        at, rolls, add = host.index, self._web.rolls, self._add_page
        own_rolls, blocks, *_ = self._web.throw(host, page)
        for roll in own_rolls:
            for target in rolls[roll]:
                add(*target)
        for number in range(min(SECTIONS_END, self._size)):
            add(at, number)
        for block in blocks:
            for number in self._own[block]:
                add(at, number)
        if page < SECTIONS_END:
            self._follow_entries(host, page)

    def _follow_entries(self, host: Host, page: int) -> None:
        if page == 0:
            for child in self._web.children(host):
                self._add_page(child, 0)
            if host.feed in FEEDS:
                self._add(host, FEEDS[host.feed])
        for entry in self._web.entries(host):
            if not entry.nofollow:
                self._add(host, entry.path)

    def _follow_odd(self, host: Host, odd: Odd) -> None:
        """Odd pages link home and to a few of their like; a copy of an ordinary page has that page's links."""
        if odd.kind in LISTINGS:
            for path in odd.links:
                self._add(self._web.listed(host, odd), path)
            return
        if odd.kind is Kind.HUB:
            for target in chain.from_iterable(self._web.rolls[:HUB_ROLLS]):
                self._add_page(*target)
        elif odd.kind is not Kind.PAGE:
            self._follow_page(host, odd.like % self._size)
        for path in ("/", *odd.links):
            self._add(host, path)


def reach(web: Web, depth: int = 20, *, seeds_only: bool = False, browser: bool = True) -> Reach:
    """What may be reached within `depth` links of the seeds; with `seeds_only`, without leaving their sites.

    Pages of scripted hosts lead on where their content may be asked for, by a crawl that has a `browser`.
    Traps are entered but not walked: they are known by their kind, and lead to nothing else.
    """
    scope = {host.site for host in web.seed_hosts()} if seeds_only else None
    return _Walk(web, scope, browser).walk(depth)
