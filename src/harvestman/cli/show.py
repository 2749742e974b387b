"""`harvestman show`: all that is stored of one URL."""

from __future__ import annotations

import argparse
from pathlib import Path

from harvestman.config import Config

EPILOG = """\
examples:
  harvestman show https://example.org/page                    metadata, first lines, links out and in, versions
  harvestman show example.org/page --data my-crawl --text     all of its text
  harvestman show https://example.org/page --diff             what changed between its last two versions
  harvestman show https://example.org/page --raw > page.html  the body as it is stored

Links to it are looked for in the page log from end to end: seconds for each GB. What became of a URL, and why, is for
`harvestman why`. The crawl may be running meanwhile."""


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its options."""
    verb = verbs.add_parser(
        "show", help="all that is stored of one URL", description="All that is stored of one URL.",
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    verb.set_defaults(run=run)
    verb.add_argument("url", metavar="URL", help="the URL, in any spelling; https is assumed")
    verb.add_argument(
        "--data", metavar="DIR", type=Path, default=Path(Config().data),
        help="where the crawl lives (default: %(default)s)",
    )  # fmt: skip
    what = verb.add_mutually_exclusive_group()
    what.add_argument("--text", action="store_true", help="its text, and nothing else (default: first lines)")
    what.add_argument(
        "--diff", action="store_true",
        help="how the text of its last version differs from that of the one before (default: no)",
    )  # fmt: skip
    what.add_argument("--raw", action="store_true", help="write its body, decoded, to stdout (default: no)")
    what.add_argument("--json", action="store_true", help="print one JSON object (default: in words)")
    verb.add_argument(
        "--limit", metavar="N", type=int, default=20, help="links and versions listed (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> int:
    from harvestman.cli import showing  # here, so that other verbs start without it

    return showing.run(options)
