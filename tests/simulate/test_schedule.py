"""Remembering where a schedule begins must not change what it says."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from harvestman.config import Memory
from harvestman.embedded.state import RocksState
from harvestman.model import Instant, UrlId
from harvestman.ports import Changes
from harvestman.simulate.schedule import SimulatedState

Entry = tuple[Instant, UrlId]


@pytest.mark.parametrize("seed", range(5))
def test_a_schedule_with_a_head_says_what_one_without_says(tmp_path: Path, seed: int) -> None:
    state = SimulatedState(tmp_path / "state", Memory(cache_bytes=1 << 20, write_buffer=4 << 20))
    try:
        asyncio.run(_play(state, Random(seed)))
    finally:
        state.shut()


async def _play(state: SimulatedState, chance: Random) -> None:
    now, here = 1_000.0, list[Entry]()
    for step in range(120):
        now += chance.uniform(0, 50)
        new = [_entry(chance, now) for _ in range(chance.randrange(4))]
        gone = [here.pop(chance.randrange(len(here))) for _ in range(chance.randrange(3)) if here]
        here += new
        await state.commit(Changes(due=new, revisit=new, undue=gone, unrevisit=gone))
        until, limit = Instant(now + chance.choice([-100, 0, 1e9])), chance.choice([0, 1, 1_000])
        expected = await RocksState.due(state, until, limit)
        assert await state.due(until, limit) == expected, step
        assert await state.revisits(until, limit) == expected, step
        if limit > 1:
            await state.commit(Changes(undue=expected, unrevisit=expected))
            here = [entry for entry in here if entry not in expected]


def _entry(chance: Random, now: float) -> Entry:
    """Mostly in the future, some long past."""
    when = Instant(round(now + chance.choice([-500, 1, 100, 1_000]) * chance.random(), 3))
    return when, UrlId(bytes(2) + chance.randbytes(16))
