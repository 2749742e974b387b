"""What `export` does: chooses the rows and where they go, and says what was left out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from harvestman.cli import words
from harvestman.errors import UsageError
from harvestman.export import Exported, Row, appearing, counted_aloud, duplicate_rows, rows, write_jsonl, write_parquet
from harvestman.layout import Layout
from harvestman.store.cdxj import build_index
from harvestman.store.pages import read_pages
from harvestman.views import View


def run(options: argparse.Namespace) -> int:
    layout = Layout(options.data)
    layout.read()
    if options.format == "cdxj":
        print(f"The index is {build_index(layout.warc)}.", file=sys.stderr)
        return 0
    counted = Exported()
    where = _write(options, layout, counted)
    print(f"{words.plural(counted.rows, 'row')} to {where}.{_left_out(counted)}", file=sys.stderr)
    return 0


def _left_out(counted: Exported) -> str:
    if not counted.noindex:
        return ""
    number = words.plural(counted.noindex, "page")
    return f" Left out: {number} asking not to be indexed; --include-noindex takes them in."


def _write(options: argparse.Namespace, layout: Layout, counted: Exported) -> str:
    """Write the table; returns where it went."""
    table = _table(options, layout, counted)
    if options.format == "parquet":
        if options.output == "-":
            raise UsageError("Parquet cannot be written to stdout: name a file with --output")
        path = Path(options.output) if options.output else _usual(layout)
        write_parquet(table, path, links=options.links)
        return str(path)
    if options.output in (None, "-"):
        write_jsonl(table, sys.stdout.buffer, links=options.links)
        sys.stdout.buffer.flush()
        return "stdout"
    with appearing(Path(options.output)) as part, part.open("wb") as file:
        write_jsonl(table, file, links=options.links)
    return str(options.output)


def _usual(layout: Layout) -> Path:
    """Where Parquet goes unless told otherwise; the one directory that is made for it."""
    (layout.data / "export").mkdir(exist_ok=True)
    return layout.data / "export" / "pages.parquet"


def _table(options: argparse.Namespace, layout: Layout, counted: Exported) -> Iterator[Row]:
    pages = counted_aloud(read_pages(layout.pages), _tell)
    table = rows(pages, counted, noindex=options.include_noindex, links=options.links)
    return chain(table, _duplicates(layout, counted)) if options.duplicates else table


def _duplicates(layout: Layout, counted: Exported) -> Iterator[Row]:
    with View(layout) as view:
        yield from duplicate_rows(view.records(), counted)


def _tell(number: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{number:,} pages read", end="\r", file=sys.stderr, flush=True)
