"""Whole crawls of the simulated web, judged from the server's log."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from simweb import sim_web
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]  # the package ships no types

from harvestman.config import Config
from harvestman.layout import Layout
from harvestman.sim.audit import audit
from harvestman.store.pages import read_pages
from harvestman.supervise import Ending, Progress, Supervisor
from harvestman.wiring import prepare


def crawl(config: Config) -> tuple[Ending, list[Progress]]:
    layout = prepare(config, list(config.seeds))
    seen: list[Progress] = []
    supervisor = Supervisor(config, layout, seen.append)
    return asyncio.run(asyncio.wait_for(supervisor.run(), 300)), seen


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_the_mixed_web_is_crawled_whole_and_politely(tmp_path: Path, workers: int) -> None:
    with sim_web(tmp_path, hosts=100, pages=10) as web:
        ending, seen = crawl(web.config(tmp_path / "data", workers=workers, delay=0.5))
    assert ending.reason == "finished"
    assert ending.progress.restarts == 0
    assert seen[-1].tally.pages <= ending.progress.tally.pages
    report = audit(web.log, 0.5)
    assert report.ok, report.render()
    assert report.duplicates.count == 0
    assert report.most_connections <= 1
    assert report.outside.count == 0


@pytest.mark.slow
def test_a_page_limit_is_kept_exactly_and_the_next_run_goes_on(tmp_path: Path) -> None:
    with sim_web(tmp_path, hosts=40, pages=10, profile="clean") as web:
        config = web.config(tmp_path / "data", workers=2, delay=0.2, pages=90)
        first, _ = crawl(config)
        assert (first.reason, first.progress.run_pages) == ("max-pages", 90)
        second, _ = crawl(msgspec.structs.replace(config, workers=1))
        assert (second.reason, second.progress.run_pages, second.progress.tally.pages) == ("max-pages", 90, 180)
        third, _ = crawl(web.config(tmp_path / "data", workers=3, delay=0.2))
        assert third.reason == "finished"
        assert third.progress.tally.pages == 400
    report = audit(web.log, 0.2)
    assert report.ok, report.render()
    assert len({page.url for page in read_pages(tmp_path / "data" / "pages")}) == 400


@pytest.mark.slow
def test_draining_loses_nothing(tmp_path: Path) -> None:
    with sim_web(tmp_path, hosts=40, pages=10, profile="clean") as web:
        config = web.config(tmp_path / "data", workers=2, delay=0.2)
        layout = prepare(config, web.seeds)

        async def interrupted(halt: bool) -> Ending:
            supervisor = Supervisor(config, layout, lambda _: None)
            running = asyncio.create_task(supervisor.run())
            for _ in range(100):
                await asyncio.sleep(0.2)
                if supervisor.progress().run_pages:
                    break
            supervisor.drain()
            if halt:
                supervisor.halt()
            return await asyncio.wait_for(running, 60)

        for halt in (False, True):
            ending = asyncio.run(interrupted(halt))
            assert ending.reason == "interrupted"
            assert ending.progress.tally.pages > 0
        last, _ = crawl(config)
        assert last.progress.tally.pages == 400
    # A request that was in flight at the second Ctrl-C may be asked again.
    report = audit(web.log, 0.2, max_duplicates=0.05)
    assert report.ok, report.render()


@pytest.mark.slow
def test_what_is_stored_can_be_read_by_others(tmp_path: Path) -> None:
    with sim_web(tmp_path, hosts=30, pages=8) as web:
        crawl(web.config(tmp_path / "data", workers=2, delay=0.2, patience=2.0))
    files = sorted(Layout(tmp_path / "data").warc.glob("*.warc.gz"))
    assert files
    kinds = Counter(record.rec_type for file in files for record in ArchiveIterator(file.open("rb")))
    assert kinds["response"] > 100
    assert kinds["request"] == kinds["response"] + kinds["revisit"]
    assert kinds["revisit"] > 0, "an exact duplicate is stored as a revisit"
    for file in files:
        for tool in (["warcio", "check", "-v"], ["fastwarc", "check", "-q"], ["gzip", "-t"]):
            command = [
                str(Path(sys.executable).parent / tool[0]) if tool[0] != "gzip" else "gzip",
                *tool[1:],
                str(file),
            ]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
