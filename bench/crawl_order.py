"""In which order are pages fetched? The share of all PageRank that is fetched after 1, 5, 10 and 25 % of the pages.

Webs of several shapes (`_graph.py`) are crawled by `harvestman`, the real frontier over a real State (`_frontier.py`),
and by a model of it that is quick enough to tune policies with: it has the real `policy.priority` and
`policy.importance`, but no robots.txt, no groups of answers, and no disk. Against them: breadth first, random, OPIC
with exact cash, and the oracle, which knows every page and its PageRank before it starts and waits for nobody.
Foresight knows the PageRank of the pages it has found, but has to find them and to wait as we do. Once politely (one
request a second and host, `--rate` requests a second in all) and once without any delay, which is the order alone.
"""

from __future__ import annotations

import heapq
import json
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate
from random import Random

import _frontier
from _graph import SHAPES, Graph, Shape, build, pagerank
from _run import RESULTS, Report, Row, microseconds, options

from harvestman.config import Config, Priority
from harvestman.model import BUCKETS
from harvestman.policy import priority
from harvestman.policy.importance import PAGE, Grains, Importance, rank, share

POINTS = (0.01, 0.05, 0.10, 0.25)
DELAY = 1.0
WINDOW = 8
"""Entries of a host's queue in RAM."""
SKETCHED = 266
"""A 64-bit linear-counting sketch counts no further."""
IDLE, BUSY = -2, -1
"""Nothing queued; waiting for its clock or leased."""
OURS = ("harvestman", "model")
OTHERS = ("foresight", "opic", "breadth first", "random")
COLOURS = {
    "oracle": "#888",
    "foresight": "#bb0",
    "harvestman": "#c30",
    "model": "#e96",
    "opic": "#07a",
    "breadth first": "#3a3",
    "random": "#a5a",
}


class Host:
    """A site's only host: its queues, and the few entries of them that are in RAM."""

    __slots__ = ("allowed", "hurried", "queues", "ready", "taken", "turn", "window")

    def __init__(self) -> None:
        self.allowed = 0.0
        self.queues: list[deque[int]] = [deque() for _ in range(BUCKETS)]
        self.window: deque[tuple[int, int]] = deque()
        self.ready = IDLE
        """The bucket of the front it is in, or why it is in none."""
        self.hurried = 0
        self.taken = 0
        self.turn = 0

    @property
    def bucket(self) -> int:
        """The most urgent that it has, whatever is next: else one patient entry would hold up the urgent behind it."""
        best = next((number for number, queue in enumerate(self.queues) if queue), BUCKETS)
        return min((best, *(number for number, _ in self.window)))

    def put(self, page: int, bucket: int) -> None:
        """Behind the others of its bucket. If it is more urgent than the window, that is read again."""
        self.queues[bucket].append(page)
        if not self.hurried and self.window and bucket < self.window[0][0]:
            self.hurried = 2
            self.turn -= 1
            for number, other in reversed(self.window):
                self.queues[number].appendleft(other)
            self.window.clear()

    def refill(self, stale: Callable[[int, int], bool]) -> bool:
        """Each bucket its share, then the most urgent first."""
        self.hurried = max(0, self.hurried - 1)
        promised = priority.shares(WINDOW, self.turn)
        self.turn += 1
        for portion in (promised, (WINDOW,) * BUCKETS):
            for number, queue in enumerate(self.queues):
                wanted = min(portion[number], WINDOW - len(self.window))
                while wanted and queue:
                    page = queue.popleft()
                    if not stale(page, number):
                        self.window.append((number, page))
                        wanted -= 1
        return bool(self.window)


