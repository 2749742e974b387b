"""One thread for many sockets: whoever can go on is called, and so is whoever's time has come.

Plain epoll, because on uvloop a new connection costs half as much again (`python -m harvestman.sim.cost`).
"""

from __future__ import annotations

import heapq
import select
import sys
import time
from collections.abc import Callable
from itertools import count
from typing import TypeAlias

READ, WRITE = select.POLLIN, select.POLLOUT
_AT_ONCE = 256
Ready: TypeAlias = Callable[[int], None]
"""What to call with the events of a socket: READ, WRITE or, when it is broken, something else."""


class Loop:
    """Runs until it is told to stop; it notices that when something happens, so see by `later` that something does."""

    def __init__(self) -> None:
        self._calls: dict[int, Ready] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._stopped = False
        if sys.platform == "linux":
            self._poller = select.epoll()
        else:
            self._poller = select.poll()

    def watch(self, fileno: int, ready: Ready) -> None:
        """Calls `ready` whenever there is something to read."""
        self._calls[fileno] = ready
        self._poller.register(fileno, READ)

    def want(self, fileno: int, events: int) -> None:
        """Calls it for these events from now on."""
        self._poller.modify(fileno, events)

    def forget(self, fileno: int) -> None:
        """To be said before a socket is closed."""
        del self._calls[fileno]
        self._poller.unregister(fileno)

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._numbers), call))

    def stop(self) -> None:
        """May be said from a signal handler or another thread."""
        self._stopped = True

    def run(self) -> None:
        calls, timers = self._calls, self._timers
        while not self._stopped:
            for fileno, events in self._poll(max(0.0, timers[0][0] - time.monotonic()) if timers else None):
                calls[fileno](events)
            while timers and timers[0][0] <= time.monotonic():
                heapq.heappop(timers)[2]()

    def _poll(self, seconds: float | None) -> list[tuple[int, int]]:
        if sys.platform == "linux":
            return self._poller.poll(seconds, _AT_ONCE)
        return self._poller.poll(None if seconds is None else 1000 * seconds)
