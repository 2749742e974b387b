"""A new process over the same State: nothing committed is lost, and a full interval is waited first."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from virtual import HOUR, START, Drive, Reply, config, in_a_loop, rules, web

from harvestman.config import Memory
from harvestman.embedded.state import RocksState
from harvestman.model import FailureKind, Instant, Status
from harvestman.policy.urls import host_of, path_of


def small_world(url: str, now: Instant) -> Reply:
    """30 hosts x 8 pages, a few redirects, failures, rules and slow answers; all can be had in the end."""
    name, path = host_of(url), path_of(url)
    number = int(name[1:-5])
    if path == "/robots.txt":
        return rules("User-agent: *\nDisallow: /hidden") if number % 3 else rules("User-agent: *\nCrawl-delay: 3")
    if path.startswith("/moved"):
        return Reply(302, {"location": f"https://h{(number + 1) % 30}.test/p0"})
    if path == "/dir":
        return Reply(301, {"location": f"https://{name}/dir/"})
    if path == "/shaky" and int(now) % 3:
        return Reply(503)
    page = int(path[2:]) if path[1:2] == "p" else 0
    near = f"https://{name}/p{page + 1}" if page < 7 else f"https://{name}/moved"
    far = f"https://h{(number * 3 + 1) % 30}.test/p{(page + 1) % 8}"
    return Reply(links=[near, far, f"https://{name}/hidden", f"https://{name}/dir", f"https://{name}/shaky"], took=0.3)


async def finished(drive: Drive) -> dict[str, Status]:
    found: dict[str, Status] = {}
    async for ids in drive.state.ids():
        found.update({r.url: r.status for r in await drive.state.records(ids) if r is not None})
    return found


def shortest(drive: Drive) -> float:
    gaps = [b.started - a.finished for lines in drive.by_host().values() for a, b in pairwise(lines)]
    return min(gaps)


def shortest_before_pages(drive: Drive) -> float:
    """On the hosts with a Crawl-delay; before a robots.txt it may be that nobody lived to learn of it."""
    slow = [lines for host, lines in drive.by_host().items() if int(host[1:-5]) % 3 == 0]
    return min(b.started - a.finished for lines in slow for a, b in pairwise(lines) if not b.robots)


async def undisturbed(directory: Path) -> dict[str, Status]:
    """The same crawl without a crash."""
    drive = Drive(RocksState(directory / "calm"), small_world)
    await drive.add(["https://h0.test/p0"])
    await drive.run(patience=12 * HOUR)
    found = await finished(drive)
    await drive.state.close()
    return found


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
@in_a_loop
async def test_crashes_at_random_points_lose_nothing_and_hurry_nobody(
    seed: int, state: RocksState, tmp_path: Path
) -> None:
    chance = Random(seed)
    memory = Memory(resident_hosts=chance.choice([4, 12, 1_000]), window=40, seen_capacity=5_000)
    drive = Drive(state, small_world, settings=config(memory=memory))
    await drive.add(["https://h0.test/p0"])
    for _ in range(12):
        await drive.run(requests=len(drive.journal) + chance.randrange(1, 40))
        if chance.random() < 0.7:
            # Die between settling and committing: all that this turn staged is gone.
            await drive.lease_out()
            drive.now = Instant(drive.now + chance.random())
            await drive.take_in()
        drive = await drive.crash(pause=chance.choice([0.0, 0.2, 30.0]))
    await drive.run(patience=12 * HOUR)
    statuses = await finished(drive)
    assert {url: status for url, status in statuses.items() if status is Status.PENDING} == {}
    assert await drive.queued() == 0
    assert shortest(drive) >= 1.0 - 1e-6
    assert shortest_before_pages(drive) >= 3.0 - 1e-6, "Crawl-delay outlives the process"
    assert set(statuses) == set(await undisturbed(tmp_path))


@in_a_loop
async def test_a_new_owner_waits_a_full_interval_though_no_request_was_recorded(state: RocksState) -> None:
    drive = Drive(state, web(robots=rules("User-agent: *\nCrawl-delay: 20")))
    await drive.add([f"https://a.test/{i}" for i in range(10)])
    await drive.run(requests=4)
    last = drive.journal[-1]
    heir = await drive.crash(pause=0.01)
    opened = heir.now
    await heir.run()
    after = [line for line in heir.journal if line.started > last.started]
    assert after[0].started >= opened + 20.0
    assert (await heir.statuses()) == {Status.FETCHED: 10}


@in_a_loop
async def test_uncommitted_changes_are_as_if_they_had_never_been(state: RocksState) -> None:
    drive = Drive(state, web())
    await drive.add(["https://a.test/1", "https://a.test/2"])
    await drive.run(requests=2)
    drive.frontier.take()
    heir = await drive.crash()
    await heir.run()
    assert (await heir.statuses()) == {Status.FETCHED: 2}
    assert await heir.add(["https://a.test/1"]) == 0


@in_a_loop
async def test_back_off_and_the_sick_list_outlive_the_process(state: RocksState) -> None:
    def answer(url: str, now: Instant) -> Reply:
        return Reply(404) if path_of(url) == "/robots.txt" else Reply(failure=FailureKind.CONNECT, took=0.0)

    drive = Drive(state, answer)
    await drive.add([f"https://ill.test/{i}" for i in range(9)])
    await drive.run(patience=HOUR)
    sick_until = await drive.frontier.horizon()
    heir = await drive.crash(pause=60.0)
    await heir.run(patience=HOUR)
    assert len(heir.journal) == len(drive.journal) == 6
    assert await heir.frontier.horizon() == pytest.approx(sick_until)


@in_a_loop
async def test_what_is_due_ripens_when_it_is_due_and_not_before(state: RocksState) -> None:
    told: list[str] = []

    def answer(url: str, now: Instant) -> Reply:
        if path_of(url) == "/robots.txt":
            return Reply(404)
        told.append(url)
        return Reply(503, {"retry-after": "100.7"} if len(told) > 1 else {"retry-after": "101"})

    drive = Drive(state, answer)
    await drive.add(["https://a.test/x"])
    await drive.run(requests=2)
    await drive.run(until=Instant(drive.now + 1))
    ((when, url),) = await state.due(Instant(drive.now + HOUR), 10)
    assert when == pytest.approx(drive.journal[-1].finished + 101, abs=0.002)
    drive.now = Instant(when - 0.01)
    await drive.turn()
    assert await state.due(Instant(drive.now + HOUR), 10) == [(when, url)]
    drive.now = Instant(when + 0.001)
    await drive.turn()
    assert await state.due(Instant(drive.now + HOUR), 10) == []
    assert (await state.records([url]))[0] is not None


@pytest.mark.parametrize("steps", [60, pytest.param(400, marks=pytest.mark.slow)])
@in_a_loop
async def test_every_due_entry_is_removed_under_the_moment_it_was_stored(state: RocksState, steps: int) -> None:
    """Milliseconds there and floats here: a due row that is not found again would ripen for ever."""
    drive = Drive(state, web(page=Reply(500)), now=START)
    for step in range(steps):
        drive.now = Instant(1_000_000_000 + step * 7_777_777.777 + step / 977)
        await drive.add([f"https://d{step}.test/x"])
        await drive.run(requests=len(drive.journal) + 2)
        await drive.run(until=Instant(drive.now + 0.2))
        (entry,) = await state.due(Instant(1e12), 10)
        drive.now = Instant(entry[0] + 0.001)
        await drive.frontier.ripen(drive.now)
        drive.frontier.changes.records.clear()
        drive.frontier.changes.queued.clear()
        await drive.commit()
        assert await state.due(Instant(1e12), 10) == []
