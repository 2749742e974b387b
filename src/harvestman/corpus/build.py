"""`corpus build`: from the WARC files of a crawl to a table of documents, in parallel, and resumable at any point.

    corpus.part/            while it is being built; a build that was ended goes on from here
        build.json          what was asked for, and of which files
        plan.arrow          which records become documents (`plan`), frozen: what the crawl adds later is not in it
        records/ texts/ signs/   one file a WARC file, and two a part; each appears when it is whole
        twins.arrow         the near duplicates (`near`)
        corpus/             the documents; becomes DIR/corpus when all of them are there
    corpus/                 part-00000.parquet (or .jsonl.zst) ..., _manifest.json

A part whose process died (a page can bring a C library down) is read again with the crawl's own, simpler text.
"""

from __future__ import annotations

import contextlib
import shutil
from array import array
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # ships no types

from harvestman.errors import StateError, UsageError, WorkerDied
from harvestman.layout import Layout
from harvestman.lock import locked
from harvestman.model import Instant

from . import extract, near, plan, writing
from .crew import Crew
from .document import Settings
from .files import appear, read_arrow, write_arrow
from .manifest import MANIFEST, NAME, Asked, Manifest, Source, Tally, working
from .parts import Chapter, Ledger, index, read_part
from .schema import SCHEMA_VERSION

_PART: Final = 2_000
"""Documents of a part at most: a minute or two of one core, which is what a crash costs."""
_SMALLEST_PART: Final = 50
_SIZE: Final = b"part"
"""In the plan: how many documents a part has."""
_PRELOAD: Final = ["harvestman.corpus.build", "trafilatura"]


class BuildFile(msgspec.Struct):
    """build.json."""

    schema_version: int
    asked: Asked
    sources: list[Source]
    began: Instant


class Progress(msgspec.Struct):
    """How far a build is."""

    stage: str
    """planning, reading, comparing or writing."""
    done: int
    total: int
    """WARC files while planning, pages while reading, documents while comparing, parts while writing."""
    running: int = 0
    """Processes."""


