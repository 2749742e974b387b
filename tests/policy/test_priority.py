"""How urgent a URL is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvestman.model import BUCKETS
from harvestman.policy.priority import BUCKET_WEIGHTS, SOURCE_WEIGHT, bucket, score, shares

kinds = st.sampled_from([*SOURCE_WEIGHT, "never heard of"])
unit = st.floats(0, 1)


@given(unit, unit, kinds, st.integers(0, 40), st.integers(0, 40), st.integers(0, 20))
def test_deeper_is_never_more_urgent(
    authority: float, need: float, kind: str, depth: int, deeper: int, max_depth: int
) -> None:
    shallow, deep = sorted((depth, deeper))
    first, second = score(authority, need, kind, shallow, max_depth), score(authority, need, kind, deep, max_depth)
    assert first >= second
    assert bucket(first) <= bucket(second)


@given(unit, unit, unit, unit, kinds, st.integers(0, 20))
def test_more_authority_and_more_need_are_never_less_urgent(
    a: float, b: float, c: float, d: float, kind: str, depth: int
) -> None:
    low, high = score(min(a, b), min(c, d), kind, depth, 20), score(max(a, b), max(c, d), kind, depth, 20)
    assert low <= high
    assert 0.0 <= low <= high <= 1.0 + 1e-9


@given(st.floats(-10, 10))
def test_every_score_has_a_bucket(value: float) -> None:
    assert 0 <= bucket(value) < BUCKETS


def test_the_ends_of_the_scale() -> None:
    assert bucket(1.0) == 0
    assert bucket(0.4) == BUCKETS - 1
    assert bucket(score(0.5, 1.0, "seed", 0, 20)) < bucket(score(0.5, 1.0, "a", 20, 20))
    assert score(1.0, 1.0, "seed", 0, 0) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["a", "area", "frame", "refresh", "canonical", "sitemap"])
def test_a_seed_comes_before_every_link_of_its_depth(kind: str) -> None:
    assert score(0.5, 1.0, "seed", 0, 20) > score(0.5, 1.0, kind, 0, 20)


@given(st.integers(0, 10_000))
def test_every_bucket_has_a_share_and_the_shares_fit(total: int) -> None:
    parts = shares(total)
    assert len(parts) == BUCKETS
    assert min(parts) >= 1
    assert list(parts) == sorted(parts, reverse=True)
    assert sum(parts) <= max(total, BUCKETS)


def test_weights_fall_and_never_vanish() -> None:
    assert len(BUCKET_WEIGHTS) == BUCKETS
    assert list(BUCKET_WEIGHTS) == sorted(BUCKET_WEIGHTS, reverse=True)
    assert min(BUCKET_WEIGHTS) > 0
