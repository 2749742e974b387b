"""`harvestman regions`: where sites are, where they should be, and that they go there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from harvestman.cli import settings
from harvestman.cli.main import main, parser
from harvestman.config import Region
from harvestman.embedded.state import RocksState
from harvestman.errors import ConfigError
from harvestman.layout import VERSION, CrawlFile, Layout
from harvestman.lock import locked
from harvestman.model import HostKey, Instant, Reach, Seconds, SiteKey, SiteRecord, Status, UrlRecord
from harvestman.ports import Changes
from harvestman.regions import router
from harvestman.views import View

REGIONS = (Region("eu", tlds=("de",)), Region("us", networks=("10.0.0.0/8",), content="usa"))
SITES = {
    "a.de": ("10.0.0.1", {}),
    "b.com": ("10.0.0.2", {"eu": 0.1}),
    "c.com": ("193.0.0.3", {"eu": 0.9}),
    "d.com": ("193.0.0.4", {"eu": 0.2}),
}
"""Address, seconds to answer."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    layout = Layout(tmp_path / "crawl")
    facts = CrawlFile(VERSION, 64, 2, REGIONS)
    layout.write(facts)
    asyncio.run(_filled(layout, facts))
    return layout.data


async def _filled(layout: Layout, facts: CrawlFile) -> None:
    way, changes = router(layout, facts), Changes()
    for name, (address, seconds) in SITES.items():
        host, site, partition = way.place(HostKey(name))
        reach = {region: Reach(Seconds(time), 20) for region, time in seconds.items()}
        changes.sites[site] = (partition, SiteRecord(site, Instant(1.0), fetched=3, address=address, reach=reach))
        url = way.id_of(f"https://{host}/")
        changes.records[url] = UrlRecord(f"https://{host}/", Status.FETCHED, 0, 4, 1, Instant(1.0))
    for index in range(2):
        state = RocksState(layout.state(index))
        if index == 0:
            await state.commit(changes)
        await state.close()


def told(data: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["regions", str(data), *options]) == 0
    return capsys.readouterr().out


def homes(data: Path) -> dict[str, str]:
    with View(Layout(data)) as view:
        return {name: view.region_of(HostKey(name)) for name in SITES}


def test_listing_says_who_would_move_and_why_and_changes_nothing(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with locked(data):  # as if the crawl were running
        lines = told(data, capsys).splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["region", "workers", "sites", "pages", "by"],
        ["eu", "1", "2", "6", "default", "1,", "tld", "1"],
        ["us", "1", "2", "6", "address", "1,", "trial", "1"],
    ]
    assert sorted(line.split() for line in lines[5:7]) == [
        ["b.com", "eu", "->", "us", "address", "10.0.0.2", "eu", "0.100", "s"],
        ["c.com", "eu", "->", "us", "trial", "193.0.0.3", "eu", "0.900", "s"],
    ]
    assert lines[-1] == "2 sites would move"
    assert set(homes(data).values()) == {"eu"}


def test_assigning_moves_them_and_is_done_once(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = msgspec.json.decode(told(data, capsys, "--assign", "--json"))
    assert {each["site"]: each["goes"] for each in found["sites"]} == {"b.com": "us", "c.com": "us"}
    assert homes(data) == {"a.de": "eu", "b.com": "us", "c.com": "us", "d.com": "eu"}
    with View(Layout(data)) as view:
        assert {record.url for record in view.records()} == {f"https://{name}/" for name in SITES}
        for name in SITES:
            assert asyncio.run(view.record(f"https://{name}/")) is not None
    before = (data / "crawl.json").read_bytes()
    assert "0 sites moved" in told(data, capsys, "--assign")
    assert (data / "crawl.json").read_bytes() == before


def test_every_site_can_be_listed(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options, sites in (((), 2), (("--sites",), 4), (("--sites", "--limit", "3"), 3), (("--limit", "0"), 2)):
        assert len(msgspec.json.decode(told(data, capsys, "--json", *options))["sites"]) == sites


def test_other_rules_can_be_tried_and_taken(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "other.toml"
    file.write_text('[[regions]]\nname = "us"\ncontent = "usa"\n[[regions]]\nname = "asia"\ntlds = ["de"]\n')
    assert "4 sites would move" in told(data, capsys, "--config", str(file))
    assert homes(data)["a.de"] == "eu"
    told(data, capsys, "--config", str(file), "--assign")
    assert homes(data) == {"a.de": "asia", "b.com": "us", "c.com": "us", "d.com": "us"}
    assert Layout(data).read().contents == ("usa", "")
    settled = settings.settle(parser().parse_args(["crawl", "--data", str(data)]))
    assert [region.name for region in settled.config.regions] == ["us", "asia"]
    assert settled.config.workers == 2


def test_it_is_refused_while_the_crawl_runs_and_where_there_are_no_regions(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with locked(data):
        assert main(["regions", str(data), "--assign"]) == 3
    Layout(data).write(CrawlFile(VERSION, 64, 2))
    assert main(["regions", str(data)]) == 2
    assert "has no regions: docs/regions.md" in capsys.readouterr().err


def test_a_crawl_goes_on_with_its_regions_and_its_workers_are_theirs(data: Path) -> None:
    found = settings.settle(parser().parse_args(["crawl", "--data", str(data)]))
    assert (found.config.regions, found.config.workers) == (REGIONS, 2)
    with pytest.raises(ConfigError, match="they have 2 workers, not 3"):
        settings.settle(parser().parse_args(["crawl", "--data", str(data), "--workers", "3"]))


def test_status_counts_pages_by_region(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", str(data)]) == 0
    assert "regions       eu 4 pages, us 0 pages" in capsys.readouterr().out


def test_a_site_that_was_never_asked_is_in_no_table(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told(data, capsys, "--assign")
    table = next((data / "regions").iterdir()).read_text()
    assert sorted(table.splitlines()) == ["b.com\tus", "c.com\tus"]
    assert SiteKey("a.de") not in table
