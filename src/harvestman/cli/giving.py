"""The seeds of a command: URLs on it, and seed files."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from harvestman.errors import UrlError, UsageError
from harvestman.policy.urls import from_seed
from harvestman.seeds import Seeds, read_seeds

PROBLEMS_SHOWN = 10
PATIENCE = 2.0
"""Seconds that may pass in silence ..."""
EVERY = 3.0
"""... and between two words from then on."""


class Reading:
    """Says on stderr how far the reading of seeds is, if it takes long."""

    def __init__(self, quiet: bool, now: Callable[[], float] = time.monotonic) -> None:
        self._quiet = quiet
        self._now = now
        self._next = now() + PATIENCE
        self._spoken = False

    def tell(self, count: int) -> None:
        """So many are read."""
        now = self._now()
        if now >= self._next and not self._quiet:
            print(f"reading seeds: {count:,} ...", file=sys.stderr, flush=True)
            self._next, self._spoken = now + EVERY, True

    def done(self, count: int) -> None:
        """What follows takes as long again, and is told of beforehand only."""
        if self._spoken:
            print(f"reading seeds: {count:,}; now they are checked and written down ...", file=sys.stderr, flush=True)


def given_seeds(options: argparse.Namespace) -> Seeds:
    """All seeds of the command line; what is wrong in a seed file is told and passed over."""
    given = Seeds(checked(options.urls), [], bare(options.urls))
    reading = Reading(getattr(options, "quiet", False))
    for path in options.seeds:
        found = read_seeds("-" if str(path) == "-" else path, lambda count: reading.tell(len(given.urls) + count))
        _tell_problems(path, found)
        given.urls += found.urls
        given.bare |= found.bare
    reading.done(len(given.urls))
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
