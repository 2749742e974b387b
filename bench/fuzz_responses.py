"""Does any answer crash, stall or leak? Mutated answers against the whole response path, for as long as is asked.

A server in a process of its own makes hostile answers from well-formed ones (bench/_fuzz.py). They go the way of a
crawl: Fetcher, decision, content decoding, WARC record, charset, parser, links. After every batch it is checked that
each fetch got exactly one answer in time, that clean pages of the same hosts come untouched, that every raw record can
be read back, and that descriptors and memory stay where they were. A failure names its seed and case and is kept in a
file for --replay.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import itertools
import multiprocessing
import os
import resource
import socket
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from random import Random

import msgspec
import uvloop
from _fuzz import Case, Cook, answer, corpus
from _run import SUITES, Report, options

from harvestman.clock import WallClock
from harvestman.config import Config, Memory
from harvestman.embedded.state import RocksState
from harvestman.fetch.curl import Fetcher, Limits
from harvestman.frontier.routing import Router
from harvestman.harvest import Harvest, Taken
from harvestman.model import (
    LISTING,
    Answer,
    Bytes,
    Failure,
    FailureKind,
    Instant,
    Lease,
    Request,
    Response,
    Seconds,
    Status,
    UrlRecord,
)
from harvestman.policy import urls
from harvestman.policy.guard import Guard
from harvestman.simulate.world import OneJob
from harvestman.store.warc import WarcWriter, replay

HOSTS = 50
AT_ONCE = 250
BATCH = 500
LIMITS = Limits(
    connect=Seconds(1.0),
    first_byte=Seconds(1.0),
    total_html=Seconds(1.0),
    total_large=Seconds(2.0),
    held=Bytes(64 << 20),
)
LONGEST = LIMITS.first_byte + LIMITS.total_large + 0.25
SLACK = 20.0
"""Seconds an answer may be late on a machine that has other things to do."""
CPU_OF_ONE = 2.0
"""CPU seconds that nothing an answer holds may cost, from decision to links."""
WARM_UP = 12
"""Batches before memory and descriptors are measured."""
GROWTH = 96 << 20
KEPT = 64
CLEAN = answer(b"<p>clean")
PAUSE = 0.3
"""Seconds before a host is asked again, less than any crawl leaves: what a server sends too much is there by then."""
ENOUGH = 10
"""Failures after which there is no point in going on."""


# -- the server --------------------------------------------------------------------------------------------------


class Server:
    """Speaks case N when asked for /case/N, the clean page otherwise."""

    def __init__(self, cook: Cook, only: Case | None) -> None:
        self._cook = cook
        self._only = only

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError, RuntimeError):
            while await self._speak(await reader.readuntil(b"\r\n\r\n"), reader, writer):
                pass
        writer.close()

    async def _speak(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        path = head.split(b" ", 2)[1]
        if not path.startswith(b"/case/"):
            writer.write(CLEAN)
            await writer.drain()
            return True
        case = self._only or self._cook.case(int(path[6:]))
        for number, part in enumerate(case.parts):
            if number and case.pause:
                await asyncio.sleep(case.pause)
            writer.write(part)
            await writer.drain()
        match case.end:
            case "stall":
                await asyncio.wait_for(reader.read(1), LONGEST + SLACK)
            case "reset":
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return case.end == "keep"


async def _serve(seed: int, only: Case | None, pipe: Pipe) -> None:
    server = Server(Cook(seed, corpus(SUITES)), only)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, backlog=1024)
    pipe.send(listening.sockets[0].getsockname()[1])
    await asyncio.to_thread(pipe.poll, None)  # until the other end is gone, however it went


def serve(seed: int, only: Case | None, pipe: Pipe) -> None:
    uvloop.run(_serve(seed, only, pipe))


@contextlib.contextmanager
def served(seed: int, only: Case | None) -> Iterator[int]:
    """The port of a server in a process of its own."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    child = spawn.Process(target=serve, args=(seed, only, theirs), daemon=True)
    child.start()
    try:
        yield int(ours.recv())
    finally:
        child.terminate()
        child.join(5)


# -- the crawler's side ------------------------------------------------------------------------------------------


