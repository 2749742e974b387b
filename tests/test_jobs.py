"""Jobs on disk: complete when they are visible, never lost, their seeds only ever growing at the end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harvestman.errors import StateError, UsageError
from harvestman.frontier.routing import Router
from harvestman.jobs import Jobs, Terms
from harvestman.layout import Layout
from harvestman.model import HostKey, Instant, Job, Partition, Seconds
from harvestman.policy.sites import site_of
from harvestman.policy.urls import host_of
from harvestman.ports import Changes, State
from harvestman.seeding import Seeding

NOW = Instant(1_790_000_000.0)
FIRST = Job(0, "", NOW)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "d")


def admits(jobs: Jobs, number: int, url: str) -> bool:
    host = host_of(url)
    return jobs.scope(number).admits(url, host, site_of(host))


def test_a_job_is_read_back_as_it_was_asked_for(layout: Layout) -> None:
    terms = Terms("news", "high", 0, "host", Seconds(3600.0))
    added = Jobs(layout).add(terms.over(FIRST), ["https://a.example.org/x", "https://a.example.org/x"])
    jobs = Jobs(layout)
    assert jobs.all() == [added] == [Job(1, "news", NOW, "high", 0, "host", (), Seconds(3600.0))]
    assert list(jobs.seeds(1)) == ["https://a.example.org/x"]
    assert jobs.count(1) == 1
    assert admits(jobs, 1, "https://a.example.org/y")
    assert not admits(jobs, 1, "https://b.example.org/y")


def test_another_process_finds_a_job_it_has_not_heard_of(layout: Layout) -> None:
    jobs = Jobs(layout)
    with pytest.raises(StateError, match="no job 1"):
        jobs.get(1)
    Jobs(layout).add(FIRST, ["https://example.org/"])
    assert jobs.get(1).name == "example.org"
    assert admits(jobs, 1, "https://www.example.org/")


@pytest.mark.parametrize("scope", ["site", "host", "path"])
def test_the_scope_grows_with_the_seeds(layout: Layout, scope: str) -> None:
    jobs = Jobs(layout)
    jobs.add(Terms(scope=scope).over(FIRST), ["https://one.example/a/"])
    other = Jobs(layout)
    assert not admits(jobs, 1, "https://two.example/b/c")
    assert not admits(other, 1, "https://two.example/b/c")
    assert jobs.grow(1, ["https://one.example/a/", "https://two.example/b/"]) == 1
    assert admits(jobs, 1, "https://two.example/b/c")
    other.reload()
    assert admits(other, 1, "https://two.example/b/c")
    assert admits(other, 1, "https://one.example/a/z")


def test_new_seeds_join_the_first_job_unless_they_ask_for_something_else(layout: Layout) -> None:
    jobs = Jobs(layout)
    later = Job(0, "", Instant(NOW + 9))
    jobs.take_up(["https://one.example/"], Terms(scope="host", max_depth=3), FIRST)
    assert jobs.take_up(["https://two.example/"], Terms(), later).id == 1
    assert jobs.take_up(["https://two.example/"], Terms(scope="host", max_depth=3), later).id == 1
    assert list(jobs.seeds(1)) == ["https://one.example/", "https://two.example/"]
    new = jobs.take_up(["https://three.example/"], Terms(priority="low"), later)
    assert new == Job(2, "three.example", later.created, "low", 3, "host")
    assert jobs.take_up(["https://four.example/"], Terms(name="four"), later).id == 3


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    (tmp_path / "none").write_text("- *\n")
    for terms, words in [
        (Terms(scope="near"), "no such scope"),
        (Terms(scope="patterns"), "@FILE"),
        (Terms(scope="@/nowhere/at/all"), "cannot read"),
        (Terms(scope=f"@{tmp_path / 'none'}"), "admit nothing"),
        (Terms(max_depth=-1), "negative"),
    ]:
        with pytest.raises(UsageError, match=words):
            terms.over(FIRST)


def test_a_job_that_was_being_written_is_not_seen(layout: Layout) -> None:
    jobs = Jobs(layout)
    jobs.add(FIRST, ["https://one.example/"])
    # Killed between the seeds and the job itself, and in the middle of a file.
    (layout.jobs / "0002.sites").write_text("lost.example\n")
    (layout.jobs / "0002.seeds").write_text("https://lost.example/\n")
    (layout.jobs / "0002.json.part").write_text('{"id":')
    assert [job.id for job in Jobs(layout).all()] == [1]
    assert jobs.add(FIRST, ["https://two.example/"]).id == 2
    assert list(Jobs(layout).seeds(2)) == ["https://two.example/"]
    assert not admits(Jobs(layout), 2, "https://lost.example/")


ADD_FOR_EVER = """
import sys
from pathlib import Path
from harvestman.jobs import Jobs
from harvestman.layout import Layout
from harvestman.model import Instant, Job
jobs = Jobs(Layout(Path(sys.argv[1])))
for number in range(100_000):
    urls = [f"https://{sys.argv[2]}{number}.example/{page}" for page in range(50)]
    print(jobs.add(Job(0, "", Instant(0.0)), urls).id, urls[-1], flush=True)
    grown = f"https://{sys.argv[2]}grown{number}.example/"
    jobs.grow(1, [grown])
    print(1, grown, flush=True)
