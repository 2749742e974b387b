"""The simulated web as a pure function of its plan: who is there, what links to what, what changes when.

The server makes pages of it, the name server answers from it, and the audit walks it to know what a crawl should see.
"""

from __future__ import annotations

import random
import statistics
from itertools import accumulate
from struct import Struct
from typing import TypeAlias

from xxhash import xxh3_64_intdigest, xxh3_128_digest

from harvestman.sim.apps import API, LIBRARY, api, asked, equip, needed, own_files, type_of
from harvestman.sim.hosts import App, Feature, Host, Sitemap, deal
from harvestman.sim.listings import PLACES, listing, orphan
from harvestman.sim.odd import READ, RULED_ENTRIES, RULED_URLS, Entry, Kind, Odd, entries, odd_urls
from harvestman.sim.paths import BLOCK, block_count, normal, numbers, paths
from harvestman.sim.plan import Plan
from harvestman.sim.traps import doors, trap

ROLL = 8
"""Links to other hosts come in rolls of eight; a page has three of them."""
ROLLS = 2048
"""How many rolls there are: a power of two, and few enough to be compressed beforehand."""
HUB_ROLLS = 375
"""How many rolls a page of 3,000 links to other sites has."""
SECTIONS_END = 9
"""Home and the section pages are the numbers below this; they carry the navigation and the links to odd URLs."""
_DICE = Struct("<8H")
_MEDIAN, _SPREAD, _LARGEST = 30_000, 0.8, 300_000
Three: TypeAlias = tuple[int, int, int]
Throw: TypeAlias = tuple[Three, Three, int, int]
"""Of a page: which of `Web.rolls` it carries (links to other hosts), which blocks of links to its own, a title, and its
size in bytes: log-normal, median 30 KB, at most 300 KB."""
CHANGE_PERIODS = (20.0, 120.0, 600.0, 3600.0, 86_400.0)


