"""SimHash: texts that differ little get hashes that differ in few bits.

64 bits over 3-word shingles, each weighted by the length of the line it ends in: what makes two copies of an article
differ (menus, dates, counters, captions, advertisements) stands in short lines, the article in long ones. The bits with
the narrowest majorities are told as well: they are the ones that a small edit turns over (decisions/0014).

The rules are defined on UTF-8 bytes, so that the C kernel (`_simhash.c`, 0.010 ms for
5 KB) and the pure-Python twin below (used when no compiler was at hand, 1.7 ms) give the same answer for every string:

- a word is a run of ASCII letters (folded to lower case), digits and bytes >= 0x80;
- characters of scripts written without spaces (kana, CJK ideographs, Thai, Lao, full-width forms) are a word each;
- Latin-1 signs, general punctuation and CJK punctuation separate words, like ASCII punctuation;
- a word's value is its bytes as one big-endian number modulo 2^61 - 1;
- a shingle weighs 1 in a line of fewer than 8 words, 4 below 16, 16 below 32 and 64 in longer ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

BAND = 16
BINS = 32
WEAK = 5
"""Weak bits of each band of 16."""
_PRIME = (1 << 61) - 1
_MASK = (1 << 64) - 1
_GAP = rb"\xc2[\x80-\xbf]|\xe2[\x80\x81][\x80-\xbf]|\xe3\x80[\x80-\xbf]"
_WHOLE = rb"[\xe3-\xe9\xef][\x80-\xbf]{2}|\xe0[\xb8-\xbb][\x80-\xbf]"
_WORDS = re.compile(rb"(?:%b)|(%b|(?:(?!%b|%b)[0-9a-z\x80-\xff])+)" % (_GAP, _WHOLE, _GAP, _WHOLE))


def simhash_python(text: str) -> int:
    """The definition; `simhash` is this or its compiled twin."""
    return fingerprint_python(text)[0]


def fingerprint_python(text: str) -> tuple[int, int, bytes]:
    """The SimHash; which of its bits are weak, of every 16 the 5 that the text hardly decided; a sample of shingles."""
    words: list[int] = []
    levels: list[int] = []
    for line in text.split("\n"):
        values = list(_word_values(line))
        words += values
        levels += [min(3, (len(values) >> 2).bit_length() - 1) if len(values) >= 8 else 0] * len(values)
    if not words:
        return 0, 0, bytes(BINS)
    if len(words) < 3:  # too short for a shingle: the words themselves, zero in front
        words, levels = [0] * (3 - len(words)) + words, [0] * 3
    hashes = list(zip(_shingles(words), levels[2:], strict=True))
    return *_majority(hashes, sum(4**level for level in levels[2:])), _sample(hashes)


def _word_values(line: str) -> Iterator[int]:
    for word in _WORDS.findall(line.encode("utf-8", "surrogatepass").lower()):
        if word:
            yield int.from_bytes(word, "big") % _PRIME


def _shingles(words: list[int]) -> Iterator[int]:
    for a, b, c in zip(words, words[1:], words[2:], strict=False):
        h = (a * 0x9E3779B97F4A7C15 + b * 0xC2B2AE3D27D4EB4F + c * 0xD6E8FEB86659FD93) & _MASK
        h = (h ^ (h >> 32)) * 0xFF51AFD7ED558CCD & _MASK
        h = (h ^ (h >> 29)) * 0xC4CEB9FE1A85EC53 & _MASK
        yield h ^ (h >> 32)


def _sample(hashes: Iterable[tuple[int, int]]) -> bytes:
    """One byte of the shingle with the smallest hash in each bin, hashes divided by weights; 0 for an empty bin.

    Two texts have as many of them in common as they have shingles in common, by weight (weighted MinHash).
    """
    least, sample = [_MASK] * BINS, bytearray(BINS)
    for hashed, level in hashes:
        place, value = hashed % BINS, hashed >> 5 + 2 * level
        if value < least[place]:
            least[place], sample[place] = value, hashed >> 5 & 0xFF or 1
    return bytes(sample)


def _majority(hashes: Iterable[tuple[int, int]], total: int) -> tuple[int, int]:
    """The bits set in more than half of the hashes by weight, in bit-sliced counters (plane k: bit k of all 64)."""
    planes: list[int] = [0] * total.bit_length()
    for carry, level in hashes:
        k = 2 * level
        while carry:
            planes[k], carry = planes[k] ^ carry, planes[k] & carry
            k += 1
    ones = [sum((plane >> bit & 1) << k for k, plane in enumerate(planes)) for bit in range(64)]
    weak = 0
    for band in range(0, 64, BAND):
        narrow = sorted(range(band, band + BAND), key=lambda bit: abs(2 * ones[bit] - total))
        weak |= sum(1 << bit for bit in narrow[:WEAK])
    return sum(1 << bit for bit, n in enumerate(ones) if 2 * n > total), weak


try:
    from ._simhash import fingerprint as fingerprint
    from ._simhash import simhash as simhash
except ImportError:
    simhash, fingerprint = simhash_python, fingerprint_python