class Model:
    """The frontier as DESIGN section 4 has it, in little."""

    def __init__(self, graph: Graph, seeds: Sequence[int], rng: Random, delay: float, rate: float) -> None:
        pages, sites = len(graph.links), len(graph.homes)
        self.graph, self.rng, self.delay, self.rate = graph, rng, delay, rate
        self.weights, self.max_depth = Priority(), Config().limits.max_depth
        self.seeds = set(seeds)
        self.importance = Importance(Config().memory.recent_links)
        self.between = Importance(Config().memory.recent_links)
        """The pairs of sites that were seen to be linked."""
        self.steps = [priority.steps(url) for url in graph.urls]
        self.hosts = [Host() for _ in range(sites)]
        self.linkers: list[set[int]] = [set() for _ in range(sites)]
        self.site_cash = [0.0] * sites
        self.cash = [0.0] * pages
        self.depth = [0] * pages
        self.bucket = [-1] * pages
        """-1 before it is found, BUCKETS once it is fetched."""
        self.front: list[deque[Host]] = [deque() for _ in range(BUCKETS)]
        self.waiting: list[tuple[float, int, Host]] = []
        self.pushes = 0
        self.told = self.moved = self.found = 0
        self.queued = [0] * BUCKETS
        for page in seeds:
            self.cash[page] = 1.0
            self._queue(page, self._grade(page))

    def crawl(self, count: int) -> list[int]:
        """The first `count` pages, in order."""
        order: list[int] = []
        now = 0.0
        while len(order) < count:
            while self.waiting and self.waiting[0][0] <= now:
                self._to_front(heapq.heappop(self.waiting)[2])
            host = self._pick()
            if host is None:
                if not self.waiting:
                    break
                now = self.waiting[0][0]
                continue
            page = self._next(host)
            if page is not None:
                order.append(page)
                host.allowed = now + self.delay
                self._fetched(page, host)
                now += 1.0 / self.rate
            self._back(host)
        return order

    # -- hosts -------------------------------------------------------------------------------------------------

    def _to_front(self, host: Host) -> None:
        host.ready = host.bucket
        self.front[host.ready].append(host)

    def _pick(self) -> Host | None:
        """A bucket by weight, the host that has been longest in it. One that moved on leaves its old place behind."""
        while filled := [number for number in range(BUCKETS) if self.front[number]]:
            number = priority.pick(filled, self.rng.random())
            host = self.front[number].popleft()
            if host.ready == number:
                host.ready = BUSY
                return host
        return None

    def _next(self, host: Host) -> int | None:
        while host.window or host.refill(self._stale):
            page = host.window.popleft()[1]
            if self.bucket[page] < BUCKETS:
                return page
        return None

    def _stale(self, page: int, bucket: int) -> bool:
        return self.bucket[page] != bucket

    def _back(self, host: Host) -> None:
        host.ready = IDLE
        if host.bucket < BUCKETS:
            self._wait(host)

    def _wait(self, host: Host) -> None:
        host.ready = BUSY
        self.pushes += 1
        heapq.heappush(self.waiting, (host.allowed, self.pushes, host))

    # -- pages -------------------------------------------------------------------------------------------------

    def _fetched(self, page: int, host: Host) -> None:
        self.bucket[page] = BUCKETS
        host.taken += 1
        self.importance.fetched(self.graph.urls[page])
        links = self.graph.links[page]
        if not links:
            return
        each = share(rank(self.cash[page], page in self.seeds), len(links))
        urls, site_of, site = self.graph.urls, self.graph.site_of, self.graph.site_of[page]
        for target in links:
            cash = self.importance.told(urls[target], each)
            other = site_of[target]
            news = other != site and self.between.told(f"{site} {other}", Grains(1))
            if cash or news:
                self.told += 1
                self._hear(target, cash or each / PAGE, page)

    def _hear(self, page: int, cash: float, via: int) -> None:
        """The owner is told of a link: at first sight, when its cash doubled, or when a site first links to a site."""
        site, linker = self.graph.site_of[page], self.graph.site_of[via]
        more = max(0.0, cash - self.cash[page])
        if linker != site:
            self.linkers[site].add(linker)
            self.site_cash[site] += more
        self.cash[page] += more
        before = self.bucket[page]
        if before == BUCKETS:
            return
        if before < 0:
            self.found += 1
            self.depth[page] = self.depth[via] + 1
        bucket = self._grade(page)
        if before < 0 or bucket < before:
            self.moved += before >= 0
            self._queue(page, bucket)

    def _grade(self, page: int) -> int:
        site = self.graph.site_of[page]
        linkers = min(SKETCHED, len(self.linkers[site]))
        authority = priority.authority(self.site_cash[site], linkers, self.hosts[site].taken, self.cash[page])
        near = priority.near(self.depth[page], self.max_depth, self.steps[page])
        kind = "seed" if page in self.seeds else "a"
        return priority.bucket(priority.score(authority, 1.0, kind, near, "other", self.weights).total)

    def _queue(self, page: int, bucket: int) -> None:
        self.bucket[page] = bucket
        self.queued[bucket] += 1
        host = self.hosts[self.graph.site_of[page]]
        host.put(page, bucket)
        if host.ready == IDLE:
            self._wait(host)
        elif bucket < host.ready:
            self._to_front(host)


