"""A worker takes in its own share of the seeds, straight from the files of the jobs, while it crawls.

How far it is stands in a mark of its State, so a restart goes on there. Seeds are durable before the mark moves: a
crash between the two repeats a portion, which the seen-set drops.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from harvestman.frontier.routing import Router
from harvestman.jobs import Jobs
from harvestman.layout import Layout
from harvestman.model import Partition
from harvestman.policy.urls import host_of
from harvestman.ports import Changes, State

AddSeeds = Callable[[Sequence[str], str, int], Awaitable[int]]
"""(seeds, via, job): when it returns, they are durable."""


class Seeding:
    """One worker's. Jobs take turns, a portion each, so that a small one does not wait for millions before it."""

    def __init__(
        self, jobs: Jobs, state: State, router: Router, owns: Callable[[Partition], bool], add: AddSeeds
    ) -> None:
        self._jobs = jobs
        self._state = state
        self._router = router
        self._owns = owns
        self._add = add
        self._wanted: dict[int, int] = {}

    def want(self, job: int, until: int) -> None:
        """Take in the seeds of a job up to a byte of its file."""
        self._jobs.reload()  # the scope grows with the seeds
        self._wanted[job] = until

    @property
    def wanting(self) -> bool:
        return bool(self._wanted)

    async def step(self) -> list[tuple[int, int]]:
        """A portion of each job; returns those that are complete, with the byte that was asked for."""
        complete = []
        for job, until in list(self._wanted.items()):
            if await self._portion(job, until) and self._wanted[job] == until:
                del self._wanted[job]
                complete.append((job, until))
        return complete

    async def _portion(self, job: int, until: int) -> bool:
        mark = Layout.seeds_mark(job)
        start = int(await self._state.mark(mark) or 0)
        if start >= until:
            return True
        urls, end = self._jobs.portion(job, start, until)
        mine = [url for url in urls if self._owns(self._router.place(host_of(url))[2])]
        if mine:
            await self._add(mine, "seed", job)
        await self._state.commit(Changes(marks={mark: b"%d" % end}))
        return end >= until
