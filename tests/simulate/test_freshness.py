"""Freshness is measured without bias on a bounded sample, and the best possible is the best possible."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harvestman.simulate.chance import next_event
from harvestman.simulate.model import Truth
from harvestman.simulate.optimum import Known, best_freshness, freshness
from harvestman.simulate.panel import Panel

known = st.builds(Known, st.floats(1e-7, 1e-3), st.floats(0.1, 1_000.0))


def test_freshness_is_what_a_play_of_changes_and_visits_gives() -> None:
    rate, every = 1 / 1_000, 700.0
    fresh, looks = 0.0, [1e9 + n * every for n in range(4_000)]
    for seen, following in pairwise(looks):
        fresh += min(next_event("a page", rate, seen), following) - seen
    assert fresh / (looks[-1] - looks[0]) == pytest.approx(freshness(rate, 1 / every), abs=0.02)


@settings(deadline=None, max_examples=25)
@given(st.lists(known, min_size=1, max_size=20), st.floats(1e-6, 1e-2), st.integers(0, 1_000))
def test_nobody_does_better_with_as_many_visits(pages: list[Known], visits: float, seed: int) -> None:
    chance = Random(seed)
    shares = [chance.random() ** 3 for _ in pages]
    spent = [visits * share / sum(shares) for share in shares]
    total = sum(page.weight for page in pages)
    some = sum(page.weight * freshness(page.rate, f) for page, f in zip(pages, spent, strict=True)) / total
    assert best_freshness(pages, visits) >= some - 0.005, seed


@settings(deadline=None, max_examples=25)
@given(st.lists(known, min_size=1, max_size=20), st.floats(1e-6, 1e-3))
def test_more_visits_never_hurt(pages: list[Known], visits: float) -> None:
    assert 0.0 <= best_freshness(pages, visits) <= best_freshness(pages, 2 * visits) + 0.005 <= 1.01


def test_nothing_is_fresh_without_pages_or_visits() -> None:
    assert best_freshness([], 1.0) == 0.0
    assert best_freshness([Known(1.0, 1.0)], 0.0) == 0.0
    assert freshness(1.0, 0.0) == 0.0


def test_one_that_stands_for_many_counts_as_many() -> None:
    many = [Known(1e-4, 2.0)] * 8 + [Known(1e-6, 1.0)]
    one = [Known(1e-4, 2.0, 8.0), Known(1e-6, 1.0)]
    assert best_freshness(many, 1e-4) == pytest.approx(best_freshness(one, 1e-4))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3)])
def test_a_small_panel_measures_what_a_large_one_does(weighted: bool, seed: int) -> None:
    small, whole = Panel(500, weighted), Panel(100_000, weighted)
    chance = Random(seed)
    for number in range(4_000):
        truth = Truth(f"{seed} {number}", 1 / chance.uniform(1e3, 1e5), 1 / (1 - chance.random()) ** 0.7)
        for panel in (small, whole):
            panel.saw(f"https://s{number}.test/", truth, 1e9)
    assert len(small) <= 500
    assert len(whole) == 4_000
    for later in (1e3, 1e4, 3e4):
        assert small.fresh(1e9 + later) == pytest.approx(whole.fresh(1e9 + later), abs=0.08), seed
    assert best_freshness(small.known(), 0.05) == pytest.approx(best_freshness(whole.known(), 0.05), abs=0.05), seed


def test_a_page_is_fresh_until_it_changes_and_again_after_a_visit() -> None:
    panel, truth = Panel(10, weighted=True), Truth("a page", 1e-4, 3.0)
    assert panel.fresh(1e9) == 0.0
    panel.saw("u", truth, 1e9)
    changes = truth.changes(1e9)
    assert panel.fresh(changes - 0.1) == 1.0
    assert panel.fresh(changes + 0.1) == 0.0
    panel.saw("u", truth, changes + 0.2)
    assert panel.fresh(changes + 0.3) == 1.0
