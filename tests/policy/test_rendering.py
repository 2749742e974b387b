"""What a browser may cost, and which sites' pages it is worth it for."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvestman.model import Instant, Learned, Seconds
from harvestman.policy.rendering import (
    AGAIN,
    MEMORY,
    PERHAPS,
    ROUNDS,
    SILENCE,
    TRIALS,
    Share,
    gained,
    learn,
    next_try,
    worth_it,
)

NEVER = 0.999
STRONG, WEAK = "empty root: #app", f"{PERHAPS}little text"


def after(*renders: bool) -> Learned:
    learned = Learned()
    for gain in renders:
        learned = learn(learned, gain)
    return learned


# -- what a site teaches -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "rendered", "more"),
    [
        ((0, 0), (0, 0), False),
        ((0, 0), (200, 0), True),
        ((0, 0), (199, 4), False),
        ((46, 0), (46, 5), True),
        ((1_000, 20), (1_200, 29), False),
        ((1_000, 20), (1_500, 20), True),
        ((1_000, 20), (1_000, 30), True),
        ((5_000, 100), (300, 3), False),
    ],
)
def test_what_counts_as_gain(raw: tuple[int, int], rendered: tuple[int, int], more: bool) -> None:
    assert gained(*raw, *rendered) is more


@given(*[st.integers(0, 10**7)] * 2)
def test_the_same_again_is_no_gain(text: int, links: int) -> None:
    assert not gained(text, links, text, links)


def test_a_new_site_is_tried_for_strong_reasons_only() -> None:
    assert worth_it(Learned(), STRONG, NEVER)
    assert not worth_it(Learned(), WEAK, 0.0)
    assert not worth_it(Learned(), "", 0.0)


def test_a_site_that_gains_nothing_is_given_up_all_but_a_few() -> None:
    assert worth_it(after(*[False] * (TRIALS - 1)), STRONG, NEVER)
    barren = after(*[False] * TRIALS)
    assert not worth_it(barren, STRONG, AGAIN)
    assert worth_it(barren, STRONG, AGAIN / 2)
    assert not worth_it(barren, "", 0.0)


def test_a_site_that_was_given_up_recovers() -> None:
    learned = after(*[False] * 200)
    assert not worth_it(learned, STRONG, NEVER)
    gains = 0
    while not worth_it(learned, STRONG, NEVER):
        learned = learn(learned, True)
        gains += 1
    assert gains <= 8


def test_where_rendering_pays_weak_reasons_count() -> None:
    assert not worth_it(after(True, True, True), WEAK, 0.0)
    assert worth_it(after(True, True, True, True), WEAK, NEVER)
    assert worth_it(after(True, False, True, False), WEAK, NEVER)
    mixed = after(True, False, False, False, True)
    assert not worth_it(mixed, WEAK, 0.0)
    assert worth_it(mixed, STRONG, NEVER)


@given(st.lists(st.booleans(), max_size=300))
def test_what_is_learned_stays_small_and_sound(renders: list[bool]) -> None:
    learned = after(*renders)
    assert 0 <= learned.gained <= learned.rendered < MEMORY
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(learned), type=Learned) == learned


# -- the share of the CPU ----------------------------------------------------------------------------------------------

BURST = Seconds(10.0)
steps = st.lists(st.tuples(st.floats(0.0, 120.0), st.floats(0.0, 10.0)), max_size=80)
"""Time that passes, and what a render takes if one may begin then."""


@given(steps, st.floats(0.001, 1.0), st.floats(-10.0, 10.0))
def test_renders_take_no_more_than_their_share(steps: list[tuple[float, float]], part: float, saved: float) -> None:
    share, now, spent, longest = Share(part, BURST, Instant(0.0), Seconds(saved)), 0.0, 0.0, 0.0
    for passed, took in steps:
        now += passed
        if share.may(Instant(now)):
            share.spend(Seconds(took))
            spent, longest = spent + took, max(longest, took)
        assert spent <= part * now + BURST + longest + 1e-6


@given(steps, st.floats(0.001, 1.0))
def test_while_it_is_idle_all_of_the_time_is_the_browsers(steps: list[tuple[float, float]], part: float) -> None:
    share, now, spent, longest = Share(part, BURST, Instant(0.0), BURST), 0.0, 0.0, 0.0
    for passed, took in steps:
        now += passed
        if share.may(Instant(now), idle=True):
            share.spend(Seconds(took))
            spent, longest = spent + took, max(longest, took)
        assert spent <= now + BURST + longest + 1e-6


def test_a_debt_is_worked_off_at_the_rate_of_the_share() -> None:
    share = Share(0.1, BURST, Instant(0.0), BURST)
    assert share.may(Instant(0.0))
    share.spend(Seconds(13.0))
    assert not share.may(Instant(29.0))
    assert share.may(Instant(31.0))
    share.spend(Seconds(5.1))
    assert not share.may(Instant(36.0))
    assert share.may(Instant(41.0), idle=True)


def test_what_is_saved_up_has_an_end() -> None:
    share = Share(0.1, BURST, Instant(0.0))
    assert share.may(Instant(1e6))
    share.spend(BURST)
    assert not share.may(Instant(1e6))


def test_a_clock_that_goes_back_earns_nothing() -> None:
    share = Share(0.5, BURST, Instant(100.0))
    assert not share.may(Instant(0.0))
    assert not share.may(Instant(100.0))
    assert share.may(Instant(101.0))


def test_no_share_is_no_browser() -> None:
    assert not Share(0.0, BURST, Instant(0.0), BURST).may(Instant(1e6), idle=True)


# -- rounds ------------------------------------------------------------------------------------------------------------


def looks(since: float) -> list[float]:
    """The moments at which a page is looked at of which nothing more comes, from the start."""
    moments, now = [], Instant(since)
    while (then := next_try(1, 3, Instant(since), now)) is not None:
        now = then
        moments.append(now - since)
    return moments


def test_it_is_looked_for_ever_more_rarely_and_then_no_more() -> None:
    moments = looks(1_000.0)
    assert moments[:6] == [2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    assert {after - before for before, after in pairwise(moments[5:])} == {60.0}
    assert SILENCE <= moments[-1] < SILENCE + 60.0


def test_a_page_that_lacks_nothing_goes_on_at_once() -> None:
    assert next_try(1, 0, Instant(5.0), Instant(9.0)) == 9.0
    assert next_try(1, 0, Instant(0.0), Instant(SILENCE + 1.0)) == SILENCE + 1.0


def test_after_the_last_round_it_is_over() -> None:
    assert next_try(ROUNDS - 1, 1, Instant(0.0), Instant(0.0)) == 2.0
    assert next_try(ROUNDS, 1, Instant(0.0), Instant(0.0)) is None
    assert next_try(ROUNDS, 0, Instant(0.0), Instant(0.0)) is None


@given(st.integers(0, 9), st.integers(0, 99), st.floats(0.0, 2e9), st.floats(-100.0, 2_000.0))
def test_a_look_is_never_in_the_past_nor_far_off(round: int, waiting: int, since: float, waited: float) -> None:
    now = Instant(since + waited)
    then = next_try(round, waiting, Instant(since), now)
    assert then is None or now <= then <= now + 60.0 + 1e-3
