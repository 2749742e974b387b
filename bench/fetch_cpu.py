"""What does one fetch cost? CPU ms of the Fetcher alone, plain HTTP on loopback.

A thousand hosts behind one address, 200 fetches at once, 8 KB bodies; once over kept connections, once with a new
connection for every fetch. The server is a process of its own and is not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import resource
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection as Pipe
from typing import cast

import uvloop
from _run import Report, Row, options

from harvestman.clock import WallClock
from harvestman.fetch.curl import Fetcher
from harvestman.model import Answer, Request, Response
from harvestman.policy.guard import Guard


class Host(asyncio.Protocol):
    """Answers whatever it is asked with the same page."""

    def __init__(self, answer: bytes, keep: bool) -> None:
        self._answer = answer
        self._keep = keep

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._transport.write(self._answer * data.count(b"\r\n\r\n"))
        if not self._keep:
            self._transport.close()


async def _serve(size: int, keep: bool, pipe: Pipe) -> None:
    connection = b"" if keep else b"Connection: close\r\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n%b\r\n" % (size, connection)
    server = await asyncio.get_running_loop().create_server(
        lambda: Host(head + b"x" * size, keep), "127.0.0.1", 0, backlog=1024
    )
    pipe.send(server.sockets[0].getsockname()[1])
    await asyncio.Event().wait()


def serve(size: int, keep: bool, pipe: Pipe) -> None:
    uvloop.run(_serve(size, keep, pipe))


@contextlib.contextmanager
def served(size: int, keep: bool) -> Iterator[int]:
    """The port of a server in a process of its own."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    child = spawn.Process(target=serve, args=(size, keep, theirs), daemon=True)
    child.start()
    try:
        yield int(ours.recv())
    finally:
        child.terminate()
        child.join(5)


async def fetch(port: int, count: int, hosts: int, at_once: int) -> tuple[float, int]:
    """CPU seconds for `count` fetches, and how many of them went well."""
    loop = asyncio.get_running_loop()
    fetcher = Fetcher(user_agent="bench/1", guard=Guard(("127.0.0.0/8",)).refusal, now=WallClock().now)
    over = loop.create_future()
    started, good, ended = 0, 0, 0

    def start() -> None:
        nonlocal started
        url = f"http://host-{started % hosts:04d}.test:{port}/page-{started}.html"
        started += 1
        fetcher.start(Request(url, "127.0.0.1"), arrived)

    def arrived(answer: Answer) -> None:
        nonlocal good, ended
        good += isinstance(answer, Response)
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
    await fetcher.close()
    return spent, good


def _arguments() -> argparse.Namespace:
    parser = options(__doc__ or "")
    parser.add_argument("--fetches", type=int, default=20_000)
    parser.add_argument("--hosts", type=int, default=1_000)
    parser.add_argument("--at-once", type=int, default=200)
    parser.add_argument("--size", type=int, default=8_192, help="bytes of a body")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def main() -> int:
    wanted = _arguments()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard > 0 else soft, hard))
    report = Report(__doc__ or "")
    rows: list[Row] = []
    for keep, name in ((True, "kept connections"), (False, "a connection each")):
        with served(wanted.size, keep) as port:
            runs = [uvloop.run(fetch(port, wanted.fetches, wanted.hosts, wanted.at_once)) for _ in range(wanted.rounds)]
        costs = [spent / wanted.fetches * 1e3 for spent, _ in runs]
        rows.append((name, wanted.fetches, min(costs), max(costs), sum(good for _, good in runs) // len(runs)))
    report.table(("fetches over", "count", "CPU ms, best", "worst", "answered"), rows)
    report.keep(wanted.no_keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
