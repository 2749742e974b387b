"""Another number of workers: every partition moves to the database of its new owner, clocks and all.

Crash-safe: rows are copied first, then crawl.json names the new split. Whatever a database holds of partitions that are
not its worker's is dropped when the worker opens it (`RocksState.drop_foreign`), before the switch as after it.
"""

from __future__ import annotations

import shutil

import msgspec

from harvestman.embedded.roster import owner_of
from harvestman.embedded.state import RocksState
from harvestman.layout import CrawlFile, Layout
from harvestman.model import Partition, Tally

POSITIONS = ("warc", "pages")
"""Marks that say how much of a worker's files is committed."""


def reshard(layout: Layout, facts: CrawlFile, workers: int) -> None:
    """Split the crawl over `workers` databases. No worker may be running."""
    for index in range(facts.workers, workers):
        shutil.rmtree(layout.state(index), ignore_errors=True)
    states = [RocksState(layout.state(index)) for index in range(max(workers, facts.workers))]
    try:
        for partition in range(facts.partitions):
            source, target = (owner_of(Partition(partition), number) for number in (facts.workers, workers))
            if source != target:
                states[target].copy_partition(states[source], Partition(partition))
        _retire(layout, states, workers)
        _recall(layout, states, facts.workers)
        _agree_on_seeds(layout, states, facts.workers)
        seq = max(int(state.read_mark("seq") or 0) for state in states)
        for state in states:
            state.put_mark("seq", b"%d" % seq)  # numbers only grow, whoever owned a host before
            state.put_mark("opened", b"0")  # a new owner: it waits a full interval before it asks
        crawled = sum(int(state.read_mark("crawled") or 0) for state in states[: facts.workers])
        for state in states:
            state.put_mark("crawled", b"%d" % (crawled // workers))
        states[0].put_mark("tally", msgspec.msgpack.encode(_summed(states)))
        for state in states[1:]:
            state.put_mark("tally", msgspec.msgpack.encode(Tally()))
        for index in range(len(states)):
            (layout.data / layout.seen(index)).unlink(missing_ok=True)
    finally:
        for state in states:
            state.shut()
    layout.write(msgspec.structs.replace(facts, workers=workers))
    for index in range(workers, facts.workers):
        shutil.rmtree(layout.state(index), ignore_errors=True)


def _retire(layout: Layout, states: list[RocksState], workers: int) -> None:
    """What workers that are no more leave behind goes to the first: undelivered links, how far their files reach."""
    for index in range(workers, len(states)):
        states[0].absorb(states[index])
        for name in POSITIONS:
            states[0].put_mark(f"{name}:{layout.worker(index)}", states[index].read_mark(name) or b"")


def _recall(layout: Layout, states: list[RocksState], before: int) -> None:
    """A worker number that had an owner once goes on where its files ended; without that it would cut them off."""
    for index in range(before, len(states)):
        for name in POSITIONS:
            position = states[0].read_mark(f"{name}:{layout.worker(index)}")
            if position:
                states[index].put_mark(name, position)


def _agree_on_seeds(layout: Layout, states: list[RocksState], before: int) -> None:
    """Seeds that all workers had passed are in one of the databases; from there on each reads them for itself again."""
    for job in layout.job_ids():
        mark = layout.seeds_mark(job)
        passed = min(int(state.read_mark(mark) or 0) for state in states[:before])
        for state in states:
            state.put_mark(mark, b"%d" % passed)


def _summed(states: list[RocksState]) -> Tally:
    whole = Tally()
    for state in states:
        whole.add(state.tally())
    return whole
