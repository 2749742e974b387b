"""What the servers see: one request at a time, the promised gaps, the site's cap. In virtual time."""

from __future__ import annotations

from itertools import pairwise

import pytest
from virtual import Drive, Reply, Web, config, in_a_loop, rules, web

from harvestman.config import Politeness
from harvestman.embedded.state import RocksState
from harvestman.model import FailureKind, Instant, Seconds, Status
from harvestman.policy.urls import host_of, path_of


def numbered(host: str, count: int) -> list[str]:
    return [f"https://{host}/p{i}" for i in range(count)]


@in_a_loop
async def test_a_host_is_asked_one_at_a_time_with_the_full_delay_between(state: RocksState) -> None:
    drive = Drive(state, web(page=Reply(took=0.4)))
    for i in range(5):
        await drive.add(numbered(f"h{i}.test", 20))
    await drive.run()
    gaps = drive.gaps()
    assert len(drive.pages()) == 100
    assert all(gap >= 1.0 - 1e-6 for host in gaps for gap in gaps[host])
    assert max(max(of) for of in gaps.values()) < 1.1, "and no slower than promised, either"


@in_a_loop
async def test_robots_txt_comes_first_and_its_crawl_delay_is_kept_from_then_on(state: RocksState) -> None:
    drive = Drive(state, web(robots=rules("User-agent: *\nCrawl-delay: 7")))
    await drive.add(numbered("slow.test", 5))
    await drive.run()
    lines = drive.by_host()[host_of("https://slow.test/")]
    assert [line.robots for line in lines] == [True] + [False] * 5
    assert min(drive.gaps()[lines[0].host]) >= 7.0 - 1e-6


@in_a_loop
async def test_the_longest_crawl_delay_of_a_hosts_origins_holds(state: RocksState) -> None:
    def answer(url: str, now: Instant) -> Reply:
        if path_of(url) != "/robots.txt":
            return Reply()
        return rules("User-agent: *\nCrawl-delay: 9") if url.startswith("https:") else Reply(404)

    drive = Drive(state, answer)
    await drive.add([f"{scheme}://two.test/p{i}" for i in range(5) for scheme in ("http", "https")])
    await drive.run()
    lines = drive.journal
    before_https = [b.started - a.finished for a, b in pairwise(lines) if b.url[4] == "s"]
    assert len(drive.pages()) == 10
    assert min(gap for gap in before_https[1:]) >= 9.0 - 1e-6


@in_a_loop
async def test_a_site_is_asked_ten_times_a_second_however_many_hosts_it_has(state: RocksState) -> None:
    drive = Drive(state, web())
    for i in range(80):
        await drive.add(numbered(f"www{i}.big.test", 5))
    await drive.run()
    assert len(drive.pages()) == 400
    assert drive.busiest_second("big.test") <= 11
    whole = drive.journal[-1].started - drive.journal[0].started
    assert len(drive.journal) / whole <= 10.1


@in_a_loop
async def test_the_cap_holds_when_hosts_wait_behind_each_others_addresses(state: RocksState) -> None:
    def shared(host: str) -> str:
        return f"10.0.0.{sum(host.encode()) % 7}"

    drive = Drive(state, web(page=Reply(took=0.6)), addresses=shared)
    for i in range(40):
        await drive.add(numbered(f"www{i}.big.test", 4))
        await drive.add(numbered(f"other{i}.test", 4))
    await drive.run()
    assert len(drive.pages()) == 320
    assert drive.busiest_second("big.test") <= 11


@in_a_loop
async def test_hosts_that_share_an_address_take_turns(state: RocksState) -> None:
    drive = Drive(state, web(page=Reply(took=0.3)), addresses=lambda host: "192.0.2.1")
    for i in range(8):
        await drive.add(numbered(f"shared{i}.test", 4))
    await drive.run()
    lines = drive.journal
    assert len(drive.pages()) == 32
    gaps = [b.started - a.finished for a, b in pairwise(lines)]
    assert min(gaps) >= 0.1 - 1e-6, "never two at once, and the delay of an address between them"


@in_a_loop
async def test_the_delay_of_an_address_is_not_forgotten_when_gates_are_tidied_away(state: RocksState) -> None:
    tight = config()
    drive = Drive(state, web(), settings=tight, addresses=lambda host: f"192.0.2.{len(host) % 3}")
    for i in range(60):
        await drive.add(numbered(f"{'x' * (i % 3)}h{i}.test", 2))
    await drive.run()
    by_address: dict[str, list[tuple[float, float]]] = {}
    for line in drive.journal:
        by_address.setdefault(line.address, []).append((line.started, line.finished))
    gaps = [b[0] - a[1] for lines in by_address.values() for a, b in pairwise(lines)]
    assert min(gaps) >= 0.1 - 1e-6


