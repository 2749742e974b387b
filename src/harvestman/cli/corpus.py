"""`harvestman corpus`: the text of all stored pages as a corpus: cleaned, measured, deduplicated, with its origins."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from harvestman.cli import words
from harvestman.cli.arguments import Verbs, add_json, add_usual_data, add_verb
from harvestman.config import Config
from harvestman.errors import UsageError
from harvestman.model import Instant

if TYPE_CHECKING:
    from harvestman.corpus.build import Builder, Progress
    from harvestman.corpus.manifest import Manifest

INTERRUPTED = 130
LINE_EVERY = 5.0
"""Seconds between lines where there is no terminal."""
EPILOG = """\
examples:
  harvestman corpus build crawl-data
  harvestman corpus build crawl-data --mask-pii --only-kept --format jsonl
  harvestman corpus build crawl-data --min-words 100 --limit max_duplicate_line_share=0.1
  harvestman corpus stats crawl-data --json | jq .rejected
  duckdb -c "select url, text from 'crawl-data/corpus/*.parquet' where keep and duplicate_of is null"

The main text is made anew from the raw pages in DIR/warc, with better and slower means than the crawl's own; nothing is
fetched. Ctrl-C finishes the parts under way (again: ends at once); the same command goes on where it was. Pages that
ask not to be indexed or archived are left out. Needs pip install 'harvestman[corpus]'. Columns: docs/corpus.md"""


def add(verbs: Verbs) -> None:
    """Add the verb, what can be done, and the options of each."""
    verb = add_verb(
        verbs, "corpus", EPILOG, help="the text of all stored pages: cleaned, measured, deduplicated",
        description="Build a text corpus from the stored pages of a crawl, or see what one holds.",
    )  # fmt: skip
    deeds = verb.add_subparsers(dest="deed", metavar="build|stats", required=True)
    build = add_verb(
        deeds, "build", EPILOG, run_build, help="build it, or go on building",
        description="Build DIR/corpus from the raw pages in DIR/warc.",
    )  # fmt: skip
    _add_build(build)
    stats = deeds.add_parser("stats", help="what it holds", description="What the corpus of a crawl holds.")
    stats.set_defaults(run=run_stats)
    for deed in (build, stats):
        add_usual_data(deed)
        add_json(deed, "in words", "print JSON")


def _add_build(build: argparse.ArgumentParser) -> None:
    build.add_argument("--workers", metavar="N", type=int, help="processes (default: one for each core)")
    build.add_argument(
        "--format", choices=("parquet", "jsonl"), default="parquet",
        help="Parquet, or JSON lines compressed with zstd (default: %(default)s)",
    )  # fmt: skip
    build.add_argument(
        "--mask-pii", action="store_true",
        help="replace e-mail addresses, telephone numbers and IP addresses in text, title and author (default: no)",
    )  # fmt: skip
    build.add_argument(
        "--only-kept", action="store_true",
        help="write only documents that pass every limit and duplicate nothing (default: all, with the verdict)",
    )  # fmt: skip
    build.add_argument(
        "--min-words", metavar="N", type=int, default=50, help="of a kept document (default: %(default)s)"
    )
    build.add_argument(
        "--limit", metavar="NAME=VALUE", action="append", default=[],
        help="another limit of a kept document, by its name in docs/corpus.md; may be repeated (default: as there)",
    )  # fmt: skip
    build.add_argument(
        "--near", metavar="S", type=float, default=0.8,
        help="similarity from which on documents are near duplicates, 0.5 to 1 (default: %(default)s)",
    )  # fmt: skip
    build.add_argument(
        "--fresh", action="store_true", help="forget a build that was not finished (default: go on with it)"
    )
    build.add_argument("--quiet", action="store_true", help="no progress (default: on stderr)")


def run_build(options: argparse.Namespace) -> int:
    from harvestman.corpus.build import Builder  # here, so that other verbs start without it
    from harvestman.corpus.manifest import Asked
    from harvestman.corpus.quality import Limits
    from harvestman.layout import Layout

    Layout(options.data).read()
    if not 0.5 <= options.near <= 1:
        raise UsageError(f"--near {options.near}: a similarity between 0.5 and 1 is meant")
    workers = _cores() if options.workers is None else options.workers
    if workers < 1:
        raise UsageError(f"--workers {workers}: at least one process must do the work")
    limits = Limits(min_words=options.min_words).changed(options.limit)
    agent = Config().agent.lower()
    asked = Asked(limits, options.mask_pii, options.format, options.only_kept, options.near, agent)
    display = Display(options.quiet)
    builder = Builder(options.data, asked, workers, display.show)
    _obey_signals(builder)
    manifest = builder.run(Instant(time.time()), options.fresh)
    display.close()
    if manifest is None:
        print("Stopped. The same command goes on from here.", file=sys.stderr)
        return INTERRUPTED
    _print(manifest, options)
    return 0


def run_stats(options: argparse.Namespace) -> int:
    from harvestman.corpus.manifest import read_manifest

    _print(read_manifest(options.data), options)
    return 0


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _obey_signals(builder: Builder) -> None:
    """The first Ctrl-C lets what is under way be finished, the second does not."""
    asked = 0

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            print("\nFinishing the parts under way; Ctrl-C again ends at once.", file=sys.stderr)
            builder.stop()
        else:
            builder.abandon()

    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, end)


class Display:
    """One line, written over and over on a terminal, now and then elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._stage = ""
        self._began = self._said = 0.0
        self._first = 0

    def show(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.stage != self._stage:
            self._stage, self._began, self._first = progress.stage, now, progress.done
        if self._quiet or (not self._terminal and now - self._said < LINE_EVERY):
            return
        self._said = now
        line = told(progress, progress.done - self._first, now - self._began)
        print(
            f"\r\x1b[K{line}" if self._terminal else line,
            end="" if self._terminal else "\n",
            file=sys.stderr,
            flush=True,
        )

    def close(self) -> None:
        if self._terminal and not self._quiet:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


UNITS = {"planning": "WARC file", "reading": "page", "comparing": "document", "writing": "part"}


def told(progress: Progress, lately: int, seconds: float) -> str:
    """How far it is, how fast it goes, how long it will take."""
    line = f"{progress.stage}: {progress.done:,} of {words.plural(progress.total, UNITS[progress.stage])}"
    if progress.stage != "reading" or lately <= 0 or seconds < 1:
        return line
    rate = lately / seconds
    left = words.span((progress.total - progress.done) / rate)
    return f"{line}, {rate:.1f}/s by {words.plural(progress.running, 'worker')}, {left} to go"


def _print(manifest: Manifest, options: argparse.Namespace) -> None:
    import msgspec

    if options.json:
        print(msgspec.json.format(msgspec.json.encode(manifest), indent=2).decode())
    else:
        print(summary(manifest, options.data / "corpus"))


def summary(manifest: Manifest, where: Path) -> str:
    """What a corpus holds, in words."""
    files = words.plural(len(manifest.files), "file")
    rows = [
        ("corpus", f"{where}, schema {manifest.schema_version}, made {manifest.made_at} by {manifest.made_by}"),
        ("documents", f"{manifest.documents:,}; {manifest.written:,} written to {files}"),
        ("kept", f"{manifest.kept:,} that pass every limit and duplicate nothing, with {manifest.words:,} words"),
        ("rejected", words.listed(manifest.rejected) or "none"),
        ("duplicates", f"{manifest.duplicates:,} in {words.plural(manifest.clusters, 'cluster')}"),
        ("left out", words.listed(manifest.left_out) or "none"),
        ("languages", words.listed(manifest.languages, 10) or "none"),
        ("licences", words.listed(manifest.licences) or "none named"),
    ]  # fmt: skip
    if manifest.simple_parts:
        rows.append(
            ("simpler", f"{words.plural(manifest.simple_parts, 'part')} with the crawl's own text, see docs/corpus.md")
        )
    return "\n".join(f"{name:<11} {value}" for name, value in rows)
