"""`harvestman export`: the pages of a crawl as Parquet or JSON lines, and the index of its WARC files."""

from __future__ import annotations

import argparse
from pathlib import Path

from harvestman.config import Config

EPILOG = """\
examples:
  harvestman export crawl-data --format jsonl | jq -r .title
  harvestman export crawl-data --format parquet --output pages.parquet --links
  harvestman export crawl-data --format cdxj
  duckdb -c "select site, count(*) from 'pages.parquet' group by 1 order by 2 desc"

The columns are described in docs/export.md. Pages that ask not to be indexed are left out unless asked for."""


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its options."""
    verb = verbs.add_parser(
        "export", help="the pages of a crawl as Parquet or JSON lines",
        description="Write the pages of a crawl as Parquet or JSON lines.",
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    verb.set_defaults(run=run)
    verb.add_argument(
        "data", metavar="DIR", nargs="?", type=Path, default=Path(Config().data),
        help="where the crawl lives (default: %(default)s)",
    )  # fmt: skip
    verb.add_argument(
        "--format", choices=("parquet", "jsonl", "cdxj"), default="jsonl",
        help="pages as Parquet or JSON lines, or DIR/warc/index.cdxj, the index of the raw records, made anew "
        "(a crawl that ends by itself makes it too) (default: %(default)s)",
    )  # fmt: skip
    verb.add_argument(
        "--output", metavar="PATH",
        help="where to write; '-' is stdout, for jsonl "
        "(default: stdout for jsonl, DIR/export/pages.parquet for parquet)",
    )  # fmt: skip
    verb.add_argument("--links", action="store_true", help="with the links of each page (default: without)")
    verb.add_argument(
        "--duplicates", action="store_true",
        help="also a row, without text, for each URL whose content is that of another (default: no)",
    )  # fmt: skip
    verb.add_argument(
        "--include-noindex", action="store_true", help="also pages that ask not to be indexed (default: leave them out)"
    )


def run(options: argparse.Namespace) -> int:
    from harvestman.cli import writing  # here, so that other verbs start without it

    return writing.run(options)