class BestFirst:
    """The orders to compare with: always the page of the smallest key, of the hosts that may be asked."""

    def __init__(
        self, graph: Graph, ranks: Sequence[float], seeds: Sequence[int], rng: Random, delay: float, rate: float,
        order: str,
    ) -> None:  # fmt: skip
        self.graph, self.ranks, self.rng, self.delay, self.rate, self.order = graph, ranks, rng, delay, rate, order
        pages, sites = len(graph.links), len(graph.homes)
        self.cash = [0.0] * pages
        self.key = [0.0] * pages
        self.found = bytearray(pages)
        self.done = bytearray(pages)
        self.queues: list[list[tuple[float, int]]] = [[] for _ in range(sites)]
        self.allowed = [0.0] * sites
        self.away = bytearray(sites)
        """In `waiting` until its clock allows a request."""
        self.ready: list[tuple[float, int, int]] = []
        self.waiting: list[tuple[float, int]] = []
        self.count = 0
        for page in seeds:
            self._find(page, 1.0)

    def crawl(self, count: int) -> list[int]:
        fetched: list[int] = []
        now = 0.0
        while len(fetched) < count and (self.ready or self.waiting):
            while self.waiting and self.waiting[0][0] <= now:
                self._wake(heapq.heappop(self.waiting)[1])
            if not self.ready:
                now = self.waiting[0][0]
                continue
            key, page, site = heapq.heappop(self.ready)
            if self.done[page] or self.away[site] or key != self.key[page]:
                continue
            self.done[page] = 1
            fetched.append(page)
            if self.delay:
                self.away[site] = 1
                heapq.heappush(self.waiting, (now + self.delay, site))
            links = self.graph.links[page]
            for target in links:
                self._find(target, rank(self.cash[page]) / len(links))
            now += 1.0 / self.rate
        return fetched

    def _find(self, page: int, cash: float) -> None:
        if self.done[page]:
            return
        self.cash[page] += cash
        if self.order == "opic":
            self.key[page] = -self.cash[page]
        elif self.found[page]:
            return
        else:
            self.count += 1
            self.key[page] = self._first_key(page)
        self.found[page] = 1
        site = self.graph.site_of[page]
        heapq.heappush(self.queues[site], (self.key[page], page))
        if not self.away[site]:
            heapq.heappush(self.ready, (self.key[page], page, site))

    def _first_key(self, page: int) -> float:
        match self.order:
            case "breadth first":
                return self.count
            case "foresight":
                return -self.ranks[page]
        return self.rng.random()

    def _wake(self, site: int) -> None:
        """Its best page that is not done. The others follow when it comes back again."""
        self.away[site] = 0
        queue = self.queues[site]
        while queue and (self.done[queue[0][1]] or queue[0][0] != self.key[queue[0][1]]):
            heapq.heappop(queue)
        if queue:
            heapq.heappush(self.ready, (*queue[0], site))


def masses(order: Sequence[int], ranks: Sequence[float], points: Sequence[float] = POINTS) -> list[float]:
    """The PageRank fetched by each of the points."""
    sums = [0.0, *accumulate(ranks[page] for page in order)]
    return [sums[min(len(order), int(len(ranks) * point))] for point in points]


