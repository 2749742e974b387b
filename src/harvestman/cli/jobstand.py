"""How the jobs of a crawl stand: read from its files and its workers' marks, also while it runs."""

from __future__ import annotations

import asyncio

import msgspec

from harvestman.cli import words
from harvestman.jobs import Jobs
from harvestman.layout import Layout
from harvestman.lock import is_locked
from harvestman.model import Instant, Job, JobTally, Seconds
from harvestman.views import View


class JobStanding(msgspec.Struct):
    """One job: what was asked for, and how far it is."""

    id: int
    name: str
    state: str
    """waiting (nothing is done for it now), running or finished."""
    created: Instant
    priority: str
    max_depth: int
    scope: str
    patterns: tuple[str, ...]
    ttl: Seconds
    seeds: int
    seeds_taken: float
    """Share of its seeds that all workers have read, 0 to 1."""
    discovered: int
    settled: int
    pages: int


def look(layout: Layout) -> list[JobStanding]:
    """All jobs of a crawl, in the order they came. Raises StateError when there is no crawl."""
    jobs = Jobs(layout)
    with View(layout) as view:
        # The marks first: seeds that they name are in the tally by then, so none looks finished too early.
        taken = {job.id: _taken(view, layout.seeds_mark(job.id)) for job in jobs.all()}
        tallies = view.tally().jobs
        under_way = asyncio.run(_links_under_way(view))
    running = is_locked(layout.data)
    return [
        _standing(job, jobs, taken[job.id], tallies.get(job.id, JobTally()), running, under_way) for job in jobs.all()
    ]


async def _links_under_way(view: View) -> bool:
    """Links from one worker to another: nobody has counted them yet."""
    return any([await state.outbox(1) for _, state in view.workers()])


def _taken(view: View, mark: str) -> int:
    """Up to which byte every worker has read the seeds."""
    read = [int(state.read_mark(mark) or 0) for _, state in view.workers()]
    return min(read) if len(read) == view.facts.workers else 0


def _standing(job: Job, jobs: Jobs, taken: int, tally: JobTally, running: bool, under_way: bool) -> JobStanding:
    size = jobs.size(job.id)
    if taken >= size and tally.over and not under_way:
        state = "finished"
    else:
        state = "running" if running and tally.discovered else "waiting"
    return JobStanding(
        job.id, job.name, state, job.created, job.priority, job.max_depth, job.scope, job.patterns, job.ttl,
        jobs.count(job.id), round(min(1.0, taken / size), 4) if size else 1.0,
        tally.discovered, tally.settled, tally.pages,
    )  # fmt: skip


def told(jobs: list[JobStanding]) -> str:
    """A table."""
    width = min(40, max(4, *(len(job.name) for job in jobs)))
    head = f"{'id':>4}  {'name':<{width}}  {'state':<8}  {'priority':<8}  {'pages':>10}  {'settled':>10}  {'found':>10}"
    rows = [
        f"{job.id:>4}  {job.name[:width]:<{width}}  {job.state:<8}  {job.priority:<8}  {job.pages:>10,}  "
        f"{job.settled:>10,}  {job.discovered:>10,}"
        for job in jobs
    ]
    return "\n".join([head, *rows])


def told_whole(job: JobStanding) -> str:
    """All about one."""
    read = "" if job.seeds_taken >= 1 else f", {job.seeds_taken:.0%} of them taken in"
    rows = [
        ("state", job.state),
        ("since", words.moment(job.created)),
        ("seeds", f"{job.seeds:,}{read}"),
        ("scope", job.scope),
        *(("", line) for line in job.patterns),
        ("max depth", f"{job.max_depth}"),
        ("priority", job.priority),
        ("visited again", f"after {words.span(job.ttl)}" if job.ttl else "as often as each page is found to change"),
        ("URLs found", f"{job.discovered:,}, {job.settled:,} of them done with"),
        ("pages", f"{job.pages:,}"),
    ]
    return "\n".join([f"Job {job.id} ({job.name})", *(f"  {name:<15}{text}" for name, text in rows)])


def as_json(found: list[JobStanding] | JobStanding) -> str:
    return msgspec.json.encode(found).decode()
