"""Addresses a crawl may not touch: none is asked for anything, and every URL on them says why."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from simweb import sim_web

from harvestman.api import Crawl
from harvestman.config import Config, Limits, Politeness
from harvestman.embedded.state import RocksState
from harvestman.layout import Layout
from harvestman.model import Seconds, Status
from harvestman.sim.log import Asked, read
from harvestman.wiring import open_crawler, prepare

ALLOWED = "127.1.0.1"


@pytest.mark.slow
def test_only_the_allowed_address_is_asked(tmp_path: Path) -> None:
    async def crawl(config: Config) -> int:
        return len([page async for page in Crawl(config)])

    with sim_web(tmp_path, hosts=6, pages=4, profile="clean") as web:
        config = Config(
            seeds=tuple(web.seeds),
            scope="all",
            contact="test@example.org",
            data=str(tmp_path / "data"),
            dns=web.dns,
            allow=(f"{ALLOWED}/32",),
            politeness=Politeness(delay=Seconds(0.1)),
            limits=Limits(patience=Seconds(3.0)),
        )
        pages = asyncio.run(crawl(config))
    asked = [line for line in read(web.log) if isinstance(line, Asked)]
    assert {line.address for line in asked} == {ALLOWED}
    assert pages > 0
    state = RocksState(Layout(tmp_path / "data").state(0), read_only=True)
    refused = [record for record in state.url_records() if record.status is Status.REFUSED]
    waiting = [record for record in state.url_records() if record.status is Status.PENDING]
    state.shut()
    assert len(refused) >= 4
    assert all(record.visit and "loopback" in record.visit.reason for record in refused)
    assert waiting == []


@pytest.mark.parametrize(("ports", "words"), [((), "port 6379 "), ((6379,), "loopback")])
def test_a_link_to_a_closed_port_is_refused_when_it_is_met(tmp_path: Path, ports: tuple[int, ...], words: str) -> None:
    async def meet() -> str:
        limits, politeness = Limits(patience=Seconds(0.5)), Politeness(delay=Seconds(0.0))
        config = Config(data=str(tmp_path / "data"), ports=ports, limits=limits, politeness=politeness)
        layout = prepare(config, ["http://127.0.0.1:6379/"])
        wired = await open_crawler(config)
        await wired.crawler.add_seeds(["http://127.0.0.1:6379/"], "seed")
        while not await wired.crawler.step():
            pass
        await wired.crawler.close()
        state = RocksState(layout.state(0), read_only=True)
        (record,) = state.url_records()
        hosts = list(state.host_rows())
        state.shut()
        assert record.status is Status.REFUSED
        assert bool(hosts) == bool(ports), "it takes no place among the hosts"
        return record.visit.reason if record.visit else ""

    assert words in asyncio.run(meet())
