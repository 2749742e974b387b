"""A web to rank: sites of Zipf sizes, templates, hubs, and links between sites that prefer the popular; its PageRank.

What the shapes have in common follows the literature: four of five links stay on their site; most pages of a site link
to its home page and its sections; links from elsewhere prefer popular sites and there the home page; half of a site's
links to others go to the same few; everything can be reached.
"""

from __future__ import annotations

from array import array
from bisect import bisect
from dataclasses import dataclass
from itertools import accumulate
from math import exp, sqrt
from random import Random

DAMPING = 0.85


@dataclass(slots=True, frozen=True)
class Shape:
    """What one web differs in from another."""

    name: str
    sizes: float = 1.0
    """Zipf exponent of the sizes of sites."""
    noise: float = 1.2
    """How far popularity strays from size (sigma of its logarithm)."""
    sections: int = 10
    """Links in a site's template, at most."""
    template: float = 0.9
    """How many of its pages have it."""
    related: float = 5.0
    """Links to other pages of the site, on average, besides those of the hierarchy."""
    outside: float = 0.2
    """Share of links that leave the site."""
    to_home: float = 0.6
    to_popular: float = 0.25
    """Of the links between sites: to home pages, to popular pages; the rest goes anywhere."""
    tidy: float = 0.5
    """Sites whose URLs follow their hierarchy; those of the others are flat and tell nothing."""


SHAPES = (
    Shape("plain"),
    Shape("bare", template=0.4, sections=4),
    Shape("deep links", to_home=0.3, to_popular=0.35),
    Shape("big sites", sizes=1.25),
    Shape("even", sizes=0.6, noise=2.0, outside=0.3),
    Shape("knit", related=15.0, sections=20),
    Shape("flat", tidy=0.0),
)


@dataclass(slots=True)
class Graph:
    """Pages are numbers; a site's pages follow one another, its home page first."""

    links: list[array[int]]
    site_of: array[int]
    homes: list[int]
    urls: list[str]


def build(pages: int, sites: int, shape: Shape, rng: Random) -> Graph:
    sizes = _sizes(pages, sites, shape.sizes)
    homes = [0, *accumulate(sizes)][:-1]
    reach = list(accumulate(size**0.7 * exp(rng.gauss(0.0, shape.noise)) for size in sizes))
    site_of = array("i")
    urls: list[str] = []
    links: list[array[int]] = []
    for site, size in enumerate(sizes):
        site_of.extend([site] * size)
        rows, paths = _site(site, sizes, homes, reach, shape, rng)
        links.extend(rows)
        urls.extend(f"https://site{site}.example{path}" for path in paths)
    for site in range(sites):  # somebody links to everybody
        links[rng.randrange(pages)].append(homes[site])
    return Graph(links, site_of, homes, urls)


def _sizes(pages: int, sites: int, exponent: float) -> list[int]:
    weights = [(place + 1) ** -exponent for place in range(sites)]
    sizes = [max(1, int(pages * weight / sum(weights))) for weight in weights]
    sizes[0] += pages - sum(sizes)
    return sizes


def _site(
    site: int, sizes: list[int], homes: list[int], reach: list[float], shape: Shape, rng: Random
) -> tuple[list[array[int]], list[str]]:
    """The links and paths of a site's pages: a tree of hubs, a template, related pages, and links to other sites."""
    home, size = homes[site], sizes[site]
    chance = rng.random
    sections = min(shape.sections, int(sqrt(size)), size - 1)
    tidy = chance() < shape.tidy
    paths = ["/"]
    children: list[list[int]] = [[] for _ in range(size)]
    parent = [0] * size
    for page in range(1, size):
        parent[page] = 0 if page <= sections else int(chance() * (page // 10 + 1))
        children[parent[page]].append(page)
        paths.append(f"{paths[parent[page]] if tidy else '/'}{page}/")
    friends = [_preferred(reach, rng) for _ in range(10)]
    always = [homes[rng.choice(friends)] for _ in range(rng.choice((0, 0, 0, 0, 0, 0, 0, 0, 1, 3)))]
    links = []
    for page in range(size):
        own = [parent[page], *children[page]]
        if chance() < shape.template:
            own += range(sections + 1)
        else:
            own.append(0)
        for _ in range(int(rng.expovariate(1 / shape.related))):
            near = chance() < 0.5
            own.append((page + rng.randint(-5, 5)) % size if near else int(size * chance() ** 3))
        row = array("i", (home + other for other in dict.fromkeys(own) if other != page))
        for _ in range(_outside(len(row), shape, rng)):
            row.append(_elsewhere(friends, sizes, homes, reach, shape, rng))
        row.extend(always)
        links.append(row)
    return links, paths


def _outside(inside: int, shape: Shape, rng: Random) -> int:
    """Two pages of five link to other sites."""
    if not inside or rng.random() > 0.4:
        return 0
    return int(rng.expovariate(0.4 / (inside * shape.outside / (1 - shape.outside))) + rng.random())


def _elsewhere(
    friends: list[int], sizes: list[int], homes: list[int], reach: list[float], shape: Shape, rng: Random
) -> int:
    chance = rng.random
    site = rng.choice(friends) if chance() < 0.5 else _preferred(reach, rng)
    kind = chance()
    if kind < shape.to_home:
        return homes[site]
    bias = 4 if kind < shape.to_home + shape.to_popular else 1
    return homes[site] + int(sizes[site] * chance() ** bias)


def _preferred(reach: list[float], rng: Random) -> int:
    return bisect(reach, rng.random() * reach[-1], 0, len(reach) - 1)


def pagerank(links: list[array[int]], rounds: int = 60, exact: float = 1e-6) -> list[float]:
    """By power iteration; the sum is 1. A page without links passes its rank to everybody."""
    count = len(links)
    rank = [1.0 / count] * count
    for _ in range(rounds):
        idle = sum(rank[page] for page, row in enumerate(links) if not row)
        after = [(1 - DAMPING + DAMPING * idle) / count] * count
        for own, row in zip(rank, links, strict=True):
            if row:
                part = DAMPING * own / len(row)
                for target in row:
                    after[target] += part
        moved = sum(abs(new - old) for new, old in zip(after, rank, strict=True))
        rank = after
        if moved < exact:
            break
    return rank
