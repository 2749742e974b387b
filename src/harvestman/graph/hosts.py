"""Which host links to which, and what that makes of the sites: the graph above the pages.

The authority of a site is its PageRank among sites, where a site has one vote for each it links to, however many links
it has there: else the footer of one large site would outweigh a hundred recommendations. Beside it stands how many
sites link to a host, which is harder to forge than the number of links. Memory: 16 bytes for each pair of hosts.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from harvestman.graph.rank import Hashes, Ints, Links, Longs, distinct, links_of, pairs, unpaired

TOGETHER: Final = 1 << 22
"""Pairs of hosts that are gathered before they are added up."""


class HostLinks:
    """Links between hosts, counted as they come."""

    def __init__(self) -> None:
        self._pairs: Hashes = np.zeros(0, np.uint64)
        self._counts: Longs = np.zeros(0, np.int64)
        self._fresh: list[Hashes] = []
        self._waiting = 0

    def add(self, target: Ints, source: Ints) -> None:
        """Links by the hosts at their ends; those within a host are none."""
        between = target != source
        self._fresh.append(pairs(target[between], source[between]))
        self._waiting += len(self._fresh[-1])
        if self._waiting >= TOGETHER:
            self._add_up()

    def counted(self) -> tuple[Ints, Ints, Longs]:
        """(to, from, how many links), each pair once."""
        self._add_up()
        target, source = unpaired(self._pairs)
        return target, source, self._counts

    def _add_up(self) -> None:
        fresh, times = np.unique(np.concatenate([*self._fresh, self._pairs[:0]]), return_counts=True)
        met, place = np.unique(np.concatenate([self._pairs, fresh]), return_inverse=True)
        # Whole numbers in floats: exact up to 2**53 links between two hosts.
        sums = np.bincount(place, weights=np.concatenate([self._counts, times]), minlength=len(met))
        self._pairs, self._counts = met, sums.astype(np.int64)
        self._fresh, self._waiting = [], 0


def standing(target: Ints, source: Ints, links: Longs, site_of: Ints) -> tuple[Longs, Ints]:
    """Of each host the links from other sites, and on how many sites they are; `site_of`: the site of each host."""
    hosts = len(site_of)
    foreign = site_of[target] != site_of[source]
    to, by = target[foreign], site_of[source[foreign]]
    in_links = np.bincount(to, weights=links[foreign], minlength=hosts).astype(np.int64)
    linkers = unpaired(distinct(pairs(to, by)))[0]
    return in_links, np.bincount(linkers, minlength=hosts).astype(np.int32)


def sites_linked(target: Ints, source: Ints, site_of: Ints, sites: int) -> Links:
    """The graph of sites: one link for each pair, none from a site to itself."""
    to, by = site_of[target], site_of[source]
    foreign: npt.NDArray[np.bool_] = to != by
    return links_of(sites, to[foreign], by[foreign])
