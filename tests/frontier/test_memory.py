"""RAM is bounded and nothing is stranded on disk; low priority is slow but never starves."""

from __future__ import annotations

import pytest
from virtual import HOUR, Drive, Reply, config, in_a_loop, rules, web

from harvestman.config import Memory
from harvestman.embedded.state import RocksState
from harvestman.model import FailureKind, Instant, Status
from harvestman.policy.urls import host_of, path_of

SMALL = Memory(resident_hosts=10, window=40, seen_capacity=10_000)


@in_a_loop
async def test_a_queue_longer_than_the_window_is_served_in_order(state: RocksState) -> None:
    drive = Drive(state, web(), settings=config(memory=Memory(resident_hosts=5, window=20, seen_capacity=1_000)))
    await drive.add([f"https://long.test/{i}" for i in range(300)])
    await drive.run()
    assert [path_of(line.url) for line in drive.pages()] == [f"/{i}" for i in range(300)]
    assert await drive.queued() == 0


@pytest.mark.parametrize("pages", [1, 3, pytest.param(70, marks=pytest.mark.slow)])
@in_a_loop
async def test_all_hosts_are_served_through_few_places(pages: int, state: RocksState) -> None:
    drive = Drive(state, web(), settings=config(memory=SMALL))
    hosts = 200 if pages < 10 else 25
    for i in range(hosts):
        await drive.add([f"https://h{i}.test/{p}" for p in range(pages)])
    await drive.run()
    assert (await drive.statuses()) == {Status.FETCHED: hosts * pages}
    assert await drive.queued() == 0
    assert drive.frontier.counts()["resident"] <= 10


@in_a_loop
async def test_links_found_on_the_way_reach_hosts_that_lost_their_place(state: RocksState) -> None:
    """Each page of each host links to a page of every third host: hosts go idle, are put out, and come back."""

    def answer(url: str, now: Instant) -> Reply:
        if path_of(url) == "/robots.txt":
            return Reply(404)
        number, depth = int(host_of(url)[1:-5]), int(path_of(url)[1:])
        links = [f"https://h{(number * 7 + k) % 60}.test/{depth + 1}" for k in range(3)] if depth < 6 else []
        return Reply(links=links)

    drive = Drive(state, answer, settings=config(memory=SMALL))
    await drive.add(["https://h0.test/0", "https://h1.test/0"])
    await drive.run()
    known = sum((await drive.statuses()).values())
    assert (await drive.statuses()) == {Status.FETCHED: known}
    assert known > 100
    assert await drive.queued() == 0


@in_a_loop
async def test_a_host_that_was_idle_when_strangers_took_its_place_gets_its_new_links(state: RocksState) -> None:
    drive = Drive(state, web(), settings=config(memory=Memory(resident_hosts=3, window=40, seen_capacity=1_000)))
    for i in range(3):
        await drive.add([f"https://old{i}.test/"])
    await drive.run()
    both = ["https://old0.test/more", "https://old1.test/more", *(f"https://new{i}.test/" for i in range(3))]
    await drive.add(both)
    await drive.run()
    assert len(drive.pages()) == 8
    assert await drive.queued() == 0


@in_a_loop
async def test_sick_hosts_come_back_though_few_places_and_a_round_in_progress(state: RocksState) -> None:
    def answer(url: str, now: Instant) -> Reply:
        if path_of(url) == "/robots.txt":
            return Reply(404)
        ill = host_of(url).startswith("a-ill") and now < began + 3 * HOUR
        return Reply(failure=FailureKind.CONNECT, took=0.0) if ill else Reply()

    drive = Drive(state, answer, settings=config(memory=SMALL))
    began = drive.now
    for i in range(6):
        await drive.add([f"https://a-ill{i}.test/{p}" for p in range(8)])
    for i in range(100):
        await drive.add([f"https://h{i}.test/{p}" for p in range(3)])
    await drive.run(patience=12 * HOUR)
    assert (await drive.statuses()) == {Status.FETCHED: 48 + 300}


