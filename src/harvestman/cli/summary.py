"""What is said when a crawl is over: for people in words, for programs as one JSON object."""

from __future__ import annotations

import asyncio
import shlex
import time

import msgspec

from harvestman.cli import jobstand, judged, nothing, words
from harvestman.cli.jobstand import JobStanding
from harvestman.cli.judged import SiteSays
from harvestman.cli.nothing import FailedSeed, failed_seeds
from harvestman.cli.progress import STEADY_AFTER, queued
from harvestman.cli.standing import ALERTS_SHOWN, by_region, trapped
from harvestman.config import Config
from harvestman.layout import Layout
from harvestman.model import Instant
from harvestman.supervise import Ending
from harvestman.views import SickHost, View

COUNTED_UP_TO = 500_000
"""URLs that are counted one by one for the summary; of larger crawls it gives the tally only."""


class Summary(msgspec.Struct):
    """How a run ended. The counters are those of the whole crawl, `run_pages` and `seconds` of this run."""

    reason: str
    """finished, max-pages or interrupted."""
    data: str
    pages: int
    run_pages: int
    duplicates: int
    bytes: int
    requests: int
    dns_hits: int
    """Leases whose address was at hand, and those that waited for a name server."""
    dns_misses: int
    discovered: int
    blocked: int
    waiting: int
    errors: dict[str, int]
    by_status: dict[str, int] | None
    traps: dict[str, int]
    alerts: list[str]
    sick_hosts: list[SickHost]
    spent_sites: list[SiteSays]
    """Sites with URLs queued that have used up what they may have."""
    seconds: float
    cpu_seconds: float
    workers: int
    restarts: int
    patience: float
    jobs: list[JobStanding]
    rendered: int = 0
    """Pages read as a browser shows them, and those that wait for it."""
    unrendered: int = 0
    regions: dict[str, int] = {}
    """Pages by region, where there are any and the URLs are counted."""
    failed_seeds: list[FailedSeed] = []
    """The first seeds, when nothing at all could be fetched."""


def summarise(ending: Ending, layout: Layout, config: Config, bare: frozenset[str] = frozenset()) -> Summary:
    """Put the ending and a look at the data together. `bare`: seeds that were given without a scheme."""
    progress = ending.progress
    now = Instant(time.time())
    with View(layout) as view:
        tally = view.tally()
        counted = tally.discovered <= COUNTED_UP_TO
        census = view.census(0, now, lambda number: None) if counted else None
        sick = asyncio.run(view.sick(now))
        spent = judged.spent(asyncio.run(view.waiting_sites()), config, now)
    failed = asyncio.run(failed_seeds(layout, config, bare, now)) if fetched_nothing(ending) else []
    waiting = census.by_status["pending"] if census else queued(tally)
    return Summary(
        ending.reason, str(layout.data), tally.pages, progress.run_pages, tally.duplicates, tally.bytes,
        tally.requests, tally.dns_hits, tally.dns_misses, tally.discovered, tally.blocked, waiting, tally.errors,
        census.by_status if census else None, tally.traps, tally.alerts, sick, spent,
        round(progress.elapsed, 3), round(progress.cpu, 3), progress.workers, progress.restarts,
        config.limits.patience, jobstand.look(layout), tally.rendered, tally.unrendered,
        census.regions if census else {}, failed,
    )  # fmt: skip


def fetched_nothing(ending: Ending) -> bool:
    """Whether the crawl ended by itself without a single page, now or in an earlier run."""
    return ending.reason == "finished" and not ending.progress.tally.pages


def as_json(summary: Summary) -> str:
    return msgspec.json.encode(summary).decode()


_HOW = {
    "finished": "Finished",
    "max-pages": "Stopped at the page limit",
    "interrupted": "Interrupted; nothing is lost",
}


