"""harvestman dead: the URLs that were given up, listed, driven again, dropped."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from pathlib import Path

import pytest
from cli import crawled, mending
from cli.mending import run

from harvestman.embedded.state import RocksState
from harvestman.frontier.routing import Router
from harvestman.lock import locked
from harvestman.mend import DROPPED, Choice
from harvestman.model import Attempt, Instant, Status, UrlRecord, Visit
from harvestman.policy.urls import host_of
from harvestman.ports import Changes

DEAD = f"{crawled.ORIGIN}/dead"
SLOW = "https://sick.example/slow"
TRAIL = [Attempt(Instant(crawled.THEN + n), f"connect: refused {n}") for n in range(5)]


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small crawl, with a second dead letter on a host that is sick."""
    layout = mending.write(tmp_path_factory.mktemp("dead") / "crawl")
    visit = Visit(crawled.THEN, 503, "HTTP 503 (attempt 5 of 5)")
    slow = UrlRecord(SLOW, Status.DEAD, 3, 2, 40, crawled.THEN, crawled.HOME, attempts=5, visit=visit, trail=TRAIL)
    owner = Router(64).place(host_of(SLOW))[2] % 2
    state = RocksState(layout.state(owner))
    asyncio.run(state.commit(Changes(records={Router(64).id_of(SLOW): slow})))
    state.shut()
    return layout.data


@pytest.fixture
def data(crawl: Path, tmp_path: Path) -> Path:
    """A copy, to be changed."""
    return Path(shutil.copytree(crawl, tmp_path / "crawl"))


def urls(out: str) -> set[str]:
    return {json.loads(line)["url"] for line in out.splitlines()}


# -- list ------------------------------------------------------------------------------------------------------------


def test_list_tells_the_whole_trail(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = run(capsys, "dead", "list", crawl)
    assert f"{SLOW}\n  5 attempts, given up 2026-09-21 14:13:20 UTC: HTTP 503 (attempt 5 of 5)\n" in out
    for number in range(5):
        assert f"{number + 1}  2026-09-21 14:13:2{number} UTC  connect: refused {number}" in out
    assert DEAD in out


def test_list_for_programs(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = run(capsys, "dead", "list", crawl, "--host", "sick.example", "--json")
    assert json.loads(out) == {
        "url": SLOW, "kind": "HTTP 503", "attempts": 5, "at": crawled.THEN, "reason": "HTTP 503 (attempt 5 of 5)",
        "via": crawled.HOME, "depth": 3, "trail": [{"at": each.at, "reason": each.reason} for each in TRAIL],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], {DEAD, SLOW}),
        (["--kind", "Timeout"], {DEAD}),
        (["--kind", "http 503"], {SLOW}),
        (["--kind", "connect"], set()),
        (["--site", "example.org"], {DEAD}),
        (["--host", "EXAMPLE.org"], {DEAD}),
        (["--host", "example.org", "--kind", "dns"], set()),
        (["--limit", "0"], {DEAD, SLOW}),
    ],
)
def test_list_filters(crawl: Path, capsys: pytest.CaptureFixture[str], words: list[str], found: set[str]) -> None:
    out, said = run(capsys, "dead", "list", crawl, "--json", *words)
    assert urls(out) == found
    assert ("No dead letters" in said) == (not found)