def best(ranks: Sequence[float]) -> list[int]:
    return sorted(range(len(ranks)), key=lambda page: -ranks[page])


Curves = dict[str, list[float]]


def measure(
    graph: Graph, ranks: Sequence[float], delay: float, rate: float, seed: int, points: Sequence[float]
) -> tuple[Curves, float]:
    """By name of the order, the mass at each point; and how many links a page the owner was told of again."""
    seeds = [graph.homes[site] for site in Random(seed).sample(range(len(graph.homes)), 20)]
    count = int(len(ranks) * points[-1])
    curves = {"oracle": masses(best(ranks)[:count], ranks, points)}
    order, cost = _frontier.crawl(graph, seeds, seed, delay, rate, count)
    curves["harvestman"] = masses(order, ranks, points)
    again = (cost.told - cost.found) / count
    model = Model(graph, seeds, Random(seed), delay, rate)
    began = time.process_time()
    curves["model"] = masses(model.crawl(count), ranks, points)
    print(
        f"  harvestman: {cost.cpu:.1f} s CPU, {cost.found / count:.1f} new links a page, "
        f"{again:.1f} told again; model: {time.process_time() - began:.1f} s CPU, "
        f"{model.found / count:.1f} new, {(model.told - model.found) / count:.1f} again, "
        f"{model.moved / count:.2f} moved to a more urgent bucket; queued by bucket {model.queued}",
        file=sys.stderr,
    )
    for name in OTHERS:
        other = BestFirst(graph, ranks, seeds, Random(seed), delay, rate, name)
        curves[name] = masses(other.crawl(count), ranks, points)
    return curves, again


def rows(curves: Curves) -> list[Row]:
    oracle = curves["oracle"]
    return [
        (name, *(f"{mass:.1%} ({mass / most:.0%})" for mass, most in zip(curve, oracle, strict=True)))
        for name, curve in curves.items()
    ]


def drawn(curves: Curves, points: Sequence[float], title: str) -> str:
    """A plot as SVG: mass over pages."""
    width, height, edge = 560, 360, 45
    right, top = points[-1], 1.0

    def at(point: float, mass: float) -> str:
        return f"{edge + point / right * (width - 2 * edge):.1f},{height - edge - mass / top * (height - 2 * edge):.1f}"

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-size="11">',
        "<style>text { font-family: sans-serif }</style>",
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{edge}" y="20" font-size="13">{title}</text>',
    ]
    for number in range(6):
        for start, end in (
            ((number / 5 * right, 0.0), (number / 5 * right, 1.0)),
            ((0.0, number / 5), (right, number / 5)),
        ):
            lines.append(f'<polyline points="{at(*start)} {at(*end)}" stroke="#ddd" fill="none"/>')
        x, y = at(number / 5 * right, 0.0).split(",")
        lines.append(f'<text x="{x}" y="{float(y) + 15:.0f}" text-anchor="middle">{number / 5 * right:.0%}</text>')
        x, y = at(0.0, number / 5).split(",")
        lines.append(f'<text x="{float(x) - 5:.0f}" y="{float(y) + 4:.0f}" text-anchor="end">{number / 5:.0%}</text>')
    for number, (name, curve) in enumerate(curves.items()):
        path = " ".join(at(point, mass) for point, mass in zip((0.0, *points), (0.0, *curve), strict=True))
        lines.append(f'<polyline points="{path}" stroke="{COLOURS[name]}" stroke-width="2" fill="none"/>')
        lines.append(f'<text x="{edge + 12}" y="{edge + 12 + 15 * number}" fill="{COLOURS[name]}">{name}</text>')
    lines.append(f'<text x="{width / 2}" y="{height - 8}" text-anchor="middle">pages fetched, of all pages</text>')
    return "\n".join([*lines, "</svg>", ""])


