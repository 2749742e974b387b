"""Ranks fed back: the queue of a crawl in a new order, and nothing else changed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from cli.mending import examined, opened, record, run
from graph.linked import THEN, add_pages, page, write

from harvestman.config import Config
from harvestman.frontier.routing import Router
from harvestman.layout import Layout
from harvestman.lock import locked
from harvestman.model import BUCKETS, Instant, Job, SiteKey, SiteRecord, Status, UrlRecord
from harvestman.policy import urgency
from harvestman.ports import Changes
from harvestman.views import View

GOOD, DULL, UNKNOWN = "https://good.example/page", "https://dull.example/page", "https://unknown.example/"
LINKERS = [f"https://l{number}.example/" for number in range(12)]


def pending(url: str, seq: int, cash: float, due: float = 0.0) -> UrlRecord:
    return UrlRecord(url, Status.PENDING, 1, BUCKETS - 1, seq, THEN, cash=cash, due=Instant(due))


def site(name: str, cash: float) -> SiteRecord:
    return SiteRecord(SiteKey(name), THEN, cash=cash, fetched=100)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Twelve sites link to one page; what was learned so far is that another site is the better one."""
    pages = [page(url, GOOD) for url in LINKERS] + [
        page(f"{LINKERS[0]}more", DULL, *(f"{LINKERS[0]}{i}" for i in range(9)))
    ]
    records = [pending(GOOD, 3, 0.01), pending(DULL, 4, 2.0), pending(UNKNOWN, 5, 0.5)]
    sites = [site("good.example", 0.01), site("dull.example", 30.0), site("unknown.example", 7.0)]
    for queued, its in zip(records, sites, strict=True):  # where the crawl put them
        queued.bucket = urgency.bucket(queued, its, Job(1, "", THEN), 1.0, Config())
    return write(tmp_path / "crawl", pages, records, sites).data


def cash_of(data: Path, url: str) -> float:
    with View(Layout(data)) as view:
        found = asyncio.run(view.site(url))
    assert found is not None
    return found.cash


def test_a_page_of_a_highly_ranked_site_becomes_more_urgent(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = record(data, GOOD)
    out = json.loads(run(capsys, "graph", "rank", data, "--apply", "--json")[0])
    assert out["applied"] == {"sites": 2, "pages": 2, "sooner": 1, "later": 1}
    after = record(data, GOOD)
    assert after.bucket < before.bucket
    assert after.cash > 10 * record(data, DULL).cash
    assert cash_of(data, GOOD) > 10 * cash_of(data, DULL)
    assert examined(data).whole  # its entry moved with it


def test_the_sum_stays_and_the_unknown_keep_theirs(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "graph", "rank", data, "--apply")
    assert cash_of(data, GOOD) + cash_of(data, DULL) == pytest.approx(30.01)
    assert record(data, GOOD).cash + record(data, DULL).cash == pytest.approx(2.01)
    assert (record(data, UNKNOWN).cash, cash_of(data, UNKNOWN)) == (0.5, 7.0)


def test_the_queue_gives_it_first(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "graph", "rank", data, "--apply")
    with View(Layout(data)) as view:
        found = asyncio.run(view.record(GOOD))
        assert found is not None
        assert asyncio.run(view.place(found)) == 0
        (_, state), *_ = view.workers()
        assert len(list(state.waiting_rows("queue"))) == 3
        assert int(state.read_mark("seq") or 0) >= found.seq > 5


def test_again_changes_nothing(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "graph", "rank", data, "--apply")
    first = record(data, GOOD)
    out = json.loads(run(capsys, "graph", "rank", data, "--apply", "--json")[0])
    assert (out["applied"]["sooner"], out["applied"]["later"]) == (0, 0)
    assert record(data, GOOD).seq == first.seq
    assert record(data, GOOD).cash == pytest.approx(first.cash)


def test_what_waits_for_a_retry_stays_where_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    late = THEN + 4e9
    data = write(tmp_path / "crawl", [page(url, GOOD) for url in LINKERS], [], [site("good.example", 20.0)]).data
    with opened(data) as (state,):
        name = Router(64).id_of(GOOD)
        changes = Changes(records={name: pending(GOOD, 3, 2.0, late)}, due=[(Instant(late), name)])
        asyncio.run(state.commit(changes))
    run(capsys, "graph", "rank", data, "--apply")
    assert record(data, GOOD).bucket == BUCKETS - 1
    assert examined(data).whole


def test_not_while_the_crawl_runs(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with locked(data):
        assert "is being crawled" in run(capsys, "graph", "rank", data, "--apply", code=3)[1]
        run(capsys, "graph", "rank", data)


def test_new_pages_make_a_new_graph(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = json.loads(run(capsys, "graph", "rank", data, "--json")[0])
    again = json.loads(run(capsys, "graph", "rank", data, "--json")[0])
    assert again == first
    path = next(Layout(data).pages.iterdir())
    add_pages(Layout(data), [page(GOOD, DULL)], (path.name, path.stat().st_size))
    assert "Pages have come since" in run(capsys, "graph", "top", data)[1]
    grown = json.loads(run(capsys, "graph", "rank", data, "--json")[0])
    assert grown["counts"]["edges"] == first["counts"]["edges"] + 1
