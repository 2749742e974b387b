"""Every promise of `ports.Bus`: sockets between workers, all in one loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from virtual import in_a_loop

from harvestman.embedded.bus import WINDOW, NoBus, SocketBus
from harvestman.model import Partition
from harvestman.ports import Parcel

PATIENCE = 10.0


@pytest.fixture
def sockets() -> Iterator[Path]:
    """A short path: a socket's name must fit into 108 bytes."""
    with TemporaryDirectory(prefix="hm-bus-") as directory:
        yield Path(directory)


async def opened(directory: Path, workers: int, index: int) -> SocketBus:
    bus = SocketBus(directory, workers, index, lambda partition: partition % workers)
    await bus.open()
    return bus


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not done():  # noqa: ASYNC110 - the bus tells nobody when something has come in
            await asyncio.sleep(0.002)


async def received(bus: SocketBus, count: int) -> list[Parcel]:
    """Take in this many parcels, without acknowledging them."""
    found: list[Parcel] = []

    def enough() -> bool:
        found.extend(bus.receive(1_000))
        return len(found) >= count

    await until(enough)
    return found


def parcels(partition: int, numbers: range, size: int = 10) -> list[Parcel]:
    return [Parcel(Partition(partition), n, b"%d" % n * size) for n in numbers]


@in_a_loop
async def test_1_parcels_reach_the_owner_of_their_partition_in_order(sockets: Path) -> None:
    buses = [await opened(sockets, 3, index) for index in range(3)]
    for start in range(0, 60, 20):
        await buses[0].publish([*parcels(1, range(start, start + 20)), *parcels(2, range(start, start + 20))])
    await buses[1].publish(parcels(2, range(100, 110)))
    one, two = await received(buses[1], 60), await received(buses[2], 70)
    assert one == parcels(1, range(60))
    assert [parcel for parcel in two if parcel.seq < 100] == parcels(2, range(60))
    assert [parcel for parcel in two if parcel.seq >= 100] == parcels(2, range(100, 110))
    assert buses[0].receive(10) == []
    for bus in buses:
        await bus.close()


@in_a_loop
async def test_1_a_large_parcel_arrives_whole(sockets: Path) -> None:
    left, right = await opened(sockets, 2, 0), await opened(sockets, 2, 1)
    large = parcels(1, range(7, 8), size=3_000_000)
    await left.publish(large)
    assert await received(right, 1) == large
    await left.close()
    await right.close()


@in_a_loop
async def test_2_a_parcel_is_delivered_only_when_its_receiver_says_it_is_durable(sockets: Path) -> None:
    left, right = await opened(sockets, 2, 0), await opened(sockets, 2, 1)
    await left.publish(parcels(1, range(5)))
    first = await received(right, 5)
    await asyncio.sleep(0.02)
    assert left.delivered() == []
    assert left.under_way() == 5
    await right.acknowledge()
    await until(lambda: left.under_way() == 0)
    assert left.delivered() == [(parcel.partition, parcel.seq) for parcel in first]
    assert left.delivered() == [], "each name once"
    await left.close()
    await right.close()


@in_a_loop
async def test_2_only_what_was_received_is_acknowledged(sockets: Path) -> None:
    left, right = await opened(sockets, 2, 0), await opened(sockets, 2, 1)
    await left.publish(parcels(1, range(10)))
    await until(lambda: len(right._inbox) == 10)
    assert len(right.receive(4)) == 4
    await right.acknowledge()
    await until(lambda: left.under_way() == 6)
    assert left.delivered() == [(Partition(1), n) for n in range(4)]
    assert [parcel.seq for parcel in right.receive(100)] == list(range(4, 10))
    await right.acknowledge()
    await until(lambda: left.under_way() == 0)
    await left.close()
    await right.close()


@in_a_loop
async def test_1_what_is_published_before_the_receiver_lives_is_received(sockets: Path) -> None:
    left = await opened(sockets, 2, 0)
    await left.publish(parcels(1, range(5)))
    assert left.under_way() == 5
    right = await opened(sockets, 2, 1)
    assert await received(right, 5) == parcels(1, range(5))
    await left.close()
    await right.close()


