"""When a page is visited again."""

from __future__ import annotations

import math
from heapq import heapify, heapreplace
from pathlib import Path
from random import Random

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from harvestman.config import Recrawl
from harvestman.model import Change, Instant, Seconds
from harvestman.policy import revisit
from harvestman.policy.kinds import Kind
from harvestman.policy.revisit import DAY, Price, interval, lastmod_due, next_visit, observed, prior, worth

RULES = Recrawl(per_day=1_000.0)
NOW = Instant(1_800_000_000.0)

shapes = st.floats(0.3, 60.0)
exposures = st.floats(60.0, 1e8).map(Seconds)
weights = st.floats(1e-3, 1e3)
prices = st.floats(revisit.LOWEST, revisit.HIGHEST)
waits = st.floats(-3.0, 9.0).map(lambda power: Seconds(10.0**power))
beliefs = st.builds(Change, shapes, exposures, st.just(NOW))


def rate(change: Change) -> float:
    return change.shape / change.exposure


def known(per_day: float) -> Change:
    return Change(1e6, Seconds(1e6 / per_day * DAY), NOW)


def later(wait: float) -> Instant:
    return Instant(NOW + wait)


# What we believe.


@pytest.mark.parametrize(("kind", "every"), [("news", 3_600), ("blog", DAY), ("docs", 7 * DAY), ("other", 7 * DAY)])
def test_a_kind_says_how_often_at_first(kind: Kind, every: float) -> None:
    first = prior(kind, RULES, NOW)
    assert 1 / rate(first) == pytest.approx(every)
    assert (first.looked, first.visits, first.changes) == (NOW, 0, 0)


def test_unchanged_is_exact() -> None:
    after = observed(Change(0.5, Seconds(DAY), NOW, 3, 2, 1), False, later(2 * DAY))
    assert after == Change(0.5, Seconds(3 * DAY), later(2 * DAY), 4, 2, -1)


def test_a_streak_counts_the_visits_that_agree() -> None:
    change, streaks = prior("blog", RULES, NOW), []
    for hour, changed in enumerate((True, True, False, False, False, True), 1):
        change = observed(change, changed, later(hour * 3_600))
        streaks.append(change.streak)
    assert streaks == [1, 2, -1, -2, -3, 1]


def moments(a: float, b: float, waited: float) -> tuple[float, float]:
    """Mean and variance of a Gamma after 'changed within', by quadrature over the logarithm of the rate."""
    low, high, steps = math.log(a / b) - 40.0 / min(a, 1.0), math.log(a / b) + 8.0, 40_000
    zeroth = first = second = 0.0
    for step in range(steps):
        x = math.exp(low + (high - low) * step / steps)
        density = math.exp(a * math.log(x * b) - b * x) * -math.expm1(-x * waited)
        zeroth, first, second = zeroth + density, first + density * x, second + density * x * x
    return first / zeroth, second / zeroth - (first / zeroth) ** 2


@pytest.mark.parametrize(("a", "waited"), [(0.5, 1e-4), (0.5, 1.0), (1.0, 0.3), (3.0, 50.0), (20.0, 0.01)])
def test_changed_has_the_moments_of_the_true_posterior(a: float, waited: float) -> None:
    after = observed(Change(a, Seconds(DAY), NOW), True, later(waited * DAY))
    mean, variance = moments(a, 1.0, waited)
    assert rate(after) * DAY == pytest.approx(mean, rel=1e-3)
    assert after.shape / (after.exposure / DAY) ** 2 == pytest.approx(variance, rel=1e-3)


@given(beliefs, waits)
def test_beliefs_stay_sound_and_move_the_right_way(change: Change, waited: Seconds) -> None:
    yes, no = observed(change, True, later(waited)), observed(change, False, later(waited))
    for after in (yes, no):
        assert 0.0 < after.shape <= revisit.MEMORY * (1 + 1e-9)
        assert 0.0 < after.exposure < math.inf
        assert after.visits == 1
    if change.exposure + waited < revisit.QUIET and change.shape > revisit.PRIOR_SHAPE:
        assert rate(yes) >= rate(change) * (1 - 1e-6)
        assert rate(no) <= rate(change) * (1 + 1e-6)


def test_a_change_at_once_is_a_whole_change_and_one_in_an_age_is_none() -> None:
    change = Change(2.0, Seconds(DAY), NOW)
    assert observed(change, True, NOW).shape == pytest.approx(3.0)
    assert observed(change, True, later(1e-6)).shape == pytest.approx(3.0, rel=1e-6)
    ages = observed(change, True, later(1e12))
    assert (ages.shape, ages.exposure) == pytest.approx((2.0, DAY), rel=1e-6)


