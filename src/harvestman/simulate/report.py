"""What came of a simulation: numbers for machines (`to_json`), words for people (`render`)."""

from __future__ import annotations

import msgspec

from harvestman.simulate.judge import Broken
from harvestman.simulate.plan import Plan


class Sample(msgspec.Struct):
    """How it stood at one moment."""

    day: float
    requests: int
    pages: int
    """Pages of the modelled web that were fetched at least once."""
    coverage: float
    """Their share of all pages that robots.txt lets crawlers have."""
    waiting: int
    """URLs found and never answered for yet."""
    fresh: float
    """The share of what we have that is as the web has it ..."""
    weighted: float
    """... and the same with every page counted by its importance."""


class SiteUse(msgspec.Struct):
    """One of the sites that were asked most."""

    site: str
    size: int
    """Its pages."""
    requests: int
    busiest_day: int
    """Requests on the day with the most of them."""


class FateUse(msgspec.Struct):
    """How the hosts of one kind of trouble were treated."""

    hosts: int = 0
    """Those that were asked at all."""
    requests: int = 0
    failures: int = 0
    """Requests that they failed to answer."""
    most: int = 0
    """Failed requests to the one that had the most."""
    recovered: int = 0
    """Hosts whose last answer was a good one."""


class Politeness(msgspec.Struct):
    """The judge's word."""

    smallest_gap: float
    """Seconds from the end of an answer to the next request to the same host."""
    least_margin: float
    """The smallest excess of a gap over what was promised for it (delay, Crawl-delay, back-off, Retry-After)."""
    retry_after: int
    """Answers that asked for a pause."""
    sick_spells: int
    """Times a host was put on the sick list, as its failures show."""
    broken: dict[str, Broken]
    shown: list[tuple[float, float]]
    """(promised, smallest gap) of some hosts, for the picture."""

    @property
    def ok(self) -> bool:
        return not any(each.count for each in self.broken.values())


class Freshness(msgspec.Struct):
    """The second half of the simulation against what could have been had with as many visits."""

    average: float
    weighted: float
    best_average: float
    """With the frequencies that are best for the plain average."""
    best_weighted: float
    """With the frequencies that are best when pages count by their importance."""
    visits_a_day: float
    """Further visits to pages that we have."""


class Machine(msgspec.Struct):
    """What it cost here: the one part that is another each time."""

    seconds: float = 0.0
    cpu: float = 0.0
    memory: list[tuple[int, int]] = msgspec.field(default_factory=list)
    """(pages, resident bytes)"""


class Report(msgspec.Struct):
    """All of it. Everything but `machine` is the same for the same plan, settings and version."""

    plan: Plan
    days: float
    """As many as were played; fewer than asked for when it was cut short."""
    rate: float
    """Requests a second at most; 0 for no limit."""
    requests: int
    robots: int
    pages: int
    """Fetched, further visits included."""
    duplicates: int
    revisits: int
    existing: int
    """Pages of the modelled web that crawlers may have."""
    errors: dict[str, int]
    traps: dict[str, int]
    trapped: int
    """Requests for pages made up without end."""
    statuses: dict[str, int]
    """URLs by what became of them."""
    lost: int
    """URLs that wait for nothing and are not settled. There must be none."""
    hosts: int
    """Asked at least once."""
    budget_a_day: int
    politeness: Politeness
    freshness: Freshness
    samples: list[Sample]
    sites: list[SiteUse]
    fates: dict[str, FateUse]
    machine: Machine = msgspec.field(default_factory=Machine)

    @property
    def ok(self) -> bool:
        """Was every promise kept?"""
        return self.politeness.ok and not self.lost

    @property
    def last(self) -> Sample:
        return self.samples[-1] if self.samples else Sample(0.0, 0, 0, 0.0, 0, 0.0, 0.0)

    def replay(self) -> str:
        """The command that plays it again."""
        plan = self.plan
        rate = f" --rate {self.rate:g}" if self.rate else ""
        return (
            f"harvestman simulate --hosts {plan.hosts} --pages {plan.pages} --days {self.days:g} --seed {plan.seed}"
            f" --profile {plan.profile}{rate}"
        )

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()

    def render(self) -> str:
        """A table of two columns, then what was broken."""
        rows = [*_coverage(self), *_freshness(self), *_politeness(self), *_cost(self)]
        width = max(len(name) for name, _ in rows)
        lines = [f"{name:<{width}}  {words}" for name, words in rows]
        return "\n".join([*lines, *_broken(self), f"\nreplay: {self.replay()}"])


def _coverage(report: Report) -> list[tuple[str, str]]:
    last = report.last
    statuses = ", ".join(f"{name} {count:,}" for name, count in report.statuses.items())
    rows = [
        ("simulated", f"{report.days:g} days, {report.plan.hosts:,} hosts, profile {report.plan.profile}"),
        ("requests", f"{report.requests:,}, of them {report.robots:,} for robots.txt, {report.trapped:,} into traps"),
        ("coverage", f"{last.coverage:.1%}: {last.pages:,} of {report.existing:,} pages, on {report.hosts:,} hosts"),
        ("visits", f"{report.pages:,}: {report.revisits:,} further ones, {report.duplicates:,} duplicates"),
        ("URLs", f"{statuses}; {last.waiting:,} wait for a first answer, {report.lost:,} lost"),
    ]
    return rows + ([("errors", _listed(report.errors))] if report.errors else [])


def _freshness(report: Report) -> list[tuple[str, str]]:
    fresh = report.freshness
    if not fresh.visits_a_day:
        return []
    return [
        ("freshness", f"{fresh.average:.1%} of pages; the best order of as many visits: {fresh.best_average:.1%}"),
        ("... weighted", f"{fresh.weighted:.1%} by importance; the best: {fresh.best_weighted:.1%}"),
        ("visits a day", f"{fresh.visits_a_day:,.0f} further ones, in the second half"),
    ]


def _politeness(report: Report) -> list[tuple[str, str]]:
    polite = report.politeness
    verdict = "every promise kept" if polite.ok else "PROMISES BROKEN"
    rows = [
        (
            "politeness",
            f"{verdict}; smallest gap {polite.smallest_gap:.3f} s, least margin {polite.least_margin:.3f} s",
        ),
        ("back-off", f"{polite.sick_spells:,} times on the sick list, {polite.retry_after:,} Retry-After obeyed"),
    ]
    for name, use in report.fates.items():
        words = f"{use.hosts:,} hosts, {use.requests:,} requests, {use.failures:,} failed (at most {use.most:,} to one)"
        rows.append((f"... {name}", f"{words}, {use.recovered:,} answer again"))
    return rows


def _cost(report: Report) -> list[tuple[str, str]]:
    busiest = max(report.sites, key=lambda each: each.busiest_day, default=None)
    rows = []
    if busiest:
        share = f"{busiest.busiest_day:,} requests on its busiest day, of {report.budget_a_day:,} at most"
        rows.append(("largest site", f"{busiest.site}: {share}"))
    machine = report.machine
    if machine.seconds:
        peak = max((size for _, size in machine.memory), default=0)
        each = machine.cpu / max(1, report.requests) * 1000
        words = f"{machine.seconds:.1f} s, {each:.2f} ms CPU a request, {peak / 1e6:.0f} MB at most"
        rows.append(("this machine", words))
    return rows


def _broken(report: Report) -> list[str]:
    lines = []
    for name, broken in report.politeness.broken.items():
        if broken.count:
            lines += [f"\n{name}: {broken.count:,}", *(f"  {case}" for case in broken.cases)]
    return lines


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items(), key=lambda item: -item[1]))