class Web:
    """Everything there is to know about the web of one plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self._seed, self._pages = plan, plan.seed, plan.pages
        self.hosts = equip(deal(plan), plan)
        self._cdns = {host.app.cdn for host in self.hosts if host.app}
        self.by_name = {host.name: host for host in self.hosts}
        self.order = self._family()
        self._place = {index: place for place, index in enumerate(self.order)}
        self.rolls = self._popularity()
        self._sizes = _size_quantiles()
        self._blocks = block_count(plan.pages)

    def _family(self) -> list[int]:
        """Hosts in the order of the tree of links that leads to them all; dead ends come last, as leaves."""
        rng = random.Random(f"family/{self.plan.seed}")
        rest = list(range(1, self.plan.hosts))
        rng.shuffle(rest)
        rest.sort(key=lambda index: self._dead_end(self.hosts[index]))
        return [0, *rest]

    def _dead_end(self, host: Host) -> bool:
        return host.shut or host.walled or not host.resolves

    def _popularity(self) -> list[tuple[tuple[int, int], ...]]:
        """What pages link to on other hosts: hosts by a Zipf law over a random ranking, half the time their home."""
        rng = random.Random(f"popularity/{self.plan.seed}")
        ranking = list(range(self.plan.hosts))
        rng.shuffle(ranking)
        weights = list(accumulate(1 / (rank + 1) for rank in range(len(ranking))))
        hosts = rng.choices(ranking, cum_weights=weights, k=ROLLS * ROLL)
        pages = [page if rng.random() < 0.5 else 0 for page in rng.choices(range(self.plan.pages), k=ROLLS * ROLL)]
        links = list(zip(hosts, pages, strict=True))
        return [tuple(links[start : start + ROLL]) for start in range(0, len(links), ROLL)]

    # -- seeds and names

    def seed_hosts(self) -> list[Host]:
        return [self.hosts[index] for index in self.order[: self.plan.seed_count]]

    def seeds(self, port: int) -> list[str]:
        return [f"http://{host.name}:{port}/" for host in self.seed_hosts()]

    def path(self, host: Host, page: int) -> str:
        return paths(host.layout, self.plan.pages)[page]

    def page(self, host: Host, path: str) -> int | None:
        """The ordinary page at a path in its normal form."""
        return numbers(host.layout, self.plan.pages).get(path)

    def odd(self, host: Host, path: str) -> Odd | None:
        """The odd URL at a path in its normal form."""
        return self._unscripted(host, path) or (self._resource(host, path) if self._cdns else None)

    def _unscripted(self, host: Host, path: str) -> Odd | None:
        if host.ruled and path in RULED_URLS:
            return RULED_URLS[path]
        return (
            odd_urls(host.feature).get(path)
            or self._listing(host, path)
            or orphan(host, path)
            or trap(host.feature, path, self.plan)
        )

    def _listing(self, host: Host, path: str) -> Odd | None:
        after = self._after(host)
        listed = after if path == PLACES[Sitemap.ELSEWHERE] else host
        return listing(host, after, path, paths(listed.layout, self.plan.pages))

    # -- what scripts need

    def _resource(self, host: Host, path: str) -> Odd | None:
        """What at this path is for scripts alone."""
        if path in LIBRARY and host.index in self._cdns:
            return Odd(path, Kind.RESOURCE, content_type=type_of(path))
        if host.app is None:
            return None
        if path in own_files(host.app):
            return Odd(path, Kind.RESOURCE, content_type=type_of(path))
        page = self._filled(host, asked(host.app, path)) if path.startswith(API) else None
        if page is None:
            return None
        return Odd(self._api(host.app, host, page), Kind.RESOURCE, target=page, content_type=type_of(path))

    def _filled(self, host: Host, page: int | str | None) -> int | str | None:
        """The page, when it is there to be asked for: an ordinary one by its number, an odd one by its path."""
        if not isinstance(page, str):
            return page if page is not None and page < self._pages else None
        number = self.page(host, page)
        if number is not None:
            return number
        odd = self._unscripted(host, page)
        return page if odd and odd.kind in READ else None

    def _api(self, app: App, host: Host, page: int | str) -> str:
        return api(app, page, page if isinstance(page, str) else self.path(host, page))

    def api(self, host: Host, path: str) -> str:
        """Where the content of a scripted host's page is, by the normal path of the page; '' on other hosts."""
        page = self.page(host, path)
        return self._api(host.app, host, path if page is None else page) if host.app else ""

    def scripts(self, host: Host) -> list[tuple[Host, str]]:
        """What a browser needs, beside a shell of this host and the content, to fill it: in the order it asks."""
        app = host.app
        return [(self.hosts[app.cdn] if away else host, path) for away, path in needed(app)] if app else []

    def _after(self, host: Host, steps: int = 1) -> Host:
        return self.hosts[(host.index + steps) % self.plan.hosts]

    def sitemap(self, host: Host) -> tuple[Host, str] | None:
        """Where the sitemap of a host is."""
        if host.sitemap is Sitemap.NONE:
            return None
        return self._after(host, -1) if host.sitemap is Sitemap.ELSEWHERE else host, PLACES[host.sitemap]

    def listed(self, host: Host, odd: Odd) -> Host:
        """Whose pages a sitemap or feed of `host` lists."""
        return self._after(host, odd.away)

    def look(self, host: Host, target: str) -> int | Odd | None:
        """What a request target in any spelling means."""
        path = normal(target)
        page = self.page(host, path)
        return self.odd(host, path) if page is None else page

    def kind(self, host: Host, target: str) -> Kind | None:
        """The label of a URL; None when the web has no such URL."""
        found = self.look(host, target)
        return found.kind if isinstance(found, Odd) else None if found is None else Kind.PAGE

    # -- links

    def throw(self, host: Host, page: int) -> Throw:
        """The chance in a page, thrown once and for ever."""
        key = b"%d/%d" % (host.index, page)
        one, two, three, title, second, third, spare, size = _DICE.unpack(xxh3_128_digest(key, self._seed))
        blocks = self._blocks
        first = page if BLOCK * page + 1 < self._pages else spare % blocks
        own = (first, second % blocks, third % blocks)
        return (one % ROLLS, two % ROLLS, three % ROLLS), own, title, self._sizes[size % 1024]

    def children(self, host: Host) -> list[int]:
        """The hosts that the home page of this one makes known: the guarantee that every host can be found."""
        place = self._place[host.index] + 1
        return [self.order[child - 1] for child in (2 * place, 2 * place + 1) if child <= len(self.order)]

    def entries(self, host: Host) -> tuple[Entry, ...]:
        """The links to odd URLs on its home and section pages."""
        return (RULED_ENTRIES if host.ruled else ()) + entries(host.feature) + tuple(map(Entry, doors(host.feature)))

    def redirect(self, host: Host, odd: Odd) -> tuple[Host, str]:
        """Where a redirect leads."""
        to = self._after(host, odd.away)
        if isinstance(odd.target, int):
            return to, self.path(to, odd.target % self.plan.pages)
        return to, odd.target or "/"

    # -- bodies

    def period(self, host: Host, page: int) -> float:
        """The mean time between two changes of a page, in seconds; 0 when it never changes."""
        return CHANGE_PERIODS[page % len(CHANGE_PERIODS)] if host.feature is Feature.CHANGING else 0.0

    def version(self, host: Host, page: int, elapsed: float) -> int:
        """How often the page has changed since the start: once in every period, at a moment chance decides."""
        period = self.period(host, page)
        if not period:
            return 0
        turn, into = divmod(elapsed, period)
        return int(turn) + (into >= self._moment(host, page, int(turn)) * period)

    def changed_at(self, host: Host, page: int, version: int) -> float:
        """When a page got to this version (1 or more), in seconds since the start."""
        turn = version - 1
        return (turn + self._moment(host, page, turn)) * self.period(host, page)

    def _moment(self, host: Host, page: int, turn: int) -> float:
        return xxh3_64_intdigest(b"%d/%d/%d" % (host.index, page, turn), self.plan.seed) % 1000 / 1000


def _size_quantiles() -> list[int]:
    curve = statistics.NormalDist()
    odds = ((step + 0.5) / 1024 for step in range(1024))
    return [min(_LARGEST, int(_MEDIAN * 2.718281828 ** (_SPREAD * curve.inv_cdf(chance)))) for chance in odds]