def learned(true: float, visits: int, every: float, seed: int) -> float:
    """How far off the rate is in the end, as a factor, from a wrong first guess."""
    chance, now, change = Random(seed), float(NOW), prior("blog", RULES, NOW)
    for _ in range(visits):
        start, last, at = now, 0.0, now
        now += every
        while (at := at + chance.expovariate(true)) < now:
            last = at
        change = observed(change, last > start, Instant(now))
    return max(rate(change) / true, true / rate(change))


def test_rates_are_learned() -> None:
    true, every = 6.0 / DAY, DAY / 3  # twice between two looks
    assert sum(learned(true, 60, every, seed) for seed in range(30)) / 30 < 1.35


def test_a_page_that_falls_silent_is_noticed_and_so_is_one_that_wakes() -> None:
    change, now = prior("blog", RULES, NOW), float(NOW)
    for _ in range(1_000):
        now += 3_600
        change = observed(change, True, Instant(now))
    assert 1 / rate(change) < 3_600
    change = observed(change, False, Instant(now + 5 * DAY))
    assert 1 / rate(change) > DAY / 10
    for _ in range(100):
        now += 30 * DAY
        change = observed(change, False, Instant(now))
    assert 1 / rate(change) > 90 * DAY
    for _ in range(6):
        now += 10 * DAY
        change = observed(change, True, Instant(now))
    assert 1 / rate(change) < 45 * DAY


@for_each(
    ("old", "new", "before", "after", "verdict"),
    [
        (b"a", b"a", 1, 1, False),
        (b"a", b"a", 0b0001, 0b111110, False),
        (b"a", b"b", 0xFF00, 0xFF07, False),
        (b"a", b"b", 0xFF00, 0xFF0F, True),
        (b"a", b"b", 0, 0xFF, True),
        (b"a", b"b", 0xFF, 0, True),
        (b"a", b"b", 0, 0, True),
    ],
)
def test_other_bytes_that_say_the_same_are_no_change(
    old: bytes, new: bytes, before: int, after: int, verdict: bool
) -> None:
    assert revisit.significant(old, new, before, after) is verdict


# What a visit is worth.


@pytest.mark.parametrize("changes", [1e-3, 0.1, 1.0, 5.0, 30.0])
def test_the_worth_of_a_known_page_is_the_textbook_one(changes: float) -> None:
    per_second = 2.0 / DAY
    expected = (-math.expm1(-changes) - changes * math.exp(-changes)) / per_second
    assert worth(known(2.0), Seconds(changes / per_second)) == pytest.approx(expected, rel=1e-4)


@given(beliefs, waits, waits)
def test_worth_grows_with_the_wait(change: Change, one: Seconds, other: Seconds) -> None:
    assert 0.0 <= worth(change, min(one, other)) <= worth(change, max(one, other)) * (1 + 1e-9) + 1e-9


def test_worth_is_smooth_where_its_formula_changes() -> None:
    near = [worth(Change(shape, Seconds(DAY), NOW), Seconds(DAY)) for shape in (1.0 - 1e-9, 1.0, 1.0 + 1e-9)]
    assert near == pytest.approx([near[1]] * 3, rel=1e-6)


@given(beliefs, weights, prices)
def test_a_page_is_due_when_a_visit_is_worth_its_price(change: Change, weight: float, price: float) -> None:
    wait = interval(change, weight, price, RULES)
    assert RULES.shortest <= wait <= RULES.longest
    if wait == RULES.longest:
        assert weight * worth(change, wait) <= price * 1.001
    elif wait == RULES.shortest:
        assert weight * worth(change, wait) >= price * 0.999
    else:
        assert weight * worth(change, wait) == pytest.approx(price, rel=2e-3)


@given(beliefs, weights, weights, prices, prices)
def test_important_pages_sooner_dear_visits_later(
    change: Change, one: float, other: float, cheap: float, dear: float
) -> None:
    cheap, dear = sorted((cheap, dear))
    light, heavy = sorted((one, other))
    assert interval(change, heavy, cheap, RULES) <= interval(change, light, cheap, RULES) * 1.001
    assert interval(change, light, cheap, RULES) <= interval(change, light, dear, RULES) * 1.001


def test_nobody_starves() -> None:
    assert interval(known(1e4), 1e-3, 1e6, RULES) == RULES.longest
    assert interval(known(1e-6), 0.0, 1e6, RULES) == RULES.longest
    assert interval(known(1.0), 1.0, 0.0, RULES) == RULES.shortest


