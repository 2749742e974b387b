"""Addresses a crawl may not touch: none is asked for anything, and every URL on them says why."""

from __future__ import annotations

import asyncio
from pathlib import Path

from simweb import sim_web

from harvestman.api import Crawl
from harvestman.config import Config, Limits, Politeness
from harvestman.embedded.state import RocksState
from harvestman.layout import Layout
from harvestman.model import Seconds, Status
from harvestman.sim.log import Asked, read

ALLOWED = "127.1.0.1"


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
