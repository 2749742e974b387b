"""Every fault a server can have, alone and a thousand at once: each ends in an outcome, and nothing is left.

Wall times are the limits of the fetches; what is asserted is that they are kept, that the answers are of the right
kind, and that descriptors and memory come back.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import resource
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import cast

import pytest
from stages import faultserver
from stages.faultserver import BOMBS, ENDLESS_KINDS, HEAD, STATUS_LINE, WHOLE, WRONG, faulty, room_for_sockets
from stages.rawserver import fetching, run
from virtual import OneJob

from harvestman.config import Config
from harvestman.fetch.curl import Fetcher, Limits
from harvestman.fetch.decode import BadBody, decode
from harvestman.frontier.routing import Router
from harvestman.harvest import Harvest
from harvestman.model import Answer, Bytes, Instant, Lease, Request, Seconds, Status, UrlRecord
from harvestman.policy import urls
from harvestman.ports import Content, State
from harvestman.store.warc import WarcWriter

pytestmark = [
    pytest.mark.skipif(shutil.which("openssl") is None, reason="the openssl program is needed to make certificates"),
    pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="descriptors are counted in /proc"),
]
HOME = "127.0.0.1"
QUICK = Limits(
    connect=Seconds(0.5),
    first_byte=Seconds(0.5),
    total_html=Seconds(0.5),
    total_large=Seconds(0.5),
    body=Bytes(12_000_000),
)
CALM = replace(QUICK, connect=Seconds(3), first_byte=Seconds(3), total_html=Seconds(3))
CROWD = Limits(
    connect=Seconds(30), first_byte=Seconds(30), total_html=Seconds(20), body=Bytes(12_000_000), held=Bytes(40 << 20)
)
"""Long, for the server is one process and may be late; what is late all the same is counted."""
LATE = 100
NOT_BEFORE = "timeout: no first byte"


@dataclass(frozen=True)
class Fault:
    """One request and the outcomes that are right for it, each a word ("ok" for a page) or a whole reason."""

    url: str
    right: frozenset[str]
    robots: bool = False


@dataclass
class Crowd:
    """What was seen while the fetches ran."""

    outcomes: list[tuple[Fault, str]] = field(default_factory=list)
    took: float = 0.0
    peak: int = 0
    stalled: float = 0.0
    """Seconds that the loop did not turn, at the longest ..."""
    busy: float = 0.0
    """... and what of that was our own CPU."""


def hanging(at: int) -> str:
    if at < STATUS_LINE:
        return NOT_BEFORE
    if at < len(HEAD):
        return "timeout: head too slow"
    return "ok" if at == len(WHOLE) else "timeout: body too slow"


def breaking(at: int) -> str:
    """The connection is gone after so many bytes."""
    if at < len(HEAD):
        return "connect"
    return "ok" if at == len(WHOLE) else "truncated"


def closing(at: int) -> str:
    """The same, but in good manners. What had not even a whole line was no answer yet."""
    if at < STATUS_LINE:
        return "connect"
    return "ok" if at == len(WHOLE) else "truncated"


class Faults:
    """The faults of a running server, each under a host of its own."""

    def __init__(self, ports: dict[str, int]) -> None:
        self._ports = ports
        self._hosts = 0

    def plain(self, path: str, *right: str, port: str = "plain") -> Fault:
        self._hosts += 1
        return Fault(f"http://h{self._hosts}.test:{self._ports[port]}/{path}", frozenset(right))

    def tls(self, port: str, host: str, *right: str, robots: bool = False) -> Fault:
        self._hosts += 1
        return Fault(f"https://h{self._hosts}.{host}.test:{self._ports[port]}/", frozenset(right), robots)

    def positions(self, step: int = 1) -> Iterator[Fault]:
        """A hang, a reset and an end at every byte of an answer."""
        for at in range(0, len(WHOLE) + 1, step):
            yield self.plain(f"hang/{at}", hanging(at))
            yield self.plain(f"reset/{at}", breaking(at))
            yield self.plain(f"close/{at}", closing(at))

    def drips(self) -> Iterator[Fault]:
        yield self.plain("drip/0", NOT_BEFORE, "timeout: head too slow")  # a patient reader gets its first line
        yield self.plain(f"drip/{STATUS_LINE + 3}", "timeout: head too slow")
        yield self.plain(f"drip/{len(HEAD)}", "timeout: body too slow")

    def endless(self) -> Iterator[Fault]:
        for name, right in ENDLESS_KINDS.items():
            yield self.plain(f"endless/{name}", *right)

    def wrong(self) -> Iterator[Fault]:
        for name, (_, right) in WRONG.items():
            yield self.plain(f"wrong/{name}", *right.split())

    def bombs(self, *also: str) -> Iterator[Fault]:
        for coding in BOMBS:
            yield self.plain(f"bomb/{coding}", "bad_content", *also)

    def handshakes(self) -> Iterator[Fault]:
        for robots in (False, True):
            bad = "tls" if robots else "ok, but the certificate is not valid"
            yield self.tls("expired", "expired", bad, robots=robots)
            yield self.tls("good", "other", bad, robots=robots)
            yield self.tls("unknown", "unknown", bad, robots=robots)
            yield self.tls("good", "good", "ok", robots=robots)
            yield self.tls("garbage", "garbage", "tls", robots=robots)
            yield self.tls("silent", "silent", "timeout: no handshake", robots=robots)
            yield self.tls("resets", "resets", "tls", "connect", robots=robots)
            yield self.tls("plain", "plain", "timeout: no handshake", robots=robots)
        yield self.plain("", "connect", "protocol", port="good")
        yield self.plain("", NOT_BEFORE, port="silent")
        yield self.plain("", "connect", port="resets")


class Recorder:
    """What a crawl writes down of an answer: the real harvest, with nothing stored before."""

    def __init__(self, folder: Path) -> None:
        self._router = Router(1)
        self.warc = WarcWriter(folder, "w", software="test", contact="", now=time.time)
        self._harvest = Harvest(Config(), cast(State, _Empty()), self.warc, self._router, OneJob(), Random(1), {})

    async def outcome(self, answer: Answer) -> str:
        """The reason of the visit that would be committed."""
        url = answer.url
        record = UrlRecord(url, Status.PENDING, 0, 0, 0, Instant(0.0))
        lease = Lease(urls.host_of(url), HOME, url, self._router.id_of(url), record, urls.origin_of(url))
        [taken] = await self._harvest.gather([(lease, record, answer, None)])
        return taken.visit().reason


class _Empty:
    async def near(self, prints: Sequence[tuple[int, int]], most: int) -> list[list[object]]:
        return [[] for _ in prints]

    async def sites(self, names: Sequence[object]) -> list[None]:
        return [None for _ in names]

    async def contents(self, digests: Sequence[bytes]) -> list[Content | None]:
        return [None for _ in digests]


def as_right(reason: str, answer: Answer, right: frozenset[str]) -> str:
    """The outcome in the words of a `Fault`: whole when those are, else its first word."""
    if reason == "ok" and getattr(answer, "tls_error", None):
        return "ok, but the certificate is not valid"
    word = reason.partition(":")[0]
    return word if word in right else reason


async def crowd(faults: Sequence[Fault], limits: Limits, trusted: str, folder: Path) -> Crowd:
    """All of them at once, each answer taken in as it comes."""
    seen = Crowd()
    arrived: asyncio.Queue[tuple[Fault, Answer]] = asyncio.Queue()
    recorder = Recorder(folder)
    async with fetching(limits, ca_file=trusted) as fetcher:
        pulse = asyncio.create_task(_pulse(seen))
        for fault in faults:
            _start(fetcher, fault, arrived)
        for _ in faults:
            fault, answer = await asyncio.wait_for(arrived.get(), 90)
            await asyncio.sleep(0)  # a queue that holds something does not let the loop turn
            seen.took = max(seen.took, answer.finished - answer.started)
            seen.outcomes.append((fault, as_right(await recorder.outcome(answer), answer, fault.right)))
        assert arrived.empty(), "answered twice"
        assert fetcher.in_flight == 0
        pulse.cancel()
    recorder.warc.close()
    return seen


def _start(fetcher: Fetcher, fault: Fault, arrived: asyncio.Queue[tuple[Fault, Answer]]) -> None:
    fetcher.start(Request(fault.url, HOME, robots=fault.robots), lambda answer: arrived.put_nowait((fault, answer)))


async def _pulse(seen: Crowd) -> None:
    """Looks at the memory every so often, and at how late it is itself."""
    while True:
        before, cpu = time.monotonic(), time.thread_time()
        await asyncio.sleep(0.05)
        seen.stalled = max(seen.stalled, time.monotonic() - before - 0.05)
        seen.busy = max(seen.busy, time.thread_time() - cpu)
        seen.peak = max(seen.peak, resident())


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def give_back() -> None:
    """Let go of what Python and the C library only keep for later: what remains in use is what counts."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def amiss(seen: Crowd) -> list[str]:
    return [
        f"{fault.url}: {outcome}, not {set(fault.right)}"
        for fault, outcome in seen.outcomes
        if outcome not in fault.right
    ]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Faults, str]]:
    folder = tmp_path_factory.mktemp("certificates")
    with faulty(folder) as ports:
        yield Faults(ports), str(folder / "trusted.pem")


