"""Gzip bodies put together from pieces that were compressed long ago.

A deflate stream may be cut wherever it was flushed to a byte boundary, and pieces that do not refer back to one another
can be joined in any order. So text, navigation and boilerplate are compressed once, and a page costs little more than
the choice of its pieces. Its crc32 costs nothing either: every piece ends in a comment (`sealed`) that makes the crc32
of the piece 0, and a row of such pieces leaves the running crc32 where it was, at 0. Only the end is summed.

The joining is compiled (`_member.c`, 2 us a page) where there was a compiler; the twin here gives the same bytes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from functools import lru_cache, reduce
from operator import xor
from typing import NamedTuple

from isal import isal_zlib
from isal.isal_zlib import crc32

HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_TRAILER = struct.Struct("<II")
_STORED = struct.Struct("<BHH")
_ENTRY = struct.Struct("=III")
_SEAL = b"<!--%b-->\n"
_WIDTH = 12
"""With 8 bytes, 32 free bits, there are crc32 that cannot be undone."""
_BLANK = int.from_bytes(b"`" * _WIDTH, "big")
"""The seal before its free bits are set: the lower half of each byte, so that it stays readable ASCII."""
_FREE = [1 << (8 * byte + bit) for byte in range(_WIDTH) for bit in range(4)]


class Piece(NamedTuple):
    """Some bytes of a page, as they are and as a piece of a deflate stream."""

    plain: bytes
    deflated: bytes


def _sealing(bits: int) -> bytes:
    return _SEAL % (_BLANK ^ bits).to_bytes(_WIDTH, "big")


def _undoing() -> bytes:
    """By byte of the crc32 of a text, the seal that undoes it: the inverse of a linear map, by elimination.

    Four tables, each for one byte; what they give for the four bytes, put together with XOR, is the seal.
    """
    blank = zlib.crc32(_sealing(0))
    rows = [(zlib.crc32(_sealing(free)) ^ blank, free) for free in _FREE]
    for bit in range(32):
        pivot = next(row for row in range(bit, len(rows)) if rows[row][0] >> bit & 1)
        rows[bit], rows[pivot] = rows[pivot], rows[bit]
        crc, free = rows[bit]
        rows = [
            (row[0] ^ crc, row[1] ^ free) if at != bit and row[0] >> bit & 1 else row for at, row in enumerate(rows)
        ]

    def undoing(crc: int) -> int:
        after = zlib.crc32(_sealing(0), crc)
        return reduce(xor, (rows[bit][1] for bit in range(32) if after >> bit & 1), _BLANK)

    nought = undoing(0)
    tables = [[undoing(value << 8 * byte) ^ nought for value in range(256)] for byte in range(4)]
    tables[0] = [bits ^ nought for bits in tables[0]]
    return b"".join(bits.to_bytes(_WIDTH, "big") for table in tables for bits in table)


_SEALS = _undoing()


def seal(plain: bytes, seals: bytes = _SEALS) -> bytes:
    """A comment that makes the crc32 of `plain` and itself 0."""
    places = [_WIDTH * (256 * at + byte) for at, byte in enumerate(crc32(plain).to_bytes(4, "little"))]
    bits = reduce(xor, (int.from_bytes(seals[place : place + _WIDTH], "big") for place in places))
    return _SEAL % bits.to_bytes(_WIDTH, "big")


def sealed(plain: bytes) -> bytes:
    """`plain` with its seal."""
    return plain + seal(plain)


def piece(plain: bytes) -> Piece:
    """Compresses a piece that will be used many times: best level, ended at a byte boundary, no last block."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return Piece(plain, packer.compress(plain) + packer.flush(zlib.Z_FULL_FLUSH))


def _stored(plain: bytes, last: bool = False) -> bytes:
    """At most 65,535 bytes as a block of a deflate stream, uncompressed."""
    return _STORED.pack(last, len(plain), len(plain) ^ 0xFFFF) + plain


def member_python(
    seals: bytes, shelf: bytearray, table: bytearray, parts: Sequence[bytes | int], end: bytes, size: int
) -> bytes:
    """The definition; `member` is this or its compiled twin. For the arguments see `Shelf`, which has them ready."""
    pieces: list[bytes | bytearray] = [HEADER]
    for part in parts:
        if isinstance(part, int):
            at, deflated, plain = _ENTRY.unpack_from(table, _ENTRY.size * part)
            pieces.append(shelf[at : at + deflated])
            size += plain
        else:
            pieces.append(_stored(part + seal(part, seals)))
            size += len(pieces[-1]) - _STORED.size
    return b"".join((*pieces, end, (size & 0xFFFFFFFF).to_bytes(4, "little")))


try:
    from harvestman.sim._member import member as member
except ImportError:
    member = member_python


@lru_cache(maxsize=4096)
def _end(last: bytes) -> bytes:
    """The last block of a stream and the crc32 of its content."""
    return _stored(last, last=True) + crc32(last).to_bytes(4, "little")


class Shelf:
    """Sealed pieces by number. A text is given as its parts: numbers of pieces and, as bytes, what is its alone."""

    def __init__(self) -> None:
        self._plain: list[bytes] = []
        self._deflated = bytearray()
        self._table = bytearray()
        """Of each piece: where it begins in `_deflated`, its size there, its size when inflated."""

    def add(self, one: Piece) -> int:
        """Puts a piece on the shelf; its number."""
        self._table += _ENTRY.pack(len(self._deflated), len(one.deflated), len(one.plain))
        self._deflated += one.deflated
        self._plain.append(one.plain)
        return len(self._plain) - 1

    def plain(self, parts: Sequence[bytes | int], last: bytes = b"") -> bytes:
        """The text as it is; all but the `last` bytes are sealed."""
        pieces = [self._plain[part] if isinstance(part, int) else sealed(part) for part in parts]
        return b"".join((*pieces, last))

    def zipped(self, parts: list[bytes | int], last: bytes = b"") -> bytes:
        """The same as a gzip member."""
        return member(_SEALS, self._deflated, self._table, parts, _end(last), len(last))


def bomb(megabytes: int) -> bytes:
    """A valid gzip body of a few hundred KB that unpacks to that many megabytes of markup."""
    block = (b"<div>" * 209_716)[: 1 << 20]
    packed, crc = piece(block).deflated, 0
    for _ in range(megabytes):
        crc = crc32(block, crc)
    last = isal_zlib.compress(b"", 1, -15)
    return b"".join((HEADER, packed * megabytes, last, _TRAILER.pack(crc, (megabytes << 20) & 0xFFFFFFFF)))
