"""The link graph of a crawl from its page log, without holding it in memory.

1. `spill`: every link and every URL to disk, by hash.
2. The URLs, sorted by hash, are the nodes. Those that stand for another (redirects, duplicates, pages that name
   another as theirs) are folded onto it, and the rest is numbered.
3. The links of each page's latest version become pairs of numbers, thrown into files by target; a file at a time they
   are sorted, each pair kept once, and written as edges, while degrees and links between hosts are counted.

Memory: about 100 bytes a node while aliases are folded and 40 after (hash, number, host, degrees), 24 a page, 16 for
each pair of linked hosts, some 200 a host, and what is worked on at a time (below 400 MB). Disk, for a while: about 35
bytes a link, without its anchor, and 100 a URL.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types

from harvestman.graph import spill
from harvestman.graph.hosts import HostLinks, standing
from harvestman.graph.rank import Hashes, Ints, Longs, distinct, pairs, unpaired
from harvestman.graph.spill import LISTED, NOFOLLOW, Spill
from harvestman.graph.tables import (
    ALIASES,
    HOST_EDGES,
    HOSTS,
    LINKS,
    NODES,
    ROWS,
    VERSION,
    Counts,
    Folder,
    GraphFile,
    Rules,
    Tell,
)
from harvestman.model import HostKey, Page, Status, UrlRecord
from harvestman.policy.sites import site_of
from harvestman.policy.urls import host_of

EDGES_AT_ONCE: Final = 1 << 23
MOST_FILES: Final = 256
LONGEST_CHAIN: Final = 20
"""Of redirects, as a power of two."""
TELL_EVERY: Final = 10_000
_URLS: Final = pa.schema([("key", pa.uint64()), ("url", pa.string()), ("fetched", pa.bool_())])


def aliases(records: Iterable[UrlRecord]) -> Iterator[tuple[str, str]]:
    """The URLs that stand for another, as the crawl knows them, each with that other."""
    for record in records:
        visit = record.visit
        moved = record.status in (Status.REDIRECTED, Status.DUPLICATE)
        if moved and visit is not None and visit.target.startswith(("http://", "https://")):
            yield record.url, visit.target


def build(
    folder: Folder, pages: Iterable[Page], known: Iterable[tuple[str, str]], source: str, rules: Rules, tell: Tell
) -> GraphFile:
    """Make the graph anew; `known` are aliases. It counts when graph.json is written, which is the last thing done."""
    with folder.held():
        place = folder.root / "part"
        shutil.rmtree(place, ignore_errors=True)  # of a build that was killed
        place.mkdir()
        try:
            spilt = _spilt(place, pages, known, rules, tell)
            counts = _Builder(folder, place, spilt, source, rules, tell).build()
        finally:
            shutil.rmtree(place, ignore_errors=True)
        graph = GraphFile(VERSION, source, rules, counts)
        folder.write(graph)
    return graph


def _spilt(place: Path, pages: Iterable[Page], known: Iterable[tuple[str, str]], rules: Rules, tell: Tell) -> Spill:
    spilt = Spill(place, rules)
    for number, page in enumerate(pages, 1):
        spilt.page(page)
        if number % TELL_EVERY == 0:
            tell("pages read", number)
    for url, target in known:
        spilt.alias(url, target)
    spilt.close()
    return spilt


# -- arrays: pure ----------------------------------------------------------------------------------------------------


def latest(pages: Hashes, dates: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Which versions are the latest of their page; of two of one moment, the one that came later."""
    order = np.lexsort((dates, pages))
    last = np.ones(len(pages), np.bool_)
    last[:-1] = pages[order][1:] != pages[order][:-1]
    found = np.zeros(len(pages), np.bool_)
    found[order[last]] = True
    return found


def fold(nodes: int, alias: Longs, target: Longs) -> Longs:
    """The node that each stands for: the end of its chain. Whoever is led in a circle stands for itself."""
    itself = np.arange(nodes)
    step = itself.copy()
    step[alias] = target
    end = step
    for _ in range(LONGEST_CHAIN):
        further = end[end]
        if np.array_equal(further, end):
            break
        end = further
    circling = step[end] != end
    return np.where(circling, itself, end)


# -- files -----------------------------------------------------------------------------------------------------------


