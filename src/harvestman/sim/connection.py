"""One connection to the simulated web: requests in, answers out, one after the other."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from functools import partial
from math import inf
from typing import Protocol

from harvestman.sim.log import AskedFields
from harvestman.sim.loop import READ, WRITE, Loop
from harvestman.sim.replies import Replies, Reply
from harvestman.sim.requests import Ask, parse

SILENCE = 120.0
"""How long a host that never answers keeps the connection."""
_LARGEST_HEAD = 65_536
_READ_SIZE = 16_384
_STAMP = struct.Struct("@qq")
_ROOM = socket.CMSG_SPACE(_STAMP.size)
_NOTHING = Ask("", "")
_NO_REST = memoryview(b"")


class Keeper(Protocol):
    """Whoever holds the connections and the log."""

    replies: Replies
    loop: Loop

    def closed(self, connection: Connection) -> None: ...
    def agent(self, connection: Connection, agent: str) -> None: ...
    def log(self, line: AskedFields) -> None: ...


class Connection:
    """Promises: requests are answered in order, each is logged once, also when the client leaves before its answer."""

    __slots__ = (
        "_arrival", "_ask", "_asked_at", "_buffer", "_keeper", "_loop", "_parts", "_reply", "_rest", "_sent", "_sock",
        "address", "idle_since", "name",
    )  # fmt: skip

    def __init__(self, sock: socket.socket, address: str, name: str, keeper: Keeper) -> None:
        self.address, self.name = address, name
        self.idle_since = time.time()
        self._sock, self._keeper, self._loop = sock, keeper, keeper.loop
        self._buffer = b""
        self._arrival = 0.0
        self._ask = _NOTHING
        self._asked_at = 0.0
        self._reply: Reply | None = None
        self._sent = 0
        self._parts: Iterator[bytes] | None = None
        self._rest = _NO_REST
        self._loop.watch(sock.fileno(), self._ready)

    def close(self) -> None:
        """Ends the connection; an answer under way is logged as aborted."""
        if self._sock.fileno() < 0:
            return
        reply, self._reply, self._buffer = self._reply, None, b""
        if reply:
            self._report(0 if reply.silent or not self._sent else reply.status, time.time(), "aborted")
        self._loop.forget(self._sock.fileno())
        self._sock.close()
        self._keeper.closed(self)

    def _ready(self, events: int) -> None:
        if events == READ:
            self._read()
            return
        if events & WRITE:
            self._resume()
        if events & ~WRITE:
            self._read()

    def _read(self) -> None:
        try:
            data, ancillary, _, _ = self._sock.recvmsg(_READ_SIZE, _ROOM)
        except BlockingIOError:
            return
        except OSError:
            data, ancillary = b"", []
        if not data or len(self._buffer) > _LARGEST_HEAD:
            self.close()
            return
        if ancillary:
            seconds, nanoseconds = _STAMP.unpack(ancillary[0][2])
            self._arrival = seconds + nanoseconds / 1e9
        else:
            self._arrival = time.time()
        self._buffer = self._buffer + data if self._buffer else data
        self._serve()

    def _serve(self) -> None:
        """Answers the whole requests in the buffer, until an answer has to wait."""
        while self._buffer and self._reply is None:
            head, end, rest = self._buffer.partition(b"\r\n\r\n")
            if not end:
                return
            self._buffer = rest
            ask = parse(head)
            if ask is None:
                self.close()
                return
            self._answer(ask)

    def _answer(self, ask: Ask) -> None:
        self._keeper.agent(self, ask.manners.agent)
        self._ask, self._asked_at, self._sent = ask, self._arrival, 0
        self.idle_since = inf
        reply = self._reply = self._keeper.replies.reply(ask, self._arrival)
        if reply.silent or reply.delay:
            self._loop.later(reply.delay or SILENCE, partial(self._due, reply))
        else:
            self._begin(reply)

    def _due(self, reply: Reply) -> None:
        if self._reply is not reply:
            return  # the client has left
        if reply.silent:
            self.close()
        else:
            self._begin(reply)
            self._serve()

    def _begin(self, reply: Reply) -> None:
        self._parts = reply.stream
        self._send(reply.head, reply.body)

    def _send(self, *buffers: bytes | memoryview) -> None:
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
            for buffer in buffers:
                count -= len(buffer)
            if count < 0:
                self._rest = memoryview(b"".join(buffers))[count:]
                self._loop.want(self._sock.fileno(), READ | WRITE)
                return
            part = next(self._parts, None) if self._parts else None
            if part is None:
                self._finish(now)
                return
            buffers = (part,)

    def _resume(self) -> None:
        self._loop.want(self._sock.fileno(), READ)
        rest, self._rest = self._rest, _NO_REST
        self._send(rest)
        self._serve()

    def _finish(self, end: float) -> None:
        reply, self._reply = self._reply, None
        if reply is None:
            return
        self._report(reply.status, end, reply.note)
        self.idle_since = end
        if self._ask.manners.close:
            self.close()

    def _report(self, status: int, end: float, note: str) -> None:
        host, target, method, _ = self._ask
        self._keeper.log((self._asked_at, end, self.name, self.address, host, method, target, status, self._sent, note))
