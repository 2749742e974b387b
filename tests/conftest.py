"""What holds for every test: where temporary files lie, how often a property is tried, what is made only once.

Most tests open a RocksDB or two, and on a disk they wait for fsync: a file system in memory halves their time. Nothing
here cuts the power, so no test can tell the difference; kill -9 leaves the same bytes in both.
"""

from __future__ import annotations

import functools
import gc
import os
import shutil
import sys
import tempfile
from pathlib import Path

import hypothesis
import pytest

MEMORY = Path("/dev/shm")
ENOUGH = 4 << 30
"""Free bytes, below which the disk is taken."""

hypothesis.settings.register_profile("whole", deadline=None)
hypothesis.settings.register_profile("quick", deadline=None, max_examples=20)


def pytest_configure(config: pytest.Config) -> None:
    """Whoever names a directory (TMPDIR, --basetemp) is obeyed; `make quick` tries fewer examples than `make test`."""
    if "TMPDIR" not in os.environ and _roomy():
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None
    hypothesis.settings.load_profile("quick" if "not slow" in config.option.markexpr else "whole")


def pytest_collection_finish() -> None:
    """The tests themselves are no garbage; and hundreds of commands are parsed in one process, by one parser."""
    gc.collect()
    gc.freeze()
    command_line = sys.modules.get("harvestman.cli.main")
    if command_line is not None:
        setattr(command_line, "parser", functools.cache(command_line.parser))  # noqa: B010 - mypy knows no such attribute


def _roomy() -> bool:
    return os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ENOUGH
