"""Other workers or regions: every partition moves to the database of its new owner, every site to its new partition.

Crash-safe: rows are copied first, then crawl.json names the new split. Whatever a database holds of partitions that are
not its worker's is dropped when the worker opens it (`RocksState.drop_foreign`), before the switch as after it. Of a
site that changes its partition both copies may have an owner: crawl.json says so (`moving`) before the first is made,
and no worker starts before `sweep` has removed the one that is not in its place.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import msgspec

from harvestman.embedded.opening import PATIENCE
from harvestman.embedded.roster import StaticRoster
from harvestman.embedded.rows import Row, rekeyed
from harvestman.embedded.state import RocksState
from harvestman.layout import CrawlFile, Layout
from harvestman.model import HostKey, Partition, Tally

POSITIONS = ("warc", "pages")
"""Marks that say how much of a worker's files is committed."""
BATCH = 10_000
Place = Callable[[HostKey], Partition]


def reshard(layout: Layout, before: CrawlFile, after: CrawlFile, place: Place | None = None) -> None:
    """Split the crawl as `after` says. No worker may be running, and `before` may not be `moving`.

    `place`: where each host belongs from now on; None when no site changes its partition.
    """
    if place is not None:
        layout.write(msgspec.structs.replace(before, moving=True))
    for index in range(before.workers, after.workers):
        shutil.rmtree(layout.state(index), ignore_errors=True)
    states = [RocksState(layout.state(index), patience=PATIENCE) for index in range(max(after.workers, before.workers))]
    try:
        _move_partitions(states, before, after)
        if place is not None:
            _move_sites(states, before, after, place)
        _retire(states, before, after)
        _recall(states, before, after)
        _agree_on_seeds(layout, states, before.workers)
        _share_marks(states, before.workers, after.workers)
        for index in range(len(states)):
            (layout.data / layout.seen(index)).unlink(missing_ok=True)
        layout.write(msgspec.structs.replace(after, moving=place is not None))
        if place is not None:
            _sweep(states, after, place)
    finally:
        for state in states:
            state.shut()
    if place is not None:
        layout.write(after)
    for index in range(after.workers, before.workers):
        shutil.rmtree(layout.state(index), ignore_errors=True)


def sweep(layout: Layout, facts: CrawlFile, place: Place) -> None:
    """Bring a move of sites that was cut short to an end: what is not in its place by the split in force goes."""
    states = [RocksState(layout.state(index), patience=PATIENCE) for index in range(facts.workers)]
    try:
        _sweep(states, facts, place)
    finally:
        for state in states:
            state.shut()
    layout.write(msgspec.structs.replace(facts, moving=False))


def position(state: RocksState, name: str, files: str) -> tuple[str, int] | None:
    """How far files that begin so are committed: the last of them and its length.

    The mark in force is of another region's when the worker changed its region and has not committed since.
    """
    for mark in (name, f"{name}:{files}"):
        raw = state.read_mark(mark)
        found = msgspec.msgpack.decode(raw, type=tuple[str, int]) if raw else ("", 0)
        if found[0].startswith(f"{files}-"):
            return found
    return None


def _move_partitions(states: Sequence[RocksState], before: CrawlFile, after: CrawlFile) -> None:
    old, new = (StaticRoster(facts.partitions, facts.split, 0) for facts in (before, after))
    for partition in map(Partition, range(old.partitions)):
        source, target = old.owner(partition), new.owner(partition)
        if source != target:
            states[target].copy_partition(states[source], partition)


def _move_sites(states: Sequence[RocksState], before: CrawlFile, after: CrawlFile, place: Place) -> None:
    """Copy what belongs in another partition there, from who owned it so far."""
    roster = StaticRoster(after.partitions, after.split, 0)
    for index in range(before.workers):
        owns = StaticRoster(before.partitions, before.split, index).owns
        found = (each for each in states[index].strays(place) if owns(Partition(int.from_bytes(each[1][1][:2]))))
        for batch in _batches(found):
            rows: dict[int, list[Row]] = {}
            for partition, row in batch:
                rows.setdefault(roster.owner(partition), []).append(rekeyed(row, partition))
            for target, moved in rows.items():
                states[target].write_rows(moved)
    for state in states:
        state.flush()


def _sweep(states: Sequence[RocksState], facts: CrawlFile, place: Place) -> None:
    for index, state in enumerate(states[: facts.workers]):
        state.drop_foreign(StaticRoster(facts.partitions, facts.split, index).owns)
        for batch in _batches(state.strays(place)):
            state.write_rows([], [row for _, row in batch])
        state.flush()


def _batches(rows: Iterable[tuple[Partition, Row]]) -> Iterator[list[tuple[Partition, Row]]]:
    rows = iter(rows)
    while batch := list(islice(rows, BATCH)):
        yield batch


def _retire(states: Sequence[RocksState], before: CrawlFile, after: CrawlFile) -> None:
    """What workers that are no more leave behind goes to another: undelivered links, how far their files reach.

    Known contents stay in their region: a page whose content is known is not stored again, and its own region has to
    have it.
    """
    homes = [after.region(index).name for index in range(after.workers)]
    for index in range(before.workers):
        if index < after.workers and before.files(index) == after.files(index):
            continue
        for name in POSITIONS:
            if found := position(states[index], name, before.files(index)):
                states[0].put_mark(f"{name}:{before.files(index)}", msgspec.msgpack.encode(found))
        home = before.region(index).name
        if index < after.workers:
            states[index].renew("content")
        elif home in homes:
            states[homes.index(home)].absorb(states[index])
        else:
            states[0].absorb(states[index], contents=False)


def _recall(states: Sequence[RocksState], before: CrawlFile, after: CrawlFile) -> None:
    """A worker that was there once goes on where its files ended; without that it would cut them off.

    Where a worker changes its region, its own mark stays: until the switch it is in force.
    """
    for index in range(after.workers):
        files, made = after.files(index), index >= before.workers
        if made or files != before.files(index):
            for name in POSITIONS:
                if found := position(states[0], name, files):
                    states[index].put_mark(name if made else f"{name}:{files}", msgspec.msgpack.encode(found))


def _agree_on_seeds(layout: Layout, states: Sequence[RocksState], before: int) -> None:
    """Seeds that all workers had passed are in one of the databases; from there on each reads them for itself again."""
    for job in layout.job_ids():
        mark = layout.seeds_mark(job)
        passed = min(int(state.read_mark(mark) or 0) for state in states[:before])
        for state in states:
            state.put_mark(mark, b"%d" % passed)


def _share_marks(states: Sequence[RocksState], before: int, after: int) -> None:
    """Sequence numbers, clocks and counters of all workers."""
    seq = max(int(state.read_mark("seq") or 0) for state in states)
    for state in states:
        state.put_mark("seq", b"%d" % seq)  # numbers only grow, whoever owned a host before
        state.put_mark("opened", b"0")  # a new owner: it waits a full interval before it asks
    crawled = sum(int(state.read_mark("crawled") or 0) for state in states[:before])
    for state in states:
        state.put_mark("crawled", b"%d" % (crawled // after))
    states[0].put_mark("tally", msgspec.msgpack.encode(_summed(states)))
    for state in states[1:]:
        state.put_mark("tally", msgspec.msgpack.encode(Tally()))


def _summed(states: Sequence[RocksState]) -> Tally:
    whole = Tally()
    for state in states:
        whole.add(state.tally())
    return whole
