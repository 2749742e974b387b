"""Puts a simulated web on loopback: one listening socket for all of 127/8, a name server, and the request log.

Sockets are read with `recvmsg`, because only so does the kernel say when a request arrived: gaps between requests are
judged to the millisecond, and a busy server would otherwise blur them.
"""

from __future__ import annotations

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
from harvestman.sim.loop import Loop
from harvestman.sim.pages import Press
from harvestman.sim.plan import Plan
from harvestman.sim.replies import Replies
from harvestman.sim.web import Web

FLUSH_EVERY = 0.1
IDLE_LIMIT, SWEEP_EVERY = 75.0, 5.0
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
    """A simulated web. `start` it, read `port` and `dns_port`, let it `run`, `stop` it from elsewhere."""

    def __init__(self, plan: Plan, *, port: int = 0, dns_port: int = 0, log: Path | None = None) -> None:
        self.plan, self.port, self.dns_port = plan, port, dns_port
        self.web = Web(plan)
        self._path = log
        self._connections: dict[str, Connection] = {}
        self._count = 0
        self._agent = ""

    def start(self) -> None:
        """From here on the ports are known and nobody is refused."""
        _raise_file_limit()
        self.loop = Loop()
        self._listener = _listener(self.port)
        self.port = self._listener.getsockname()[1]
        self._dns = NameServer(Names(self.web, _spread()), self.dns_port)
        self.dns_port = self._dns.sock.getsockname()[1]
        self._started = time.time()
        self._log = Writer(self._path)
        self.log = self._log.add
        self.log(header_line(self.plan, self.port, self._started))
        self.replies = Replies(self.web, Press(self.web, self.port), self._started)
        self.loop.watch(self._listener.fileno(), self._accept)
        self.loop.watch(self._dns.sock.fileno(), self._dns.ready)
        self._flush()
        self._sweep()

    def run(self) -> None:
        """Serves until it is told to stop, then closes everything."""
        try:
            self.loop.run()
        finally:
            self._listener.close()
            self._dns.sock.close()
            for connection in list(self._connections.values()):
                connection.close()
            self._log.close()

    def stop(self) -> None:
        """May be said from a signal handler or another thread."""
        self.loop.stop()

    def seeds(self) -> list[str]:
        return self.web.seeds(self.port)

    def _accept(self, _: int) -> None:
        with contextlib.suppress(OSError):
            for _ in range(64):
                sock, peer = self._listener.accept()
                local = sock.getsockname()[0]
                if _loopback(peer[0]) and _loopback(local):
                    self._open(sock, local)
                else:
                    sock.close()

    def _open(self, sock: socket.socket, address: str) -> None:
        sock.setblocking(False)
        self._count += 1
        # The start is part of the name, so that connections of two runs in one log stay apart.
        name = f"{int(self._started * 1000) & 0xFFFFFFF:x}-{self._count:x}"
        connection = self._connections[name] = Connection(sock, address, name, self)
        self.log(f"O\t{connection.idle_since:.6f}\t{name}\t{address}\n")

    # -- what connections report

    def closed(self, connection: Connection) -> None:
        del self._connections[connection.name]
        self.log(f"C\t{time.time():.6f}\t{connection.name}\n")

    def agent(self, connection: Connection, agent: str) -> None:
        if agent != self._agent:
            self._agent = agent
            self.log(f"U\t{connection.name}\t{' '.join(agent.split())}\n")

    def _flush(self) -> None:
        self._log.flush()
        self.loop.later(FLUSH_EVERY, self._flush)

    def _sweep(self) -> None:
        """Closes what has been idle for too long."""
        limit = time.time() - IDLE_LIMIT
        for connection in [each for each in self._connections.values() if each.idle_since < limit]:
            connection.close()
        self.loop.later(SWEEP_EVERY, self._sweep)


def _raise_file_limit() -> None:
    """As many connections as the system lets us have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def run(plan: Plan, port: int, dns_port: int, log: Path | None, ready: Callable[[int, int], None]) -> None:
    """Serves until SIGINT or SIGTERM, for a process of its own; `ready` is told the HTTP and the DNS port."""
    gc.set_threshold(100_000, 50, 50)  # answers make no cycles
    server = SimServer(plan, port=port, dns_port=dns_port, log=log)
    server.start()
    gc.freeze()  # what is there by now stays
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: server.stop())
    ready(server.port, server.dns_port)
    server.run()
