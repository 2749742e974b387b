"""Gzip bodies put together from pieces that were compressed long ago.

A deflate stream may be cut wherever it was flushed to a byte boundary, and pieces that do not refer back to one another
can be joined in any order. So paragraphs, navigation and boilerplate are compressed once; a page then costs a join, one
crc32 and the compression of the few hundred bytes that are its own. (Measured by `python -m harvestman.sim.cost`.)
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from isal import isal_zlib

HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_TRAILER = struct.Struct("<II")
_STORED = struct.Struct("<BHH")


class Piece(NamedTuple):
    """Some bytes of a page, as they are and as a piece of a deflate stream."""

    plain: bytes
    deflated: bytes


def piece(plain: bytes) -> Piece:
    """Compresses a piece that will be used many times: best level, ended at a byte boundary, no last block."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return Piece(plain, packer.compress(plain) + packer.flush(zlib.Z_FULL_FLUSH))


def stored(plain: bytes) -> bytes:
    """A deflate block that holds `plain` (at most 65,535 bytes) uncompressed: free to make."""
    size = len(plain)
    return _STORED.pack(0, size, size ^ 0xFFFF) + plain


def gzipped(plain: bytes, deflated: Sequence[bytes], last: bytes) -> bytes:
    """One gzip member of `plain`, given the deflated pieces of all but its end, and that end itself."""
    end = isal_zlib.compress(last, 0, -15)
    trailer = _TRAILER.pack(isal_zlib.crc32(plain), len(plain) & 0xFFFFFFFF)
    return b"".join((HEADER, *deflated, end, trailer))


def bomb(megabytes: int) -> bytes:
    """A valid gzip body of a few hundred KB that unpacks to that many megabytes of markup."""
    block = (b"<div>" * 209_716)[: 1 << 20]
    packed, crc = piece(block).deflated, 0
    for _ in range(megabytes):
        crc = isal_zlib.crc32(block, crc)
    end = isal_zlib.compress(b"", 1, -15)
    return b"".join((HEADER, packed * megabytes, end, _TRAILER.pack(crc, (megabytes << 20) & 0xFFFFFFFF)))
