"""The robots.txt book: what each origin asks of us, in RAM for the lively ones, in State for all."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from harvestman.model import Instant, Origin, Partition, RobotsRecord
from harvestman.policy.ladder import Standing, standing
from harvestman.policy.robots import Rules, parse
from harvestman.ports import State


@dataclass(slots=True)
class Entry:
    bare: RobotsRecord
    """The record without its body: not to be committed, see `RobotsBook.told`."""
    rules: Rules
    text: _Text


@dataclass(slots=True)
class _Text:
    """One robots.txt, of however many origins: all hosts of a platform may have the same."""

    digest: bytes
    rules: Rules
    origins: int = 0


class RobotsBook:
    """Parsed rules by origin, least recently used out first: so many origins, and so many bytes in RAM.

    The files themselves are in State, or on their way there.
    """

    def __init__(self, state: State, agent: str, capacity: int = 10_000, most_bytes: int = 48 << 20) -> None:
        self._state = state
        self._agent = agent
        self._capacity = capacity
        self._most_bytes = most_bytes
        self._bytes = 0
        self._entries: OrderedDict[Origin, Entry] = OrderedDict()
        self._texts: dict[bytes, _Text] = {}
        self._unsaved: dict[Origin, RobotsRecord] = {}
        """Records to be committed: State does not have them yet."""

    async def standing(self, partition: Partition, origin: Origin, now: Instant) -> tuple[Standing, Entry | None]:
        entry = self._entries.get(origin)
        if entry is None:
            record = await self.record(partition, origin)
            if record is None:
                return Standing.ASK, None
            entry = self._hold(record)
        else:
            self._entries.move_to_end(origin)
        return standing(entry.bare, now), entry

    async def record(self, partition: Partition, origin: Origin) -> RobotsRecord | None:
        return self._unsaved.get(origin) or await self._state.robots(partition, origin)

    def learn(self, record: RobotsRecord) -> Entry:
        """Take a record that is committed next."""
        self._unsaved[record.origin] = record
        return self._hold(record)

    async def told(self, partition: Partition, entry: Entry, job: int) -> RobotsRecord | None:
        """Note the newest job that was told of its sitemaps; returns the record that is to be committed."""
        entry.bare.job = job
        record = await self.record(partition, entry.bare.origin)
        if record is not None:
            record.job = job
            self._unsaved[record.origin] = record
        return record

    def committed(self) -> None:
        """State has all that was learnt."""
        self._unsaved.clear()

    def _hold(self, record: RobotsRecord) -> Entry:
        text = self._text(record.body)
        text.origins += 1
        self._forget(record.origin)
        bare = msgspec.structs.replace(record, body=b"")
        entry = self._entries[record.origin] = Entry(bare, text.rules, text)
        while len(self._entries) > self._capacity or (self._bytes > self._most_bytes and len(self._entries) > 1):
            self._forget(next(iter(self._entries)))
        return entry

    def _text(self, body: bytes) -> _Text:
        digest = blake2b(body, digest_size=16).digest()
        text = self._texts.get(digest)
        if text is None:
            text = self._texts[digest] = _Text(digest, parse(body, self._agent))
            self._bytes += text.rules.size
        return text

    def _forget(self, origin: Origin) -> None:
        entry = self._entries.pop(origin, None)
        if entry is None:
            return
        entry.text.origins -= 1
        if not entry.text.origins:
            del self._texts[entry.text.digest]
            self._bytes -= entry.text.rules.size
