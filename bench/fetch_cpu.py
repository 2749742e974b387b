"""What does one fetch cost? CPU ms and memory of the Fetcher alone, plain HTTP and TLS on loopback.

160 hosts behind one address, 100 fetches at once, 8 KB bodies; over kept connections, with five fetches a
connection, and with a new connection for every fetch. Then the memory of a process that has visited 20,000 hosts, each
at an address of its own. TLS is 1.3 with a chain of two P-256 certificates, verified. The server is a process of its
own and is not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import os
import resource
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import cast

import uvloop
from _run import Report, Row, options

from harvestman.clock import WallClock
from harvestman.fetch.curl import Fetcher
from harvestman.model import Answer, Request, Response
from harvestman.policy.guard import Guard

FOR_EVER = 1 << 30
TARGETS = {("plain", 5): 0.2, ("TLS", 5): 0.5}
"""CPU ms a fetch."""
MEMORY_TARGET = 100.0
"""MB."""


@dataclass(frozen=True)
class Server:
    """What is served: bodies of `size` bytes, `each` of them a connection; over TLS if it has a folder with a key."""

    size: int
    each: int
    folder: str = ""

    @property
    def scheme(self) -> str:
        return "https" if self.folder else "http"

    @property
    def ca_file(self) -> str | None:
        return f"{self.folder}/root.pem" if self.folder else None

    def context(self) -> ssl.SSLContext | None:
        if not self.folder:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{self.folder}/leaf.pem", f"{self.folder}/leaf.key")
        return context


class Host(asyncio.Protocol):
    """Answers whatever it is asked with the same page, and closes after the last."""

    def __init__(self, answer: bytes, last: bytes, each: int) -> None:
        self._answer = answer
        self._last = last
        self._left = each

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._left -= data.count(b"\r\n\r\n")
        self._transport.write(self._answer if self._left > 0 else self._last)
        if self._left <= 0:
            self._transport.close()


async def _serve(what: Server, pipe: Pipe) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n" % what.size
    body = b"\r\n" + b"x" * what.size
    answer, last = head + body, head + b"Connection: close\r\n" + body
    server = await asyncio.get_running_loop().create_server(
        lambda: Host(answer, last, what.each), "0.0.0.0", 0, backlog=4096, ssl=what.context()
    )
    pipe.send(server.sockets[0].getsockname()[1])
    await asyncio.Event().wait()


def serve(what: Server, pipe: Pipe) -> None:
    _many_sockets()
    uvloop.run(_serve(what, pipe))


@contextlib.contextmanager
def served(what: Server) -> Iterator[int]:
    """The port of a server in a process of its own."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    child = spawn.Process(target=serve, args=(what, theirs), daemon=True)
    child.start()
    try:
        yield int(ours.recv())
    finally:
        child.terminate()
        child.join(5)


def certificates(folder: Path) -> None:
    """A root that the fetcher trusts, and a leaf for every host of the bench."""
    key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    (folder / "names").write_text("subjectAltName=DNS:*.bench.test\n")
    for command in (
        f"req -x509 {key} -days 2 -keyout root.key -out root.pem -subj /CN=root",
        f"req {key} -keyout leaf.key -out leaf.csr -subj /CN=bench.test",
        "x509 -req -in leaf.csr -CA root.pem -CAkey root.key -CAcreateserial -days 2 -extfile names -out leaf.pem",
    ):
        subprocess.run(["openssl", *command.split()], cwd=folder, check=True, capture_output=True)


