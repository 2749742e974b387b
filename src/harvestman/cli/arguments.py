"""What the command lines of the verbs have in common, worded once."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from harvestman.config import Config

Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
_LIVES = "where the crawl lives"


def add_verb(
    verbs: Verbs, name: str, epilog: str, run: Callable[[argparse.Namespace], int] | None = None, *,
    help: str, description: str,
) -> argparse.ArgumentParser:  # fmt: skip
    """A verb, whose epilog is printed as it stands. `run` is None for one that only leads to its deeds."""
    verb = verbs.add_parser(
        name, help=help, description=description, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if run is not None:
        verb.set_defaults(run=run)
    return verb


def add_data(verb: argparse.ArgumentParser, note: str = "") -> None:
    """The data directory, which has to be named."""
    verb.add_argument("data", metavar="DIR", type=Path, help=f"{_LIVES}; {note}" if note else _LIVES)


def add_usual_data(verb: argparse.ArgumentParser) -> None:
    """The data directory, by default the usual one."""
    default, words = Path(Config().data), f"{_LIVES} (default: %(default)s)"
    verb.add_argument("data", metavar="DIR", nargs="?", type=Path, default=default, help=words)


def add_data_option(verb: argparse.ArgumentParser) -> None:
    """The same, for a verb whose words are something else."""
    verb.add_argument(
        "--data", metavar="DIR", type=Path, default=Path(Config().data), help=f"{_LIVES} (default: %(default)s)"
    )


def add_json(verb: argparse._ActionsContainer, otherwise: str, what: str = "print one JSON object") -> None:
    verb.add_argument("--json", action="store_true", help=f"{what} (default: {otherwise})")
