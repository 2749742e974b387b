"""A real RocksDB for every test of the frontier: its promises are what the frontier stands on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harvestman.embedded.state import RocksState


@pytest.fixture
def state(tmp_path: Path) -> Iterator[RocksState]:
    opened = RocksState(tmp_path / "state", cache_bytes=1 << 20, write_buffer=4 << 20)
    yield opened
    opened.shut()