def test_every_fault_ends_in_its_outcome(server: tuple[Faults, str], tmp_path: Path) -> None:
    faults, trusted = server
    wanted = [*faults.positions(9), *faults.drips(), *faults.wrong(), *faults.handshakes()]
    seen = run(crowd(wanted, QUICK, trusted, tmp_path))
    assert len(seen.outcomes) == len(wanted)
    late = [fault for fault, outcome in seen.outcomes if outcome not in fault.right]
    again = run(crowd(late, CALM, trusted, tmp_path))  # the server may have been busy
    assert amiss(again) == []
    assert len(late) < len(wanted) // 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["endless", "bombs"])
def test_what_never_ends_costs_little(server: tuple[Faults, str], tmp_path: Path, kind: str) -> None:
    """One by one, so that each has its own CPU time: full speed must not become our CPU."""
    faults, trusted = server
    for fault in faults.endless() if kind == "endless" else faults.bombs():
        began = time.process_time()
        seen = run(crowd([fault], CROWD, trusted, tmp_path))
        spent = time.process_time() - began
        print(
            f"{fault.url}: {seen.outcomes[0][1]}, {spent:.3f} CPU s, {seen.took:.1f} s, {seen.busy:.2f} CPU s in one go"
        )
        assert amiss(seen) == []
        assert spent < 2.5


