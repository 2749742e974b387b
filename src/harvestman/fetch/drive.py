"""Drives a curl multi handle from an event loop.

Hot path: every socket change and every ready socket passes here. libcurl's sockets live in one epoll set of ours and
the loop watches only that set, so one wake-up serves every ready socket and a change costs one epoll_ctl instead of a
loop handle: a third less CPU a fetch than on uvloop (0.13 ms on kept connections: bench/fetch_cpu.py). Without
epoll (macOS) the loop watches each socket itself.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

import pycurl

Ready = Callable[[int, int], None]
"""Called with a socket and the CSELECT_* bits that are ready on it."""


class Sockets(Protocol):
    """The set of sockets libcurl wants watched."""

    def change(self, what: int, fd: int) -> None:
        """Watch `fd` for POLL_IN, POLL_OUT or POLL_INOUT; POLL_REMOVE forgets it."""

    def close(self) -> None:
        """Watch nothing any more."""


class LoopSockets:
    """Each socket is a reader or writer of the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ready: Ready) -> None:
        self._loop = loop
        self._ready = ready
        self._watched: set[int] = set()

    def change(self, what: int, fd: int) -> None:
        self._forget(fd)
        if what == pycurl.POLL_REMOVE:
            return
        self._watched.add(fd)
        if what & pycurl.POLL_IN:
            self._loop.add_reader(fd, self._ready, fd, pycurl.CSELECT_IN)
        if what & pycurl.POLL_OUT:
            self._loop.add_writer(fd, self._ready, fd, pycurl.CSELECT_OUT)

    def _forget(self, fd: int) -> None:
        if fd in self._watched:
            self._loop.remove_reader(fd)
            self._loop.remove_writer(fd)
            self._watched.discard(fd)

    def close(self) -> None:
        for fd in tuple(self._watched):
            self._forget(fd)


_EPOLL_OF = {pycurl.POLL_IN: 1, pycurl.POLL_OUT: 4, pycurl.POLL_INOUT: 5}
"""EPOLLIN is 1, EPOLLOUT is 4, EPOLLERR is 8, EPOLLHUP is 16; written out because macOS's select lacks the names."""
_READY_OF = tuple(
    (pycurl.CSELECT_IN if bits & (1 | 16) else 0)
    | (pycurl.CSELECT_OUT if bits & 4 else 0)
    | (pycurl.CSELECT_ERR if bits & 8 else 0)
    for bits in range(32)
)
_BATCH = 256
"""Sockets served per wake-up, so that other work of the loop gets its turn."""


class EpollSockets:
    """All sockets in one epoll set, which is the only thing the event loop watches."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ready: Callable[[list[tuple[int, int]]], None]) -> None:
        self._loop = loop
        self._ready = ready
        self._epoll = select.epoll()
        self._watched: set[int] = set()
        loop.add_reader(self._epoll.fileno(), self._wake)

    def change(self, what: int, fd: int) -> None:
        if what == pycurl.POLL_REMOVE:
            self._forget(fd)
        elif fd in self._watched:
            self._epoll.modify(fd, _EPOLL_OF[what])
        else:
            self._watched.add(fd)
            self._epoll.register(fd, _EPOLL_OF[what])

    def _forget(self, fd: int) -> None:
        if fd in self._watched:
            self._watched.discard(fd)
            with suppress(OSError):  # a socket closed before we hear of it has left the set by itself
                self._epoll.unregister(fd)

    def _wake(self) -> None:
        self._ready([(fd, _READY_OF[bits & 31]) for fd, bits in self._epoll.poll(0, _BATCH)])

    def close(self) -> None:
        if not self._epoll.closed:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()


class Drive:
    """Gives libcurl its sockets and its timer; calls `settle` after each round of work.

    Promises: `settle` is never called from inside a libcurl callback or from `add_handle`.
    """

    def __init__(self, multi: pycurl.CurlMulti, loop: asyncio.AbstractEventLoop, settle: Callable[[], None]) -> None:
        self._multi = multi
        self._loop = loop
        self._settle = settle
        self._kicked = False
        self._timer: asyncio.TimerHandle | None = None
        self._due = float("inf")
        self._closed = False
        self._sockets: Sockets = self._watch_sockets()
        multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)

    def _watch_sockets(self) -> Sockets:
        if hasattr(select, "epoll"):
            return EpollSockets(self._loop, self._serve)
        return LoopSockets(self._loop, lambda fd, bits: self._serve([(fd, bits)]))

    def _on_socket(self, what: int, fd: int, _multi: pycurl.CurlMulti, _data: object) -> None:
        if not self._closed:
            self._sockets.change(what, fd)

    def _serve(self, ready: list[tuple[int, int]]) -> None:
        act = self._multi.socket_action
        for fd, bits in ready:
            act(fd, bits)
        self._settle()

    def _on_timer(self, milliseconds: int) -> None:
        if self._closed:
            return
        if milliseconds == 0:
            self._kick()
        elif milliseconds < 0:
            self._due = float("inf")
        else:
            self._arm(self._loop.time() + milliseconds / 1000)

    def _kick(self) -> None:
        """Let libcurl run once in the next round of the loop; many starts share one kick."""
        if not self._kicked:
            self._kicked = True
            self._loop.call_soon(self._run)

    def _arm(self, due: float) -> None:
        # libcurl moves its timer several times a fetch, mostly later. A timer that fires too early only looks
        # again, which is cheaper than cancelling and scheduling each time.
        self._due = due
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._fire)

    def _fire(self) -> None:
        self._timer = None
        if self._due > self._loop.time() + 0.0005:
            if self._due != float("inf"):
                self._arm(self._due)
            return
        self._run()

    def _run(self) -> None:
        self._kicked = False
        if self._closed:
            return
        self._due = float("inf")
        self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._settle()

    def close(self) -> None:
        """Stop watching. The multi handle is the caller's to close."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._sockets.close()
