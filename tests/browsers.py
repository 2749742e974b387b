"""A real browser for tests, pages for it, and a listener that counts whoever comes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
import uvloop

from harvestman.model import Instant
from harvestman.render.browser import Archived, Browser, Rendered, Wanted, find_browser

T = TypeVar("T")
AT = Instant(1_700_000_000.0)
SECONDS = 2.0
SLACK = 2.0
"""Seconds that a rendering may take beyond its limit."""
URL = "https://example.test/page"


def a_browser() -> str:
    """Its path. A test that needs one is skipped without, but not where everything is said to be there."""
    path = find_browser("")
    if path is not None:
        return path
    missing = "no Chromium on the PATH (Debian: apt install chromium-headless-shell)"
    if os.environ.get("CI"):
        pytest.fail(missing)
    pytest.skip(missing)


def html(body: str, script: str = "") -> Archived:
    page = f"<!doctype html><html lang=en><title>t</title><body>{body}<script>{script}</script></body></html>"
    return Archived(200, {"content-type": "text/html; charset=utf-8"}, page.encode())


def script(text: str) -> Archived:
    return Archived(200, {"content-type": "text/javascript"}, text.encode())


def data(text: str, **headers: str) -> Archived:
    said = {name.replace("_", "-"): value for name, value in headers.items()}
    return Archived(200, {"content-type": "application/json", **said}, text.encode())


class Bench:
    """One browser in one event loop, for many tests."""

    def __init__(self, profile: Path, seconds: float = SECONDS, recycle: int = 1000) -> None:
        self.runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self.browser = Browser(
            a_browser(), profile, seconds=seconds, recycle=recycle, user_agent="Harvestman/0 (+test)"
        )
        self.wanted: list[Wanted] = []

    def run(self, made: Callable[[], Awaitable[T]]) -> T:
        async def running() -> T:
            return await made()

        return self.runner.run(running())

    def render(self, stored: Archived, answers: dict[str, Archived] | None = None, url: str = URL) -> Rendered:
        self.wanted = []

        async def provide(wanted: Wanted) -> Archived | None:
            self.wanted.append(wanted)
            return (answers or {}).get(wanted.url)

        return self.run(lambda: self.browser.render(url, stored, provide, AT))

    def close(self) -> None:
        self.run(self.browser.close)
        self.runner.close()


@contextmanager
def bench(profile: Path, seconds: float = SECONDS, recycle: int = 1000) -> Iterator[Bench]:
    made = Bench(profile, seconds, recycle)
    try:
        yield made
    finally:
        made.close()


class Listener(asyncio.DatagramProtocol):
    """One port of loopback, TCP and UDP; `met` is who came."""

    def __init__(self) -> None:
        self.met: list[str] = []
        self.port = 0

    async def listen(self) -> None:
        loop = asyncio.get_running_loop()
        # The datagrams choose: a port that others hold for them alone cannot be had for both.
        transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))
        self.port = transport.get_extra_info("sockname")[1]
        await asyncio.start_server(self._came, "127.0.0.1", self.port)

    async def _came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.met.append("a connection")
        writer.close()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.met.append("a datagram")