def told(summary: Summary, resume: str) -> str:
    """The summary in plain words. `resume` is the command that goes on with the crawl."""
    rate = summary.run_pages / summary.seconds if summary.seconds else 0.0
    steady = summary.run_pages >= STEADY_AFTER
    cpu = f", {summary.cpu_seconds / summary.run_pages * 1000:.1f} ms CPU a page" if steady else ""
    lines = [
        *_heading(summary),
        "",
        _row(
            "this run", f"{words.plural(summary.run_pages, 'page')} in {words.span(summary.seconds)}, {rate:.1f}/s{cpu}"
        ),
        _row("pages", f"{summary.pages:,}, {summary.duplicates:,} of them duplicates, {words.size(summary.bytes)}"),
        *([_row("regions", by_region(summary.regions))] if summary.regions else []),
        *_rendered(summary),
        _row("URLs found", f"{summary.discovered:,}{_statuses(summary)}"),
        _row("robots.txt", f"forbids {words.plural(summary.blocked, 'URL')}"),
        *_addresses(summary),
        *_trapped(summary),
        _row("errors", f"{sum(summary.errors.values()):,}{_bracketed(words.listed(summary.errors, 5))}"),
        _row("still queued", f"{words.plural(summary.waiting, 'URL')}{_why_queued(summary)}"),
        *_spent(summary),
        *(_row("alert", alert) for alert in summary.alerts[-ALERTS_SHOWN:]),
        _row("data", f"{summary.data}: {_stored(summary)}, what is known of each URL in state/"),
    ]
    if summary.restarts:
        lines.append(_row("restarts", f"{summary.restarts} of a worker; see {summary.data}/logs"))
    return "\n".join([*lines, *_jobs(summary), "", *_next_steps(summary, resume)])


def _stored(summary: Summary) -> str:
    return "raw records and pages by region" if summary.regions else "raw records in warc/, pages in pages/"


def _addresses(summary: Summary) -> list[str]:
    needed = summary.dns_hits + summary.dns_misses
    return [_row("addresses", f"{summary.dns_hits / needed:.1%} of {needed:,} at hand when needed")] if needed else []


def _rendered(summary: Summary) -> list[str]:
    if not summary.rendered and not summary.unrendered:
        return []
    waiting = f"; {summary.unrendered:,} wait for the next run" if summary.unrendered else ""
    return [_row("browser", f"{words.plural(summary.rendered, 'page')} rendered{waiting}")]


def _trapped(summary: Summary) -> list[str]:
    refused = trapped(summary.traps)
    return [_row("traps", refused)] if refused else []


def _spent(summary: Summary) -> list[str]:
    """Sites that could have gone on with a larger budget: with the settings that give them one."""
    lines = []
    days = [site for site in summary.spent_sites if site.spent == "day"]
    shares = sum(site.spent == "share" for site in summary.spent_sites)
    if days:
        had = f"{_have(len(days))} had all pages of the day: a larger {' or '.join(sorted({d.setting for d in days}))}"
        lines.append(_row("budget", f"{had} gives more, else they come from {words.moment(days[0].until)} on"))
    if shares:
        lines.append(
            _row("budget", f"{_have(shares)} had a whole share of the crawl: a larger budget.share gives more")
        )
    return lines


def _have(sites: int) -> str:
    return f"{words.plural(sites, 'site')} {'has' if sites == 1 else 'have'}"


def _jobs(summary: Summary) -> list[str]:
    """When there are several."""
    if len(summary.jobs) < 2:
        return []
    return ["", *(f"  {line}" for line in jobstand.told(summary.jobs).splitlines())]


def _heading(summary: Summary) -> list[str]:
    if not summary.failed_seeds:
        return [f"{_HOW.get(summary.reason, summary.reason)}."]
    seeds = [line for seed in summary.failed_seeds for line in nothing.told(seed)]
    return ["Nothing could be fetched.", "", *seeds]


def _row(name: str, text: str) -> str:
    return f"  {name:<13}{text}"


def _bracketed(text: str) -> str:
    return f" ({text})" if text else ""


def _statuses(summary: Summary) -> str:
    shown = ("redirected", "gone", "refused", "dead")
    counts = summary.by_status or {}
    return _bracketed(", ".join(f"{counts[name]:,} {name}" for name in shown if counts.get(name)))


def _why_queued(summary: Summary) -> str:
    """A finished crawl may leave URLs of hosts that do not answer."""
    if not summary.waiting or summary.reason != "finished":
        return ""
    left = f" on hosts that could not be asked within {words.span(summary.patience)}"
    if not summary.sick_hosts:
        return left
    number, until = len(summary.sick_hosts), words.moment(summary.sick_hosts[0].until)
    rest = f"rests until {until}" if number == 1 else f"rest, the first until {until}"
    return f"{left}; {words.plural(number, 'host')} failed too often and {rest}"


def _next_steps(summary: Summary, resume: str) -> list[str]:
    data = shlex.quote(summary.data)
    program = words.program()
    steps = [
        (f"{program} status {data}", "how it stands, by status and host"),
        (f"{program} export {data} --format jsonl", "the pages, one JSON object a line"),
        (f"{program} why URL --data {data}", "what became of one URL, and why"),
    ]
    if summary.waiting and resume:
        steps.append((resume, "go on where it stopped"))
    width = max(len(command) for command, _ in steps)
    return ["Next:", *(f"  {command:<{width}}   {use}" for command, use in steps)]
