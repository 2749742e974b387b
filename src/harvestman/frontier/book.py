"""The robots.txt book: what each origin asks of us, in RAM for the lively ones, in State for all."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b

from harvestman.model import Instant, Origin, Partition, RobotsRecord
from harvestman.policy.ladder import Standing, standing
from harvestman.policy.robots import Rules, parse
from harvestman.ports import State


@dataclass(slots=True)
class Entry:
    record: RobotsRecord
    rules: Rules
    text: _Text


@dataclass(slots=True)
class _Text:
    """One robots.txt, of however many origins: all hosts of a platform may have the same."""

    digest: bytes
    body: bytes
    rules: Rules
    size: int
    origins: int = 0


class RobotsBook:
    """Parsed rules by origin, least recently used out first: so many origins, and so many bytes in RAM."""

    def __init__(self, state: State, agent: str, capacity: int = 10_000, most_bytes: int = 48 << 20) -> None:
        self._state = state
        self._agent = agent
        self._capacity = capacity
        self._most_bytes = most_bytes
        self._bytes = 0
        self._entries: OrderedDict[Origin, Entry] = OrderedDict()
        self._texts: dict[bytes, _Text] = {}

    async def standing(self, partition: Partition, origin: Origin, now: Instant) -> tuple[Standing, Entry | None]:
        entry = self._entries.get(origin)
        if entry is None:
            record = await self._state.robots(partition, origin)
            if record is None:
                return Standing.ASK, None
            entry = self.learn(record)
        else:
            self._entries.move_to_end(origin)
        return standing(entry.record, now), entry

    async def record(self, partition: Partition, origin: Origin) -> RobotsRecord | None:
        entry = self._entries.get(origin)
        return entry.record if entry else await self._state.robots(partition, origin)

    def learn(self, record: RobotsRecord) -> Entry:
        text = self._text(record.body)
        text.origins += 1
        self._forget(record.origin)
        record.body = text.body
        entry = self._entries[record.origin] = Entry(record, text.rules, text)
        while len(self._entries) > self._capacity or (self._bytes > self._most_bytes and len(self._entries) > 1):
            self._forget(next(iter(self._entries)))
        return entry

    def _text(self, body: bytes) -> _Text:
        digest = blake2b(body, digest_size=16).digest()
        text = self._texts.get(digest)
        if text is None:
            rules = parse(body, self._agent)
            text = self._texts[digest] = _Text(digest, body, rules, rules.size + len(body))
            self._bytes += text.size
        return text

    def _forget(self, origin: Origin) -> None:
        entry = self._entries.pop(origin, None)
        if entry is None:
            return
        entry.text.origins -= 1
        if not entry.text.origins:
            del self._texts[entry.text.digest]
            self._bytes -= entry.text.size
