"""Which hosts are about to have their turn: their addresses can be looked up before."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from virtual import Drive, in_a_loop, web

from harvestman.embedded.state import RocksState
from harvestman.frontier.hosts import Host
from harvestman.frontier.schedule import Schedule
from harvestman.model import HostKey, Instant, Partition, SiteKey


def host(number: int) -> Host:
    return Host(HostKey(f"h{number}.test"), SiteKey(f"h{number}.test"), Partition(0))


@given(st.lists(st.floats(0.0, 10.0), max_size=80), st.floats(0.0, 10.0), st.integers(1, 100))
def test_those_whose_moment_comes_are_found_and_no_others(moments: list[float], until: float, most: int) -> None:
    schedule = Schedule(Random(1))
    for number, moment in enumerate(moments):
        schedule.push(host(number), Instant(moment))
    found = [host.name for host in schedule.soon(Instant(until), most)]
    coming = [f"h{number}.test" for number, moment in enumerate(moments) if moment <= until]
    assert len(found) == len(set(found)) <= most
    assert set(found) <= set(coming)
    assert len(found) == len(coming) or len(found) >= most // 2


def test_those_that_are_ready_are_among_them_and_stay_where_they_are() -> None:
    schedule = Schedule(Random(1))
    for number in range(20):
        schedule.push(host(number), Instant(number))
    schedule.wake(Instant(9.5))
    assert {one.name for one in schedule.soon(Instant(12.0), 100)} == {f"h{number}.test" for number in range(13)}
    assert (schedule.ready, schedule.waiting) == (10, 10)


@in_a_loop
async def test_a_host_whose_address_is_known_long_enough_is_none_of_them(state: RocksState) -> None:
    drive = Drive(state, web())
    await drive.add(["https://a.test/", "https://b.test/", "http://hidden.onion/"])
    frontier, now = drive.frontier, drive.now
    assert sorted(frontier.soon(Instant(now + 2), 100)) == ["a.test", "b.test"], "a .onion name is not for name servers"
    lease = await frontier.next(now)
    assert lease is not None
    assert lease.host not in frontier.soon(Instant(now + 2), 100)
