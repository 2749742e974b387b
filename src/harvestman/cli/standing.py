"""How a crawl stands: counted, and told in a table."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec

from harvestman.cli import words
from harvestman.jobs import Jobs
from harvestman.layout import CrawlFile, Layout
from harvestman.lock import is_locked
from harvestman.model import Instant, Job, Tally
from harvestman.views import Census, SickHost, View, disk_use

SICK_SHOWN = 10


class Standing(msgspec.Struct):
    """Everything `status` has to say."""

    data: str
    running: bool
    crawl: CrawlFile
    jobs: list[Job]
    seeds: int
    tally: Tally
    census: Census
    sick_hosts: list[SickHost]
    disk: dict[str, int]


def look(data: Path, top: int, now: Instant) -> Standing:
    """Count everything."""
    layout = Layout(data)
    with View(layout) as view:
        census = view.census(top, _tell)
        sick = asyncio.run(view.sick(now))
        if census.urls and sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr)
        facts, tally = view.facts, view.tally()
    jobs = Jobs(layout)
    seeds = sum(jobs.count(job.id) for job in jobs.all())
    return Standing(
        str(layout.data), is_locked(data), facts, jobs.all(), seeds, tally, census, sick, disk_use(layout.data)
    )


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
    "refused": "refused by us (type, size, address)",
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
    lines += ["", f"errors        {words.listed(tally.errors, 6) or 'none'}"]
    if census.dead:
        lines.append(f"dead letters  {words.listed(census.dead, 8)}")
    lines += [f"sick hosts    {_sick(standing.sick_hosts, now)}", f"on disk       {_disk(standing.disk)}"]
    return "\n".join([*lines, *_hosts(census)])


def _title(standing: Standing) -> str:
    crawl, running = standing.crawl, "running" if standing.running else "not running"
    jobs = standing.jobs
    asked = f"scope {jobs[0].scope}" if len(jobs) == 1 else words.plural(len(jobs), "job")
    return (
        f"{standing.data}: {running}, {asked}, {words.plural(standing.seeds, 'seed')}, "
        f"{words.plural(crawl.workers, 'worker')}, {crawl.partitions} partitions"
    )


def _sick(hosts: list[SickHost], now: Instant) -> str:
    if not hosts:
        return "none"
    shown = [f"{each.host} until {words.ahead(each.until, now)}" for each in hosts[:SICK_SHOWN]]
    more = [f"and {len(hosts) - SICK_SHOWN:,} more"] if len(hosts) > SICK_SHOWN else []
    return "\n              ".join([f"{len(hosts):,}", *shown, *more])


def _disk(sizes: dict[str, int]) -> str:
    parts = sorted(sizes.items(), key=lambda item: -item[1])
    return f"{words.size(sum(sizes.values()))} ({', '.join(f'{name} {words.size(n)}' for name, n in parts[:5])})"


def _hosts(census: Census) -> list[str]:
    if not census.top_hosts:
        return []
    width = max(20, *(len(each.host) for each in census.top_hosts))
    rows = [f"{each.host:<{width}} {each.fetched:>9,} {each.waiting:>9,} {each.other:>9,}" for each in census.top_hosts]
    return ["", f"{'host':<{width}} {'fetched':>9} {'waiting':>9} {'other':>9}", *rows]