def test_never_proportional() -> None:
    """A page that changes too fast to be kept fresh is visited less than one that can be kept."""
    assert interval(known(50.0), 1.0, 5_000.0, RULES) > interval(known(5.0), 1.0, 5_000.0, RULES)


def test_what_might_be_slow_is_explored() -> None:
    """Believed fast, but on little evidence: it is looked at while a page surely that fast is not."""
    unsure, sure = prior("news", RULES, NOW), known(24.0)
    price = 6 * 3_600.0
    assert interval(unsure, 1.0, price, RULES) < 10 * DAY
    assert interval(sure, 1.0, price, RULES) == RULES.longest


def test_without_a_budget_once_per_mean_change_interval() -> None:
    rules = Recrawl()
    assert interval(prior("blog", rules, NOW), 5.0, 1e9, rules) == pytest.approx(DAY)
    assert interval(known(1e6), 1.0, 1.0, rules) == rules.shortest
    assert interval(known(1e-6), 1.0, 1.0, rules) == rules.longest


@for_each(
    ("previous", "streak", "wait"),
    [(DAY, 1, DAY), (DAY, 2, DAY), (DAY, 3, DAY / 2), (DAY, 7, DAY / 2), (DAY, -2, DAY), (DAY, -3, 2 * DAY),
     (1_000.0, 3, 900.0), (20 * DAY, -3, 30 * DAY)],
)  # fmt: skip
def test_double_and_halve(previous: float, streak: int, wait: float) -> None:
    assert revisit.double_halve(Seconds(previous), streak, RULES) == wait
    double = Recrawl(policy="double")
    change = Change(3.0, Seconds(DAY), NOW, visits=4, streak=streak)
    assert next_visit(change, 1.0, 1.0, double, 0.9, Seconds(previous)) == NOW + wait


def test_double_and_halve_begins_with_the_interval_of_the_kind() -> None:
    first = prior("docs", RULES, NOW)
    assert next_visit(first, 1.0, 1.0, Recrawl(policy="double"), 0.0) == pytest.approx(NOW + 7 * DAY)


@given(beliefs, weights, prices, st.floats(0.0, 1.0, exclude_max=True), st.integers(0, 5))
def test_chance_spreads_but_never_delays(
    change: Change, weight: float, price: float, chance: float, visits: int
) -> None:
    change = Change(change.shape, change.exposure, NOW, visits)
    wait = interval(change, weight, price, RULES)
    due = next_visit(change, weight, price, RULES, chance)
    assert NOW + max(RULES.shortest, wait * (0.9 if visits else 0.5)) - 1e-3 <= due <= NOW + wait + 1e-3


def test_tiers() -> None:
    asked = [Seconds(900.0), Seconds(3_600.0), Seconds(DAY), Seconds(2 * DAY), Seconds(7 * DAY), Seconds(30 * DAY)]
    assert [revisit.tier(wait) for wait in asked] == ["hourly", "hourly", "daily", "daily", "weekly+", "weekly+"]


# What a visit costs.


def visits_a_day(price: Price, per_day: float, days: float, begin: float, late: float = 0.0) -> tuple[Price, float]:
    """Play 300 known pages, their queue served as the budget allows; the visits a day asked for at the last price."""
    chance, rules = Random(11), Recrawl(per_day=per_day)
    pages = [(known(math.exp(chance.gauss(0.0, 1.0))), chance.paretovariate(1.2)) for _ in range(300)]
    queue = [(begin + chance.random() * DAY, begin - late, DAY, number) for number in range(300)]
    heapify(queue)
    free = begin
    while True:
        due, looked, planned, number = queue[0]
        now = max(due, free)
        if now > begin + days * DAY:
            break
        free = now + DAY / per_day
        change, weight = pages[number]
        wait = interval(change, weight, price.value, rules)
        price = price.after(Seconds(now - looked), Seconds(planned), wait, Instant(now), per_day)
        heapreplace(queue, (now + wait, now, wait, number))
    asked = sum(DAY / interval(change, weight, price.value, rules) for change, weight in pages)
    return price, asked


@pytest.mark.parametrize(("start", "days"), [(Price(), 20), (Price(revisit.LOWEST), 20), (Price(1e6), 65)])
def test_the_price_finds_the_budget_from_wherever_it_starts(start: Price, days: int) -> None:
    """When it starts too high, pages are first planned a month ahead; they must come back before it can be right."""
    _, asked = visits_a_day(start, 200.0, days, float(NOW))
    assert asked == pytest.approx(200.0, rel=0.2)