@in_a_loop
async def test_1_a_receiver_that_dies_before_its_commit_gets_everything_again(sockets: Path) -> None:
    left, right = await opened(sockets, 2, 0), await opened(sockets, 2, 1)
    await left.publish(parcels(1, range(10)))
    assert await received(right, 10) == parcels(1, range(10))
    await right.close()
    heir = await opened(sockets, 2, 1)
    await left.publish(parcels(1, range(10, 15)))
    assert await received(heir, 15) == parcels(1, range(15)), "in order, the old ones first"
    await heir.acknowledge()
    await until(lambda: left.under_way() == 0)
    assert len(left.delivered()) == 15
    await left.close()
    await heir.close()


@in_a_loop
async def test_1_a_sender_that_dies_sends_its_outbox_again_and_twice_is_harmless(sockets: Path) -> None:
    left, right = await opened(sockets, 2, 0), await opened(sockets, 2, 1)
    outbox = parcels(1, range(8))
    await left.publish(outbox)
    assert await received(right, 8) == outbox
    await left.close()
    heir = await opened(sockets, 2, 0)
    await heir.publish(outbox)
    assert await received(right, 8) == outbox, "a second time: the receiver's seen-set drops them"
    await right.acknowledge()
    await until(lambda: heir.under_way() == 0)
    assert sorted(heir.delivered()) == [(Partition(1), n) for n in range(8)]
    await heir.close()
    await right.close()


@in_a_loop
async def test_publishing_again_what_is_under_way_sends_it_once(sockets: Path) -> None:
    left, right = await opened(sockets, 2, 0), await opened(sockets, 2, 1)
    await left.publish(parcels(1, range(3)))
    await left.publish(parcels(1, range(5)))
    assert await received(right, 5) == parcels(1, range(5))
    await asyncio.sleep(0.02)
    assert right.receive(10) == []
    await left.close()
    await right.close()


@in_a_loop
async def test_3_a_slow_receiver_takes_the_room_away(sockets: Path) -> None:
    left, right = await opened(sockets, 2, 0), await opened(sockets, 2, 1)
    assert left.room() == WINDOW
    await left.publish(parcels(1, range(WINDOW - 6)))
    assert left.room() == 6
    await received(right, WINDOW - 6)
    assert left.room() == 6, "received is not yet durable"
    await right.acknowledge()
    await until(lambda: left.room() == WINDOW)
    await left.close()
    await right.close()


@in_a_loop
async def test_3_the_slowest_of_several_decides(sockets: Path) -> None:
    buses = [await opened(sockets, 3, index) for index in range(3)]
    await buses[0].publish([*parcels(1, range(30)), *parcels(2, range(10))])
    assert buses[0].room() == WINDOW - 30
    assert buses[0].under_way() == 40
    for bus in buses:
        await bus.close()


@pytest.mark.slow
@in_a_loop
async def test_deaths_without_end_lose_nothing(sockets: Path) -> None:
    """The receiver dies after every few parcels, before or after its commit."""
    left = await opened(sockets, 2, 0)
    sent = parcels(1, range(60))
    committed: set[int] = set()
    await left.publish(sent)
    for life in range(8):
        right = await opened(sockets, 2, 1)
        await until(lambda right=right: bool(right._inbox) or not left.under_way())  # type: ignore[misc]  # bound
        taken = right.receive(10)
        if life % 2:
            committed.update(parcel.seq for parcel in taken)
            await right.acknowledge()
            await asyncio.sleep(0.02)
        await right.close()
    right = await opened(sockets, 2, 1)
    rest = await received(right, left.under_way())
    assert committed | {parcel.seq for parcel in rest} == set(range(60))
    await left.close()
    await right.close()


@in_a_loop
async def test_a_closed_bus_takes_nothing_more_and_leaves_no_task(sockets: Path) -> None:
    left, right = await opened(sockets, 2, 0), await opened(sockets, 2, 1)
    await left.publish(parcels(1, range(1)))
    await received(right, 1)
    await right.close()
    await left.publish(parcels(1, range(1, 3)))
    await asyncio.sleep(0.02)
    assert right.receive(10) == []
    assert left.under_way() == 3
    await left.close()
    await asyncio.sleep(0.02)
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


@in_a_loop
async def test_a_single_worker_needs_no_bus() -> None:
    bus = NoBus()
    assert bus.room() > 0
    assert (bus.under_way(), bus.delivered(), bus.receive(5)) == (0, [], [])
    await bus.acknowledge()
    with pytest.raises(AssertionError):
        await bus.publish(parcels(0, range(1)))
    await bus.close()
