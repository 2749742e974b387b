"""How much RAM does a worker need while its frontier grows to five million URLs?

The real State, Seen, Router, RobotsBook and Frontier, fed as a crawl feeds them: groups of new links among links seen
before, one commit a group, a thousand leases out at any time, settled in turn. What a worker holds besides is loaded
too (the libraries, the language model, the memory of recent links); sockets and bodies in flight are not, see
crawl_cpu for those. Time is a number here, so that no politeness interval is waited for.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random

import msgspec
import psutil
from _run import Report, Row, options

from harvestman import wiring
from harvestman.config import Config
from harvestman.embedded.rows import FAMILIES
from harvestman.embedded.state import RocksState
from harvestman.frontier.book import RobotsBook
from harvestman.frontier.frontier import Frontier
from harvestman.frontier.routing import Routed, Router
from harvestman.frontier.seen import Seen
from harvestman.model import Discovery, Instant, Job, Lease, RecordRef, Response, Status, Tally, Visit
from harvestman.pages.language import language
from harvestman.policy.importance import Importance, share
from harvestman.policy.outcomes import Decision
from harvestman.policy.scope import Scope
from harvestman.ports import Content

LIMIT = 400
"""MB: what the mission allows a worker."""
HOT = "hot-domain.test"
GROUP = 64
IN_FLIGHT = 1_000
RUN = 10
"""New links to one host in a row."""
PULSE = 0.1
"""Seconds of the simulated clock per group: 640 pages a second."""
SPARKS = "▁▂▃▄▅▆▇█"
SHARE = share(1.0, 60)
"""What a link of an average page gets."""
_encode = msgspec.msgpack.Encoder().encode


class EveryJob:
    """`ports.Jobs`: whatever its number, a job that wants everything."""

    def get(self, number: int) -> Job:
        return Job(number, "bench", Instant(0.0), scope="all")

    def scope(self, number: int) -> Scope:
        return Scope("all")


class Feed:
    """Links as a crawl finds them: each URL once as new, and now and then again."""

    def __init__(self, urls: int, hosts: int, hot: int, rng: Random) -> None:
        self._hosts = hosts
        self._every = max(2, urls // hot) if hot else urls + 1
        self._rng = rng
        self.given = 0

    def url(self, number: int) -> str:
        """The URL of a number, about 75 characters; every so many belong to the hot domain."""
        digest = sha256(b"%d" % number).hexdigest()[:16]
        if number % self._every == 0:
            return f"http://{HOT}/catalogue/{digest}/item-{number:08d}?ref=list&page={number % 97}"
        # Pages link to their own host first, so links come in runs; a step that shares no factor with the number of
        # hosts visits them all before it comes back.
        host = (number - number // self._every) // RUN * 7_919 % self._hosts
        return f"http://host-{host:06d}.test/section-{number % 23}/{digest}/article-{number:08d}.html"

    def group(self, new: int, again: int) -> list[str]:
        urls = [self.url(number) for number in range(self.given, self.given + new)]
        self.given += new
        return urls + [self.url(self._rng.randrange(self.given)) for _ in range(again)]


@dataclass(slots=True)
class Sample:
    urls: int
    rss: float
    memtables: float
    cache: float
    readers: float
    disk: int
    cpu: float
    resident: int


@dataclass(slots=True)
class Bench:
    """One worker's frontier, and the crawl that is played to it."""

    directory: Path
    feed: Feed
    config: Config
    now: Instant = Instant(1_800_000_000.0)
    out: deque[Lease] = field(default_factory=deque)
    samples: list[Sample] = field(default_factory=list)
    settled: int = 0
    added: int = 0
    adding: float = 0.0
    """CPU seconds of routing, adding and committing links."""

    def __post_init__(self) -> None:
        memory = self.config.memory
        self.state = RocksState(
            self.directory / "state", cache_bytes=memory.cache_bytes, write_buffer=memory.write_buffer
        )
        self.router = Router(self.config.partitions)
        self.seen = Seen(self.state, memory.seen_capacity)
        book = RobotsBook(self.state, self.config.agent)
        self.rng = Random(7)
        self.frontier = Frontier(
            self.state, self.seen, book, self.router, EveryJob(), self.config, self.rng, Instant(0.0)
        )
        self.recent = Importance(memory.recent_links)
        self.tally = Tally()
        self.process = psutil.Process()

    # `dataclass(slots=True)` wants every attribute named.
    state: RocksState = field(init=False)
    router: Router = field(init=False)
    seen: Seen = field(init=False)
    rng: Random = field(init=False)
    frontier: Frontier = field(init=False)
    recent: Importance = field(init=False)
    tally: Tally = field(init=False)
    process: psutil.Process = field(init=False)

    async def turn(self, new: int, again: int) -> None:
        """One group of a crawl: answers in, links in, commit, leases out."""
        self.now = Instant(self.now + PULSE)
        await self._settle(GROUP)
        began = time.process_time()
        links = [self._routed(url) for url in self.feed.group(new, again) if self.recent.told(url, SHARE)]
        self.added += await self.frontier.add(links, self.now)
        await self._commit()
        self.adding += time.process_time() - began
        await self._lease()

    def _routed(self, url: str) -> Routed:
        depth = 1 + len(url) % 4
        return self.router.route(
            Discovery(url, depth, "http://host-000001.test/section-1/where-it-was.html", "a", 0, 1, 0.02)
        )

    async def _commit(self) -> None:
        changes = self.frontier.take()
        changes.marks["tally"] = _encode(self.tally)
        if changes:
            await self.state.commit(changes)
        await self.frontier.committed(self.now)

    async def _lease(self) -> None:
        while len(self.out) < IN_FLIGHT and (lease := await self.frontier.next(self.now)) is not None:
            if not lease.address and not self.frontier.claim(
                lease, _address(lease.host), Instant(self.now + 300), self.now
            ):
                continue
            self.out.append(lease)

    async def _settle(self, count: int) -> None:
        for _ in range(min(count, len(self.out))):
            lease = self.out.popleft()
            answer = _answer(lease, self.now)
            if lease.robots:
                await self.frontier.settle_robots(lease, answer, b"User-agent: *\nDisallow: /private/\n", 0.5)
                continue
            ref = RecordRef("w00-20300101000000-00000.warc.gz", self.settled * 20_000, 20_000)
            digest = sha256(lease.id).digest()
            visit = Visit(self.now, 200, "ok", digest, 1 << 63, '"etag-0123456789"', "", "text/html", 30_000, ref)
            self.frontier.settle(lease, answer, Decision(Status.FETCHED, "ok"), visit, 0.5)
            self.frontier.changes.contents[digest] = Content(lease.url, self.now, "sha256:" + digest.hex(), ref)
            self.settled += 1

    def sample(self) -> Sample:
        found = Sample(
            self.added, self.process.memory_info().rss / 1e6,
            self._sum("rocksdb.cur-size-all-mem-tables"), self._property("url", "rocksdb.block-cache-usage") / 1e6,
            self._sum("rocksdb.estimate-table-readers-mem"), _size(self.directory), time.process_time(),
            self.frontier.counts()["resident"],
        )  # fmt: skip
        self.samples.append(found)
        return found

    def _sum(self, name: str) -> float:
        return sum(self._property(family, name) for family in FAMILIES) / 1e6

    def _property(self, family: str, name: str) -> int:
        return self.state._family[family].property_int_value(name) or 0


