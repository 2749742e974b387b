"""`harvestman hold`: legal holds, which say what must not be deleted."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import msgspec

from harvestman.cli.arguments import Verbs, add_data, add_json, add_verb
from harvestman.cli.takedown import add_which, chosen, who
from harvestman.errors import UsageError
from harvestman.model import Instant

KINDS = ("url", "prefix", "site")
EPILOG = """\
examples:
  harvestman hold add crawl-data --site example.org --reason "case 12"
  harvestman hold list crawl-data
  harvestman hold drop crawl-data --site example.org --reason "case 12 is closed"

`harvestman retain` passes over what is under hold; `harvestman takedown` refuses, unless --despite-hold says otherwise.
Adding and dropping are written down in DIR/takedowns.jsonl."""


class Held(msgspec.Struct):
    """A line of takedowns.jsonl."""

    at: Instant
    by: str
    reason: str
    kind: str
    """'hold add' or 'hold drop'."""
    of: str
    value: str


def add(verbs: Verbs) -> None:
    """Add the verb and its options."""
    verb = add_verb(
        verbs, "hold", EPILOG, run, help="legal holds: what must not be deleted",
        description="Legal holds: what must not be deleted.",
    )  # fmt: skip
    verb.add_argument("act", choices=("add", "list", "drop"), help="add one, list them, drop one")
    add_data(verb, "it may be running")
    add_which(verb, KINDS)
    verb.add_argument("--reason", metavar="TEXT", default="", help="why, for the record (default: none; add needs it)")
    verb.add_argument("--by", metavar="NAME", default=None, help="who did it, for the record (default: $USER)")
    add_json(verb, "in words", "list: one JSON object a line")


def run(options: argparse.Namespace) -> int:
    from harvestman.layout import Layout  # here, so that other verbs start without it

    layout = Layout(options.data)
    layout.read()
    if options.act == "list":
        return _list(layout.holds, options.json)
    from harvestman.blocking import add_entries, read_entries, write_entries
    from harvestman.policy.blocklist import entry
    from harvestman.takedown.record import append

    wanted = chosen(options, KINDS)
    if wanted is None:
        raise UsageError(f"hold {options.act}: of what? Name --url, --prefix or --site")
    meant = entry(*wanted, options.reason.strip(), Instant(time.time()), who(options))
    if options.act == "add":
        if not meant.reason:
            raise UsageError("hold add: a --reason is needed, for the record")
        add_entries(layout.holds, [meant])
    else:
        entries = read_entries(layout.holds)
        kept = [each for each in entries if each.same != meant.same]
        if len(kept) == len(entries):
            raise UsageError(f"there is no such hold; `harvestman hold list {options.data}` names them")
        write_entries(layout.holds, kept)
    append(layout, Held(meant.at, meant.by, meant.reason, f"hold {options.act}", meant.kind, meant.value))
    state = "Under legal hold" if options.act == "add" else "No longer under legal hold"
    print(f"{state}: {' '.join(wanted)}", file=sys.stderr)
    return 0


def _list(path: Path, as_json: bool) -> int:
    from harvestman.blocking import read_entries
    from harvestman.cli import words

    for each in read_entries(path):
        line = f"{each.kind:<7} {each.value}  since {words.moment(each.at)}, {each.by}: {each.reason}"
        print(msgspec.json.encode(each).decode() if as_json else line)
    return 0
