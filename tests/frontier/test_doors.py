"""The ways out that hosts share: their limits, and what a sick proxy does to the hosts behind it. In virtual time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from virtual import START, Asked, Drive, Reply, config, in_a_loop, web

from harvestman.config import Config, Politeness, Proxy, Retry
from harvestman.config import Egress as Addresses
from harvestman.embedded.state import RocksState
from harvestman.frontier.doors import Doors
from harvestman.model import DIRECT, Failure, FailureKind, Instant, Route, Seconds, Status
from harvestman.policy.egress import Egress

PROXY = "socks5h://127.0.0.1:9050"
ROUTE = Route(PROXY)


def behind(*, at_once: int = 100, addresses: tuple[str, ...] = (), per_address: int = 1000) -> Config:
    return msgspec.structs.replace(
        config(),
        proxies=() if addresses else (Proxy(("*",), PROXY, at_once=at_once),),
        egress=Addresses(addresses, per_address),
        politeness=Politeness(onion_delay=Seconds(5.0)),
    )


def most_at_once(journal: list[Asked]) -> int:
    moments = sorted([(line.started, 1) for line in journal] + [(line.finished, -1) for line in journal])
    now, most = 0, 0
    for _, step in moments:
        now += step
        most = max(most, now)
    return most


def failed(kind: FailureKind, at: float, took: float = 0.1) -> Failure:
    return Failure("http://a.test/", kind, "", "", Instant(at - took), Instant(at))


@in_a_loop
async def test_no_more_requests_at_once_than_the_proxy_bears_and_all_get_through(state: RocksState) -> None:
    drive = Drive(state, web(page=Reply(took=0.7)), settings=behind(at_once=3))
    for n in range(20):
        await drive.add([f"http://h{n}.test/p{i}" for i in range(5)])
    await drive.run()
    assert len(drive.pages()) == 100
    assert most_at_once(drive.journal) == 3
    assert all(gap >= 1.0 - 1e-6 for of in drive.gaps().values() for gap in of)


@in_a_loop
async def test_each_address_of_ours_has_its_own_limit(state: RocksState) -> None:
    drive = Drive(
        state, web(page=Reply(took=0.7)), settings=behind(addresses=("192.0.2.10", "192.0.2.11"), per_address=2)
    )
    for n in range(20):
        await drive.add([f"http://h{n}.test/p{i}" for i in range(3)])
    await drive.run()
    assert len(drive.pages()) == 60
    assert most_at_once(drive.journal) in (3, 4)


@in_a_loop
async def test_hosts_of_a_site_behind_a_proxy_are_asked_one_at_a_time(state: RocksState) -> None:
    """No address is known: the site stands for it. `Drive` fails when two requests to a site are under way."""
    drive = Drive(state, web(page=Reply(took=0.7)), settings=behind())
    for n in range(6):
        await drive.add([f"http://h{n}.site.test/p{i}" for i in range(3)])
    await drive.run()
    assert len(drive.pages()) == 18
    assert most_at_once(drive.journal) == 1


@in_a_loop
async def test_onion_hosts_keep_their_own_delay(state: RocksState) -> None:
    drive = Drive(state, web(), settings=behind())
    await drive.add([f"http://abc.onion/p{i}" for i in range(5)])
    await drive.add([f"http://abc.test/p{i}" for i in range(5)])
    await drive.run()
    gaps = {str(host): of for host, of in drive.gaps().items()}
    assert min(gaps["abc.onion"]) >= 5.0 - 1e-6
    assert min(gaps["abc.test"]) < 1.1


@dataclass
class Outage:
    """A proxy that is away for a while."""

    begins: float
    ends: float
    inner: Callable[[str, Instant], Reply]

    def __call__(self, url: str, now: Instant) -> Reply:
        if self.begins <= now < self.ends:
            return Reply(failure=FailureKind.PROXY, took=0.0)
        return self.inner(url, now)


@in_a_loop
async def test_while_a_proxy_is_away_few_requests_try_it_and_no_host_is_blamed(state: RocksState) -> None:
    drive = Drive(state, Outage(START + 5, START + 120, web()), settings=behind())
    for n in range(50):
        await drive.add([f"http://h{n}.test/p{i}" for i in range(10)])
    await drive.run()
    tried = [line for line in drive.journal if START + 6.0 <= line.started < START + 120]
    assert len(tried) < 15
    records = [record for record in state.url_records() if record.url.startswith("http")]
    assert {record.status for record in records} == {Status.FETCHED}
    assert len(records) == 500
    assert drive.now < START + 120 + 300


def test_a_failure_counts_once_however_many_requests_it_ends() -> None:
    doors = Doors(Egress((Proxy(("*",), PROXY, at_once=10),)), Retry())
    for _ in range(10):
        assert doors.opens(ROUTE, Instant(100.0)) == 100.0
        doors.enter(ROUTE)
    assert doors.opens(ROUTE, Instant(100.0)) > 100.0
    for _ in range(10):
        doors.leave(ROUTE, failed(FailureKind.PROXY, 101.0), 0.0)
    # One step of the back-off, not ten; those who ask come one after the other.
    assert 102.0 <= doors.opens(ROUTE, Instant(101.0)) < 102.1
    assert doors.opens(ROUTE, Instant(102.0)) == 102.0
    doors.enter(ROUTE)
    assert doors.opens(ROUTE, Instant(102.0)) > 102.0, "one at a time until one gets through"
    doors.leave(ROUTE, failed(FailureKind.PROXY, 102.5), 0.0)
    assert 104.5 <= doors.opens(ROUTE, Instant(102.5)) < 104.6
    doors.enter(ROUTE)
    doors.leave(ROUTE, failed(FailureKind.CONNECT, 105.0), 0.0)
    for _ in range(2):
        assert doors.opens(ROUTE, Instant(105.0)) == 105.0
        doors.enter(ROUTE)


def test_the_straight_way_has_no_door() -> None:
    doors = Doors(Egress(), Retry())
    for _ in range(5000):
        doors.enter(DIRECT)
    assert doors.opens(DIRECT, Instant(1.0)) == 1.0
