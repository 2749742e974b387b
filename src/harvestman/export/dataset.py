"""Pages, text and links as a directory of Parquet files that engines read as three tables.

TABLE/day=2026-11-16/bucket=00/part-00000.parquet: the day of the fetch (UTC), and a bucket of sites, so that a site's
pages of a day lie in one place and a large crawl can be read in parallel. Small crawls have one bucket.
Memory is bounded by ROWS_BYTES however many partitions the pages fall into. The directory appears when it is whole.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
import xxhash

from harvestman.errors import UsageError
from harvestman.export.rows import Exported
from harvestman.export.tables import SCHEMA_VERSION, SCHEMAS, Values, arrow, page_values
from harvestman.model import Page
from harvestman.policy.sites import site_of
from harvestman.policy.urls import host_of

PAGES_A_BUCKET: Final = 1_000_000
MOST_BUCKETS: Final = 256
ROWS_BYTES: Final = 64 << 20
"""Rows waiting to be written, in all."""
GROUP_BYTES: Final = 24 << 20
"""A row group."""
FILES_OPEN: Final = 48
ABOUT: Final = "dataset.json"

Partition: TypeAlias = tuple[str, str, int]
"""Table, day, bucket."""


class About(msgspec.Struct):
    """dataset.json."""

    schema_version: int
    buckets: int
    tables: list[str]
    pages: int = 0


def buckets_for(pages: int) -> int:
    """How many buckets a crawl of that size has: a power of two, so that two datasets can be brought together."""
    buckets = 1
    while buckets < MOST_BUCKETS and buckets * PAGES_A_BUCKET < pages:
        buckets *= 2
    return buckets


def bucket_of(site: str, buckets: int) -> int:
    return xxhash.xxh3_64_intdigest(site.encode()) % buckets


def write_dataset(pages: Iterable[Page], target: Path, counted: Exported, *, buckets: int, noindex: bool) -> None:
    """Write the three tables; pages that ask not to be indexed only with `noindex`."""
    with directory_appearing(target) as part:
        writer = _Writer(part)
        for page in pages:
            if page.noindex and not noindex:
                counted.noindex += 1
                continue
            counted.rows += 1
            day = time.strftime("%Y-%m-%d", time.gmtime(page.fetched_at))
            writer.add(page, day, bucket_of(site_of(host_of(page.url)), buckets))
        writer.close()
        about = About(SCHEMA_VERSION, buckets, list(SCHEMAS), counted.rows)
        (part / ABOUT).write_bytes(msgspec.json.format(msgspec.json.encode(about), indent=2) + b"\n")


@contextmanager
def directory_appearing(target: Path) -> Iterator[Path]:
    """Where to write a dataset that shall appear at `target` when it is whole. An older one gives way then.

    Nothing but a dataset of ours is ever removed.
    """
    if target.exists() and not (target / ABOUT).is_file() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} is there already, and no dataset: name another --output")
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(target.parent))
    part, old = target.with_name(target.name + ".part"), target.with_name(target.name + ".old")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    try:
        yield part
        shutil.rmtree(old, ignore_errors=True)
        if target.exists():
            target.rename(old)
        part.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


class _Rows(msgspec.Struct):
    """Rows of a partition that wait to be written."""

    rows: list[Values] = msgspec.field(default_factory=list)
    size: int = 0


class _Writer:
    """Rows in, files out: a bounded number of rows waits, a bounded number of files is open."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._waiting: dict[Partition, _Rows] = {}
        self._size = 0
        self._open: dict[Partition, pq.ParquetWriter] = {}
        self._files: dict[Partition, int] = {}

    def add(self, page: Page, day: str, bucket: int) -> None:
        for table, rows in page_values(page).items():
            size = (len(page.text) + 300) if table == "text" else 600 * len(rows)
            waiting = self._waiting.setdefault((table, day, bucket), _Rows())
            waiting.rows += rows
            waiting.size += size
            self._size += size
            if waiting.size >= GROUP_BYTES:
                self._flush((table, day, bucket))
        while self._size >= ROWS_BYTES:
            self._flush(max(self._waiting, key=lambda name: self._waiting[name].size))

    def close(self) -> None:
        for partition in list(self._waiting):
            self._flush(partition)
        for partition in list(self._open):
            self._open.pop(partition).close()
        for table in SCHEMAS:
            (self._root / table).mkdir(exist_ok=True)

    def _flush(self, partition: Partition) -> None:
        waiting = self._waiting.pop(partition)
        self._size -= waiting.size
        if waiting.rows:
            self._file(partition).write_table(arrow(SCHEMAS[partition[0]], waiting.rows))

    def _file(self, partition: Partition) -> pq.ParquetWriter:
        """The open file of a partition; the one that was used least lately makes room for it."""
        writer = self._open.pop(partition, None)
        if writer is None:
            if len(self._open) >= FILES_OPEN:
                self._open.pop(next(iter(self._open))).close()
            writer = pq.ParquetWriter(self._path(partition), SCHEMAS[partition[0]], compression="zstd")
        self._open[partition] = writer
        return writer

    def _path(self, partition: Partition) -> Path:
        table, day, bucket = partition
        number = self._files[partition] = self._files.get(partition, -1) + 1
        directory = self._root / table / f"day={day}" / f"bucket={bucket:03d}"
        directory.mkdir(parents=True, exist_ok=True)
        return directory / f"part-{number:05d}.parquet"
