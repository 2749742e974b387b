"""`harvestman graph`: the link graph of a crawl: build it, rank it, look at it."""

from __future__ import annotations

import argparse

from harvestman.cli.arguments import Verbs, add_data, add_data_option, add_json, add_verb

EPILOG = """\
examples:
  harvestman graph rank crawl-data                         build the graph where it is out of date, and rank it
  harvestman graph top crawl-data -n 50
  harvestman graph top crawl-data --hosts --json
  harvestman graph links https://example.org/ --data crawl-data
  harvestman graph rank crawl-data --apply                 let the next run ask for the best pages first
  duckdb -c "select url, rank from 'crawl-data/graph/nodes.parquet' order by rank desc limit 20"

The tables are described in docs/graph.md. All but --apply works while the crawl runs."""


def add(verbs: Verbs) -> None:
    """Add the verb, what can be done, and the options of each."""
    verb = add_verb(
        verbs, "graph", EPILOG, help="the link graph of a crawl: build it, rank pages and hosts, look at links",
        description="The link graph of a crawl: who links to whom with which words, and what that makes of the pages.",
    )  # fmt: skip
    deeds = verb.add_subparsers(dest="deed", metavar="build|rank|top|links", required=True)
    build = deeds.add_parser("build", help="make the graph anew", description="Make the graph of a crawl anew.")
    rank = deeds.add_parser(
        "rank", help="PageRank of pages and sites", description="Rank pages and sites; build the graph where needed."
    )
    top = deeds.add_parser("top", help="the pages of the highest rank", description="The pages of the highest rank.")
    links = deeds.add_parser(
        "links", help="the links of a page, in and out", description="Who links to a page, and whom it links to."
    )
    for deed in (build, rank, top):
        add_data(deed)
    links.add_argument("url", metavar="URL", help="the page; https is assumed")
    add_data_option(links)
    for deed in (build, rank):
        _add_rules(deed)
    rank.add_argument(
        "--engine", choices=("embedded", "spark"), default="embedded",
        help="what ranks the pages: this process, or Spark, to the same result (default: %(default)s)",
    )  # fmt: skip
    rank.add_argument(
        "--apply", action="store_true",
        help="then order the queues of the crawl, which must not be running, by these ranks (default: only rank)",
    )  # fmt: skip
    top.add_argument("--hosts", action="store_true", help="hosts, by the rank of their sites (default: pages)")
    top.add_argument("-n", "--limit", metavar="N", type=int, default=20, help="how many (default: %(default)s)")
    links.add_argument(
        "-n", "--limit", metavar="N", type=int, default=20,
        help="how many each way, 0 for all (default: %(default)s)",
    )  # fmt: skip
    for deed, run in ((build, run_build), (rank, run_rank), (top, run_top), (links, run_links)):
        deed.set_defaults(run=run)
        add_json(deed, "in words", "print JSON")


def _add_rules(deed: argparse.ArgumentParser) -> None:
    deed.add_argument(
        "--nofollow", action="store_true",
        help="links marked nofollow, ugc or sponsored count as well (default: they are only counted)",
    )  # fmt: skip
    deed.add_argument(
        "--no-links", action="store_true",
        help="keep no table of links with their anchors, which `graph links` needs (default: keep it)",
    )  # fmt: skip


def run_build(options: argparse.Namespace) -> int:
    from harvestman.cli import graphing  # here, so that other verbs start without it

    return graphing.build(options)


def run_rank(options: argparse.Namespace) -> int:
    from harvestman.cli import graphing  # here, so that other verbs start without it

    return graphing.rank(options)


def run_top(options: argparse.Namespace) -> int:
    from harvestman.cli import graphing  # here, so that other verbs start without it

    return graphing.top(options)


def run_links(options: argparse.Namespace) -> int:
    from harvestman.cli import graphing  # here, so that other verbs start without it

    return graphing.links(options)
