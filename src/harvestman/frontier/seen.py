"""Have we seen this link? Recent links in RAM -> a Bloom filter -> the exact answer of State.

No URL is silently skipped: a Bloom hit is always confirmed by State before a link is dropped.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from zlib import crc32

from abloom import BloomFilter

from harvestman.model import UrlId
from harvestman.ports import Objects, State

FALSE_POSITIVES = 1e-4
_HEAD = struct.Struct(">4sIQ")
_MAGIC = b"HMs1"


class Recent:
    """The links met lately, by their text: two generations of a set, so that forgetting costs nothing.

    It answers before a link is even normalised to its key, which is what most links of a page need.
    """

    __slots__ = ("_half", "_new", "_old")

    def __init__(self, capacity: int) -> None:
        self._half = max(1, capacity // 2)
        self._new: set[str] = set()
        self._old: set[str] = set()

    def first_time(self, url: str) -> bool:
        """True once per URL, until it is forgotten."""
        new = self._new
        if url in new:
            return False
        fresh = url not in self._old
        new.add(url)
        if len(new) >= self._half:
            self._old, self._new = new, set()
        return fresh


class Seen:
    """The permanent seen-set of the partitions we own.

    Generations: when a filter holds what it was sized for, a larger one is begun and all are asked.
    """

    def __init__(self, state: State, capacity: int) -> None:
        self._state = state
        self._filters = [BloomFilter(capacity, FALSE_POSITIVES, serializable=True)]
        self._room = capacity
        self.since_snapshot = 0

    async def unseen(self, ids: Sequence[UrlId]) -> list[UrlId]:
        """Those not known to State; from now on they are taken for seen."""
        maybe: list[UrlId] = []
        new: list[UrlId] = []
        older, newest = self._filters[:-1], self._filters[-1]
        for url in ids:
            if any(url in old for old in older) or not newest.add(url):
                maybe.append(url)
            else:
                new.append(url)
        if maybe:
            known = await self._state.known(maybe)
            new.extend(url for url in maybe if url not in known)
        self._spend(len(new))
        return new

    def _add(self, ids: Sequence[UrlId]) -> None:
        """In portions, so that no filter gets more than it was sized for."""
        while ids:
            portion, ids = ids[: self._room], ids[self._room :]
            self._filters[-1].update(portion)
            self._spend(len(portion))

    def _spend(self, count: int) -> None:
        self.since_snapshot += count
        self._room -= count
        if self._room <= 0:
            self._room = 2 * self._filters[-1].capacity
            self._filters.append(BloomFilter(self._room, FALSE_POSITIVES, serializable=True))

    # -- surviving a restart -----------------------------------------------------------------------------------

    async def restore(self, objects: Objects, name: str) -> str:
        """Load the snapshot and replay what came after it; rebuild from State when it is missing or damaged.

        Returns which of the three happened: 'snapshot', 'rebuilt' or 'empty'.
        """
        stored = await objects.get(name)
        if stored is not None and self._load(stored):
            self._add(await self._state.fresh())
            return "snapshot"
        count = 0
        async for batch in self._state.ids():
            self._add(batch)
            count += len(batch)
        return "rebuilt" if count else "empty"

    async def snapshot(self, objects: Objects, name: str, after: int = 0) -> None:
        """Write the filters if `after` URLs are new; what is committed from now on is replayed on a restart."""
        if self.since_snapshot < after:
            return
        until = self._state.last_fresh()
        self.since_snapshot = 0
        parts = [part.to_bytes() for part in self._filters]
        body = struct.pack(">QI", max(0, self._room), len(parts))
        body += b"".join(struct.pack(">Q", len(part)) + part for part in parts)
        await objects.put(name, _HEAD.pack(_MAGIC, crc32(body), len(body)) + body)
        await self._state.forget_fresh(until)

    def _load(self, stored: bytes) -> bool:
        if len(stored) < _HEAD.size:
            return False
        magic, checksum, length = _HEAD.unpack_from(stored)
        body = stored[_HEAD.size :]
        if magic != _MAGIC or length != len(body) or crc32(body) != checksum:
            return False
        room, count = struct.unpack_from(">QI", body)
        filters: list[BloomFilter] = []
        at = 12
        for _ in range(count):
            (size,) = struct.unpack_from(">Q", body, at)
            try:
                filters.append(BloomFilter.from_bytes(body[at + 8 : at + 8 + size]))
            except ValueError:  # written by another version of the library
                return False
            at += 8 + size
        self._filters, self._room = filters, max(1, room)
        return True
