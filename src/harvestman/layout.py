"""Where everything of a crawl lies below its data directory.

crawl.json      what was fixed when the crawl began: version, partitions, workers, scope
seeds.txt       every seed ever given, in request form
state/w00 ...   RocksDB, one per worker
seen/w00.bloom  snapshots of the seen-filter
warc/           raw records, *.warc.gz, and index.cdxj
pages/          parsed pages, *.pages
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from harvestman.errors import StateError, UsageError
from harvestman.policy.scope import Scope

VERSION = 1


class CrawlFile(msgspec.Struct, forbid_unknown_fields=True):
    """crawl.json."""

    version: int
    partitions: int
    workers: int
    scope: str
    patterns: list[str] = []


class Layout:
    """The paths of one crawl, and the few facts fixed at its start."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.warc = data / "warc"
        self.pages = data / "pages"
        self._file = data / "crawl.json"
        self._seeds = data / "seeds.txt"

    def state(self, index: int) -> Path:
        return self.data / "state" / f"w{index:02d}"

    @staticmethod
    def worker(index: int) -> str:
        return f"w{index:02d}"

    @staticmethod
    def seen(index: int) -> str:
        return f"seen/w{index:02d}.bloom"

    def exists(self) -> bool:
        return self._file.exists()

    def read(self) -> CrawlFile:
        """Raises StateError when this is no crawl, or one of another version."""
        try:
            found = msgspec.json.decode(self._file.read_bytes(), type=CrawlFile)
        except FileNotFoundError:
            raise StateError(f"{self.data} holds no crawl (no crawl.json): start one with `harvestman crawl`") from None
        except (msgspec.DecodeError, OSError) as error:
            raise StateError(f"{self._file} cannot be read: {error}") from None
        if found.version != VERSION:
            raise StateError(f"{self.data} was written by another version of Harvestman (format {found.version})")
        return found

    def write(self, facts: CrawlFile) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        part = self._file.with_suffix(".part")
        part.write_bytes(msgspec.json.format(msgspec.json.encode(facts), indent=2) + b"\n")
        part.replace(self._file)

    def workers(self) -> list[int]:
        return list(range(self.read().workers))

    def seeds(self) -> list[str]:
        try:
            return self._seeds.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []

    def add_seeds(self, seeds: Iterable[str]) -> None:
        known = self.seeds()
        merged = dict.fromkeys([*known, *seeds])
        if len(merged) > len(known):
            self.data.mkdir(parents=True, exist_ok=True)
            part = self._seeds.with_suffix(".part")
            part.write_text("".join(f"{seed}\n" for seed in merged), encoding="utf-8")
            part.replace(self._seeds)

    def scope(self) -> Scope:
        """The scope of the crawl: its mode is fixed, its seeds grow."""
        facts = self.read()
        return Scope.build(facts.scope, self._stream_seeds(), facts.patterns)

    def _stream_seeds(self) -> Iterator[str]:
        with self._seeds.open(encoding="utf-8") as lines:
            for line in lines:
                yield line.rstrip("\n")


def scope_of(text: str) -> tuple[str, list[str]]:
    """--scope as (mode, pattern lines): '@FILE' reads the patterns."""
    if not text.startswith("@"):
        return text, []
    path = Path(text[1:])
    try:
        return "patterns", path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--scope {text}: cannot read {path}: {error}") from None
