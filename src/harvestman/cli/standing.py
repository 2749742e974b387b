"""How a crawl stands: counted, and told in a table."""

from __future__ import annotations

import asyncio
import shlex
import sys
from pathlib import Path

import msgspec

from harvestman.cli import jobstand, judged, words
from harvestman.cli.jobstand import JobStanding
from harvestman.cli.judged import SiteSays
from harvestman.cli.settings import remembered_config
from harvestman.layout import CrawlFile, Layout
from harvestman.lock import is_locked
from harvestman.model import Instant, Tally
from harvestman.views import Census, SickHost, SitesCount, View, disk_use

SICK_SHOWN = 10
ALERTS_SHOWN = 5


class Standing(msgspec.Struct):
    """Everything `status` has to say."""

    data: str
    running: bool
    crawl: CrawlFile
    jobs: list[JobStanding]
    seeds: int
    tally: Tally
    census: Census
    sites: SitesCount
    spent_sites: list[SiteSays]
    """Sites with URLs queued that have used up what they may have."""
    sick_hosts: list[SickHost]
    disk: dict[str, int]


def look(data: Path, top: int, now: Instant) -> Standing:
    """Count everything."""
    layout = Layout(data)
    with View(layout) as view:
        census = view.census(top, now, _tell)
        sick = asyncio.run(view.sick(now))
        spent = judged.spent(asyncio.run(view.waiting_sites()), remembered_config(data), now)
        if census.urls and sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr)
        facts, tally, sites = view.facts, view.tally(), view.sites_count()
    jobs = jobstand.look(layout)
    return Standing(
        str(layout.data), is_locked(data), facts, jobs, sum(job.seeds for job in jobs), tally, census, sites, spent,
        sick, disk_use(layout.data),
    )  # fmt: skip


def as_json(standing: Standing) -> str:
    return msgspec.json.encode(standing).decode()


