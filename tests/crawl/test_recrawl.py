"""A web that has not changed, crawled again: what it costs, by the server's own log."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path

import pytest
from simweb import sim_web

from harvestman.config import Config
from harvestman.jobs import Terms
from harvestman.layout import Layout
from harvestman.model import Seconds
from harvestman.sim.log import Asked, read
from harvestman.store.pages import read_pages
from harvestman.supervise import Ending, Supervisor
from harvestman.wiring import prepare

HOSTS, PAGES = 100, 20


def crawl(config: Config, seeds: list[str]) -> Ending:
    terms = Terms(ttl=Seconds(1.0), scope="all")
    layout = prepare(config, seeds, terms)
    return asyncio.run(asyncio.wait_for(Supervisor(config, layout, lambda _: None).run(), 300))


def pages_asked(log: Path) -> list[Asked]:
    return [line for line in read(log) if isinstance(line, Asked) and line.target != "/robots.txt"]


def volume(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


@pytest.mark.slow
def test_an_unchanged_web_costs_hardly_a_body(tmp_path: Path) -> None:
    with sim_web(tmp_path, hosts=HOSTS, pages=PAGES, profile="clean") as web:
        config = web.config(tmp_path / "data", delay=0.2, patience=3.0)
        layout = Layout(Path(config.data))
        crawl(config, list(config.seeds))
        between = time.time()
        raw, pages = volume(layout.warc), len(list(read_pages(layout.pages)))
        crawl(config, [])
        grown = volume(layout.warc) - raw
    # Each 404 (a sitemap that is not there) has its page in the first crawl and is not asked for again.
    first = [line for line in pages_asked(web.log) if line.arrival < between]
    again = [line for line in pages_asked(web.log) if line.arrival >= between]
    asked = Counter(line.status for line in again)
    before, after = sum(line.bytes for line in first), sum(line.bytes for line in again)
    print(f"first {len(first)} requests, {before:,} bytes; again {dict(asked)}, {after:,} bytes, heads included")
    print(f"raw records: {raw:,} bytes, then {grown / max(1, asked[304]):.0f} bytes for each 304")
    assert len(first) >= HOSTS * PAGES
    pages_there = {(line.host, line.target) for line in first if line.status == 200}
    assert {(line.host, line.target) for line in again} >= pages_there
    assert after <= 0.05 * before
    assert asked[304] >= 0.95 * len(again)
    assert len(list(read_pages(layout.pages))) == pages
    assert grown < 600 * len(again) + 2_000
