"""Near duplicates among all documents: bands, union-find, one original for each cluster.

Signatures stay on disk and are mapped; one band of hashes is in memory at a time. Memory: 24 bytes a document while a
band is sorted, 8 for the union-find, some more for each document that has a duplicate. 200,000 documents take 4 s.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # ships no types

from .minhash import BANDS, SIGNATURE_BYTES, bands, similarity

_BATCH = 100_000
SIGNS = pa.schema([("signature", pa.binary(SIGNATURE_BYTES)), *((f"band{n}", pa.uint64()) for n in range(BANDS))])


class Twin(NamedTuple):
    """What a document duplicates."""

    original: int
    """The number of the document that stands for the cluster; its own for that one itself."""
    similarity: float
    size: int
    """Documents of the cluster."""


def signs_table(signatures: Sequence[bytes]) -> pa.Table:
    """Signatures with their bands; texts without one have none."""
    found = [bands(signed) if signed else None for signed in signatures]
    columns = [pa.array([signed or None for signed in signatures], SIGNS.field(0).type)]
    columns += [pa.array([b[n] if b else None for b in found], pa.uint64()) for n in range(BANDS)]
    return pa.table(columns, schema=SIGNS)


class Signatures:
    """The signatures of all documents, by number, from the files of the parts in their order."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._tables = [pa.ipc.open_file(pa.memory_map(str(path))).read_all() for path in paths]
        self._views = [_view(table["signature"]) for table in self._tables]
        self._starts = [0]
        for table in self._tables:
            self._starts.append(self._starts[-1] + table.num_rows)

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, number: int) -> memoryview:
        part = bisect_right(self._starts, number) - 1
        start = (number - self._starts[part]) * SIGNATURE_BYTES
        return self._views[part][start : start + SIGNATURE_BYTES]

    def neighbours(self, band: int) -> Iterator[tuple[int, int, int]]:
        """Pairs of documents with the same hash in a band, with the first of all that have it."""
        column = pa.chunked_array([chunk for t in self._tables for chunk in t[f"band{band}"].chunks], pa.uint64())
        order = pc.sort_indices(column)  # those without a signature come last
        hashes = pc.take(column, order).combine_chunks()
        if len(hashes) < 2:
            return
        same = pc.indices_nonzero(pc.equal(hashes[1:], hashes[:-1]))
        first, last = 0, -2
        for start in range(0, len(same), _BATCH):
            places = same[start : start + _BATCH]
            ones, others = pc.take(order, places), pc.take(order, pc.add(places, 1))
            for place, one, other in zip(places.to_pylist(), ones.to_pylist(), others.to_pylist(), strict=True):
                if place != last + 1:
                    first = one
                last = place
                yield first, one, other


def _view(column: pa.ChunkedArray) -> memoryview:
    chunk = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    data = chunk.buffers()[1]
    return memoryview(data)[chunk.offset * SIGNATURE_BYTES :] if data is not None else memoryview(b"")


def twins(signatures: Signatures, threshold: float, rank: Callable[[int], tuple[int, int]]) -> dict[int, Twin]:
    """Every document that has a near duplicate. Of each cluster the one of the lowest `rank` is the original.

    Clusters are chains: a document is at least as near as the threshold to some other of its cluster, and how near it
    is to the original is told.
    """
    parent = array("q", range(len(signatures)))
    for band in range(BANDS):
        for first, one, other in signatures.neighbours(band):
            if not _joined(parent, signatures, one, other, threshold) and first != one:
                _joined(parent, signatures, first, other, threshold)
    return _told(parent, signatures, rank)


def _joined(parent: array[int], signatures: Signatures, one: int, other: int, threshold: float) -> bool:
    """Whether two documents are in one cluster now."""
    here, there = _root(parent, one), _root(parent, other)
    if here == there:
        return True
    if similarity(signatures[one], signatures[other]) < threshold:
        return False
    parent[max(here, there)] = min(here, there)
    return True


def _root(parent: array[int], number: int) -> int:
    while parent[number] != number:
        parent[number] = parent[parent[number]]
        number = parent[number]
    return number


def _told(parent: array[int], signatures: Signatures, rank: Callable[[int], tuple[int, int]]) -> dict[int, Twin]:
    clusters: dict[int, list[int]] = defaultdict(list)
    for number in range(len(parent)):
        if parent[number] != number:
            clusters[_root(parent, number)].append(number)
    found: dict[int, Twin] = {}
    for root, members in clusters.items():
        members.append(root)
        original = min(members, key=lambda number: (*rank(number), number))
        for number in members:
            found[number] = Twin(original, similarity(signatures[number], signatures[original]), len(members))
    return found
