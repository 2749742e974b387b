"""Have we seen this link? Links met lately (`policy.importance`) -> a Bloom filter -> the exact answer of State.

No URL is silently skipped: a Bloom hit is always confirmed by State before a link is dropped.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from zlib import crc32

from abloom import BloomFilter

from harvestman.model import UrlId, UrlRecord
from harvestman.ports import Objects, State

AT_ONCE = 1_000
"""URLs put into a filter that is being rebuilt before others have their turn."""
_HEAD = struct.Struct(">4sIQ")
_MAGIC = b"HMs1"


class Seen:
    """The permanent seen-set of the partitions we own.

    Generations: when a filter holds what it was sized for, a larger one is begun and all are asked. While a lost filter
    is being rebuilt it fails open: State is asked for every link.
    """

    def __init__(self, state: State, capacity: int, errors: float = 1e-4) -> None:
        self._state = state
        self._errors = errors
        self._filters = [BloomFilter(capacity, errors, serializable=True)]
        self._room = capacity
        self._whole = True
        """Every URL of State is in the filters."""
        self.since_snapshot = 0

    async def sort(self, ids: Sequence[UrlId]) -> tuple[list[UrlId], dict[UrlId, UrlRecord]]:
        """Those not known to State, which are taken for seen from now on, and what State has of the others."""
        maybe: list[UrlId] = []
        new: list[UrlId] = []
        older, newest = self._filters[:-1], self._filters[-1]
        for url in ids:
            if any(url in old for old in older) or not newest.add(url) or not self._whole:
                maybe.append(url)
            else:
                new.append(url)
        known: dict[UrlId, UrlRecord] = {}
        if maybe:
            for url, record in zip(maybe, await self._state.records(maybe), strict=True):
                if record is None:
                    new.append(url)
                else:
                    known[url] = record
        self._spend(len(new))
        return new, known

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
            self._filters.append(BloomFilter(self._room, self._errors, serializable=True))

    # -- surviving a restart -----------------------------------------------------------------------------------

    async def restore(self, objects: Objects, name: str) -> str:
        """Load the snapshot and replay what came after it; when it is missing or damaged, `rebuild` must follow.

        Returns which of the three was found: 'snapshot', 'lost' or 'empty'.
        """
        stored = await objects.get(name)
        if stored is not None and self._load(stored):
            self._add(await self._state.fresh())
            return "snapshot"
        async for batch in self._state.ids():
            self._whole = not batch
            break
        return "empty" if self._whole else "lost"

    async def rebuild(self) -> int:
        """Fill the filters from State, in small steps between which the crawl goes on; returns how many URLs."""
        count = 0
        async for batch in self._state.ids():
            for start in range(0, len(batch), AT_ONCE):
                self._add(batch[start : start + AT_ONCE])
                await asyncio.sleep(0)
            count += len(batch)
        self._whole = True
        return count

    async def snapshot(self, objects: Objects, name: str, after: int = 0) -> None:
        """Write the filters if `after` URLs are new; what is committed from now on is replayed on a restart."""
        if self.since_snapshot < after or not self._whole:
            return
        until = self._state.last_fresh()
        self.since_snapshot = 0
        await objects.put(name, self._written())
        await self._state.forget_fresh(until)

    def _written(self) -> bytearray:
        """All filters as they are stored: in memory once, and one of them twice."""
        whole = bytearray(_HEAD.size)
        whole += struct.pack(">QI", max(0, self._room), len(self._filters))
        for each in self._filters:
            part = each.to_bytes()
            whole += struct.pack(">Q", len(part))
            whole += part
        with memoryview(whole) as body:
            _HEAD.pack_into(whole, 0, _MAGIC, crc32(body[_HEAD.size :]), len(whole) - _HEAD.size)
        return whole

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


class Keeper:
    """Keeps a seen-filter on disk: loads it, rebuilds it behind the running crawl when it is lost, writes it again."""

    def __init__(self, seen: Seen, objects: Objects, name: str) -> None:
        self._seen = seen
        self._objects = objects
        self._name = name
        self._rebuilding: asyncio.Task[int] | None = None

    async def open(self) -> None:
        if await self._seen.restore(self._objects, self._name) == "lost":
            self._rebuilding = asyncio.create_task(self._seen.rebuild())

    async def snapshot(self, after: int = 0) -> None:
        """Write it if `after` URLs are new. A rebuild that failed fails here."""
        if self._rebuilding is not None and self._rebuilding.done():
            self._rebuilding.result()
        await self._seen.snapshot(self._objects, self._name, after)

    async def close(self) -> None:
        """The last snapshot. A rebuild that is not done is given up: the next process begins it anew."""
        if self._rebuilding is not None and not self._rebuilding.done():
            self._rebuilding.cancel()
            await asyncio.wait([self._rebuilding])
        else:
            await self.snapshot()
