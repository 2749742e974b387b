"""A small client of the Chrome DevTools Protocol, over the pipe that the browser inherits.

The browser reads commands from descriptor 3 and writes answers and events to descriptor 4: JSON, each message ended by
a NUL. Both are one socket here, so there is no port that others could find, and no browser without us: when we die, by
whatever signal, the socket ends, and with it the browser.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, cast

from harvestman.errors import HarvestmanError

Said: TypeAlias = dict[str, Any]
"""What the browser says: whatever its protocol allows, so nothing here is known to be there."""
Listener: TypeAlias = Callable[[str, Said], None]

END = b"\0"
CLEAR_OF_OURS = 10
"""Descriptors from here on cannot be in the way of 3 and 4."""


class BrowserGone(HarvestmanError):
    """The browser has died, or never lived; whoever waited for it is told so."""


class CommandRefused(HarvestmanError):
    """The browser lives, and says no."""


class Pipe(asyncio.Protocol):
    """Commands in, answers and events out. The death of the browser fails all that wait for it, now and later."""

    def __init__(self) -> None:
        self.listeners: dict[str, Listener] = {}
        """By session; the browser's own is ''."""
        self._waiting: dict[int, asyncio.Future[Said]] = {}
        self._last = 0
        self._heard = bytearray()
        self._looked = 0
        self._transport: asyncio.WriteTransport | None = None
        self.gone = False

    def command(self, method: str, params: Mapping[str, Any] | None = None, session: str = "") -> asyncio.Future[Said]:
        """The answer to come. It need not be awaited: a failure nobody asks for is nobody's concern."""
        answer: asyncio.Future[Said] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_seen)
        if self.gone or self._transport is None:
            answer.set_exception(BrowserGone(f"the browser has died: it cannot be told {method}"))
            return answer
        self._last += 1
        self._waiting[self._last] = answer
        message = {"id": self._last, "method": method, "params": params or {}}
        self._transport.write(json.dumps(message | {"sessionId": session} if session else message).encode() + END)
        return answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        """Every byte is looked at once, however long the message it belongs to.

        The standard library's reader, for half a surrogate pair, which a page can put into any text, is no error to it.
        """
        self._heard += data
        start = 0
        while (end := self._heard.find(END, self._looked)) >= 0:
            self._take(json.loads(self._heard[start:end]))
            start = self._looked = end + 1
        del self._heard[:start]
        self._looked = len(self._heard)

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone = True
        waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            if not answer.done():
                answer.set_exception(BrowserGone("the browser has died"))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()
        self.connection_lost(None)

    def _take(self, message: Said) -> None:
        if "id" not in message:
            listener = self.listeners.get(message.get("sessionId", ""))
            if listener is not None:
                listener(message["method"], message.get("params", {}))
            return
        answer = self._waiting.pop(message["id"], None)
        if answer is None or answer.done():
            return
        if "error" in message:
            answer.set_exception(CommandRefused(str(message["error"].get("message"))))
        else:
            answer.set_result(message.get("result", {}))


def _seen(answer: asyncio.Future[Said]) -> None:
    if not answer.cancelled():
        answer.exception()


async def start(arguments: list[str], environment: Mapping[str, str]) -> tuple[int, Pipe]:
    """The browser's process, leader of a session of its own, and the pipe to it."""
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            pid = _spawn(arguments, environment, theirs)
        except OSError as fault:
            ours.close()
            raise BrowserGone(f"{arguments[0]} cannot be started: {fault.strerror}") from fault
    ours.setblocking(False)
    _, pipe = await asyncio.get_running_loop().create_unix_connection(Pipe, sock=ours)
    return pid, pipe


def _spawn(arguments: list[str], environment: Mapping[str, str], theirs: socket.socket) -> int:
    """By posix_spawn, which copies nothing of our memory and runs nothing of ours in the child."""
    end = fcntl.fcntl(theirs.fileno(), fcntl.F_DUPFD_CLOEXEC, CLEAR_OF_OURS)
    try:
        return os.posix_spawn(
            arguments[0],
            arguments,
            environment,
            file_actions=[
                *((os.POSIX_SPAWN_CLOSE, number) for number in _inheritable()),
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, end, 3),
                (os.POSIX_SPAWN_DUP2, end, 4),
            ],
            setsid=True,
        )
    finally:
        os.close(end)


def _inheritable() -> Iterator[int]:
    """Descriptors that a child would get without asking: a connection that it holds stays open when we close it."""
    for name in os.listdir("/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"):
        with contextlib.suppress(OSError):  # that of the listing itself
            if int(name) > 4 and os.get_inheritable(int(name)):
                yield int(name)


async def end(pid: int, others: list[int]) -> None:
    """Kill the browser and all of its session, and reap it. It has nothing to save."""
    for kill, whom in ((os.killpg, pid), *((os.kill, other) for other in others)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(whom, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        await asyncio.to_thread(os.waitpid, pid, 0)
