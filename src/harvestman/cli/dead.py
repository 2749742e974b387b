"""`harvestman dead`: URLs that were given up after their last attempt: list them, drive them again, drop them."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harvestman.cli.arguments import Verbs, add_data, add_verb
from harvestman.errors import UsageError
from harvestman.model import Attempt, Instant, Status, UrlRecord

if TYPE_CHECKING:
    from harvestman.mend import Choice
    from harvestman.views import View

SHOWN = 1000
EPILOG = """\
examples:
  harvestman dead list crawl-data                          every dead letter, with each attempt and why it failed
  harvestman dead list crawl-data --kind timeout --json | jq -r .url
  harvestman dead redrive crawl-data https://example.org/page
  harvestman dead redrive crawl-data --host example.org --forgive
  harvestman dead drop crawl-data --site example.org       never ask for these again

list works while the crawl runs; redrive and drop change it, so it must not. What was driven again is fetched by the
next `harvestman crawl --data DIR`. Both may be cut short and run again."""


class DeadLetter(msgspec.Struct):
    """One line of --json."""

    url: str
    kind: str
    attempts: int
    at: Instant
    reason: str
    via: str
    depth: int
    trail: list[dict[str, float | str]]


def add(verbs: Verbs) -> None:
    """Add the verb and its options."""
    verb = add_verb(
        verbs, "dead", EPILOG, run, help="URLs given up after their last attempt: list, redrive or drop them",
        description="Dead letters: URLs given up after their last attempt.",
    )  # fmt: skip
    verb.add_argument(
        "act", choices=("list", "redrive", "drop"),
        help="list: show them; redrive: queue them again, as if never tried; drop: never ask for them again",
    )  # fmt: skip
    add_data(verb)
    verb.add_argument("urls", metavar="URL", nargs="*", help="only these, right after DIR; https is assumed")
    verb.add_argument("--host", metavar="H", default="", help="only those of one host (default: of all)")
    verb.add_argument("--site", metavar="S", default="", help="only those of one registrable domain (default: of all)")
    verb.add_argument(
        "--kind", metavar="K", default="",
        help="only those that failed like this in the end: timeout, connect, 'HTTP 503' ... (default: in any way)",
    )  # fmt: skip
    verb.add_argument("--all", action="store_true", help="redrive or drop every one (default: those that are named)")
    verb.add_argument(
        "--forgive", action="store_true",
        help="with redrive: take their hosts off the sick list as well (default: they stay on it)",
    )  # fmt: skip
    verb.add_argument(
        "--limit", metavar="N", type=int,
        help=f"at most so many, 0 for all (default: {SHOWN} for list, all for redrive and drop)",
    )  # fmt: skip
    verb.add_argument(
        "--json", action="store_true", help="list: one JSON object a line; else one in all (default: in words)"
    )


def run(options: argparse.Namespace) -> int:
    from harvestman.mend import Choice  # here, so that other verbs start without it
    from harvestman.policy.urls import from_seed

    filters = Choice(options.host.lower(), options.site.lower(), options.kind)
    urls = [from_seed(text) for text in options.urls]
    _check(options, bool(urls), filters != Choice())
    chosen = urls or filters
    return _list(options, chosen) if options.act == "list" else _change(options, chosen)


def _check(options: argparse.Namespace, named: bool, filtered: bool) -> None:
    if named and (filtered or options.all):
        raise UsageError("name URLs, or say which with --host, --site, --kind or --all, but not both")
    if options.forgive and options.act != "redrive":
        raise UsageError(f"--forgive is for `dead redrive`, not for `dead {options.act}`")
    if options.act != "list" and not (named or filtered or options.all):
        raise UsageError(f"dead {options.act}: which ones? Name URLs, or --host, --site, --kind, or --all")


# -- list ------------------------------------------------------------------------------------------------------------


def _list(options: argparse.Namespace, chosen: Choice | list[str]) -> int:
    from harvestman.layout import Layout
    from harvestman.views import View

    limit = SHOWN if options.limit is None else max(0, options.limit)
    count = 0
    with View(Layout(options.data)) as view:
        found = _found(view, chosen)
        for record in islice(found, limit or None):
            count += 1
            print(_as_json(record) if options.json else _told(record))
        more = bool(limit) and next(found, None) is not None
    if more:
        print(f"There are more than {limit:,}: --limit 0 lists all.", file=sys.stderr)
    elif not count:
        print("No dead letters.", file=sys.stderr)
    return 0


def _found(view: View, chosen: Choice | list[str]) -> Iterator[UrlRecord]:
    from harvestman.mend import Choice

    if isinstance(chosen, Choice):
        yield from (record for record in view.records() if chosen.picks(record))
        return
    for url, record in asyncio.run(_named(view, chosen)):
        if record is not None and record.status is Status.DEAD:
            yield record
        else:
            print(_no_dead_letter(url, record), file=sys.stderr)


async def _named(view: View, urls: list[str]) -> list[tuple[str, UrlRecord | None]]:
    return [(url, await view.record(url)) for url in urls]


def _no_dead_letter(url: str, record: UrlRecord | None) -> str:
    return (
        f"{url} is no dead letter: {'it was never seen' if record is None else f'it is {record.status.name.lower()}'}"
    )


def _as_json(record: UrlRecord) -> str:
    from harvestman.views import kind_of

    at, reason = _end(record)
    trail: list[dict[str, float | str]] = [{"at": each.at, "reason": each.reason} for each in record.trail]
    letter = DeadLetter(record.url, kind_of(record), record.attempts, at, reason, record.via, record.depth, trail)
    return msgspec.json.encode(letter).decode()


def _told(record: UrlRecord) -> str:
    from harvestman.cli import words

    at, reason = _end(record)
    lines = [record.url, f"  {words.plural(record.attempts, 'attempt')}, given up {words.moment(at)}: {reason}"]
    return "\n".join([*lines, *(_attempt(number, each) for number, each in enumerate(record.trail, 1))])


def _attempt(number: int, attempt: Attempt) -> str:
    from harvestman.cli import words

    return f"    {number}  {words.moment(attempt.at)}  {attempt.reason}"


def _end(record: UrlRecord) -> tuple[Instant, str]:
    return (record.visit.at, record.visit.reason) if record.visit else (record.found, "unknown")


# -- redrive, drop ---------------------------------------------------------------------------------------------------


def _change(options: argparse.Namespace, chosen: Choice | list[str]) -> int:
    from harvestman.cli import words

    count, hosts = asyncio.run(_changed(options, chosen))
    if options.json:
        print(msgspec.json.encode({"act": options.act, "urls": count, "hosts_forgiven": hosts}).decode())
    elif options.act == "drop":
        print(f"{words.plural(count, 'URL')} dropped")
    else:
        forgiven = f", {words.plural(hosts, 'host')} forgiven" if options.forgive else ""
        print(f"{words.plural(count, 'URL')} queued again{forgiven}")
    return 0


async def _changed(options: argparse.Namespace, chosen: Choice | list[str]) -> tuple[int, int]:
    from harvestman.mend import still

    limit, now = options.limit or None, Instant(time.time())
    with still(options.data) as crawl:
        if isinstance(chosen, list):
            _refuse_unknown(options.data, await crawl.look_up(chosen))
        if options.act == "drop":
            return await crawl.drop(chosen, limit, now), 0
        done = await crawl.redrive(chosen, limit, options.forgive, now)
        return done.urls, done.hosts


def _refuse_unknown(data: Path, found: dict[str, UrlRecord | None]) -> None:
    """A URL nobody knows is a slip of the pen: nothing is done. One that is no dead letter any more is passed over."""
    for url, record in found.items():
        if record is None:
            raise UsageError(f"{_no_dead_letter(url, None)}; `harvestman dead list {data}` names them")
        if record.status is not Status.DEAD:
            print(_no_dead_letter(url, record), file=sys.stderr)
