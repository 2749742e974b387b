"""What `query` does: brings the tables up to date that the SQL names, asks, and prints."""

from __future__ import annotations

import argparse
import csv
import re
import sys
from datetime import date, datetime
from itertools import chain, islice

import msgspec

from harvestman.cli import words
from harvestman.layout import Layout
from harvestman.query.cache import TABLES, Cache
from harvestman.query.engine import Answer, Engine
from harvestman.views import View

MEASURED = 500
"""Rows that decide how wide a column is."""
WIDEST = 80


def run(options: argparse.Namespace) -> int:
    layout = Layout(options.data)
    layout.read()
    engine = Engine(options.sql)
    with View(layout) as view:
        cache = Cache(view, _tell)
        tables = cache.refreshed(named(options.sql))
        answer = engine.answer(cache.root, tables, TABLES)
    if options.json:
        _json(answer)
    elif options.csv:
        _csv(answer)
    else:
        _table(answer)
    return 0


def named(sql: str) -> list[str]:
    """The tables that SQL may be about: those whose names occur in it."""
    found = {word.lower() for word in re.findall(r"\w+", sql)}
    return [name for name in TABLES if name in found]


def _json(answer: Answer) -> None:
    for row in answer.rows:
        line = msgspec.json.encode(dict(zip(answer.columns, row, strict=True)), enc_hook=str)
        sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def _csv(answer: Answer) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows([_plain(value) for value in row] for row in answer.rows)


def _table(answer: Answer) -> None:
    """Columns as wide as the first rows need; the rest may stick out."""
    first = list(islice(answer.rows, MEASURED))
    cells = [[_cell(value) for value in row] for row in first]
    widths = [max(map(len, column)) for column in zip(answer.columns, *cells, strict=True)]
    right = [all(isinstance(row[n], int | float | None) for row in first) for n in range(len(widths))]
    print(_aligned(answer.columns, widths, right))
    rows = 0
    for row in chain(cells, ([_cell(value) for value in row] for row in answer.rows)):
        print(_aligned(row, widths, right))
        rows += 1
    print(f"({words.plural(rows, 'row')})", file=sys.stderr)


def _aligned(row: list[str], widths: list[int], right: list[bool]) -> str:
    padded = (
        cell.rjust(width) if number else cell.ljust(width)
        for cell, width, number in zip(row, widths, right, strict=True)
    )
    return "  ".join(padded).rstrip()


def _cell(value: object) -> str:
    text = " ".join(str(_plain(value)).split())
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def _plain(value: object) -> object:
    match value:
        case None:
            return ""
        case datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S")
        case date():
            return value.isoformat()
    return value


def _tell(number: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{number:,} rows read", end="\r", file=sys.stderr, flush=True)
