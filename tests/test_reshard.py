"""Another number of workers: every row finds its new owner, clocks and undelivered links and all; crash or no crash."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from virtual import in_a_loop

from harvestman.embedded.reshard import reshard
from harvestman.embedded.roster import StaticRoster
from harvestman.embedded.state import RocksState
from harvestman.jobs import Jobs
from harvestman.layout import VERSION, CrawlFile, Layout
from harvestman.model import (
    HostKey,
    HostRecord,
    Instant,
    Job,
    Origin,
    Partition,
    RecordRef,
    RobotsRecord,
    Seconds,
    SiteKey,
    Status,
    Tally,
    UrlId,
    UrlRecord,
)  # fmt: skip
from harvestman.ports import Changes, Content, Parcel

PARTITIONS = 8
HOSTS = 8


class PowerCut(Exception):
    pass


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path)
    made.write(CrawlFile(VERSION, PARTITIONS, 1))
    return made


def _robots(origin: Origin, body: bytes) -> RobotsRecord:
    return RobotsRecord(origin, body, Instant(5.0), Instant(5.0), Instant(5.0))


def rows_of(number: int) -> Changes:
    """All that is known of one host: a queue, something due, a clock, a robots.txt."""
    partition, host = Partition(number % PARTITIONS), HostKey(f"h{number}.test")
    changes = Changes()
    for page in range(5):
        url = UrlId(partition.to_bytes(2) + (number * 100 + page).to_bytes(16))
        status = Status.FETCHED if page == 4 else Status.PENDING
        changes.records[url] = UrlRecord(f"https://{host}/{page}", status, 1, 4, page, Instant(1.0))
        changes.new.append(url)
        if page < 3:
            changes.queued.append((partition, host, 4, page, url))
        elif page == 3:
            changes.due.append((Instant(100.0 + number), url))
    clock = HostRecord(host, SiteKey(host), Instant(1e9 + number), Seconds(7.5), 2, cursors=[number] * 8)
    changes.hosts[host] = (partition, clock)
    origin = Origin(f"https://{host}")
    changes.robots[origin] = (partition, _robots(origin, b"rules of " + host.encode()))
    return changes


async def filled(layout: Layout) -> None:
    state = RocksState(layout.state(0))
    for number in range(HOSTS):
        await state.commit(rows_of(number))
    await state.commit(Changes(marks={"tally": msgspec.msgpack.encode(Tally(pages=10)), "opened": b"1"}))
    await state.close()


def opened(layout: Layout) -> Iterator[tuple[StaticRoster, RocksState]]:
    """Each worker's database in turn, opened as a worker opens it."""
    facts = layout.read()
    for index in range(facts.workers):
        roster = StaticRoster(facts.partitions, facts.workers, index)
        state = RocksState(layout.state(index))
        state.drop_foreign(roster.owns)
        yield roster, state
        state.shut()


async def contents(layout: Layout) -> dict[str, object]:
    """All rows of all workers, each asserted to be with its owner alone."""
    found: dict[str, object] = {}
    for roster, state in opened(layout):
        for partition, host in await state.waiting_hosts(None, 1_000):
            assert roster.owns(partition)
            assert f"queue {host}" not in found
            found[f"queue {host}"] = await state.window(partition, host, 4, 0, 100)
        for number in range(HOSTS):
            partition, host = Partition(number % PARTITIONS), HostKey(f"h{number}.test")
            (clock,) = await state.hosts([(partition, host)])
            assert (clock is not None) is roster.owns(partition)
            if clock is not None:
                found[f"clock {host}"] = clock
                found[f"robots {host}"] = await state.robots(partition, Origin(f"https://{host}"))
        for when, url in await state.due(Instant(1e12), 1_000):
            found[f"due {url.hex()}"] = when
        for record in state.url_records():
            assert record.url not in found
            found[record.url] = record
    return found


def split(layout: Layout, workers: int) -> None:
    before = layout.read()
    reshard(layout, before, msgspec.structs.replace(before, workers=workers))


def pages(layout: Layout) -> int:
    return sum(state.tally().pages for _, state in opened(layout))


