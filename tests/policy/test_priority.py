"""How urgent a URL is, why, and that nothing starves."""

from __future__ import annotations

from random import Random

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from harvestman.config import Priority
from harvestman.model import BUCKETS
from harvestman.policy.priority import (
    BOUNDS,
    BUCKET_WEIGHTS,
    SOURCE_WEIGHT,
    Parts,
    authority,
    bucket,
    explicit,
    near,
    pick,
    score,
    shares,
    steps,
)

WEIGHTS = Priority()
kinds = st.sampled_from([*SOURCE_WEIGHT, "never heard of"])
pages = st.sampled_from(["news", "blog", "docs", "other", ""])
unit = st.floats(0, 1)
cash = st.floats(0, 1e9)
counts = st.integers(0, 10**9)


def urgency(
    worth: float, kind: str = "a", depth: int = 3, away: int = 2, need: float = 1.0, page: str = "other"
) -> int:
    return bucket(score(worth, need, kind, near(depth, 20, away), page, WEIGHTS).total)


# -- the parts -------------------------------------------------------------------------------------------------------


@given(cash, st.floats(0, 1e6), counts, cash)
def test_authority_is_a_part_between_nothing_and_one(site: float, linkers: float, taken: int, page: float) -> None:
    assert 0.0 <= authority(site, linkers, taken, page) <= 1.0


@given(cash, st.floats(0, 1e6), counts, cash, st.floats(1, 100))
def test_more_links_are_never_worth_less_and_more_taken_pages_never_more(
    site: float, linkers: float, taken: int, page: float, more: float
) -> None:
    worth = authority(site, linkers, taken, page)
    assert authority(site * more, linkers, taken, page) >= worth
    assert authority(site, linkers * more, taken, page) >= worth
    assert authority(site, linkers, taken, page * more) >= worth
    assert authority(site, linkers, int(taken * more), page) <= worth


def test_authority_tells_apart_what_crawls_meet() -> None:
    home_of_a_popular_site = authority(10.0, 60.0, 0, 2.0)
    found_on_an_unknown_home_page = authority(0.01, 1.0, 1, 0.01)
    deep_in_a_large_site = authority(1.0, 5.0, 5_000, 0.005)
    assert home_of_a_popular_site == 1.0
    assert home_of_a_popular_site > found_on_an_unknown_home_page > deep_in_a_large_site
    assert 0.1 < found_on_an_unknown_home_page < 0.9


@for_each(
    ("url", "away"),
    [
        ("https://a.example/", 0),
        ("https://a.example/news", 1),
        ("https://a.example/news/", 1),
        ("https://a.example:8080/news/2026/x.html", 3),
        ("https://a.example/?page=3", 1),
        ("https://a.example/list?next=/a/b/", 2),
    ],
)
def test_steps_from_the_root(url: str, away: int) -> None:
    assert steps(url) == away


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 20), st.integers(0, 20))
def test_deeper_and_further_from_the_root_are_never_nearer(depth: int, most: int, away: int, more: int) -> None:
    here = near(depth, most, away)
    assert 0.0 < here <= 1.0
    assert near(depth + more, most, away) <= here
    assert near(depth, most, away + more) <= here


def test_a_seed_at_the_root_is_as_near_as_can_be() -> None:
    assert near(0, 20, 0) == near(0, 0, 0) == pytest.approx(1.0)


# -- the score -------------------------------------------------------------------------------------------------------


@given(unit, unit, kinds, unit, pages)
def test_the_score_is_the_sum_of_its_parts(worth: float, need: float, kind: str, close: float, page: str) -> None:
    parts = score(worth, need, kind, close, page, WEIGHTS)
    assert parts._fields == ("authority", "freshness", "source", "depth", "boosts")
    assert parts.total == pytest.approx(sum(parts))
    most = Parts(WEIGHTS.authority, WEIGHTS.freshness, WEIGHTS.source, WEIGHTS.depth, 1.0)
    assert all(0.0 <= part <= limit for part, limit in zip(parts, most, strict=True))


@given(unit, unit, unit, unit, kinds, unit, pages)
def test_more_authority_and_more_need_are_never_less_urgent(
    a: float, b: float, c: float, d: float, kind: str, close: float, page: str
) -> None:
    low = score(min(a, b), min(c, d), kind, close, page, WEIGHTS).total
    high = score(max(a, b), max(c, d), kind, close, page, WEIGHTS).total
    assert low <= high
    assert bucket(low) >= bucket(high)


def test_boosts() -> None:
    def boost(kind: str, page: str) -> float:
        return score(0.5, 1.0, kind, 0.5, page, WEIGHTS).boosts

    assert boost("a", "other") == boost("a", "docs") == boost("a", "blog") == 0.0
    assert boost("a", "news") == WEIGHTS.news_boost
    assert boost("sitemap", "other") == boost("feed", "other") == WEIGHTS.sitemap_boost
    assert boost("sitemap", "news") == pytest.approx(WEIGHTS.sitemap_boost + WEIGHTS.news_boost)


