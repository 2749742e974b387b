"""The wall clock."""

from __future__ import annotations

import asyncio
import time

from harvestman.model import Instant


class WallClock:
    def now(self) -> Instant:
        return Instant(time.time())

    async def sleep_until(self, when: Instant) -> None:
        await asyncio.sleep(max(0.0, when - time.time()))
