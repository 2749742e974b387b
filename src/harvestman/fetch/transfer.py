"""One easy handle and the fetch it is working on: what libcurl's callbacks see and decide."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pycurl

from harvestman import media
from harvestman.fetch import heads
from harvestman.fetch.limits import Limits
from harvestman.model import DIRECT, Answer, FailureKind, Instant, Request, Route

Guard: TypeAlias = Callable[[str, int], str | None]
"""Says why an address must not be touched at a port; None when it may be."""

_STOP = -1
"""What a callback returns to make libcurl drop the transfer (and its connection)."""
_BUNDLE = 1024
"""Pieces of a body that become one: a byte alone takes forty in memory. A power of two."""
_SMALL = 256 * 1024
"""A body up to this size is let in even when those under way hold all that they may."""


class Held:
    """The bytes of all bodies under way."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every transfer of a fetcher shares."""

    limits: Limits
    guard: Guard
    now: Callable[[], Instant]
    ticks: Callable[[], float]
    """The event loop's clock, which deadlines are kept by; `now` only stamps."""
    held: Held = field(default_factory=Held)


class Transfer:
    """A pooled easy handle. `begin` makes it a new fetch; its callbacks fill the fields and may set a verdict."""

    __slots__ = (
        "body_cap",
        "bundles",
        "chunks",
        "claimed",
        "curl",
        "cut",
        "deadline",
        "done",
        "fields",
        "first_byte",
        "head_size",
        "headers",
        "lines",
        "pieces",
        "plain",
        "request",
        "route",
        "sent",
        "share",
        "size",
        "started",
        "status",
        "surroundings",
        "tls_error",
        "verdict",
    )

    request: Request
    done: Callable[[Answer], None]
    started: Instant
    sent: bool
    """The request went out, or was about to."""
    first_byte: Instant | None
    deadline: float
    lines: list[bytes]
    head_size: int
    status: int
    headers: dict[str, str] | None
    """None until the final head is complete."""
    chunks: list[bytes]
    pieces: int
    """How many the body came in."""
    bundles: int
    """How many of `chunks` are bundles of pieces."""
    size: int
    claimed: str | None
    """The media type that the first bytes are to be held against; None when nobody need look."""
    body_cap: int
    cut: bool
    """The body was stopped at its cap on purpose; what came is the answer."""
    verdict: tuple[FailureKind, str] | None
    """Why one of our callbacks stopped the transfer."""
    tls_error: str | None
    fields: Sequence[str]
    """The request fields after Host and User-Agent."""
    plain: bool
    """The handle carries the fixed fields and no conditional ones."""
    route: Route
    """The one that the handle is set on."""
    share: pycurl.CurlShare | None
    """Where its TLS sessions are kept."""

    def __init__(self, curl: pycurl.Curl, surroundings: Surroundings) -> None:
        self.curl = curl
        self.surroundings = surroundings
        self.size = 0
        self.plain = False
        self.route = DIRECT
        self.share = None
        curl.setopt(pycurl.HEADERFUNCTION, self.on_header)
        curl.setopt(pycurl.WRITEFUNCTION, self.on_body)
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self.on_socket)
        curl.setopt(pycurl.PREREQFUNCTION, self.on_request)

    def begin(self, request: Request, done: Callable[[Answer], None], fields: Sequence[str]) -> None:
        """Forget the fetch before and become this one. Touches no libcurl option."""
        self.request = request
        self.done = done
        self.fields = fields
        self.tls_error = None
        self.started = self.surroundings.now()
        self.rewind()

    def rewind(self) -> None:
        """Forget what came so far: the same request goes out again."""
        limits = self.surroundings.limits
        self.deadline = self.surroundings.ticks() + limits.first_byte + self.request.route.slack
        self.sent = False
        self.first_byte = None
        self.lines = []
        self.head_size = 0
        self.status = 0
        self.headers = None
        self.claimed = None
        self._drop_body()
        self.body_cap = limits.robots_body if self.request.robots else limits.body
        self.cut = False
        self.verdict = None

    def release(self) -> None:
        """Let go of the page: a pooled handle must not keep a body in memory."""
        self.lines = []
        self.headers = None
        self._drop_body()

    def _drop_body(self) -> None:
        self.surroundings.held.bytes -= self.size
        self.chunks = []
        self.size = self.pieces = self.bundles = 0

    def stage(self) -> str:
        """What a fetch that ran out of time was waiting for. libcurl shows no line before it is whole."""
        if self.headers is not None:
            return "body too slow"
        if self.first_byte is not None:
            return "head too slow"
        if self.curl.getinfo(pycurl.REQUEST_SIZE):
            return "no first byte"
        return "no handshake" if self.curl.getinfo(pycurl.NUM_CONNECTS) else "no connection"

    def verify(self, on: bool) -> None:
        """Whether an invalid certificate ends the transfer. libcurl keeps the two kinds of connections apart."""
        self.curl.setopt(pycurl.SSL_VERIFYPEER, 1 if on else 0)
        self.curl.setopt(pycurl.SSL_VERIFYHOST, 2 if on else 0)

    def on_request(self, *_: object) -> int:
        """Just before a request goes out. Once: on a broken connection libcurl would repeat it at once."""
        if self.sent:
            self.verdict = FailureKind.CONNECT, "the connection broke before an answer"
            return int(pycurl.PREREQFUNC_ABORT)
        self.sent = True
        return int(pycurl.PREREQFUNC_OK)

    def on_header(self, line: bytes) -> int | None:
        """Collect the head. Runs once per line: only the last line of a head takes the long way."""
        if self.first_byte is None:
            self._note_first_byte()
        self.head_size += len(line)
        if self.head_size > self.surroundings.limits.head:
            return self._refuse(FailureKind.PROTOCOL, f"more than {self.surroundings.limits.head} bytes of headers")
        if self.headers is not None:
            return None  # a trailer
        self.lines.append(line)
        return self._end_head() if line in (b"\r\n", b"\n") else None

    def _note_first_byte(self) -> None:
        self.first_byte = self.surroundings.now()
        self.deadline = self.surroundings.ticks() + self.surroundings.limits.total_html

    def _end_head(self) -> int | None:
        self.status = heads.status_of(self.lines[0])
        if 100 <= self.status < 200 and self.status != 101:
            self.lines.clear()
            return None
        if self.status < 100:
            return self._refuse(FailureKind.PROTOCOL, "no status code")
        self.headers = heads.parse_headers(self.lines)
        if 200 <= self.status < 300:
            return None if self.request.robots else self._judge_page(self.headers)
        self.body_cap = min(self.body_cap, self.surroundings.limits.error_body)
        return None

    def _judge_page(self, headers: dict[str, str]) -> int | None:
        """The gate: a body nobody will read is not downloaded."""
        kind = media.essence(headers.get("content-type", ""))
        packed = "content-encoding" in headers
        if not self.request.listing:
            if not heads.wanted(kind, packed):
                return self._refuse(FailureKind.UNWANTED, kind)
            self.claimed = None if packed else kind
        if heads.declared_length(headers) > self.body_cap:
            return self._refuse(FailureKind.TOO_LARGE, f"announces {headers['content-length']} bytes")
        if heads.large(kind) or self.request.listing:
            limits = self.surroundings.limits
            self.deadline += limits.total_large - limits.total_html
        return None

    def on_body(self, chunk: bytes) -> int | None:
        """Collect the body up to its cap."""
        if self.claimed is not None and (stop := self._belied(chunk, self.claimed)) is not None:
            return stop
        size, held = len(chunk), self.surroundings.held
        self.chunks.append(chunk)
        self.size += size
        self.pieces += 1
        held.bytes += size
        if self.size > self.body_cap:
            return self._overflow()
        if held.bytes > self.surroundings.limits.held and self.size > _SMALL and not self.request.robots:
            return self._refuse(FailureKind.CROWDED, "too many large bodies at once")
        return None if self.pieces % _BUNDLE else self._bundle()

    def _belied(self, head: bytes, claimed: str) -> int | None:
        """The first bytes: what nobody will read, whatever it claims to be, is not downloaded."""
        self.claimed = None
        kind = media.real(head, claimed)
        if heads.readable(kind) or not kind:
            return None
        belied = f", though it says {claimed or 'nothing'}" if kind != claimed else ""
        return self._refuse(FailureKind.UNWANTED, kind + belied)

    def _bundle(self) -> int | None:
        """Many pieces: each costs time, and far more memory than it holds."""
        if self.pieces > self.surroundings.limits.pieces:
            return self._refuse(FailureKind.PROTOCOL, f"a body in more than {self.surroundings.limits.pieces} pieces")
        self.chunks[self.bundles :] = [b"".join(self.chunks[self.bundles :])]
        self.bundles += 1
        return None

    def _overflow(self) -> int:
        if 200 <= self.status < 300 and not self.request.robots:
            return self._refuse(FailureKind.TOO_LARGE, f"more than {self.body_cap} bytes")
        self.chunks[-1] = self.chunks[-1][: self.body_cap - self.size]
        self.cut = True
        return _STOP

    def on_socket(self, _purpose: int, address: tuple[int, int, int, tuple[str, int]]) -> _Lent | int:
        """The last look at the address, at the moment a socket is made for it."""
        family, kind, protocol, peer = address
        ip, port = peer[0], peer[1]
        pinned = same_address(ip, self.request.address)
        if not pinned:
            reason: str | None = f"{ip} is not the vetted address"
        else:
            # The operator has named the proxy, so it may be anywhere; what lies behind it was vetted as a name.
            reason = None if self.request.route.proxy else self.surroundings.guard(ip, port)
        if reason is not None:
            self.verdict = FailureKind.GUARD, reason
            return pycurl.SOCKET_BAD
        try:
            return _Lent(socket.socket(family, kind, protocol).detach())
        except OSError as fault:  # out of descriptors: ours to heal, and the URL is worth another try
            self.verdict = FailureKind.CONNECT, f"no socket: {fault.strerror}"
            return pycurl.SOCKET_BAD

    def _refuse(self, kind: FailureKind, detail: str) -> int:
        self.verdict = kind, detail
        return _STOP


class _Lent:
    """A new socket, which pycurl copies as soon as it has it; ours is closed with this object.

    A `socket.socket` would do the same but warn each time that nobody closed it.
    """

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        return self._fd

    def __del__(self) -> None:
        os.close(self._fd)


def same_address(one: str, other: str) -> bool:
    """Whether two spellings name one IP address."""
    if one == other:
        return True
    try:
        return socket.inet_pton(socket.AF_INET6, one) == socket.inet_pton(socket.AF_INET6, other)
    except OSError:
        return False
