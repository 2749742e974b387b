"""`harvestman query`: SQL over a crawl."""

from __future__ import annotations

import argparse

from harvestman.cli.arguments import Verbs, add_data, add_json, add_verb

EPILOG = """\
examples:
  harvestman query crawl-data "select site, count(*) n from pages group by 1 order by n desc limit 10"
  harvestman query crawl-data "select url, title from pages where language = 'de' and text ilike '%wetter%'"
  harvestman query crawl-data "select target_site, count(distinct source_site) n from links group by 1 order by 2 desc"
  harvestman query crawl-data "select reason, count(*) from urls where status = 'dead' group by 1" --csv
  harvestman query crawl-data "describe pages"

Tables: pages, links, urls, hosts; their columns are in docs/query.md. The first query reads the crawl once into
DIR/query, later ones only what is new. Needs DuckDB: pip install 'harvestman[query]'. The crawl may be running."""


def add(verbs: Verbs) -> None:
    """Add the verb and its options."""
    verb = add_verb(verbs, "query", EPILOG, run, help="SQL over a crawl", description="Ask a crawl in SQL.")
    add_data(verb)
    verb.add_argument("sql", metavar="SQL", help="one SELECT, in DuckDB's dialect")
    how = verb.add_mutually_exclusive_group()
    add_json(how, "a table", "one JSON object a line")
    how.add_argument("--csv", action="store_true", help="CSV with a header (default: a table)")


def run(options: argparse.Namespace) -> int:
    from harvestman.cli import answering  # here, so that other verbs start without it

    return answering.run(options)
