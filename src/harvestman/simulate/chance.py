"""Chance without memory: the same words give the same number, on any machine and any day."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from math import exp, factorial, floor
from statistics import NormalDist

from xxhash import xxh3_64_intdigest

_UNIT = 2.0**-64
_NORMAL = NormalDist()
_PER_BLOCK = 4.0
"""Changes expected in a block of time. Few blocks are empty (one in 55), so looking back ends soon."""
_POISSON = list(accumulate(exp(-_PER_BLOCK) * _PER_BLOCK**n / factorial(n) for n in range(30)))


def draw(words: str) -> float:
    """A number in [0, 1)."""
    # The largest of the 2**64 values would round up to 1.0.
    return min(xxh3_64_intdigest(words.encode()) * _UNIT, 1.0 - 2.0**-53)


def normal(words: str) -> float:
    """A number from the standard normal distribution."""
    return _NORMAL.inv_cdf(max(draw(words), 1e-12))


def last_event(words: str, rate: float, now: float) -> float:
    """When a Poisson process of this rate (events a second) last struck, up to `now`. It has no beginning.

    Time is cut into blocks; the events of each come from a hash of its number, so that any moment can be asked for
    without playing through the time before it.
    """
    length = _PER_BLOCK / rate
    block = floor(now / length)
    while True:
        past = [time for time in _events(words, block, length) if time <= now]
        if past:
            return max(past)
        block -= 1


def next_event(words: str, rate: float, now: float) -> float:
    """When the same process strikes next, after `now`."""
    length = _PER_BLOCK / rate
    block = floor(now / length)
    while True:
        coming = [time for time in _events(words, block, length) if time > now]
        if coming:
            return min(coming)
        block += 1


def _events(words: str, block: int, length: float) -> list[float]:
    name = f"{words} {block}"
    count = bisect_right(_POISSON, draw(name))
    return [(block + draw(f"{name} {event}")) * length for event in range(count)]
