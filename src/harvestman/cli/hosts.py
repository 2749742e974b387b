"""`harvestman hosts`: which hosts are left alone for a while, and why; take them off the sick list."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

import msgspec

from harvestman.cli.arguments import Verbs, add_json, add_usual_data, add_verb
from harvestman.errors import UsageError
from harvestman.model import HostKey, HostRecord, Instant

LONG = 60.0
"""Seconds: the longest pause that is nothing special."""
EVERY = "all"
EPILOG = """\
examples:
  harvestman hosts crawl-data                              the sick list, and hosts that wait
  harvestman hosts crawl-data --json | jq -r '.[].host'
  harvestman hosts crawl-data --forgive example.org        ask it again in the next run
  harvestman hosts crawl-data --forgive all

A host that failed five times in a row is left alone for six hours. --forgive ends that, and no more: what a server
asked for itself, with Retry-After or in its robots.txt, stays in force. Listing works while the crawl runs; forgiving
does not."""


class RestingHost(msgspec.Struct):
    """A host that is not asked for a while."""

    host: HostKey
    why: str
    """sick, or waits: told to, without a robots.txt, its site's budget used up."""
    until: Instant
    failures: int
    """In a row, since it was last well or put on the list."""
    delay: float


def add(verbs: Verbs) -> None:
    """Add the verb and its options."""
    verb = add_verb(
        verbs, "hosts", EPILOG, run, help="hosts that are left alone for a while; forgive them",
        description="Hosts that are left alone for a while: after failures (the sick list), or because they must wait.",
    )  # fmt: skip
    add_usual_data(verb)
    verb.add_argument(
        "--forgive", metavar="HOST", action="append", default=[],
        help=f"forget the failures of a host, of every one with '{EVERY}'; may be repeated (default: list them)",
    )  # fmt: skip
    add_json(verb, "a table", "print JSON")


def run(options: argparse.Namespace) -> int:
    now = Instant(time.time())
    return _forgive(options, now) if options.forgive else _list(options, now)


def resting(host: HostRecord, now: Instant) -> RestingHost | None:
    """None for one that is asked in the ordinary course of things."""
    if host.sick_until > now:
        until = Instant(max(host.sick_until, host.next_allowed))
        return RestingHost(host.host, "sick", until, host.failures, host.delay)
    if host.next_allowed > now + LONG:
        return RestingHost(host.host, "waits", host.next_allowed, host.failures, host.delay)
    return None


def _list(options: argparse.Namespace, now: Instant) -> int:
    from harvestman.layout import Layout  # here, so that other verbs start without it
    from harvestman.views import View

    with View(Layout(options.data)) as view:
        found = [rest for host in view.hosts() if (rest := resting(host, now)) is not None]
    found.sort(key=lambda rest: (rest.until, rest.host))
    if options.json:
        print(msgspec.json.encode(found).decode())
    elif found:
        print(_table(found, now))
    else:
        print("No host rests.", file=sys.stderr)
    return 0


def _table(found: list[RestingHost], now: Instant) -> str:
    from harvestman.cli import words

    width = max(20, *(len(each.host) for each in found))
    head = f"{'host':<{width}} {'why':<6} {'failures':>8} {'delay':>7}  until"
    rows = (
        f"{each.host:<{width}} {each.why:<6} {each.failures:>8} {words.span(each.delay):>7}  "
        f"{words.ahead(each.until, now)}"
        for each in found
    )
    return "\n".join([head, *rows])


def _forgive(options: argparse.Namespace, now: Instant) -> int:
    from harvestman.cli import words
    from harvestman.mend import still

    every = EVERY in options.forgive
    wanted = [HostKey(name.lower()) for name in options.forgive]
    with still(options.data) as crawl:
        if not every and (unknown := asyncio.run(crawl.unknown_hosts(wanted))):
            raise UsageError(
                f"{unknown[0]} was never asked by this crawl: `harvestman hosts {options.data}` lists those that rest"
            )
        done = sorted(asyncio.run(crawl.forgive(None if every else wanted, now)))
    if options.json:
        print(msgspec.json.encode({"forgiven": done}).decode())
    else:
        print("\n".join([f"{words.plural(len(done), 'host')} forgiven", *(f"  {name}" for name in done)]))
    return 0
