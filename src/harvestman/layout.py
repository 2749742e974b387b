"""Where everything of a crawl lies below its data directory.

crawl.json      what was fixed when the crawl began, or between two runs: version, partitions, workers, regions
regions/0001    sites that were given to a region for what was learned of them, a line each: site, region
jobs/0001.json  what was asked for, one file a job, with its seeds beside it (`jobs.py` draws them)
state/w00 ...   RocksDB, one per worker
seen/w00.bloom  snapshots of the seen-filter
warc/           raw records, *.warc.gz, and index.cdxj
pages/          parsed pages, *.pages
settings.json   what the last run was set to, for the next one
blocked.jsonl   what is never asked for again; holds.jsonl: what must not be deleted; takedowns.jsonl: what was
removed.jsonl   hashes of pages that were deleted, for the feed; removing.jsonl: those under way
erasing         what is just being written over, to be done again after a crash
graph/          the link graph and its ranks; corpus/, query/, export/: what their verbs made
eu/             warc/ and pages/ of a region that keeps its content apart (`content = "eu"`)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from harvestman.config import Region
from harvestman.errors import StateError, UsageError

VERSION = 2


class CrawlFile(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """crawl.json."""

    version: int
    partitions: int
    """Of each region."""
    workers: int
    """In all."""
    regions: tuple[Region, ...] = ()
    table: int = 0
    """The number of the file of learned regions; 0 for none."""
    kept: dict[str, str] = {}
    """Regions that are no more: by name, where their content is."""
    moving: bool = False
    """Sites were being moved, and it was not brought to an end: rows that are not in their place must go first."""

    @property
    def split(self) -> tuple[int, ...]:
        """The workers of each region."""
        return tuple(region.workers for region in self.regions) or (self.workers,)

    @property
    def homes(self) -> dict[str, str]:
        """Every region there is or was: by name, where its content is. Without regions there is one without a name."""
        return {region.name: region.content for region in self.regions or (Region(""),)} | self.kept

    @property
    def contents(self) -> tuple[str, ...]:
        """The directories with content, below that of the data."""
        return tuple(dict.fromkeys(self.homes.values()))

    def region(self, worker: int) -> Region:
        """Where a worker is; without a name where there are no regions."""
        workers = (region for region in self.regions for _ in range(region.workers))
        return next((region for number, region in enumerate(workers) if number == worker), Region(""))

    def name_of(self, partition: int) -> str:
        """The region of a partition."""
        return self.regions[partition // self.partitions].name if self.regions else ""

    def files(self, worker: int) -> str:
        """How the names of a worker's files of raw records and pages begin."""
        name = self.region(worker).name.replace("-", "_")  # the '-' ends the prefix
        return Layout.worker(worker) + (f"_{name}" if name else "")


class _Version(msgspec.Struct):
    version: int


class Layout:
    """The paths of one crawl, and the few facts fixed at its start."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.jobs = data / "jobs"
        self.warc = data / "warc"
        self.pages = data / "pages"
        self.blocked = data / "blocked.jsonl"
        self.holds = data / "holds.jsonl"
        self.takedowns = data / "takedowns.jsonl"
        self._file = data / "crawl.json"

    def state(self, index: int) -> Path:
        return self.data / "state" / f"w{index:02d}"

    def browser(self, index: int) -> Path:
        """What a worker's browser needs while it runs."""
        return self.data / "browser" / f"w{index:02d}"

    @staticmethod
    def worker(index: int) -> str:
        return f"w{index:02d}"

    @staticmethod
    def seen(index: int) -> str:
        return f"seen/w{index:02d}.bloom"

    def warc_of(self, content: str) -> Path:
        """Raw records of a region, by where it keeps its content."""
        return self.data / content / "warc"

    def pages_of(self, content: str) -> Path:
        return self.data / content / "pages"

    def warcs(self) -> list[Path]:
        """Every directory with raw records."""
        return [self.warc_of(content) for content in self.read().contents]

    def page_logs(self) -> list[Path]:
        """Every directory with pages."""
        return [self.pages_of(content) for content in self.read().contents]

    def learned(self, number: int) -> Iterator[tuple[str, str]]:
        """The sites of a table of learned regions, with the names of these; nothing for number 0."""
        if not number:
            return
        try:
            with self._table(number).open(encoding="utf-8") as lines:
                for line in lines:
                    site, _, region = line.rstrip("\n").partition("\t")
                    yield site, region
        except OSError as error:
            raise StateError(f"{self._table(number)} cannot be read: {error}") from None

    def learn(self, number: int, rows: Iterable[tuple[str, str]]) -> None:
        """Write a table of learned regions. It counts from when crawl.json names it; older ones go then."""
        path = self._table(number)
        path.parent.mkdir(exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            file.writelines(f"{site}\t{region}\n" for site, region in rows)
            file.flush()
            os.fsync(file.fileno())

    def forget_tables(self, but: int) -> None:
        for path in (self.data / "regions").glob("*"):
            if path != self._table(but):
                path.unlink()

    def _table(self, number: int) -> Path:
        return self.data / "regions" / f"{number:04d}"

    def job_ids(self) -> list[int]:
        """The jobs that are complete on disk, in the order they came."""
        return sorted(int(path.stem) for path in self.jobs.glob("*.json") if path.stem.isdecimal())

    @staticmethod
    def seeds_mark(job: int) -> str:
        """The mark in a worker's State that says up to which byte it has taken in the seeds of a job."""
        return f"seeds:{job:04d}"

    def exists(self) -> bool:
        return self._file.exists()

    def read(self) -> CrawlFile:
        """Raises StateError when this is no crawl, or one of another version."""
        try:
            raw = self._file.read_bytes()
            version = msgspec.json.decode(raw, type=_Version).version
            if version != VERSION:
                raise StateError(f"{self.data} was written by another version of Harvestman (format {version})")
            return msgspec.json.decode(raw, type=CrawlFile)
        except FileNotFoundError:
            raise StateError(f"{self.data} holds no crawl (no crawl.json): start one with `harvestman crawl`") from None
        except (msgspec.DecodeError, OSError) as error:
            raise StateError(f"{self._file} cannot be read: {error}") from None

    def write(self, facts: CrawlFile) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        part = self._file.with_suffix(".part")
        part.write_bytes(msgspec.json.format(msgspec.json.encode(facts), indent=2) + b"\n")
        part.replace(self._file)

    def workers(self) -> list[int]:
        return list(range(self.read().workers))


def scope_of(text: str) -> tuple[str, list[str]]:
    """--scope as (mode, pattern lines): '@FILE' reads the patterns."""
    if not text.startswith("@"):
        return text, []
    path = Path(text[1:])
    try:
        return "patterns", path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--scope {text}: cannot read {path}: {error}") from None