def main() -> None:
    parser = options(__doc__ or "")
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--sites", type=int, default=2_000)
    parser.add_argument("--rate", type=float, default=100.0, help="requests a second, over all hosts")
    parser.add_argument("--seed", type=int, action="append", help="of web and crawl; may be given several times (1)")
    parser.add_argument("--shape", action="append", choices=[shape.name for shape in SHAPES], help="all, if not given")
    parser.add_argument("--until", type=float, default=POINTS[-1], help="share of the pages that are fetched")
    parser.add_argument("--json", action="store_true", help="print the masses as JSON, and keep nothing")
    arguments = parser.parse_args()
    points = [point for point in POINTS if point <= arguments.until]
    shapes = [shape for shape in SHAPES if not arguments.shape or shape.name in arguments.shape]
    everything: list[dict[str, object]] = []
    report = None if arguments.json else Report(__doc__ or "")
    plotted = False
    for shape in shapes:
        for seed in arguments.seed or [1]:
            graph, ranks = _web(arguments.pages, arguments.sites, shape, seed)
            for delay in (DELAY, 0.0):
                curves, again = measure(graph, ranks, delay, arguments.rate, seed, points)
                everything.append(
                    {"shape": shape.name, "seed": seed, "delay": delay, "mass": curves, "told again": again}
                )
                if report is not None:
                    manner = f"{arguments.rate:.0f} pages/s, {delay:.0f} s between requests to a host"
                    report.say(f"{shape.name}, web {seed}: {manner if delay else 'the order alone, no delays'}")
                    head = ("mass (of the oracle's)", *(f"{point:.0%} of the pages" for point in points))
                    report.table(head, rows(curves))
            if report is not None and not plotted and not arguments.no_keep:
                plotted = True
                _plot(graph, ranks, arguments.rate, seed, shape)
    if report is None:
        print(json.dumps(everything))
        return
    _summary(report, everything)
    report.say(f"Importance.told: {_told():.2f} us a link (CPU)")
    report.keep(unless=arguments.no_keep)


def _web(pages: int, sites: int, shape: Shape, seed: int) -> tuple[Graph, list[float]]:
    graph = build(pages, sites, shape, Random(seed))
    return graph, pagerank(graph.links)


def _plot(graph: Graph, ranks: Sequence[float], rate: float, seed: int, shape: Shape) -> None:
    points = [step / 200 for step in range(1, 51)]
    curves, _ = measure(graph, ranks, DELAY, rate, seed, points)
    title = f"PageRank fetched, {len(ranks):,} pages, polite ({shape.name} web)"
    path = RESULTS / f"{time.strftime('%Y-%m-%d-%H%M')}-crawl_order.svg"
    path.write_text(drawn(curves, points, title), encoding="utf-8")


def _told() -> float:
    """For the links of a page, most of them met before, as `Harvest` meets them."""
    importance, each = Importance(Config().memory.recent_links), share(0.3, 60)
    links = [f"https://site{number % 9}.example/some/path/{number}" for number in range(60)]

    def page() -> None:
        told = importance.told
        for url in links:
            told(url, each)

    return microseconds(page) / len(links)


def _summary(report: Report, everything: Sequence[dict[str, object]]) -> None:
    """Over all webs: the mass at 10 % of the pages, as a part of the oracle's; mean and worst."""
    at = POINTS.index(0.10)
    report.say("After 10 % of the pages, of the oracle's mass:")
    table: list[Row] = []
    for delay in (DELAY, 0.0):
        for name in (*OURS, *OTHERS):
            parts = [
                curves[name][at] / curves["oracle"][at]
                for result in everything
                if result["delay"] == delay and isinstance(curves := result["mass"], dict)
            ]
            manner = "polite" if delay else "no delays"
            table.append((f"{name}, {manner}", f"{sum(parts) / len(parts):.1%}", f"{min(parts):.1%}", len(parts)))
    report.table(("order", "mean", "worst", "webs"), table)
    again = [float(str(result["told again"])) for result in everything]
    report.say(f"told again: {sum(again) / len(again):.1f} links for each page that harvestman fetched, on average")


if __name__ == "__main__":
    main()
