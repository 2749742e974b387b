"""One connection to the simulated web: requests in, answers out, one after the other."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from typing import Protocol

from harvestman.sim.replies import Replies, Reply
from harvestman.sim.requests import parse

SILENCE = 120.0
"""How long a host that never answers keeps the connection."""
_LARGEST_HEAD = 65_536
_STAMP = struct.Struct("@qq")
_ROOM = socket.CMSG_SPACE(_STAMP.size)


class Keeper(Protocol):
    """Whoever holds the connections and the log."""

    replies: Replies

    def closed(self, connection: Connection) -> None: ...
    def agent(self, connection: Connection, agent: bytes) -> None: ...
    def asked(self, line: bytes) -> None: ...


class Connection:
    """Promises: requests are answered in order, each is logged once, also when the client leaves before its answer."""

    number = 0

    def __init__(self, sock: socket.socket, address: bytes, name: bytes, keeper: Keeper) -> None:
        self.address, self.name = address, name
        self.idle_since = time.time()
        self._sock, self._keeper = sock, keeper
        self._loop = asyncio.get_running_loop()
        self._buffer = b""
        self._arrival = 0.0
        self._reply: Reply | None = None
        self._asked: tuple[float, bytes, bytes, bytes] = (0.0, b"", b"", b"")
        self._sent, self._leaving = 0, False
        self._parts: Iterator[bytes] = iter(())
        self._rest = memoryview(b"")
        self._timer: asyncio.TimerHandle | None = None
        self._loop.add_reader(sock.fileno(), self._readable)

    def close(self) -> None:
        """Ends the connection; an answer under way is logged as aborted."""
        if self._sock.fileno() < 0:
            return
        if self._timer:
            self._timer.cancel()
        if self._reply:
            status = 0 if self._reply.silent or not self._sent else self._reply.status
            self._report(status, time.time(), "aborted")
        self._loop.remove_reader(self._sock.fileno())
        if self._rest:
            self._loop.remove_writer(self._sock.fileno())
        self._sock.close()
        self._keeper.closed(self)

    def _readable(self) -> None:
        try:
            data, ancillary, _, _ = self._sock.recvmsg(_LARGEST_HEAD, _ROOM)
        except BlockingIOError:
            return
        except OSError:
            data, ancillary = b"", []
        if not data or len(self._buffer) > _LARGEST_HEAD:
            self.close()
            return
        arrival = time.time()
        if ancillary:
            seconds, nanoseconds = _STAMP.unpack(ancillary[0][2])
            arrival = seconds + nanoseconds / 1e9
        self._buffer += data
        self._arrival = arrival
        if self._reply is None:
            self._next()

    def _next(self) -> None:
        """Takes the next whole request out of the buffer, if there is one."""
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        if not end:
            return
        self._buffer = rest
        request = parse(head)
        if request is None:
            self.close()
            return
        ask = request.ask
        self._keeper.agent(self, request.agent)
        self._asked = (self._arrival, ask.host.encode("latin-1"), ask.method.encode(), ask.target.encode("latin-1"))
        self._leaving = request.close
        self.idle_since = float("inf")
        reply = self._reply = self._keeper.replies.reply(ask, self._arrival)
        self._sent = 0
        if reply.silent or reply.delay:
            self._timer = self._loop.call_later(reply.delay or SILENCE, self.close if reply.silent else self._begin)
        else:
            self._begin()

    def _begin(self) -> None:
        reply = self._reply
        if reply is None:
            return
        self._parts = reply.stream or iter(())
        self._send((reply.head, *reply.parts))

    def _send(self, buffers: Sequence[bytes | memoryview]) -> None:
        """Sends what the kernel takes; the rest when it has room again."""
        while True:
            now = time.time()
            try:
                count = self._sock.sendmsg(buffers)
            except BlockingIOError:
                count = 0
            except OSError:
                self.close()
                return
            self._sent += count
            if count < sum(map(len, buffers)):
                self._wait(memoryview(b"".join(buffers))[count:])
                return
            part = next(self._parts, b"")
            if not part:
                self._finish(now)
                return
            buffers = (part,)

    def _wait(self, rest: memoryview) -> None:
        self._rest = rest
        self._loop.add_writer(self._sock.fileno(), self._writable)

    def _writable(self) -> None:
        self._loop.remove_writer(self._sock.fileno())
        rest, self._rest = self._rest, memoryview(b"")
        self._send((rest,))

    def _finish(self, end: float) -> None:
        reply, self._reply = self._reply, None
        if reply is None:
            return
        self._report(reply.status, end, reply.note)
        self.idle_since = end
        if self._leaving:
            self.close()
        elif self._buffer:
            self._next()

    def _report(self, status: int, end: float, note: str) -> None:
        arrival, host, method, target = self._asked
        self._keeper.asked(
            b"R\t%.6f\t%.6f\t%b\t%b\t%b\t%b\t%b\t%d\t%d\t%b\n"
            % (arrival, end, self.name, self.address, host, method, target, status, self._sent, note.encode())
        )
