"""`harvestman why`: what became of one URL, and why."""

from __future__ import annotations

import argparse
import asyncio
import time

from harvestman.cli.arguments import Verbs, add_data_option, add_json, add_verb
from harvestman.errors import UrlError
from harvestman.model import Instant

EPILOG = """\
examples:
  harvestman why https://example.org/private/page
  harvestman why example.org/page --data my-crawl --json

Says of a fetched URL when, where its raw record lies, and when it is visited again and why; of a forbidden one which
line of which robots.txt forbids it; of a waiting one what it waits for, and its score by parts; of a refused one the
trap; of a dead letter every attempt; of a duplicate, whose; of one never seen, whether the crawl would take it; and of
each how it was found, its job, its host and its site. The crawl may be running meanwhile."""


def add(verbs: Verbs) -> None:
    """Add the verb and its options."""
    verb = add_verb(
        verbs, "why", EPILOG, run, help="what became of one URL, and why",
        description="What became of one URL, and why.",
    )  # fmt: skip
    verb.add_argument("url", metavar="URL", help="the URL, in any spelling; https is assumed")
    add_data_option(verb)
    add_json(verb, "in words")


def run(options: argparse.Namespace) -> int:
    from harvestman.cli import explain, reasons  # here, so that other verbs start without it

    now = Instant(time.time())
    found = asyncio.run(explain.look(options.url, options.data, now))
    print(explain.as_json(found) if options.json else reasons.told(found, now))
    return UrlError.exit_code if found.verdict == "not-a-url" else 0
