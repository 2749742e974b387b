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
from harvestman.cli.progress import Display, display
from harvestman.cli.settings import Settings
from harvestman.cli.simulated import Running, simulated
from harvestman.config import Config
from harvestman.errors import UrlError, UsageError
from harvestman.layout import Layout, scope_of
from harvestman.lock import locked
from harvestman.policy import consent
from harvestman.policy.scope import Scope
from harvestman.policy.urls import from_seed
from harvestman.seeds import Seeds, read_seeds
from harvestman.sim.audit import audit
from harvestman.sim.plan import Plan
from harvestman.sim.report import Report
from harvestman.store.cdxj import build_index
from harvestman.supervise import Ending, Supervisor
from harvestman.wiring import prepare, resolver_address

PROBLEMS_SHOWN = 10
INTERRUPTED, VIOLATIONS, NOTHING = 130, 5, 6


def run(options: argparse.Namespace) -> int:
    """Crawl, then say how it went."""
    if options.sim:
        return _run_simulated(options)
    _refuse_without_sim(options)
    given = _given_seeds(options)
    return _run(options, given.urls, None, given.bare)


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
        return _run(options, web.seeds, web)


def _run(options: argparse.Namespace, seeds: list[str], web: Running | None, bare: frozenset[str] = frozenset()) -> int:
    """`bare`: seeds that came without a scheme."""
    chosen = settings.settle(options)
    config = chosen.config
    seeds = [*_checked(config.seeds), *seeds]
    _check(options, chosen, seeds)
    with locked(Path(config.data)):
        _say_settings(options, config, Layout(Path(config.data)))
        layout = prepare(config, seeds)
        settings.remember(layout.data, chosen.given)
        if not options.quiet:
            _talk(_opening(config, layout))
        screen = display(_title(config, web), options.quiet)
        try:
            ending = _crawl(config, layout, screen)
        finally:
            screen.close()
        if ending.reason != "interrupted":
            build_index(layout.warc)
        found = summary.summarise(ending, layout, config, bare | _bare(config.seeds))
        return _conclude(options, config, found, ending, web)


def _check(options: argparse.Namespace, chosen: Settings, seeds: list[str]) -> None:
    """Look at all that could be wrong before anything is written."""
    config = chosen.config
    layout = Layout(Path(config.data))
    resolver_address(config.dns)
    if layout.exists():
        _refuse_new_scope(chosen.given.get("scope"), layout)
    elif not seeds:
        raise UsageError(
            f"{layout.data} holds no crawl to go on with: name at least one URL, or --seeds FILE, or try --sim"
        )
    else:
        mode, patterns = scope_of(_known_scope(config.scope))
        Scope.build(mode, seeds, patterns)  # says what is wrong with it
    consent.refuse_rudeness(_with_fixed_scope(config, layout), [*layout.seeds(), *seeds])


def _known_scope(scope: str) -> str:
    if scope not in ("site", "host", "path", "all") and not scope.startswith("@"):
        raise UsageError(f"no such scope: {scope!r}; choose site, host, path, all, or @FILE for a file of patterns")
    return scope


def _with_fixed_scope(config: Config, layout: Layout) -> Config:
    return msgspec.structs.replace(config, scope=layout.read().scope) if layout.exists() else config


def _refuse_new_scope(scope: object, layout: Layout) -> None:
    facts = layout.read()
    if isinstance(scope, str) and scope_of(scope) != (facts.scope, facts.patterns):
        raise UsageError(
            f"the crawl in {layout.data} began with scope {facts.scope!r}, which stays: "
            "leave --scope away, or begin a new crawl with another --data"
        )


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
    seeds = words.plural(len(layout.seeds()), "seed")
    return (
        f"Crawling {seeds} (scope {layout.read().scope}) into {layout.data}, as {config.user_agent(__version__)}, "
        f"{words.span(config.politeness.delay)} between requests to a host"
    )


def _title(config: Config, web: Running | None) -> str:
    return f"the simulated web, into {config.data}" if web else f"into {config.data}"


def _given_seeds(options: argparse.Namespace) -> Seeds:
    """All seeds of the command line; what is wrong in a seed file is told and passed over."""
    given = Seeds(_checked(options.urls), [], _bare(options.urls))
    for path in options.seeds:
        found = read_seeds("-" if str(path) == "-" else path)
        _tell_problems(path, found)
        given.urls += found.urls
        given.bare |= found.bare
    return given


def _checked(urls: list[str] | tuple[str, ...]) -> list[str]:
    try:
        return [from_seed(url) for url in urls]
    except UrlError as error:
        raise UsageError(f"cannot crawl that: {error}") from None


def _bare(urls: list[str] | tuple[str, ...]) -> frozenset[str]:
    """The request forms of those that came without a scheme, which makes them https."""
    return frozenset(from_seed(url) for url in urls if "://" not in url)


def _tell_problems(path: Path, found: Seeds) -> None:
    for problem in found.problems[:PROBLEMS_SHOWN]:
        _talk(f"{path}:{problem.line}: {problem.reason}")
    if len(found.problems) > PROBLEMS_SHOWN:
        _talk(f"{path}: and {len(found.problems) - PROBLEMS_SHOWN:,} more lines that are no seeds")


def _crawl(config: Config, layout: Layout, screen: Display) -> Ending:
    """The crawl itself, in an event loop that knows Ctrl-C."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_supervised(config, layout, screen))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it exists."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _supervised(config: Config, layout: Layout, screen: Display) -> Ending:
    # All seeds, every time: a crash may have come between writing them down and taking them in. Known ones cost little.
    supervisor = Supervisor(config, layout, layout.seeds(), screen.show)
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
