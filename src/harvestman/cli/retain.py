"""`harvestman retain`: delete what is older than an age; what is under legal hold stays."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harvestman.cli.takedown import who
from harvestman.cli.terms import ttl
from harvestman.model import Instant

if TYPE_CHECKING:
    from harvestman.takedown.run import Retained

EPILOG = """\
examples:
  harvestman retain crawl-data --older-than 90d --dry-run
  harvestman retain crawl-data --older-than 90d            raw records and pages
  harvestman retain crawl-data --older-than 1s --kind response --kind request
                                                           raw content goes once it was extracted, the pages stay

The crawl must not be running. What was not yet taken in is never deleted. URLs stay known: they are visited again as
they would have been. Files of which nothing is left are removed; records among others are written over in place."""


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its options."""
    verb = verbs.add_parser(
        "retain", help="delete raw records and pages that are older than an age",
        description="Delete raw records and pages that are older than an age, but for what is under legal hold.",
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    verb.set_defaults(run=run)
    verb.add_argument("data", metavar="DIR", type=Path, help="where the crawl lives; it must not be running")
    verb.add_argument(
        "--older-than", metavar="TIME", type=ttl, required=True,
        help="what was fetched before this time: 30d, 52w (no default: it has to be given)",
    )  # fmt: skip
    verb.add_argument(
        "--kind", choices=("response", "revisit", "request", "page"), action="append",
        help="only raw records of this kind, or only parsed pages; may be repeated (default: all)",
    )  # fmt: skip
    verb.add_argument("--by", metavar="NAME", default=None, help="who did it, for the record (default: $USER)")
    verb.add_argument("--dry-run", action="store_true", help="only say what would go (default: delete it)")
    verb.add_argument("--json", action="store_true", help="print one JSON object (default: in words)")


def run(options: argparse.Namespace) -> int:
    from harvestman.takedown import run as deeds  # here, so that other verbs start without it

    now = Instant(time.time())
    done = deeds.retain(
        options.data, Instant(now - options.older_than), options.kind or deeds.KINDS, who(options), now,
        options.dry_run, _tell,
    )  # fmt: skip
    print(msgspec.json.encode(done).decode() if options.json else told(done))
    return 0


def _tell(step: str) -> None:
    if step == "survey":
        print("looking at every raw record and page ...", file=sys.stderr)


def told(done: Retained) -> str:
    from harvestman.cli import words

    records = ", ".join(f"{number:,} {kind}" for kind, number in sorted(done.records.items())) or "none"
    lines = [
        f"older than {words.moment(done.older_than)}{': would be deleted' if done.dry_run else ': deleted'}",
        f"  raw records  {records} ({words.size(done.size)})",
        f"  pages        {done.pages:,}",
        f"  written over {', '.join(done.files) or 'none'}",
        f"  removed      {', '.join(done.removed) or 'none'}",
    ]
    return "\n".join([*lines, *([f"  on hold      {done.held:,} stay"] if done.held else [])])
