"""`harvestman simulate`: what a configuration would do to a modelled web in so many days, told in a minute or two."""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from harvestman.cli import words
from harvestman.cli.arguments import Verbs, add_json, add_verb
from harvestman.config import Config, check, load
from harvestman.errors import UsageError
from harvestman.simulate.plan import PROFILES, Plan

if TYPE_CHECKING:
    from harvestman.simulate.report import Report
    from harvestman.simulate.world import Simulation, Wish

VIOLATIONS = 5
DAYS = 30.0
RATE = 0.05
TELL_EVERY = 2.0
FAST_DISK = Path("/dev/shm")
EPILOG = """\
examples:
  harvestman simulate                                      a month of a small crawl, in about two minutes
  harvestman simulate --config crawl.toml --html month.html
  harvestman simulate --profile storm --days 3 --rate 5    1,000 hosts down, flapping, slow, limiting for a day

The frontier, its database and every policy are those of a real crawl; the web is a model and time is a number, so
nothing is sent and nothing sleeps. The same options give the same crawl, always. Ctrl-C ends it early, and what was
played so far is reported. The exit code is 0 when every promise to the servers was kept and 5 when not."""


def add(verbs: Verbs) -> None:
    """Add the verb and its options."""
    verb = add_verb(
        verbs, "simulate", EPILOG, run, help="play a crawl of a modelled web in virtual time",
        description="Play a crawl of a modelled web in virtual time: coverage, freshness, politeness, budgets, memory.",
    )  # fmt: skip
    verb.add_argument("--hosts", metavar="N", type=int, default=Plan.hosts, help="hosts (default: %(default)s)")
    verb.add_argument(
        "--pages", metavar="N", type=int, default=Plan.pages, help="pages on all hosts together (default: %(default)s)"
    )
    verb.add_argument(
        "--days", metavar="D", type=float, default=DAYS, help="days to play, in virtual time (default: %(default)s)"
    )
    verb.add_argument("--seed", metavar="N", type=int, default=Plan.seed, help="which web (default: %(default)s)")
    verb.add_argument(
        "--rate", metavar="R", type=float, default=RATE,
        help="requests a second that the crawler is capable of; 0 for no limit (default: %(default)s)",
    )  # fmt: skip
    verb.add_argument(
        "--profile", choices=PROFILES, default=Plan.profile,
        help="clean: all is well; mixed: some trouble, some traps; wild: half of the hosts are in trouble; "
        "storm: all are, for a day (default: %(default)s)",
    )  # fmt: skip
    verb.add_argument(
        "--max-requests", metavar="N", type=int, default=0, help="end after N requests; 0 for no limit (default: 0)"
    )
    verb.add_argument("--config", metavar="FILE", type=Path, help="settings in TOML, as for crawl (default: none)")
    verb.add_argument("--html", metavar="FILE", type=Path, help="write a report with plots (default: not written)")
    verb.add_argument("--svg", metavar="FILE", type=Path, help="write the plots alone (default: not written)")
    add_json(verb, "a table")
    verb.add_argument("--quiet", action="store_true", help="no progress (default: a line now and then)")


def run(options: argparse.Namespace) -> int:
    from harvestman.simulate import plots  # here, so that other verbs start without it

    report = _play(_wish(options), options.quiet)
    for path, text in ((options.html, plots.page), (options.svg, plots.board)):
        if path:
            path.write_text(text(report), encoding="utf-8")
    print(report.to_json() if options.json else report.render())
    return 0 if report.ok else VIOLATIONS


def _wish(options: argparse.Namespace) -> Wish:
    from harvestman.simulate.world import Wish

    if options.days <= 0 or options.rate < 0 or options.max_requests < 0:
        raise UsageError("--days must be above 0, --rate and --max-requests not below it")
    plan = Plan(options.hosts, options.pages, options.seed, options.profile)
    config = check(load(options.config)) if options.config else Config()
    return Wish(plan, config, options.days, options.rate, options.max_requests)


def _play(wish: Wish, quiet: bool) -> Report:
    from harvestman.simulate.world import Simulation

    began, cpu = time.monotonic(), time.process_time()
    watch = _Watch(wish.days, quiet)
    where = FAST_DISK if FAST_DISK.is_dir() and os.access(FAST_DISK, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="harvestman-", dir=where) as directory, watch.until_interrupted():
        simulation = Simulation(wish, Path(directory) / "state", going=watch.going, memory=_memory)
        try:
            report = asyncio.run(simulation.play())
        finally:
            simulation.close()
    report.machine.seconds, report.machine.cpu = time.monotonic() - began, time.process_time() - cpu
    return report


class _Watch:
    """Tells how far it is, and stops it when the user wants to."""

    def __init__(self, days: float, quiet: bool) -> None:
        self._days = days
        self._quiet = quiet
        self._turns = 0
        self._told = time.monotonic()
        self._requests = 0
        self._stop = False

    @contextmanager
    def until_interrupted(self) -> Iterator[None]:
        """Ctrl-C ends the simulation, not the program; a second one ends both."""

        def interrupted(number: int, frame: object) -> None:
            if self._stop:
                raise KeyboardInterrupt
            self._stop = True

        before = signal.signal(signal.SIGINT, interrupted)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def going(self, simulation: Simulation) -> bool:
        self._turns += 1
        if self._turns % 64 == 0 and not self._quiet:
            self._tell(simulation)
        return not self._stop

    def _tell(self, simulation: Simulation) -> None:
        now = time.monotonic()
        if now - self._told < TELL_EVERY:
            return
        tally = simulation.drive.tally
        pace = (tally.requests - self._requests) / (now - self._told)
        self._told, self._requests = now, tally.requests
        coverage = f", coverage {simulation.samples[-1].coverage:.1%}" if simulation.samples else ""
        where = f"day {simulation.day:.1f} of {self._days:g}"
        line = f"{where}, {words.plural(tally.requests, 'request')} ({pace:,.0f}/s){coverage}"
        print(line, file=sys.stderr, flush=True)


def _memory() -> int:
    """Resident bytes of this process."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
