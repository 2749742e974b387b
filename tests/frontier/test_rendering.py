"""The queue for the browser: what is shown when, what is asked for in between, what outlives a crash.

The browser is a double here; the real one is in tests/render and tests/crawl/test_scripted.py. The rest is real.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from virtual import HOUR, START, Drive, OneJob, Reply, Web, config, in_a_loop, rules, web

from harvestman.config import Render
from harvestman.dispatch import Dispatch
from harvestman.embedded.bus import NoBus
from harvestman.embedded.roster import StaticRoster
from harvestman.embedded.state import RocksState
from harvestman.harvest import Harvest, Taken
from harvestman.model import Answer, Discovery, FailureKind, Instant, Lease, Status, UrlRecord
from harvestman.policy.rendering import ROUNDS
from harvestman.policy.urls import path_of
from harvestman.render.browser import Archived, Browser, Provide, Rendered, Wanted
from harvestman.rendering import MOST_WANTS, NO_BROWSER, Rendering
from harvestman.store.records import CONVERTED
from harvestman.store.warc import WarcWriter, read

PAGE = "https://shop.test/thing"
SCRIPT = "https://cdn.test/app.js"
DATA = "https://shop.test/api/thing.json"
SHELL = b'<!doctype html><title>Shop</title><div id="root"></div><script src="https://cdn.test/app.js"></script>'
PROSE = "A sentence of the page that only a browser can read. " * 20
FULL = f"<!doctype html><title>Shop</title><h1>A thing</h1><p>{PROSE}</p><a href='/other'>other</a>"


class Double(Browser):
    """Asks for one thing after the other, as scripts do, and shows the page when it has them all."""

    def __init__(self, *wants: str, costs: float = 0.1, html: str = FULL) -> None:
        self.wants, self.costs, self.html = wants, costs, html
        self.taken = 0.0
        self.shown: list[str] = []

    @property
    def cpu(self) -> float:
        return self.taken

    async def render(self, url: str, stored: Archived, provide: Provide, at: Instant) -> Rendered:
        assert stored.body == SHELL
        self.taken += self.costs
        self.shown.append(url)
        for want in self.wants:
            if await provide(Wanted(want, "script" if want.endswith(".js") else "fetch")) is None:
                return Rendered(SHELL.decode(), url, "", "", 0.0)
        return Rendered(self.html, url, "", "", 0.0)

    async def close(self) -> None:
        return None


class Worker(Drive):
    """A drive that harvests what comes, and has a browser."""

    def __init__(
        self, state: RocksState, directory: Path, browser: Browser | None, site: Web | None = None,
        now: Instant = START, share: float = 0.1,
    ) -> None:  # fmt: skip
        super().__init__(
            state, site or shells(), settings=config(render=Render(share=share)), now=now, resumed=now > START
        )
        self.warcs = directory / "warc"
        warc = WarcWriter(self.warcs, "w00", software="test", contact="", now=lambda: float(self.now))
        self.harvest = Harvest(self.settings, state, warc, self.router, OneJob(), Random(1), {})
        roster = StaticRoster(self.settings.partitions, 1, 0)
        self.dispatch = Dispatch(self.frontier, self.router, roster, NoBus(), state)
        self.rendering = Rendering(
            self.settings, state, self.frontier, self.harvest, self.router, browser, [self.warcs], 0, self.now
        )
        self.read: list[Taken] = []

    async def _settle(self, lease: Lease, reply: Reply, answer: Answer) -> None:
        if lease.robots or lease.record is None:
            await super()._settle(lease, reply, answer)
            return
        [taken] = await self.harvest.gather([(lease, lease.record, answer, None)])
        self.frontier.settle(lease, answer, taken.decision, taken.visit(), 0.5, taken.news)
        self.rendering.want(taken)
        await self.dispatch.route(taken.links, self.now)

    async def turn(self) -> None:
        await super().turn()
        for _ in range(3):
            await asyncio.sleep(0)
        taken, asks = await self.rendering.take(self.now) if self.rendering.ready else ([], [])
        self.read += taken
        await self.dispatch.route([*asks, *(link for each in taken for link in each.links)], self.now)
        await self.dispatch.route(await self.rendering.look(self.now, False), self.now)
        self.rendering.told(self.dispatch.answered())
        await self.commit()

    async def _following(self) -> float:
        return min(await super()._following(), max(await self.rendering.horizon(), self.now + 0.5))

    async def record(self, url: str = PAGE) -> UrlRecord:
        found = (await self.state.records([self.router.id_of(url)]))[0]
        assert found is not None
        return found


def shells(robots: str = "") -> Web:
    """Every page is a shell; scripts and data are there."""

    def answer(url: str, now: Instant) -> Reply:
        if path_of(url) == "/robots.txt":
            return rules(robots)
        if url.endswith(".js"):
            return Reply(headers={"content-type": "application/javascript"}, body=b"show()")
        if url.endswith(".json"):
            return Reply(headers={"content-type": "application/json"}, body=b'{"title": "A thing"}')
        return Reply(headers={"content-type": "text/html"}, body=SHELL)

    return answer


async def crawl(worker: Worker, urls: Sequence[str] = (PAGE,), **limits: float) -> None:
    await worker.add(urls)
    await worker.run(patience=limits.get("patience", 30.0))


@in_a_loop
async def test_a_shell_is_shown_when_all_that_it_needs_is_there(state: RocksState, tmp_path: Path) -> None:
    browser = Double(SCRIPT, DATA)
    worker = Worker(state, tmp_path, browser)
    await crawl(worker)
    assert browser.shown.count(PAGE) == 3, "without anything, with the script, with its data"
    asked = [line.url for line in worker.pages()]
    assert asked[:3] == [PAGE, SCRIPT, DATA]
    assert asked.count(SCRIPT) == 1
    assert min(worker.gaps()["shop.test"]) >= 0.999  # type: ignore[index]
    [taken] = [each for each in worker.read if each.lease.url == PAGE]
    page = taken.page
    assert page is not None
    assert page.rendered
    assert "only a browser can read" in page.text
    assert "https://shop.test/other" in asked, "its links are followed"
    assert taken.ref is not None
    kept = read(worker.warcs, taken.ref)
    assert (kept.body.decode(), kept.headers) == (FULL, {"content-type": CONVERTED})
    record = await worker.record()
    assert record.status is Status.FETCHED
    assert record.render is not None
    assert (record.render.due, record.render.rounds, record.render.outcome) == (0.0, 3, "ok")
    assert worker.rendering.waiting == 0
    assert await state.renders(Instant(1e12), 10) == []


@in_a_loop
async def test_two_addresses_of_one_shell_are_two_pages(state: RocksState, tmp_path: Path) -> None:
    browser = Double(SCRIPT, html="<title>x</title>" + FULL.replace("<a href='/other'>other</a>", ""))
    worker = Worker(state, tmp_path, browser)
    urls = [f"https://shop.test/{number}" for number in range(5)]
    await crawl(worker, urls)
    assert sorted(each.lease.url for each in worker.read) == urls
    assert [(await worker.record(url)).status for url in urls] == [Status.FETCHED] * 5
    assert len(worker.pages()) == 6, "the script was asked for once"


@in_a_loop
async def test_what_robots_txt_forbids_the_page_does_without(state: RocksState, tmp_path: Path) -> None:
    browser = Double(SCRIPT, DATA)
    worker = Worker(state, tmp_path, browser, shells("User-agent: *\nDisallow: /api/"))
    await crawl(worker)
    assert DATA not in [line.url for line in worker.pages()]
    assert [each.page.title for each in worker.read if each.page] == ["Shop"], "as far as it came"
    record = await worker.record()
    assert record.render is not None
    assert record.render.done > 0


@in_a_loop
async def test_a_page_that_always_wants_more_is_taken_as_it_is(state: RocksState, tmp_path: Path) -> None:
    class Greedy(Double):
        async def render(self, url: str, stored: Archived, provide: Provide, at: Instant) -> Rendered:
            self.wants = (f"https://shop.test/{len(self.shown)}.json",)
            return await super().render(url, stored, provide, at)

    browser = Greedy()
    worker = Worker(state, tmp_path, browser)
    await crawl(worker)
    assert browser.shown == [PAGE] * ROUNDS
    assert len(worker.read) == 1


@in_a_loop
async def test_what_waits_for_the_browser_outlives_the_process(state: RocksState, tmp_path: Path) -> None:
    first = Worker(state, tmp_path / "1", None)
    await crawl(first)
    assert first.rendering.alerts == [NO_BROWSER]
    assert first.rendering.waiting == 1
    job = first.frontier.staging.jobs[1]
    assert (job.discovered, job.settled, job.unrendered, job.over) == (1, 1, 1, False)
    await first.dispatch.route([first.router.route(Discovery(PAGE, 0, "", "seed", job=2))], first.now)
    waiting = {number: each.unrendered for number, each in first.frontier.staging.jobs.items()}
    assert waiting == {1: 0, 2: 1}, "a newer job wants the page"
    assert len(await state.renders(Instant(1e12), 10)) == 1
    second = Worker(state, tmp_path / "1", browser := Double(SCRIPT, html=PROSE), now=Instant(first.now + 60))
    await second.run(patience=30.0)
    assert browser.shown == [PAGE, PAGE]
    assert len(second.read) == 1
    assert [line.url for line in second.pages()][:1] == [SCRIPT], "the page is not asked for again"


@in_a_loop
async def test_a_page_that_is_due_again_is_shown_again_though_its_shell_is_the_same(
    state: RocksState, tmp_path: Path
) -> None:
    browser = Double(SCRIPT, DATA, html="<title>x</title>" + PROSE)
    worker = Worker(state, tmp_path, browser)
    worker.frontier.visits_until = Instant(1e12)
    await worker.add([PAGE])
    await worker.run(until=Instant(worker.now + 20 * 24 * HOUR), patience=400 * HOUR)
    asked = [line.url for line in worker.pages()]
    visits = asked.count(PAGE)
    assert visits >= 2
    assert len(worker.read) == visits
    assert asked.count(DATA) == visits, "what it shows is fetched anew"
    assert asked.count(SCRIPT) <= visits


@in_a_loop
async def test_the_browser_keeps_to_its_share_of_the_time(state: RocksState, tmp_path: Path) -> None:
    browser = Double(costs=5.0, html="<title>x</title>" + PROSE)
    worker = Worker(state, tmp_path, browser)
    urls = [f"https://h{number}.test/" for number in range(10)]
    await crawl(worker, urls, patience=HOUR)
    assert len(worker.read) == 10
    took = worker.now - START
    assert browser.cpu <= 0.1 * took + 10.0 + 5.0, "its share, what was saved up, and one more"
    assert took >= 350


@in_a_loop
async def test_without_a_share_nothing_is_queued(state: RocksState, tmp_path: Path) -> None:
    worker = Worker(state, tmp_path, Double(), shells(), share=0.0)
    await crawl(worker)
    assert (await worker.record()).render is None
    assert worker.read == []


@in_a_loop
async def test_whole_pages_are_left_alone(state: RocksState, tmp_path: Path) -> None:
    browser = Double()
    whole = Reply(headers={"content-type": "text/html"}, body=FULL.encode())
    worker = Worker(state, tmp_path, browser, web(page=whole))
    await crawl(worker)
    assert browser.shown == []


# -- what a review found -----------------------------------------------------------------------------------------------


CHAIN = ("https://shop.test/a.js", "https://shop.test/b.json", "https://shop.test/c.json")
PLAIN = "<title>x</title>" + PROSE


@pytest.mark.slow
@in_a_loop
async def test_behind_a_long_queue_pages_lose_nothing(state: RocksState, tmp_path: Path) -> None:
    browser = Double(*CHAIN, costs=20.0, html=PLAIN)
    worker = Worker(state, tmp_path, browser)
    urls = [f"https://h{number}.test/" for number in range(12)]
    await crawl(worker, urls, patience=HOUR)
    assert worker.now - START > 1_800, "longer than anything is waited for"
    assert [each.page.text for each in worker.read if each.page] == [PROSE.strip()] * 12


@in_a_loop
async def test_a_restart_between_two_rounds_loses_nothing(state: RocksState, tmp_path: Path) -> None:
    first = Worker(state, tmp_path, Double(*CHAIN, html=PLAIN))
    await first.add([PAGE])
    while len([line for line in first.pages() if line.url in CHAIN]) < 2:
        await first.run(until=Instant(first.now + 1))
        first.now = Instant(first.now + 1)
    second = Worker(state, tmp_path, browser := Double(*CHAIN, html=PLAIN), now=Instant(first.now + 5))
    await second.run(patience=30.0)
    assert [each.page.text for each in second.read if each.page] == [PROSE.strip()]
    assert len(browser.shown) <= 3, "what is there is asked for at once"


@in_a_loop
async def test_a_server_that_is_away_is_waited_for_once(state: RocksState, tmp_path: Path) -> None:
    def answer(url: str, now: Instant) -> Reply:
        return Reply(failure=FailureKind.CONNECT) if "cdn.test" in url else shells()(url, now)

    worker = Worker(state, tmp_path, browser := Double(SCRIPT), answer)
    await crawl(worker)
    assert len(browser.shown) == 2
    assert len(worker.read) == 1
    assert worker.now - START < 1_200


@in_a_loop
async def test_a_page_may_ask_for_so_much_and_no_more(state: RocksState, tmp_path: Path) -> None:
    class Greedy(Double):
        async def render(self, url: str, stored: Archived, provide: Provide, at: Instant) -> Rendered:
            for number in range(200):
                await provide(Wanted(f"https://victim.test/{len(self.shown)}-{number}.json", "fetch"))
            return await super().render(url, stored, provide, at)

    worker = Worker(state, tmp_path, Greedy(html=PLAIN))
    await crawl(worker, patience=HOUR)
    assert len(worker.pages("victim.test")) == MOST_WANTS
    assert len(worker.read) == 1


@in_a_loop
async def test_hidden_services_and_the_open_web_are_kept_apart(state: RocksState, tmp_path: Path) -> None:
    onion = "http://" + 56 * "a" + ".onion"
    worker = Worker(state, tmp_path, Double(f"{onion}/app.js", html=PLAIN))
    await crawl(worker)
    assert {line.host for line in worker.journal} == {"shop.test"}
    assert len(worker.read) == 1


@in_a_loop
async def test_an_old_page_will_do_as_a_resource(state: RocksState, tmp_path: Path) -> None:
    worker = Worker(state, tmp_path, browser := Double(DATA, html=PLAIN))
    await worker.add([DATA])
    await worker.run(patience=30.0)
    worker.now = Instant(worker.now + 5 * HOUR)
    await crawl(worker)
    assert len(browser.shown) == 2
    assert [each.page.text for each in worker.read if each.page] == [PROSE.strip()]
    assert len([line for line in worker.pages() if line.url == DATA]) == 1


@in_a_loop
async def test_a_page_that_breaks_the_browser_is_left_alone(state: RocksState, tmp_path: Path) -> None:
    class Broken(Double):
        async def render(self, url: str, stored: Archived, provide: Provide, at: Instant) -> Rendered:
            raise RuntimeError("x")

    worker = Worker(state, tmp_path, Broken())
    await crawl(worker)
    record = await worker.record()
    assert record.render is not None
    assert (record.render.due, record.render.outcome) == (0.0, "fault: RuntimeError")
    assert worker.rendering.waiting == 0


@in_a_loop
async def test_a_page_that_brings_the_worker_down_is_given_up(state: RocksState, tmp_path: Path) -> None:
    class Deadly(Double):
        async def render(self, url: str, stored: Archived, provide: Provide, at: Instant) -> Rendered:
            self.shown.append(url)
            return await asyncio.Future()  # nothing is heard of it again

    worker = Worker(state, tmp_path, Deadly())
    await worker.add([PAGE])
    for _life in range(ROUNDS + 1):
        for _ in range(20):
            await worker.turn()
            worker.now = Instant(worker.now + 1)
        worker = Worker(state, tmp_path, browser := Deadly(), now=worker.now)
    await worker.run(patience=30.0)
    assert browser.shown == []
    record = await worker.record()
    assert record.render is not None
    assert (record.render.due, record.render.outcome) == (0.0, "given up")


@in_a_loop
async def test_a_page_that_is_gone_is_not_shown_any_more(state: RocksState, tmp_path: Path) -> None:
    first = Worker(state, tmp_path, None)
    await crawl(first)
    first.web, first.frontier.visits_until = web(page=Reply(410)), Instant(1e12)
    await first.run(until=Instant(first.now + 30 * 24 * HOUR), patience=800 * HOUR)
    assert (await first.record()).status is Status.GONE
    second = Worker(state, tmp_path, browser := Double(html=PLAIN), now=Instant(first.now + 60))
    await second.run(patience=30.0)
    assert browser.shown == []
    assert await state.renders(Instant(1e12), 10) == []


@in_a_loop
async def test_what_the_server_asked_for_its_scripts_cannot_take_back(state: RocksState, tmp_path: Path) -> None:
    asks = SHELL.replace(b"<title>", b'<meta name="robots" content="noindex"><title>')

    def answer(url: str, now: Instant) -> Reply:
        said = shells()(url, now)
        return dataclasses.replace(said, body=asks) if said.body == SHELL else said

    class Forgetful(Double):
        async def render(self, url: str, stored: Archived, provide: Provide, at: Instant) -> Rendered:
            return Rendered(FULL, url)

    worker = Worker(state, tmp_path, Forgetful(), answer)
    await crawl(worker)
    assert next((each.page.noindex, each.page.nofollow) for each in worker.read if each.page) == (True, False)