@in_a_loop
async def test_dead_hosts_do_not_keep_the_living_from_their_places(state: RocksState) -> None:
    def answer(url: str, now: Instant) -> Reply:
        if host_of(url).startswith("dead"):
            return Reply(failure=FailureKind.DNS, took=0.0)
        return Reply(404) if path_of(url) == "/robots.txt" else Reply()

    drive = Drive(state, answer, settings=config(memory=SMALL))
    for i in range(30):
        await drive.add([f"https://dead{i}.test/"])
    for i in range(30):
        await drive.add([f"https://live{i}.test/"])
    await drive.run(until=Instant(drive.now + 4 * HOUR), patience=4 * HOUR)
    assert {line.host for line in drive.pages()} == {f"live{i}.test" for i in range(30)}


@pytest.mark.slow
@in_a_loop
async def test_robots_redirects_with_few_places(state: RocksState) -> None:
    def answer(url: str, now: Instant) -> Reply:
        name = host_of(url)
        if path_of(url) == "/robots.txt" and not name.startswith("www."):
            return Reply(301, {"location": f"https://www.{name}/robots.txt"})
        return rules("User-agent: *\nDisallow: /x") if path_of(url) == "/robots.txt" else Reply()

    drive = Drive(state, answer, settings=config(memory=SMALL))
    for i in range(60):
        await drive.add([f"https://s{i}.test/{p}" for p in range(3)])
        await drive.add([f"https://www.s{i}.test/{p}" for p in range(70 if i < 12 else 2)])
    await drive.run()
    assert (await drive.statuses()) == {Status.FETCHED: 60 * 3 + 12 * 70 + 48 * 2}
    assert await drive.queued() == 0


@pytest.mark.slow
@in_a_loop
async def test_ready_hosts_of_low_priority_are_not_starved_by_urgent_ones(state: RocksState) -> None:
    drive = Drive(state, web(), in_flight=1)
    for i in range(60):
        await drive.add([f"https://urgent{i}.test/{p}" for p in range(40)], bucket=0)
    await drive.add([f"https://low.test/{p}" for p in range(5)], bucket=7)
    await drive.run(requests=1_000)
    low = [n for n, line in enumerate(drive.journal) if line.host == "low.test"]
    assert len(low) == 6
    urgent = sum(1 for line in drive.journal[:200] if line.host.startswith("urgent"))
    assert urgent > 180


@in_a_loop
async def test_within_a_host_every_bucket_has_its_share(state: RocksState) -> None:
    drive = Drive(state, web())
    for bucket in range(8):
        await drive.add([f"https://one.test/{bucket}/{p}" for p in range(400)], bucket=bucket)
    await drive.run(requests=600)
    served = [int(path_of(line.url)[1]) for line in drive.pages()]
    assert set(served) == set(range(8))
    assert served.count(0) > served.count(1) > served.count(2) > served.count(6)


@pytest.mark.slow
@in_a_loop
async def test_within_a_host_a_stream_of_urgent_links_does_not_starve_the_rest(state: RocksState) -> None:
    fed = iter(range(1_000_000))
    drive = Drive(state, web(), in_flight=1)
    await drive.add([f"https://one.test/low/{p}" for p in range(10)], bucket=7)
    for _ in range(1_000):
        await drive.add([f"https://one.test/urgent/{next(fed)}" for _ in range(2)], bucket=0)
        await drive.run(requests=len(drive.journal) + 1)
        drive.now = Instant(drive.now + 0.1)
        await drive.turn()
    low = sum(1 for line in drive.pages() if "/low/" in line.url)
    assert low >= 5  # its weight's part is 7.8


@in_a_loop
async def test_an_urgent_link_overtakes_a_long_window(state: RocksState) -> None:
    drive = Drive(state, web(), in_flight=1)
    await drive.add([f"https://one.test/slow/{p}" for p in range(200)], bucket=6)
    await drive.run(requests=5)
    await drive.add(["https://one.test/news"], bucket=0)
    before = len(drive.journal)
    await drive.run(requests=before + 5)
    assert "https://one.test/news" in [line.url for line in drive.journal[before:]]
