"""What the frontier learns and does with it: importance, jobs, traps, budgets, further visits. In virtual time."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from itertools import pairwise

import msgspec
import pytest
from virtual import HOUR, START, Drive, OneJob, Reply, config, in_a_loop, rules, web

from harvestman.config import Budget, Recrawl, Retry, Traps
from harvestman.embedded.state import RocksState
from harvestman.frontier.schedule import NEVER
from harvestman.model import Discovery, Instant, Job, Seconds, SiteKey, SiteRecord, Status, UrlRecord
from harvestman.policy.urls import path_of

DAY = 24 * HOUR


async def record(drive: Drive, url: str) -> UrlRecord:
    found = (await drive.state.records([drive.router.id_of(url)]))[0]
    assert found is not None
    return found


async def site(drive: Drive, name: str) -> SiteRecord:
    partition = drive.router.place(name)[2]  # type: ignore[arg-type]
    found = (await drive.state.sites([(partition, SiteKey(name))]))[0]
    assert found is not None
    return found


async def tell(drive: Drive, *links: Discovery) -> int:
    new = await drive.frontier.add([drive.router.route(link) for link in links], drive.now)
    await drive.commit()
    return new


def link(url: str, **told: object) -> Discovery:
    return msgspec.structs.replace(Discovery(url, 1, "https://elsewhere.test/"), **told)


# -- importance ------------------------------------------------------------------------------------------------


@in_a_loop
async def test_a_waiting_url_that_became_important_overtakes_the_others(state: RocksState) -> None:
    drive = Drive(state, web())
    urls = [f"https://a.test/item{n}" for n in range(40)]
    await tell(drive, *(link(url, cash=0.01) for url in urls))
    before = (await record(drive, urls[30])).bucket
    assert await tell(drive, link(urls[30], cash=50.0)) == 0, "it is not new"
    assert (await record(drive, urls[30])).bucket < before
    await drive.run()
    asked = [line.url for line in drive.pages()]
    assert asked.index(urls[30]) < 10
    assert sorted(asked) == sorted(urls), "each once: it left its old place"


@in_a_loop
async def test_what_is_being_asked_for_is_not_queued_again(state: RocksState) -> None:
    drive = Drive(state, web(page=Reply(took=5.0)))
    await tell(drive, link("https://a.test/p", cash=0.01))
    while not drive.pages():
        await drive.run(until=Instant(drive.now + 0.5))
        drive.now = Instant(drive.now + 0.5)
    await tell(drive, link("https://a.test/p", cash=99.0))
    await drive.run()
    assert len(drive.pages()) == 1


@in_a_loop
async def test_links_of_other_sites_make_a_site_known_and_its_own_do_not(state: RocksState) -> None:
    drive = Drive(state, web())
    await tell(
        drive,
        link("https://a.test/1", cash=3.0, via="https://b.test/"),
        link("https://a.test/2", cash=2.0, via="https://c.test/"),
        link("https://a.test/3", cash=9.0, via="https://www.a.test/"),
    )
    found = await site(drive, "a.test")
    assert found.linkers.bit_count() == 2
    assert found.cash == 5.0


# -- jobs ------------------------------------------------------------------------------------------------------


class Two(OneJob):
    """A second job that comes again every hour."""

    def get(self, number: int) -> Job:
        return Job(number, "test", START, scope="all", ttl=Seconds(HOUR if number == 2 else 0.0))


@in_a_loop
async def test_a_newer_job_asks_again_for_what_an_older_one_has_and_not_the_other_way_round(state: RocksState) -> None:
    drive = Drive(state, web())
    await tell(drive, link("https://a.test/p"))
    await drive.run()
    await tell(drive, link("https://a.test/p", job=2, depth=0))
    await drive.run()
    assert len(drive.pages()) == 2
    found = await record(drive, "https://a.test/p")
    assert (found.job, found.depth, found.status) == (2, 0, Status.FETCHED)
    await tell(drive, link("https://a.test/p", job=1))
    await drive.run()
    assert len(drive.pages()) == 2, "no ping-pong"
    jobs = drive.frontier.staging.jobs
    assert {number: (job.discovered, job.settled) for number, job in jobs.items()} == {1: (1, 1), 2: (1, 1)}


@in_a_loop
async def test_what_robots_txt_forbids_is_counted_once_however_many_jobs_want_it(state: RocksState) -> None:
    drive = Drive(state, web(robots=rules("User-agent: *\nDisallow: /p")))
    for job in (1, 2, 3):
        await tell(drive, link("https://a.test/p", job=job), link("https://a.test/open", job=job))
        await drive.run()
        assert drive.frontier.staging.blocked == 1
    drive.web = web()
    drive.now = Instant(drive.now + 25 * HOUR)
    await tell(drive, link("https://a.test/p", job=4), link("https://a.test/open", job=4))
    await drive.run()
    assert (await record(drive, "https://a.test/p")).status is Status.FETCHED
    assert drive.frontier.staging.blocked == 0, "it is allowed now"
    drive.web = web(robots=rules("User-agent: *\nDisallow: /"))
    drive.now = Instant(drive.now + 25 * HOUR)
    await tell(drive, link("https://a.test/p", job=5), link("https://a.test/open", job=5))
    await drive.run()
    assert await drive.statuses() == {Status.BLOCKED: 2}
    assert drive.frontier.staging.blocked == 2


@in_a_loop
async def test_what_is_under_way_when_a_newer_job_meets_it_becomes_its(state: RocksState) -> None:
    drive = Drive(state, web(page=Reply(took=5.0)))
    await tell(drive, link("https://a.test/x"))
    while not drive.pages():
        await drive.run(until=Instant(drive.now + 0.5))
        drive.now = Instant(drive.now + 0.5)
    await tell(drive, link("https://a.test/x", job=2, depth=0))
    await drive.run()
    assert len(drive.pages()) == 1
    found = await record(drive, "https://a.test/x")
    assert (found.job, found.depth, found.status) == (2, 0, Status.FETCHED)
    jobs = drive.frontier.staging.jobs
    assert {number: (job.discovered, job.settled) for number, job in jobs.items()} == {1: (1, 1), 2: (1, 1)}


@in_a_loop
async def test_a_jobs_recrawl_time_is_kept(state: RocksState) -> None:
    settings = config(recrawl=Recrawl(keep=True))
    drive = Drive(state, web(), settings=settings, jobs=Two())
    await tell(drive, link("https://a.test/p", job=2))
    await drive.run(until=Instant(START + 5.5 * HOUR), patience=DAY)
    times = [line.started for line in drive.pages()]
    assert len(times) == 6
    assert all(HOUR <= b - a < HOUR + 5 for a, b in pairwise(times))


# -- traps and budgets -----------------------------------------------------------------------------------------


def calendar(url: str, now: Instant) -> Reply:
    """Months without end, all alike, and ten honest pages."""
    path = path_of(url)
    if path == "/robots.txt":
        return Reply(404)
    if path.startswith("/calendar/"):
        month = int(path[10:14]) * 12 + int(path[15:17])
        return Reply(links=[f"https://a.test/calendar/{month // 12:04d}/{month % 12 + 1:02d}"], simhash=77)
    return Reply(links=["https://a.test/calendar/2026/01"], simhash=hash(path) | 1)


@in_a_loop
async def test_a_trap_is_stopped_named_and_its_urls_are_recorded_as_refused(state: RocksState) -> None:
    drive = Drive(state, calendar)
    good = [f"https://a.test/p{n}" for n in range(10)]
    await drive.add(good)
    await drive.run()
    asked = [line.url for line in drive.pages()]
    trapped = [url for url in asked if "/calendar/" in url]
    assert len(trapped) < 20
    assert set(good) <= set(asked)
    (trap,) = (await site(drive, "a.test")).traps.values()
    assert (trap.name, trap.refused) == ("calendar", 1)
    assert drive.frontier.intake.trapped == {"calendar": 1}
    statuses = await drive.statuses()
    assert statuses[Status.REFUSED] == 1
    assert statuses[Status.PENDING] == 0


@in_a_loop
async def test_urls_that_no_page_has_are_refused_on_sight(state: RocksState) -> None:
    drive = Drive(state, web())
    long = "https://a.test/" + "x" * 3_000
    await drive.add([long, "https://a.test/ok"])
    await drive.run()
    assert [line.url for line in drive.pages()] == ["https://a.test/ok"]
    found = await record(drive, long)
    assert found.status is Status.REFUSED
    assert found.visit is not None
    assert found.visit.reason.startswith("trap: url length ")


@in_a_loop
async def test_a_site_gets_its_pages_a_day_and_goes_on_the_next(state: RocksState) -> None:
    settings = config(budget=Budget(pages_per_day=20, unearned_per_day=20))
    drive = Drive(state, web(), settings=settings)
    await drive.add([f"https://a.test/{n}" for n in range(50)])
    await drive.add(["https://b.test/"])
    await drive.run(patience=HOUR / 2)
    assert len(drive.pages("a.test")) == 20
    assert len(drive.pages("b.test")) == 1
    await drive.run(patience=2 * DAY, until=Instant(START + 4 * DAY))
    days = [int(line.started // DAY) for line in drive.pages("a.test")]
    assert len(days) == 50
    assert max(days.count(day) for day in days) == 20


@in_a_loop
async def test_a_site_that_has_had_its_pages_of_the_crawl_is_done(state: RocksState) -> None:
    drive = Drive(state, web(), settings=config(budget=Budget(pages=5)))
    await drive.add([f"https://a.test/{n}" for n in range(12)])
    await drive.run()
    assert len(drive.pages()) == 5
    statuses = await drive.statuses()
    assert (statuses[Status.FETCHED], statuses[Status.REFUSED]) == (5, 7)
    assert await drive.frontier.horizon() == NEVER


# -- further visits --------------------------------------------------------------------------------------------


def living(every: float, **reply: object) -> object:
    """Pages that change so often."""

    def answer(url: str, now: Instant) -> Reply:
        if path_of(url) == "/robots.txt":
            return Reply(404)
        version = int(now / every)
        return replace(Reply(digest=sha256(f"{url} {version}".encode()).digest()), **reply)  # type: ignore[arg-type]

    return answer


@in_a_loop
async def test_a_page_that_changes_often_is_visited_often_and_a_still_one_seldom(state: RocksState) -> None:
    def pages(url: str, now: Instant) -> Reply:
        return living(6 * HOUR if "live" in url else 1e9)(url, now)  # type: ignore[operator,no-any-return]

    drive = Drive(state, pages, settings=config(recrawl=Recrawl(keep=True)))
    await drive.add(["https://live.test/p", "https://still.test/p"])
    await drive.run(until=Instant(START + 60 * DAY), patience=40 * DAY)
    live, still = len(drive.pages("live.test")), len(drive.pages("still.test"))
    assert live > 60, "about every six hours once that is known"
    assert 3 <= still < 20
    found = await record(drive, "https://still.test/p")
    assert found.change is not None
    assert found.change.changes == 0
    assert found.due > drive.now - DAY


@in_a_loop
async def test_without_keep_a_run_visits_what_was_due_at_its_start_and_ends(state: RocksState) -> None:
    drive = Drive(state, living(HOUR))  # type: ignore[arg-type]
    await drive.add(["https://news.test/"])
    await drive.run(patience=30 * DAY)
    assert len(drive.pages()) == 1
    assert await drive.frontier.horizon() == NEVER, "nothing keeps the run from ending"
    later = await drive.crash(pause=40 * DAY)
    await later.run(patience=30 * DAY)
    assert len(later.pages()) == 2


@in_a_loop
async def test_a_failed_visit_is_tried_again_and_what_we_have_stays_known(state: RocksState) -> None:
    broken = [False]

    def pages(url: str, now: Instant) -> Reply:
        reply = living(1e9)(url, now)  # type: ignore[operator]
        return Reply(500) if broken[0] and path_of(url) != "/robots.txt" else reply

    settings = config(recrawl=Recrawl(keep=True), retry=Retry(attempts=3, sick_after=2))
    drive = Drive(state, pages, settings=settings)
    await drive.add(["https://a.test/p"])
    await drive.run(patience=HOUR)
    first = await record(drive, "https://a.test/p")
    assert first.visit is not None
    broken[0] = True
    await drive.run(patience=40 * DAY, until=Instant(START + 40 * DAY))
    dead = await record(drive, "https://a.test/p")
    assert dead.status is Status.DEAD
    assert [attempt.reason for attempt in dead.trail][-2:] == ["HTTP 500", "HTTP 500 (attempt 3 of 3)"]
    assert dead.visit is not None
    assert dead.visit.digest == first.visit.digest


@in_a_loop
async def test_a_host_that_is_down_for_a_day_does_not_cost_its_urls(state: RocksState) -> None:
    def down(url: str, now: Instant) -> Reply:
        if path_of(url) == "/robots.txt":
            return Reply(404)
        return Reply(503) if 60 < now - START < DAY else Reply()

    drive = Drive(state, down)
    urls = [f"https://a.test/{n}/" for n in range(120)]
    await drive.add(urls)
    await drive.run(patience=DAY)
    assert (await drive.statuses())[Status.FETCHED] == 120, "failures in a row are the host's, not the URLs'"
    refused = [line for line in drive.journal if 60 < line.started - START < DAY]
    assert len(refused) <= 5 * 6, "five tries, then six hours of rest"


@in_a_loop
async def test_a_sitemaps_date_brings_a_visit_forward_once_its_site_has_proven_truthful(state: RocksState) -> None:
    changed = [0]

    def pages(url: str, now: Instant) -> Reply:
        if path_of(url) == "/robots.txt":
            return Reply(404)
        return Reply(digest=sha256(f"{url} {changed[0]}".encode()).digest())

    drive = Drive(state, pages, settings=config(recrawl=Recrawl(keep=True)))
    urls = [f"https://a.test/docs/{n}" for n in range(30)]
    await drive.add(urls)
    await drive.run(until=Instant(START + HOUR))
    drive.now = Instant(START + 2 * DAY)
    told = [link(url, kind="sitemap", modified=drive.now - HOUR) for url in urls]
    before = [(await record(drive, url)).due for url in urls]
    await tell(drive, *told)
    assert [(await record(drive, url)).due for url in urls] == before, "nothing is known of this site's word yet"
    changed[0] = 1
    await drive.run(until=Instant(START + 20 * DAY), patience=30 * DAY)
    found = await site(drive, "a.test")
    assert found.dated == found.truthful == 30
    drive.now = Instant(max(drive.now, START + 20 * DAY))
    planned = await record(drive, urls[0])
    assert planned.change is not None
    await tell(drive, link(urls[0], kind="sitemap", modified=planned.change.looked + 60))
    assert (await record(drive, urls[0])).due <= planned.due


@in_a_loop
async def test_a_farm_is_flagged_and_cut(state: RocksState) -> None:
    def farm(url: str, now: Instant) -> Reply:
        return Reply(404) if path_of(url) == "/robots.txt" else Reply(simhash=5)

    settings = config(
        budget=Budget(unearned_per_day=1_000, pages_per_day=1_000), traps=Traps(shape_urls=10_000, novelty_pages=50)
    )
    drive = Drive(state, farm, settings=settings)
    await drive.add([f"https://a.test/{n}/x" for n in range(600)])
    await drive.run(patience=HOUR / 2)
    found = await site(drive, "a.test")
    assert found.flagged.startswith("content farm")
    assert 200 <= found.today < 260, "it is stopped as soon as it is known for a farm: its budget is a tenth now"


# -- what a review found ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@in_a_loop
async def test_a_further_visit_under_way_that_a_newer_job_meets_ends_that_job(state: RocksState) -> None:
    drive = Drive(state, web(page=Reply(took=5.0)), settings=config(recrawl=Recrawl(keep=True)), jobs=Two())
    await tell(drive, link("https://a.test/x", job=2))
    while len(drive.pages()) < 2:
        await drive.run(until=Instant(drive.now + 0.5))
        drive.now = Instant(drive.now + 0.5)
    await tell(drive, link("https://a.test/x", job=3, depth=0))
    await drive.run(until=Instant(drive.now + 60))
    found = await record(drive, "https://a.test/x")
    assert (found.job, found.status) == (3, Status.FETCHED)
    jobs = drive.frontier.staging.jobs
    assert (jobs[3].discovered, jobs[3].settled) == (1, 1)


@in_a_loop
async def test_the_same_seeds_in_job_after_job_do_not_make_a_trap_of_a_site(state: RocksState) -> None:
    def pages(url: str, now: Instant) -> Reply:
        if path_of(url) == "/robots.txt":
            return Reply(404)
        return Reply(digest=sha256(url.encode()).digest(), simhash=int.from_bytes(sha256(url.encode()).digest()[:8]))

    drive = Drive(state, pages)
    urls = [f"https://a.test/p/item-{n}" for n in range(40)]
    for job in range(1, 6):
        await tell(drive, *(link(url, job=job, kind="seed") for url in urls))
        await drive.run()
    assert len(drive.pages()) == 200
    found = await site(drive, "a.test")
    assert (found.traps, found.dull, found.fetched) == ({}, 0, 40)


@in_a_loop
async def test_a_page_that_we_have_outlives_the_budget_of_its_site(state: RocksState) -> None:
    settings = config(budget=Budget(pages=3), recrawl=Recrawl(keep=True))
    drive = Drive(state, living(1e9), settings=settings)  # type: ignore[arg-type]
    await drive.add([f"https://a.test/{n}/x" for n in range(3)])
    await drive.run(until=Instant(START + 40 * DAY), patience=40 * DAY)
    assert len(drive.pages()) > 3, "further visits are no further pages"
    assert (await drive.statuses())[Status.FETCHED] == 3


@in_a_loop
async def test_of_two_links_in_one_batch_the_newer_jobs_counts(state: RocksState) -> None:
    drive = Drive(state, web())
    await tell(drive, link("https://a.test/x", job=1, cash=0.5), link("https://a.test/x", job=2, cash=0.1))
    assert (await record(drive, "https://a.test/x")).job == 2


@in_a_loop
async def test_a_run_with_a_visit_budget_ends_when_it_is_spent(state: RocksState) -> None:
    settings = config(recrawl=Recrawl(per_day=24))
    drive = Drive(state, living(1e9), settings=settings)  # type: ignore[arg-type]
    await drive.add([f"https://a.test/{n}/x" for n in range(50)])
    await drive.run(patience=300)
    later = await drive.crash(pause=80 * DAY)
    for _ in range(100):
        await later.run(patience=300, until=Instant(later.now + 300))
        if await later.frontier.horizon() > later.now + 300:
            break
    else:
        raise AssertionError("it goes on for ever")
    assert 1 <= len(later.pages()) - 50 <= 5


@in_a_loop
async def test_a_larger_budget_takes_effect_in_the_next_run(state: RocksState) -> None:
    small = config(budget=Budget(pages_per_day=2, unearned_per_day=2))
    drive = Drive(state, web(), settings=small)
    await drive.add([f"https://a.test/{n}/x" for n in range(6)])
    await drive.run(patience=300)
    assert len(drive.pages()) == 2
    drive.settings = config()
    heir = await drive.crash(pause=10)
    await heir.run(patience=300)
    assert len(heir.pages()) == 6


@in_a_loop
async def test_importance_told_while_a_url_waits_in_the_window_is_not_lost(state: RocksState) -> None:
    drive = Drive(state, web(), in_flight=1)
    urls = [f"https://a.test/{n}/x" for n in range(10)]
    await tell(drive, *(link(url, cash=0.01) for url in urls))
    await drive.run(requests=3)
    await tell(drive, *(link(url, cash=0.02) for url in urls))
    await drive.run()
    assert [(await record(drive, url)).cash for url in urls] == [0.02] * 10
