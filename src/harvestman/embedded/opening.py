"""Opening a RocksDB database: how it is set up, whom it waits for, and what is said when it cannot be opened."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from rocksdict import AccessType, BlockBasedOptions, Cache, DBCompressionType, Options, Rdict

from harvestman.embedded.rows import FAMILIES
from harvestman.errors import StateError

PATIENCE = 15.0
"""Seconds in which a worker has noticed that its supervisor is gone, and ended."""
OPEN_FILES = 256
_LOOK = 0.1
T = TypeVar("T")


class Damaged(StateError):
    """Files of the database are missing, cut short or altered."""


def options(cache: Cache, write_buffer: int, open_files: int) -> Options:
    made = Options(raw_mode=True)
    made.create_if_missing(True)
    made.create_missing_column_families(True)
    made.set_db_write_buffer_size(write_buffer)
    made.set_write_buffer_size(write_buffer // 4)
    made.set_max_total_wal_size(128 << 20)
    made.set_max_open_files(open_files)
    made.set_max_file_opening_threads(4)  # for each family; by default 16, even when there is no file
    made.set_keep_log_file_num(2)
    made.set_max_background_jobs(2)
    made.set_compression_type(DBCompressionType.lz4())
    table = BlockBasedOptions()
    table.set_block_cache(cache)
    table.set_cache_index_and_filter_blocks(True)
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)
    table.set_bloom_filter(10, False)
    made.set_block_based_table_factory(table)
    return made


def opened(
    directory: Path, names: tuple[str, ...], fresh: Callable[[], Options], read_only: bool, patience: float
) -> Rdict:
    """The database, with these column families, each under `fresh` options."""
    access = AccessType.read_only(error_if_log_file_exist=False) if read_only else AccessType.read_write()
    families = {name: fresh() for name in names}
    return _patiently(
        lambda: Rdict(str(directory), fresh(), column_families=families, access_type=access),
        directory, read_only, patience,
    )  # fmt: skip


def _patiently(look: Callable[[], T], directory: Path, read_only: bool, patience: float) -> T:
    """Look again for as long as another look may find it better."""
    looks = int(patience / _LOOK)
    while True:
        try:
            return look()
        except Exception as error:  # rocksdict raises bare Exceptions, with RocksDB's words in them
            if not (looks and _passes(str(error), read_only)):
                raise explained(directory, str(error)) from error
        looks -= 1
        time.sleep(_LOOK)


def salvage(directory: Path) -> list[str]:
    """Make a damaged database one that can be opened: files that cannot be read are put aside, in `lost`.

    Returns the names of those. What is held by the others is all there.
    """
    try:
        Rdict.repair(str(directory), Options(raw_mode=True))
    except Exception as error:  # as above
        raise StateError(f"{directory} cannot be salvaged: {error}") from error
    return sorted(path.name for path in (directory / "lost").glob("*") if path.suffix == ".sst")


def families_of(directory: Path, patience: float) -> tuple[str, ...]:
    """The families of a database that may be older than one of them; a reader cannot make it."""
    found = _patiently(lambda: Rdict.list_cf(str(directory)), directory, True, patience)
    return tuple(name for name in FAMILIES if name in found)


def _passes(words: str, read_only: bool) -> bool:
    """Whether the trouble is one of the moment."""
    return "No such file" in words if read_only else "lock" in words.lower()


def explained(directory: Path, words: str) -> StateError:
    if "Corruption" in words:
        return Damaged(f"{directory} is damaged: `harvestman repair` saves what can be read ({words})")
    if "lock" in words.lower():
        return StateError(f"{directory} is in use by another crawl: wait for it, or stop it first")
    return StateError(f"cannot open {directory}: {words}")
