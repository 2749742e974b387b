"""One crawl at a time in a data directory."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from harvestman.errors import StateError

NAME = "lock"


@contextlib.contextmanager
def locked(data: Path) -> Iterator[None]:
    """Hold the directory while the block runs; StateError when a crawl runs in it already. Falls with the process."""
    file = _made(data)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(file, 32).decode("ascii", "replace").strip()
            raise StateError(
                f"{data} is in use by another crawl (process {holder}): wait for it, stop it, or name another --data"
            ) from None
        os.ftruncate(file, 0)
        os.pwrite(file, b"%d\n" % os.getpid(), 0)
        yield
    finally:
        os.close(file)


def _made(data: Path) -> int:
    """The open lock file, in a directory that exists now."""
    try:
        data.mkdir(parents=True, exist_ok=True)
        return os.open(data / NAME, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StateError(f"{data}: {error.strerror}: no crawl can be kept there; name another --data") from None


def is_locked(data: Path) -> bool:
    """Whether a crawl runs in the directory now."""
    try:
        file = os.open(data / NAME, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False
