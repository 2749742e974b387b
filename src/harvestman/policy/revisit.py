"""When a page is visited again: what its past says of its changes, and what a visit is worth.

Pages are taken to change as Poisson processes. What we believe of a page's rate is a Gamma distribution (`Change`): the
kind of page gives a weak first one, every visit sharpens it.

A copy that is looked at every t seconds is fresh for (1 - e^-rt) / rt of the time. Spending one visit more on it is
worth w/r (1 - e^-rt (1 + rt)) seconds of freshness, weighted by its importance w. Freshness over all pages is greatest
when that worth is the same for all of them (Cho and Garcia-Molina 2003; as a threshold: Azar 2018, Kolobov 2019), so a
page is due when the worth of a visit has risen to the price of one. The price is learned: it is the one at which as
many visits fall due as the budget allows. Fast pages of little importance never reach it; they are looked at every
`longest`, which is also what is best for them among all policies that starve nobody.

The rate is not known, so the worth is averaged over what we believe of it. That has a closed form, and makes pages of
which we know little be explored for free: one that might be slow is worth a look.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1, log, log1p, sqrt
from typing import Literal

import msgspec

from harvestman.config import Recrawl
from harvestman.model import Change, Instant, Seconds
from harvestman.policy.kinds import Kind

DAY = 86_400.0
PRIOR_SHAPE = 0.5
"""How much the kind of a page weighs against its visits: as much as half a change seen."""
MEMORY = 40.0
"""Changes that are remembered, about: what happened before them fades, for pages change their ways ..."""
QUIET = Seconds(180 * DAY)
"""... and the quiet that is remembered: a page may wake up."""
NEAR = 3
"""Bits of SimHash between two versions that say the same."""
DOUBT = 4.0
"""Wrong dates every site is taken to have told before the first is checked."""
CHECKED = 200
"""Dates of a site that count; older ones fade."""
STREAK = 3
"""Equal visits in a row after which the double/halve rule acts."""
FIRST_SPREAD = 0.5
"""How much sooner than planned a page may be due. Those of one crawl are seen together and planned alike ..."""
SPREAD = 0.1
"""... and must not stay together."""
LOWEST, HIGHEST = 0.1, 1e9
"""Between these the price moves: everything every `shortest`, everything every `longest`."""
LATE = 3.0
"""A visit that is later than this many times its wait counts as no later: a backlog is no demand."""
LEAST_PATIENCE = 200.0
"""A quarter of a day's visits too many makes them e times as dear; but it takes at least so many."""
LARGEST_STEP = 0.25
"""In the logarithm of the price, upwards, by one visit."""
PROMISED = 0.5
"""The part of the budget that may go into the promise of `longest`."""

Tier = Literal["hourly", "daily", "weekly+"]


# What we believe of a page.


def prior(kind: Kind, rules: Recrawl, now: Instant) -> Change:
    """What is believed after the first look."""
    every = {"news": rules.news, "blog": rules.blog, "docs": rules.docs, "other": rules.docs}[kind]
    return Change(PRIOR_SHAPE, Seconds(PRIOR_SHAPE * every), now)


def observed(change: Change, changed: bool, now: Instant) -> Change:
    """What is believed after another look."""
    waited = max(0.0, now - change.looked)
    if not changed:
        shape, exposure = change.shape, Seconds(change.exposure + waited)
    else:
        shape, exposure = _changed_within(waited, change.shape, change.exposure)
    kept = min(1.0, MEMORY / shape, QUIET / exposure)
    shape, exposure = max(PRIOR_SHAPE, shape * kept), Seconds(exposure * kept)
    streak = max(0, change.streak) + 1 if changed else min(0, change.streak) - 1
    return Change(shape, exposure, now, change.visits + 1, change.changes + changed, streak)


def _changed_within(waited: float, a: float, b: Seconds) -> tuple[float, Seconds]:
    """The Gamma with the mean and variance of Gamma(a, b) after at least one change in `waited`.

    The posterior is in proportion to Gamma(a, b) - (b / (b + waited))^a Gamma(a, b + waited).
    """
    span = log1p(waited / b)
    if span <= 0.0:
        return a + 1.0, b
    some = expm1(-a * span)
    mean = a * expm1(-(a + 1.0) * span) / some  # in units of 1/b
    variance = a * (a + 1.0) * expm1(-(a + 2.0) * span) / some - mean * mean
    return mean * mean / variance, Seconds(b * mean / variance)


def significant(old_digest: bytes, new_digest: bytes, old_simhash: int, new_simhash: int) -> bool:
    """Is this another page than before? Other bytes alone (a clock, a counter, an advertisement) do not make it one."""
    if old_digest == new_digest:
        return False
    return not (old_simhash and new_simhash) or (old_simhash ^ new_simhash).bit_count() > NEAR


# What a visit is worth, and when.


def worth(change: Change, wait: Seconds) -> Seconds:
    """The seconds of freshness that looking every `wait` seconds buys per visit, at the margin."""
    a, b = change.shape, change.exposure
    span = log1p(wait / b)
    return Seconds(a * b * (_part(a - 1.0, span) - _part(a, span)))


def _part(power: float, span: float) -> float:
    return -expm1(-power * span) / power if power else span


def interval(change: Change, weight: float, price: float, rules: Recrawl) -> Seconds:
    """How long to wait for the next look. Without a budget: as long as the page takes to change, on average."""
    if rules.per_day:
        wait = _ripe(change, price / weight, rules) if weight > 0.0 else rules.longest
    else:
        wait = Seconds(change.exposure / change.shape)
    return min(rules.longest, max(rules.shortest, wait))


