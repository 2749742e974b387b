"""`harvestman feed`: what became of the pages, event by event, for an indexer."""

from __future__ import annotations

import argparse
import asyncio
import sys

from harvestman.cli.arguments import Verbs, add_json, add_usual_data, add_verb

EPILOG = """\
examples:
  harvestman feed crawl-data --json                               all events so far, one JSON object a line
  harvestman feed crawl-data --json --after "$(cat cursor)"       what came since
  harvestman feed crawl-data --json --follow | my-indexer         and what will come

Every event carries a cursor. A reader that stores it after it has dealt with the event, and gives it back with --after,
sees every event at least once, whatever is killed in between. 'removed' asks a reader to delete its copies as well.
Fields: docs/export.md. The crawl may be running."""
SHORTEST, LONGEST = 1.0, 10.0
"""Seconds between two looks at a crawl that does nothing."""


def add(verbs: Verbs) -> None:
    """Add the verb and its options."""
    verb = add_verb(
        verbs, "feed", EPILOG, run, help="page events for an indexer",
        description="What became of the pages, event by event.",
    )  # fmt: skip
    add_usual_data(verb)
    verb.add_argument(
        "--after", metavar="CURSOR", default="0",
        help="go on behind the event that carried this cursor (default: from the beginning)",
    )  # fmt: skip
    verb.add_argument("--follow", action="store_true", help="wait for more, until Ctrl-C (default: end)")
    verb.add_argument(
        "--unchanged", action="store_true", help="also visits that found the page as it was (default: leave them out)"
    )
    add_json(verb, "in words", "one JSON object a line")


def run(options: argparse.Namespace) -> int:
    asyncio.run(_run(options))
    return 0


async def _run(options: argparse.Namespace) -> None:
    from harvestman.cli import telling  # here, so that other verbs start without it

    teller = telling.Teller(options.data, options.after, unchanged=options.unchanged, json=options.json)
    pause = SHORTEST
    while True:
        told = await teller.tell()
        sys.stdout.flush()
        if not options.follow:
            return
        pause = SHORTEST if told else min(LONGEST, pause * 1.5)
        await asyncio.sleep(pause)
