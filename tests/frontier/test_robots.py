"""robots.txt in the frontier: asked first, obeyed, explained; and what happens when it cannot be had."""

from __future__ import annotations

import pytest
from virtual import HOUR, Drive, Reply, Web, in_a_loop, rules, web

from harvestman.embedded.state import RocksState
from harvestman.frontier.book import Entry, RobotsBook
from harvestman.model import FailureKind, HostKey, Instant, Origin, Partition, RobotsRecord, Status
from harvestman.policy.urls import host_of, origin_of, path_of
from harvestman.ports import Changes


def moved(target: str) -> Reply:
    return Reply(301, {"location": target})


def robots_by_origin(table: dict[str, Reply]) -> Web:
    """A robots.txt per origin; every page answers."""

    def answer(url: str, now: Instant) -> Reply:
        return table.get(origin_of(url), Reply(404)) if path_of(url) == "/robots.txt" else Reply()

    return answer


@in_a_loop
async def test_what_robots_txt_forbids_is_never_asked_for_and_says_which_line(state: RocksState) -> None:
    drive = Drive(state, web(robots=rules("User-agent: *\n\nDisallow: /private/\n")))
    await drive.add(["https://a.test/private/x", "https://a.test/open", "https://a.test/private/y"])
    await drive.run()
    assert [path_of(line.url) for line in drive.journal] == ["/robots.txt", "/open"]
    (record,) = await state.records([drive.router.id_of("https://a.test/private/x")])
    assert record is not None
    assert record.status is Status.BLOCKED
    assert record.visit is not None
    assert record.visit.reason == "robots.txt line 3: /private/"
    assert drive.frontier.staging.blocked == 2
    assert await drive.queued() == 0


@in_a_loop
async def test_thousands_of_forbidden_urls_do_not_keep_other_hosts_waiting(state: RocksState) -> None:
    drive = Drive(state, robots_by_origin({"https://no.test": rules("User-agent: *\nDisallow: /")}))
    await drive.add([f"https://no.test/{i}" for i in range(2_000)], bucket=0)
    await drive.add(["https://yes.test/"], bucket=7)
    await drive.run()
    assert (await drive.statuses()) == {Status.BLOCKED: 2_000, Status.FETCHED: 1}


@in_a_loop
async def test_robots_txt_is_asked_again_after_a_day(state: RocksState) -> None:
    drive = Drive(state, web(robots=rules("User-agent: *\nDisallow: /a")))
    await drive.add(["https://a.test/b"])
    await drive.run()
    drive.now = Instant(drive.now + 25 * HOUR)
    await drive.add(["https://a.test/c"])
    await drive.run()
    assert [path_of(line.url) for line in drive.journal] == ["/robots.txt", "/b", "/robots.txt", "/c"]


@pytest.mark.parametrize(
    "reply", [Reply(500), Reply(503), Reply(429), Reply(failure=FailureKind.DNS), Reply(failure=FailureKind.TIMEOUT)]
)
@in_a_loop
async def test_unreachable_robots_txt_forbids_all_is_tried_again_and_makes_the_host_sick(
    reply: Reply, state: RocksState
) -> None:
    drive = Drive(state, robots_by_origin({"https://down.test": reply}))
    await drive.add([f"https://down.test/{i}" for i in range(100)])
    await drive.run(patience=5 * HOUR)
    assert all(line.robots for line in drive.journal)
    assert len(drive.journal) == 5, "five failures, then the sick list"
    assert (await drive.statuses()) == {Status.PENDING: 100}, "nothing is lost by it"
    assert await drive.frontier.horizon() >= drive.journal[-1].finished + 6 * HOUR


@in_a_loop
async def test_robots_txt_that_comes_back_lets_the_crawl_go_on(state: RocksState) -> None:
    tries: list[float] = []

    def answer(url: str, now: Instant) -> Reply:
        if path_of(url) != "/robots.txt":
            return Reply()
        tries.append(now)
        return Reply(503 if len(tries) < 4 else 404)

    drive = Drive(state, answer)
    await drive.add([f"https://back.test/{i}" for i in range(10)])
    await drive.run(patience=5 * HOUR)
    assert len(tries) == 4
    assert (await drive.statuses()) == {Status.FETCHED: 10}


