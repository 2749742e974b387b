"""What `regions` does: counts the sites of each region, and moves those that should be in another."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator

import msgspec

from harvestman import regions
from harvestman.cli import words
from harvestman.config import Config, Region, check, load
from harvestman.errors import UsageError
from harvestman.layout import CrawlFile, Layout
from harvestman.lock import locked
from harvestman.regions import SiteStands
from harvestman.views import View


class RegionStands(msgspec.Struct):
    """One region, counted."""

    name: str
    workers: int
    content: str
    sites: int
    pages: int
    why: dict[str, int]
    """Its sites by what their region follows from."""


class Surveyed(msgspec.Struct):
    """Everything `regions` has to say."""

    regions: list[RegionStands]
    moves: int
    """Sites that would move, or have moved."""
    sites: list[SiteStands]


def run(options: argparse.Namespace) -> int:
    layout = Layout(options.data)
    wanted = _wanted(options, layout.read())
    if options.assign:
        _show(_assigned(options, layout, wanted), options, "moved")
    else:
        with View(layout) as view:
            _show(_counted(options, view, wanted), options, "would move")
    return 0


def _wanted(options: argparse.Namespace, facts: CrawlFile) -> tuple[Region, ...]:
    regions = facts.regions
    if options.config is not None:
        regions = check(Config(partitions=facts.partitions, regions=load(options.config).regions)).regions
    if not regions:
        raise UsageError(f"{options.data} has no regions: docs/regions.md says how to have some")
    return regions


def _assigned(options: argparse.Namespace, layout: Layout, wanted: tuple[Region, ...]) -> Surveyed:
    """Move what is not where it should be; returns what was moved."""
    with locked(layout.data):
        before = regions.settled(layout)
        with View(layout) as view:
            found = _counted(options, view, wanted)
            if not found.moves and wanted == before.regions:
                return found
            after = regions.learned(layout, before, wanted, _surveyed(view, wanted))
        regions.replan(layout, before, after)
    return found


def _surveyed(view: View, wanted: tuple[Region, ...]) -> Iterator[SiteStands]:
    return regions.survey(view.facts, wanted, view.router, view.sites())


def _counted(options: argparse.Namespace, view: View, wanted: tuple[Region, ...]) -> Surveyed:
    """Every site counted, where it should be; kept are those to list."""
    stands = {region.name: RegionStands(region.name, region.workers, region.content, 0, 0, {}) for region in wanted}
    found = Surveyed(list(stands.values()), 0, [])
    for each in _surveyed(view, wanted):
        moves = each.goes != each.region
        found.moves += moves
        region = stands[each.goes]
        region.sites += 1
        region.pages += each.pages
        region.why[each.why] = region.why.get(each.why, 0) + 1
        if (moves or options.sites) and not 0 < options.limit <= len(found.sites):
            found.sites.append(each)
    return found


# -- in words --------------------------------------------------------------------------------------------------------


def _show(found: Surveyed, options: argparse.Namespace, verb: str) -> None:
    if options.json:
        print(msgspec.json.encode(found).decode())
        return
    print("\n".join([*_regions(found), "", *_sites(found), f"{words.plural(found.moves, 'site')} {verb}"]))
    if options.assign:
        print(f"Go on with: {words.program()} crawl --data {shlex.quote(str(options.data))}", file=sys.stderr)


def _regions(found: Surveyed) -> list[str]:
    width = max(8, *(len(each.name) for each in found.regions))
    rows = (
        f"{each.name:<{width}} {each.workers:>7,} {each.sites:>9,} {each.pages:>10,}  {words.listed(each.why)}".rstrip()
        for each in found.regions
    )
    return [f"{'region':<{width}} {'workers':>7} {'sites':>9} {'pages':>10}  by", *rows]


def _sites(found: Surveyed) -> list[str]:
    if not found.sites:
        return []
    width = max(20, *(len(each.site) for each in found.sites))
    rows = (
        f"{each.site:<{width}} {_way(each):<16} {each.why:<8} {each.address or '-':<16} {_seconds(each)}".rstrip()
        for each in found.sites
    )
    return [f"{'site':<{width}} {'region':<16} {'by':<8} {'address':<16} answers after", *rows, ""]


def _way(site: SiteStands) -> str:
    return site.region if site.region == site.goes else f"{site.region or '-'} -> {site.goes}"


def _seconds(site: SiteStands) -> str:
    return ", ".join(f"{name} {seconds:.3f} s" for name, seconds in site.seconds.items())
