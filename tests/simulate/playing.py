"""Simulations for tests: what they have in common."""

from __future__ import annotations

from typing import Protocol

from harvestman.config import Config, Memory
from harvestman.simulate.plan import Plan
from harvestman.simulate.report import Report

CONFIG = Config(memory=Memory(seen_capacity=50_000, cache_bytes=4 << 20, write_buffer=8 << 20))


class Play(Protocol):
    def __call__(
        self, plan: Plan, days: float, rate: float = 0.0, *, config: Config = CONFIG, max_requests: int = 0
    ) -> Report: ...
