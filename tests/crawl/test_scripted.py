"""Whole crawls of a web whose pages are built by scripts, with a real browser, judged from the server's log."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from browsers import a_browser
from simweb import SimWeb, sim_web
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]  # the package ships no types

from harvestman.config import Config, Render
from harvestman.layout import Layout
from harvestman.sim.audit import audit
from harvestman.store.pages import read_pages
from harvestman.supervise import Ending, Supervisor
from harvestman.wiring import prepare

HOSTS, PAGES, DELAY = 12, 6, 0.2


def scripted(web: SimWeb, data: Path, workers: int = 2, **settings: object) -> Config:
    # A machine that is busy with other tests must not make the share of the time the point of these.
    settings.setdefault("render", Render(share=1.0))
    config = web.config(data, workers=workers, delay=DELAY, patience=5.0)
    return msgspec.structs.replace(config, **settings)


def crawl(config: Config) -> Ending:
    layout = prepare(config, list(config.seeds))
    return asyncio.run(asyncio.wait_for(Supervisor(config, layout, lambda _: None).run(), 300))


@pytest.mark.slow
def test_pages_built_by_scripts_are_read_whole_and_politely(tmp_path: Path) -> None:
    a_browser()
    with sim_web(tmp_path, hosts=HOSTS, pages=PAGES, profile="clean", scripted=0.6) as web:
        ending = crawl(scripted(web, tmp_path / "data"))
    assert ending.reason == "finished"
    tally = ending.progress.tally
    assert tally.unrendered == 0
    report = audit(web.log, DELAY)
    assert report.ok, report.render()
    assert report.scripted >= HOSTS
    assert report.scripted_filled == report.scripted, "all of their content"
    assert report.resources_again.count == 0
    assert report.most_connections <= 1
    pages = list(read_pages(Layout(tmp_path / "data").pages))
    shown = [page for page in pages if page.rendered]
    assert len(shown) == tally.rendered >= report.scripted
    full = {page.url for page in shown if len(page.text) > 500 and page.links}
    assert len(full) == report.scripted, "the others are of hosts whose robots.txt forbids the content"
    files = sorted(Layout(tmp_path / "data").warc.glob("*.warc.gz"))
    kinds = Counter(record.rec_type for file in files for record in ArchiveIterator(file.open("rb")))
    assert kinds["conversion"] == len(shown)
    assert not list((tmp_path / "data" / "browser").glob("*/*")), "nothing is left of the browser"


@pytest.mark.slow
def test_kills_lose_no_page(tmp_path: Path) -> None:
    a_browser()
    with sim_web(tmp_path, hosts=HOSTS, pages=PAGES, profile="clean", scripted=0.6) as web:
        config = scripted(web, tmp_path / "data")
        layout = prepare(config, web.seeds)

        async def killed_now_and_then() -> Ending:
            supervisor = Supervisor(config, layout, lambda _: None)
            running = asyncio.create_task(supervisor.run())
            for kill in range(40):
                await asyncio.sleep(1.0)
                if running.done():
                    break
                if kill % 5 == 4 and (pids := list(supervisor.pids())):
                    os.kill(pids[kill % len(pids)], signal.SIGKILL)
            return await asyncio.wait_for(running, 240)

        ending = asyncio.run(killed_now_and_then())
    assert ending.reason == "finished"
    assert ending.progress.restarts >= 1
    # What was in flight when a worker died may be asked for again.
    report = audit(web.log, DELAY, max_duplicates=0.2)
    assert report.ok, report.render()
    assert report.scripted_filled == report.scripted
    shown = {page.url for page in read_pages(layout.pages) if page.rendered}
    assert len(shown) >= report.scripted


@pytest.mark.slow
def test_without_a_browser_the_pages_wait_for_a_run_that_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = a_browser()
    with sim_web(tmp_path, hosts=HOSTS, pages=PAGES, profile="clean", scripted=0.6) as web:
        with monkeypatch.context() as alone:
            alone.setenv("PATH", str(tmp_path))
            ending = crawl(scripted(web, tmp_path / "data", workers=1))
        tally = ending.progress.tally
        assert (ending.reason, tally.rendered) == ("finished", 0)
        assert tally.unrendered > 0
        assert [alert for alert in tally.alerts if "no browser" in alert]
        again = scripted(web, tmp_path / "data", workers=1, render=Render(share=1.0, browser=path))
        ending = crawl(msgspec.structs.replace(again, seeds=()))
    assert ending.progress.tally.unrendered == 0
    report = audit(web.log, DELAY)
    assert report.ok, report.render()
    assert report.scripted_filled == report.scripted > 0
