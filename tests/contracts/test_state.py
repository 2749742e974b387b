"""Every promise of `ports.State`, for every implementation. The numbers are those of its docstring."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest
from virtual import in_a_loop

from harvestman.embedded.state import RocksState
from harvestman.errors import StateError
from harvestman.model import (
    HostKey,
    HostRecord,
    Instant,
    Origin,
    Partition,
    RecordRef,
    RobotsRecord,
    Seconds,
    SiteKey,
    Status,
    UrlId,
    UrlRecord,
    Visit,
)  # fmt: skip
from harvestman.ports import Changes, Content, Near, Parcel, State

IMPLEMENTATIONS = ("rocks",)
"""Another implementation is another word here and another line in `opened`."""
P = Partition(3)
A = HostKey("a.test")


def opened(kind: str, directory: Path) -> State:
    """A State over what lies in the directory; opening it again must find what the last one committed."""
    assert kind == "rocks"
    return RocksState(directory / "state", cache_bytes=1 << 20, write_buffer=4 << 20)


@pytest.fixture(params=IMPLEMENTATIONS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def state(kind: str, tmp_path: Path) -> Iterator[State]:
    made = opened(kind, tmp_path)
    yield made
    in_a_loop(made.close)()


def url_id(number: int, partition: int = P) -> UrlId:
    return UrlId(partition.to_bytes(2) + number.to_bytes(16))


def record(number: int, **changes: object) -> UrlRecord:
    made = UrlRecord(f"https://a.test/{number}", Status.PENDING, 1, 4, number, Instant(1.5))
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def queue_of(numbers: range, bucket: int = 4, host: HostKey = A, partition: Partition = P) -> Changes:
    """Numbered URLs in a host's queue, their number for a sequence number."""
    changes = Changes()
    for n in numbers:
        url = url_id(n, partition)
        changes.records[url] = record(n, bucket=bucket)
        changes.new.append(url)
        changes.queued.append((partition, host, bucket, n, url))
    return changes


def everything() -> Changes:
    """A Changes with something in every field."""
    changes = queue_of(range(3))
    changes.due.append((Instant(5.0), url_id(7)))
    changes.hosts[A] = (P, HostRecord(A, SiteKey("a.test"), Instant(9.0), Seconds(2.0), 1, Instant(0.0), 4, [1, 2]))
    rules = RobotsRecord(Origin("https://a.test"), b"x", Instant(1.0), Instant(1.0), Instant(1.0))
    changes.robots[rules.origin] = (P, rules)
    changes.contents[b"d" * 32] = Content("https://a.test/0", Instant(1.0), "sha256:x", RecordRef("f", 1, 2))
    changes.near[1 << 63] = Near("https://a.test/0", Instant(1.0), "https://a.test/", b"s" * 32)
    changes.outbox.append(Parcel(Partition(9), 77, b"links"))
    changes.marks["warc"] = b"here"
    return changes


async def known(state: State, ids: Sequence[UrlId]) -> list[UrlId]:
    """Those of these that have a record."""
    return [url for url, found in zip(ids, await state.records(ids), strict=True) if found is not None]


async def all_there(state: State) -> list[bool]:
    """For each part of `everything`: is it there?"""
    return [
        len(await known(state, [url_id(n) for n in range(3)])) == 3,
        len(await state.window(P, A, 4, 0, 10)) == 3,
        await state.due(Instant(10.0), 10) == [(Instant(5.0), url_id(7))],
        (await state.hosts([(P, A)]))[0] is not None,
        await state.robots(P, Origin("https://a.test")) is not None,
        (await state.contents([b"d" * 32]))[0] is not None,
        [len(found) for found in await state.near([(1 << 63, 0)], 0)] == [1],
        await state.outbox(10) == [Parcel(Partition(9), 77, b"links")],
        await state.mark("warc") == b"here",
        len(await state.fresh()) == 3,
    ]


# -- 1, 2: atomic and durable -----------------------------------------------------------------------------------------

