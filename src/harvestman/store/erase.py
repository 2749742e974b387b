"""Taking single records and pages out of files that only ever grow, without moving anything else in them.

What goes is written over in place, with as many bytes: a raw record by a small record of a type of its own (`ERASED`)
whose gzip header is padded (a gzip comment may have any length), a frame of pages by one with the pages that stay. So
every offset that is kept anywhere stays true, and what was there is gone from the file itself, not only from a newer
copy of it.

Writing over is not atomic. What is about to be written is therefore first put into a file of its own (`Redo`), which
holds nothing of what goes, and is done again from there after a crash.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from struct import Struct
from typing import NamedTuple

import msgspec
import zstandard

from harvestman.errors import StateError
from harvestman.model import Instant, Page

from .files import sync_directory
from .frames import frames
from .records import record, warc_date

AT_ONCE = 32 << 20
"""Bytes that are written over between two syncs."""
ERASED = "erased"
"""Readers of WARC pass over types they do not know. One that they know, such as metadata, they would index."""
COMMENT = 0x10
"""The flag of a gzip header that has a comment."""
_TRAILER = Struct("<II")
_FRAME = Struct(">II")
_encode = msgspec.msgpack.encode


class Cut(NamedTuple):
    """A stretch of a file that goes."""

    offset: int
    length: int


def filler(file: str, cut: Cut, at: Instant) -> bytes:
    """A gzip member of the very length, with a WARC record that says nothing."""
    name = hashlib.sha256(f"{file}:{cut.offset}".encode()).hexdigest()
    identity = f"<urn:uuid:{name[:8]}-{name[8:12]}-5{name[13:16]}-8{name[17:20]}-{name[20:32]}>"
    data = record((("WARC-Type", ERASED), ("WARC-Record-ID", identity), ("WARC-Date", warc_date(at))), b"")
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = deflate.compress(data) + deflate.flush() + _TRAILER.pack(zlib.crc32(data), len(data))
    padding = cut.length - len(body) - 10
    if padding < 0:
        raise StateError(f"the record at {file}:{cut.offset} is too short ({cut.length} bytes) to be written over")
    head = b"\x1f\x8b\x08%c\0\0\0\0\2\xff" % (COMMENT if padding else 0)
    return head + (b" " * (padding - 1) + b"\0" if padding else b"") + body


def frame_with(pages: list[Page], length: int) -> bytes:
    """A frame of the very length with these pages: what follows their zstd frame is passed over by every reader."""
    room = length - _FRAME.size
    body = zstandard.ZstdCompressor(level=1).compress(_encode(pages))
    if len(body) > room:
        body = zstandard.ZstdCompressor(level=19).compress(_encode(pages))
    if len(body) > room:
        raise StateError("the pages that stay do not fit into the frame they were in")
    body += bytes(room - len(body))
    return _FRAME.pack(room, zlib.crc32(body)) + body


class Redo:
    """Writes over parts of files below a directory; what a crash left undone is done when it is made."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._file = data / "erasing"
        self._waiting: dict[str, list[tuple[int, bytes]]] = {}
        self._size = 0
        if self._file.exists():
            packed = zstandard.ZstdDecompressor().decompress(self._file.read_bytes())
            self._apply(msgspec.msgpack.decode(packed, type=dict[str, list[tuple[int, bytes]]]))

    def put(self, path: Path, offset: int, data: bytes) -> None:
        self._waiting.setdefault(str(path.relative_to(self._data)), []).append((offset, data))
        self._size += len(data)
        if self._size >= AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """When it returns, all that was put is on disk."""
        if self._waiting:
            part = self._file.with_suffix(".part")
            with part.open("wb") as file:
                file.write(zstandard.ZstdCompressor(level=1).compress(_encode(self._waiting)))
                file.flush()
                os.fsync(file.fileno())
            part.replace(self._file)
            sync_directory(self._data)
            self._apply(self._waiting)
        self._waiting, self._size = {}, 0

    def _apply(self, waiting: dict[str, list[tuple[int, bytes]]]) -> None:
        for name, parts in waiting.items():
            if not (self._data / name).exists():
                continue
            with (self._data / name).open("r+b", buffering=0) as file:
                for offset, data in parts:
                    write_over(file.fileno(), offset, data)
                os.fsync(file.fileno())
        self._file.unlink(missing_ok=True)


def write_over(file: int, offset: int, data: bytes) -> None:
    written = 0
    while written < len(data):
        written += os.pwrite(file, data[written:], offset + written)


def erase_pages(path: Path, gone: Callable[[Page], bool], redo: Redo) -> int:
    """Take pages out of a log; returns how many."""
    count = 0
    for frame in frames(path):
        pages = frame.pages()
        kept = [page for page in pages if not gone(page)]
        if len(kept) < len(pages):
            count += len(pages) - len(kept)
            redo.put(path, frame.start, frame_with(kept, frame.end - frame.start))
    return count