class Fuzz:
    """Sends batches through the response path and remembers what went wrong."""

    def __init__(self, port: int, folder: Path, fetcher: Fetcher, state: RocksState, rng: Random) -> None:
        self._port = port
        self._folder = folder
        self._fetcher = fetcher
        self._state = state
        self._rng = rng
        self._router = Router(1)
        self._config = Config(scope="all", memory=Memory(recent_links=5_000))
        self.failures: list[tuple[int, str]] = []
        """Case number (-1 for a whole batch) and what is wrong."""
        self.kinds: Counter[str] = Counter()
        self.slowest = 0.0, -1
        self.latest = 0.0
        self.stray: list[str] = []
        """Exceptions nobody caught."""

    async def batch(self, numbers: range) -> None:
        """A batch of cases, then a clean page of every host, then the checks."""
        answers = await self._fetch([(number, self._url(number)) for number in numbers])
        prefix = f"fuzz-{numbers.start}"
        warc = WarcWriter(self._folder, prefix, software="fuzz", contact="", now=WallClock().now)
        harvest = Harvest(self._config, self._state, warc, self._router, OneJob(20), self._rng, {})
        taken = [(number, await self._harvest(harvest, number, reply)) for number, reply in answers]
        warc.close()
        self._check_store(prefix, [(number, one) for number, one in taken if one is not None])
        await self._check_clean(numbers)
        if self.stray:
            self.failures.append((-1, f"batch {numbers}: {self.stray[0]}"))
            self.stray.clear()

    async def _fetch(self, wanted: list[tuple[int, str]]) -> list[tuple[int, Answer]]:
        """Every answer with its number; none may be missing, doubled or late."""
        answers: list[tuple[int, Answer]] = []
        room, over = asyncio.Semaphore(AT_ONCE), asyncio.Event()

        def arrived(number: int, reply: Answer) -> None:
            answers.append((number, reply))
            room.release()
            if len(answers) == len(wanted):
                over.set()

        for number, url in wanted:
            await room.acquire()
            request = Request(url, "127.0.0.1", listing=number % 5 == 0)
            self._fetcher.start(request, lambda reply, number=number: arrived(number, reply))  # type: ignore[misc]
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), 5 * (LONGEST + SLACK))
        times = Counter(number for number, _ in answers)
        self.failures += [(n, f"{times[n]} answers to one start") for n, _ in wanted if times[n] != 1]
        for number, reply in answers:
            took = reply.finished - reply.started
            self.latest = max(self.latest, took)
            if took > LONGEST + SLACK:
                self.failures.append((number, f"answered after {took:.1f} s"))
        return answers

    def _url(self, number: int) -> str:
        return f"http://h{number % HOSTS}.test:{self._port}/case/{number}"

    async def _harvest(self, harvest: Harvest, number: int, reply: Answer) -> Taken | None:
        """What a crawl makes of the answer, and what it costs."""
        url = self._url(number)
        record = UrlRecord(url, Status.PENDING, 0, 0, 0, Instant(0.0), "seed", kind=LISTING if number % 5 == 0 else "a")
        lease = Lease(urls.host_of(url), "127.0.0.1", url, self._router.id_of(url), record, urls.origin_of(url))
        began = time.process_time()
        try:
            [taken] = await harvest.gather([(lease, record, reply, None)])
            visit = taken.visit()
        except Exception as fault:
            self.failures.append((number, "".join(traceback.format_exception(fault))))
            return None
        spent = time.process_time() - began
        self.slowest = max(self.slowest, (spent, number))
        if spent > CPU_OF_ONE:
            self.failures.append((number, f"{spent:.2f} CPU s from decision to links"))
        if not visit.reason:
            self.failures.append((number, "an outcome without a reason"))
        self.kinds[_word(reply, taken)] += 1
        return taken

    def _check_store(self, prefix: str, taken: list[tuple[int, Taken]]) -> None:
        """Every response lies in the WARC file, its body as it came."""
        stored = {ref.offset: response for ref, response in replay(self._folder, prefix, None)}
        for number, one in taken:
            reply = one.answer
            if isinstance(reply, Response) and one.ref is not None and one.original is None:
                back = stored.get(one.ref.offset)
                if back is None or back.body != reply.body or back.url != reply.url:
                    self.failures.append((number, "its WARC record does not read back"))
        for path in self._folder.glob(f"{prefix}-*"):
            path.unlink()

    async def _check_clean(self, numbers: range) -> None:
        """A clean page of every host: what went before must not show in it. Who spoils its own is asked again."""
        hosts = list(range(min(HOSTS, len(numbers))))
        for again in range(8):
            if not hosts:
                return
            await asyncio.sleep(PAUSE + again)
            wanted = [(-1 - host, f"http://h{host}.test:{self._port}/clean") for host in hosts]
            replies = {-1 - number: reply for number, reply in await self._fetch(wanted)}
            hosts = [host for host in hosts if _spoiled(replies.get(host))]
            for host, reply in replies.items():
                clean = isinstance(reply, Response) and reply.head + reply.body == CLEAN
                if not clean and host not in hosts:
                    self.failures.append((-1, f"batch {numbers}: host {host} gave {reply!r:.300} for a clean page"))
        if hosts:
            self.failures.append((-1, f"batch {numbers}: hosts {hosts} do not answer any more"))


