"""Gzip bodies put together from pieces that were compressed long ago.

A deflate stream may be cut wherever it was flushed to a byte boundary, and pieces that do not refer back to one another
can be joined in any order. So text, navigation and boilerplate are compressed once, and a page costs little more than
the choice of its pieces. Its crc32 costs nothing either: every piece ends in a comment (`sealed`) that makes the crc32
of the piece 0, and a row of such pieces leaves the running crc32 where it was, at 0. Only the end is summed.
(`python -m harvestman.sim.cost`, both versions in turn on a busy machine: about 148 us a request became 117.)
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from isal import isal_zlib

HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_TRAILER = struct.Struct("<II")
_STORED = struct.Struct("<BHH")
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


@cache
def _tables() -> list[list[int]]:
    """By byte of a crc32, the bits of the seal that undo it: the inverse of a linear map, by elimination."""
    blank = zlib.crc32(_sealing(0))
    rows = [(zlib.crc32(_sealing(free)) ^ blank, free) for free in _FREE]
    for bit in range(32):
        pivot = next(row for row in range(bit, len(rows)) if rows[row][0] >> bit & 1)
        rows[bit], rows[pivot] = rows[pivot], rows[bit]
        crc, free = rows[bit]
        rows = [
            (row[0] ^ crc, row[1] ^ free) if at != bit and row[0] >> bit & 1 else row for at, row in enumerate(rows)
        ]
    tables = [[0] * 256 for _ in range(4)]
    for value in range(256):
        for bit in range(8):
            if value >> bit & 1:
                for byte in range(4):
                    tables[byte][value] ^= rows[8 * byte + bit][1]
    return tables


_ONE, _TWO, _THREE, _FOUR = _tables()


def sealed(plain: bytes) -> bytes:
    """`plain` and a comment after it, such that the crc32 of both is 0."""
    crc = isal_zlib.crc32(_sealing(0), isal_zlib.crc32(plain))
    bits = _ONE[crc & 255] ^ _TWO[crc >> 8 & 255] ^ _THREE[crc >> 16 & 255] ^ _FOUR[crc >> 24]
    return plain + _sealing(bits)


def piece(plain: bytes) -> Piece:
    """Compresses a piece that will be used many times: best level, ended at a byte boundary, no last block."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return Piece(plain, packer.compress(plain) + packer.flush(zlib.Z_FULL_FLUSH))


def stored(plain: bytes) -> bytes:
    """A deflate block that holds `plain` (at most 65,535 bytes) uncompressed: free to make."""
    size = len(plain)
    return _STORED.pack(0, size, size ^ 0xFFFF) + plain


@lru_cache(maxsize=4096)
def _end(last: bytes) -> tuple[bytes, int]:
    """The last block of a stream and the crc32 of its content; pages have few different ends."""
    return isal_zlib.compress(last, 1, -15), isal_zlib.crc32(last)


def gzipped(deflated: Sequence[bytes], size: int, last: bytes) -> tuple[bytes, ...]:
    """One gzip member, in parts: of sealed pieces, deflated, that have `size` bytes when inflated, and of an end."""
    end, crc = _end(last)
    return (HEADER, *deflated, end, _TRAILER.pack(crc, (size + len(last)) & 0xFFFFFFFF))


def bomb(megabytes: int) -> bytes:
    """A valid gzip body of a few hundred KB that unpacks to that many megabytes of markup."""
    block = (b"<div>" * 209_716)[: 1 << 20]
    packed, crc = piece(block).deflated, 0
    for _ in range(megabytes):
        crc = isal_zlib.crc32(block, crc)
    end = isal_zlib.compress(b"", 1, -15)
    return b"".join((HEADER, packed * megabytes, end, _TRAILER.pack(crc, (megabytes << 20) & 0xFFFFFFFF)))
