"""The parent of the workers: starts them, keeps them alive, shares out the page limit, knows when the crawl is over.

It looks for new jobs while the crawl runs, and lets workers have the seeds of a job only when `policy.consent` has seen
them. The workers read them from the job's file themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path

import msgspec

from harvestman import messages
from harvestman.config import Config
from harvestman.errors import HarvestmanError, StateError, UsageError, WorkerDied
from harvestman.jobs import Jobs
from harvestman.layout import Layout
from harvestman.messages import Accepted, Drain, Grant, Halt, Poll, Report, Seeds, Start
from harvestman.model import Job, JobTally, Tally
from harvestman.policy.consent import refuse_rudeness

ROUND = 0.5
"""Seconds between polls."""
LOOK_EVERY = 4
"""Rounds between looks for new jobs."""
GRANT = 64
"""Pages granted at a time when there is a limit."""
MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(64 << 20),
    "MALLOC_TOP_PAD_": str(16 << 20),
}
"""glibc: keep the memory of bodies and trees instead of giving it back after every page; 5 to 9 % of a crawl's CPU
(bench/crawl_cpu.py, run with and without)."""
VAIN_DEATHS = 8
"""Deaths in a row without anything done in between that end the crawl."""


class Progress(msgspec.Struct):
    """How a crawl stands, for whoever shows it."""

    elapsed: float
    tally: Tally
    run_pages: int
    """Pages of this run."""
    counts: dict[str, int]
    workers: int
    restarts: int
    state: str
    """starting, crawling, waiting, draining or done."""
    next_at: float
    """When the next host may be asked (Unix time); 0 when unknown."""
    cpu: float
    """CPU seconds of the workers in this run."""


class Ending(msgspec.Struct):
    reason: str
    """finished, max-pages or interrupted."""
    progress: Progress


class WorkerProcess:
    """One child: its pipes, its last report, what it still has to be told."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.taken: dict[int, int] = {}
        """By job, up to which byte it has taken in its share of the seeds."""
        self.process: asyncio.subprocess.Process | None = None
        self.report: Report | None = None
        self.first: Tally | None = None
        """What earlier runs did."""
        self.granted = 0
        self.cpu_before = 0.0
        """CPU of its predecessors in this run."""
        self.vain_deaths = 0
        self._done_at_death = -1
        self.ended = False

    def tell(self, command: messages.Command) -> None:
        if self.process is not None and self.process.stdin is not None and not self.process.stdin.is_closing():
            self.process.stdin.write(messages.encode(command) + b"\n")

    def heard(self, saying: messages.Saying) -> None:
        match saying:
            case Accepted(job, until):
                self.taken[job] = until
            case Report():
                self.report = saying
                self.first = self.first or saying.tally

    def died(self) -> None:
        """Count the deaths between which nothing was done."""
        done = self.report.activity if self.report is not None else 0
        self.vain_deaths = self.vain_deaths + 1 if done == self._done_at_death else 0
        self._done_at_death = done

    def unused(self) -> int:
        """Granted pages it may still fetch, grants on their way included."""
        report = self.report
        return 0 if report is None else report.unused + self.granted - report.granted

    @property
    def has_work(self) -> bool:
        counts = self.report.counts if self.report is not None else {}
        return bool(counts.get("waiting") or counts.get("ready"))

    @property
    def pages(self) -> int:
        return 0 if self.report is None or self.first is None else self.report.tally.pages - self.first.pages


