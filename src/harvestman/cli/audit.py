"""`harvestman audit`: judges a crawl of the simulated web from the servers' side."""

from __future__ import annotations

import argparse
from pathlib import Path

from harvestman.cli.arguments import Verbs, add_json, add_verb
from harvestman.config import Config
from harvestman.errors import UsageError

VIOLATIONS = 5
_DEFAULTS = Config()
EPILOG = """\
examples:
  harvestman audit sim.log
  harvestman audit sim.log --delay 0.5 --json | jq .broken
  harvestman audit sim.log --min-coverage 0.99 --max-trap-share 0.02

Judged are coverage of the allowed pages, pages fetched twice, robots.txt, nofollow, the gaps between requests to a
host, Retry-After, requests at once to a host and, with --max-trap-share, the share of trap URLs. The exit code is 0
when every promise was kept and 5 when not."""


def add(verbs: Verbs) -> None:
    """Add the verb and its options."""
    verb = add_verb(
        verbs, "audit", EPILOG, run, help="judge a crawl of the simulated web from its log",
        description="Judge a crawl of the simulated web from the log that its servers wrote.",
    )  # fmt: skip
    verb.add_argument("logs", metavar="LOG", type=Path, nargs="+", help="the log, or several of the same web")
    verb.add_argument(
        "--delay", metavar="S", type=float, default=float(_DEFAULTS.politeness.delay),
        help="seconds promised between two requests to a host (default: %(default)s)",
    )  # fmt: skip
    verb.add_argument(
        "--max-depth", metavar="N", type=int, default=_DEFAULTS.limits.max_depth,
        help="how deep the crawl was to go (default: %(default)s)",
    )  # fmt: skip
    verb.add_argument(
        "--min-coverage", metavar="SHARE", type=float, default=1.0,
        help="share of the allowed pages that must have been fetched (default: %(default)s)",
    )  # fmt: skip
    verb.add_argument(
        "--max-trap-share", metavar="SHARE", type=float, default=1.0,
        help="share of the page requests that may have gone into traps (default: %(default)s, no limit)",
    )  # fmt: skip
    verb.add_argument(
        "--no-browser", action="store_true",
        help="the crawl rendered nothing: expect no page that only scripts lead to (default: it did)",
    )  # fmt: skip
    add_json(verb, "a table")


def run(options: argparse.Namespace) -> int:
    from harvestman.sim.audit import audit  # here, so that other verbs start without it

    for log in options.logs:
        if not log.is_file():
            raise UsageError(f"{log}: no such log; `harvestman sim --log FILE` writes one")
    report = audit(
        options.logs, options.delay, depth=options.max_depth, min_coverage=options.min_coverage,
        max_trap_share=options.max_trap_share, browser=not options.no_browser,
    )  # fmt: skip
    print(report.to_json() if options.json else report.render())
    return 0 if report.ok else VIOLATIONS