@pytest.mark.parametrize("dead_first", [True, False])
@in_a_loop
async def test_of_two_origins_of_a_host_the_one_that_answers_is_crawled(dead_first: bool, state: RocksState) -> None:
    drive = Drive(state, robots_by_origin({"https://half.test": Reply(failure=FailureKind.CONNECT)}))
    dead = [f"https://half.test/s{i}" for i in range(60)]
    alive = [f"http://half.test/p{i}" for i in range(60)]
    for links in (dead, alive) if dead_first else (alive, dead):
        await drive.add(links)
    await drive.run(patience=HOUR, until=Instant(drive.now + 24 * HOUR))
    assert sum(1 for line in drive.pages() if line.url.startswith("http:")) == 60
    assert not [line for line in drive.pages() if line.url.startswith("https:")]
    assert (await drive.statuses()) == {Status.FETCHED: 60, Status.PENDING: 60}


FORBID_X = rules("User-agent: *\nDisallow: /x")


@pytest.mark.parametrize(
    ("owner", "target"),
    [
        ("http://a.test", "https://a.test/robots.txt"),
        ("https://a.test", "https://www.a.test/robots.txt"),
        ("https://a.test", "https://elsewhere.test/robots.txt"),
        ("https://a.test", "https://a.test/static/robots.txt"),
    ],
)
@in_a_loop
async def test_a_robots_txt_that_moved_is_read_where_it_is_now(owner: str, target: str, state: RocksState) -> None:
    def answer(url: str, now: Instant) -> Reply:
        if url == f"{owner}/robots.txt":
            return moved(target)
        return FORBID_X if url == target else Reply()

    drive = Drive(state, answer)
    await drive.add([f"{owner}/x", f"{owner}/y"])
    await drive.run()
    assert [line.url for line in drive.journal] == [f"{owner}/robots.txt", target, f"{owner}/y"]
    assert (await drive.statuses()) == {Status.BLOCKED: 1, Status.FETCHED: 1}
    assert all(gap >= 1 - 1e-6 for gaps in drive.gaps().values() for gap in gaps)


@in_a_loop
async def test_a_host_that_helps_out_is_still_asked_for_its_own_pages(state: RocksState) -> None:
    """Its queue lay on disk when another host's robots.txt led to it."""
    drive = Drive(state, robots_by_origin({"https://a.test": moved("https://helper.test/robots.txt")}))
    await drive.add(["https://helper.test/page"])
    drive.frontier._residents._hosts.clear()
    drive.frontier._schedule._heap.clear()
    drive.frontier._residents.overflow = False
    await drive.add(["https://a.test/page"])
    await drive.run()
    assert {line.url for line in drive.pages()} == {"https://a.test/page", "https://helper.test/page"}


@pytest.mark.parametrize("latency", [0.0, 0.05, 3.0])
@in_a_loop
async def test_two_hosts_whose_robots_txt_point_at_each_other_do_not_wait_for_ever(
    latency: float, state: RocksState
) -> None:
    def answer(url: str, now: Instant) -> Reply:
        if path_of(url) != "/robots.txt":
            return Reply()
        other = "b" if host_of(url) == "a.test" else "a"
        return Reply(302, {"location": f"https://{other}.test/robots.txt"}, took=latency)

    drive = Drive(state, answer)
    await drive.add(["https://a.test/page"])
    await drive.add(["https://b.test/page"])
    await drive.run()
    assert {line.url for line in drive.pages()} == {"https://a.test/page", "https://b.test/page"}
    assert sum(line.robots for line in drive.journal) <= 24, "at most five hops, each"


@in_a_loop
async def test_a_ring_of_three_and_a_robots_txt_that_leads_to_itself(state: RocksState) -> None:
    ring = {f"https://r{i}.test": moved(f"https://r{(i + 1) % 3}.test/robots.txt") for i in range(3)}
    drive = Drive(state, robots_by_origin({**ring, "https://self.test": moved("https://self.test/robots.txt")}))
    for origin in (*ring, "https://self.test"):
        await drive.add([f"{origin}/page"])
    await drive.run()
    assert (await drive.statuses()) == {Status.FETCHED: 4}


