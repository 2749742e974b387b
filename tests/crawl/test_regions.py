"""Two regions with a worker each, judged from the server's log and from what lies in each region's directory."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

import msgspec
import pytest
from simweb import sim_web
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]  # the package ships no types

from harvestman.cli.main import main
from harvestman.config import Config, Region, check
from harvestman.layout import Layout
from harvestman.model import HostKey, Instant
from harvestman.policy.sites import site_of
from harvestman.policy.urls import host_of
from harvestman.sim.audit import audit
from harvestman.store.pages import read_pages
from harvestman.supervise import Ending, Supervisor
from harvestman.views import View
from harvestman.wiring import prepare

EUROPEAN = tuple(f"h{number:04d}.test" for number in range(1, 31, 2))
NETWORK = "127.1.0.32/27"
"""Hosts 32 to 63 of the simulated web."""
REGIONS = (Region("us", content="america"), Region("eu", content="europe", tlds=EUROPEAN))


def crawl(config: Config) -> Ending:
    layout = prepare(config, list(config.seeds))
    return asyncio.run(asyncio.wait_for(Supervisor(config, layout, lambda _: None).run(), 300))


def pages(directory: Path) -> set[str]:
    return {page.url for page in read_pages(directory)}


def recorded(directory: Path) -> set[str]:
    """The pages of which there is a raw record. Rules of a host may be on another site: they are not its content."""
    found = set()
    for file in directory.glob("*.warc.gz"):
        with file.open("rb") as stream:
            found |= {
                record.rec_headers.get_header("WARC-Target-URI")
                for record in ArchiveIterator(stream)
                if record.rec_type in ("response", "revisit")
            }
    return {url for url in found if not url.endswith("/robots.txt")}


def as_toml(region: Region) -> str:
    settings = msgspec.to_builtins(region)
    return "[[regions]]\n" + "".join(f"{key} = {msgspec.json.encode(settings[key]).decode()}\n" for key in settings)


def sites(urls: set[str]) -> set[str]:
    return {site_of(host_of(url)) for url in urls}


@pytest.mark.slow
def test_a_region_keeps_its_sites_and_gives_them_away_between_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layout = Layout(tmp_path / "data")
    europe, america = layout.data / "europe", layout.data / "america"
    with sim_web(tmp_path, hosts=80, pages=10) as web:
        config = web.config(layout.data, delay=0.3, pages=250, patience=8.0)
        config = check(msgspec.structs.replace(config, regions=REGIONS))
        assert config.workers == 2
        first = crawl(config)
        assert (first.reason, first.progress.run_pages) == ("max-pages", 250)
        european = sites(recorded(europe / "warc"))
        assert european
        assert european <= set(EUROPEAN)
        assert sites(recorded(america / "warc")).isdisjoint(EUROPEAN)
        before = recorded(america / "warc")

        rules = (REGIONS[0], msgspec.structs.replace(REGIONS[1], networks=(NETWORK,)))
        toml = tmp_path / "crawl.toml"
        toml.write_text("".join(map(as_toml, rules)))
        assert main(shlex.split(f"regions {layout.data} --config {toml} --assign --json --limit 0")) == 0
        told = msgspec.json.decode(capsys.readouterr().out)
        moved = {each["site"] for each in told["sites"] if (each["region"], each["goes"]) == ("us", "eu")}
        assert len(moved) == told["moves"] > 10
        with View(layout) as view:
            assert {view.region_of(HostKey(site)) for site in moved} == {"eu"}

        limits = msgspec.structs.replace(config.limits, max_pages=0)
        last = crawl(msgspec.structs.replace(config, regions=rules, limits=limits))
        assert last.reason == "finished"
        assert last.progress.restarts == 0
    report = audit(web.log, 0.3)
    assert report.ok, report.render()
    assert report.duplicates.count == 0
    later = recorded(america / "warc") - before
    assert later
    assert sites(later).isdisjoint({*EUROPEAN, *moved}), "nothing of a European site since it is one"
    assert moved & sites(recorded(europe / "warc"))
    assert sites(recorded(america / "warc")).isdisjoint(EUROPEAN)
    assert sites(pages(america / "pages")).isdisjoint(EUROPEAN)
    assert sites(pages(europe / "pages")) <= {*EUROPEAN, *moved}
    assert not (layout.data / "warc").exists()
    assert not (layout.data / "pages").exists()
    with View(layout) as view:
        fetched = view.census(0, Instant(0.0), lambda _: None).regions
    assert fetched.keys() == {"us", "eu"}
    assert sum(fetched.values()) == last.progress.tally.pages
