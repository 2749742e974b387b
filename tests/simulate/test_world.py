"""Whole crawls in virtual time: what they promise holds, and they are the same every time. Failures print the seed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from simulate.playing import CONFIG, Play

from harvestman.config import Budget, Config, Politeness, Recrawl
from harvestman.simulate.plan import DAY, Plan
from harvestman.simulate.report import Report
from harvestman.simulate.world import Simulation, Wish

SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))]


def told(report: Report) -> str:
    """What a failed assertion says: how to see it again, and what was broken."""
    return report.render()


def judged(report: Report) -> dict[str, object]:
    """All of a report but what it cost here."""
    tree: dict[str, object] = msgspec.json.decode(report.to_json())
    del tree["machine"]
    return tree


@pytest.mark.slow
def test_the_same_seed_is_the_same_crawl(play: Play) -> None:
    plan = Plan(60, 600, seed=5, profile="wild")
    first, again, other = play(plan, 0.05, 0.1), play(plan, 0.05, 0.1), play(Plan(60, 600, 6, "wild"), 0.05, 0.1)
    assert judged(first) == judged(again), told(first)
    assert judged(first) != judged(other), told(other)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_clean_web_is_covered_whole(play: Play, seed: int) -> None:
    report = play(Plan(20, 200, seed, "clean"), 0.5, 1.0)
    assert report.ok, told(report)
    assert report.last.coverage == 1.0, told(report)
    assert report.last.waiting == 0, told(report)
    assert report.revisits > 0, told(report)


@pytest.mark.parametrize("seed", SEEDS)
def test_promises_hold_on_a_wild_web(play: Play, seed: int) -> None:
    report = play(Plan(60, 300, seed, "wild"), 0.5, 0.1, max_requests=1_000)
    assert report.ok, told(report)
    assert report.last.coverage > 0.5, told(report)
    assert report.politeness.sick_spells > 0, told(report)


def test_the_rate_is_kept(play: Play) -> None:
    report = play(Plan(100, 1_000, 9, "clean"), 0.01, 0.3)
    assert report.requests <= 0.01 * DAY * 0.3 + 10, told(report)
    assert report.requests >= 0.01 * DAY * 0.3 * 0.9, told(report)


def test_more_requests_than_asked_for_are_not_made(play: Play) -> None:
    report = play(Plan(100, 2_000, 9), 30.0, max_requests=300)
    assert 300 <= report.requests < 500, told(report)
    assert report.days < 30, told(report)
    assert report.lost == 0, told(report)


def test_settings_count(play: Play) -> None:
    """A configuration is what is simulated: a longer delay is kept, a small budget is not passed."""
    polite = msgspec.structs.replace(CONFIG, politeness=Politeness(delay=30.0))  # type: ignore[arg-type]  # Seconds
    report = play(Plan(10, 100, 4, "clean"), 0.05, config=polite)
    assert report.politeness.smallest_gap >= 30.0 - 0.001, told(report)
    meagre = msgspec.structs.replace(CONFIG, budget=Budget(pages_per_day=20, unearned_per_day=20))
    report = play(Plan(5, 100, 4, "clean"), 1.0, 0.1, config=meagre)
    assert max(site.busiest_day for site in report.sites) <= 20 + 4, told(report)  # robots.txt and what is in flight


def test_a_judge_that_is_promised_more_finds_fault(tmp_path: Path) -> None:
    """The judge is no part of the frontier: told of a longer delay than was kept, it says so."""
    simulation = Simulation(Wish(Plan(10, 200, 4, "clean"), CONFIG, 0.03), tmp_path / "state")
    simulation._judge._rules = Politeness(delay=30.0)  # type: ignore[arg-type]  # Seconds
    try:
        report = asyncio.run(simulation.play())
    finally:
        simulation.close()
    assert report.politeness.broken["gap"].count > 50, told(report)
    assert not report.ok


def test_it_can_be_stopped(tmp_path: Path) -> None:
    simulation = Simulation(
        Wish(Plan(50, 500, 4), CONFIG, 30.0), tmp_path / "state", going=lambda played: played.drive.tally.requests < 100
    )
    try:
        report = asyncio.run(simulation.play())
    finally:
        simulation.close()
    assert 100 <= report.requests < 300, told(report)
    assert report.samples
    assert report.lost == 0, told(report)


@pytest.mark.slow
def test_a_hundred_thousand_hosts_are_not_built_to_be_crawled(play: Play) -> None:
    report = play(Plan(100_000, 10_000_000, 8), 0.02, 50.0, max_requests=1_500)
    assert report.ok, told(report)
    assert report.requests >= 1_500, told(report)
    assert report.hosts > 300, told(report)
    assert report.last.waiting > 2_000, told(report)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11])
def test_a_storm_of_a_thousand_hosts(play: Play, seed: int) -> None:
    """Down, flapping, slow or limiting for a day: back-off is kept to, all recover, nothing is lost."""
    report = play(Plan(1_000, 8_000, seed, "storm"), 4.0, 2.0)
    assert report.ok, told(report)
    assert sum(use.hosts for use in report.fates.values()) == 1_000, told(report)
    # 24 h of a down host: five tries, then six hours of rest, and again; a flapping one also answers in between.
    assert report.fates["down"].most <= 5 * 5, told(report)
    assert all(use.recovered == use.hosts for use in report.fates.values()), told(report)
    # A dead letter is not lost, but a storm is no reason for many.
    assert report.statuses.get("dead", 0) <= 0.005 * report.existing, told(report)
    assert report.last.coverage == 1.0, told(report)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [21])
def test_a_month(play: Play, seed: int) -> None:
    config = msgspec.structs.replace(CONFIG, recrawl=Recrawl(per_day=1_500))
    report = play(Plan(200, 2_000, seed), 30.0, 0.05, config=config)
    assert report.ok, told(report)
    assert report.last.coverage > 0.95, told(report)
    fresh = report.freshness
    assert 0.75 * fresh.best_weighted < fresh.weighted < fresh.best_weighted + 0.03, told(report)


def test_the_default_configuration_is_played_by_one_worker_for_ever() -> None:
    from harvestman.simulate.world import settings

    config = settings(Config(workers=8))
    assert (config.workers, config.recrawl.keep) == (1, True)