CHILD = """
import asyncio, sys
from pathlib import Path
from contracts.test_state import opened, page_at, queue_of, spread

async def main() -> None:
    state = opened(sys.argv[1], Path(sys.argv[2]))
    for batch in range(100_000):
        numbers = range(batch * 50, batch * 50 + 50)
        changes = queue_of(numbers)
        changes.near.update({spread(number): page_at(number) for number in numbers})
        await state.commit(changes)
        print(batch, flush=True)

asyncio.run(main())
"""


def commit_until_killed(kind: str, directory: Path, acknowledged: int) -> int:
    """Run a process that commits batches of 50; kill -9 it. Returns how many it had acknowledged by then."""
    root = Path(__file__).parents[2]
    environment = {"PYTHONPATH": f"{root / 'src'}:{root / 'tests'}"}
    command = [sys.executable, "-c", CHILD, kind, str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as child:
        assert child.stdout is not None
        last = -1
        for line in child.stdout:
            last = int(line)
            if last >= acknowledged:
                break
        child.send_signal(signal.SIGKILL)
        with contextlib.suppress(ValueError):
            for line in child.stdout:
                last = int(line)
    return last + 1


@pytest.mark.parametrize("after", [1, pytest.param(150, marks=pytest.mark.slow)])
def test_1_2_kill_9_loses_no_acknowledged_commit_and_leaves_no_half_of_one(
    kind: str, tmp_path: Path, after: int
) -> None:
    acknowledged = commit_until_killed(kind, tmp_path, after)

    @in_a_loop
    async def check() -> None:
        state = opened(kind, tmp_path)
        found = await known(state, [url_id(n) for n in range((acknowledged + 2) * 50)])
        numbers = [int.from_bytes(url[2:]) for url in found]
        assert len(numbers) >= acknowledged * 50 > 0
        assert len(numbers) % 50 == 0
        assert numbers == list(range(len(numbers)))
        assert len(await state.window(P, A, 4, 0, 10**6)) == len(numbers), "queue and records are of one commit"
        near = await state.near([(spread(n), 0) for n in range(len(numbers) + 50)], 0)
        assert [page for found in near for _, _, page in found] == [page_at(n) for n in numbers], "and so is this"
        await state.close()

    check()


@in_a_loop
async def test_1_every_part_of_a_commit_is_kept(state: State) -> None:
    assert not any(await all_there(state))
    await state.commit(everything())
    assert all(await all_there(state))


@in_a_loop
async def test_2_all_of_it_is_there_after_reopening(kind: str, tmp_path: Path) -> None:
    state = opened(kind, tmp_path)
    await state.commit(everything())
    await state.sync()
    await state.close()
    again = opened(kind, tmp_path)
    assert all(await all_there(again))
    assert (await again.records([url_id(0), url_id(99)])) == [record(0), None]
    await again.close()


@in_a_loop
async def test_1_removals_and_additions_of_one_commit(state: State) -> None:
    await state.commit(everything())
    moved = Changes(
        unqueued=[(P, A, 4, 0), (P, A, 4, 1)],
        undue=[(Instant(5.0), url_id(7))],
        due=[(Instant(6.0), url_id(7)), (Instant(5.0), url_id(8))],
        delivered=[(Partition(9), 77)],
        outbox=[Parcel(Partition(9), 78, b"more")],
    )
    await state.commit(moved)
    assert [entry.seq for entry in await state.window(P, A, 4, 0, 10)] == [2]
    assert await state.due(Instant(10.0), 10) == [(Instant(5.0), url_id(8)), (Instant(6.0), url_id(7))]
    assert await state.outbox(10) == [Parcel(Partition(9), 78, b"more")]


# -- 3: windows -------------------------------------------------------------------------------------------------------


@in_a_loop
async def test_3_a_window_is_in_order_from_the_given_number_on_and_of_one_bucket_of_one_host(state: State) -> None:
    await state.commit(queue_of(range(10, 20)))
    await state.commit(queue_of(range(30, 33), bucket=5))
    await state.commit(queue_of(range(40, 43), host=HostKey("a.test-2")))
    await state.commit(queue_of(range(50, 53), partition=Partition(4)))
    entries = await state.window(P, A, 4, 12, 5)
    assert [(entry.bucket, entry.seq, entry.id) for entry in entries] == [(4, n, url_id(n)) for n in range(12, 17)]
    assert entries[0].record.url == "https://a.test/12"
    assert [entry.seq for entry in await state.window(P, A, 4, 18, 50)] == [18, 19]
    assert [entry.seq for entry in await state.window(P, A, 5, 0, 50)] == [30, 31, 32]
    assert await state.window(P, A, 6, 0, 50) == []


@in_a_loop
async def test_3_the_largest_numbers_sort_as_numbers(state: State) -> None:
    numbers = [0, 1, 255, 256, 2**32, 1_700_000_000_000_000, 2**53 + 1]
    for n in reversed(numbers):
        await state.commit(queue_of(range(n, n + 1)))
    assert [entry.seq for entry in await state.window(P, A, 4, 0, 50)] == numbers


@in_a_loop
async def test_3_what_was_removed_before_the_start_costs_nothing(state: State) -> None:
    await state.commit(queue_of(range(20_000)))
    await state.commit(Changes(unqueued=[(P, A, 4, n) for n in range(19_990)]))

    async def cost(start: int) -> float:
        before = time.process_time()
        for _ in range(20):
            assert len(await state.window(P, A, 4, start, 10)) == 10
        return time.process_time() - before

    await cost(19_990)
    from_cursor, from_scratch = min([await cost(19_990) for _ in range(5)]), await cost(0)
    assert from_cursor < from_scratch / 3


# -- 4, 5, 6: records, due, waiting hosts -----------------------------------------------------------------------------


@in_a_loop
async def test_4_records_are_exact(state: State) -> None:
    await state.commit(queue_of(range(0, 2_000, 2)))
    asked = [url_id(n) for n in range(2_000)]
    assert await known(state, asked) == [url_id(n) for n in range(0, 2_000, 2)]
    assert await known(state, [url_id(0, partition=4), url_id(0), url_id(0)]) == [url_id(0), url_id(0)]
    assert await state.records([]) == []


def _dated(name: str, entries: list[tuple[Instant, UrlId]]) -> Changes:
    changes = Changes()
    getattr(changes, name).extend(entries)
    return changes


@in_a_loop
async def test_5_what_is_due_is_in_order_over_all_partitions_and_never_too_early(state: State) -> None:
    moments = [(Instant(100.0 + (n * 37) % 50), url_id(n, partition=n % 5)) for n in range(50)]
    for name, look in (("due", state.due), ("revisit", state.revisits), ("render", state.renders)):
        assert await look(Instant(1e12), 10) == [], "each has entries of its own"
        await state.commit(_dated(name, moments))
        found = await look(Instant(120.0), 1_000)
        assert found == sorted(entry for entry in moments if entry[0] <= 120.0)
        assert await look(Instant(120.0), 3) == found[:3]
        assert await look(Instant(99.999), 10) == []
        await state.commit(_dated(f"un{name}", found))
        assert await look(Instant(120.0), 1_000) == []


@in_a_loop
async def test_5_a_due_entry_is_removed_by_the_moment_it_was_returned_with(state: State) -> None:
    moments = [Instant(base + n * 1.001 + n / 997) for base in (1.0, 1.08e9, 1.7e9, 3e9) for n in range(200)]
    await state.commit(Changes(due=[(when, url_id(n)) for n, when in enumerate(moments)]))
    found = await state.due(Instant(1e12), 10_000)
    assert all(abs(when - moments[int.from_bytes(url[2:])]) < 0.002 for when, url in found)
    await state.commit(Changes(undue=found))
    assert await state.due(Instant(1e12), 10_000) == []


@in_a_loop
async def test_6_every_host_with_a_queue_is_visited_once_in_a_fixed_order(state: State) -> None:
    names = [HostKey(name) for name in ("a", "a-b", "a.b", "aa", "b", "a.b.c", "xn--a", "1.2.3.4", "::1", "z")]
    for n, name in enumerate(names):
        await state.commit(queue_of(range(n * 10, n * 10 + 3), host=name, partition=Partition(n % 3)))
    await state.commit(Changes(unqueued=[(Partition(0), HostKey("a"), 4, n) for n in range(3)]))
    whole = await state.waiting_hosts(None, 1_000)
    assert sorted(whole) == sorted((Partition(n % 3), name) for n, name in enumerate(names) if name != "a")
    for step in (1, 2, 4):
        walked: list[tuple[Partition, HostKey]] = []
        while batch := await state.waiting_hosts(walked[-1] if walked else None, step):
            walked += batch
        assert walked == whole
    assert await state.waiting_hosts((Partition(1), HostKey("never heard of")), 100) is not None


@in_a_loop
async def test_6_one_may_go_on_after_a_host_whose_queue_is_empty_now(state: State) -> None:
    for n, name in enumerate("abc"):
        await state.commit(queue_of(range(n, n + 1), host=HostKey(name)))
    await state.commit(Changes(unqueued=[(P, HostKey("b"), 4, 1)]))
    assert await state.waiting_hosts((P, HostKey("b")), 10) == [(P, HostKey("c"))]


# -- 7 and the rest ---------------------------------------------------------------------------------------------------


@in_a_loop
async def test_7_reads_see_every_earlier_commit(state: State) -> None:
    for n in range(50):
        await state.commit(Changes(records={url_id(1): record(1, attempts=n)}, marks={"n": b"%d" % n}))
        (found,) = await state.records([url_id(1)])
        assert found is not None
        assert (found.attempts, await state.mark("n")) == (n, b"%d" % n)


# -- 8: near-duplicates -----------------------------------------------------------------------------------------------


def page_at(number: int) -> Near:
    return Near(f"https://a.test/{number}", Instant(float(number)))


def spread(number: int) -> int:
    """A SimHash that looks like one."""
    return (number + 1) * 0x9E3779B97F4A7C15 % (1 << 64)


def turned(simhash: int, bits: Iterable[int]) -> int:
    for bit in bits:
        simhash ^= 1 << bit
    return simhash


@pytest.mark.parametrize("seed", range(3))
@in_a_loop
async def test_8_near_finds_all_within_three_bits_and_none_beyond_the_most(state: State, seed: int) -> None:
    chance = Random(seed)
    known = {chance.getrandbits(64): page_at(number) for number in range(500)}
    await state.commit(Changes(near=dict(known)))
    weak = sum(1 << bit for bit in chance.sample(range(64), 12))
    asked = [turned(chance.choice(list(known)), chance.sample(range(64), chance.randrange(9))) for _ in range(200)]
    found = await state.near([(simhash, weak) for simhash in asked], 5)
    for simhash, near in zip(asked, found, strict=True):
        far = {other: ((other ^ simhash) & ~weak).bit_count() for other in known}
        told = {other: distance for distance, other, _ in near}
        assert {other: far[other] for other in told} == told
        assert {other for other in known if far[other] <= 3} <= set(told), f"seed {seed}"
        assert all(distance <= 5 for distance in told.values())
        assert all(page == known[other] for _, other, page in near)
        assert [distance for distance, _, _ in near] == sorted(told.values())


@in_a_loop
async def test_8_near_forgets_what_is_withdrawn_and_takes_the_latest_word(state: State) -> None:
    await state.commit(Changes(near={7: page_at(1), 1 << 40: page_at(2)}))
    await state.commit(Changes(near={7: page_at(3), 1 << 40: None}))
    assert await state.near([(7, 0), (1 << 40, 0)], 0) == [[(0, 7, page_at(3))], []]
    await state.commit(Changes(near={7: None, 1 << 40: page_at(4)}))
    assert await state.near([(7, 0), (1 << 40, 0)], 0) == [[], [(0, 1 << 40, page_at(4))]]


@in_a_loop
async def test_8_near_is_bounded_and_forgets_the_oldest(kind: str, tmp_path: Path) -> None:
    """A thousand pages whose SimHashes share a band: what was committed last is found, now and after a restart."""
    state = opened(kind, tmp_path)
    for number in range(1000):
        await state.commit(Changes(near={number << 16: page_at(number)}))
    for _ in range(2):
        last = await state.near([(999 << 16, 0)], 0)
        first = await state.near([(0, 0)], 0)
        assert (last, first) == ([[(0, 999 << 16, page_at(999))]], [[]])
        await state.close()
        state = opened(kind, tmp_path)
    await state.close()


@in_a_loop
async def test_records_come_back_as_they_were_in_the_order_asked(state: State) -> None:
    visit = Visit(Instant(3.25), 200, "ok", b"\x00\xff", 2**63 + 5, 'W/"é"', ref=RecordRef("f.warc.gz", 2**40, 7))
    whole = record(5, visit=visit, url="https://a.test/ü", due=Instant(1.5), via="https://b.test/")
    await state.commit(Changes(records={url_id(5): whole, url_id(6): record(6)}))
    assert await state.records([url_id(6), url_id(4), url_id(5)]) == [record(6), None, whole]
    assert await state.records([]) == []
    assert await state.hosts([]) == []
    assert await state.contents([]) == []


@in_a_loop
async def test_the_outbox_is_in_order_within_a_partition(state: State) -> None:
    parcels = [Parcel(Partition(p), seq, b"%d" % seq) for seq in (3, 1, 2**40, 2) for p in (5, 1)]
    await state.commit(Changes(outbox=parcels))
    found = await state.outbox(100)
    assert len(found) == 8
    for p in (1, 5):
        assert [parcel.seq for parcel in found if parcel.partition == p] == [1, 2, 3, 2**40]
    assert await state.outbox(3) == found[:3]


@in_a_loop
async def test_fresh_is_what_came_after_it_was_forgotten_and_ids_is_all(kind: str, tmp_path: Path) -> None:
    state = opened(kind, tmp_path)
    await state.commit(queue_of(range(5)))
    await state.forget_fresh(state.last_fresh())
    assert await state.fresh() == []
    await state.commit(queue_of(range(5, 8)))
    await state.commit(Changes(records={url_id(0): record(0)}))
    await state.close()
    state = opened(kind, tmp_path)
    await state.commit(queue_of(range(8, 9)))
    assert sorted(await state.fresh()) == [url_id(n) for n in range(5, 9)]
    assert sorted([url async for batch in state.ids() for url in batch]) == [url_id(n) for n in range(9)]
    await state.forget_fresh(state.last_fresh())
    assert await state.fresh() == []
    await state.close()


@in_a_loop
async def test_ids_gives_everything_in_batches(state: State) -> None:
    await state.commit(queue_of(range(25_000)))
    batches = [batch async for batch in state.ids()]
    assert len(batches) >= 3
    assert sum(map(len, batches)) == 25_000


def test_a_changes_is_true_when_there_is_anything_to_commit() -> None:
    assert not Changes()
    assert Changes(marks={"a": b"b"})
    assert Changes(due=[(Instant(1.0), url_id(1))])
    assert Changes(queued=[(P, A, 1, 1, url_id(1))])
    assert Changes(contents={b"": Content("", Instant(0.0), "", RecordRef("", 0, 0))})


# -- RocksDB's own ----------------------------------------------------------------------------------------------------


def test_a_database_in_use_is_refused_with_a_cure(tmp_path: Path) -> None:
    first = RocksState(tmp_path / "state")
    with pytest.raises(StateError, match="in use by another crawl"):
        RocksState(tmp_path / "state")
    first.shut()


@in_a_loop
async def test_a_reader_may_look_while_a_worker_has_it_open(tmp_path: Path) -> None:
    state = RocksState(tmp_path / "state")
    await state.commit(everything())
    view = RocksState(tmp_path / "state", read_only=True)
    assert sorted(found.url for found in view.url_records()) == [f"https://a.test/{n}" for n in range(3)]
    view.shut()
    await state.close()
