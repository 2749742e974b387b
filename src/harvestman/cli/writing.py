"""What `export` does: chooses what goes where, and says what was left out."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

from harvestman import __version__
from harvestman.cli import words
from harvestman.errors import UsageError
from harvestman.export import Exported, Row, appearing, counted_aloud, duplicate_rows, rows, write_jsonl, write_parquet
from harvestman.export.dataset import buckets_for, write_dataset
from harvestman.export.wacz import Wanted, write_wacz
from harvestman.export.wet import write_wet
from harvestman.layout import Layout
from harvestman.model import Instant, Page
from harvestman.store.cdxj import build_index
from harvestman.store.pages import read_pages
from harvestman.stored import committed
from harvestman.views import View

SOFTWARE = f"Harvestman/{__version__}"
USUAL = {"parquet": "pages.parquet", "dataset": "dataset", "wet": "wet", "wacz": "crawl.wacz"}
"""Below DIR/export/, unless told otherwise."""
ONLY_FOR = {
    "links": ("parquet", "jsonl"),
    "duplicates": ("parquet", "jsonl"),
    "text": ("wacz",),
    "output": ("parquet", "jsonl", "dataset", "wet", "wacz"),
    "include_noindex": ("parquet", "jsonl", "dataset", "wet", "wacz"),
}
"""Which formats an option has a meaning for."""

Deed = Callable[[argparse.Namespace, Layout, Exported], str]
"""Writes a format; returns what it wrote and where to."""


def run(options: argparse.Namespace) -> int:
    layout = Layout(options.data)
    layout.read()
    for option, formats in ONLY_FOR.items():
        if getattr(options, option) and options.format not in formats:
            raise UsageError(f"--{option.replace('_', '-')} means nothing to {options.format}: leave it away")
    counted = Exported()
    done = DEEDS[options.format](options, layout, counted)
    print(f"{done}{_left_out(counted)}", file=sys.stderr)
    return 0


def _left_out(counted: Exported) -> str:
    if not counted.noindex:
        return ""
    number = words.plural(counted.noindex, "page")
    return f" Left out: {number} asking not to be indexed; --include-noindex takes them in."


def _place(options: argparse.Namespace, layout: Layout) -> Path:
    """Where it goes. The one directory that is made for it is DIR/export."""
    if options.output == "-":
        raise UsageError(f"{options.format} cannot be written to stdout: name a place with --output")
    if options.output:
        return Path(options.output)
    (layout.data / "export").mkdir(exist_ok=True)
    return layout.data / "export" / USUAL[options.format]


# -- the formats -----------------------------------------------------------------------------------------------------


def _cdxj(options: argparse.Namespace, layout: Layout, counted: Exported) -> str:
    return f"The index is {', '.join(str(build_index(directory)) for directory in layout.warcs())}."


def _parquet(options: argparse.Namespace, layout: Layout, counted: Exported) -> str:
    path = _place(options, layout)
    write_parquet(_table(options, layout, counted), path, links=options.links)
    return f"{words.plural(counted.rows, 'row')} to {path}."


def _jsonl(options: argparse.Namespace, layout: Layout, counted: Exported) -> str:
    table = _table(options, layout, counted)
    if options.output in (None, "-"):
        write_jsonl(table, sys.stdout.buffer, links=options.links)
        sys.stdout.buffer.flush()
        return f"{words.plural(counted.rows, 'row')} to stdout."
    with appearing(Path(options.output)) as part, part.open("wb") as file:
        write_jsonl(table, file, links=options.links)
    return f"{words.plural(counted.rows, 'row')} to {options.output}."


def _dataset(options: argparse.Namespace, layout: Layout, counted: Exported) -> str:
    with View(layout) as view:
        buckets = buckets_for(view.tally().pages)
    path = _place(options, layout)
    write_dataset(_pages(layout), path, counted, buckets=buckets, noindex=options.include_noindex)
    return f"{words.plural(counted.rows, 'page')} to {path}/ (pages, text, links)."


def _wet(options: argparse.Namespace, layout: Layout, counted: Exported) -> str:
    path = _place(options, layout)
    path.mkdir(exist_ok=True)
    with View(layout) as view:
        found = committed(view)
    written = write_wet(
        found, path, counted, software=SOFTWARE, now=_now(), noindex=options.include_noindex, tell=_tell
    )
    return f"The text of {words.plural(counted.rows, 'page')} to {words.plural(written, 'file')} in {path}."


def _wacz(options: argparse.Namespace, layout: Layout, counted: Exported) -> str:
    path = _place(options, layout)
    with View(layout) as view:
        found = committed(view)
    wanted = Wanted(SOFTWARE, f"Crawl of {layout.data.name}", _now(), options.text, options.include_noindex)
    write_wacz(layout, found, path, counted, wanted, _tell_bytes)
    return f"{words.size(path.stat().st_size)} with {words.plural(counted.rows, 'page')} listed to {path}."


DEEDS: dict[str, Deed] = {
    "parquet": _parquet, "jsonl": _jsonl, "cdxj": _cdxj, "dataset": _dataset, "wet": _wet, "wacz": _wacz,
}  # fmt: skip


# -- what goes in ----------------------------------------------------------------------------------------------------


def _pages(layout: Layout) -> Iterator[Page]:
    return counted_aloud(chain.from_iterable(map(read_pages, layout.page_logs())), _tell)


def _table(options: argparse.Namespace, layout: Layout, counted: Exported) -> Iterator[Row]:
    table = rows(_pages(layout), counted, noindex=options.include_noindex, links=options.links)
    return chain(table, _duplicates(layout, counted)) if options.duplicates else table


def _duplicates(layout: Layout, counted: Exported) -> Iterator[Row]:
    with View(layout) as view:
        yield from duplicate_rows(view.records(), counted)


def _now() -> Instant:
    return Instant(time.time())


def _tell(number: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{number:,} pages read", end="\r", file=sys.stderr, flush=True)


def _tell_bytes(number: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{words.size(number)} written ", end="\r", file=sys.stderr, flush=True)