@in_a_loop
async def test_a_lease_whose_address_turns_out_to_be_busy_is_refused_and_comes_back(state: RocksState) -> None:
    drive = Drive(state, web(), addresses=lambda host: "192.0.2.9")
    await drive.add(["https://one.test/"])
    await drive.add(["https://two.test/"])
    first, second = await drive.frontier.next(drive.now), await drive.frontier.next(drive.now)
    assert first is not None
    assert second is not None
    until = Instant(drive.now + 300)
    assert drive.frontier.claim(first, "192.0.2.9", until, drive.now)
    assert not drive.frontier.claim(second, "192.0.2.9", until, drive.now)
    assert drive.frontier.counts()["leased"] == 1
    assert await drive.frontier.next(drive.now) is None


@in_a_loop
async def test_an_address_that_was_asked_just_now_refuses_the_claim_until_its_delay_is_over(state: RocksState) -> None:
    drive = Drive(state, web(), addresses=lambda host: "192.0.2.9")
    await drive.add(["https://one.test/"])
    await drive.lease_out()
    drive.now = Instant(drive.now + 0.05)
    await drive.take_in()
    await drive.add(["https://two.test/"])
    lease = await drive.frontier.next(drive.now)
    assert lease is not None
    assert lease.host == "two.test"
    assert not drive.frontier.claim(lease, "192.0.2.9", Instant(drive.now + 300), drive.now)
    await drive.run()
    assert {line.host for line in drive.pages()} == {"one.test", "two.test"}


@pytest.mark.parametrize("status", [429, 503])
@in_a_loop
async def test_retry_after_holds_back_the_whole_host(status: int, state: RocksState) -> None:
    told: list[float] = []

    def answer(url: str, now: Instant) -> Reply:
        if path_of(url) == "/robots.txt" or told:
            return Reply(404 if path_of(url) == "/robots.txt" else 200)
        told.append(now)
        return Reply(status, {"retry-after": "600"})

    drive = Drive(state, answer)
    await drive.add(numbered("busy.test", 3))
    await drive.run()
    lines = drive.pages()
    assert lines[1].started - lines[0].finished >= 600
    assert (await drive.statuses())[Status.FETCHED] == 3


@in_a_loop
async def test_a_slow_host_is_asked_less_often(state: RocksState) -> None:
    drive = Drive(state, web(page=Reply(took=4.0)), settings=config(politeness=Politeness(delay=Seconds(1.0))))
    await drive.add(numbered("tired.test", 5))
    await drive.run()
    assert min(drive.gaps()[drive.journal[0].host][1:]) >= 4.0 - 1e-6


def failing(kinds: dict[str, FailureKind]) -> Web:
    """Hosts that never answer for a page."""

    def answer(url: str, now: Instant) -> Reply:
        if path_of(url) == "/robots.txt":
            return Reply(404)
        return Reply(failure=kinds[host_of(url)], took=0.0)

    return answer


@in_a_loop
async def test_five_failures_in_a_row_send_a_host_to_the_sick_list_for_six_hours(state: RocksState) -> None:
    drive = Drive(state, failing({"ill.test": FailureKind.CONNECT}))
    await drive.add(numbered("ill.test", 30))
    await drive.run(patience=5 * 3600.0)
    assert len(drive.pages()) == 5
    resting = await drive.frontier.horizon()
    assert resting >= drive.pages()[-1].finished + 6 * 3600
    await drive.run(patience=7 * 3600.0, requests=len(drive.journal) + 1)
    assert drive.journal[-1].started >= resting, "and is asked again after that"


@in_a_loop
async def test_a_url_that_fails_five_times_is_parked_dead_and_the_reason_kept(state: RocksState) -> None:
    def answer(url: str, now: Instant) -> Reply:
        if path_of(url) == "/bad":
            return Reply(failure=FailureKind.TIMEOUT)
        return Reply(404) if path_of(url) == "/robots.txt" else Reply()

    drive = Drive(state, answer)
    await drive.add(["https://mixed.test/bad", *numbered("mixed.test", 200)])
    await drive.run()
    assert sum(1 for line in drive.pages() if path_of(line.url) == "/bad") == 5
    (record,) = await state.records([drive.router.id_of("https://mixed.test/bad")])
    assert record is not None
    assert (record.status, record.attempts) == (Status.DEAD, 5)
    assert record.visit is not None
    assert "timeout" in record.visit.reason
    assert (await drive.statuses())[Status.FETCHED] == 200
