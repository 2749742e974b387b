"""The clock of a worker: wall time that only moves forward, at the pace of seconds."""

from __future__ import annotations

import time

from harvestman.model import Instant


class WallClock:
    """The wall's time when it was made, and what has passed since by a clock nobody sets.

    A wall clock that is set forward would cut every delay short; set back, it would stall the crawl.
    """

    def __init__(self) -> None:
        self._offset = time.time() - _passing()

    def now(self) -> Instant:
        return Instant(self._offset + _passing())


def _passing() -> float:
    """Seconds since some moment; on Linux also those the machine slept through."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)
