"""Puts a simulated web on loopback: one listening socket for all of 127/8, a name server, and the request log.

Sockets are read with `recvmsg`, not through asyncio streams, because only so does the kernel say when a request
arrived: gaps between requests are judged to the millisecond, and a busy server would otherwise blur them.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

from harvestman.sim.connection import Connection
from harvestman.sim.dns import Names, NameServer
from harvestman.sim.log import Writer, header_line
from harvestman.sim.pages import Press
from harvestman.sim.plan import Plan
from harvestman.sim.replies import Replies
from harvestman.sim.web import Web

FLUSH_EVERY = 0.1
IDLE_LIMIT = 75.0
_TIMESTAMPNS = 35
"""SO_TIMESTAMPNS on Linux; Python has no name for it."""


def _listener(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with contextlib.suppress(OSError, AttributeError):
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            listener.setsockopt(socket.SOL_SOCKET, _TIMESTAMPNS, 1)
    listener.bind(("0.0.0.0", port))
    listener.listen(1024)
    listener.setblocking(False)
    return listener


def _spread() -> bool:
    """Whether this machine has all of 127/8 (Linux) or only 127.0.0.1 (macOS)."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.2", 0))
        except OSError:
            return False
    return True


def _loopback(address: str) -> bool:
    return address.startswith("127.")


class SimServer:
    """A running simulated web. `start` it, read `port` and `dns_port`, `close` it."""

    def __init__(self, plan: Plan, *, port: int = 0, dns_port: int = 0, log: Path | None = None) -> None:
        self.plan, self.port, self.dns_port = plan, port, dns_port
        self.web = Web(plan)
        self.requests = 0
        self._path = log
        self._connections: dict[int, Connection] = {}
        self._count = 0
        self._agent = b""

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        _raise_file_limit()
        self._listener = _listener(self.port)
        self.port = self._listener.getsockname()[1]
        self._started = time.time()
        self._log = Writer(self._path)
        self._log.add(header_line(self.plan, self.port, self._started).encode())
        self._log.flush()
        self.replies = Replies(self.web, Press(self.web, self.port), self._started)
        names = NameServer(Names(self.web, _spread()))
        self._dns, _ = await loop.create_datagram_endpoint(lambda: names, local_addr=("127.0.0.1", self.dns_port))
        self.dns_port = self._dns.get_extra_info("sockname")[1]
        loop.add_reader(self._listener.fileno(), self._accept)
        self._tick = loop.call_later(FLUSH_EVERY, self._flush)

    async def close(self) -> None:
        self._tick.cancel()
        asyncio.get_running_loop().remove_reader(self._listener.fileno())
        self._listener.close()
        self._dns.close()
        for connection in list(self._connections.values()):
            connection.close()
        self._log.close()

    def seeds(self) -> list[str]:
        return self.web.seeds(self.port)

    def _accept(self) -> None:
        for _ in range(64):
            try:
                sock, peer = self._listener.accept()
            except OSError:
                return
            local = sock.getsockname()[0]
            if not (_loopback(peer[0]) and _loopback(local)):
                sock.close()
                continue
            self._open(sock, local)

    def _open(self, sock: socket.socket, address: str) -> None:
        sock.setblocking(False)
        self._count += 1
        # The start is part of the name, so that connections of two runs in one log stay apart.
        name = b"%x-%x" % (int(self._started * 1000) & 0xFFFFFFF, self._count)
        connection = Connection(sock, address.encode(), name, self)
        self._connections[self._count] = connection
        self._log.add(b"O\t%.6f\t%b\t%b\n" % (time.time(), name, connection.address))
        connection.number = self._count

    # -- what connections report

    def closed(self, connection: Connection) -> None:
        if self._connections.pop(connection.number, None):
            self._log.add(b"C\t%.6f\t%b\n" % (time.time(), connection.name))

    def agent(self, connection: Connection, agent: bytes) -> None:
        if agent != self._agent:
            self._agent = agent
            self._log.add(b"U\t%b\t%b\n" % (connection.name, agent.replace(b"\t", b" ")))

    def asked(self, line: bytes) -> None:
        self.requests += 1
        self._log.add(line)

    def _flush(self) -> None:
        self._log.flush()
        limit = time.time() - IDLE_LIMIT
        for connection in [each for each in self._connections.values() if each.idle_since < limit]:
            connection.close()
        self._tick = asyncio.get_running_loop().call_later(FLUSH_EVERY, self._flush)


def _raise_file_limit() -> None:
    """As many connections as the system lets us have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def serve(
    plan: Plan,
    *,
    port: int = 0,
    dns_port: int = 0,
    log: Path | None = None,
    ready: Callable[[int, int], None] | None = None,
) -> None:
    """Serves until cancelled; `ready` is told the HTTP and the DNS port as soon as both answer."""
    server = SimServer(plan, port=port, dns_port=dns_port, log=log)
    await server.start()
    try:
        if ready:
            ready(server.port, server.dns_port)
        await asyncio.Event().wait()
    finally:
        await server.close()


def run(plan: Plan, port: int, dns_port: int, log: Path | None, ready: Callable[[int, int], None]) -> None:
    """Serves until SIGINT or SIGTERM; for a process of its own."""
    gc.set_threshold(100_000, 50, 50)  # answers make no cycles
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_until_signal(plan, port, dns_port, log, ready))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it exists: half the CPU of the standard loop."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _until_signal(
    plan: Plan, port: int, dns_port: int, log: Path | None, ready: Callable[[int, int], None]
) -> None:
    task = asyncio.ensure_future(serve(plan, port=port, dns_port=dns_port, log=log, ready=ready))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task
