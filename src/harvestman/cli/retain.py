"""`harvestman retain`: delete what is older than an age; what is under legal hold stays.

`crawl` does the same by itself, when a run has ended, where the settings say so (`by_itself`).
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harvestman.cli.arguments import Verbs, add_data, add_json, add_verb
from harvestman.cli.takedown import who
from harvestman.cli.terms import ttl
from harvestman.config import MEDIA, STORED, Config
from harvestman.errors import StateError
from harvestman.layout import Layout
from harvestman.lock import locked
from harvestman.model import Instant

if TYPE_CHECKING:
    from harvestman.takedown.retention import Retained

BY_ITSELF = "harvestman crawl"
"""Who did it, for the record."""
EPILOG = """\
examples:
  harvestman retain crawl-data --older-than 90d --dry-run
  harvestman retain crawl-data --older-than 90d            raw records and pages
  harvestman retain crawl-data --older-than 1s --kind response --kind request
                                                           raw content goes once it was extracted, the pages stay
  harvestman retain crawl-data --older-than 30d --kind pdf --kind image
                                                           PDFs and images, raw and parsed; HTML stays
  harvestman retain crawl-data --older-than 30d --kind pdf --kind response
                                                           only the raw answers that are PDFs

The crawl must not be running. What was not yet taken in is never deleted. URLs stay known: they are visited again as
they would have been, and pages that are still there are then stored again. Files of which nothing is
left are removed; records among others are written over in place."""


def add(verbs: Verbs) -> None:
    """Add the verb and its options."""
    verb = add_verb(
        verbs, "retain", EPILOG, run, help="delete raw records and pages that are older than an age",
        description="Delete raw records and pages that are older than an age, but for what is under legal hold.",
    )  # fmt: skip
    add_data(verb, "it must not be running")
    verb.add_argument(
        "--older-than", metavar="TIME", type=ttl, required=True,
        help="what was fetched before this time: 30d, 52w (no default: it has to be given)",
    )  # fmt: skip
    verb.add_argument(
        "--kind", choices=(*STORED, *MEDIA), action="append", default=[],
        help="only what is of this kind; may be repeated. What is stored: response, revisit, request (raw records) or "
        "page (parsed). What it is, by its Content-Type: the others; the request for a PDF is of kind pdf, too. Given "
        "both, only what is one of each (default: all)",
    )  # fmt: skip
    verb.add_argument("--by", metavar="NAME", default=None, help="who did it, for the record (default: $USER)")
    verb.add_argument("--dry-run", action="store_true", help="only say what would go (default: delete it)")
    add_json(verb, "in words")


def run(options: argparse.Namespace) -> int:
    from harvestman.takedown.retention import Wanted, retain  # here, so that other verbs start without it

    now = Instant(time.time())
    wanted = Wanted(Instant(now - options.older_than), tuple(dict.fromkeys(options.kind)))
    done = retain(options.data, wanted, who(options), now, options.dry_run, _tell)
    print(msgspec.json.encode(done).decode() if options.json else told(done))
    return 0


def by_itself(config: Config, quiet: bool) -> None:
    """What the settings want deleted at the end of a run. A crawl that was started meanwhile is left alone."""
    from harvestman.takedown.retention import Wanted, retain

    data, deleted = Path(config.data), False
    for rule in config.retention:
        now = Instant(time.time())
        try:
            done = retain(
                data, Wanted(Instant(now - rule.older_than), rule.kinds), BY_ITSELF, now, False, _hear_nothing
            )
        except StateError as error:
            print(f"Nothing {'more ' if deleted else ''}was deleted for its age: {error}", file=sys.stderr)
            break
        deleted |= bool(done.records or done.pages)
        if not quiet and (done.records or done.pages):
            print(f"Retention, {told(done)}", file=sys.stderr)
    if deleted:
        _index(data)


def _index(data: Path) -> None:
    """Make the indexes anew that went. Not while a crawl runs that was started meanwhile: it does so at its end."""
    from harvestman.store.cdxj import build_index

    try:
        with locked(data):
            for directory in Layout(data).warcs():
                build_index(directory)
    except StateError as error:
        print(f"The index of raw records was not made anew: {error}", file=sys.stderr)


def _hear_nothing(step: str) -> None:
    pass


def _tell(step: str) -> None:
    if step == "survey":
        print("looking at every raw record and page ...", file=sys.stderr)


def told(done: Retained) -> str:
    from harvestman.cli import words

    records = ", ".join(f"{number:,} {kind}" for kind, number in sorted(done.records.items())) or "none"
    kinds = f" ({', '.join(done.kinds)})" if done.kinds else ""
    lines = [
        f"older than {words.moment(done.older_than)}{kinds}{': would be deleted' if done.dry_run else ': deleted'}",
        f"  raw records  {records} ({words.size(done.size)})",
        f"  pages        {done.pages:,}",
        f"  written over {', '.join(done.files) or 'none'}",
        f"  removed      {', '.join(done.removed) or 'none'}",
    ]
    return "\n".join([*lines, *([f"  on hold      {done.held:,} stay"] if done.held else [])])
