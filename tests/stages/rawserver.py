"""A loopback server that answers with bytes of the test's choosing, and what the fetch tests share."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeVar

import uvloop

from harvestman.fetch.curl import Fetcher, Limits
from harvestman.model import Answer, Failure, Instant, Request, Response, Seconds

T = TypeVar("T")
Reply = bytes | Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""What to send; a callable speaks for itself and decides when to return."""


def page(body: bytes = b"<p>hello", kind: str = "text/html", status: str = "200 OK", extra: str = "") -> bytes:
    """A plain answer that keeps the connection."""
    type_line = f"Content-Type: {kind}\r\n" if kind else ""
    return f"HTTP/1.1 {status}\r\n{type_line}{extra}Content-Length: {len(body)}\r\n\r\n".encode() + body


@dataclass
class RawServer:
    """Answers every request with the reply set for its path (`*` for all others); notes heads and connections."""

    replies: dict[str, Reply] = field(default_factory=lambda: {"*": page()})
    heads: list[bytes] = field(default_factory=list)
    connections: int = 0
    port: int = 0

    talks: set[asyncio.Task[object]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        talk = asyncio.current_task()
        assert talk is not None
        self.talks.add(talk)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
            await self.talk(reader, writer)
        self.talks.discard(talk)
        writer.close()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            path = head.split(b" ", 2)[1].decode("latin-1")
            reply = self.replies.get(path, self.replies.get("*", b""))
            if not isinstance(reply, bytes):
                await reply(reader, writer)
                break
            writer.write(reply)
            await writer.drain()
            if b"Connection: close" in reply.partition(b"\r\n\r\n")[0]:
                break

    @asynccontextmanager
    async def listening(
        self, address: str = "127.0.0.1", tls: ssl.SSLContext | None = None
    ) -> AsyncIterator[RawServer]:
        server = await asyncio.start_server(self.serve, address, self.port, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for talk in self.talks:
                talk.cancel()
            await asyncio.gather(*self.talks, return_exceptions=True)
            await asyncio.sleep(0)


async def stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say nothing until the other side goes away."""
    await reader.read()


def sends(*parts: bytes, then_stall: bool = False, pause: float = 0.0) -> Reply:
    """A reply in parts, then an end of the connection (or silence)."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause)
        if then_stall:
            await stall(reader, writer)

    return speak


def wall() -> Instant:
    return Instant(time.time())


QUICK = Limits(connect=Seconds(0.3), first_byte=Seconds(0.3), total_html=Seconds(0.3), total_large=Seconds(1.0))


@asynccontextmanager
async def fetching(
    limits: Limits | None = None,
    guard: Callable[[str, int], str | None] = lambda ip, port: None,
    ca_file: str | None = None,
) -> AsyncIterator[Fetcher]:
    fetcher = Fetcher(user_agent="TestBot/1.0 (+http://t)", limits=limits, guard=guard, now=wall, ca_file=ca_file)
    try:
        yield fetcher
    finally:
        await fetcher.close()


async def get(fetcher: Fetcher, request: Request, patience: float = 5.0) -> Answer:
    """One fetch, awaited; a fetch that never answers fails the test."""
    answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    fetcher.start(request, answer.set_result)
    assert not answer.done(), "done() was called inside start()"
    return await asyncio.wait_for(answer, patience)


async def get_page(fetcher: Fetcher, request: Request) -> Response:
    answer = await get(fetcher, request)
    assert isinstance(answer, Response), answer
    return answer


async def get_failure(fetcher: Fetcher, request: Request) -> Failure:
    answer = await get(fetcher, request)
    assert isinstance(answer, Failure), answer
    return answer


def run(scene: Coroutine[object, object, T]) -> T:
    """Run on uvloop, as crawls do."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(scene)
