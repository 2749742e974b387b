"""harvestman hosts: the sick list, shown and forgiven."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from cli import crawled, mending
from cli.mending import run

from harvestman.cli.hosts import RestingHost, resting
from harvestman.config import Politeness, Retry
from harvestman.lock import locked
from harvestman.mend import forgiven
from harvestman.model import HostKey, HostRecord, Instant, Response, Seconds, SiteKey
from harvestman.policy import politeness
from harvestman.policy.politeness import HostClock
from harvestman.ports import Changes

SICK = "https://sick.example/"
NOW = Instant(1_000.0)


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return mending.write(tmp_path_factory.mktemp("hosts") / "crawl").data


@pytest.fixture
def data(crawl: Path, tmp_path: Path) -> Path:
    """A copy, to be changed."""
    return Path(shutil.copytree(crawl, tmp_path / "crawl"))


def host(**fields: float) -> HostRecord:
    found = HostRecord(HostKey("h.example"), SiteKey("h.example"), delay=Seconds(2.0), cursors=[3] * 8)
    for name, value in fields.items():
        setattr(found, name, value)
    return found


@pytest.mark.parametrize(
    ("known", "why"),
    [
        (host(), ""),
        (host(next_allowed=1_050.0), ""),
        (host(next_allowed=1_061.0), "waits"),
        (host(next_allowed=2_000.0, sick_until=2_000.0), "sick"),
        (host(next_allowed=900.0, sick_until=900.0), ""),
    ],
)
def test_who_rests(known: HostRecord, why: str) -> None:
    found = resting(known, NOW)
    assert (found.why if found else "") == why


def test_what_the_server_asked_for_is_not_forgiven() -> None:
    sick = forgiven(host(next_allowed=2_000.0, sick_until=2_000.0, failures=0))
    assert sick == host(next_allowed=0.0)
    failing = forgiven(host(next_allowed=1_500.0, failures=3))
    assert failing == host(next_allowed=1_500.0)
    told_later = forgiven(host(next_allowed=3_000.0, sick_until=2_000.0))
    assert told_later == host(next_allowed=3_000.0)


def test_a_retry_after_beyond_the_sick_time_is_waited_for_all_the_same() -> None:
    throttled = Response("https://h.example/", 503, b"", {"retry-after": "100000"}, b"", "", NOW, NOW, NOW)
    clock = politeness.after(HostClock(failures=4), throttled, Seconds(1.0), Politeness(), Retry(), 0.0)
    known = host(next_allowed=clock.next_allowed, sick_until=clock.sick_until)
    assert resting(known, NOW) == RestingHost(HostKey("h.example"), "sick", Instant(NOW + 100_000), 0, 2.0)
    assert forgiven(known) == host(next_allowed=NOW + 100_000)


def test_list(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = run(capsys, "hosts", crawl)
    head, waits, sick = out.splitlines()
    assert head.split() == ["host", "why", "failures", "delay", "until"]
    assert waits.split()[:4] == ["example.org", "waits", "0", "1"]
    assert sick.split()[:4] == ["sick.example", "sick", "0", "1"]
    assert "2096-10-02" in sick


def test_list_for_programs(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capsys, "hosts", crawl, "--json")[0])
    assert found[1] == {"host": "sick.example", "why": "sick", "until": crawled.LATER, "failures": 0, "delay": 1.0}
    assert set(found[0]) == set(RestingHost.__struct_fields__)


def test_forgive_one(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = run(capsys, "hosts", data, "--forgive", "Sick.Example")
    assert out == "1 host forgiven\n  sick.example\n"
    found = mending.host(data, SICK)
    assert [found.sick_until, found.next_allowed, found.delay] == [0.0, 0.0, 1.0]
    assert run(capsys, "hosts", data, "--forgive", "sick.example")[0] == "0 hosts forgiven\n"
    assert "sick.example" not in run(capsys, "hosts", data)[0]


def test_forgive_all(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = mending.host(data, crawled.HOME)
    assert json.loads(run(capsys, "hosts", data, "--forgive", "all", "--json")[0]) == {"forgiven": ["sick.example"]}
    assert mending.host(data, crawled.HOME) == before


def test_none_rests(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with mending.opened(data) as states:
        for state in states:
            rows = {each.host: (place, host(host=each.host)) for place, each in state.host_rows()}  # type: ignore[arg-type]
            asyncio.run(state.commit(Changes(hosts=rows)))
    out, said = run(capsys, "hosts", data)
    assert (out, said) == ("", "No host rests.\n")


def test_what_makes_no_sense_is_refused(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "never asked by this crawl" in run(capsys, "hosts", data, "--forgive", "typo.example", code=2)[1]
    with locked(data):
        assert "in use by another crawl" in run(capsys, "hosts", data, "--forgive", "all", code=3)[1]
        assert "sick.example" in run(capsys, "hosts", data)[0]