class _Builder:
    """The second and third steps. One use."""

    def __init__(self, folder: Folder, place: Path, spilt: Spill, source: str, rules: Rules, tell: Tell) -> None:
        self._folder = folder
        self._place = place
        self._spilt = spilt
        self._source = source
        self._rules = rules
        self._tell = tell
        self._counts = Counts()
        self._hosts: dict[HostKey, int] = {}

    def build(self) -> Counts:
        keys = self._sorted_urls()
        end = self._folded(keys)
        number = np.where(end == np.arange(len(keys)), 1, 0).cumsum().astype(np.int32)[end] - np.int32(1)
        self._number: Ints = number
        host = self._write_aliases(end)
        self._counts.nodes = len(host)
        files = self._pairs(keys)
        in_degree, out_degree, between = self._write_edges(files, host)
        self._write_nodes(end, in_degree, out_degree)
        self._write_hosts(between, host)
        return self._counts

    def _sorted_urls(self) -> Hashes:
        """The URLs to one file in the order of their hashes, which are returned."""
        keys: list[Hashes] = [np.zeros(0, np.uint64)]
        with pa.ipc.new_file(self._place / "urls.arrow", _URLS) as writer:
            for names, urls, fetched in spill.urls(self._place):
                keys.append(np.array(names, np.uint64))
                writer.write_batch(pa.record_batch([pa.array(names, pa.uint64()), urls, fetched], schema=_URLS))
        found = np.concatenate(keys)
        self._tell("URLs sorted", len(found))
        return found

    def _folded(self, keys: Hashes) -> Longs:
        pages = np.array(self._spilt.pages, np.uint64)
        canonicals = np.array(self._spilt.canonicals, np.uint64)
        live = latest(pages, np.array(self._spilt.dates, np.float64))
        own = np.searchsorted(keys, pages)
        self._page = np.where(live, own, -1)
        self._counts.pages = int(live.sum())
        naming = live & (canonicals != 0)
        # What we found out ourselves counts more than what a page says of itself: it is written over it.
        alias = np.concatenate([own[naming], np.searchsorted(keys, np.array(self._spilt.aliases, np.uint64))])
        said = np.concatenate([canonicals[naming], np.array(self._spilt.targets, np.uint64)])
        return fold(len(keys), alias, np.searchsorted(keys, said))

    def _urls(self, end: Longs) -> Iterator[tuple[pa.RecordBatch, npt.NDArray[np.bool_], Ints]]:
        """The URLs, a batch at a time: which of them are nodes, and the number of the node that each belongs to."""
        with pa.memory_map(str(self._place / "urls.arrow")) as file:
            reader = pa.ipc.open_file(file)
            first = 0
            for index in range(reader.num_record_batches):
                batch = reader.get_batch(index)
                last = first + len(batch)
                own: npt.NDArray[np.bool_] = end[first:last] == np.arange(first, last)
                yield batch, own, self._number[first:last]
                first = last

    def _write_aliases(self, end: Longs) -> Ints:
        """The URLs that are no nodes. Returns the host of each that is."""
        host: list[Ints] = [np.zeros(0, np.int32)]
        hosts = self._hosts
        with self._folder.writer("aliases", self._source) as writer:
            for batch, own, number in self._urls(end):
                urls = batch.filter(pa.array(own)).column(1).to_pylist()
                host.append(np.array([hosts.setdefault(host_of(url), len(hosts)) for url in urls], np.int32))
                other = batch.filter(pa.array(~own))
                self._counts.aliases += len(other)
                row = [other.column(0), other.column(1), pa.array(number[~own])]
                writer.write_batch(pa.record_batch(row, schema=ALIASES))
        return np.concatenate(host)

    def _pairs(self, keys: Hashes) -> list[Path]:
        """The links as pairs of nodes, in files by target; with their anchors to the table of links, if wanted."""
        page = np.where(self._page >= 0, self._number[self._page], -1) if len(keys) else self._page
        total = sum(len(batch.to) for batch in spill.links(self._place))
        files = [self._place / f"pairs-{number:03d}" for number in range(min(MOST_FILES, 1 + total // EDGES_AT_ONCE))]
        if not self._rules.links:
            self._folder.path("links").unlink(missing_ok=True)
            for batch in spill.links(self._place):
                self._pair(batch, keys, page, files)
            return files
        with self._folder.writer("links", self._source) as writer:
            for batch in spill.links(self._place):
                live, ends, counts = self._pair(batch, keys, page, files)
                words = (batch.rows.column(name).filter(pa.array(live)) for name in spill.WORDS)
                writer.write_batch(pa.record_batch([*map(pa.array, ends), *words, pa.array(counts)], schema=LINKS))
        return files

    def _pair(
        self, batch: spill.Batch, keys: Hashes, page: Longs, files: list[Path]
    ) -> tuple[npt.NDArray[np.bool_], tuple[Ints, Ints], npt.NDArray[np.bool_]]:
        """Sort the links of a batch. Returns which are of a latest version; of these, both ends, and what counts."""
        live: npt.NDArray[np.bool_] = page[batch.version] >= 0
        source: Ints = page[batch.version][live].astype(np.int32)
        what = batch.what[live]
        target = self._number[np.searchsorted(keys, batch.to[live])]
        unvouched: npt.NDArray[np.bool_] = (what == NOFOLLOW) & (not self._rules.nofollow)
        candidate = ~unvouched & (what != LISTED)
        counts: npt.NDArray[np.bool_] = candidate & (source != target)
        self._counts.links += len(source)
        self._counts.nofollow += int(unvouched.sum())
        self._counts.listings += int((what == LISTED).sum())
        self._counts.to_itself += int((candidate & (source == target)).sum())
        packed = pairs(target[counts], source[counts])
        which = target[counts].astype(np.int64) * len(files) // max(1, self._counts.nodes)
        for number in np.flatnonzero(np.bincount(which)):
            with files[number].open("ab") as file:
                packed[which == number].tofile(file)
        return live, (source, target), counts

    def _write_edges(self, files: list[Path], host: Ints) -> tuple[Ints, Ints, HostLinks]:
        """Each pair once, by target. Returns degrees in and out, and the links between hosts."""
        in_degree, out_degree = np.zeros(len(host), np.int32), np.zeros(len(host), np.int32)
        between = HostLinks()
        with self._folder.writer("edges", self._source) as writer:
            for path in files:
                packed = np.fromfile(path, np.uint64) if path.exists() else np.zeros(0, np.uint64)
                once = distinct(packed)
                target, source = unpaired(once)
                self._counts.repeated += len(packed) - len(once)
                self._counts.edges += len(once)
                np.add.at(in_degree, target, 1)
                np.add.at(out_degree, source, 1)
                between.add(host[target], host[source])
                table = pa.table({"from": source, "to": target})
                writer.write_table(table, row_group_size=ROWS)
                self._tell("edges written", self._counts.edges)
        return in_degree, out_degree, between

    def _write_nodes(self, end: Longs, in_degree: Ints, out_degree: Ints) -> None:
        first = 0
        with self._folder.writer("nodes", self._source) as writer:
            for batch, own, _ in self._urls(end):
                kept = batch.filter(pa.array(own))
                last = first + len(kept)
                hosts = [host_of(url) for url in kept.column(1).to_pylist()]
                columns = [
                    kept.column(0), kept.column(1), pa.array(hosts, pa.string()),
                    pa.array([site_of(host) for host in hosts], pa.string()), kept.column(2),
                    pa.array(in_degree[first:last]), pa.array(out_degree[first:last]),
                    pa.nulls(len(kept), pa.float64()),
                ]  # fmt: skip
                writer.write_table(pa.Table.from_arrays(columns, schema=NODES), row_group_size=ROWS)
                first = last

    def _write_hosts(self, between: HostLinks, host: Ints) -> None:
        names = list(self._hosts)
        sites = [site_of(name) for name in names]
        numbers: dict[str, int] = {}
        site = np.array([numbers.setdefault(name, len(numbers)) for name in sites], np.int32)
        target, source, links = between.counted()
        in_links, linkers = standing(target, source, links, site)
        self._counts.hosts, self._counts.sites = len(names), len(numbers)
        column = pa.array(names, pa.string())
        columns = [
            column, pa.array(sites, pa.string()),
            pa.array(np.bincount(host, minlength=len(names)).astype(np.int32)), pa.array(in_links),
            pa.array(linkers), pa.nulls(len(names), pa.float64()),
        ]  # fmt: skip
        with self._folder.writer("hosts", self._source) as writer:
            writer.write_table(pa.Table.from_arrays(columns, schema=HOSTS), row_group_size=ROWS)
        with self._folder.writer("host_edges", self._source) as writer:
            ends = [column.take(pa.array(source)), column.take(pa.array(target)), pa.array(links)]
            writer.write_table(pa.Table.from_arrays(ends, schema=HOST_EDGES), row_group_size=ROWS)
