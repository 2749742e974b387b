"""When a host may be asked again. Pure: returns the clock, never sleeps."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harvestman.config import Politeness, Retry
from harvestman.model import Answer, Failure, FailureKind, Fault, HostKey, Instant, Response, Seconds
from harvestman.policy.ladder import retry_after

THROTTLED = (429, 503)
ONION = ".onion"


@dataclass(slots=True, frozen=True)
class HostClock:
    """The politeness state of one host; `next_allowed` is the promise the server can check."""

    next_allowed: Instant = Instant(0.0)
    delay: Seconds = Seconds(0.0)
    failures: int = 0
    sick_until: Instant = Instant(0.0)


def promised(rules: Politeness, host: HostKey) -> Seconds:
    """The delay that every host of its class gets."""
    return max(rules.delay, rules.onion_delay) if host.endswith(ONION) else rules.delay


def asked_delay(rules: Politeness, host: HostKey, crawl_delay: Seconds | None) -> Seconds:
    """The floor: what we promise every host, or what its robots.txt asks if that is more."""
    return max(promised(rules, host), crawl_delay or Seconds(0.0))


def unhealthy(answer: Answer) -> bool:
    """Did the host fail (as against: did it answer something we do not want)?"""
    if isinstance(answer, Failure):
        return answer.kind.fault in (Fault.HOST, Fault.UNSURE)
    return answer.status >= 500 or answer.status == 429


def after(
    clock: HostClock, answer: Answer, floor: Seconds, rules: Politeness, retry: Retry, chance: float
) -> HostClock:
    """The clock after an answer that ended at `answer.finished`.

    A request counts from the END of its answer: the server saw it before that, so the gap it sees is never shorter
    than the delay, whatever the network did (decisions/0002).
    """
    now = answer.finished
    if isinstance(answer, Failure) and answer.kind is FailureKind.PROXY:
        # The host was not asked: neither its failures nor its pace have changed.
        delay = max(clock.delay, floor)
        later = max(clock.next_allowed, clock.sick_until, Instant(now + delay))
        return replace(clock, next_allowed=later, delay=delay)
    if unhealthy(answer):
        return _after_failure(clock, answer, floor, rules, retry, chance)
    delay = _adapted(max(clock.delay, floor), answer, floor, rules)
    return HostClock(Instant(now + delay), delay)


def _adapted(delay: Seconds, answer: Answer, floor: Seconds, rules: Politeness) -> Seconds:
    took = answer.first_byte - answer.started if isinstance(answer, Response) else 0.0
    if took > rules.slow:
        stretched = max(delay, Seconds(min(took, rules.max_delay)))
        return max(floor, stretched)
    return max(floor, Seconds(delay * 0.8))


def _after_failure(
    clock: HostClock, answer: Answer, floor: Seconds, rules: Politeness, retry: Retry, chance: float
) -> HostClock:
    now = answer.finished
    failures = clock.failures + 1
    delay = max(clock.delay, floor)
    if isinstance(answer, Response) and answer.status in THROTTLED:
        delay = max(floor, Seconds(min(rules.max_delay, delay * 2)))
    wait = max(delay, back_off(failures, retry, chance))
    asked = retry_after(answer.headers, now) if isinstance(answer, Response) else None
    after_all = HostClock(Instant(now + max(wait, asked or Seconds(0.0))), delay, failures)
    if failures >= retry.sick_after:
        # Not to the second: a host that comes and goes by the clock would be met in the same bad hour every time.
        sick = Instant(now + max(wait, retry.sick_for * (1.0 + chance / 4)))
        # What is asked for beyond that is no part of it: it outlasts a pardon (`hosts --forgive`).
        return replace(after_all, sick_until=sick, next_allowed=max(sick, after_all.next_allowed), failures=0)
    return after_all


def back_off(failures: int, retry: Retry, chance: float) -> Seconds:
    """Exponential with jitter: `chance` in [0, 1) spreads the wait over [full, 1.5 x full), never below full."""
    full = min(retry.longest, retry.first * 2.0 ** min(failures - 1, 100))
    return Seconds(min(retry.longest, full * (1.0 + chance / 2)))


def at_least(clock: HostClock, floor: Seconds) -> HostClock:
    """The clock when a longer delay than it was set by is asked for: the last answer ended at least `delay` before."""
    if clock.delay >= floor:
        return clock
    return replace(clock, delay=floor, next_allowed=Instant(clock.next_allowed + floor - clock.delay))


def inherited(clock: HostClock, floor: Seconds, now: Instant) -> HostClock:
    """The clock of a new owner: a full interval is waited, for the last request may not have been recorded."""
    full = max(clock.delay, floor)
    return replace(clock, next_allowed=max(clock.next_allowed, Instant(now + full)))
