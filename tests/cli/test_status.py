"""`status` and the summary of a crawl show what was decided: tiers, traps, flags, budgets, alerts, jobs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli import decided

from harvestman.cli import standing, summary
from harvestman.cli.main import main
from harvestman.config import Budget, Config
from harvestman.layout import Layout
from harvestman.model import Instant, Tally
from harvestman.policy.budget import DAY
from harvestman.supervise import Ending, Progress

NOW = Instant(decided.THEN + 60)
MIDNIGHT = (decided.THEN // DAY + 1) * DAY


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("decided") / "crawl"
    return decided.write(path, decided.records(), decided.sites(), decided.tally())


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl in which nothing was decided."""
    return decided.write(tmp_path_factory.mktemp("quiet") / "crawl", decided.records()[:1], [], Tally())


def test_for_people(data: Path) -> None:
    text = standing.told(standing.look(data, 3, NOW), NOW)
    for line in (
        "revisits      hourly 1, daily 3, weekly+ 1; 1 due now",
        "traps         123 URLs refused (calendar 100, session id 23)",
        "              2 shapes on 1 site: ",
        "flagged       1 site to be looked at: ",
        "budgets       1 site with URLs queued and no budget left",
        "              spent.example: 10,000 pages today (budget.unearned_per_day), goes on 2026-09-22 00:00:00 UTC",
        f"alerts        2 {decided.ALERT}",
        f"              6 {decided.ALERT}",
        "   1  first  waiting   normal             5           9          15",
        "   2  news ",
    ):
        assert line in text, text
    assert f"1 {decided.ALERT}\n" not in text, "the last ones only"


def test_for_programs(data: Path) -> None:
    found = json.loads(standing.as_json(standing.look(data, 3, NOW)))
    assert found["census"]["tiers"] == {"hourly": 1, "daily": 3, "weekly+": 1}
    assert found["census"]["due"] == 1
    assert found["tally"]["traps"]["calendar"] == 100
    assert len(found["tally"]["alerts"]) == 7
    assert found["sites"] == {"sites": 3, "trapped": 1, "shapes": 2, "flagged": 1}
    (spent,) = found["spent_sites"]
    assert (spent["site"], spent["spent"], spent["until"]) == ("spent.example", "day", MIDNIGHT)
    assert [(job["name"], job["pages"], job["priority"]) for job in found["jobs"]] == [
        ("first", 5, "normal"),
        ("news", 1, "high"),
    ]


def test_when_there_is_nothing_to_say(quiet: Path) -> None:
    text = standing.told(standing.look(quiet, 3, NOW), NOW)
    assert "revisits      hourly 0, daily 0, weekly+ 0; 0 due now" in text
    assert not any(line.startswith(("traps", "flagged", "budgets", "alerts")) for line in text.splitlines())


def test_the_listing_names_job_and_date(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", str(data), "--urls", "fetched", "--json"]) == 0
    rows = {row["url"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert rows["https://plain.example/ttl"]["job"] == 2
    assert rows["https://plain.example/ttl"]["due"] == decided.THEN + decided.HOUR


# -- the summary -----------------------------------------------------------------------------------------------------


def ended(data: Path, monkeypatch: pytest.MonkeyPatch, config: Config | None = None) -> summary.Summary:
    monkeypatch.setattr("harvestman.cli.summary.time.time", lambda: NOW)
    progress = Progress(6.0, decided.tally(), 5, {}, 2, 0, "done", 0.0, 0.1)
    return summary.summarise(Ending("finished", progress), Layout(data), config or Config())


def test_the_summary_names_traps_alerts_and_budgets(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = ended(data, monkeypatch)
    text = summary.told(found, "")
    assert "  traps        123 URLs refused (calendar 100, session id 23)\n" in text
    assert f"  alert        6 {decided.ALERT}\n" in text
    assert (
        "  budget       1 site has had all pages of the day: a larger budget.unearned_per_day gives more, "
        "else they come from 2026-09-22 00:00:00 UTC on\n"
    ) in text
    as_json = json.loads(summary.as_json(found))
    assert as_json["traps"]["session id"] == 23
    assert len(as_json["alerts"]) == 7
    assert [site["site"] for site in as_json["spent_sites"]] == ["spent.example"]


def test_the_summary_names_the_share(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = ended(data, monkeypatch)
    found.spent_sites[0].spent = "share"
    text = summary.told(found, "")
    assert "1 site has had a whole share of the crawl: a larger budget.share gives more" in text
    assert "pages of the day" not in text


def test_a_larger_budget_is_not_spent(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not ended(data, monkeypatch, Config(budget=Budget(unearned_per_day=20_000))).spent_sites


def test_a_summary_without_decisions(quiet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = summary.told(ended(quiet, monkeypatch), "")
    assert not any(line.startswith(("  traps", "  budget", "  alert")) for line in text.splitlines())
