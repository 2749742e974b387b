"""harvestman traps: shown, pardoned, looked for."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import msgspec
import pytest
from cli import crawled, mending
from cli.mending import run

from harvestman.embedded.state import RocksState
from harvestman.frontier.routing import Router
from harvestman.layout import VERSION, CrawlFile, Layout
from harvestman.lock import locked
from harvestman.mend import caught_by
from harvestman.model import HostKey, Instant, JobTally, SiteKey, SiteRecord, Status, Tally, Trap, UrlRecord, Visit
from harvestman.policy.traps import shape_of
from harvestman.ports import Changes

SITE = "example.org"
CALENDAR = "/cal/{n}"
LONG = "url length /cal/{n}"
CAUGHT = [f"https://www.{SITE}/cal/{day}" for day in range(5)]
OTHER = f"https://{SITE}/cal/7/more"
TOO_LONG = f"https://{SITE}/cal/99"


def refused(url: str, reason: str) -> UrlRecord:
    return UrlRecord(url, Status.REFUSED, 3, 0, 0, crawled.THEN, crawled.HOME, visit=Visit(crawled.THEN, 0, reason))


def page(number: int) -> UrlRecord:
    visit = Visit(crawled.THEN, 200, "ok", b"\7" * 32, 7 if number % 2 else 0)
    status = Status.FETCHED if number % 2 else Status.DUPLICATE
    return UrlRecord(f"https://farm.example/s/{number}", status, 3, 5, 8, crawled.THEN, visit=visit)


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    layout = Layout(tmp_path_factory.mktemp("traps") / "crawl")
    layout.write(CrawlFile(VERSION, 64, 2))
    assert shape_of(CAUGHT[1]) == CALENDAR
    records = [refused(url, f"trap: calendar {CALENDAR}") for url in CAUGHT]
    records += [refused(OTHER, f"trap: calendar {CALENDAR}/more"), refused(TOO_LONG, f"trap: {LONG}")]
    records += [page(number) for number in range(60)]
    site = SiteRecord(SiteKey(SITE), crawled.THEN, fetched=90, dull=80, flagged="95 % near-duplicates")
    site.traps = {
        CALENDAR: Trap("calendar", crawled.THEN, CAUGHT[0], 5),
        LONG: Trap("url length", crawled.THEN, TOO_LONG, 1),
    }
    router = Router(64)
    for index in range(2):
        changes = Changes()
        changes.marks["tally"] = msgspec.msgpack.encode(Tally(settled=50, jobs={1: JobTally(60, 50)}))
        for record in records:
            url = router.id_of(record.url)
            if url[1] % 2 == index:
                changes.records[url] = record
        place = router.place(HostKey(SITE))[2]
        if place % 2 == index:
            changes.sites[site.site] = (place, site)
        state = RocksState(layout.state(index))
        asyncio.run(state.commit(changes))
        state.shut()
    return layout.data


@pytest.fixture
def data(crawl: Path, tmp_path: Path) -> Path:
    """A copy, to be changed."""
    return Path(shutil.copytree(crawl, tmp_path / "crawl"))


def test_list(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = run(capsys, "traps", crawl)
    lines = out.splitlines()
    assert lines[0] == SITE
    assert lines[1].split() == ["calendar", "5", "refused", CALENDAR]
    assert lines[2].split(maxsplit=1) == ["since", f"2026-09-21 14:13:20 UTC, {CAUGHT[0]}"]
    assert "url length             1 refused  url length /cal/{n}" in out
    assert f"  {SITE}: 95 % near-duplicates (80 of 90 pages like others)" in out


def test_list_for_programs(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capsys, "traps", crawl, "--json")[0])
    assert found["traps"][0] == {
        "site": SITE, "name": "calendar", "shape": CALENDAR, "since": crawled.THEN, "refused": 5,
        "example": CAUGHT[0], "pardoned": False,
    }  # fmt: skip
    assert found["flagged"] == [{"site": SITE, "why": "95 % near-duplicates", "fetched": 90, "dull": 80}]


@pytest.mark.slow
def test_a_pardon_queues_what_was_refused(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = run(capsys, "traps", data, "--pardon", SITE, CALENDAR)
    assert out == f"{CALENDAR} of {SITE} is pardoned, 5 URLs queued\n"
    for url in CAUGHT:
        found = mending.record(data, url)
        assert (found.status, found.visit, found.attempts, found.bucket) == (Status.PENDING, None, 0, 4)
    assert len({mending.record(data, url).seq for url in CAUGHT}) == 5
    assert mending.record(data, OTHER).status is Status.REFUSED, "another shape that begins alike"
    assert mending.record(data, TOO_LONG).status is Status.REFUSED, "another trap"
    after = mending.tally(data)
    assert (after.settled, after.jobs[1].settled, after.traps) == (95, 95, {"calendar": -5})
    assert mending.examined(data).whole
    assert "(pardoned)" in run(capsys, "traps", data)[0]
    assert ", 0 URLs queued" in run(capsys, "traps", data, "--pardon", SITE, CALENDAR)[0]
    assert json.loads(run(capsys, "traps", data, "--pardon", SITE, LONG, "--json")[0])["urls"] == 1


def test_whom_a_trap_caught() -> None:
    trap = Trap("url length", Instant(0.0), "")
    caught = refused(TOO_LONG, "trap: url length /a/{n}")
    assert caught_by(caught, trap, "url length /a/{n}")
    assert caught_by(caught, trap, "/a/{n}")
    assert caught_by(caught, trap, "url length *"), "the rest of a site with too many traps"
    assert not caught_by(caught, trap, "/a/{n}/b")
    assert not caught_by(caught, Trap("calendar", Instant(0.0), ""), "/a/{n}")
    assert not caught_by(refused(TOO_LONG, "unwanted: video/mp4"), trap, "url length *")


def test_scan_finds_what_slipped_through(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = json.loads(run(capsys, "traps", crawl, "--scan", "--json")[0])["findings"]
    assert (found["site"], found["shape"], found["pages"]) == ("farm.example", "/s/{n}", 60)
    assert found["contents"] < 6
    assert "farm.example /s/{n}" in run(capsys, "traps", crawl, "--scan")[0]


def test_nothing_to_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = mending.write(tmp_path / "crawl").data
    assert run(capsys, "traps", data) == ("", "No traps were met.\n")
    assert run(capsys, "traps", data, "--scan") == ("", "Nothing slipped through.\n")


def test_what_makes_no_sense_is_refused(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, "traps", data, "--pardon", SITE, "/calendar", code=2)[1]
    assert "no trap of shape '/calendar', but '/cal/{n}'" in said
    assert "no trap" in run(capsys, "traps", data, "--pardon", "other.example", CALENDAR, code=2)[1]
    assert "not both" in run(capsys, "traps", data, "--scan", "--pardon", SITE, CALENDAR, code=2)[1]
    with locked(data):
        assert "in use" in run(capsys, "traps", data, "--pardon", SITE, CALENDAR, code=3)[1]
        assert CALENDAR in run(capsys, "traps", data)[0]
        run(capsys, "traps", data, "--scan")
