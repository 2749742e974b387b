"""A real crawl, a takedown in the middle, and on it goes: judged from the server's log."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from pathlib import Path

import pytest
from simweb import sim_web

from harvestman.cli.main import main
from harvestman.config import Config
from harvestman.jobs import Terms
from harvestman.layout import Layout
from harvestman.model import Instant, Seconds, Status
from harvestman.policy.blocklist import entry
from harvestman.policy.urls import host_of
from harvestman.sim.log import Asked, read
from harvestman.store.pages import read_pages
from harvestman.supervise import Supervisor
from harvestman.takedown import run as deeds
from harvestman.takedown.retention import Wanted, retain
from harvestman.views import View
from harvestman.wiring import prepare


def crawl(config: Config, seeds: list[str], terms: Terms | None = None) -> None:
    layout = prepare(config, seeds, terms)
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


def stored(data: Path) -> Counter[str]:
    return Counter(page.url for page in read_pages(data / "pages"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kinds", "comes_back"), [((), True), (("page",), True), (("response", "request", "revisit"), False)]
)
def test_a_page_that_lives_comes_back_after_retention(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kinds: tuple[str, ...], comes_back: bool
) -> None:
    """Unchanged as it is: in the log, for readers of the feed, and once."""
    data, terms = tmp_path / "data", Terms(ttl=Seconds(1.0), scope="all")

    def heard(after: str) -> tuple[Counter[str], set[str], str]:
        """By kind of event, how many; the pages among them; where they end."""
        assert main(["feed", str(data), "--json", "--after", after]) == 0
        events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        pages = {event["url"] for event in events if event["change"] in ("new", "changed")}
        return Counter(event["change"] for event in events), pages, events[-1]["cursor"] if events else after

    with sim_web(tmp_path, hosts=3, pages=4, profile="clean") as web:
        config = web.config(data, delay=0.1, patience=2.0)
        crawl(config, list(config.seeds), terms)
        before = stored(data)
        _, told, cursor = heard("0")
        assert told == {*before}
        now = Instant(time.time())
        done = retain(data, Wanted(now, kinds), "tester", now, False, lambda _: None)
        assert (done.pages, stored(data).total()) == ((before.total(), 0) if comes_back else (0, before.total()))
        changes, _, cursor = heard(cursor)
        assert changes["removed"] == done.pages
        time.sleep(1.0)
        crawl(config, [], terms)
    asked = [line for line in read(web.log) if isinstance(line, Asked) and line.arrival > now]
    again = [line.status for line in asked if line.target != "/robots.txt"]
    assert {*again} == ({200} if comes_back else {304})
    assert stored(data) == before
    changes, told, _ = heard(cursor)
    assert told == ({*before} if comes_back else set())
    assert not [page for page in read_pages(data / "pages") if page.near_duplicate_of == page.url]