class Supervisor:
    """Runs one crawl over `config.workers` processes."""

    def __init__(
        self, config: Config, layout: Layout, report: Callable[[Progress], None],
        say: Callable[[str], None] = lambda text: None, vetted: Mapping[int, int] | None = None,
    ) -> None:  # fmt: skip
        """`vetted`: the seeds for which consent was asked already, by job up to which byte."""
        self._config = config
        self._layout = layout
        self._report = report
        self._say = say
        self._limit = config.limits.max_pages
        self._workers = [WorkerProcess(index) for index in range(config.workers)]
        self._jobs = Jobs(layout)
        self._vetted = dict(vetted or {})
        self._seeds: dict[int, int] = {}
        """What the workers were told to take in: by job, up to which byte."""
        self._refused: set[int] = set()
        self._over: set[int] | None = None
        self._jobs_before: dict[int, JobTally] | None = None
        """How far the jobs were a round ago, if that could be told for certain."""
        self._sockets = Path()
        self._began = time.monotonic()
        self._restarts = 0
        self._state = "starting"
        self._reason = ""
        self._round = 0
        self._still = -1
        """The activity of the last round in which all stood still."""
        self._failure: HarvestmanError | None = None
        self._halt_at = inf

    def pids(self) -> list[int]:
        """The worker processes that are alive."""
        processes = (worker.process for worker in self._workers)
        return [process.pid for process in processes if process is not None and process.returncode is None]

    # -- what a user can do ------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Let what is in flight finish, then end."""
        self._end("interrupted")

    def halt(self) -> None:
        """End now."""
        self._end("interrupted")
        for worker in self._workers:
            worker.tell(Halt())

    def _end(self, reason: str) -> None:
        if not self._reason:
            self._halt_at = time.monotonic() + self._config.limits.drain
        self._reason = self._reason or reason
        self._state = "draining"
        for worker in self._workers:
            worker.tell(Drain())

    # -- the run -----------------------------------------------------------------------------------------------

    async def run(self) -> Ending:
        """The whole crawl. Raises WorkerDied when a worker cannot be kept alive, UsageError when it may not begin."""
        for job in self._new_seeds():
            self._hand_out(job)
        self._sockets = Path(tempfile.mkdtemp(prefix="hm-"))
        keepers = [asyncio.create_task(self._keep(worker)) for worker in self._workers]
        watch = asyncio.create_task(self._watch())
        try:
            await asyncio.gather(*keepers)
        finally:
            watch.cancel()
            for worker in self._workers:
                if worker.process is not None and worker.process.returncode is None:
                    worker.process.kill()
                    await worker.process.wait()
            shutil.rmtree(self._sockets, ignore_errors=True)
        if self._failure is not None:
            raise self._failure
        self._state = "done"
        return Ending(self._reason or "finished", self.progress())

    async def _keep(self, worker: WorkerProcess) -> None:
        """Start a worker, and again whenever it dies before its time."""
        while not worker.ended and not (worker.process is not None and self._reason):
            await self._live(worker)
            if worker.ended or self._reason:
                return
            code = worker.process.returncode if worker.process is not None else 0
            if code in (UsageError.exit_code, StateError.exit_code):
                self._failure = (UsageError if code == UsageError.exit_code else StateError)(self._said_last(worker))
                self._end("failed")
                return
            self._restarts += 1
            worker.died()
            if worker.vain_deaths >= VAIN_DEATHS:
                self._failure = WorkerDied(self._last_words(worker))
                self._end("failed")
                return
            await asyncio.sleep(0.2 * 1.5**worker.vain_deaths)

    async def _live(self, worker: WorkerProcess) -> None:
        """One life of a worker process."""
        log_file = self._log(worker)
        log_file.parent.mkdir(parents=True, exist_ok=True)
        if worker.report is not None:
            worker.cpu_before += worker.report.cpu
            worker.report = msgspec.structs.replace(worker.report, cpu=0.0, unused=0, granted=0, idle=False)
        with log_file.open("ab") as log:
            worker.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "harvestman.worker", env={**MALLOC, **os.environ},
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log, limit=64 << 20,
            )  # fmt: skip
        # Only now: what was said while the process was being made went nowhere.
        worker.granted = 0
        worker.taken.clear()
        worker.tell(Start(self._config, worker.index, str(self._sockets)))
        for job, until in self._seeds.items():
            worker.tell(Seeds(job, until))
        if self._reason:
            worker.tell(Drain())
        assert worker.process.stdout is not None
        with contextlib.suppress(ConnectionError, msgspec.DecodeError):  # a last line may be torn
            while line := await worker.process.stdout.readline():
                saying = messages.saying(line)
                worker.heard(saying)
                worker.ended = isinstance(saying, Report) and saying.round == -1
                if self._state == "starting":
                    self._state = "crawling"
        await worker.process.wait()

    def _log(self, worker: WorkerProcess) -> Path:
        return self._layout.data / "logs" / f"{self._layout.worker(worker.index)}.log"

    def _said_last(self, worker: WorkerProcess) -> str:
        log = self._log(worker)
        words = log.read_text(errors="replace").strip().splitlines()[-1:] if log.exists() else []
        return " ".join(words) or "no last words"

    def _last_words(self, worker: WorkerProcess) -> str:
        said = self._said_last(worker)
        return f"worker {worker.index} died {VAIN_DEATHS} times in a row: {said} (see {self._log(worker)})"

    # -- watching ----------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(ROUND)
            if not self._reason:
                self._judge()
            elif time.monotonic() >= self._halt_at:
                self._halt_at = inf
                for worker in self._workers:
                    worker.tell(Halt())
            self._report(self.progress())
            self._round += 1
            for worker in self._workers:
                worker.tell(Poll(self._round))

    def _judge(self) -> None:
        """Share out pages; end the crawl when all workers stood still through a whole round."""
        if self._round % LOOK_EVERY == 0:
            self._look_for_more()
        reports = [worker.report for worker in self._workers if worker.report is not None]
        if len(reports) < len(self._workers):
            return
        if self._limit:
            self._share_out()
            if self._pages() >= self._limit:
                self._end("max-pages")
                return
        fresh = all(report.round == self._round for report in reports)
        self._tell_of_jobs(fresh and not any(report.sending for report in reports))
        idle = fresh and all(report.idle for report in reports) and self._all_taken()
        if not idle or self._starving():
            self._still = -1
            self._state = "crawling"
            return
        activity = sum(report.activity for report in reports)
        if activity == self._still:
            self._look_for_more()
            if self._all_taken():
                self._end("finished")
        self._still = activity

    # -- jobs --------------------------------------------------------------------------------------------------

    def _new_seeds(self) -> list[Job]:
        self._jobs.reload()
        jobs = (job for job in self._jobs.all() if job.id not in self._refused)
        return [job for job in jobs if self._jobs.size(job.id) > self._seeds.get(job.id, 0)]

    def _hand_out(self, job: Job) -> None:
        """Have the workers take in the new seeds of a job. Raises UsageError when this crawl may not."""
        until, start = self._jobs.size(job.id), max(self._vetted.get(job.id, 0), self._seeds.get(job.id, 0))
        if until > start:
            refuse_rudeness(msgspec.structs.replace(self._config, scope=job.scope), self._jobs.seeds(job.id, start))
        self._seeds[job.id] = until
        for worker in self._workers:
            worker.tell(Seeds(job.id, until))

    def _look_for_more(self) -> None:
        """While the crawl runs: a job that it may not do is left out, the others go on."""
        for job in self._new_seeds():
            try:
                self._hand_out(job)
                self._say(f"{_named(job)} is taken up.")
            except UsageError as error:
                self._refused.add(job.id)
                self._say(f"{_named(job)} is left out: {error}")

    def _all_taken(self) -> bool:
        return all(worker.taken == self._seeds for worker in self._workers)

    def _tell_of_jobs(self, certain: bool) -> None:
        """Say of each job once that it is over.

        The workers' reports are of slightly different moments. What stood the same in two rounds, with no link under
        way in either, stood so for all of them at once in between.
        """
        jobs = self.progress().tally.jobs if certain else None
        before, self._jobs_before = self._jobs_before, jobs
        if jobs is None or before is None:
            return
        if self._over is None:
            self._over = self._over_before()
        for number, until in self._seeds.items():
            tally = jobs.get(number, JobTally())
            if not tally.over:
                self._over.discard(number)
                continue
            taken = all(worker.taken.get(number) == until for worker in self._workers)
            if taken and tally == before.get(number, JobTally()) and number not in self._over:
                self._over.add(number)
                self._tell_end(number, tally)

    def _over_before(self) -> set[int]:
        """The jobs that an earlier run brought to an end."""
        start = Tally()
        for worker in self._workers:
            start.add(worker.first or Tally())
        return {number for number, tally in start.jobs.items() if tally.over}

    def _tell_end(self, number: int, tally: JobTally) -> None:
        """Of a crawl with a single job its own end says the same."""
        if len(self._seeds) > 1:
            job = self._jobs.get(number)
            self._say(f"{_named(job)} is finished: {tally.pages:,} pages of {tally.discovered:,} URLs.")

    # -- pages -------------------------------------------------------------------------------------------------

    def _share_out(self) -> None:
        left = self._limit - self._pages() - sum(worker.unused() for worker in self._workers)
        # Large at first, for a round takes time; small towards the end, so that no worker sits on what another needs.
        share = max(GRANT, left // (2 * len(self._workers))) if len(self._workers) > 1 else self._limit
        share = min(share, max(1, self._limit // len(self._workers)))
        awake = [worker for worker in self._workers if worker.report is not None and not worker.report.idle]
        for worker in sorted(awake, key=WorkerProcess.unused):
            if worker.unused() < share / 2 and left > 0:
                pages = min(share, left)
                worker.granted += pages
                worker.tell(Grant(pages))
                left -= pages
        if left <= 0 and self._starving():
            for worker in self._workers:
                if worker.report is not None and worker.report.idle and worker.unused() > 0:
                    worker.tell(Grant(-worker.unused()))

    def _starving(self) -> bool:
        """A worker could go on if it were granted more, and more can be had."""
        if not self._limit or self._pages() >= self._limit:
            return False
        hungry = any(w.unused() <= 0 and w.report is not None and w.has_work for w in self._workers)
        return hungry and any(worker.unused() > 0 for worker in self._workers)

    def _pages(self) -> int:
        return sum(worker.pages for worker in self._workers)

    def progress(self) -> Progress:
        tally = Tally()
        counts: dict[str, int] = {}
        for worker in self._workers:
            if worker.report is not None:
                tally.add(worker.report.tally)
                for name, count in worker.report.counts.items():
                    counts[name] = counts.get(name, 0) + count
        next_at = min((w.report.next_at for w in self._workers if w.report and w.report.next_at), default=0.0)
        state = "waiting" if self._state == "crawling" and not counts.get("leased") else self._state
        cpu = sum(w.cpu_before + (w.report.cpu if w.report else 0.0) for w in self._workers)
        elapsed = time.monotonic() - self._began
        return Progress(elapsed, tally, self._pages(), counts, len(self._workers), self._restarts, state, next_at, cpu)


def _named(job: Job) -> str:
    return f"Job {job.id} ({job.name})"
