"""The block list and the legal holds on disk: a JSON object a line, replaced as a whole when something is added."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from harvestman.errors import StateError
from harvestman.policy.blocklist import Entry

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Entry).decode


def read_entries(path: Path) -> list[Entry]:
    """None when there is no such file. A line that cannot be read is an error: what it refused would come in again."""
    try:
        return [_decode(line) for line in path.read_bytes().splitlines() if line.strip()]
    except FileNotFoundError:
        return []
    except (OSError, msgspec.DecodeError) as error:
        raise StateError(f"{path} cannot be read: {error}") from None


def add_entries(path: Path, new: Iterable[Entry]) -> None:
    """Those that are not there yet, at the end. Durable when it returns."""
    entries = read_entries(path)
    known = {each.same for each in entries}
    write_entries(path, [*entries, *(each for each in new if each.same not in known)])


def write_entries(path: Path, entries: Iterable[Entry]) -> None:
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        file.writelines(_encode(each) + b"\n" for each in entries)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
