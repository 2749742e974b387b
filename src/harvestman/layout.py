"""Where everything of a crawl lies below its data directory.

crawl.json      what was fixed when the crawl began: version, partitions, workers
jobs/0001.json  what was asked for, one file a job, with its seeds beside it (`jobs.py` draws them)
state/w00 ...   RocksDB, one per worker
seen/w00.bloom  snapshots of the seen-filter
warc/           raw records, *.warc.gz, and index.cdxj
pages/          parsed pages, *.pages
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from harvestman.errors import StateError, UsageError

VERSION = 2


class CrawlFile(msgspec.Struct, forbid_unknown_fields=True):
    """crawl.json."""

    version: int
    partitions: int
    workers: int


class _Version(msgspec.Struct):
    version: int


class Layout:
    """The paths of one crawl, and the few facts fixed at its start."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.jobs = data / "jobs"
        self.warc = data / "warc"
        self.pages = data / "pages"
        self._file = data / "crawl.json"

    def state(self, index: int) -> Path:
        return self.data / "state" / f"w{index:02d}"

    @staticmethod
    def worker(index: int) -> str:
        return f"w{index:02d}"

    @staticmethod
    def seen(index: int) -> str:
        return f"seen/w{index:02d}.bloom"

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
