"""What a page's scripts ask for: fetched at its host's pace, once, and told to whoever asks. In virtual time."""

from __future__ import annotations

import msgspec
from virtual import HOUR, START, Drive, Reply, in_a_loop, rules, web

from harvestman.embedded.state import RocksState
from harvestman.model import ANSWER, RESOURCE, Discovery, FailureKind, Instant, Status, UrlRecord
from harvestman.policy.blocklist import Which, entry

PAGE = "https://shop.test/thing"
SCRIPT = "https://cdn.test/app.js"


def ask(url: str = SCRIPT, **told: object) -> Discovery:
    return msgspec.structs.replace(Discovery(url, 1, PAGE, RESOURCE), **told)


async def tell(drive: Drive, *found: Discovery) -> list[Discovery]:
    """Returns what is told in turn."""
    await drive.frontier.add([drive.router.route(each) for each in found], drive.now)
    await drive.commit()
    return [routed.found for routed in drive.frontier.intake.led_on()]


async def record(drive: Drive, url: str = SCRIPT) -> UrlRecord:
    found = (await drive.state.records([drive.router.id_of(url)]))[0]
    assert found is not None
    return found


@in_a_loop
async def test_it_is_asked_for_before_all_pages_and_at_their_pace(state: RocksState) -> None:
    drive = Drive(state, web())
    await drive.add([f"https://cdn.test/p{number}" for number in range(20)], cash=9.0)
    assert await tell(drive, ask()) == [], "it has to be fetched first"
    await drive.run()
    asked = [line.url for line in drive.pages("cdn.test")]
    assert asked.index(SCRIPT) <= 1
    assert asked.count(SCRIPT) == 1
    assert min(drive.gaps()["cdn.test"]) >= 0.999  # type: ignore[index]


@in_a_loop
async def test_whoever_asks_again_is_told_and_nothing_is_asked_twice(state: RocksState) -> None:
    drive = Drive(state, web())
    assert await tell(drive, ask()) == []
    assert await tell(drive, ask()) == [], "it is under way"
    await drive.run()
    [answer] = await tell(drive, ask(job=3))
    assert (answer.kind, answer.url, answer.via, answer.job) == (ANSWER, PAGE, SCRIPT, 3)
    assert answer.modified >= START
    await drive.run()
    assert len(drive.pages()) == 1
    found = await record(drive)
    assert (found.status, found.due, found.change) == (Status.FETCHED, 0.0, None), "it is never due by itself"
    assert drive.frontier.staging.jobs[1].pages == 0, "it is no page"
    assert drive.frontier.staging.jobs[1].settled == 1


@in_a_loop
async def test_a_copy_that_is_too_old_is_asked_for_anew(state: RocksState) -> None:
    drive = Drive(state, web())
    await tell(drive, ask())
    await drive.run()
    drive.now = Instant(drive.now + HOUR)
    assert await tell(drive, ask(modified=Instant(drive.now - 60))) == []
    await drive.run()
    assert len(drive.pages()) == 2
    [answer] = await tell(drive, ask(modified=Instant(drive.now - 60)))
    assert answer.modified > START + HOUR / 2


@in_a_loop
async def test_what_robots_txt_forbids_is_not_asked_for_and_cannot_be_had(state: RocksState) -> None:
    drive = Drive(state, web(robots=rules("User-agent: *\nDisallow: /api/")))
    forbidden = "https://cdn.test/api/data.json"
    await tell(drive, ask(forbidden), ask())
    await drive.run()
    assert [line.url for line in drive.pages()] == [SCRIPT]
    [answer] = await tell(drive, ask(forbidden))
    assert (answer.via, answer.ref) == (forbidden, None)
    assert (await record(drive, forbidden)).status is Status.BLOCKED


@in_a_loop
async def test_one_that_leads_elsewhere_is_told_as_it_is(state: RocksState) -> None:
    drive = Drive(state, web(page=Reply(301, headers={"location": "https://other.test/app.js"})))
    await drive.frontier.add([drive.router.route(ask())], drive.now)
    await drive.commit()
    await drive.run(until=Instant(drive.now + 5))
    found = await record(drive)
    assert (found.status, found.due) == (Status.REDIRECTED, 0.0)
    assert len(await tell(drive, ask())) == 1


@in_a_loop
async def test_one_that_cannot_be_had_is_told_when_all_attempts_have_failed(state: RocksState) -> None:
    drive = Drive(state, web(page=Reply(failure=FailureKind.TRUNCATED)))
    await tell(drive, ask())
    await drive.run(patience=100 * HOUR)
    assert (await record(drive)).status is Status.DEAD
    [answer] = await tell(drive, ask())
    assert answer.ref is None


@in_a_loop
async def test_one_that_is_linked_to_becomes_a_page(state: RocksState) -> None:
    drive = Drive(state, web())
    await tell(drive, ask())
    await drive.run()
    await tell(drive, Discovery(SCRIPT, 2, "https://b.test/"))
    await drive.run(until=Instant(drive.now + 60))
    assert len(drive.pages()) == 2
    found = await record(drive)
    assert (found.kind, found.status, found.depth) == ("a", Status.FETCHED, 2)
    assert found.change is not None
    assert drive.frontier.staging.jobs[1].pages == 1


@in_a_loop
async def test_what_was_taken_down_is_not_asked_for_again(state: RocksState) -> None:
    drive = Drive(state, web())
    await tell(drive, ask())
    await drive.run()
    drive.frontier.intake.blocked = Which([entry("url", SCRIPT)])
    drive.now = Instant(drive.now + 48 * HOUR)
    await tell(drive, ask(modified=drive.now), Discovery(SCRIPT, 2, "https://b.test/"))
    await tell(drive, Discovery(SCRIPT, 2, "https://b.test/"))
    await drive.run(until=Instant(drive.now + 60))
    assert len(drive.pages()) == 1


@in_a_loop
async def test_a_page_that_is_asked_for_as_a_resource_stays_one(state: RocksState) -> None:
    drive = Drive(state, web())
    await tell(drive, Discovery(SCRIPT, 2, "https://b.test/"))
    await drive.run(until=Instant(drive.now + 60))
    [answer] = await tell(drive, ask(modified=Instant(drive.now + HOUR)))
    assert answer.via == SCRIPT
    assert (await record(drive)).kind == "a"
