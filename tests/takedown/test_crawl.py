"""A real crawl, a takedown in the middle, and on it goes: judged from the server's log."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from simweb import sim_web

from harvestman.config import Config
from harvestman.layout import Layout
from harvestman.model import Instant, Status
from harvestman.policy.blocklist import entry
from harvestman.policy.urls import host_of
from harvestman.store.pages import read_pages
from harvestman.supervise import Supervisor
from harvestman.takedown import run as deeds
from harvestman.views import View
from harvestman.wiring import prepare


def crawl(config: Config, seeds: list[str]) -> None:
    layout = prepare(config, seeds)
    asyncio.run(asyncio.wait_for(Supervisor(config, layout, lambda _: None).run(), 60))


@pytest.mark.slow
def test_what_was_taken_down_is_never_asked_for_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with sim_web(tmp_path, hosts=12, pages=5, profile="clean") as web:
        crawl(web.config(data, workers=2, delay=0.1, pages=20), web.seeds)
        gone = sorted({host_of(page.url) for page in read_pages(data / "pages")})[0]
        stopped = time.time()
        order = deeds.Order(entry("pattern", f"//{gone}[:/]", "test", Instant(stopped), "tester"), "x")
        done = deeds.take_down(data, order, lambda _: None)
        assert done.proof is not None
        assert done.proof.clean, done.proof
        assert done.pages > 0
        crawl(web.config(data, workers=2, delay=0.1), [url for url in web.seeds if host_of(url) == gone] or web.seeds)
    lines = [line.split("\t") for line in web.log.read_text().splitlines() if line.startswith("R\t")]
    asked = [line[5] for line in lines if float(line[1]) > stopped]
    assert asked
    assert gone not in asked
    assert gone in [line[5] for line in lines]
    with View(Layout(data)) as view:
        statuses = {record.status for record in view.records() if host_of(record.url) == gone}
        assert view.tally().discovered == view.tally().settled
    assert statuses == {Status.REFUSED}
    pages = {page.url for page in read_pages(data / "pages")}
    assert gone not in {host_of(url) for url in pages}
    assert len(pages) == 11 * 5
    assert deeds.verify(data, deeds.blocked(data), (), ()).clean
