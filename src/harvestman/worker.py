"""One worker process: a crawler, told what to do over stdin, telling how it stands over stdout.

When its supervisor disappears, stdin ends, and so does the worker: at once, losing nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import os
import resource
import signal
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from harvestman import messages
from harvestman.errors import HarvestmanError
from harvestman.frontier.schedule import NEVER
from harvestman.messages import Accepted, Drain, Grant, Halt, Poll, Report, Seeds, Start
from harvestman.wiring import Wired, open_crawler

try:
    from uvloop import run
except ImportError:
    from asyncio import run  # type: ignore[assignment]  # called with one argument, which both take

SOW_AT_ONCE = 0.2
"""Seconds for seeds at a time, in which no socket is served."""
TIDY_EVERY = 20.0
"""Seconds; each time takes some 20 ms, in a thread."""


class Worker:
    """Carries out a supervisor's commands."""

    def __init__(self, wired: Wired, limited: bool) -> None:
        self._crawler = wired.crawler
        self._seeding = wired.seeding
        self._sending = wired.sending
        self._limited = limited
        self._granted = 0
        self._sowing: asyncio.Task[None] | None = None
        if limited:
            self._crawler.allowance = 0

    async def obey(self, reader: asyncio.StreamReader) -> None:
        """Until stdin ends, or anything goes wrong, which both mean: halt."""
        try:
            while line := await reader.readline():
                self._carry_out(messages.command(line))
        finally:
            self._crawler.halted = True

    def _carry_out(self, command: messages.Command) -> None:
        crawler = self._crawler
        match command:
            case Seeds(job, until):
                self._take_seeds(job, until)
            case Grant(pages):
                self._grant(pages)
            case Poll(number):
                say(self._report(number))
            case Drain():
                crawler.draining = True
            case Halt():
                crawler.halted = True
            case Start():
                raise ValueError("a worker is started once")

    def _take_seeds(self, job: int, until: int) -> None:
        self._seeding.want(job, until)
        if self._sowing is None or self._sowing.done():
            self._sowing = asyncio.create_task(self._sow())

    async def _sow(self) -> None:
        """Read seeds beside the crawl, in small portions, as long as it goes on: half of the time is the crawl's."""
        crawler, clock = self._crawler, asyncio.get_running_loop().time
        began, ours = clock(), 0.0
        try:
            while self._seeding.wanting and not (crawler.draining or crawler.halted):
                for job, until in await self._seeding.step():
                    say(Accepted(job, until))
                paused = clock()
                if paused - began < ours:
                    continue
                await asyncio.sleep(paused - began)
                began = clock()
                ours = min(began - paused, SOW_AT_ONCE)  # as long as the crawl had its turn
        except BrokenPipeError:
            crawler.halted = True  # the supervisor is gone
        except Exception as error:
            die(error)  # at once: what is staged is half done, and the crawl beside us would commit it

    async def sown(self) -> None:
        """The portion that is under way is done."""
        if self._sowing is not None:
            await self._sowing

    def _grant(self, pages: int) -> None:
        if pages < 0:
            # Returned pages stay in the sum: what is unused says that they are gone.
            self._crawler.allowance -= min(-pages, self._crawler.unused())
        else:
            self._granted += pages
            self._crawler.allowance += pages

    def _report(self, number: int) -> Report:
        crawler = self._crawler
        usage = resource.getrusage(resource.RUSAGE_SELF)
        next_at = crawler.next_at()
        return Report(
            number,
            crawler.tally,
            crawler.counts(),
            crawler.idle,
            int(crawler.allowance) if self._limited else -1,
            self._granted,
            0.0 if next_at >= NEVER else next_at,
            usage.ru_utime + usage.ru_stime,
            self._sending(),
        )


def die(error: Exception) -> NoReturn:
    """As if killed, with last words. What is the user's to mend the supervisor shows, and does not try again."""
    if isinstance(error, HarvestmanError):
        print(error, file=sys.stderr, flush=True)
        os._exit(error.exit_code)
    traceback.print_exception(error)
    sys.stderr.flush()
    os._exit(1)


def say(saying: messages.Saying) -> None:
    """A short line to a pipe: written whole or not at all."""
    sys.stdout.buffer.write(messages.encode(saying) + b"\n")
    sys.stdout.buffer.flush()


async def _stdin() -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=64 << 20)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def _tidy() -> None:
    """Give back what glibc holds free between its blocks: after RocksDB has put files together, 80 MB of 400."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    while trim is not None:
        await asyncio.sleep(TIDY_EVERY)
        await asyncio.to_thread(trim, 0)


async def work() -> None:
    reader = await _stdin()
    start = messages.command(await reader.readline())
    if not isinstance(start, Start):
        raise ValueError("the first command must be start")
    config = start.config
    wired = await open_crawler(config, index=start.index, sockets=Path(start.sockets))
    crawler = wired.crawler
    worker = Worker(wired, limited=config.limits.max_pages > 0)
    obeying = asyncio.create_task(worker.obey(reader))
    say(worker._report(0))
    tidying = asyncio.create_task(_tidy())
    await crawler.run(lambda: crawler.draining)
    if obeying.done() and (failure := obeying.exception()) is not None and not isinstance(failure, BrokenPipeError):
        raise failure
    obeying.cancel()
    tidying.cancel()
    await worker.sown()
    await crawler.close()
    with contextlib.suppress(BrokenPipeError):
        say(worker._report(-1))


def _allow_many_sockets() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 1 << 17) if most > 0 else 1 << 17, most))


def collect_rarely() -> None:
    """What lives now lives for ever; after that, cycles are looked for rarely: the hot path makes none."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def main() -> None:
    # A signal to the whole group is for the supervisor, which then tells its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _allow_many_sockets()
    collect_rarely()
    try:
        run(work())
    except HarvestmanError as error:
        die(error)
    # RocksDB's threads are done; skip the interpreter's slow farewell.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
