"""`status --urls`: the URLs of one status, each with its reason."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from harvestman.cli import words
from harvestman.layout import Layout
from harvestman.model import Instant, Status, UrlRecord
from harvestman.views import View


class Listed(msgspec.Struct):
    """One line."""

    url: str
    status: str
    reason: str
    job: int
    due: Instant
    """Not before this moment, or when it is visited again; 0 for at any time, or never."""


def run(options: argparse.Namespace) -> int:
    """Print them; say on stderr when the limit cut the list."""
    limit = max(0, options.limit)
    found = listed(options.data, options.urls)
    for each in islice(found, limit or None):
        print(msgspec.json.encode(each).decode() if options.json else f"{each.url}\t{each.reason}")
    if limit and next(found, None) is not None:
        print(f"There are more than {limit:,}: --limit 0 lists all.", file=sys.stderr)
    return 0


def listed(data: Path, kind: str) -> Iterator[Listed]:
    """The URLs of one status, host by host in no useful order."""
    wanted = Status.PENDING if kind == "waiting" else Status[kind.upper()]
    with View(Layout(data)) as view:
        for record in view.records():
            if record.status is wanted:
                yield Listed(record.url, kind, _reason(record), record.job, record.due)


def _reason(record: UrlRecord) -> str:
    """In one line, without tabs: it is a column."""
    said = record.visit.reason if record.visit else ""
    if record.status is Status.PENDING:
        parts = [said, f"again {words.moment(record.due)}" if record.due else "queued"]
    else:
        target = record.visit.target if record.visit else ""
        parts = [said or "unknown", f"-> {target}" if target else ""]
    return " ".join(", ".join(part for part in parts if part).replace(", ->", " ->").split())