"""


@pytest.mark.slow
def test_no_job_is_lost_by_kill_9(layout: Layout) -> None:
    """Two processes add at once and are killed: all that they acknowledged is there, whole, under its own number."""
    Jobs(layout).add(FIRST, ["https://one.example/"])
    children = [
        subprocess.Popen(
            [sys.executable, "-c", ADD_FOR_EVER, str(layout.data), name], stdout=subprocess.PIPE, text=True
        )
        for name in "ab"
    ]
    lines: list[str] = []
    for child in children:
        assert child.stdout is not None
        lines += [child.stdout.readline() for _ in range(8)]
    for child in children:
        os.kill(child.pid, signal.SIGKILL)
        lines += child.communicate()[0].splitlines(keepends=True)
    said = [line.split() for line in lines if line.endswith("\n")]
    assert len(said) >= 16
    jobs = Jobs(layout)
    numbers = [int(number) for number, _ in said if number != "1"]
    assert len(set(numbers)) == len(numbers)
    first = set(jobs.seeds(1))
    for number, url in said:
        seeds = first if number == "1" else list(jobs.seeds(int(number)))
        assert url in seeds
        assert number == "1" or len(seeds) == 50
    assert admits(jobs, 1, next(url for number, url in said if number == "1"))


# -- workers take their share ----------------------------------------------------------------------------------------


class Marks:
    """As much of a State as seeding needs."""

    def __init__(self) -> None:
        self.marks: dict[str, bytes] = {}

    async def mark(self, name: str) -> bytes | None:
        return self.marks.get(name)

    async def commit(self, changes: Changes) -> None:
        self.marks.update(changes.marks)


class Taker:
    """A worker's seeding whose seeds end in a list."""

    def __init__(
        self, layout: Layout, index: int, workers: int, fail_after: int = 1_000_000, state: Marks | None = None
    ) -> None:
        self.state = cast(State, state or Marks())
        self.got: list[tuple[int, str]] = []
        self._left = fail_after

        async def add(seeds: Sequence[str], via: str, job: int) -> int:
            assert via == "seed"
            self._left -= 1
            if self._left < 0:
                raise RuntimeError("killed")
            self.got += [(job, seed) for seed in seeds]
            return len(seeds)

        def owns(partition: Partition) -> bool:
            return partition % workers == index

        self.seeding = Seeding(Jobs(layout), self.state, Router(64), owns, add)

    def take(self, *wanted: tuple[int, int]) -> list[tuple[int, int]]:
        async def run() -> list[tuple[int, int]]:
            complete = []
            for job, until in wanted:
                self.seeding.want(job, until)
            while self.seeding.wanting:
                complete += await self.seeding.step()
            return complete

        return asyncio.run(run())


@settings(max_examples=15, deadline=None)
@given(seeds=st.integers(1, 3_000), workers=st.integers(1, 3), fail_after=st.integers(0, 4))
def test_every_seed_reaches_its_owner_also_after_a_crash(
    tmp_path_factory: pytest.TempPathFactory, seeds: int, workers: int, fail_after: int
) -> None:
    layout = Layout(tmp_path_factory.mktemp("d"))
    jobs = Jobs(layout)
    urls = [f"https://host{number}.example/{'x' * 60}" for number in range(seeds)]
    jobs.add(FIRST, urls)
    jobs.add(FIRST, ["https://small.example/"])
    wanted = [(job.id, jobs.size(job.id)) for job in jobs.all()]
    got: list[tuple[int, str]] = []
    for index in range(workers):
        state = Marks()
        taker = Taker(layout, index, workers, fail_after, state)
        try:
            taker.take(*wanted)
        except RuntimeError:
            got += taker.got
            taker = Taker(layout, index, workers, state=state)
            assert sorted(taker.take(*wanted)) == wanted
        got += taker.got
    assert set(got) == {(1, url) for url in urls} | {(2, "https://small.example/")}
    assert len(got) <= len(set(got)) + workers * 500, "a portion may be repeated, and no more"


def test_a_restart_goes_on_where_it_was(layout: Layout) -> None:
    jobs = Jobs(layout)
    jobs.add(FIRST, ["https://one.example/", "https://two.example/"])
    state = Marks()
    Taker(layout, 0, 1, state=state).take((1, jobs.size(1)))
    again = Taker(layout, 0, 1, state=state)
    assert again.take((1, jobs.size(1))) == [(1, jobs.size(1))]
    assert again.got == []
    jobs.grow(1, ["https://three.example/"])
    again.take((1, jobs.size(1)))
    assert again.got == [(1, "https://three.example/")]


def test_a_small_job_does_not_wait_for_a_large_one(layout: Layout) -> None:
    jobs = Jobs(layout)
    jobs.add(FIRST, [f"https://host{number}.example/" for number in range(20_000)])
    jobs.add(FIRST, ["https://small.example/"])
    taker = Taker(layout, 0, 1)
    for job in jobs.all():
        taker.seeding.want(job.id, jobs.size(job.id))
    assert asyncio.run(taker.seeding.step()) == [(2, jobs.size(2))]
    assert len(taker.got) < 5_000
    assert (2, "https://small.example/") in taker.got
    assert host_of(taker.got[0][1]) == HostKey("host0.example")
