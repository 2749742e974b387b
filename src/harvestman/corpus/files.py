"""Files that appear when they are whole, and stay through a power cut."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types


def appear(path: Path, write: Callable[[Path], object]) -> None:
    """Have a file written, then let it appear."""
    part = path.with_name(path.name + ".unfinished")
    write(part)
    settle(part, path)


def settle(part: Path, path: Path) -> None:
    """A file that is written takes its place."""
    handle = os.open(part, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    part.replace(path)


def write_arrow(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table.combine_chunks())


def read_arrow(path: Path) -> pa.Table:
    """Mapped, not read: what is not looked at costs nothing."""
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()
