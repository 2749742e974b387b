"""What hosts share: addresses (one request at a time) and sites (so many requests a second)."""

from __future__ import annotations

from harvestman.config import Politeness
from harvestman.frontier.hosts import Host
from harvestman.model import Instant, SiteKey


class Gate:
    """An address: one request at a time over all hosts that share it."""

    __slots__ = ("busy", "next_allowed", "waiting")

    def __init__(self) -> None:
        self.busy = False
        self.next_allowed = Instant(0.0)
        self.waiting: list[Host] = []


class Gates:
    """The gates of the addresses in use, and the next free slot of each site."""

    def __init__(self, rules: Politeness, capacity: int) -> None:
        self._rules = rules
        self._capacity = capacity
        self._gates: dict[str, Gate] = {}
        self._site_next: dict[SiteKey, float] = {}

    def at(self, address: str) -> Gate:
        gate = self._gates.get(address)
        if gate is None:
            gate = self._gates[address] = Gate()
        return gate

    def leave(self, address: str, finished: Instant) -> list[tuple[Host, Instant]]:
        """A request is over: the hosts that waited for it, each with the moment it may try again."""
        delay = self._rules.ip_delay
        gate = self._gates[address]
        gate.busy = False
        gate.next_allowed = when = Instant(finished + delay)
        woken: list[tuple[Host, Instant]] = []
        for host in gate.waiting:
            # One after the other, so that they do not all wake to find the gate taken again.
            woken.append((host, Instant(max(when, host.clock.next_allowed))))
            when = Instant(when + delay)
        gate.waiting = []
        if len(self._gates) + len(self._site_next) > self._capacity:
            self._forget_quiet(finished)
        return woken

    def site_slot(self, site: SiteKey, now: Instant) -> Instant:
        """Take the site's next free slot: now, or the moment it is free."""
        slot = max(now, self._site_next.get(site, 0.0))
        self._site_next[site] = slot + self.site_interval
        return Instant(slot)

    @property
    def site_interval(self) -> float:
        return 1.0 / self._rules.site_rate

    def _forget_quiet(self, now: Instant) -> None:
        self._gates = {a: g for a, g in self._gates.items() if g.busy or g.waiting or g.next_allowed > now}
        self._site_next = {s: at for s, at in self._site_next.items() if at > now}
