"""Which pages were deleted, one line each: what a reader of the feed is told, so that its copies go as well.

A URL is named by its hash alone. The lines are written down before anything is deleted (`begin`) and told when it is
done (`finish`): told sooner, a reader could hear of the removal first and of the page after it; written later, a crash
in between would lose them. After such a crash the next deletion finishes what was begun.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from harvestman.errors import StateError
from harvestman.layout import Layout
from harvestman.model import Instant

TOLD, BEGUN = "removed.jsonl", "removing.jsonl"


class Removal(msgspec.Struct, frozen=True):
    """Versions of a page that were deleted."""

    url_hash: str
    before: Instant
    """All that were fetched before this moment."""
    why: str
    """url, prefix, site, pattern: a takedown; or retention."""


_decode = msgspec.json.Decoder(Removal).decode


class Removals:
    """The removals of one crawl; only who has the crawl to himself may add to them."""

    def __init__(self, layout: Layout) -> None:
        self._told, self._begun = layout.data / TOLD, layout.data / BEGUN

    @property
    def size(self) -> int:
        return self._told.stat().st_size if self._told.exists() else 0

    def begin(self, removals: Iterable[Removal]) -> None:
        """About to be deleted. Finishes what a crash left begun first."""
        self.finish()
        part = self._begun.with_suffix(".part")
        with part.open("wb") as file:
            file.writelines(msgspec.json.encode(each) + b"\n" for each in removals)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._begun)

    def finish(self) -> None:
        """Deleted: told from now on, durable when it returns."""
        if not self._begun.exists():
            return
        with self._begun.open("rb") as begun, self._told.open("ab") as told:
            told.truncate(_whole(self._told))
            for line in begun:
                told.write(line)
            told.flush()
            os.fsync(told.fileno())
        self._begun.unlink()

    def behind(self, offset: int) -> Iterator[tuple[int, Removal]]:
        """Each one that was told behind a place, with the place behind it; all of them when the file was begun anew."""
        if not self._told.exists():
            return
        offset = offset if offset <= self.size else 0
        with self._told.open("rb") as file:
            file.seek(offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # it is being written, or was when the power was cut
                offset += len(line)
                try:
                    yield offset, _decode(line)
                except msgspec.DecodeError as error:
                    raise StateError(f"{self._told} cannot be read at byte {offset - len(line)}: {error}") from None


def _whole(path: Path) -> int:
    """The length up to the last whole line."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - 4096)
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            end = start
    return 0
