"""A crawl from the command line: seeds and settings in, the crawl under Ctrl-C, a summary and an audit out."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from harvestman import __version__
from harvestman.cli import paper, settings, summary, words
from harvestman.cli.crawl import SIM_DATA, SIM_HOSTS, SIM_PAGES, SIM_PATIENCE, SIM_PROFILE, SIM_SEED
from harvestman.cli.giving import bare, checked, given_seeds
from harvestman.cli.progress import Display, display
from harvestman.cli.retain import by_itself
from harvestman.cli.settings import Settings
from harvestman.cli.simulated import Running, simulated
from harvestman.config import Config
from harvestman.errors import UsageError
from harvestman.jobs import Jobs, Terms
from harvestman.layout import Layout
from harvestman.lock import locked
from harvestman.model import Instant, Job
from harvestman.policy import consent
from harvestman.seeds import Seeds
from harvestman.sim.audit import audit
from harvestman.sim.plan import Plan
from harvestman.sim.report import Report
from harvestman.store.cdxj import build_index
from harvestman.supervise import Ending, Supervisor
from harvestman.wiring import name_servers, prepare

INTERRUPTED, VIOLATIONS, NOTHING = 130, 5, 6


def run(options: argparse.Namespace) -> int:
    """Crawl, then say how it went."""
    if options.sim:
        return _run_simulated(options)
    _refuse_without_sim(options)
    return _run(options, given_seeds(options), None)


def _refuse_with_sim(options: argparse.Namespace) -> None:
    if options.urls or options.seeds:
        raise UsageError("--sim crawls its own web: leave the URLs and --seeds away")
    for name in ("dns", "allow", "scope"):
        if getattr(options, name) is not None:
            raise UsageError(f"--sim crawls its own web, all of it, by its own name server: leave --{name} away")


def _refuse_without_sim(options: argparse.Namespace) -> None:
    for name in ("hosts", "pages", "profile"):
        if getattr(options, f"sim_{name}") is not None:
            raise UsageError(f"--sim-{name} says what the simulated web is like: add --sim, or leave it away")


def _run_simulated(options: argparse.Namespace) -> int:
    _refuse_with_sim(options)
    options.data = options.data or SIM_DATA
    options.patience = SIM_PATIENCE if options.patience is None else options.patience
    plan = Plan(
        SIM_HOSTS if options.sim_hosts is None else options.sim_hosts,
        SIM_PAGES if options.sim_pages is None else options.sim_pages, SIM_SEED, options.sim_profile or SIM_PROFILE,
    )  # fmt: skip
    with simulated(plan, Path(options.data)) as web:
        options.scope, options.dns, options.allow = "all", web.dns, ["127.0.0.0/8"]
        return _run(options, Seeds(list(web.seeds), []), web)


def _run(options: argparse.Namespace, given: Seeds, web: Running | None) -> int:
    chosen = settings.settle(options)
    config = chosen.config
    given.urls[:0] = checked(config.seeds)
    vetted = _check(chosen, given.urls)
    with locked(Path(config.data)):
        _say_settings(options, config, Layout(Path(config.data)))
        layout = prepare(config, given.urls, chosen.terms)
        given.urls.clear()  # there may be millions, and they are on disk now
        settings.remember(layout.data, chosen.given)
        if not options.quiet:
            _talk(_opening(config, layout))
        screen = display(_title(config, web), options.quiet)
        try:
            ending = _crawl(config, layout, screen, vetted)
        finally:
            screen.close()
        if ending.reason != "interrupted":
            for directory in layout.warcs():
                build_index(directory)
        found = summary.summarise(ending, layout, config, given.bare | bare(config.seeds))
        code = _conclude(options, config, found, ending, web)
    if ending.reason != "interrupted":
        by_itself(config, options.quiet)
    return code


def _check(chosen: Settings, seeds: list[str]) -> dict[int, int]:
    """Look at all that could be wrong before anything is written. Returns the seeds seen: by job, up to which byte."""
    config = chosen.config
    layout = Layout(Path(config.data))
    name_servers(config)  # says if one is wrong
    if layout.exists():
        layout.read()  # says if it is of another version
    elif not seeds:
        raise UsageError(
            f"{layout.data} holds no crawl to go on with: name at least one URL, or --seeds FILE, or try --sim"
        )
    jobs = Jobs(layout)
    wanted = _wanted(chosen.terms, jobs, seeds)
    vetted = {job.id: jobs.size(job.id) for job in jobs.all()}
    for job in jobs.all():
        consent.refuse_rudeness(msgspec.structs.replace(config, scope=job.scope), jobs.seeds(job.id))
    if seeds:
        consent.refuse_rudeness(msgspec.structs.replace(config, scope=wanted.scope), seeds)
    return vetted


def _wanted(terms: Terms, jobs: Jobs, seeds: list[str]) -> Job:
    """What is asked for; refused when it is something new and there are no seeds for it."""
    first = jobs.all()[0] if jobs.all() else Job(0, "", Instant(0.0))
    wanted = terms.over(first)
    if first.id and not seeds and wanted != first:
        raise UsageError(
            f"job 1 began with scope {first.scope!r}, depth {first.max_depth}, priority {first.priority}, which stays: "
            "leave these options away, or name new seeds, and they become a job of their own"
        )
    return wanted


def _say_settings(options: argparse.Namespace, config: Config, layout: Layout) -> None:
    before = settings.spelt(settings.remembered(layout.data))
    if layout.exists() and not options.quiet:
        _talk(f"Going on with {layout.data}" + (f" as before: {', '.join(before)}" if before else ""))
    if not options.quiet and config.contact and consent.hurried(config):
        _talk(f"Faster than one request a second ({config.politeness.delay:g} s): for hosts whose owners agreed.")


def _talk(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _opening(config: Config, layout: Layout) -> str:
    """What is about to be done, and in whose name."""
    jobs = Jobs(layout)
    seeds = words.plural(sum(jobs.count(job.id) for job in jobs.all()), "seed")
    asked = f"scope {jobs.get(1).scope}" if len(jobs.all()) == 1 else f"{len(jobs.all())} jobs"
    return (
        f"Crawling {seeds} ({asked}) into {layout.data}, as {config.user_agent(__version__)}, "
        f"{words.span(config.politeness.delay)} between requests to a host"
    )


def _title(config: Config, web: Running | None) -> str:
    return f"the simulated web, into {config.data}" if web else f"into {config.data}"


def _crawl(config: Config, layout: Layout, screen: Display, vetted: dict[int, int]) -> Ending:
    """The crawl itself, in an event loop that knows Ctrl-C."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_supervised(config, layout, screen, vetted))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it exists."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _supervised(config: Config, layout: Layout, screen: Display, vetted: dict[int, int]) -> Ending:
    supervisor = Supervisor(config, layout, screen.show, screen.say, vetted)
    loop = asyncio.get_running_loop()
    interrupts = 0

    def interrupt() -> None:
        nonlocal interrupts
        interrupts += 1
        if interrupts == 1:
            screen.say("Draining: what is in flight is finished and stored. Ctrl-C again stops at once.")
            supervisor.drain()
        else:
            screen.say("Stopping now.")
            supervisor.halt()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)
    return await supervisor.run()