def _address(host: str) -> str:
    number = int.from_bytes(sha256(host.encode()).digest()[:3], "big")
    return f"127.{number >> 16}.{number >> 8 & 255}.{number & 255}"


def _answer(lease: Lease, now: Instant) -> Response:
    return Response(lease.url, 200, b"", {}, b"", lease.address, lease.taken, lease.taken, now)


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def sparkline(values: list[float], top: float) -> str:
    """One character a value, from nothing to `top`."""
    return "".join(SPARKS[min(7, int(8 * value / top))] for value in values)


async def grow(bench: Bench, urls: int, new: int, again: int, step: int) -> None:
    """Feed `urls` links, sampling every `step`."""
    next_sample = step
    sync_at = time.monotonic() + 5
    while bench.feed.given < urls:
        await bench.turn(new, again)
        if time.monotonic() >= sync_at:
            await bench.state.sync()
            sync_at = time.monotonic() + 5
        if bench.feed.given >= next_sample:
            next_sample += step
            found = bench.sample()
            print(f"{found.urls:>10,} URLs  {found.rss:6.1f} MB  {found.cpu:6.1f} s CPU", file=sys.stderr, flush=True)


def _row(s: Sample) -> Row:
    return f"{s.urls:,}", s.rss, s.memtables, s.cache, s.readers, s.disk / 1e6, s.disk // s.urls, s.resident, s.cpu


def tell(report: Report, bench: Bench, start: float) -> None:
    samples = bench.samples
    shown = samples[:: max(1, len(samples) // 25)]
    if shown[-1] is not samples[-1]:
        shown.append(samples[-1])
    head = ("URLs", "RSS MB", "memtables", "block cache", "table readers", "disk MB", "B/URL", "hosts in RAM", "CPU s")
    report.table(head, [_row(sample) for sample in shown])
    peak = max(sample.rss for sample in samples)
    report.say(f"RSS, 0 to {LIMIT} MB: {sparkline([sample.rss for sample in samples], LIMIT)}")
    last = samples[-1]
    report.say(f"before the first URL {start:.0f} MB, largest {peak:.0f} MB, at the end {last.rss:.0f} MB")
    cost = bench.adding / bench.added * 1e6
    report.say(f"{cost:.1f} us CPU per URL added: routing, seen, commit, in Python and in RocksDB's threads")
    report.say(f"{last.disk / last.urls:.0f} bytes per URL on disk; {bench.settled:,} pages settled meanwhile")


def _arguments() -> argparse.Namespace:
    parser = options(__doc__ or "")
    parser.add_argument("--urls", type=int, default=5_000_000, help="how far the frontier grows")
    parser.add_argument("--hosts", type=int, default=225_000, help="hosts besides the hot one")
    parser.add_argument("--hot", type=int, default=500_000, help="URLs of the one hot domain")
    parser.add_argument("--new", type=int, default=1_000, help="new links in a group of 64 pages")
    parser.add_argument("--again", type=int, default=500, help="links seen before, in the same group")
    parser.add_argument("--step", type=int, default=100_000, help="URLs between samples")
    return parser.parse_args()


def main() -> int:
    wanted = _arguments()
    report = Report(__doc__ or "")
    assert wiring.__file__, "what a worker imports is imported"
    assert language("A sentence that makes the model come into memory.") == "en"
    directory = Path(tempfile.mkdtemp(prefix="hm-bench-"))
    try:
        feed = Feed(wanted.urls, wanted.hosts, wanted.hot, Random(7))
        bench = Bench(directory, feed, Config())
        start = bench.process.memory_info().rss / 1e6
        asyncio.run(grow(bench, wanted.urls, wanted.new, wanted.again, wanted.step))
        tell(report, bench, start)
        bench.state.shut()
    finally:
        shutil.rmtree(directory)
    peak = max(sample.rss for sample in bench.samples)
    report.say(f"{'holds' if peak < LIMIT else 'FAILS'}: below {LIMIT} MB")
    report.keep(wanted.no_keep)
    return 0 if peak < LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
