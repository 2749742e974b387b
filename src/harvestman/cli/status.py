"""`harvestman status`: how a crawl stands."""

from __future__ import annotations

import argparse
import time

from harvestman.cli.arguments import Verbs, add_usual_data, add_verb
from harvestman.model import Instant

KINDS = ("waiting", "fetched", "duplicate", "redirected", "gone", "blocked", "refused", "dead")
EPILOG = """\
examples:
  harvestman status crawl-data
  harvestman status crawl-data --json | jq '.census.by_status, .census.tiers, .tally.traps'
  harvestman status crawl-data --urls dead --limit 0 > dead.tsv

A crawl may be running meanwhile; what it has committed is counted. A million URLs take a few seconds."""


def add(verbs: Verbs) -> None:
    """Add the verb and its options."""
    verb = add_verb(
        verbs, "status", EPILOG, run, help="how a crawl stands",
        description="How a crawl stands: URLs by status, hosts, revisits, traps, dead letters, alerts, disk.",
    )  # fmt: skip
    add_usual_data(verb)
    verb.add_argument("--top", metavar="N", type=int, default=10, help="hosts to list (default: %(default)s)")
    verb.add_argument(
        "--urls", choices=KINDS, help="list the URLs of one status, each with its reason, instead (default: count all)"
    )
    verb.add_argument(
        "--limit", metavar="N", type=int, default=1000, help="URLs to list, 0 for all (default: %(default)s)"
    )
    verb.add_argument(
        "--json", action="store_true", help="print one JSON object, with --urls one a line (default: a table)"
    )


def run(options: argparse.Namespace) -> int:
    from harvestman.cli import listing, standing  # here, so that other verbs start without it

    if options.urls:
        return listing.run(options)
    now = Instant(time.time())
    found = standing.look(options.data, options.top, now)
    print(standing.as_json(found) if options.json else standing.told(found, now))
    return 0