def test_a_backlog_of_a_month_does_not_throw_the_price() -> None:
    settled, _ = visits_a_day(Price(), 200.0, 20.0, float(NOW))
    _, asked = visits_a_day(Price(settled.value), 200.0, 8.0, float(NOW), late=30 * DAY)
    assert asked == pytest.approx(200.0, rel=0.25)


def test_the_price_has_bounds_and_no_memory_but_its_value() -> None:
    dear, cheap = Price(revisit.HIGHEST), Price(revisit.LOWEST, NOW)
    wait = Seconds(DAY)
    assert dear.after(wait, wait, Seconds(900.0), NOW, 10.0).value == revisit.HIGHEST
    assert cheap.after(wait, wait, wait, later(1e9), 10.0).value == revisit.LOWEST
    assert Price(5.0).after(wait, wait, wait, later(1e9), 10.0).value > 5.0, "time before a start is not counted"
    assert Price(5.0).after(wait, wait, wait, NOW, 0.0) == Price(5.0), "no budget, no price"


def test_a_small_budget_stretches_the_longest_wait() -> None:
    rules = Recrawl(per_day=100.0)
    assert revisit.affordable(rules, 1_000) == rules
    assert revisit.affordable(rules, 3_000).longest == 60 * DAY
    assert revisit.affordable(Recrawl(), 10**9) == Recrawl()


# What a site says.


def test_a_site_is_believed_as_far_as_it_was_right() -> None:
    assert revisit.trust(0, 0) == 0.0
    assert revisit.trust(4, 4) == 0.5
    assert revisit.trust(100, 100) > 0.95
    assert revisit.trust(100, 10) < 0.1


def test_only_what_a_site_claims_is_checked() -> None:
    assert revisit.checked(3, 2, Instant(NOW - 1), NOW, True) == (3, 2)
    assert revisit.checked(3, 2, later(1), NOW, True) == (4, 3)
    assert revisit.checked(3, 2, later(1), NOW, False) == (4, 2)
    assert revisit.checked(200, 180, later(1), NOW, True) == (101, 91)


MONTH = Change(2.0, Seconds(60 * DAY), NOW)


def told(trusted: float, change: Change = MONTH, price: float = DAY, at: float = 2 * DAY) -> Instant:
    return lastmod_due(change, later(20 * DAY), later(DAY), trusted, 1.0, price, RULES, later(at))


def test_a_trusted_date_brings_a_visit_forward() -> None:
    assert told(0.0) == later(20 * DAY)
    assert later(2 * DAY) < told(0.2) < told(0.1) < later(20 * DAY)
    assert told(0.99) == later(2 * DAY), "now"


def test_a_date_that_says_nothing_new_changes_nothing() -> None:
    due = later(20 * DAY)
    assert lastmod_due(MONTH, due, NOW, 0.9, 1.0, DAY, RULES, later(DAY)) == due
    assert lastmod_due(MONTH, due, later(DAY), 0.9, 1.0, DAY, RULES, later(DAY / 2)) == due, "of the future"
    assert told(0.99, known(1e4)) == due, "not worth a visit, changed or not"


@given(beliefs, waits, st.floats(0.0, 1.0), weights, prices, waits)
def test_a_date_never_delays_and_never_hurries_below_the_shortest(
    change: Change, wait: Seconds, trusted: float, weight: float, price: float, age: Seconds
) -> None:
    due, now = later(max(wait, RULES.shortest)), later(age)
    found = lastmod_due(change, due, Instant(NOW + age / 2), trusted, weight, price, RULES, now)
    assert found <= due
    assert found == due or found >= max(now, later(RULES.shortest))


# All of it.


@pytest.mark.slow
def test_freshness_near_the_optimum_and_above_the_baselines(monkeypatch: pytest.MonkeyPatch) -> None:
    """The small version of bench/freshness.py, which has the figures and the picture."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "bench"))
    import freshness

    web = freshness.world(100, 60, seed=3)
    found = freshness.study(web, 1.0, freshness.ORDER, solve=False)
    assert freshness.misses(found, 20) == []
    assert found.played[freshness.PLAYED].mean(0) == pytest.approx(found.optimum, rel=0.03), "the model is right"
    for name in (freshness.TRUE, freshness.LEARNED):
        assert found.played[name].longest < 31
        assert found.played[name].visits <= found.per_day * web.days * 1.02