@in_a_loop
async def test_many_hosts_with_one_robots_txt_elsewhere_are_all_served(state: RocksState) -> None:
    def answer(url: str, now: Instant) -> Reply:
        if path_of(url) == "/robots.txt" and host_of(url) != "central.test":
            return moved("https://central.test/robots.txt")
        return FORBID_X if path_of(url) == "/robots.txt" else Reply()

    drive = Drive(state, answer)
    for i in range(40):
        await drive.add([f"https://m{i}.test/x", f"https://m{i}.test/y"])
    await drive.add(["https://central.test/y"])
    await drive.run()
    assert (await drive.statuses()) == {Status.BLOCKED: 40, Status.FETCHED: 41}
    assert all(gap >= 1 - 1e-6 for gaps in drive.gaps().values() for gap in gaps)


@in_a_loop
async def test_a_robots_txt_whose_new_home_is_down_forbids_everything(state: RocksState) -> None:
    drive = Drive(
        state,
        robots_by_origin({"https://a.test": moved("https://down.test/robots.txt"), "https://down.test": Reply(500)}),
    )
    await drive.add(["https://a.test/page"])
    await drive.run(patience=2 * HOUR, until=Instant(drive.now + 3 * HOUR))
    assert not drive.pages()
    assert (await drive.statuses()) == {Status.PENDING: 1}
    assert sum(line.host == "down.test" for line in drive.journal) == 5, "then it is sick, and left alone"
    (record,) = [await state.robots(drive.router.place(host_of("https://a.test/"))[2], Origin("https://a.test"))]
    assert record is not None
    assert "down.test is on the sick list" in record.reason
    assert HostKey("down.test") not in drive.frontier._residents, "it does not take up a place meanwhile"


@in_a_loop
async def test_the_book_holds_so_many_bytes_of_rules_and_finds_the_others_on_disk(state: RocksState) -> None:
    book = RobotsBook(state, "harvestman", most_bytes=1_800)
    partition, now = Partition(1), Instant(100.0)
    origins = [Origin(f"https://h{number}.test") for number in range(3)]
    records = [
        RobotsRecord(
            origin,
            f"#{origin}\nUser-agent: *\nDisallow: /private/\n".encode().ljust(1_000, b"#"),
            now,
            now,
            Instant(1e9),
        )
        for origin in origins
    ]
    for record in records:
        book.learn(record)
    assert [origin in book._entries for origin in origins] == [False, True, True]
    assert await book.record(partition, origins[0]) is records[0], "on its way"
    await state.commit(Changes(robots={origins[0]: (partition, records[0])}))
    book.committed()
    _, entry = await book.standing(partition, origins[0], now)
    assert entry is not None, "read again from disk"
    assert not entry.rules.verdict("/private/x").allowed
    assert [origin in book._entries for origin in origins] == [True, False, True]
    assert await book.record(partition, origins[0]) == records[0], "with its body"
    assert await book.record(partition, origins[1]) is None, "State has it, or nobody"
    told = await book.told(partition, entry, 7)
    assert told is not None
    assert (told.job, told.body) == (7, records[0].body)
    assert entry.bare.job == 7
    many = b"".join(b"Disallow: /%d/\n" % number for number in range(500))
    huge = RobotsRecord(Origin("https://huge.test"), b"User-agent: *\n" + many, now, now, Instant(1e9))
    assert book.learn(huge) is book._entries[huge.origin], "one is always held, however large"
    assert len(book._entries) == 1


@in_a_loop
async def test_a_file_that_many_origins_share_is_held_once(state: RocksState) -> None:
    book = RobotsBook(state, "harvestman", most_bytes=1_800)
    now = Instant(100.0)

    def learn(number: int, body: bytes) -> Entry:
        return book.learn(RobotsRecord(Origin(f"https://h{number}.test"), bytes(body), now, now, Instant(1e9)))

    body = b"User-agent: *\nDisallow: /private/\n".ljust(1_000, b"#")
    assert len({id(learn(number, body).rules) for number in range(50)}) == 1
    assert [await book.record(Partition(1), Origin(f"https://h{number}.test")) is not None for number in (0, 49)]
    for number in range(50):
        learn(number, body + b"%d" % number)
    held = [number for number in range(50) if Origin(f"https://h{number}.test") in book._entries]
    assert held == [48, 49], "each has its own now"
    assert book._bytes == sum(entry.rules.size for entry in book._entries.values())
    assert len(book._texts) == 2
