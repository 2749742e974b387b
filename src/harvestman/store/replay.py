"""Reading the raw store back: one record by its place, or after a crash all that was written but not yet worked on."""

from __future__ import annotations

import os
from pathlib import Path

from isal.igzip_lib import IsalError

from harvestman.errors import StateError
from harvestman.model import RecordRef, Response

from .files import serial_of, warc_files
from .members import members, opened
from .records import parse_record, response_of


def read(directory: Path, ref: RecordRef) -> Response:
    """The response (or the head of a revisit) that lies at `ref`; StateError when it is not there any more."""
    try:
        with (directory / ref.file).open("rb") as file:
            file.seek(ref.offset)
            fields, block = parse_record(opened(file.read(ref.length)))
        return response_of(fields, block)
    except (OSError, EOFError, ValueError, KeyError, IsalError) as problem:  # type: ignore[misc]  # stub: an instance
        raise StateError(f"no record at {ref.file}:{ref.offset}+{ref.length} in {directory}: {problem}") from problem


def replay(directory: Path, prefix: str, position: tuple[str, int] | None) -> list[tuple[RecordRef, Response]]:
    """The responses written after the last committed `position` (file, length), or all when nothing was ever committed.

    Cuts off what a crash left half-written. Everything beyond the position is unacknowledged, so whatever follows a
    broken record there may go: it will be fetched again. Call it before a new `WarcWriter` of the prefix is made.
    """
    file, length = position or ("", 0)
    first = serial_of(Path(file))
    found: list[tuple[RecordRef, Response]] = []
    for path in warc_files(directory, prefix):
        if serial_of(path) >= first:
            found += _replay_file(path, length if path.name == file else 0)
    return found


def _replay_file(path: Path, start: int) -> list[tuple[RecordRef, Response]]:
    found: list[tuple[RecordRef, Response]] = []
    end = start
    for member in members(path, start):
        end = member.offset + member.length
        fields, block = parse_record(member.data)
        if fields.get("warc-type") == "response":
            found.append((RecordRef(path.name, member.offset, member.length), response_of(fields, block)))
    if end < path.stat().st_size:
        os.truncate(path, end)
    return found
