"""How much RAM does a whole worker take while its frontier grows to five million URLs?

A real crawl by one worker under its supervisor, of a simulated web with as many pages, at default politeness: sockets,
bodies, fingerprints and all. The URLs are given as seeds, which the worker takes in beside the crawl, so that the
frontier is full after some twenty minutes instead of hours. frontier_memory has the frontier alone, part by part.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path

import psutil
from _run import Report, Row, options
from _sim import SimulatedWeb, scratch, simulated_web

from harvestman.config import Config
from harvestman.sim.web import Web
from harvestman.supervise import Progress, Supervisor
from harvestman.wiring import prepare

LIMIT = 400
"""MB: what the mission allows a worker."""
RUN = 10
"""Seeds of one host in a row."""


def write_seeds(web: SimulatedWeb, path: Path) -> None:
    """Every page of the web, some of each host in turn."""
    made = Web(web.plan)
    with path.open("w") as file:
        for start in range(0, web.plan.pages, RUN):
            numbers = range(start, min(start + RUN, web.plan.pages))
            for host in made.hosts:
                file.writelines(f"http://{host.name}:{web.port}{made.path(host, number)}\n" for number in numbers)


class Scales:
    """Weighs the worker whenever the supervisor tells of progress, and ends the crawl when it has seen enough."""

    def __init__(self, settings: Config, seeds: list[str], urls: int, after: float, step: float) -> None:
        self._supervisor = Supervisor(settings, prepare(settings, seeds), self._look)
        self._urls, self._after, self._step = urls, after, step
        self._began = time.monotonic()
        self._full_at = 0.0
        self._next = 0.0
        self.rows: list[Row] = []
        self.peak = 0.0

    def run(self) -> None:
        asyncio.run(self._supervisor.run())

    def _look(self, progress: Progress) -> None:
        now, tally = time.monotonic() - self._began, progress.tally
        rss = max((psutil.Process(pid).memory_info().rss / 1e6 for pid in self._supervisor.pids()), default=0.0)
        self.peak = max(self.peak, rss)
        if now >= self._next:
            self._next += self._step
            self.rows.append((f"{now:.0f}", tally.discovered, tally.pages, rss, progress.cpu))
            print(
                f"{now:6.0f} s  {tally.discovered:>10,} URLs  {tally.pages:>8,} pages  {rss:5.0f} MB", file=sys.stderr
            )
        if tally.discovered >= self._urls and not self._full_at:
            self._full_at = now
        if self._full_at and now > self._full_at + self._after:
            self._supervisor.drain()


def _arguments() -> argparse.Namespace:
    parser = options(__doc__ or "")
    parser.add_argument("--urls", type=int, default=5_000_000, help="how far the frontier grows")
    parser.add_argument("--hosts", type=int, default=50_000)
    parser.add_argument("--after", type=float, default=120.0, help="seconds to go on when it is full")
    parser.add_argument("--step", type=float, default=30.0, help="seconds between the rows of the table")
    return parser.parse_args()


def main() -> int:
    wanted = _arguments()
    report = Report(__doc__ or "")
    with simulated_web(wanted.hosts, wanted.urls // wanted.hosts) as web, scratch() as data:
        write_seeds(web, data / "seeds.txt")
        settings = Config(scope="all", data=str(data / "crawl"), workers=1, dns=web.dns, allow=("127.0.0.0/8",))
        scales = Scales(settings, (data / "seeds.txt").read_text().split(), wanted.urls, wanted.after, wanted.step)
        scales.run()
    report.table(("seconds", "URLs", "pages", "RSS MB", "CPU s"), scales.rows)
    report.say(f"largest {scales.peak:.0f} MB")
    report.say(f"{'holds' if scales.peak < LIMIT else 'FAILS'}: below {LIMIT} MB")
    report.keep(wanted.no_keep)
    return 0 if scales.peak < LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
