"""Where every site of a crawl belongs by what lies in its data directory, and how that is changed between two runs.

Never under a running crawl: so a site has one owner at every moment, and nobody has to ask who it is.
See decisions/0012-regions.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from harvestman.config import Region
from harvestman.embedded.reshard import Place, reshard, sweep
from harvestman.errors import ConfigError
from harvestman.frontier.routing import Router
from harvestman.layout import CrawlFile, Layout
from harvestman.model import HostKey, SiteRecord
from harvestman.policy.regions import Assignment, Rules, Table, Why, choose


class SiteStands(msgspec.Struct):
    """Where a site is, and where it should be."""

    site: str
    region: str
    goes: str
    """Its region by what is known now: the same, or the one that `--assign` gives it to."""
    why: Why
    address: str
    seconds: dict[str, float]
    """From a request to the first byte of its answer, by region."""
    pages: int


def router(layout: Layout, facts: CrawlFile) -> Router:
    """The way of every link to the partition of its site."""
    if not facts.regions:
        return Router(facts.partitions)
    rules = Rules(facts.regions)
    numbers = {name: number for number, name in enumerate(rules.names)}
    rows = ((site, numbers[name]) for site, name in layout.learned(facts.table) if name in numbers)
    return Router(facts.partitions, region_of=Assignment(rules, Table(rows)))


def settled(layout: Layout) -> CrawlFile:
    """The facts of a crawl that nobody runs, after bringing to an end a move of sites that was cut short."""
    facts = layout.read()
    if facts.moving:
        sweep(layout, facts, _place(layout, facts))
    return layout.read()


def replan(layout: Layout, before: CrawlFile, after: CrawlFile) -> None:
    """Have other workers or regions from now on. `before` is `settled`, and nobody runs the crawl."""
    after = _keeping(before, after)
    if after == before:
        return
    if _assigned(before) != _assigned(after):
        reshard(layout, before, after, _place(layout, after))
    elif _split(before) != _split(after):
        reshard(layout, before, after)
    else:
        layout.write(after)
    layout.forget_tables(after.table)


def survey(
    facts: CrawlFile, regions: tuple[Region, ...], where: Router, sites: Iterable[SiteRecord]
) -> Iterator[SiteStands]:
    """Where sites are by `facts`, and where they would be by the rules of `regions` and what was learned of them."""
    rules = Rules(regions)
    for site in sites:
        region = facts.name_of(where.place(HostKey(site.site))[2])
        home = rules.names.index(region) if region in rules.names else 0
        choice = choose(site, home, rules)
        seconds = {name: round(reach.seconds, 4) for name, reach in site.reach.items()}
        yield SiteStands(
            site.site, region, rules.names[choice.region], choice.why, site.address, seconds, site.fetched
        )  # fmt: skip


def learned(layout: Layout, before: CrawlFile, regions: tuple[Region, ...], found: Iterable[SiteStands]) -> CrawlFile:
    """Write down where sites go; returns the facts that say so, for `replan`."""
    first = regions[0].name
    layout.learn(
        before.table + 1, ((each.site, each.goes) for each in found if each.why != "tld" and each.goes != first)
    )
    workers = sum(region.workers for region in regions)
    return msgspec.structs.replace(before, regions=regions, workers=workers, table=before.table + 1)


def _keeping(before: CrawlFile, after: CrawlFile) -> CrawlFile:
    """With the regions that are no more. What a region has stays where it is: files are counted on by their names."""
    now, known = msgspec.structs.replace(after, kept={}).homes, before.homes
    for name, content in now.items():
        if known.get(name, content) != content:
            raise ConfigError(
                f"regions: the content of {name} is in {known[name] or 'the usual places'!r}, not in {content!r}: "
                "leave it there, or give the region another name"
            )
    return msgspec.structs.replace(after, kept={name: known[name] for name in known if name not in now})


def _place(layout: Layout, facts: CrawlFile) -> Place:
    way = router(layout, facts)
    return lambda host: way.place(host)[2]


def _assigned(facts: CrawlFile) -> object:
    """What the partition of a site follows from."""
    return [(region.name, region.tlds) for region in facts.regions], facts.table


def _split(facts: CrawlFile) -> object:
    """What the owner of a partition, and the names of its files, follow from."""
    return facts.split, [region.name for region in facts.regions]
