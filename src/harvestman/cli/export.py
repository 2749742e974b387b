"""`harvestman export`: a crawl in the formats others read."""

from __future__ import annotations

import argparse

from harvestman.cli.arguments import Verbs, add_usual_data, add_verb

EPILOG = """\
examples:
  harvestman export crawl-data --format jsonl | jq -r .title
  harvestman export crawl-data --format parquet --output pages.parquet --links
  harvestman export crawl-data --format dataset --output dataset     pages, text and links, partitioned
  harvestman export crawl-data --format wet                          text, for readers of Common Crawl
  harvestman export crawl-data --format wacz --output crawl.wacz     open it at replayweb.page
  harvestman export crawl-data --format cdxj
  duckdb -c "select site, count(*) from 'pages.parquet' group by 1 order by 2 desc"

Formats and columns are described in docs/export.md, with how to read them.
Pages that ask not to be indexed are left out unless asked for."""


def add(verbs: Verbs) -> None:
    """Add the verb and its options."""
    verb = add_verb(
        verbs, "export", EPILOG, run, help="a crawl as Parquet, JSON lines, WET or WACZ",
        description="Write a crawl in a format others read.",
    )  # fmt: skip
    add_usual_data(verb)
    verb.add_argument(
        "--format", choices=("parquet", "jsonl", "dataset", "wet", "wacz", "cdxj"), default="jsonl",
        help="pages as one Parquet file or as JSON lines; dataset: pages, text and links as a directory of Parquet "
        "files; wet: text as WARC conversion records; wacz: the whole archive in one file, for replay; cdxj: "
        "DIR/warc/index.cdxj, the index of the raw records, made anew (a crawl that ends by itself makes it too) "
        "(default: %(default)s)",
    )  # fmt: skip
    verb.add_argument(
        "--output", metavar="PATH",
        help="where to write; '-' is stdout, for jsonl (default: stdout for jsonl; in DIR/export pages.parquet, "
        "dataset, wet and crawl.wacz for the others)",
    )  # fmt: skip
    verb.add_argument(
        "--links", action="store_true", help="parquet, jsonl: with the links of each page (default: without)"
    )
    verb.add_argument(
        "--duplicates", action="store_true",
        help="parquet, jsonl: also a row, without text, for each URL whose content is that of another (default: no)",
    )  # fmt: skip
    verb.add_argument(
        "--text", action="store_true", help="wacz: with the text of the pages, to be searched (default: without)"
    )
    verb.add_argument(
        "--include-noindex", action="store_true", help="also pages that ask not to be indexed (default: leave them out)"
    )


def run(options: argparse.Namespace) -> int:
    from harvestman.cli import writing  # here, so that other verbs start without it

    return writing.run(options)
