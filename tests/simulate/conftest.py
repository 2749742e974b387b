"""Simulations for tests: small, and each in a directory of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from simulate.playing import CONFIG, Play

from harvestman.config import Config
from harvestman.simulate.plan import Plan
from harvestman.simulate.report import Report
from harvestman.simulate.world import Simulation, Wish


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Plays a simulation to its end."""
    played = iter(range(1_000))

    def run(
        plan: Plan, days: float, rate: float = 0.0, *, config: Config = CONFIG, max_requests: int = 0
    ) -> Report:  # fmt: skip
        simulation = Simulation(Wish(plan, config, days, rate, max_requests), tmp_path / f"state{next(played)}")
        try:
            return asyncio.run(simulation.play())
        finally:
            simulation.close()

    return run
