"""Puts a simulation together and plays it: the modelled web, the real frontier over a real State, the judge."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from random import Random

import msgspec

from harvestman.config import Config
from harvestman.embedded.rows import WAITING, id_in
from harvestman.embedded.state import RocksState
from harvestman.frontier.book import RobotsBook
from harvestman.frontier.frontier import Frontier
from harvestman.frontier.routing import Router
from harvestman.frontier.seen import Seen
from harvestman.model import HostKey, Instant, Job, Status, UrlRecord
from harvestman.policy.ladder import retry_after
from harvestman.policy.outcomes import Decision
from harvestman.policy.scope import Scope
from harvestman.simulate.drive import Asked, Capacity, Drive
from harvestman.simulate.hosts import Fate, site_number
from harvestman.simulate.judge import Judge, Line
from harvestman.simulate.model import ModelWeb
from harvestman.simulate.optimum import best_freshness
from harvestman.simulate.panel import Panel
from harvestman.simulate.plan import DAY, START, Plan
from harvestman.simulate.report import FateUse, Freshness, Machine, Politeness, Report, Sample, SiteUse

PARTITIONS = 1
SAMPLES = 120
PANEL = 2_000
"""Pages that freshness is measured on."""
SITES = 12
"""Largest sites in the report."""
AGAIN = (Status.FETCHED, Status.DUPLICATE)


class OneJob:
    """`ports.Jobs` with the one job that a simulation is."""

    def __init__(self, max_depth: int) -> None:
        self._job = Job(1, "simulation", START, max_depth=max_depth, scope="all")

    def get(self, number: int) -> Job:
        return self._job

    def scope(self, number: int) -> Scope:
        return Scope.build("all", ())


@dataclass(frozen=True)
class Wish:
    """What a user asks of a simulation."""

    plan: Plan
    config: Config
    days: float
    rate: float = 0.0
    """Requests a second; 0 for no limit but politeness and `in_flight`."""
    max_requests: int = 0
    """0 for no limit."""


@dataclass
class Meter:
    """What is counted while it runs, from the answers themselves."""

    plan: Plan
    covered: int = 0
    revisits: int = 0
    trapped: int = 0
    today: Counter[int] = field(default_factory=Counter)
    day: int = 0

    def __post_init__(self) -> None:
        self.busiest = array("I", bytes(4 * self.plan.hosts))
        """Requests to each site on its busiest day, under the number of its first host."""

    def asked(self, site: int, now: float) -> None:
        day = int(now // DAY)
        if day != self.day:
            self.fold()
            self.day = day
        self.today[site] += 1

    def fold(self) -> None:
        """The day is over."""
        for site, count in self.today.items():
            self.busiest[site] = max(self.busiest[site], count)
        self.today.clear()


class Simulation:
    """See the module. `going` is asked at every turn of the loop; `memory` says how many bytes this process has."""

    def __init__(
        self, wish: Wish, directory: Path, *, going: Callable[[Simulation], bool] = lambda _: True,
        memory: Callable[[], int] = lambda: 0,
    ) -> None:  # fmt: skip
        self.wish = wish
        self.config = config = settings(wish.config)
        self.web = ModelWeb(wish.plan)
        self.samples: list[Sample] = []
        self.machine = Machine()
        self._going = going
        self._memory = memory
        self._judge = Judge(config, wish.plan.hosts)
        self._meter = Meter(wish.plan)
        self._plain, self._weighted = Panel(PANEL, weighted=False), Panel(PANEL, weighted=True)
        self._existing = self.web.hosts.pages()
        self._half: tuple[float, int] = (0.0, 0)
        """When the second half began, and the revisits until then."""
        sizes = config.memory
        self._state = RocksState(directory, cache_bytes=sizes.cache_bytes, write_buffer=sizes.write_buffer)
        router = Router(PARTITIONS)
        rng = Random(wish.plan.seed)
        self._frontier = Frontier(
            self._state, Seen(self._state, config.memory.seen_capacity), RobotsBook(self._state, config.agent), router,
            OneJob(config.limits.max_depth), config, rng, Instant(0.0),
        )  # fmt: skip
        capacity = Capacity(
            config.in_flight, wish.rate or inf, min(5.0, max(0.05, 8 / wish.rate if wish.rate else 0.0))
        )
        self.drive = Drive(
            self._state, self._frontier, router, config, self.web, rng=rng, now=START, addresses=self._address,
            capacity=capacity, watch=self._watch, settled=self._settled, going=lambda: self._going(self),
        )  # fmt: skip

    async def play(self) -> Report:
        """From the first day to the last, or until `going` says no."""
        wish, drive = self.wish, self.drive
        most = wish.max_requests or inf
        await drive.seed(self.web.seeds())
        for step in range(1, SAMPLES + 1):
            await drive.run(Instant(START + wish.days * DAY * step / SAMPLES), most)
            if step == SAMPLES:
                break
            self._sample()
            if step == SAMPLES // 2:
                self._half = (drive.now, self._meter.revisits)
            if drive.stopped or drive.tally.requests >= most:
                break
        await drive.finish()
        self._sample()
        return self._report()

    def close(self) -> None:
        self._state.shut()

    @property
    def day(self) -> float:
        return (self.drive.now - START) / DAY

    # -- what the servers see ----------------------------------------------------------------------------------

    def _address(self, name: HostKey) -> str:
        host = self.web.hosts.named(name)
        return host.address if host else f"none-{name}"

    def _watch(self, asked: Asked) -> None:
        host = self.web.hosts.named(asked.host)
        if host is None:
            return
        reply, site = asked.reply, site_number(host.number)
        status = 0 if reply.failure is not None else reply.status
        self._meter.asked(site, asked.started)
        self._judge.saw(
            Line(
                host.number, site, asked.address, asked.url, asked.robots, asked.started, asked.finished, status,
                retry_after(reply.headers, Instant(asked.finished)) or 0.0 if status in (429, 503) else 0.0,
                host.crawl_delay, not asked.robots and self.web.forbids(asked.url),
            )
        )  # fmt: skip

    def _settled(self, asked: Asked, before: UrlRecord, decision: Decision) -> None:
        """A page's answer was taken in."""
        if decision.status not in AGAIN:
            return
        meter, spot = self._meter, self.web.spot(asked.url)
        again = before.change is not None
        meter.revisits += again
        if spot is None or "?" in asked.url:
            meter.trapped += 1
            return
        meter.covered += not again
        truth = self.web.truth(spot)
        self._plain.saw(asked.url, truth, asked.started)
        self._weighted.saw(asked.url, truth, asked.started)

    # -- what comes of it --------------------------------------------------------------------------------------

    def _sample(self) -> None:
        now, covered, job = self.drive.now, self._meter.covered, self._frontier.staging.job(1)
        self.machine.memory.append((self.drive.tally.pages, self._memory()))
        self.samples.append(
            Sample(
                round(self.day, 6), self.drive.tally.requests, covered, covered / self._existing,
                job.discovered - job.settled, self._plain.fresh(now), self._weighted.fresh(now),
            )
        )  # fmt: skip

    def _report(self) -> Report:
        wish, tally, judge, meter = self.wish, self.drive.tally, self._judge, self._meter
        meter.fold()
        statuses, lost = self._count()
        return Report(
            wish.plan, round(self.day, 6), wish.rate, tally.requests, tally.robots, tally.pages, tally.duplicates,
            meter.revisits, self._existing, tally.errors, self._frontier.intake.trapped, meter.trapped, statuses, lost,
            sum(1 for count in judge.asked if count), self.config.budget.pages_per_day, self._politeness(),
            self._freshness(), self.samples, self._sites(), self._fates(), self.machine,
        )  # fmt: skip

    def _count(self) -> tuple[dict[str, int], int]:
        """URLs by status, and how many are neither settled nor waiting for anything: read from State, all of it."""
        waiting = {id_in(row) for family in WAITING for row in self._state.waiting_rows(family)}
        found: Counter[str] = Counter()
        lost = 0
        for url, record in self._state.url_rows():
            found[record.status.name.lower()] += 1
            lost += _waits(record) and url not in waiting
        return dict(sorted(found.items())), lost + max(0, self.drive.tally.discovered - found.total())

    def _politeness(self) -> Politeness:
        judge = self._judge
        gap, margin = (value if value < inf else 0.0 for value in (judge.smallest_gap, judge.least_margin))
        shown = list(judge.shown.values())
        return Politeness(gap, margin, judge.retries_asked, judge.sick_spells, judge.broken, shown)

    def _freshness(self) -> Freshness:
        since, before = self._half
        late = self.samples[SAMPLES // 2 :]
        took = self.drive.now - since
        if not late or not since or not took:
            return Freshness(0.0, 0.0, 0.0, 0.0, 0.0)
        visits = (self._meter.revisits - before) / took
        return Freshness(
            sum(each.fresh for each in late) / len(late), sum(each.weighted for each in late) / len(late),
            best_freshness(self._plain.known(), visits), best_freshness(self._weighted.known(), visits), visits * DAY,
        )  # fmt: skip

    def _sites(self) -> list[SiteUse]:
        asked: Counter[int] = Counter()
        for number, count in enumerate(self._judge.asked):
            if count:
                asked[site_number(number)] += count
        return [
            SiteUse(f"s{site}.test", self._site_size(site), count, self._meter.busiest[site])
            for site, count in asked.most_common(SITES)
        ]

    def _site_size(self, site: int) -> int:
        numbers = (number for number in (site, site + 3) if number < self.wish.plan.hosts)
        return sum(self.web.hosts.at(number).size for number in numbers if site_number(number) == site)

    def _fates(self) -> dict[str, FateUse]:
        """How hosts in trouble were treated."""
        uses: dict[str, FateUse] = {}
        if self.wish.plan.profile == "clean":
            return uses
        for number, count in enumerate(self._judge.asked):
            host = self.web.hosts.at(number) if count else None
            if host is None or host.fate is Fate.WELL:
                continue
            use = uses.setdefault(host.fate.value, FateUse())
            failed = self._judge.unwell[number]
            use.hosts += 1
            use.requests += count
            use.failures += failed
            use.most = max(use.most, failed)
            use.recovered += not self._judge.failing[number]
        return dict(sorted(uses.items()))


def settings(config: Config) -> Config:
    """A user's configuration as a simulation can play it: one worker that goes on for ever."""
    recrawl = msgspec.structs.replace(config.recrawl, keep=True)
    return msgspec.structs.replace(config, workers=1, partitions=PARTITIONS, recrawl=recrawl)


def _waits(record: UrlRecord) -> bool:
    return record.status is Status.PENDING or (record.status in AGAIN and record.due > 0)