@pytest.mark.slow
@in_a_loop
async def test_one_two_three_one_keeps_every_row(layout: Layout) -> None:
    await filled(layout)
    before = await contents(layout)
    assert len(before) == HOSTS * (3 + 1 + 5)
    for workers in (2, 3, 1, 2):
        split(layout, workers)
        assert layout.read().workers == workers
        assert await contents(layout) == before
        assert pages(layout) == 10
    assert sorted(path.name for path in (layout.data / "state").iterdir()) == ["w00", "w01"]


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), pytest.param(3, 2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("step", [1, pytest.param(3, marks=pytest.mark.slow)])
@in_a_loop
async def test_a_crash_between_the_steps_keeps_the_crawl_whole(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, before: int, after: int, step: int
) -> None:
    """Die at the n-th write of any kind; then go on with the old number, or try the new one again."""
    await filled(layout)
    if before > 1:
        split(layout, before)
    whole = await contents(layout)
    left = [step * 4]

    def dying(name: str, owner: type) -> None:
        real = getattr(owner, name)

        def called(*args: object, **kwargs: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise PowerCut
            return real(*args, **kwargs)

        monkeypatch.setattr(owner, name, called)

    for name in ("copy_partition", "put_mark", "absorb"):
        dying(name, RocksState)
    dying("write", Layout)
    try:
        split(layout, after)
    except PowerCut:
        assert layout.read().workers == before
    monkeypatch.undo()
    assert await contents(layout) == whole, "with whatever number crawl.json names"
    if layout.read().workers != after:
        split(layout, after)
    assert await contents(layout) == whole


@in_a_loop
async def test_a_row_that_was_removed_since_the_last_move_does_not_come_back(layout: Layout) -> None:
    await filled(layout)
    split(layout, 2)
    one = RocksState(layout.state(1))
    await one.commit(Changes(unqueued=[(Partition(1), HostKey("h1.test"), 4, page) for page in range(3)]))
    await one.close()
    split(layout, 1)  # worker 0 was never opened, so it still has its old copy
    assert "queue h1.test" not in await contents(layout)


@in_a_loop
async def test_links_on_their_way_are_not_lost_with_their_sender(layout: Layout) -> None:
    await filled(layout)
    split(layout, 3)
    sent = {b"from %d to %d" % (index, p) for index in range(3) for p in range(PARTITIONS) if p % 3 != index}
    for index in range(3):
        state = RocksState(layout.state(index))
        parcels = [Parcel(Partition(p), 77, b"from %d to %d" % (index, p)) for p in range(PARTITIONS) if p % 3 != index]
        await state.commit(Changes(outbox=parcels))
        await state.close()
    for workers in (2, 1):
        split(layout, workers)
        found = [parcel.body for _, state in opened(layout) for parcel in await state.outbox(1_000)]
        assert set(found) == sent, "though all had the same number"


@in_a_loop
async def test_contents_known_to_a_retired_worker_are_still_known(layout: Layout) -> None:
    await filled(layout)
    split(layout, 2)
    one = RocksState(layout.state(1))
    content = Content("https://h1.test/", Instant(1.0), "sha256:x", RecordRef("f", 1, 2))
    await one.commit(Changes(contents={b"d" * 32: content}))
    await one.close()
    split(layout, 1)
    assert [await state.contents([b"d" * 32]) for _, state in opened(layout)] == [[content]]


@in_a_loop
async def test_a_worker_that_comes_back_goes_on_where_its_files_ended(layout: Layout) -> None:
    await filled(layout)
    split(layout, 2)
    one = RocksState(layout.state(1))
    ends = [msgspec.msgpack.encode(position) for position in (("w01-00004.pages", 17), ("w01-x-00000.warc.gz", 99))]
    await one.commit(Changes(marks={"pages": ends[0], "warc": ends[1]}))
    await one.close()
    split(layout, 1)
    split(layout, 2)
    marks = [(await state.mark("pages"), await state.mark("warc")) for _, state in opened(layout)]
    assert marks[1] == (ends[0], ends[1])
    assert marks[0] == (None, None)


@in_a_loop
async def test_seeds_that_a_worker_had_not_read_yet_are_read_again_by_all(layout: Layout) -> None:
    await filled(layout)
    jobs = Jobs(layout)
    for name in ("one", "two"):
        jobs.add(Job(0, name, Instant(1.0)), ["https://h1.test/"])
    split(layout, 2)
    for index, (first, second) in enumerate([(b"700", b"17"), (b"300", b"17")]):
        state = RocksState(layout.state(index))
        await state.commit(Changes(marks={layout.seeds_mark(1): first, layout.seeds_mark(2): second}))
        await state.close()
    for workers in (3, 1):
        split(layout, workers)
        for _, state in opened(layout):
            assert [await state.mark(layout.seeds_mark(job)) for job in (1, 2)] == [b"300", b"17"]


@in_a_loop
async def test_every_new_owner_knows_that_it_took_over_and_has_to_build_its_filter(layout: Layout) -> None:
    await filled(layout)
    snapshot = layout.data / layout.seen(0)
    snapshot.parent.mkdir()
    snapshot.write_bytes(b"of the old split")
    split(layout, 3)
    assert all([await state.mark("opened") is not None for _, state in opened(layout)])
    assert not snapshot.exists()


@in_a_loop
async def test_drop_foreign_leaves_what_is_ours_and_the_outbox(layout: Layout) -> None:
    await filled(layout)
    state = RocksState(layout.state(0))
    await state.commit(Changes(outbox=[Parcel(Partition(5), 1, b"links")]))
    state.drop_foreign(lambda partition: partition in (0, 7))
    kept = {record.url for record in state.url_records()}
    assert kept == {f"https://h{n}.test/{page}" for n in range(HOSTS) if n % PARTITIONS in (0, 7) for page in range(5)}
    assert {partition for partition, _ in await state.waiting_hosts(None, 1_000)} == {0, 7}
    assert len(await state.outbox(10)) == 1
    state.shut()
