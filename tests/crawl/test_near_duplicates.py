"""What a whole crawl says of near-duplicates, against the plan of the simulated web."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from simweb import sim_web

from harvestman.layout import Layout
from harvestman.sim.odd import Kind, Odd
from harvestman.sim.plan import Plan
from harvestman.sim.web import Web
from harvestman.store.pages import read_pages
from harvestman.supervise import Supervisor
from harvestman.wiring import prepare

HOSTS, PAGES = 60, 8


def copied(web: Web, url: str) -> str:
    """The path of the page whose text a near-duplicate has; empty for any other page."""
    parts = urlsplit(url)
    host = web.by_name[parts.hostname or ""]
    found = web.look(host, parts.path)
    return web.path(host, found.like % PAGES) if isinstance(found, Odd) and found.kind is Kind.NEAR else ""


@pytest.mark.slow
def test_copies_are_labelled_and_followed(tmp_path: Path) -> None:
    with sim_web(tmp_path, hosts=HOSTS, pages=PAGES) as web:
        config = web.config(tmp_path / "data", workers=1, delay=0.2)
        layout = prepare(config, list(config.seeds))
        ending = asyncio.run(asyncio.wait_for(Supervisor(config, layout, lambda _: None).run(), 300))
    assert ending.reason == "finished"
    plan = Web(Plan(hosts=HOSTS, pages=PAGES))
    pages = {page.url: page for page in read_pages(Layout(tmp_path / "data").pages)}
    came = list(pages)
    pairs = right = 0
    for place, (url, page) in enumerate(pages.items()):
        path = copied(plan, url)
        if not path:
            continue
        original = next(other for other in came if urlsplit(other)[1:3] == (urlsplit(url)[1], path))
        pairs += 1
        if came.index(original) < place:
            right += page.near_duplicate_of == original and page.distance is not None
            assert page.links, "it is read like any other page"
        else:  # the copy says which page is canonical: that one took its place
            right += pages[original].near_duplicate_of is None
    assert pairs >= 8
    assert right >= 0.9 * pairs
