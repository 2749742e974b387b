"""`harvestman traps`: the spider traps a crawl has met; pardon one; look for those that slipped through."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from harvestman.cli.arguments import Verbs, add_json, add_usual_data, add_verb
from harvestman.errors import UsageError
from harvestman.model import RESOURCE, Instant, SiteKey, SiteRecord, Status

if TYPE_CHECKING:
    from harvestman.views import View

PAGES = (Status.FETCHED, Status.DUPLICATE)
EPILOG = """\
examples:
  harvestman traps crawl-data                              shapes of URLs that are no longer followed, site by site
  harvestman traps crawl-data --json | jq '.traps[] | select(.refused > 1000)'
  harvestman traps crawl-data --scan                       shapes that cost many pages and brought nothing new
  harvestman traps crawl-data --pardon example.org '/archive/{date}'

A pardoned shape is followed again, and never stopped again; what was refused of it is queued for the next run. The
shape is given as the list shows it, in quotes. Listing and --scan work while the crawl runs; --pardon does not."""


class TrapRow(msgspec.Struct):
    """A shape that is no longer followed on a site."""

    site: SiteKey
    name: str
    shape: str
    since: Instant
    refused: int
    example: str
    pardoned: bool


class FlaggedSite(msgspec.Struct):
    """A site that a person should look at."""

    site: SiteKey
    why: str
    fetched: int
    dull: int
    """Pages near-identical to ones before them."""


class Met(msgspec.Struct):
    """Everything the list says."""

    traps: list[TrapRow]
    flagged: list[FlaggedSite]


def add(verbs: Verbs) -> None:
    """Add the verb and its options."""
    verb = add_verb(
        verbs, "traps", EPILOG, run, help="spider traps: list them, pardon one, look for more",
        description="Spider traps: shapes of URLs without end and with nothing new behind them.",
    )  # fmt: skip
    add_usual_data(verb)
    verb.add_argument(
        "--pardon", metavar=("SITE", "SHAPE"), nargs=2,
        help="follow this shape on this site after all, and queue what was refused (default: list the traps)",
    )  # fmt: skip
    verb.add_argument(
        "--scan",
        action="store_true",
        help="look through all pages for traps that were not noticed (default: list them)",
    )
    add_json(verb, "a table")


def run(options: argparse.Namespace) -> int:
    if options.pardon and options.scan:
        raise UsageError("--pardon or --scan, not both")
    if options.pardon:
        return _pardon(options, *options.pardon)
    return _scan(options) if options.scan else _list(options)


# -- list ------------------------------------------------------------------------------------------------------------


def _list(options: argparse.Namespace) -> int:
    from harvestman.layout import Layout  # here, so that other verbs start without it
    from harvestman.views import View

    with View(Layout(options.data)) as view:
        sites = sorted((site for site in view.sites() if site.traps or site.flagged), key=lambda each: each.site)
    met = Met([row for site in sites for row in _rows(site)], [_flag(site) for site in sites if site.flagged])
    if options.json:
        print(msgspec.json.encode(met).decode())
    elif met.traps or met.flagged:
        print("\n".join([*_trap_table(met.traps), *_flag_table(met.flagged)]))
    else:
        print("No traps were met.", file=sys.stderr)
    return 0


def _rows(site: SiteRecord) -> list[TrapRow]:
    rows = [
        TrapRow(site.site, trap.name, shape, trap.at, trap.refused, trap.example, trap.pardoned)
        for shape, trap in site.traps.items()
    ]
    return sorted(rows, key=lambda row: (-row.refused, row.shape))


def _flag(site: SiteRecord) -> FlaggedSite:
    return FlaggedSite(site.site, site.flagged, site.fetched, site.dull)


def _trap_table(rows: list[TrapRow]) -> list[str]:
    from harvestman.cli import words

    lines: list[str] = []
    for number, row in enumerate(rows):
        if number == 0 or row.site != rows[number - 1].site:
            lines += ["", row.site] if lines else [row.site]
        lines.append(f"  {row.name:<14} {row.refused:>9,} refused  {row.shape}{'  (pardoned)' if row.pardoned else ''}")
        lines.append(f"  {'':<14} since {words.moment(row.since)}, {row.example}")
    return lines


def _flag_table(rows: list[FlaggedSite]) -> list[str]:
    lines = [f"  {row.site}: {row.why} ({row.dull:,} of {row.fetched:,} pages like others)" for row in rows]
    return ["", "to be looked at", *lines] if lines else []


# -- pardon, scan ----------------------------------------------------------------------------------------------------


def _pardon(options: argparse.Namespace, site: str, shape: str) -> int:
    from harvestman.cli import words
    from harvestman.mend import still

    with still(options.data) as crawl:
        count = asyncio.run(crawl.pardon(site.lower(), shape, Instant(time.time())))
    if options.json:
        print(msgspec.json.encode({"site": site, "shape": shape, "urls": count}).decode())
    else:
        print(f"{shape} of {site} is pardoned, {words.plural(count, 'URL')} queued")
    return 0


def _scan(options: argparse.Namespace) -> int:
    from harvestman.layout import Layout
    from harvestman.policy.traps import slipped
    from harvestman.views import View

    with View(Layout(options.data)) as view:
        found = slipped(_pages(view))
    if options.json:
        print(msgspec.json.encode({"findings": [each._asdict() for each in found]}).decode())
    elif found:
        print(f"{'pages':>9} {'new':>9}  {'looks like':<14} site and shape")
        for each in found:
            print(f"{each.pages:>9,} {each.contents:>9,}  {each.name:<14} {each.site} {each.shape}")
    else:
        print("Nothing slipped through.", file=sys.stderr)
    return 0


def _pages(view: View) -> Iterator[tuple[str, bytes, int]]:
    for record in view.records():
        shell = record.render is not None  # the same at all addresses of an application
        if record.status in PAGES and record.visit is not None and not shell and record.kind != RESOURCE:
            yield record.url, record.visit.digest, record.visit.simhash
