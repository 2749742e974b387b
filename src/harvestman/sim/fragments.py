"""Gzip bodies put together from pieces that were compressed long ago.

A deflate stream may be cut wherever it was flushed to a byte boundary, and pieces that do not refer back to one another
can be joined in any order. So text, navigation and boilerplate are compressed once, and a page costs little more than
the choice of its pieces. Its crc32 costs nothing either: every piece ends in a comment (`sealed`) that makes the crc32
of the piece 0, and a row of such pieces leaves the running crc32 where it was, at 0. Only the end is summed.
"""

from __future__ import annotations

import struct
import zlib
from functools import cache, lru_cache, reduce
from operator import xor
from typing import NamedTuple

from isal import isal_zlib
from isal.isal_zlib import crc32

HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_TRAILER = struct.Struct("<II")
_STORED = struct.Struct("<BHH")
_SEAL = b"<!--%b-->\n"
SEAL_SIZE = 20
_WIDTH = 12
"""With 8 bytes, 32 free bits, there are crc32 that cannot be undone."""
_BLANK = int.from_bytes(b"`" * _WIDTH, "big")
"""The seal before its free bits are set: the lower half of each byte, so that it stays readable ASCII."""
_FREE = [1 << (8 * byte + bit) for byte in range(_WIDTH) for bit in range(4)]


class Piece(NamedTuple):
    """Some bytes of a page, as they are and as a piece of a deflate stream."""

    plain: bytes
    deflated: bytes
    size: int
    """That of `plain`."""


def _sealing(bits: int) -> bytes:
    return _SEAL % (_BLANK ^ bits).to_bytes(_WIDTH, "big")


@cache
def _tables() -> list[list[int]]:
    """By byte of the crc32 of a text, the seal that undoes it: the inverse of a linear map, by elimination.

    Each table is for one byte; what they give for the four bytes, put together with XOR, is the seal as a number.
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
    return tables


_ONE, _TWO, _THREE, _FOUR = _tables()


def seal(plain: bytes) -> bytes:
    """A comment that makes the crc32 of `plain` and itself 0."""
    one, two, three, four = crc32(plain).to_bytes(4, "little")
    return b"<!--%b-->\n" % (_ONE[one] ^ _TWO[two] ^ _THREE[three] ^ _FOUR[four]).to_bytes(_WIDTH, "big")


def sealed(plain: bytes) -> bytes:
    """`plain` with its seal."""
    return plain + seal(plain)


def piece(plain: bytes) -> Piece:
    """Compresses a piece that will be used many times: best level, ended at a byte boundary, no last block."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return Piece(plain, packer.compress(plain) + packer.flush(zlib.Z_FULL_FLUSH), len(plain))


def joined(*pieces: Piece) -> Piece:
    """Pieces that always come together, as one."""
    plain, deflated, sizes = zip(*pieces, strict=True)
    return Piece(b"".join(plain), b"".join(deflated), sum(sizes))


def start(size: int) -> bytes:
    """What comes before so many bytes (at most 65,535) that are to be stored in a deflate stream uncompressed."""
    return _STORED.pack(0, size, size ^ 0xFFFF)


@lru_cache(maxsize=4096)
def _end(last: bytes) -> tuple[bytes, int]:
    """The last block of a stream and the crc32 of its content; pages have few different ends."""
    return isal_zlib.compress(last, 1, -15), crc32(last)


def end(size: int, last: bytes) -> tuple[bytes, bytes]:
    """Ends a gzip member of HEADER and sealed pieces that have `size` bytes when inflated: the last bytes, the sums."""
    deflated, crc = _end(last)
    return deflated, _TRAILER.pack(crc, (size + len(last)) & 0xFFFFFFFF)


def bomb(megabytes: int) -> bytes:
    """A valid gzip body of a few hundred KB that unpacks to that many megabytes of markup."""
    block = (b"<div>" * 209_716)[: 1 << 20]
    packed, crc = piece(block).deflated, 0
    for _ in range(megabytes):
        crc = crc32(block, crc)
    last = isal_zlib.compress(b"", 1, -15)
    return b"".join((HEADER, packed * megabytes, last, _TRAILER.pack(crc, (megabytes << 20) & 0xFFFFFFFF)))
