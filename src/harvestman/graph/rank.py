"""PageRank by power iteration over arrays: what the embedded engine is.

The arithmetic is networkx's: the rank of pages without links is spread over all, and it is over when the ranks of all
nodes together changed by less than `tolerance` a node. Links are read in the order of their targets, so that each
node's sum is one run of the array. Memory: 4 bytes a link, about 50 a node, and one block of links.
bench/graph_rank.py measures it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int32]
Longs: TypeAlias = npt.NDArray[np.int64]
Hashes: TypeAlias = npt.NDArray[np.uint64]
Floats: TypeAlias = npt.NDArray[np.float64]

DAMPING: Final = 0.85
TOLERANCE: Final = 1e-12
"""Per node. What networkx has (1e-6) would end a graph of a million nodes after its first round."""
MOST_ROUNDS: Final = 250
"""The change shrinks by the damping at least each round: this is past what a float can tell."""
BLOCK: Final = 1 << 20
"""Links that are looked at together."""
LOW: Final = np.uint64(0xFFFF_FFFF)
HIGH: Final = np.uint64(32)


class Links(NamedTuple):
    """A graph without repeated links: who links to node i is sources[starts[i]:starts[i + 1]]."""

    starts: Longs
    sources: Ints
    out_degree: Ints

    @property
    def nodes(self) -> int:
        return len(self.out_degree)


class Ranked(NamedTuple):
    """Ranks that add up to 1, and how they were come by."""

    rank: Floats
    rounds: int
    change: float
    """Of all ranks together in the last round."""
    floor: float
    """What every node has, linked or not: the rest of its rank was brought by links."""


def pairs(target: npt.NDArray[np.integer], source: npt.NDArray[np.integer]) -> Hashes:
    """Links as one number each: sorted, they are in the order of their targets."""
    return (target.astype(np.uint64) << HIGH) | source.astype(np.uint64)


def unpaired(packed: Hashes) -> tuple[Ints, Ints]:
    """(targets, sources)."""
    return (packed >> HIGH).astype(np.int32), (packed & LOW).astype(np.int32)


def distinct(packed: Hashes) -> Hashes:
    """Sorted, each once. The array is sorted in place; numpy 2.4's `unique` hashes, and takes fifty times as long."""
    packed.sort()
    first = np.ones(len(packed), np.bool_)
    np.not_equal(packed[1:], packed[:-1], out=first[1:])
    return packed[first]


def links_of(nodes: int, target: npt.NDArray[np.integer], source: npt.NDArray[np.integer]) -> Links:
    """A graph from its links in any order; one that is repeated counts once."""
    to, by = unpaired(distinct(pairs(target, source)))
    return Links(starts_of(np.bincount(to, minlength=nodes)), by, np.bincount(by, minlength=nodes).astype(np.int32))


def starts_of(in_degree: npt.NDArray[np.integer]) -> Longs:
    starts = np.zeros(len(in_degree) + 1, np.int64)
    np.cumsum(in_degree, out=starts[1:])
    return starts


def pagerank(
    links: Links, damping: float = DAMPING, tolerance: float = TOLERANCE, most_rounds: int = MOST_ROUNDS
) -> Ranked:
    """Rank every node; `change` tells whether `most_rounds` were enough."""
    nodes = links.nodes
    if not nodes:
        return Ranked(np.zeros(0), 0, 0.0, 0.0)
    dangling = np.flatnonzero(links.out_degree == 0)
    linked = np.flatnonzero(links.starts[1:] > links.starts[:-1])
    blocks = _blocks(links.starts, linked)
    rank = np.full(nodes, 1.0 / nodes)
    change = float("inf")
    floor, rounds = 1.0 / nodes, 0
    with np.errstate(divide="ignore"):
        passed_on = damping / links.out_degree
    passed_on[dangling] = 0.0
    while change >= nodes * tolerance and rounds < most_rounds:
        floor = (1.0 - damping + damping * float(rank[dangling].sum())) / nodes
        fresh = _brought(links, linked, blocks, rank * passed_on)
        fresh += floor
        rank -= fresh
        change = float(np.abs(rank, out=rank).sum())
        rank = fresh
        rounds += 1
    return Ranked(rank, rounds, change, floor)


def _blocks(starts: Longs, linked: Longs) -> list[tuple[int, int]]:
    """Runs of `linked` nodes with about BLOCK links each."""
    if not len(linked):
        return []
    cuts = np.searchsorted(starts[linked], np.arange(0, int(starts[-1]), BLOCK))
    edges = [*dict.fromkeys(cuts.tolist()), len(linked)]
    return [(a, b) for a, b in pairwise(edges) if a < b]


def _brought(links: Links, linked: Longs, blocks: list[tuple[int, int]], shares: Floats) -> Floats:
    """What its links bring to each node, when each node gives `shares` to every one it links to."""
    sums = np.zeros(links.nodes)
    for first, last in blocks:
        here = linked[first:last]
        begin, end = links.starts[here[0]], links.starts[here[-1] + 1]
        # Nodes without links to them are left out: of an empty run `reduceat` makes the number that follows it.
        sums[here] = np.add.reduceat(shares[links.sources[begin:end]], links.starts[here] - begin)
    return sums