async def fetch(what: Server, port: int, count: int, hosts: int, at_once: int) -> tuple[float, int]:
    """CPU seconds for `count` fetches, and how many of them went well. As many hosts as fetches: an address each."""
    loop = asyncio.get_running_loop()
    guard = Guard(("127.0.0.0/8",)).refusal
    fetcher = Fetcher(user_agent="bench/1", guard=guard, now=WallClock().now, ca_file=what.ca_file)
    over = loop.create_future()
    started, good, ended = 0, 0, 0

    def start() -> None:
        nonlocal started
        host = started % hosts
        url = f"{what.scheme}://host-{host:05d}.bench.test:{port}/page-{started}.html"
        started += 1
        fetcher.start(Request(url, _address(host) if hosts == count else "127.0.0.1"), arrived)

    def arrived(answer: Answer) -> None:
        nonlocal good, ended
        good += isinstance(answer, Response) and answer.tls_error is None
        ended += 1
        if started < count:
            start()
        elif ended == count:
            over.set_result(None)

    began = time.process_time()
    for _ in range(min(at_once, count)):
        start()
    await over
    spent = time.process_time() - began
    visited(fetcher)
    await fetcher.close()
    return spent, good


def _address(host: int) -> str:
    return f"127.{1 + host // 62_500}.{host // 250 % 250}.{1 + host % 250}"


resident: list[float] = []


def visited(_: Fetcher) -> None:
    """Note the memory while all the connections are still there."""
    resident.append(_resident())


def _resident() -> float:
    """MB of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def remember(what: Server, port: int, hosts: int, at_once: int, pipe: Pipe) -> None:
    """In a process of its own: its memory before and after it has visited so many hosts, once each."""
    _many_sockets()
    before = _resident()
    _, good = uvloop.run(fetch(what, port, hosts, hosts, at_once))
    pipe.send((before, resident[-1], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3, good))


def memory(what: Server, hosts: int, at_once: int) -> tuple[float, float, float, int]:
    spawn = multiprocessing.get_context("spawn")
    with served(what) as port:
        ours, theirs = spawn.Pipe()
        child = spawn.Process(target=remember, args=(what, port, hosts, at_once, theirs))
        child.start()
        found: tuple[float, float, float, int] = ours.recv()
        child.join()
    return found


def _many_sockets() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard > 0 else soft, hard))


def _arguments() -> argparse.Namespace:
    parser = options(__doc__ or "")
    parser.add_argument("--fetches", type=int, default=20_000)
    parser.add_argument("--hosts", type=int, default=160)
    parser.add_argument("--visited", type=int, default=20_000, help="hosts, for the memory")
    parser.add_argument("--at-once", type=int, default=100)
    parser.add_argument("--size", type=int, default=8_192, help="bytes of a body")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("cpu", "memory"), help="one of the two tables (default: both)")
    return parser.parse_args()


def costs(wanted: argparse.Namespace, folders: dict[str, str]) -> Iterator[Row]:
    for each, name in ((FOR_EVER, "kept connections"), (5, "five a connection"), (1, "a connection each")):
        for layer, folder in folders.items():
            what = Server(wanted.size, each, folder)
            with served(what) as port:
                runs = [
                    uvloop.run(fetch(what, port, wanted.fetches, wanted.hosts, wanted.at_once))
                    for _ in range(wanted.rounds)
                ]
            cost = [spent / wanted.fetches * 1e3 for spent, _ in runs]
            target = TARGETS.get((layer, each), "")
            answered = sum(good for _, good in runs) // len(runs)
            yield f"{layer}, {name}", wanted.fetches, min(cost), max(cost), target, answered


def footprints(wanted: argparse.Namespace, folders: dict[str, str]) -> Iterator[Row]:
    for layer, folder in folders.items():
        what = Server(wanted.size, FOR_EVER, folder)
        yield layer, wanted.visited, *memory(what, wanted.visited, wanted.at_once), MEMORY_TARGET


def main() -> int:
    wanted = _arguments()
    _many_sockets()
    report = Report(__doc__ or "")
    with tempfile.TemporaryDirectory() as folder:
        certificates(Path(folder))
        folders = {"plain": "", "TLS": folder}
        if wanted.only != "memory":
            head = ("fetches over", "count", "CPU ms, best", "worst", "target", "answered")
            report.table(head, list(costs(wanted, folders)))
        if wanted.only != "cpu":
            titles = ("memory", "hosts visited", "MB before", "after", "at most", "answered", "target")
            report.table(titles, list(footprints(wanted, folders)))
    report.say(f"load after the run: {os.getloadavg()[0]:.1f}")
    report.keep(wanted.no_keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