class Builder:
    """One build. `run` returns None when it was stopped; the next build goes on."""

    def __init__(self, data: Path, asked: Asked, workers: int, tell: Callable[[Progress], None]) -> None:
        self._data = data
        self._asked = asked
        self._workers = workers
        self._tell = tell
        self._here = working(data)
        self._crew: Crew[Any] | None = None
        self._stopping = False

    def stop(self) -> None:
        """Finish what is under way, then end."""
        self._stopping = True
        if self._crew is not None:
            self._crew.stop()

    def abandon(self) -> None:
        """End now; what is under way is done again by the next build."""
        self._stopping = True
        if self._crew is not None:
            self._crew.abandon()

    def run(self, now: Instant, fresh: bool = False) -> Manifest | None:
        """Build, or go on building. The corpus of an earlier build stays until this one is whole."""
        extract.ready()
        sources = self._sources()
        with _alone(self._here):
            build = self._begin(sources, now, fresh)
            chosen = self._plan(build)
            if chosen is None:
                return None
            chapters = self._chapters(chosen, build)
            if not self._read(chapters):
                return None
            self._compare(chapters)
            manifest = self._write(chapters, build, now)
            if manifest is not None:
                self._publish()
            return manifest

    # -- beginning -------------------------------------------------------------------------------------------------

    def _sources(self) -> list[Source]:
        files = [path for directory in Layout(self._data).warcs() for path in sorted(directory.glob("*.warc.gz"))]
        if not files:
            raise StateError(f"{self._data} holds no WARC files: nothing has been crawled, or they were moved away")
        return [Source(path.relative_to(self._data).as_posix(), path.stat().st_size) for path in files]

    def _begin(self, sources: list[Source], now: Instant, fresh: bool) -> BuildFile:
        path = self._here / "build.json"
        if fresh:
            path.unlink(missing_ok=True)  # the first to go: without it nothing of the rest counts
        if path.exists():
            return self._resumed(path)
        for rest in self._here.iterdir():
            if rest.is_dir():
                shutil.rmtree(rest)
            elif rest.suffix in (".arrow", ".unfinished"):
                rest.unlink()
        build = BuildFile(SCHEMA_VERSION, self._asked, sources, now)
        appear(path, lambda part: part.write_bytes(_pretty(build)))
        return build

    def _resumed(self, path: Path) -> BuildFile:
        try:
            build = msgspec.json.decode(path.read_bytes(), type=BuildFile)
        except (OSError, msgspec.DecodeError) as error:
            raise StateError(f"{path} cannot be read ({error}): begin anew with --fresh") from None
        if (build.schema_version, build.asked) != (SCHEMA_VERSION, self._asked):
            raise UsageError(
                f"{self._here} holds an unfinished build with other settings: repeat those to go on with it, or begin "
                "anew with --fresh"
            )
        return build

    def _plan(self, build: BuildFile) -> pa.Table | None:
        path = self._here / "plan.arrow"
        if path.exists():
            return read_arrow(path)
        records = self._here / "records"
        records.mkdir(exist_ok=True)
        ledgers = [Ledger(self._data / s.file, n, records / f"{n:05d}.arrow") for n, s in enumerate(build.sources)]
        missing = [ledger for ledger in ledgers if not ledger.made.exists()]
        died = self._employ(missing, index, "planning", len(ledgers) - len(missing), len(ledgers))
        if self._stopping:
            return None
        if died:
            raise WorkerDied(f"a process died while it went through {died[0].warc}: is the file damaged?")
        chosen = plan.chosen(pa.concat_tables([read_arrow(ledger.made) for ledger in ledgers]))
        size = min(_PART, max(_SMALLEST_PART, -(-chosen.num_rows // (4 * self._workers))))
        chosen = chosen.replace_schema_metadata({_SIZE: str(size)})
        appear(path, lambda part: write_arrow(chosen, part))
        shutil.rmtree(records)
        return chosen

    def _chapters(self, chosen: pa.Table, build: BuildFile) -> list[Chapter]:
        asked, size = build.asked, int(chosen.schema.metadata[_SIZE])
        settings = Settings(asked.agent, asdict(asked.limits), asked.mask_pii)
        files = [source.file for source in build.sources]
        return [
            Chapter(n, first, min(size, chosen.num_rows - first), self._data, files, self._here, settings)
            for n, first in enumerate(range(0, chosen.num_rows, size))
        ]

    # -- reading ---------------------------------------------------------------------------------------------------

    def _read(self, chapters: list[Chapter]) -> bool:
        """Every part as text and signatures. False when it was stopped before the last."""
        for name in ("texts", "signs"):
            (self._here / name).mkdir(exist_ok=True)
        total = sum(chapter.count for chapter in chapters)
        for simple in (False, True):
            missing = [chapter for chapter in chapters if not chapter.texts.exists()]
            for chapter in missing:
                chapter.settings = msgspec.structs.replace(chapter.settings, simple=simple)
            done = total - sum(chapter.count for chapter in missing)
            died = self._employ(missing, read_part, "reading", done, total)
            if self._stopping:
                return False
            if not died:
                return True
        raise WorkerDied(f"a process died twice over part {died[0].number}: see above; the next build tries again")

    def _employ(self, tasks: list[Any], work: Callable[..., None], stage: str, done: int, total: int) -> list[Any]:
        """Have tasks done by processes; returns those that died."""
        if not tasks or self._stopping:
            return []
        crew: Crew[Any] = Crew(self._workers, _PRELOAD)
        self._crew = crew
        try:
            return crew.run(tasks, work, lambda more, running: self._tell(Progress(stage, done + more, total, running)))
        finally:
            self._crew = None

    # -- comparing and writing -------------------------------------------------------------------------------------

    def _compare(self, chapters: list[Chapter]) -> None:
        path = self._here / "twins.arrow"
        if path.exists():
            return
        signatures = near.Signatures([chapter.signs for chapter in chapters])
        self._tell(Progress("comparing", 0, len(signatures)))
        unfit, at = bytearray(), array("q")
        for chapter in chapters:
            table = chapter.table(["keep", "fetched_at"])
            unfit += bytes(not keep for keep in table["keep"].to_pylist())
            at.extend(pc.cast(table["fetched_at"], pa.int64()).to_pylist())
        found = near.twins(signatures, self._asked.near, lambda number: (unfit[number], at[number]))
        table = writing.twins_table(found, chapters)
        appear(path, lambda part: write_arrow(table, part))

    def _write(self, chapters: list[Chapter], build: BuildFile, now: Instant) -> Manifest | None:
        out = self._here / NAME
        out.mkdir(exist_ok=True)
        twins = writing.Twins(read_arrow(self._here / "twins.arrow"))
        tally, start = Tally(), 0
        for chapter in chapters:
            if self._stopping:
                return None
            table = twins.joined(chapter.table(), start)
            tally.add(table, chapter.notes())
            start += table.num_rows
            self._write_part(table, chapter.number, out, tally)
            self._tell(Progress("writing", chapter.number + 1, len(chapters)))
        manifest = tally.manifest(build.asked, build.sources, now)
        appear(out / MANIFEST, lambda part: part.write_bytes(_pretty(manifest)))
        return manifest

    def _write_part(self, table: pa.Table, number: int, out: Path, tally: Tally) -> None:
        form = self._asked.format
        path = out / f"part-{number:05d}.{writing.SUFFIXES[form]}"
        written = writing.worth_keeping(table) if self._asked.only_kept else table
        tally.wrote(path.name, written.num_rows)
        if not path.exists():
            appear(path, lambda part: writing.write(written, part, form))

    def _publish(self) -> None:
        """Put the corpus in its place. A crash between the renames leaves the old one beside it, never half a one."""
        final, old = self._data / NAME, self._data / f"{NAME}.old"
        shutil.rmtree(old, ignore_errors=True)
        if final.exists():
            final.rename(old)
        (self._here / NAME).rename(final)
        shutil.rmtree(old, ignore_errors=True)
        shutil.rmtree(self._here)


@contextlib.contextmanager
def _alone(here: Path) -> Iterator[None]:
    """One build at a time."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(locked(here))
        except StateError as error:
            raise StateError(f"another build of this corpus is under way, or {here} cannot be used: {error}") from None
        yield


def _pretty(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