@pytest.mark.slow
def test_a_thousand_faults_at_once(server: tuple[Faults, str], tmp_path: Path) -> None:
    if not room_for_sockets(2048):
        pytest.skip("the system does not allow 2,048 open files")
    faults, trusted = server
    wanted = [*faults.positions()]
    while len(wanted) < 950:
        wanted += [
            *faults.drips(),
            *faults.endless(),
            *faults.wrong(),
            *faults.bombs("crowded"),
            *faults.handshakes(),
        ]
    wanted += [faults.plain("", "ok") for _ in range(1000 - len(wanted))]
    Random(1).shuffle(wanted)
    run(crowd(wanted, QUICK, trusted, tmp_path))  # what a thousand handles and their first use take is not a leak
    give_back()
    descriptors, memory = len(os.listdir("/proc/self/fd")), resident()
    began, cpu = time.monotonic(), time.process_time()
    seen = run(crowd(wanted, CROWD, trusted, tmp_path))
    give_back()
    growth, peak = (resident() - memory) / 2**20, (seen.peak - memory) / 2**20
    print(
        f"{len(wanted)} faults: {time.monotonic() - began:.1f} s, {time.process_time() - cpu:.1f} CPU s, "
        f"longest {seen.took:.1f} s, stalled {seen.stalled:.2f} s ({seen.busy:.2f} CPU s), "
        f"memory +{growth:.0f} MB, at most +{peak:.0f} MB"
    )
    print(Counter(outcome.partition(":")[0] for _, outcome in seen.outcomes).most_common())
    wrong = amiss(seen)
    late = [line for line in wrong if ": timeout: " in line]
    print(f"{len(late)} late: {late[:5]}")
    assert [line for line in wrong if line not in late] == []
    assert len(late) <= LATE
    assert len(seen.outcomes) == len(wanted)
    assert len(os.listdir("/proc/self/fd")) <= descriptors
    assert growth < 60
    assert peak < 400, "bounded: unbounded it would be gigabytes; a busy machine works off what came more slowly"
    assert seen.took < 2 * (CROWD.first_byte + CROWD.total_html) + 10
    assert seen.busy < 6  # a hundred servers at the speed of loopback; libcurl serves them all in one call


@pytest.mark.parametrize(
    "coding", [pytest.param(name, marks=[] if name in ("gzip", "zstd") else [pytest.mark.slow]) for name in BOMBS]
)
def test_the_bombs_are_what_they_say(coding: str) -> None:
    """Small enough for the wire, and no end to be seen within any limit."""
    wire = b"".join(faultserver.bomb(coding))
    assert len(wire) < 12_000_000
    decoded = decode(wire, faultserver.named(coding).decode(), 50_000_000)
    assert isinstance(decoded, BadBody)
    assert "more than" in decoded.reason
