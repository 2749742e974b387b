"""The documents as they are handed over: what they duplicate joined to them, as Parquet or JSON lines."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
import zstandard

from .near import Twin
from .parts import Chapter
from .schema import DOCUMENTS

SUFFIXES = {"parquet": "parquet", "jsonl": "jsonl.zst"}
_ROWS = 1_000


def twins_table(found: dict[int, Twin], chapters: Sequence[Chapter]) -> pa.Table:
    """A row for each document with a near duplicate; the original of a cluster duplicates nothing."""
    urls = _urls_of(chapters, sorted({twin.original for twin in found.values()}))
    rows = sorted(found.items())
    return pa.table({
        "number": pa.array([number for number, _ in rows], pa.int64()),
        "of": pa.array([urls[t.original] if t.original != number else None for number, t in rows], pa.string()),
        "similarity": pa.array([t.similarity if t.original != n else None for n, t in rows], pa.float32()),
        "size": pa.array([twin.size for _, twin in rows], pa.int32()),
    })  # fmt: skip


def _urls_of(chapters: Sequence[Chapter], numbers: list[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    start = at = 0
    for chapter in chapters:
        urls = chapter.table(["url"])["url"]
        while at < len(numbers) and numbers[at] < start + len(urls):
            found[numbers[at]] = urls[numbers[at] - start].as_py()
            at += 1
        start += len(urls)
    return found


class Twins:
    """The near duplicates, on disk, by the number of the document."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table.combine_chunks()
        column = self._table["number"]
        data = column.chunk(0).buffers()[1] if len(column) else None
        self._numbers = memoryview(data).cast("B").cast("q")[: len(column)] if data is not None else memoryview(b"")

    def joined(self, table: pa.Table, start: int) -> pa.Table:
        """A part with what its documents duplicate; its first document is number `start`."""
        low, high = (bisect_left(self._numbers, number) for number in (start, start + table.num_rows))
        rows = {row["number"] - start: row for row in self._table.slice(low, high - low).to_pylist()}
        found = [rows.get(number) or {} for number in range(table.num_rows)]
        columns = [
            pa.array([row.get("of") for row in found], pa.string()),
            pa.array([row.get("similarity") for row in found], pa.float32()),
            pa.array([row.get("size", 1) for row in found], pa.int32()),
        ]
        return pa.Table.from_arrays([*table.columns, *columns], schema=DOCUMENTS)


def worth_keeping(table: pa.Table) -> pa.Table:
    return table.filter(pc.and_(table["keep"], pc.is_null(table["duplicate_of"])))


def write(table: pa.Table, path: Path, format: str) -> None:
    """Write a part in either format."""
    if format == "parquet":
        pq.write_table(table, path, compression="zstd", row_group_size=_ROWS)
    else:
        _write_jsonl(table, path)


def _write_jsonl(table: pa.Table, path: Path) -> None:
    """Moments are ISO 8601."""
    encode = msgspec.json.Encoder().encode
    with path.open("wb") as raw, zstandard.ZstdCompressor(level=3).stream_writer(raw) as file:
        for batch in table.to_batches(max_chunksize=_ROWS):
            for row in batch.to_pylist():
                row["fetched_at"] = row["fetched_at"].isoformat(timespec="milliseconds").replace("+00:00", "Z")
                file.write(encode(row) + b"\n")