# -- afterwards ------------------------------------------------------------------------------------------------------


def _conclude(
    options: argparse.Namespace, config: Config, found: summary.Summary, ending: Ending, web: Running | None
) -> int:
    report = _audited(config, ending, web)
    if options.json:
        audited = f',"audit":{report.to_json()}' if report else ""
        print(summary.as_json(found)[:-1] + audited + "}")
    elif not options.quiet:
        _print_all(found, config, report, web)
    if ending.reason == "interrupted":
        return INTERRUPTED
    if report and not report.ok:
        return VIOLATIONS
    return NOTHING if summary.fetched_nothing(ending) else 0


def _audited(config: Config, ending: Ending, web: Running | None) -> Report | None:
    """The verdict of the simulated web's log; none for a crawl that was interrupted."""
    if web is None or ending.reason == "interrupted":
        return None
    coverage = 1.0 if ending.reason == "finished" else 0.0
    return audit(web.log, config.politeness.delay, depth=config.limits.max_depth, min_coverage=coverage)


def _print_all(found: summary.Summary, config: Config, report: Report | None, web: Running | None) -> None:
    paper.show(summary.told(found, "" if web else f"{words.program()} crawl --data {shlex.quote(config.data)}"))
    if web is not None and report is not None:
        verdict = "\n".join(f"  {line}".rstrip() for line in report.render().splitlines())
        paper.show(f"\nAudit, from the servers' side ({web.log}):\n\n{verdict}")
