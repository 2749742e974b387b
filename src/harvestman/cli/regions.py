"""`harvestman regions`: its options. `regional` does the work."""

from __future__ import annotations

import argparse
from pathlib import Path

from harvestman.cli.arguments import Verbs, add_json, add_usual_data, add_verb

EPILOG = """\
examples:
  harvestman regions crawl-data                            the regions, and the sites that would move
  harvestman regions crawl-data --sites --limit 0          every site
  harvestman regions crawl-data --assign                   move them; then: harvestman crawl --data crawl-data
  harvestman regions crawl-data --config crawl.toml        what other rules would change
  harvestman regions crawl-data --json | jq '.moves'

Which site is in which region never changes while a crawl runs. Listing works meanwhile; assigning does not.
How regions are set up: docs/regions.md"""


def add(verbs: Verbs) -> None:
    """Add the verb and its options."""
    verb = add_verb(
        verbs, "regions", EPILOG, run, help="which sites are asked from which region; assign them anew",
        description="Which sites are asked from which region, and why: by ending, address or time to answer.",
    )  # fmt: skip
    add_usual_data(verb)
    verb.add_argument(
        "--assign", action="store_true", help="move the sites that are not where they should be (default: list them)"
    )
    verb.add_argument(
        "--config", metavar="FILE", type=Path,
        help="take the regions from this TOML file; with --assign the crawl has them from then on "
        "(default: those it was last run with)",
    )  # fmt: skip
    verb.add_argument("--sites", action="store_true", help="list every site (default: those that would move)")
    verb.add_argument("--limit", metavar="N", type=int, default=50, help="sites to list, 0 for all (default: 50)")
    add_json(verb, "tables")


def run(options: argparse.Namespace) -> int:
    from harvestman.cli import regional  # here, so that other verbs start without it

    return regional.run(options)
