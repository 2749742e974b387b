"""`harvestman VERB ...`: finds the verb, runs it, turns what goes wrong into words and a number.

Exit codes are listed in docs/cli.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from harvestman import __version__
from harvestman.cli import (
    audit,
    bench,
    corpus,
    crawl,
    dead,
    export,
    feed,
    graph,
    hold,
    hosts,
    job,
    query,
    regions,
    repair,
    retain,
    show,
    sim,
    simulate,
    status,
    takedown,
    traps,
    why,
)
from harvestman.errors import HarvestmanError, StateError, UsageError

VERBS = (
    crawl,
    job,
    status,
    why,
    show,
    dead,
    traps,
    hosts,
    regions,
    repair,
    takedown,
    retain,
    hold,
    export,
    corpus,
    query,
    feed,
    graph,
    sim,
    simulate,
    audit,
    bench,
)
REPORT = "harvestman: this is a bug; please report it with the traceback above"
INTERRUPTED = 130

DESCRIPTION = "A polite, durable, very fast web crawler."
EPILOG = """\
examples:
  harvestman crawl --sim                                   crawl a built-in web: no Internet, about one minute
  harvestman crawl https://example.org --contact me@example.org
  harvestman status crawl-data                             how the crawl stands
  harvestman why https://example.org/page                  what became of one URL, and why
  harvestman export crawl-data --format parquet            the pages as a table

Every verb has its own help: harvestman crawl --help. Manual: docs/cli.md"""


class Parser(argparse.ArgumentParser):
    """Speaks as the rest of the program does when the command is wrong."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"harvestman: {message}\nTry: {self.prog} --help\n")


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = Parser(
        prog="harvestman", description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    top.add_argument("--version", action="version", version=f"harvestman {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb in VERBS:
        verb.add(verbs)
    return top


def main(argv: list[str] | None = None) -> int:
    """Run one command. Returns its exit code."""
    try:
        options = parser().parse_args(argv)
    except SystemExit as wanted:
        return wanted.code if isinstance(wanted.code, int) else 2
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    try:
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except HarvestmanError as error:
        print(f"harvestman: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _reader_gone()
    except OSError as error:
        return _os_refused(error, getattr(options, "data", None))
    except Exception:  # the last resort: everything expected was caught above
        traceback.print_exc()
        print(REPORT, file=sys.stderr)
        return 1


def _reader_gone() -> int:
    """`harvestman export ... | head`: the reader has had enough, which is no failure."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _os_refused(error: OSError, data: Path | str | None) -> int:
    """A missing directory, a full disk, a taken port: nobody's bug. What lies in the data directory counts as its."""
    # Of a rename it is the second name that the user knows.
    name = error.filename2 or error.filename
    reason = error.strerror or str(error)
    print(f"harvestman: {os.fsdecode(name)}: {reason}" if name else f"harvestman: {reason}", file=sys.stderr)
    inside = isinstance(name, str | bytes) and data and Path(os.fsdecode(name)).is_relative_to(data)
    return StateError.exit_code if inside else UsageError.exit_code
