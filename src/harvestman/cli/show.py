"""`harvestman show`: all that is stored of one URL."""

from __future__ import annotations

import argparse

from harvestman.cli.arguments import Verbs, add_data_option, add_json, add_verb

EPILOG = """\
examples:
  harvestman show https://example.org/page                    metadata, first lines, links out and in, versions
  harvestman show example.org/page --data my-crawl --text     all of its text
  harvestman show https://example.org/page --diff             what changed between its last two versions
  harvestman show https://example.org/page --diff 1 3         ... between its first and its third
  harvestman show https://example.org/page --diff 2026-01-31 2026-03-01T12:00
                                                              ... between what it was then and what it was then
  harvestman show https://example.org/page --raw > page.html  the body as it is stored

Links to it are looked for in the page log from end to end: seconds for each GB. What became of a URL, and why, is for
`harvestman why`. The crawl may be running meanwhile."""


def add(verbs: Verbs) -> None:
    """Add the verb and its options."""
    verb = add_verb(
        verbs, "show", EPILOG, run, help="all that is stored of one URL",
        description="All that is stored of one URL.",
    )  # fmt: skip
    verb.add_argument("url", metavar="URL", help="the URL, in any spelling; https is assumed")
    add_data_option(verb)
    what = verb.add_mutually_exclusive_group()
    what.add_argument("--text", action="store_true", help="its text, and nothing else (default: first lines)")
    what.add_argument(
        "--diff", metavar="VERSION", nargs="*",
        help="how the text of one version differs from that of another: two of them, each by its number, 1 being the "
        "oldest, or by a date (UTC), for what it was then; none: the last two (default: no)",
    )  # fmt: skip
    what.add_argument("--raw", action="store_true", help="write its body, decoded, to stdout (default: no)")
    add_json(what, "in words")
    verb.add_argument(
        "--limit", metavar="N", type=int, default=20, help="links and versions listed (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> int:
    from harvestman.cli import showing  # here, so that other verbs start without it

    return showing.run(options)
