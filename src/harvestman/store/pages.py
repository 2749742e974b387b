"""Parsed pages on disk: an append-only log of frames, one frame per group of pages.

A frame is length(4) crc32(4) zstd(msgpack list[Page]). Frames beyond the committed position are cut on the next start
and made again from the raw records, so the log never holds a page that State does not know.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from zlib import crc32

import msgspec
import zstandard

from harvestman.model import Page

_HEAD = Struct(">II")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Page]).decode
SUFFIX = ".pages"


class PageLog:
    """The pages of one worker, in `directory`/`name`-NNNNN.pages."""

    def __init__(
        self, directory: Path, name: str, position: tuple[str, int] | None, max_bytes: int = 256 << 20
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._name = name
        self._max_bytes = max_bytes
        self._zstd = zstandard.ZstdCompressor(level=1)
        self._serial, self._length = self._cut_to(position)
        self._file = os.open(self._path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    @property
    def position(self) -> tuple[str, int]:
        return self._path().name, self._length

    def append(self, pages: Sequence[Page]) -> None:
        if self._length >= self._max_bytes:
            self._rotate()
        if not pages:
            return
        body = self._zstd.compress(_encode(pages))
        frame = _HEAD.pack(len(body), crc32(body)) + body
        written = 0
        while written < len(frame):  # a full disk takes a part, and says so only the next time
            written += os.write(self._file, frame[written:])
        self._length += len(frame)

    def sync(self) -> None:
        """Make everything written so far survive a power cut. Slow: call it in a thread."""
        os.fdatasync(self._file)

    def close(self) -> None:
        self.sync()
        os.close(self._file)

    def _path(self) -> Path:
        return self._directory / f"{self._name}-{self._serial:05d}{SUFFIX}"

    def _rotate(self) -> None:
        self.close()
        self._serial, self._length = self._serial + 1, 0
        self._file = os.open(self._path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def _cut_to(self, position: tuple[str, int] | None) -> tuple[int, int]:
        """Remove what was written after the last commit; returns (serial, length) to go on from.

        A file that is shorter than what was committed (a power cut) is left as it is, and a new one begun.
        """
        name, length = position or ("", 0)
        serial = int(name.removesuffix(SUFFIX).rpartition("-")[2]) if name else 0
        for path in sorted(self._directory.glob(f"{self._name}-*{SUFFIX}")):
            if path.name > name:
                path.unlink()
        if not name:
            return 0, 0
        current = self._directory / name
        if not current.exists() or current.stat().st_size < length:
            return serial + 1, 0
        os.truncate(current, length)
        return serial, length


def read_pages(directory: Path) -> Iterator[Page]:
    """Every page of a crawl, worker by worker, in the order they were parsed. A torn last frame is left out."""
    unpack = zstandard.ZstdDecompressor()
    for path in sorted(directory.glob(f"*{SUFFIX}")):
        with path.open("rb") as file:
            while len(head := file.read(_HEAD.size)) == _HEAD.size:
                length, checksum = _HEAD.unpack(head)
                body = file.read(length)
                if not length or len(body) < length or crc32(body) != checksum:
                    break
                yield from _decode(unpack.decompress(body))