def test_weights_can_be_set() -> None:
    only = Priority(authority=1.0, freshness=0.0, source=0.0, depth=0.0, sitemap_boost=0.0, news_boost=0.0)
    assert score(0.25, 1.0, "sitemap", 1.0, "news", only) == (0.25, 0.0, 0.0, 0.0, 0.0)


@for_each("kind", sorted(SOURCE_WEIGHT.keys() - {"seed", "sitemap", "feed"}))
def test_a_seed_is_at_least_as_urgent_as_a_link_of_its_place(kind: str) -> None:
    assert score(0.5, 1.0, "seed", 1.0, "other", WEIGHTS).total >= score(0.5, 1.0, kind, 1.0, "other", WEIGHTS).total


# -- buckets ---------------------------------------------------------------------------------------------------------


@given(st.floats(-10, 10))
def test_every_score_has_a_bucket(value: float) -> None:
    assert 0 <= bucket(value) < BUCKETS


def test_bounds_fall() -> None:
    assert len(BOUNDS) == BUCKETS - 1
    assert list(BOUNDS) == sorted(set(BOUNDS), reverse=True)
    assert [bucket(bound) for bound in BOUNDS] == list(range(BUCKETS - 1))
    assert bucket(0.0) == BUCKETS - 1


def test_a_real_mix_uses_every_bucket_and_the_urgent_ones_are_the_rare() -> None:
    rng = Random(1)
    filled = [0] * BUCKETS
    for _ in range(5_000):
        linkers, taken = int(rng.paretovariate(0.8)), int(rng.paretovariate(0.4)) - 1
        worth = authority(linkers * 0.01, min(266, linkers), min(taken, 10**6), 0.003 * rng.paretovariate(0.9))
        filled[urgency(worth, "a", rng.randint(1, 8), rng.choice((0, 1, 1, 2, 2, 2, 3, 4)))] += 1
    assert min(filled) > 0
    assert filled[0] < filled[-1]
    assert sum(filled[:3]) < sum(filled) / 4


def test_seeds_are_urgent_and_boosts_move_a_page_up() -> None:
    plain = authority(0.0, 0.0, 0, 0.005)
    assert urgency(authority(0.0, 0.0, 0, 1.0), "seed", 0, 0) <= 1
    assert urgency(plain, "sitemap") < urgency(plain, "a")
    assert urgency(plain, page="news") < urgency(plain)


@given(st.integers(0, BUCKETS - 1))
def test_explicit_priorities_overrule_the_score(given_by_score: int) -> None:
    words = ("critical", "high", "normal", "low")
    buckets = [explicit(word, given_by_score) for word in words]
    assert buckets == sorted(buckets)
    assert buckets[0] == 0
    assert buckets[1] <= 1
    assert buckets[2] == given_by_score
    assert buckets[3] >= BUCKETS - 2


# -- nothing starves -------------------------------------------------------------------------------------------------


def test_weights_fall_and_never_vanish() -> None:
    assert len(BUCKET_WEIGHTS) == BUCKETS
    assert list(BUCKET_WEIGHTS) == sorted(BUCKET_WEIGHTS, reverse=True)
    assert min(BUCKET_WEIGHTS) / sum(BUCKET_WEIGHTS) > 0.005


@given(st.sets(st.integers(0, BUCKETS - 1), min_size=1).map(sorted), st.floats(0, 1))
def test_only_a_filled_bucket_is_picked(filled: list[int], chance: float) -> None:
    assert pick(filled, chance) in filled


def test_buckets_are_picked_by_weight_and_the_last_too() -> None:
    filled, count = list(range(BUCKETS)), 20_000
    picked = [0] * BUCKETS
    for number in range(count):
        picked[pick(filled, (number + 0.5) / count)] += 1
    whole = sum(BUCKET_WEIGHTS)
    for got, weight in zip(picked, BUCKET_WEIGHTS, strict=True):
        assert got / count == pytest.approx(weight / whole, rel=0.02)


@given(st.integers(0, 300), st.integers(0, 10_000))
def test_all_places_are_promised(total: int, turn: int) -> None:
    promised = shares(total, turn)
    assert len(promised) == BUCKETS
    assert min(promised) >= 0
    assert sum(promised) == total


@given(st.integers(2, 40), st.integers(0, 1_000))
def test_over_the_turns_every_bucket_gets_its_part(total: int, first: int) -> None:
    whole = sum(BUCKET_WEIGHTS)
    turns = int(whole)
    got = [sum(column) for column in zip(*(shares(total, first + turn) for turn in range(turns)), strict=True)]
    for number, weight in enumerate(BUCKET_WEIGHTS):
        assert got[number] >= 0.6 * turns * total * weight / whole - 1, number
