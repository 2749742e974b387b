"""Which fingerprints have we met that are nearly this one? Four tables in RAM, of a size fixed beforehand.

A fingerprint (64 bits) is cut into 4 bands of 16. For every band and every value of it there is a bucket of the
fingerprints with that value there, without those 16 bits: 6 bytes each. Of two fingerprints that differ in 3 bits or
fewer one band is the same, so one of the four buckets of the one holds the other.

The bits that a text hardly decided (`weak`, 5 of each band) do not count, and must not hide a neighbour either: of each
band every value is looked up that the weak bits allow, 32 of them. So whatever differs in 3 firm bits or fewer is
found, and of what differs in a few more that for which one band has its firm bits in common (decisions/0014).

A full bucket gives up its oldest entry. That bounds memory, and the time of a look-up too, however many copies of one
text a content farm has. 37 bytes for each fingerprint, 14 to 19 us a look-up at a million (bench/near_duplicates.py);
without a compiler, in Python, the same answers take 1.6 ms.
"""

from __future__ import annotations

from typing import Final

BANDS: Final = 4
VALUES: Final = 1 << 16
MOST_HITS: Final = 8
"""The nearest ones are told, no more."""
_HEAD: Final = 2
"""Bytes of a bucket before its entries: how many they are, and which is overwritten next."""
_ENTRY: Final = 6
_LARGEST: Final = 255
_MASK: Final = (1 << 64) - 1


class NearTable:
    """Room for about `capacity` fingerprints."""

    def __init__(self, capacity: int) -> None:
        # Half as many again: fingerprints do not fall into buckets evenly.
        self.room = min(_LARGEST, max(4, -(-3 * capacity // (2 * VALUES))))
        self._bytes = bytearray(BANDS * VALUES * (_HEAD + _ENTRY * self.room))

    def add(self, print: int) -> int | None:
        """Remember a fingerprint; returns one that is forgotten for it. Once or twice is the same."""
        return add(self._bytes, self.room, print)

    def near(self, print: int, weak: int, most: int) -> list[tuple[int, int]]:
        """The nearest that differ in `most` firm bits or fewer: (how many, fingerprint), the nearest first."""
        return near(self._bytes, self.room, print, weak, most)

    @property
    def bytes(self) -> int:
        return len(self._bytes)


def add_python(table: bytearray, room: int, print: int) -> int | None:
    """The definition; `add` is this or its compiled twin."""
    gone = None
    for band in range(BANDS):
        seen = _turned(print, 16 * band)
        start = _start(band, seen & 0xFFFF, room)
        entry = (seen >> 16).to_bytes(_ENTRY, "little")
        count, oldest = table[start], table[start + 1]
        if any(table[at : at + _ENTRY] == entry for at in _places(start, count)):
            continue
        full = count == room
        at = start + _HEAD + _ENTRY * (oldest if full else count)
        if full:
            if band == 0:
                gone = int.from_bytes(table[at : at + _ENTRY], "little") << 16 | seen & 0xFFFF
            table[start + 1] = (oldest + 1) % room
        else:
            table[start] = count + 1
        table[at : at + _ENTRY] = entry
    return gone


def near_python(table: bytearray, room: int, print: int, weak: int, most: int) -> list[tuple[int, int]]:
    """The definition; `near` is this or its compiled twin."""
    found: set[tuple[int, int]] = set()
    for band in range(BANDS):
        seen, doubt = _turned(print, 16 * band), _turned(weak, 16 * band)
        rest, firm, loose = seen >> 16, ~doubt >> 16, doubt & 0xFFFF
        part = 0
        while True:
            value = seen & 0xFFFF ^ part
            start = _start(band, value, room)
            for at in _places(start, table[start]):
                entry = int.from_bytes(table[at : at + _ENTRY], "little")
                distance = ((entry ^ rest) & firm).bit_count()
                if distance <= most:
                    found.add((distance, _turned(entry << 16 | value, 64 - 16 * band)))
            part = part - loose & loose
            if not part:
                break
    return sorted(found)[:MOST_HITS]


def _turned(value: int, bits: int) -> int:
    return (value >> bits | value << 64 - bits) & _MASK


def _start(band: int, value: int, room: int) -> int:
    return (band * VALUES + value) * (_HEAD + _ENTRY * room)


def _places(start: int, count: int) -> range:
    return range(start + _HEAD, start + _HEAD + _ENTRY * count, _ENTRY)


try:
    from ._near import add as add
    from ._near import near as near
except ImportError:
    add, near = add_python, near_python
