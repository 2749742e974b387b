"""What a corpus was asked to be, and what it holds: _manifest.json."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # ships no types

from harvestman import __version__
from harvestman.errors import StateError
from harvestman.model import Instant

from .quality import Limits
from .schema import SCHEMA_VERSION

NAME: Final = "corpus"
"""Of the directory, below that of the crawl."""
MANIFEST: Final = "_manifest.json"
"""Readers of a directory of Parquet files pass over names that begin so."""
NEAR: Final = 0.8
"""Similarity from which on two documents are near duplicates."""


class Asked(msgspec.Struct, frozen=True):
    """What a build is told."""

    limits: Limits = Limits()
    mask_pii: bool = False
    format: str = "parquet"
    """parquet or jsonl."""
    only_kept: bool = False
    near: float = NEAR
    agent: str = "harvestman"


class Source(msgspec.Struct, frozen=True):
    """A WARC file when the build began."""

    file: str
    """Its path below the data directory."""
    size: int


class Manifest(msgspec.Struct):
    """_manifest.json."""

    schema_version: int
    made_by: str
    made_at: str
    asked: Asked
    sources: list[Source]
    documents: int
    """Read, the ones that are not worth keeping included."""
    written: int
    kept: int
    """Worth keeping, and duplicate nothing."""
    duplicates: int
    clusters: int
    words: int
    """Of those that are kept."""
    left_out: dict[str, int]
    """Stored pages that became no document, by why."""
    rejected: dict[str, int]
    """Documents that are not worth keeping, by the first limit they break."""
    languages: dict[str, int]
    licences: dict[str, int]
    extractors: dict[str, int]
    simple_parts: int
    """Parts read with the crawl's own text, because a page brought the better reader down."""
    files: list[str]


class Notes(msgspec.Struct):
    """What a part says of itself besides its documents."""

    left_out: dict[str, int]
    simple: bool


class Tally:
    """Counts for the manifest, part by part."""

    def __init__(self) -> None:
        self._documents = self._written = self._kept = self._duplicates = self._clusters = self._words = 0
        self._simple = 0
        self._left_out: Counter[str] = Counter()
        self._columns: dict[str, Counter[str]] = {n: Counter() for n in ("reason", "language", "licence", "extractor")}
        self._files: list[str] = []

    def add(self, table: pa.Table, notes: Notes) -> None:
        """Count a part, all of its documents."""
        alone = pc.is_null(table["duplicate_of"])
        good = pc.and_(table["keep"], alone)
        self._left_out.update(notes.left_out)
        self._simple += notes.simple
        self._documents += table.num_rows
        self._kept += _number(good)
        self._duplicates += table.num_rows - _number(alone)
        self._clusters += _number(pc.and_(alone, pc.greater(table["cluster_size"], 1)))
        self._words += _number(table["words"].filter(good))
        for name, counter in self._columns.items():
            counts = pc.value_counts(table[name]).to_pylist()
            counter.update({row["values"]: row["counts"] for row in counts if row["values"]})

    def wrote(self, file: str, rows: int) -> None:
        self._files.append(file)
        self._written += rows

    def manifest(self, asked: Asked, sources: list[Source], now: Instant) -> Manifest:
        ranked = {name: dict(counter.most_common()) for name, counter in self._columns.items()}
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
        return Manifest(
            SCHEMA_VERSION, f"harvestman {__version__}", at, asked, sources, self._documents, self._written, self._kept,
            self._duplicates, self._clusters, self._words, dict(self._left_out.most_common()), ranked["reason"],
            ranked["language"], ranked["licence"], ranked["extractor"], self._simple, self._files,
        )  # fmt: skip


def _number(column: pa.ChunkedArray) -> int:
    return int(pc.sum(column).as_py() or 0)


def read_manifest(data: Path) -> Manifest:
    """What the corpus of a crawl holds; StateError when there is none."""
    path = data / NAME / MANIFEST
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError:
        cure = "goes on with the one that was begun" if working(data).exists() else "makes one"
        raise StateError(f"{data} has no corpus: `harvestman corpus build {data}` {cure}") from None
    except (OSError, msgspec.DecodeError) as error:
        raise StateError(f"{path} cannot be read: {error}") from None


def working(data: Path) -> Path:
    """Where a corpus lies while it is being built."""
    return data / f"{NAME}.part"
