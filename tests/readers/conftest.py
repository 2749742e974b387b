"""A small crawl of the simulated web, for all readers."""

from __future__ import annotations

import asyncio

import pytest
from simweb import sim_web

from harvestman.layout import Layout
from harvestman.supervise import Supervisor
from harvestman.wiring import prepare


@pytest.fixture(scope="session")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """Some hundred pages, crawled over HTTP."""
    here = tmp_path_factory.mktemp("readers")
    with sim_web(here, hosts=10, pages=12, profile="clean") as web:
        config = web.config(here / "crawl", delay=0.1, patience=2.0)
        layout = prepare(config, list(config.seeds))
        asyncio.run(asyncio.wait_for(Supervisor(config, layout, lambda _: None).run(), 90))
    return layout
