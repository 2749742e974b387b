"""Which hosts have a place in RAM: as many as configured, in turn, none forgotten on disk."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from harvestman.config import Config
from harvestman.frontier.hosts import ALL_BUCKETS, Host, Place
from harvestman.frontier.routing import Router
from harvestman.frontier.schedule import NEVER
from harvestman.model import HostKey, HostRecord, Instant, Partition, Seconds
from harvestman.policy.politeness import promised
from harvestman.ports import State

TURN = 64
"""Requests after which a host gives its place to one that waits on disk."""
LONG = Seconds(30.0)
"""A host that may not be asked for longer than this gives its place to one that waits on disk."""
AT_ONCE = 256
"""Hosts read from disk in one go."""

Staged = Mapping[HostKey, tuple[Partition, HostRecord]]
"""Host records that are not committed yet: newer than what State has."""


class Residents:
    """The hosts in RAM, and a cursor over those on disk.

    `overflow`: hosts with work may be waiting on disk, so rounds over the queues go on. What is turned away while a
    round is under way is `missed`, and makes another round follow.
    """

    def __init__(self, state: State, router: Router, config: Config, opened: Instant) -> None:
        self._state = state
        self._router = router
        self._config = config
        self._opened = opened
        self._hosts: dict[HostKey, Host] = {}
        self._idle: dict[HostKey, Host] = {}
        self.overflow = True
        self._missed = False
        self._cursor: tuple[Partition, HostKey] | None = None
        self.rest_ends = NEVER
        """When the first of the hosts that rest on disk (sick, or told to wait long) may be asked again."""

    def __len__(self) -> int:
        return len(self._hosts)

    def __contains__(self, name: HostKey) -> bool:
        return name in self._hosts

    def get(self, name: HostKey) -> Host | None:
        return self._hosts.get(name)

    def __getitem__(self, name: HostKey) -> Host:
        return self._hosts[name]

    # -- in ----------------------------------------------------------------------------------------------------

    async def admit(self, names: list[tuple[Partition, HostKey]], staged: Staged, now: Instant) -> list[Host]:
        """Give hosts a place, with the clocks they had; those beyond the limit wait on disk."""
        room = self._make_room(len(names), staged)
        if len(names) > room:
            self.overflow = self._missed = True
            names = names[: max(0, room)]
        admitted: list[Host] = []
        for host in await self._load(names, staged):
            if self._rests(host, now):
                self._rest(host)
            else:
                self._hosts[host.name] = host
                admitted.append(host)
        return admitted

    async def bring(self, name: HostKey, partition: Partition, staged: Staged) -> Host:
        """A host that is needed now, whatever the limit."""
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = (await self._load([(partition, name)], staged))[0]
        return host

    async def next_round(self, staged: Staged, now: Instant) -> list[Host]:
        """The next few hosts from disk, if there is room."""
        if now >= self.rest_ends:
            self.overflow = self._missed = True
            self.rest_ends = NEVER
        if not self.overflow:
            return []
        limit = min(self._make_room(AT_ONCE, staged), AT_ONCE)
        if limit <= 0:
            return []
        waiting = await self._state.waiting_hosts(self._cursor, limit)
        if len(waiting) < limit:
            # The round is over: all that waited has been met, but for those turned away meanwhile.
            self.overflow, self._missed = self._missed, False
            self._cursor = None
        else:
            self._cursor = waiting[-1]
        return await self.admit([name for name in waiting if name[1] not in self._hosts], staged, now)

    async def _load(self, names: list[tuple[Partition, HostKey]], staged: Staged) -> list[Host]:
        """Hosts as they were left, by us or by an earlier owner."""
        loaded: list[Host] = []
        for (partition, name), stored in zip(names, await self._state.hosts(names), strict=True):
            newer = staged.get(name)
            record = newer[1] if newer else stored or HostRecord(name, self._router.place(name)[1])
            host = Host.restored(record, partition, promised(self._config.politeness, name), self._opened)
            host.tails = ALL_BUCKETS
            loaded.append(host)
        return loaded

    # -- out ---------------------------------------------------------------------------------------------------

    def idle(self, host: Host) -> None:
        """It has nothing to do: the first to go when a place is needed."""
        host.place = Place.IDLE
        self._idle[host.name] = host

    def busy(self, host: Host) -> None:
        self._idle.pop(host.name, None)

    def leaves(self, host: Host, now: Instant) -> bool:
        """Whether a host that came back from a lease gives its place up; what it was is staged by the caller."""
        if host.away or host.errands:
            return False
        if self._rests(host, now):
            self._rest(host)
        elif self.overflow and host.served >= TURN and len(self._hosts) >= self._config.memory.resident_hosts:
            self._missed = True
        else:
            return False
        self._hosts.pop(host.name, None)
        return True

    def _rests(self, host: Host, now: Instant) -> bool:
        return host.clock.sick_until > now or (self.overflow and host.clock.next_allowed > now + LONG)

    def _rest(self, host: Host) -> None:
        self.rest_ends = min(self.rest_ends, max(host.clock.sick_until, host.clock.next_allowed))

    def _make_room(self, wanted: int, staged: Staged) -> int:
        """Put out idle hosts; returns how many places are free."""
        excess = len(self._hosts) + wanted - self._config.memory.resident_hosts
        if excess > 0 and self._idle:
            idle = (name for name, host in self._idle.items() if not host.away and name not in staged)
            for name in list(islice(idle, excess)):
                del self._idle[name]
                self._hosts.pop(name, None)
        return self._config.memory.resident_hosts - len(self._hosts)
