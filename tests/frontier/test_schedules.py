"""A schedule remembers where it begins, so that what was removed is not walked over again; it must say the same."""

from __future__ import annotations

from random import Random

import pytest
from virtual import in_a_loop

from harvestman.embedded.state import RocksState
from harvestman.model import Instant, UrlId
from harvestman.ports import Changes

Entry = tuple[Instant, UrlId]


@pytest.mark.parametrize("seed", range(5))
@in_a_loop
async def test_a_schedule_is_what_was_put_in_and_not_taken_out(state: RocksState, seed: int) -> None:
    chance, now, here = Random(seed), 1_000.0, list[Entry]()
    for step in range(120):
        now += chance.uniform(0, 50)
        new = [_entry(chance, now) for _ in range(chance.randrange(4))]
        gone = [here.pop(chance.randrange(len(here))) for _ in range(chance.randrange(3)) if here]
        here += new
        await state.commit(Changes(due=new, revisit=new, undue=gone, unrevisit=gone))
        until, limit = Instant(now + chance.choice([-100, 0, 1e9])), chance.choice([0, 1, 1_000])
        expected = sorted(entry for entry in here if entry[0] <= until)[:limit]
        assert await state.due(until, limit) == expected, (seed, step)
        assert await state.revisits(until, limit) == expected, (seed, step)
        if limit > 1:
            await state.commit(Changes(undue=expected, unrevisit=expected))
            here = [entry for entry in here if entry not in expected]


def _entry(chance: Random, now: float) -> Entry:
    """Mostly in the future, some long past."""
    when = Instant(round(now + chance.choice([-500, 1, 100, 1_000]) * chance.random(), 3))
    return when, UrlId(chance.randrange(3).to_bytes(2) + chance.randbytes(16))
