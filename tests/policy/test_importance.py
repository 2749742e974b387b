"""Cash of links: added up where they are met, told to the owner seldom, and never less than it was."""

from __future__ import annotations

from math import frexp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvestman.policy.importance import FEW, PAGE, WORTH_TELLING, Grains, Importance, rank, share

urls = st.sampled_from([f"https://a.example/{number}" for number in range(6)])
shares = st.integers(1, 3 * PAGE // 2).map(lambda half: Grains(2 * half))


def test_a_page_is_worth_what_its_links_gave_and_a_seed_at_least_one() -> None:
    assert rank(0.0) == pytest.approx(0.15)
    assert rank(1.0) == pytest.approx(1.0)
    assert rank(0.0, seed=True) == 1.0
    assert rank(10.0, seed=True) == rank(10.0) == pytest.approx(8.65)


@given(st.floats(0.15, 1e6), st.integers(1, 100_000))
def test_a_share_is_never_nothing_and_shares_never_exceed_the_rank_by_more_than_two_grains_each(
    worth: float, links: int
) -> None:
    each = share(worth, links)
    assert each >= 2
    assert each % 2 == 0
    assert each * links <= worth * PAGE + 2 * links


@given(st.floats(0.15, 1e6), st.integers(1, FEW))
def test_few_links_are_no_better_advice_than_many(worth: float, links: int) -> None:
    assert share(worth, links) == share(worth, FEW) > share(worth, 2 * FEW)


def test_first_sight_is_always_told_then_only_powers_of_two() -> None:
    importance = Importance(1_000)
    quarter = share(0.25 * FEW, 1)
    assert importance.told("https://a.example/", share(0.001, 1_000)) > 0.0
    told = [importance.told("https://b.example/", quarter) for _ in range(16)]
    assert [cash for cash in told if cash] == [0.25, 0.5, 1.0, 2.0, 4.0]


def test_small_sums_are_not_worth_telling() -> None:
    importance = Importance(1_000)
    least = share(0.5, 100_000)
    told = [importance.told("https://a.example/", least) for _ in range(1_000)]
    assert told[0] > 0.0
    assert not any(told[1:])


@given(st.lists(st.tuples(urls, shares), max_size=200))
def test_what_the_owner_was_told_is_at_least_half_of_the_sum(links: list[tuple[str, Grains]]) -> None:
    importance = Importance(1_000)
    sums: dict[str, int] = {}
    owner: dict[str, float] = {}
    for url, given_to_it in links:
        before = sums.get(url, 0)
        sums[url] = before + given_to_it
        told = importance.told(url, given_to_it)
        passed = not before or (frexp(sums[url])[1] > frexp(before)[1] and sums[url] >= WORTH_TELLING)
        assert told == (sums[url] / PAGE if passed else 0.0)
        owner[url] = max(owner.get(url, 0.0), told)
    for url, whole in sums.items():
        assert owner[url] <= whole / PAGE < max(2 * owner[url], WORTH_TELLING / PAGE)


@given(st.lists(st.tuples(st.integers(0, 300), shares), max_size=300), st.integers(1, 40))
def test_memory_is_bounded_and_the_forgotten_are_told_again(links: list[tuple[int, Grains]], capacity: int) -> None:
    importance = Importance(capacity)
    for number, given_to_it in links:
        importance.told(f"https://a.example/{number}", given_to_it)
        assert importance.remembered <= max(2, capacity)
    for number in range(1_000, 1_000 + capacity + 2):
        importance.told(f"https://a.example/{number}", Grains(2))
    assert importance.told("https://a.example/0", Grains(PAGE)) == 1.0


def test_a_generation_carries_its_sums_over() -> None:
    importance = Importance(4)
    half = share(0.5 * FEW, 1)
    assert importance.told("https://a.example/", half) == 0.5
    assert importance.told("https://b.example/", half) == 0.5  # the first generation is full
    assert importance.told("https://a.example/", half) == 1.0
    assert importance.told("https://a.example/", half) == 0.0


def test_of_a_page_that_is_here_only_powers_of_sixteen_are_told() -> None:
    importance = Importance(1_000)
    quarter = share(0.25 * FEW, 1)
    assert importance.told("https://a.example/", quarter) == 0.25
    importance.fetched("https://a.example/")
    told = [importance.told("https://a.example/", quarter) for _ in range(100)]
    assert [round(cash, 3) for cash in told if cash] == [1.0, 16.0]


def test_a_page_that_was_fetched_before_anybody_linked_to_it_is_no_news() -> None:
    importance = Importance(1_000)
    importance.fetched("https://a.example/")
    assert importance.told("https://a.example/", share(0.15, 60)) == 0.0


def test_that_a_page_is_here_outlives_a_generation() -> None:
    importance = Importance(4)
    half = share(0.5 * FEW, 1)
    importance.fetched("https://a.example/")
    importance.told("https://b.example/", half)  # the first generation is full
    assert round(importance.told("https://a.example/", half), 3) == 0.5
    assert round(importance.told("https://a.example/", half), 3) == 1.0
    assert not any(importance.told("https://a.example/", half) for _ in range(28))
