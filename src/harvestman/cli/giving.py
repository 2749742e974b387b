"""The seeds of a command: URLs on it, and seed files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harvestman.errors import UrlError, UsageError
from harvestman.policy.urls import from_seed
from harvestman.seeds import Seeds, read_seeds

PROBLEMS_SHOWN = 10


def given_seeds(options: argparse.Namespace) -> Seeds:
    """All seeds of the command line; what is wrong in a seed file is told and passed over."""
    given = Seeds(checked(options.urls), [], bare(options.urls))
    for path in options.seeds:
        found = read_seeds("-" if str(path) == "-" else path)
        _tell_problems(path, found)
        given.urls += found.urls
        given.bare |= found.bare
    return given


def checked(urls: list[str] | tuple[str, ...]) -> list[str]:
    try:
        return [from_seed(url) for url in urls]
    except UrlError as error:
        raise UsageError(f"cannot crawl that: {error}") from None


def bare(urls: list[str] | tuple[str, ...]) -> frozenset[str]:
    """The request forms of those that came without a scheme, which makes them https."""
    return frozenset(from_seed(url) for url in urls if "://" not in url)


def _tell_problems(path: Path, found: Seeds) -> None:
    for problem in found.problems[:PROBLEMS_SHOWN]:
        print(f"{path}:{problem.line}: {problem.reason}", file=sys.stderr)
    if len(found.problems) > PROBLEMS_SHOWN:
        more = len(found.problems) - PROBLEMS_SHOWN
        print(f"{path}: and {more:,} more lines that are no seeds", file=sys.stderr)
