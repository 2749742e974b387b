"""The clock of a host: what every answer does to it, as tables and as properties."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from harvestman.config import Politeness, Retry
from harvestman.model import Answer, Failure, FailureKind, HostKey, Instant, Response, Seconds
from harvestman.policy.politeness import HostClock, after, asked_delay, at_least, back_off, inherited, unhealthy

NOW = Instant(1_700_000_000.0)
RULES, RETRY = Politeness(), Retry()
OURS = (FailureKind.CROWDED, FailureKind.UNWANTED, FailureKind.TOO_LARGE, FailureKind.BAD_CONTENT, FailureKind.GUARD)


def response(status: int = 200, took: float = 0.1, **headers: str) -> Response:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    started = Instant(NOW - took)
    return Response("https://a.test/", status, b"", fields, b"", "192.0.2.1", started, NOW, NOW)


def failure(kind: FailureKind) -> Failure:
    return Failure("https://a.test/", kind, "", "", NOW, NOW)


def settled(clock: HostClock, answer: Answer, floor: float = 1.0, chance: float = 0.0) -> HostClock:
    return after(clock, answer, Seconds(floor), RULES, RETRY, chance)


answers = st.one_of(
    st.builds(response, st.integers(100, 999), st.floats(0, 500)),
    st.builds(
        lambda status, value: response(status, retry_after=value),
        st.sampled_from([200, 404, 429, 500, 503]),
        st.one_of(st.integers(0, 10**6).map(str), st.text(max_size=20), st.just("-5"), st.just("1e9")),
    ),
    st.sampled_from(FailureKind).map(failure),
)
clocks = st.builds(
    HostClock,
    st.floats(0, 2e9).map(Instant),
    st.floats(0, 4000).map(Seconds),
    st.integers(0, 20),
    st.floats(0, 2e9).map(Instant),
)
floors = st.floats(0, 5000)
chances = st.floats(0, 1, exclude_max=True)


@given(clocks, answers, floors, chances)
def test_the_next_request_is_never_sooner_than_the_floor_after_the_answer(
    clock: HostClock, answer: Answer, floor: float, chance: float
) -> None:
    following = settled(clock, answer, floor, chance)
    assert following.next_allowed >= answer.finished + floor
    assert following.delay >= floor
    assert following.next_allowed >= following.sick_until
    assert following.next_allowed >= answer.finished + following.delay


@given(st.lists(answers, max_size=40), floors, chances)
def test_no_history_breaks_the_promise(history: list[Answer], floor: float, chance: float) -> None:
    clock = HostClock()
    for answer in history:
        clock = settled(clock, answer, floor, chance)
        assert clock.next_allowed >= answer.finished + floor
        assert clock.failures < RETRY.sick_after
        assert clock.delay <= max(floor, RULES.max_delay)


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("seconds", [0, 1, 59, 61, 3_601, 86_400, 31_536_000])
def test_retry_after_is_obeyed_in_full_as_seconds_and_as_a_date(status: int, seconds: int) -> None:
    date = format_datetime(datetime.fromtimestamp(NOW + seconds, UTC), usegmt=True)
    for value in (str(seconds), date):
        clock = settled(HostClock(), response(status, retry_after=value), chance=0.0)
        assert clock.next_allowed >= NOW + seconds
        assert clock.next_allowed <= NOW + max(seconds, 2.0)


def test_retry_after_outlasts_the_sick_list() -> None:
    clock = settled(HostClock(failures=4), response(503, retry_after="100000"))
    assert clock.next_allowed == NOW + 100_000
    assert clock.sick_until == NOW + 6 * 3600, "told apart, for `hosts --forgive`"


@for_each("value", ["", "soon", "-1", "1.5", "Wed, 99 Foo", "9" * 400, "٣"])
def test_an_illegible_retry_after_is_no_reason_to_hurry_or_to_break(value: str) -> None:
    clock = settled(HostClock(), response(503, retry_after=value))
    assert clock.next_allowed >= NOW + 1.0


@given(st.integers(1, 10_000), chances)
def test_back_off_has_bounds(failures: int, chance: float) -> None:
    wait = back_off(failures, RETRY, chance)
    assert RETRY.first <= wait <= RETRY.longest
    assert wait <= back_off(failures + 1, RETRY, chance)


def test_back_off_doubles_from_a_second_to_an_hour() -> None:
    assert [back_off(n, RETRY, 0.0) for n in (1, 2, 3, 4, 12, 13, 50)] == [1.0, 2.0, 4.0, 8.0, 2048.0, 3600.0, 3600.0]
    assert back_off(3, RETRY, 0.5) == 5.0


def test_the_fifth_failure_in_a_row_is_the_sick_list_for_six_hours() -> None:
    clock = HostClock()
    for n in range(1, 5):
        clock = settled(clock, failure(FailureKind.CONNECT))
        assert (clock.failures, clock.sick_until) == (n, 0.0)
    clock = settled(clock, failure(FailureKind.CONNECT))
    assert clock.sick_until == clock.next_allowed == NOW + 6 * 3600


def test_one_good_answer_forgives_the_failures_before_it() -> None:
    clock = HostClock(failures=4, delay=Seconds(1.0))
    clock = settled(clock, response(404))
    assert (clock.failures, clock.sick_until) == (0, 0.0)
    assert settled(clock, failure(FailureKind.DNS)).failures == 1


@for_each("kind", FailureKind)
def test_only_failures_of_the_host_count_against_it(kind: FailureKind) -> None:
    if kind is FailureKind.PROXY:  # the host was not asked: nothing is forgiven either
        assert (unhealthy(failure(kind)), settled(HostClock(failures=3), failure(kind)).failures) == (False, 3)
        return
    assert unhealthy(failure(kind)) is (kind not in OURS)
    assert settled(HostClock(failures=3), failure(kind)).failures == (0 if kind in OURS else 4)


@for_each(
    ("status", "ill"),
    [(200, False), (304, False), (404, False), (410, False), (429, True), (500, True), (503, True), (599, True)],
)
def test_which_statuses_are_failures_of_the_host(status: int, ill: bool) -> None:
    assert unhealthy(response(status)) is ill


def test_throttling_doubles_the_delay_up_to_a_minute_and_good_answers_restore_it_slowly() -> None:
    clock, delays = HostClock(), []
    for _ in range(4):
        clock = settled(clock, response(429))
        delays.append(clock.delay)
    assert delays == [2.0, 4.0, 8.0, 16.0]
    clock = HostClock(delay=Seconds(50.0))
    assert settled(clock, response(503)).delay == 60.0
    restored = settled(clock, response(200))
    assert restored.delay == pytest.approx(40.0)
    for _ in range(40):
        restored = settled(restored, response(200))
    assert restored.delay == 1.0


def test_a_crawl_delay_of_more_than_a_minute_is_kept() -> None:
    assert settled(HostClock(), response(429), floor=300.0).delay == 300.0


@pytest.mark.parametrize(("took", "delay"), [(0.1, 1.0), (2.0, 1.0), (2.5, 2.5), (30.0, 30.0), (90.0, 60.0)])
def test_slow_answers_stretch_the_delay(took: float, delay: float) -> None:
    assert settled(HostClock(), response(200, took)).delay == pytest.approx(delay)


@pytest.mark.parametrize(("asked", "floor"), [(None, 1.0), (0.0, 1.0), (0.2, 1.0), (30.0, 30.0)])
def test_the_longer_of_our_delay_and_theirs(asked: float | None, floor: float) -> None:
    assert asked_delay(RULES, HostKey("a.test"), None if asked is None else Seconds(asked)) == floor


@given(clocks, floors, st.floats(1e9, 2e9))
def test_an_inherited_clock_waits_a_full_interval(clock: HostClock, floor: float, now: float) -> None:
    taken_over = inherited(clock, Seconds(floor), Instant(now))
    assert taken_over.next_allowed >= now + max(clock.delay, floor)
    assert taken_over.next_allowed >= clock.next_allowed
    assert (taken_over.failures, taken_over.sick_until) == (clock.failures, clock.sick_until)


@given(clocks, answers, floors, floors, chances)
def test_a_longer_delay_learnt_later_is_kept_from_the_last_answer_on(
    clock: HostClock, answer: Answer, before: float, learnt: float, chance: float
) -> None:
    following = at_least(settled(clock, answer, before, chance), Seconds(learnt))
    assert following.next_allowed >= answer.finished + max(before, learnt) - 1e-6
    assert following.delay >= learnt