def _ripe(change: Change, price: float, rules: Recrawl) -> Seconds:
    """When a visit is worth its price; anything up to `shortest` if it already is by then.

    Newton's method on logarithms: the curve is concave there and the start does not lie behind the solution, so that it
    comes nearer from one side, in three to eight steps.
    """
    if worth(change, rules.longest) <= price:
        return rules.longest
    a, b = change.shape, change.exposure
    wait = max(rules.shortest, Seconds(sqrt(2.0 * price * b / a)))
    for _ in range(50):
        have = worth(change, wait)
        slope = wait * wait * a / b * exp(-(a + 1.0) * log1p(wait / b))
        if have >= price * (1.0 - 1e-4) or slope <= 0.0:
            break
        wait = Seconds(wait * exp(log(price / have) * have / slope))
    return wait


def double_halve(previous: Seconds, streak: int, rules: Recrawl) -> Seconds:
    """The simple rule, for comparison: double the wait when the last 3 visits found nothing new, halve it when all did.

    `streak` counts the latest visits that agree: above 0 they found changes, below 0 they found none.
    """
    factor = 0.5 if streak >= STREAK else 2.0 if streak <= -STREAK else 1.0
    return min(rules.longest, max(rules.shortest, Seconds(previous * factor)))


def next_visit(
    change: Change, weight: float, price: float, rules: Recrawl, chance: float, previous: Seconds | None = None
) -> Instant:
    """When a page is due again: asked after every look, with what is believed now.

    `chance` in [0, 1) spreads what was seen together. `previous` is the wait that was planned before (None after the
    first look); it matters to double/halve only.
    """
    double = rules.policy == "double"
    if double and previous is not None:
        return Instant(change.looked + double_halve(previous, change.streak, rules))
    wait = Seconds(change.exposure / change.shape) if double else interval(change, weight, price, rules)
    spread = SPREAD if change.visits else FIRST_SPREAD
    return Instant(change.looked + max(rules.shortest, wait * (1.0 - spread * chance)))


def tier(wait: Seconds) -> Tier:
    """The name under which pages of this interval are reported."""
    return "hourly" if wait <= DAY / 4 else "daily" if wait <= 3 * DAY else "weekly+"


# What a visit costs.


@dataclass(slots=True, frozen=True)
class Price:
    """The weighted seconds of freshness that a visit must buy, learned so that as many fall due as the budget allows.

    Every visit tells how much its page asks for at the price of the moment: the time since the last look over the wait
    now planned. Summed over the visits of a day that is the number of visits a day all pages ask for NOW, however late
    the queue runs and whatever was planned before: the price need not wait for old plans to run out, and does not swing
    with them. Only `value` need survive a restart.
    """

    value: float = 0.1 * DAY
    counted: Instant | None = None
    """Up to when the budget was counted; None before the first visit of a run."""

    def after(self, waited: Seconds, previous: Seconds, planned: Seconds, now: Instant, per_day: float) -> Price:
        """The price after a visit that was not the first of its page.

        `waited` since the look before, `previous` the wait that was planned then, `planned` the one planned now.
        """
        if per_day <= 0.0:
            return self
        allowed = 0.0 if self.counted is None else max(0.0, now - self.counted) / DAY * per_day
        asked = min(waited, LATE * previous) / planned
        patience = max(LEAST_PATIENCE, per_day / 4.0)
        step = min(LARGEST_STEP, (asked - allowed) / patience)
        return Price(min(HIGHEST, max(LOWEST, self.value * exp(step))), now)


def affordable(rules: Recrawl, pages: int) -> Recrawl:
    """The rules for so many pages: `longest` grows when keeping it would cost more than half of the budget.

    Otherwise a small budget would be spent on looking at everything equally seldom.
    """
    if rules.per_day <= 0.0:
        return rules
    longest = max(rules.longest, pages * DAY / (rules.per_day * PROMISED))
    return msgspec.structs.replace(rules, longest=Seconds(longest))


# What a site says of its own changes.


def trust(dated: int, truthful: int) -> float:
    """How far a site's dates are believed: 0 before any was checked, near 1 after many that were all right."""
    return truthful / (dated + DOUBT)


def checked(dated: int, truthful: int, told: Instant, looked: Instant, changed: bool) -> tuple[int, int]:
    """The site's record after a visit to a page it has dated: did what it said had changed since `looked` change?"""
    if told <= looked:
        return dated, truthful
    if dated >= CHECKED:
        dated, truthful = dated // 2, truthful // 2
    return dated + 1, truthful + changed


def lastmod_due(
    change: Change,
    due: Instant,
    told: Instant,
    trusted: float,
    weight: float,
    price: float,
    rules: Recrawl,
    now: Instant,
) -> Instant:
    """When a page is due after its site said that it changed at `told`: never later than before.

    The word of the site makes it less likely that our copy is fresh; so does time. The visit is brought forward by
    the time that would have had the same effect. A page that is not worth a visit at any age is not worth one now.
    """
    if not change.looked < told <= now or trusted <= 0.0:
        return due
    if rules.per_day and weight * worth(change, rules.longest) < price:
        return due
    a, b = change.shape, change.exposure
    early = (b + (due - change.looked)) * max(0.0, 1.0 - trusted) ** (1.0 / a) - b
    return min(due, max(now, Instant(change.looked + max(rules.shortest, early))))
