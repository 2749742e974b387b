"""The ways out that many hosts share, a proxy or an address of ours: so many requests at once by each.

A host that finds its door full is told when to come again, one after the other at the pace at which requests come back,
so that nobody has to be woken. A proxy that is at fault is left alone for a while, longer each time; then one request
at a time tries it until one gets through. The hosts behind it keep their clocks and their good name.
"""

from __future__ import annotations

from typing import Final

from harvestman.config import Retry
from harvestman.model import DIRECT, Answer, Failure, FailureKind, Instant, Route
from harvestman.policy.egress import Egress
from harvestman.policy.politeness import back_off

SHORTEST: Final = 0.05
"""Seconds that a request is taken to last at least."""
LINE: Final = 5.0
"""Seconds after which a host that found the door full looks again, at most."""


class _Door:
    __slots__ = ("failures", "inside", "limit", "line", "rests_until", "took")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.inside = 0
        self.failures = 0
        """In a row."""
        self.rests_until = 0.0
        self.line = 0.0
        """When the last in the line comes again."""
        self.took = SHORTEST
        """How long requests take, lately."""

    def opens(self, now: float) -> float:
        if now < self.rests_until:
            self.line = min(max(self.line, self.rests_until) + self.took / self.limit, self.rests_until + LINE)
            return self.line
        most = 1 if self.failures else self.limit
        if self.inside < most:
            return now
        self.line = min(max(self.line, now) + self.took / most, now + LINE)
        return self.line


class Doors:
    """Promises: no more requests at once by a route than the settings say; a straight way from anywhere has no door."""

    def __init__(self, egress: Egress, retry: Retry) -> None:
        self._egress = egress
        self._retry = retry
        self._doors: dict[str, _Door] = {}

    def opens(self, route: Route, now: Instant) -> Instant:
        """When the route may be tried: `now`, or later."""
        return now if route is DIRECT or route.refusal else Instant(self._at(route).opens(now))

    def enter(self, route: Route) -> None:
        if not (route is DIRECT or route.refusal):
            self._at(route).inside += 1

    def leave(self, route: Route, answer: Answer, chance: float) -> None:
        """A request by the route is over."""
        if route is DIRECT or route.refusal:
            return
        door = self._at(route)
        door.inside -= 1
        door.took += 0.1 * (max(SHORTEST, answer.finished - answer.started) - door.took)
        if not (isinstance(answer, Failure) and answer.kind is FailureKind.PROXY):
            door.failures = 0
        elif answer.started >= door.rests_until:  # else it was under way when another one failed: the same fault
            door.failures += 1
            door.rests_until = answer.finished + back_off(door.failures, self._retry, chance)

    def _at(self, route: Route) -> _Door:
        key = route.proxy or route.source
        door = self._doors.get(key)
        if door is None:
            door = self._doors[key] = _Door(self._egress.at_once(route))
        return door