def _spoiled(reply: Answer | None) -> bool:
    """A failure that may be of its own making: it was late, its connection broke as the request went out, or it still
    went on with an answer that was over, so that the next one began with no status line. Another answer's bytes as a
    page would be none of these.
    """
    return isinstance(reply, Failure) and reply.kind in (FailureKind.TIMEOUT, FailureKind.CONNECT, FailureKind.PROTOCOL)


def _word(reply: Answer, taken: Taken) -> str:
    """What an answer is counted under."""
    if taken.decision.error:
        return taken.decision.error
    return f"{taken.decision.status.name.lower()} {reply.status // 100 if isinstance(reply, Response) else 0}xx"


def resident() -> int:
    """Bytes of RAM this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


# -- the run -----------------------------------------------------------------------------------------------------


class Figures(msgspec.Struct):
    """What a run measured."""

    cases: int = 0
    cpu: float = 0.0
    rss_warm: int = 0
    rss_end: int = 0
    rss_peak: int = 0
    fds_begin: int = 0
    fds_warm: int = 0
    fds_most: int = 0
    fds_end: int = 0


async def run(
    port: int, batches: Iterator[range], until: float, report: Report, keeper: Keeper
) -> tuple[Fuzz, Figures]:
    """Batch after batch until the time is over or enough has failed."""
    loop = asyncio.get_running_loop()
    figures = Figures(fds_begin=descriptors())
    with tempfile.TemporaryDirectory() as name:
        state = RocksState(Path(name) / "state")
        fds_bare = descriptors()
        fetcher = Fetcher(
            user_agent="fuzz/1", limits=LIMITS, guard=Guard(("127.0.0.0/8",)).refusal, now=WallClock().now,
            max_connections=KEPT,
        )  # fmt: skip
        fuzz = Fuzz(port, Path(name), fetcher, state, Random(1))
        loop.set_exception_handler(lambda _, context: fuzz.stray.append(str(context)))
        sys.excepthook = lambda kind, fault, _: fuzz.stray.append(f"{kind.__name__}: {fault}")
        began, told = time.process_time(), time.monotonic()
        for count, numbers in enumerate(batches):
            await fuzz.batch(numbers)
            figures.cases += len(numbers)
            figures.cpu = time.process_time() - began
            _measure(fuzz, figures, count, numbers)
            keeper.tell(fuzz.failures)
            if time.monotonic() > told + 60:
                told = time.monotonic()
                report.say(_progress(figures, fuzz))
            if time.monotonic() > until or len(fuzz.failures) >= ENOUGH:
                break
        await fetcher.close()
        await asyncio.sleep(0.05)
        figures.fds_end = descriptors() - fds_bare
        if figures.fds_end > 0:
            fuzz.failures.append((-1, f"{figures.fds_end} descriptors were never given back"))
        state.shut()
    sys.excepthook = sys.__excepthook__
    return fuzz, figures


def _measure(fuzz: Fuzz, figures: Figures, count: int, numbers: range) -> None:
    gc.collect()
    figures.rss_end, open_now = resident(), descriptors()
    figures.rss_peak = max(figures.rss_peak, figures.rss_end)
    figures.fds_most = max(figures.fds_most, open_now)
    if count <= WARM_UP:
        figures.rss_warm = max(figures.rss_warm, figures.rss_end)
        figures.fds_warm = max(figures.fds_warm, open_now)
    elif figures.rss_end > figures.rss_warm + GROWTH:
        fuzz.failures.append(
            (-1, f"{numbers}: {figures.rss_end >> 20} MB resident, {figures.rss_warm >> 20} when warm")
        )
    if open_now > figures.fds_begin + KEPT + 40:
        fuzz.failures.append((-1, f"batch {numbers}: {open_now} descriptors open"))


def _progress(figures: Figures, fuzz: Fuzz) -> str:
    return (
        f"  {figures.cases:>9,} cases, {figures.cpu:,.0f} CPU s, {figures.rss_end >> 20} MB, "
        f"{figures.fds_most} descriptors at most, {len(fuzz.failures)} failures"
    )


class Keeper:
    """Says what failed as soon as it has, and puts the bytes where --replay finds them."""

    def __init__(self, seed: int, folder: Path | None, report: Report) -> None:
        self._seed = seed
        self._folder = folder
        self._report = report
        self._told = 0

    def tell(self, failures: list[tuple[int, str]]) -> None:
        for number, words in failures[self._told :]:
            self._report.say(f"FAILED: seed {self._seed}, case {number}: {words}")
            if number >= 0 and self._folder is not None:
                path = self._folder / f"fuzz-{self._seed}-{number}.json"
                path.write_bytes(msgspec.json.encode(Cook(self._seed, corpus(SUITES)).case(number)))
                self._report.say(f"  kept: {path}")
        self._told = len(failures)


def _arguments() -> argparse.Namespace:
    parser = options((__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--cases", type=int, default=0, help="stop after so many; 0 for no limit")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replay", type=Path, help="send this one case, kept by an earlier run, and nothing else")
    parser.add_argument(
        "--failures", type=Path, default=Path(tempfile.gettempdir()), help="where failed cases are kept"
    )
    return parser.parse_args()


def main() -> int:
    wanted = _arguments()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard > 0 else soft, hard))
    report = Report(__doc__ or "")
    only = msgspec.json.decode(wanted.replay.read_bytes(), type=Case) if wanted.replay else None
    most = 1 if only else wanted.cases or sys.maxsize
    batches = (
        range(at, min(at + BATCH, most)) for at in itertools.takewhile(lambda n: n < most, itertools.count(0, BATCH))
    )
    keeper = Keeper(wanted.seed, None if only else wanted.failures, report)
    until = time.monotonic() + 60 * wanted.minutes
    with served(wanted.seed, only) as port:
        fuzz, figures = uvloop.run(run(port, batches, until, report, keeper))
    keeper.tell(fuzz.failures)
    report.table(("answers by outcome", "count"), fuzz.kinds.most_common())
    rows = [
        ("cases", figures.cases), ("failures", len(fuzz.failures)), ("CPU s", figures.cpu),
        ("CPU ms per case", figures.cpu / max(1, figures.cases) * 1e3),
        ("slowest case, CPU ms", fuzz.slowest[0] * 1e3), ("which", fuzz.slowest[1]), ("latest answer, s", fuzz.latest),
        ("RSS MB, warm", figures.rss_warm >> 20), ("RSS MB, end", figures.rss_end >> 20),
        ("RSS MB, peak", figures.rss_peak >> 20), ("descriptors, begin", figures.fds_begin),
        ("descriptors, warm", figures.fds_warm), ("descriptors, most", figures.fds_most),
        ("descriptors not given back", figures.fds_end),
    ]  # fmt: skip
    report.table(("measured", "figure"), rows)
    report.keep(wanted.no_keep)
    return 1 if fuzz.failures else 0


if __name__ == "__main__":
    sys.exit(main())
