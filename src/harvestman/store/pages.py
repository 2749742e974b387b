"""Parsed pages on disk: an append-only log of frames, one frame per group of pages.

`frames` says what a frame looks like. Frames beyond the committed position are cut on the next start
and made again from the raw records, so the log never holds a page that State does not know.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from zlib import crc32

import msgspec
import zstandard

from harvestman.model import Page
from harvestman.store.frames import HEAD, frames

_encode = msgspec.msgpack.Encoder().encode
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
        self._syncing = threading.Lock()  # a file must not be closed, and its number given away, under a running sync
        self._serial, self._length = self._cut_to(position)
        self._file = self._open(self._serial)

    @property
    def position(self) -> tuple[str, int]:
        return self._path(self._serial).name, self._length

    def append(self, pages: Sequence[Page]) -> None:
        if self._length >= self._max_bytes:
            self._rotate()
        if not pages:
            return
        body = self._zstd.compress(_encode(pages))
        frame = HEAD.pack(len(body), crc32(body)) + body
        written = 0
        while written < len(frame):  # a full disk takes a part, and says so only the next time
            written += os.write(self._file, frame[written:])
        self._length += len(frame)

    def sync(self) -> None:
        """Make everything written so far survive a power cut. Slow: call it in a thread."""
        with self._syncing:
            os.fdatasync(self._file)

    def close(self) -> None:
        with self._syncing:
            os.fdatasync(self._file)
            os.close(self._file)

    def _path(self, serial: int) -> Path:
        return self._directory / f"{self._name}-{serial:05d}{SUFFIX}"

    def _rotate(self) -> None:
        # One step under the lock: a sync that waited for it must find the new file, not the number of a closed one.
        with self._syncing:
            os.fdatasync(self._file)
            full, self._file = self._file, self._open(self._serial + 1)
            self._serial, self._length = self._serial + 1, 0
            os.close(full)

    def _open(self, serial: int) -> int:
        return os.open(self._path(serial), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

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
    for path in sorted(directory.glob(f"*{SUFFIX}")):
        for frame in frames(path):
            yield from frame.pages()
