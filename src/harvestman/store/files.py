"""The names of WARC files (prefix, time, serial), and directories made to keep what is in them."""

from __future__ import annotations

import os
import re
from pathlib import Path

_NAME = re.compile(r"(.+)-\d{14}-(\d{5,})\.warc\.gz")


def warc_files(directory: Path, prefix: str) -> list[Path]:
    """The files one writer made, in the order it made them (by serial: clocks may be set back, counters not)."""
    named = ((_NAME.fullmatch(path.name), path) for path in directory.glob("*.warc.gz"))
    return sorted((path for name, path in named if name and name[1] == prefix), key=serial_of)


def serial_of(path: Path) -> int:
    """The serial number in a file's name, -1 when it has none."""
    name = _NAME.fullmatch(path.name)
    return int(name[2]) if name else -1


def sync_directory(directory: Path) -> None:
    """Make the names of new and removed files survive a power cut."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
