"""`why` shows what the crawl decided: score, budget, next visit, trap, dead letter, job, site."""

from __future__ import annotations

import asyncio
import json
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cli import decided
from hypothesis import given
from hypothesis import strategies as st

from harvestman.cli import explain, judged, reasons
from harvestman.cli.main import main
from harvestman.config import Budget, Config, Recrawl
from harvestman.layout import Layout
from harvestman.model import Instant, Job, SiteKey, SiteRecord, Status, Trap, UrlRecord
from harvestman.policy import budget, urgency
from harvestman.policy.budget import DAY
from harvestman.views import View

NOW = Instant(decided.THEN + 60)
MIDNIGHT = (decided.THEN // DAY + 1) * DAY
PLAIN = "https://plain.example"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("decided") / "a crawl"
    return decided.write(path, decided.records(), decided.sites(), decided.tally())


def why(data: Path, url: str, config: Config | None = None) -> tuple[dict[str, Any], str]:
    async def look() -> explain.Explanation:
        with View(Layout(data)) as view:
            return await explain.explain(url, view, config or Config(), NOW)

    found = asyncio.run(look())
    return json.loads(explain.as_json(found)), reasons.told(found, NOW)


def test_a_waiting_url_shows_its_score_by_parts(data: Path) -> None:
    found, text = why(data, f"{PLAIN}/2026/news/x")
    score = found["score"]
    assert sum(score["parts"].values()) == pytest.approx(score["total"], abs=1e-3)
    assert score["parts"]["freshness"] == 0.3
    assert score["parts"]["source"] == pytest.approx(0.12)
    assert score["parts"]["boosts"] == 0.1
    assert (score["cash"], score["linkers"], score["taken"], score["stale"]) == (0.8, 13, 40, 1.0)
    assert (score["looks_like"], score["steps"], score["last"]) == ("news", 3, "")
    lines = text.splitlines()
    assert "waiting in the queue of its host" in lines[1]
    assert f"score     {score['total']:.3f} = authority " in lines[2]
    assert "cash of 0.80 pages, 13 linking sites, 40 pages of the site taken" in lines[3]
    assert "never fetched; a link, looks like a news page; 3 links from a seed, 3 steps from the root" in lines[4]
    assert f"queued in bucket 4; by what is known now it would be {score['bucket']}" in text


def test_the_job_of_a_url(data: Path) -> None:
    found, text = why(data, f"{PLAIN}/ttl")
    assert found["job"] == {
        "id": 2, "name": "news", "priority": "high", "max_depth": 3, "scope": "site", "ttl": decided.NEWS_TTL
    }  # fmt: skip
    assert "job       2 (news), high priority, every 1 h, to depth 3" in text
    assert "job       1 (first), normal priority, to depth 20" in why(data, f"{PLAIN}/new")[1]


@pytest.mark.parametrize(
    ("url", "last"),
    [
        (f"{PLAIN}/list?page=7", "last of all: it looks like part of a trap (pagination)"),
        ("https://dull.example/x", "last of all: the last 60 pages of its site brought nothing new"),
    ],
)
def test_why_a_url_comes_last(data: Path, url: str, last: str) -> None:
    found, text = why(data, url)
    assert found["score"]["bucket"] == 7
    assert last in text


def test_a_site_that_has_spent_its_day(data: Path) -> None:
    found, text = why(data, "https://spent.example/x")
    site = found["site"]
    assert (site["spent"], site["today"], site["allowance"], site["until"]) == ("day", 10_000, 10_000, MIDNIGHT)
    assert site["setting"] == "budget.unearned_per_day"
    assert text.splitlines()[1] == (
        "  waiting: its site has had 10,000 pages today, of 10,000 a day it may have (budget.unearned_per_day); "
        "it goes on 2026-09-22 00:00:00 UTC (in 9 h 45 min)"
    )
    assert "flagged: odd" in text


def test_a_retry_after_the_end_of_the_budget_is_what_it_waits_for(data: Path) -> None:
    found, text = why(data, "https://spent.example/retry")
    assert found["queue"]["retry_at"] > found["site"]["until"]
    assert "waiting to be tried again 2026-09-30" in text


@pytest.mark.parametrize(
    ("rules", "spent", "words"),
    [
        (Budget(pages=40), "pages", "the 40 pages it may have in all (budget.pages)"),
        (
            Budget(unearned_per_day=30, pages_per_day=30),
            "day",
            "30 pages today, of 30 a day it may have (budget.pages_p",
        ),
        (Budget(), "", "waiting in the queue"),
    ],
)
def test_which_limit_is_reached(data: Path, rules: Budget, spent: str, words: str) -> None:
    found, text = why(data, f"{PLAIN}/2026/news/x", Config(budget=rules))
    assert found["site"]["spent"] == spent
    assert words in text.splitlines()[1]


def test_a_site_with_more_than_its_share() -> None:
    site = SiteRecord(SiteKey("big.example"), decided.THEN, fetched=600)
    said = judged.site_says(site, 2_000, Config(budget=Budget(share=0.2)), NOW)
    assert (said.spent, said.until) == ("share", NOW + budget.SHARE_PAUSE)
    assert "all of its share of the crawl (budget.share)" in reasons.budgeted(said, NOW)


@pytest.mark.parametrize(
    ("site", "setting"),
    [
        (SiteRecord(SiteKey("x.org"), NOW), "budget.unearned_per_day"),
        (SiteRecord(SiteKey("x.org"), NOW, vouched=True), "budget.pages_per_day"),
        (SiteRecord(SiteKey("x.org"), NOW, vouched=True, novel=1, dull=999), "budget.farm_cut"),
    ],
)
def test_the_setting_that_would_change_a_budget(site: SiteRecord, setting: str) -> None:
    assert judged.site_says(site, 0, Config(), NOW).setting == setting


@given(st.integers(0, 3), st.integers(0, 30_000), st.integers(0, 200), st.integers(0, 9_000), st.booleans())
def test_a_site_is_said_to_wait_when_it_does(age: int, today: int, limit: int, crawled: int, vouched: bool) -> None:
    site = SiteRecord(SiteKey("x.org"), decided.THEN, vouched, max(today, 50), int(NOW // DAY) - age, today)
    rules = Budget(pages=limit, share=0.5)
    said = judged.site_says(site, crawled, Config(budget=rules), NOW)
    until = budget.wait(site, crawled, rules, NOW)
    assert bool(said.spent) is (until is not None)
    assert said.until == (until if until is not None and until < budget.NEVER else 0)
    assert (said.spent == "day") is (until == MIDNIGHT)


# -- the next visit --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "basis", "tier", "lines"),
    [
        ("learned", "visits", "daily",
         ["2026-09-22 14:13:20 UTC (in 23 h 59 min), daily", "about every 3 d, from 7 visits, 2 of them changed"]),
        ("dated", "visits", "daily",
         ["its site says it changed 2026-09-21 14:12:20 UTC; its dates are trusted 80% (16 of 16 were right)"]),
        ("new", "kind", "weekly+",
         ["visited once so far; pages of its kind (other) are taken to change about every 7 d"]),
        ("ttl", "ttl", "hourly", ["its job asks for it every 1 h"]),
        ("due", "visits", "daily", ["due since 2026-09-21 13:13:20 UTC", "our copy is 27% likely stale"]),
    ],
)  # fmt: skip
def test_when_and_why_a_page_is_visited_again(data: Path, path: str, basis: str, tier: str, lines: list[str]) -> None:
    found, text = why(data, f"{PLAIN}/{path}")
    assert (found["again"]["basis"], found["again"]["tier"]) == (basis, tier)
    assert text.splitlines()[2].startswith("  again")
    for line in lines:
        assert line in text, text


def test_a_page_that_is_not_due_has_no_score(data: Path) -> None:
    assert why(data, f"{PLAIN}/learned")[0]["score"] is None
    assert why(data, f"{PLAIN}/cal/7")[0]["again"] is None


# -- traps, dead letters ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "name", "shape", "refused"),
    [("cal/7", "calendar", decided.CALENDAR, 100), ("a/a/a/7", "repetition", decided.LONG, 23)],
)
def test_a_refused_url_names_its_trap_and_the_pardon(
    data: Path, capsys: pytest.CaptureFixture[str], path: str, name: str, shape: str, refused: int
) -> None:
    found, text = why(data, f"{PLAIN}/{path}")
    trap = found["trap"]
    assert (trap["name"], trap["shape"], trap["refused"], trap["pardoned"]) == (name, shape, refused, False)
    assert "refused by us, as part of a trap: " in text.splitlines()[1]
    assert f"{refused} URLs refused since 2026-09-21" in text.splitlines()[2]
    assert "judged    2026" in text
    program, *command = shlex.split(found["cure"])
    assert program.endswith("harvestman")
    assert command == ["traps", str(data), "--pardon", "plain.example", shape]
    assert f"cure      {found['cure']}" in text


def test_a_trap_that_its_site_has_forgotten(data: Path) -> None:
    found, text = why(data, f"{PLAIN}/old/7")
    assert (found["trap"]["name"], found["trap"]["shape"], found["cure"]) == ("session id", "/old/{n}", "")
    assert "as part of a trap: session id /old/{n}" in text


def test_a_waiting_url_that_turned_out_to_be_part_of_a_trap(data: Path) -> None:
    found, text = why(data, f"{PLAIN}/cal/99")
    assert found["trap"]["shape"] == decided.CALENDAR
    assert "waiting, and refused when its turn comes: it is part of a trap" in text
    assert "--pardon plain.example" in text


def test_an_unseen_url_of_a_trap_would_not_be_taken(data: Path) -> None:
    found, text = why(data, f"{PLAIN}/cal/1000")
    assert found["admission"]["admitted"] is False
    assert "would not be crawled: it is in scope, but part of a trap: calendar /cal/{n}" in text
    assert "part of a trap: repetition" in why(data, f"{PLAIN}/b/b/b/b/b/b")[1]


def test_a_pardoned_trap_traps_nobody() -> None:
    site = SiteRecord(SiteKey("x.org"), NOW)
    url = "https://x.org/b/b/b/b/b/b"
    key = judged.would_trap(url, site, Config())
    assert key.startswith("repetition /")
    site.traps[key] = Trap("repetition", NOW, url, pardoned=True)
    assert judged.would_trap(url, site, Config()) == ""


def test_a_dead_letter_shows_every_attempt_and_how_to_drive_it_again(data: Path) -> None:
    found, text = why(data, f"{PLAIN}/dead")
    assert found["trail"] == [
        {"at": decided.THEN, "reason": "connect: refused"},
        {"at": decided.THEN + 9, "reason": "timeout: slow (attempt 2 of 2)"},
    ]
    assert "tried     1  2026-09-21 14:13:20 UTC  connect: refused" in text
    assert "          2  2026-09-21 14:13:29 UTC  timeout: slow" in text
    assert shlex.split(found["cure"])[1:] == ["dead", "redrive", str(data), f"{PLAIN}/dead"]


def test_the_cures_are_real_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = decided.write(tmp_path / "d", decided.records(), decided.sites(), decided.tally())
    for path in ("dead", "cal/7", "a/a/a/7"):
        cure = why(data, f"{PLAIN}/{path}")[0]["cure"]
        assert main(shlex.split(cure)[1:]) == 0
        assert "1 URL queued" in capsys.readouterr().out
        assert why(data, f"{PLAIN}/{path}")[0]["verdict"] == "waiting"


# -- the site --------------------------------------------------------------------------------------------------------


def test_what_is_known_of_the_site(data: Path) -> None:
    found, text = why(data, f"{PLAIN}/learned")
    site = found["site"]
    assert (site["fetched"], site["today"], site["linkers"], site["traps"]) == (40, 30, 13, 2)
    assert site["novel"] == pytest.approx(31 / 41, abs=1e-3)
    assert site["allowance"] == budget.allowance(decided.sites()[0], Budget())
    assert f"plain.example: 40 pages, 30 today of {site['allowance']:,} a day (13 linking sites)" in text
    assert "76% of its pages new; 2 traps" in text


def test_yesterdays_pages_are_not_todays() -> None:
    site = SiteRecord(SiteKey("x.org"), NOW, fetched=9, day=int(NOW // DAY) - 1, today=9)
    assert judged.site_says(site, 9, Config(), NOW).today == 0


def test_the_budget_of_a_whole_crawl(data: Path) -> None:
    found, text = why(data, f"{PLAIN}/many")
    assert found["trap"] is None
    assert "refused by us: budget: the site has had its 40 pages" in text
    assert "judged" in text


@given(st.floats(0, 64), st.integers(0, 2**64 - 1), st.integers(0, 10**6), st.integers(0, 20))
def test_the_score_shown_is_the_score_used(cash: float, linkers: int, taken: int, depth: int) -> None:
    record = UrlRecord("https://x.org/a/b", Status.PENDING, depth, 0, 0, decided.THEN, cash=cash)
    site, job = SiteRecord(SiteKey("x.org"), NOW, fetched=taken, linkers=linkers), Job(1, "x", NOW)
    shown = judged.score(record, site, job, Config(recrawl=Recrawl()), NOW)
    assert shown.total == pytest.approx(urgency.parts(record, site, job, 1.0, Config()).total, abs=1e-4)
    assert shown.bucket == urgency.bucket(record, site, job, 1.0, Config())
    assert msgspec.json.decode(msgspec.json.encode(shown), type=judged.Score) == shown
