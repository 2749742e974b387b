"""The robots.txt book: what each origin asks of us, in RAM for the lively ones, in State for all."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from harvestman.model import Instant, Origin, Partition, RobotsRecord
from harvestman.policy.ladder import Standing, standing
from harvestman.policy.robots import Rules, parse
from harvestman.ports import State


@dataclass(slots=True)
class Entry:
    record: RobotsRecord
    rules: Rules


class RobotsBook:
    """Parsed rules by origin, least recently used out first: so many origins, and so many bytes of robots.txt.

    Rules take some eight times the bytes they were read from, and a robots.txt may have a megabyte of them.
    """

    def __init__(self, state: State, agent: str, capacity: int = 10_000, most_bytes: int = 24 << 20) -> None:
        self._state = state
        self._agent = agent
        self._capacity = capacity
        self._most_bytes = most_bytes
        self._bytes = 0
        self._entries: OrderedDict[Origin, Entry] = OrderedDict()

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
        self._forget(record.origin)
        entry = self._entries[record.origin] = Entry(record, parse(record.body, self._agent))
        self._bytes += len(record.body)
        while len(self._entries) > self._capacity or (self._bytes > self._most_bytes and len(self._entries) > 1):
            self._forget(next(iter(self._entries)))
        return entry

    def _forget(self, origin: Origin) -> None:
        entry = self._entries.pop(origin, None)
        if entry is not None:
            self._bytes -= len(entry.record.body)
