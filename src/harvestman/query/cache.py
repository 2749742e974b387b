"""The crawl as Parquet below DIR/query, made when it is asked for, and only what is new since the last time.

pages/, links/   one file for each stretch of the page log: w00-00003.0-482133.parquet holds frames 0 to 482133 of
                 w00-00003.pages. A log only grows at its end, so a stretch is made once; many short ones become one.
urls, hosts      from State, whole, made anew when it has changed.

All of it follows from the crawl: the directory may be removed at any time.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby, islice
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types

from harvestman.export.tables import METADATA, SCHEMA_VERSION, SCHEMAS, Values, arrow, page_values
from harvestman.model import HostRecord, Instant, UrlRecord
from harvestman.policy.sites import site_of
from harvestman.policy.urls import host_of, key, url_hash
from harvestman.store.frames import frames
from harvestman.stored import Part, committed, stamp
from harvestman.views import View

MOST_STRETCHES: Final = 8
"""Of one log file, before they are made one."""
GROUP_BYTES: Final = 32 << 20
GROUP_ROWS: Final = 20_000

_TEXT = pa.string()
_TIME = pa.timestamp("ms", tz="UTC")
TABLES: Final[dict[str, pa.Schema]] = {
    "pages": SCHEMAS["pages"].append(pa.field("text", _TEXT)),
    "links": SCHEMAS["links"],
    "urls": pa.schema(
        [
            ("url", _TEXT), ("url_hash", _TEXT), ("host", _TEXT), ("site", _TEXT), ("status", _TEXT),
            ("depth", pa.int16()), ("found_at", _TIME), ("via", _TEXT), ("kind", _TEXT), ("job", pa.int32()),
            ("attempts", pa.int16()), ("due_at", _TIME), ("visited_at", _TIME), ("code", pa.int16()),
            ("reason", _TEXT), ("content_type", _TEXT), ("size", pa.int64()), ("digest", _TEXT), ("target", _TEXT),
            ("importance", pa.float64()), ("visits", pa.int32()), ("changes", pa.int32()), ("warc_file", _TEXT),
            ("warc_offset", pa.int64()), ("warc_length", pa.int64()),
        ],
        metadata=METADATA,
    ),
    "hosts": pa.schema(
        [
            ("host", _TEXT), ("site", _TEXT), ("fetched", pa.int64()), ("delay", pa.float64()),
            ("failures", pa.int32()), ("next_allowed", _TIME), ("sick_until", _TIME),
        ],
        metadata=METADATA,
    ),
}  # fmt: skip
_LOGGED = ("links", "pages")
"""Made from the page log, in this order: the last to appear makes a stretch count."""
_NAME = re.compile(r"(.+)\.(\d+)-(\d+)\.parquet")

Tell = Callable[[int], None]


class Stretch(NamedTuple):
    """A piece of the page log that is in the cache."""

    log: str
    start: int
    end: int

    @property
    def file(self) -> str:
        return f"{self.log}.{self.start}-{self.end}.parquet"


class Cache:
    """DIR/query. `tell` hears now and then how many rows were read."""

    def __init__(self, view: View, tell: Tell) -> None:
        self._view = view
        self._root = view.layout.data / "query" / f"v{SCHEMA_VERSION}"
        self._tell = tell

    @property
    def root(self) -> Path:
        return self._root

    def refreshed(self, names: Iterable[str]) -> dict[str, list[Path]]:
        """Bring these tables up to date; the files of each. Whoever else does so meanwhile is waited for."""
        wanted = set(names)
        self._root.mkdir(parents=True, exist_ok=True)
        with _alone(self._root / "lock"):
            found: dict[str, list[Path]] = {}
            if wanted & set(_LOGGED):
                stretches = self._read_logs()
                found |= {name: [self._root / name / each.file for each in stretches] for name in _LOGGED}
            if "urls" in wanted:
                found["urls"] = [self._from_state("urls", map(_url_row, self._view.records()))]
            if "hosts" in wanted:
                found["hosts"] = [self._from_state("hosts", map(_host_row, self._view.hosts()))]
            return {name: files for name, files in found.items() if name in wanted}

    # -- the page log ------------------------------------------------------------------------------------------------

    def _read_logs(self) -> list[Stretch]:
        for name in _LOGGED:
            (self._root / name).mkdir(exist_ok=True)
        kept = self._stretches()
        found: list[Stretch] = []
        for files in committed(self._view):
            for part in files.logs:
                log = f"{files.name.replace('/', '~').rpartition('~')[0]}~{part.path.stem}".lstrip("~")
                found += self._log(log, part, kept.pop(log, []))
        for stale in kept.values():
            self._forget(stale)
        return found

    def _log(self, log: str, part: Part, kept: list[Stretch]) -> list[Stretch]:
        """The stretches that cover one file, as far as it is committed."""
        whole_so_far = _joined(kept) and (not kept or kept[-1].end <= part.length)
        start = kept[-1].end if kept and whole_so_far else 0
        grown = part.length > start
        if not whole_so_far or (grown and len(kept) >= MOST_STRETCHES):
            self._forget(kept)
            kept, start = [], 0
        if part.length <= start:
            return kept
        new = self._write_stretch(log, part, start)
        if new is None and start:  # what was there has been written anew
            self._forget(kept)
            kept, new = [], self._write_stretch(log, part, 0)
        return [*kept, new] if new else kept

    def _write_stretch(self, log: str, part: Part, start: int) -> Stretch | None:
        """Frames from `start` on; None when there are none."""
        reading = _Reading(part, start, self._tell)
        unfinished = {name: self._root / name / f"{log}.part" for name in _LOGGED}
        writers = {name: pq.ParquetWriter(unfinished[name], TABLES[name], compression="zstd") for name in _LOGGED}
        try:
            for group in reading.groups():
                for name, rows in group.items():
                    writers[name].write_table(arrow(TABLES[name], rows))
        finally:
            for writer in writers.values():
                writer.close()
        stretch = Stretch(log, start, reading.end)
        for name in _LOGGED:
            if reading.end == start:
                unfinished[name].unlink()
            else:
                unfinished[name].replace(self._root / name / stretch.file)
        return stretch if reading.end > start else None

    def _stretches(self) -> dict[str, list[Stretch]]:
        """What the cache has, by log file, in order."""
        named = (_NAME.fullmatch(path.name) for path in (self._root / "pages").iterdir())
        found = sorted(Stretch(name[1], int(name[2]), int(name[3])) for name in named if name)
        return {log: list(group) for log, group in groupby(found, key=lambda each: each.log)}

    def _forget(self, stretches: list[Stretch]) -> None:
        for stretch in stretches:
            for name in reversed(_LOGGED):
                (self._root / name / stretch.file).unlink(missing_ok=True)

    # -- State -------------------------------------------------------------------------------------------------------

    def _from_state(self, name: str, rows: Iterator[Values]) -> Path:
        path = self._root / f"{name}-{stamp(self._view.layout)}.parquet"
        if not path.exists():
            part = self._root / f"{name}.part"
            with pq.ParquetWriter(part, TABLES[name], compression="zstd") as writer:
                told = 0
                while group := list(islice(rows, GROUP_ROWS)):
                    writer.write_table(arrow(TABLES[name], group))
                    told += len(group)
                    self._tell(told)
            for old in self._root.glob(f"{name}-*.parquet"):
                old.unlink()
            part.replace(path)
        return path


class _Reading:
    """Pages of a log file as rows, a bounded number at a time."""

    def __init__(self, part: Part, start: int, tell: Tell) -> None:
        self._part = part
        self._tell = tell
        self.end = start

    def groups(self) -> Iterator[dict[str, list[Values]]]:
        group: dict[str, list[Values]] = {name: [] for name in _LOGGED}
        size = told = 0
        for frame in frames(self._part.path, self.end, self._part.length):
            for page in frame.pages():
                rows = page_values(page)
                group["pages"].append((*rows["pages"][0], page.text))
                group["links"] += rows["links"]
                size += len(page.text) + 600 * (1 + len(page.links))
                told += 1
            self.end = frame.end
            if size >= GROUP_BYTES:
                yield group
                group, size = {name: [] for name in _LOGGED}, 0
                self._tell(told)
        yield group


def _joined(stretches: list[Stretch]) -> bool:
    """Whether they follow one another without a gap, from the beginning."""
    ends = [0, *(each.end for each in stretches)]
    return all(each.start == end for each, end in zip(stretches, ends, strict=False))


def _url_row(record: UrlRecord) -> Values:
    visit, change, host = record.visit, record.change, host_of(record.url)
    ref = visit.ref if visit else None
    return (
        record.url, url_hash(key(record.url)), host, site_of(host), _word(record), record.depth,
        _millis(record.found), record.via, record.kind, record.job, record.attempts, _millis(record.due),
        _millis(visit.at) if visit else None, visit.code if visit else None, visit.reason if visit else None,
        visit.content_type if visit else None, visit.size if visit else None,
        visit.digest.hex() if visit else None, visit.target if visit else None, record.cash,
        change.visits if change else 0, change.changes if change else 0, ref.file if ref else None,
        ref.offset if ref else None, ref.length if ref else None,
    )  # fmt: skip


def _word(record: UrlRecord) -> str:
    """Its status, as `why` calls it."""
    return "waiting" if record.status.name == "PENDING" else record.status.name.lower()


def _host_row(host: HostRecord) -> Values:
    return (
        host.host, host.site, host.fetched, host.delay, host.failures, _millis(host.next_allowed),
        _millis(host.sick_until),
    )  # fmt: skip


def _millis(at: Instant) -> int | None:
    return round(at * 1000) if at else None


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
