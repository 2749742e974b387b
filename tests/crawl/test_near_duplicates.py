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


def copied(web: Web, url: str) -> list[str]:
    """Where the page is whose text a near-duplicate has: its own place and that of a copy of it. Else nothing."""
    parts = urlsplit(url)
    host = web.by_name[parts.hostname or ""]
    found = web.look(host, parts.path)
    if not isinstance(found, Odd) or found.kind is not Kind.NEAR:
        return []
    return [f"http://{parts.netloc}{path}" for path in (web.path(host, found.like % PAGES), f"/copy/{found.like}")]


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
        [original, *_] = originals = copied(plan, url) or [""]
        read = [other for other in originals if other in pages]
        if not read:
            continue
        pairs += 1
        assert page.links, "it is read like any other page"
        if came.index(read[0]) < place:
            right += page.near_duplicate_of == read[0] and page.distance is not None
        else:  # the original takes the place of its copy, which names it; a copy of the original does not
            right += pages[read[0]].near_duplicate_of == (None if read[0] == original else url)
    assert pairs >= 8
    assert right >= 0.9 * pairs
