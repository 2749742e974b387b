"""`harvestman repair`: queues, schedule and seen-filter made anew from the URL records."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING

import msgspec

from harvestman.cli.arguments import Verbs, add_data, add_json, add_verb

if TYPE_CHECKING:
    from harvestman.mend import Repaired

SAY_EVERY = 1_000_000
"""URLs between two lines where there is no terminal to write over the last one."""
EPILOG = """\
examples:
  harvestman repair crawl-data --dry-run                   what is wrong, if anything
  harvestman repair crawl-data
  harvestman crawl --data crawl-data                       and on it goes

Of every URL there is a record that says what became of it. Which ones wait, in which queue and until when, and which
were seen, follows from the records: all that is compared with them, what is missing is put back, what is stale is
removed. What was fetched is not fetched again; the hosts' clocks stay as they are. A database with files that are
missing or cut short is opened without them. It may be interrupted at any moment and run again."""


def add(verbs: Verbs) -> None:
    """Add the verb and its options."""
    verb = add_verb(
        verbs, "repair", EPILOG, run, help="make queues, schedule and seen-filter anew from the URL records",
        description="Make the queues, the schedule and the seen-filter of a crawl anew from its URL records alone.",
    )  # fmt: skip
    add_data(verb, "it must not be running")
    verb.add_argument("--dry-run", action="store_true", help="only say what is wrong (default: mend it)")
    add_json(verb, "in words")


def run(options: argparse.Namespace) -> int:
    from harvestman import mend  # here, so that other verbs start without it

    if options.dry_run:
        done = asyncio.run(mend.examine(options.data, _tell))
    else:
        with mend.still(options.data, save=True) as crawl:
            done = asyncio.run(crawl.repair(_tell))
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    print(_as_json(done) if options.json else told(done))
    return 0


def _tell(number: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{number:,} URLs compared", end="", file=sys.stderr, flush=True)
    elif number % SAY_EVERY == 0:
        print(f"{number:,} URLs compared", file=sys.stderr)


def _as_json(done: Repaired) -> str:
    return msgspec.json.encode({"whole": done.whole, **msgspec.structs.asdict(done)}).decode()


_COLUMNS = ("urls", "queued", "retries", "revisits", "renders", "missing", "stale", "hidden")


def told(done: Repaired) -> str:
    """A verdict, a row for each worker, and what else there is to say."""
    head = f"{'worker':<8}" + "".join(f"{name:>12}" for name in _COLUMNS)
    rows = [f"{each.worker:<8}" + "".join(f"{getattr(each, name):>12,}" for name in _COLUMNS) for each in done.workers]
    return "\n".join([_verdict(done), "", head, *rows, *_remarks(done)])


def _verdict(done: Repaired) -> str:
    if done.whole:
        return f"{done.data}: nothing is wrong"
    return f"{done.data}: " + (f"to be mended with `harvestman repair {done.data}`" if done.dry_run else "mended")


def _remarks(done: Repaired) -> list[str]:
    remarks = [
        f"{each.worker}: {', '.join(each.unreadable)} cannot be read: made anew from the URL records"
        for each in done.workers
        if each.unreadable
    ]
    remarks += [f"{each.worker}: opened without {', '.join(each.lost)}" for each in done.workers if each.lost]
    if any(each.lost for each in done.workers) and done.urls < done.discovered:
        remarks.append(f"{done.discovered - done.urls:,} of {done.discovered:,} URL records are lost with these files")
    if not done.dry_run:
        remarks.append("The seen-filter is made anew when the crawl starts.")
    return ["", *remarks] if remarks else []
