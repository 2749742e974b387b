"""Links to their owners: ours into the frontier, the others' into the outbox and over the bus."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from harvestman.frontier.frontier import Frontier
from harvestman.frontier.routing import Routed, Router
from harvestman.model import ANSWER, Discovery, Instant, Partition
from harvestman.ports import Bus, Changes, Parcel, Roster, State

TAKEN_BACK = 1_000_000
"""Parcels looked at when a worker starts. More than this means that a worker was away for days."""
READ_AT_ONCE = 256
"""Parcels read back from the outbox at a time, when the bus had no room for them before."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Discovery]).decode


class Dispatch:
    """At least once, whatever dies: a parcel leaves the outbox only when its receiver has committed it."""

    def __init__(self, frontier: Frontier, router: Router, roster: Roster, bus: Bus, state: State) -> None:
        self._frontier = frontier
        self._router = router
        self._roster = roster
        self._bus = bus
        self._state = state
        self._outgoing: dict[Partition, list[Discovery]] = {}
        self._answers: list[Discovery] = []
        """What became of the resources that our pages asked for."""
        self._backlog = True
        """The outbox may hold parcels the bus has not seen: from an earlier process, or for want of room."""

    async def route(self, links: Iterable[Routed], now: Instant) -> int:
        """Take in what is ours, keep the rest for the next commit; returns how many of ours were new."""
        mine: list[Routed] = []
        for routed in links:
            if not self._roster.owns(routed.partition):
                self._outgoing.setdefault(routed.partition, []).append(routed.found)
            elif routed.found.kind == ANSWER:
                self._answers.append(routed.found)
            else:
                mine.append(routed)
        new = await self._frontier.add(mine, now) if mine else 0
        led_on = self._frontier.intake.led_on()
        # At most as often as there are hops to a redirect.
        return new + (await self.route(led_on, now) if led_on else 0)

    async def take_in(self, parcels: Iterable[Parcel], now: Instant) -> int:
        new = 0
        for parcel in parcels:
            new += await self.route([self._router.route(found) for found in _decode(parcel.body)], now)
        return new

    def answered(self) -> list[Discovery]:
        """The answers that came since the last time."""
        taken, self._answers = self._answers, []
        return taken

    async def take_back(self, now: Instant) -> int:
        """Parcels in the outbox that have become our own, because partitions moved."""
        own = [parcel for parcel in await self._state.outbox(TAKEN_BACK) if self._roster.owns(parcel.partition)]
        new = await self.take_in(own, now)
        self._frontier.changes.delivered += [(parcel.partition, parcel.seq) for parcel in own]
        return new

    def stage(self, changes: Changes, now: Instant) -> None:
        """Into the commit: the parcels that leave, the names of those that have arrived."""
        changes.delivered += self._bus.delivered()
        for partition, found in self._outgoing.items():
            changes.outbox.append(Parcel(partition, self._frontier.staging.next_seq(now), _encode(found)))
        self._outgoing = {}

    async def publish(self, committed: list[Parcel]) -> None:
        """Hand parcels to the bus; what finds no room stays in the outbox and is read again from there."""
        room = self._bus.room()
        if self._backlog and room > 0:
            committed = await self._state.outbox(READ_AT_ONCE)
            self._backlog = len(committed) == READ_AT_ONCE
        elif len(committed) > room:
            self._backlog = True
            return
        if committed:
            await self._bus.publish(committed)

    @property
    def under_way(self) -> bool:
        return bool(self._bus.under_way() or self._outgoing or self._backlog)
