"""The frames of a page log: length(4) crc32(4) zstd(msgpack list[Page]), read from a place and up to one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import NamedTuple
from zlib import crc32

import msgspec
import zstandard

from harvestman.model import Page

HEAD = Struct(">II")
_decode = msgspec.msgpack.Decoder(list[Page]).decode


class Frame(NamedTuple):
    """A group of pages as it lies in a file."""

    start: int
    end: int
    checksum: int
    """Of its bytes on disk: by it a reader that comes back knows that it is still the same."""
    packed: bytes
    """The list of pages, not yet decoded: who looks for one URL can tell from the bytes whether it is in there."""

    def pages(self) -> list[Page]:
        return _decode(self.packed)


def frames(path: Path, start: int = 0, end: int | None = None) -> Iterator[Frame]:
    """The whole frames between two places; it ends before the first that is torn or broken."""
    unpack = zstandard.ZstdDecompressor()
    with path.open("rb") as file:
        file.seek(start)
        while len(head := file.read(HEAD.size)) == HEAD.size:
            length, checksum = HEAD.unpack(head)
            after = start + HEAD.size + length
            if not length or (end is not None and after > end):
                return
            body = file.read(length)
            if len(body) < length or crc32(body) != checksum:
                return
            yield Frame(start, after, checksum, unpack.decompress(body))
            start = after
