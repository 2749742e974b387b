"""`harvestman bench`: runs the benchmarks of a checkout."""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from pathlib import Path

import harvestman
from harvestman.cli.arguments import Verbs, add_verb
from harvestman.errors import UsageError

FOLDER = Path(harvestman.__file__).parents[2] / "bench"
"""Beside src/ in a checkout; an installed package has none."""
EPILOG = """\
examples:
  harvestman bench                      list them
  harvestman bench pages_cpu            run bench/pages_cpu.py
  harvestman bench pages_cpu --help     what it can be told

One question per benchmark; each prints machine, commit and CPU time."""


def add(verbs: Verbs) -> None:
    """Add the verb and its options."""
    verb = add_verb(
        verbs, "bench", EPILOG, run, help="run a benchmark (from a checkout)",
        description="List or run the benchmarks of a checkout.",
    )  # fmt: skip
    verb.add_argument("name", metavar="NAME", nargs="?", help="which one (default: list them)")
    verb.add_argument("arguments", metavar="ARG", nargs=argparse.REMAINDER, help="handed on to it (default: none)")


def run(options: argparse.Namespace) -> int:
    scripts = {path.stem: path for path in sorted(FOLDER.glob("*.py")) if not path.stem.startswith("_")}
    if not scripts:
        raise UsageError(
            f"no benchmarks at {FOLDER}: they are part of the source, not of the installed package; "
            "clone the repository and run `make bench` there"
        )
    if options.name is None:
        width = max(len(name) for name in scripts)
        print("\n".join(f"{name:<{width}}  {_question(path)}" for name, path in scripts.items()))
        return 0
    if options.name not in scripts:
        raise UsageError(f"no benchmark {options.name!r}: there are {', '.join(scripts)}")
    return subprocess.run([sys.executable, str(scripts[options.name]), *options.arguments], check=False).returncode


def _question(path: Path) -> str:
    """The first line of a script's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]