def _tell(number: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{number:,} URLs read", end="", file=sys.stderr, flush=True)


_MEANING = {
    "pending": "waiting",
    "fetched": "fetched",
    "duplicate": "duplicates of another URL",
    "redirected": "redirected",
    "gone": "gone (4xx)",
    "blocked": "forbidden by robots.txt",
    "refused": "refused by us (traps, type, size, address)",
    "dead": "dead letters (all attempts failed)",
}


def told(standing: Standing, now: Instant) -> str:
    """The table."""
    tally, census = standing.tally, standing.census
    lines = [
        _title(standing),
        "",
        f"  {tally.pages:>12,}  pages, {words.size(tally.bytes)} in {words.plural(tally.requests, 'request')}",
        f"  {census.urls:>12,}  URLs on {words.plural(census.hosts, 'host')}",
    ]
    lines += [f"  {census.by_status[name]:>12,}    {meaning}" for name, meaning in _MEANING.items()]
    if census.retrying:
        lines.append(f"  {census.retrying:>12,}  of the waiting ones failed before and will be tried again")
    lines.append("")
    if census.regions:
        lines.append(_row("regions", by_region(census.regions)))
    if tally.rendered or tally.unrendered:
        lines.append(_row("browser", words.rendered(tally.rendered, tally.unrendered)))
    lines += [_row("revisits", _tiers(census)), _row("errors", words.listed(tally.errors, 6) or "none")]
    if census.dead:
        lines.append(_row("dead letters", words.listed(census.dead, 8)))
    lines += [_row("sick hosts", _sick(standing.sick_hosts, now)), *_decided(standing, now)]
    return "\n".join([*lines, _row("on disk", _disk(standing.disk)), *_jobs(standing), *_hosts(census)])


def _row(name: str, text: str) -> str:
    return f"{name:<14}{text}"


def _below(lines: list[str]) -> str:
    """Lines one below the other, beside the name of a row."""
    return f"\n{'':<14}".join(lines)


def _tiers(census: Census) -> str:
    return f"{', '.join(f'{name} {count:,}' for name, count in census.tiers.items())}; {census.due:,} due now"


def _decided(standing: Standing, now: Instant) -> list[str]:
    """Traps, flags, budgets and alerts, when there are any."""
    lines, sites, see = [], standing.sites, f"{words.program()} traps {shlex.quote(standing.data)}"
    if refused := trapped(standing.tally.traps):
        where = f"{words.plural(sites.shapes, 'shape')} on {words.plural(sites.trapped, 'site')}"
        lines.append(_row("traps", _below([refused, f"{where}: {see}"])))
    if sites.flagged:
        lines.append(_row("flagged", f"{words.plural(sites.flagged, 'site')} to be looked at: {see}"))
    if standing.spent_sites:
        lines.append(_row("budgets", _below(_spent(standing.spent_sites, now))))
    if alerts := standing.tally.alerts[-ALERTS_SHOWN:]:
        lines.append(_row("alerts", _below(alerts)))
    return lines


def by_region(pages: dict[str, int]) -> str:
    """'eu 120 pages, us 80 pages'."""
    return ", ".join(f"{name} {words.plural(count, 'page')}" for name, count in pages.items())


def trapped(traps: dict[str, int]) -> str:
    """'123 URLs refused (calendar 100, session id 23)', or nothing."""
    counts = {name: count for name, count in traps.items() if count > 0}
    return f"{words.plural(sum(counts.values()), 'URL')} refused ({words.listed(counts, 8)})" if counts else ""


def _spent(sites: list[SiteSays], now: Instant) -> list[str]:
    shown = [f"{each.site}: {_limit(each, now)}" for each in sites[:SICK_SHOWN]]
    more = [f"and {len(sites) - SICK_SHOWN:,} more"] if len(sites) > SICK_SHOWN else []
    return [f"{words.plural(len(sites), 'site')} with URLs queued and no budget left", *shown, *more]


def _limit(site: SiteSays, now: Instant) -> str:
    match site.spent:
        case "day":
            return f"{site.today:,} pages today ({site.setting}), goes on {words.ahead(site.until, now)}"
        case "share":
            return f"{words.plural(site.fetched, 'page')} (budget.share)"
    return f"{words.plural(site.fetched, 'page')} (budget.pages)"


def _jobs(standing: Standing) -> list[str]:
    """When there are several."""
    return ["", *jobstand.told(standing.jobs).splitlines()] if len(standing.jobs) > 1 else []


def _title(standing: Standing) -> str:
    crawl, running = standing.crawl, "running" if standing.running else "not running"
    jobs = standing.jobs
    asked = f"scope {jobs[0].scope}" if len(jobs) == 1 else words.plural(len(jobs), "job")
    return (
        f"{standing.data}: {running}, {asked}, {words.plural(standing.seeds, 'seed')}, "
        f"{words.plural(crawl.workers, 'worker')}, {crawl.partitions * len(crawl.split)} partitions"
    )


def _sick(hosts: list[SickHost], now: Instant) -> str:
    if not hosts:
        return "none"
    shown = [f"{each.host} until {words.ahead(each.until, now)}" for each in hosts[:SICK_SHOWN]]
    more = [f"and {len(hosts) - SICK_SHOWN:,} more"] if len(hosts) > SICK_SHOWN else []
    return _below([f"{len(hosts):,}", *shown, *more])


def _disk(sizes: dict[str, int]) -> str:
    parts = sorted(sizes.items(), key=lambda item: -item[1])
    return f"{words.size(sum(sizes.values()))} ({', '.join(f'{name} {words.size(n)}' for name, n in parts[:5])})"


def _hosts(census: Census) -> list[str]:
    if not census.top_hosts:
        return []
    width = max(20, *(len(each.host) for each in census.top_hosts))
    rows = [f"{each.host:<{width}} {each.fetched:>9,} {each.waiting:>9,} {each.other:>9,}" for each in census.top_hosts]
    return ["", f"{'host':<{width}} {'fetched':>9} {'waiting':>9} {'other':>9}", *rows]
