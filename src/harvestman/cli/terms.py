"""What can be asked of a job: the options that `crawl` and `job add` share."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from harvestman.config import Config
from harvestman.model import Seconds

PRIORITIES = ("critical", "high", "normal", "low")
LONGEST = Seconds(3650 * 86_400.0)
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])", re.IGNORECASE)
_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 7 * 86_400.0}
_DEFAULTS = Config()


def add_seeds(verb: argparse.ArgumentParser, urls_help: str) -> None:
    """URLs and seed files."""
    verb.add_argument("urls", metavar="URL", nargs="*", help=urls_help)
    verb.add_argument(
        "--seeds", metavar="FILE", type=Path, nargs="+", action="extend", default=[],
        help="seed files: plain lines, ranked CSV, JSONL or a sitemap, also gzipped; '-' is stdin (default: none)",
    )  # fmt: skip


def add_terms(verb: argparse.ArgumentParser) -> None:
    """How far, how urgent, how often."""
    verb.add_argument(
        "--scope", metavar="site|host|path|all|@FILE",
        help="which links to follow: the seeds' registrable domains, hosts or directories, everything, or what the "
        f"patterns in FILE admit; fixed when a job begins (default: {_DEFAULTS.scope})",
    )  # fmt: skip
    verb.add_argument(
        "--max-depth", metavar="N", type=int, help=f"links away from a seed (default: {_DEFAULTS.limits.max_depth})"
    )
    verb.add_argument("--priority", choices=PRIORITIES, help="how urgent its pages are (default: normal)")
    verb.add_argument(
        "--ttl", metavar="TIME", type=ttl,
        help="visit its pages again after this time: 15m, 1h, 7d (default: as often as each is found to change)",
    )  # fmt: skip
    verb.add_argument("--name", metavar="NAME", help="what to call the job (default: the host of its first seed)")


def ttl(text: str) -> Seconds:
    """'15m', '1h', '7d' in seconds."""
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no length of time: write a number and a unit, as in 15m, 1h, 7d")
    length = Seconds(float(found[1]) * _UNITS[found[2].lower()])
    if not 0 < length <= LONGEST:
        raise argparse.ArgumentTypeError(f"{text!r}: choose a time above 0 and below ten years")
    return length