def test_list_of_named_urls_and_a_limit(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, said = run(capsys, "dead", "list", crawl, "example.org/dead", f"{crawled.ORIGIN}/gone", "--json")
    assert urls(out) == {DEAD}
    assert "it is gone" in said
    out, said = run(capsys, "dead", "list", crawl, "--limit", "1", "--json")
    assert len(urls(out)) == 1
    assert "--limit 0" in said


# -- redrive ---------------------------------------------------------------------------------------------------------


def test_redrive_queues_it_as_if_never_tried(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = mending.tally(data)
    asleep = mending.host(data, SLOW)
    assert run(capsys, "dead", "redrive", data, SLOW)[0] == "1 URL queued again\n"
    found = mending.record(data, SLOW)
    assert (found.status, found.attempts, found.trail, found.due) == (Status.PENDING, 0, [], Instant(0.0))
    assert found.seq > 1e6 * (time.time() - 60)
    assert mending.record(data, DEAD).status is Status.DEAD
    after = mending.tally(data)
    assert (after.settled, after.jobs[1].settled) == (before.settled - 1, -1)
    assert mending.host(data, SLOW) == asleep, "it was not asked to forgive"
    assert mending.examined(data).whole
    out, said = run(capsys, "dead", "redrive", data, SLOW)
    assert out == "0 URLs queued again\n"
    assert "it is pending" in said
    assert mending.tally(data).settled == after.settled


def test_redrive_may_forgive_the_host(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = run(capsys, "dead", "redrive", data, "--all", "--forgive", "--json")
    assert json.loads(out) == {"act": "redrive", "urls": 2, "hosts_forgiven": 1}
    found = mending.host(data, SLOW)
    assert [found.sick_until, found.failures, found.next_allowed, found.delay] == [0.0, 0, 0.0, 1.0]
    assert mending.host(data, DEAD).next_allowed == crawled.LATER, "a host that only waits goes on waiting"
    assert mending.examined(data).whole


def test_numbers_go_on_where_they_were(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A clock that was set back must not put an entry before a cursor."""
    ahead = 9_000_000_000_000_000
    with mending.opened(data) as states:
        for state in states:
            state.put_mark("seq", b"%d" % ahead)
    run(capsys, "dead", "redrive", data, "--all")
    assert {mending.record(data, DEAD).seq, mending.record(data, SLOW).seq} <= {ahead + 1, ahead + 2}


def test_a_limit_holds_for_all_workers(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "dead", "redrive", data, "--all", "--limit", "1")[0] == "1 URL queued again\n"
    assert run(capsys, "dead", "redrive", data, "--all")[0] == "1 URL queued again\n"


# -- drop ------------------------------------------------------------------------------------------------------------


def test_drop_keeps_the_record(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, waiting = mending.tally(data), mending.waiting(data)
    assert run(capsys, "dead", "drop", data, "--site", "sick.example")[0] == "1 URL dropped\n"
    found = mending.record(data, SLOW)
    assert found.status is Status.REFUSED
    assert found.visit == Visit(crawled.THEN, 503, DROPPED)
    assert found.trail == TRAIL
    assert mending.tally(data).settled == before.settled, "it was settled, and is"
    assert mending.waiting(data) == waiting
    assert run(capsys, "dead", "drop", data, "--all", "--json")[0] == '{"act":"drop","urls":1,"hosts_forgiven":0}\n'


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["redrive"], "which ones?"),
        (["drop"], "which ones?"),
        (["drop", "https://example.org/dead", "--all"], "not both"),
        (["redrive", "https://example.org/dead", "--host", "example.org"], "not both"),
        (["drop", "--all", "--forgive"], "--forgive is for"),
        (["redrive", "https://example.org/no-such"], "it was never seen; `harvestman dead list"),
        (["redrive", "ftp://example.org/"], "only http and https"),
    ],
)
def test_what_makes_no_sense_is_refused(
    crawl: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    act, *rest = words
    before = mending.waiting(crawl)
    assert said in run(capsys, "dead", act, crawl, *rest, code=2)[1]
    assert mending.waiting(crawl) == before


def test_a_running_crawl_is_left_alone(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with locked(crawl):
        for act in ("redrive", "drop"):
            assert "in use by another crawl" in run(capsys, "dead", act, crawl, "--all", code=3)[1]
        assert urls(run(capsys, "dead", "list", crawl, "--json")[0]) == {DEAD, SLOW}


def test_only_dead_letters_are_chosen() -> None:
    alive = UrlRecord(DEAD, Status.PENDING, 0, 0, 1, crawled.THEN)
    assert not Choice().picks(alive)
    assert Choice(kind="unknown").picks(UrlRecord(DEAD, Status.DEAD, 0, 0, 1, crawled.THEN))
