"""`harvestman crawl`: its options. `running` does the work."""

from __future__ import annotations

import argparse
from pathlib import Path

from harvestman.cli import terms
from harvestman.cli.arguments import Verbs, add_json, add_verb
from harvestman.config import Config
from harvestman.policy.consent import SHORTEST_DELAY
from harvestman.sim.plan import PROFILES

SIM_DATA = "sim-data"
SIM_HOSTS, SIM_PAGES, SIM_SEED, SIM_PATIENCE, SIM_PROFILE = 60, 6, 3, 4.0, "mixed"
"""A web with some of everything that is crawled in about a minute at one request a second."""
_DEFAULTS = Config()

EPILOG = f"""\
examples:
  harvestman crawl --sim
      crawl a web that Harvestman itself serves on loopback, then judge the crawl from the servers' logs
  harvestman crawl https://example.org --contact https://your.site/crawler
      the site of example.org, one request a second, into ./{_DEFAULTS.data}
  harvestman crawl --data {_DEFAULTS.data}
      go on with it: everything is as it was set before
  harvestman crawl --seeds top-sites.csv --scope host --max-depth 2 --workers 4 --contact crawl@your.site
      a ranked list of hosts, two links deep, on four cores
  harvestman crawl https://news.example/ --priority high --max-depth 1 --ttl 1h
      into the same crawl: it asks for something else, so it becomes a job of its own
  harvestman crawl http://127.0.0.1:8000/ --allow 127.0.0.0/8 --delay 0
      a server on this machine, as fast as it answers

Ctrl-C lets what is in flight finish and ends; a second Ctrl-C ends at once. Either way nothing is lost, and the same
command goes on later. robots.txt is always obeyed. Settings: docs/configuration.md, exit codes: docs/cli.md"""


def add(verbs: Verbs) -> None:
    """Add the verb and its options."""
    verb = add_verb(
        verbs, "crawl", EPILOG, run, help="crawl from seeds, or go on with a crawl",
        description="Crawl from seeds, or go on with a crawl.",
    )  # fmt: skip
    _add_what(verb)
    _add_how(verb)
    _add_sim(verb)


def _add_what(verb: argparse.ArgumentParser) -> None:
    limits = _DEFAULTS.limits
    terms.add_seeds(verb, "seeds; none is needed to go on with a crawl")
    terms.add_terms(verb)
    verb.add_argument(
        "--max-pages", metavar="N", type=int, help="end this run after N pages (default: 0, no limit)",
    )  # fmt: skip
    verb.add_argument(
        "--keep", action="store_true", default=None,
        help="go on for ever, visiting pages again as they fall due (default: end when all that was due is done)",
    )  # fmt: skip
    verb.add_argument(
        "--patience", metavar="S", type=float,
        help="end when no host may be asked within S seconds "
        f"(default: {limits.patience:g}; with --sim {SIM_PATIENCE:g})",
    )  # fmt: skip


def _add_how(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--contact", metavar="URL", help="URL or e-mail address that answers for this crawl; needed outside loopback"
        " (default: none)",
    )  # fmt: skip
    verb.add_argument(
        "--delay", metavar="S", type=float, help="seconds between two requests to a host, at least "
        f"{SHORTEST_DELAY:g} outside loopback; robots.txt may ask for more (default: {_DEFAULTS.politeness.delay:g})",
    )  # fmt: skip
    verb.add_argument(
        "--workers", metavar="N", type=int,
        help=f"processes (default: {_DEFAULTS.workers}, or as many as the crawl had before)",
    )  # fmt: skip
    verb.add_argument(
        "--data", metavar="DIR", help=f"where the crawl lives (default: {_DEFAULTS.data}; with --sim {SIM_DATA})"
    )
    verb.add_argument(
        "--dns", metavar="SERVER", action="append",
        help="name server to ask, HOST:PORT or https://HOST/PATH; may be repeated, the next is asked when one fails "
        "(default: the system's)",
    )  # fmt: skip
    verb.add_argument(
        "--allow", metavar="CIDR", action="append",
        help="private or loopback network that may be touched; may be repeated (default: none)",
    )  # fmt: skip
    verb.add_argument(
        "--allow-port", metavar="N", action="append", type=int,
        help="port that may be asked besides the web's own, such as 80, 443, 8080; may be repeated (default: none)",
    )  # fmt: skip
    verb.add_argument("--config", metavar="FILE", type=Path, help="settings in TOML (default: none)")
    add_json(verb, "in words", "print the summary as one JSON object")
    verb.add_argument("--quiet", action="store_true", help="show no progress and no summary (default: show both)")


def _add_sim(verb: argparse.ArgumentParser) -> None:
    group = verb.add_argument_group("a web to try it on")
    group.add_argument(
        "--sim",
        action="store_true",
        help="serve a simulated web on loopback, crawl it, audit the crawl; takes about one minute (default: off)",
    )
    group.add_argument("--sim-hosts", metavar="N", type=int, help=f"its hosts (default: {SIM_HOSTS})")
    group.add_argument("--sim-pages", metavar="N", type=int, help=f"pages of each (default: {SIM_PAGES})")
    group.add_argument("--sim-profile", choices=PROFILES, help=f"how nasty it is (default: {SIM_PROFILE})")


def run(options: argparse.Namespace) -> int:
    from harvestman.cli import running  # here, so that other verbs start without it

    return running.run(options)
