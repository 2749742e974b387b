"""The supervisor over two real workers, against a small server on two addresses, each owned by one worker."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from harvestman.config import Config, Limits, Politeness
from harvestman.errors import UsageError
from harvestman.model import HostKey, Seconds
from harvestman.policy.sites import site_of
from harvestman.policy.urls import partition_of
from harvestman.supervise import Ending, Supervisor
from harvestman.wiring import prepare


def address_of(worker: int) -> str:
    """A loopback address that this worker of two owns."""
    names = (f"127.0.7.{number}" for number in range(1, 200))
    return next(name for name in names if partition_of(site_of(HostKey(name)), 64) % 2 == worker)


VETTED = {1: 1_000}
FEW, MANY = address_of(0), address_of(1)
Page = Callable[[str, str], tuple[float, int, str]]
"""(host, path) -> (seconds it takes, status, links as HTML)"""


async def serve(page: Page) -> asyncio.Server:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await reader.readuntil(b"\r\n\r\n"):
                path = request.split(b" ", 2)[1].decode()
                pause, status, body = page(writer.get_extra_info("sockname")[0], path)
                await asyncio.sleep(pause)
                text = f"<html><title>{path}</title><p>{path} {body}</p></html>".encode()
                head = f"HTTP/1.1 {status} X\r\nContent-Type: text/html\r\nContent-Length: {len(text)}\r\n\r\n"
                writer.write(head.encode() + text)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    return await asyncio.start_server(answer, [FEW, MANY], 0)


def crawl(
    tmp_path: Path, page: Page, during: Callable[[Supervisor], Awaitable[None]] | None = None, pages: int = 0,
    drain: float = 30.0,
) -> Ending:  # fmt: skip
    async def run() -> Ending:
        server = await serve(page)
        # Each address got a port of its own.
        ports = {socket.getsockname()[0]: socket.getsockname()[1] for socket in server.sockets}
        origin.update({name: f"http://{name}:{port}" for name, port in ports.items()})
        config = Config(
            scope="all", data=str(tmp_path / "data"), workers=2, allow=("127.0.0.0/8",), contact="test@example.org",
            politeness=Politeness(delay=Seconds(0.02), ip_delay=Seconds(0.0)),
            limits=Limits(max_pages=pages, patience=Seconds(20.0), drain=Seconds(drain)),
        )  # fmt: skip
        seeds = [f"{origin[FEW]}/"]
        # Faster than strangers are asked; consent would be refused.
        supervisor = Supervisor(config, prepare(config, seeds), lambda _: None, vetted=VETTED)
        running = asyncio.create_task(supervisor.run())
        if during is not None:
            await during(supervisor)
        try:
            return await asyncio.wait_for(running, 40)
        finally:
            server.close()

    origin: dict[str, str] = {}
    page_with_origin = page

    def known(host: str, path: str) -> tuple[float, int, str]:
        pause, status, body = page_with_origin(host, path)
        return pause, status, body.replace("MANY", origin.get(MANY, "")).replace("FEW", origin.get(FEW, ""))

    page = known
    return asyncio.run(run())


def links(*targets: str) -> str:
    return " ".join(f"<a href='{target}'>{target}</a>" for target in targets)


def few_and_many(host: str, path: str) -> tuple[float, int, str]:
    if path == "/robots.txt":
        return 0.0, 404, ""
    if host == FEW:
        return 0.0, 200, links("MANY/", *(f"/few{number}" for number in range(5)))
    return 0.0, 200, links(*(f"/many{number}" for number in range(80)))


@pytest.mark.slow
def test_pages_granted_to_an_idle_worker_go_to_one_that_needs_them(tmp_path: Path) -> None:
    ending = crawl(tmp_path, few_and_many, pages=60)
    assert (ending.reason, ending.progress.run_pages) == ("max-pages", 60)


@pytest.mark.slow
def test_a_slow_robots_txt_of_another_worker_does_not_end_the_crawl(tmp_path: Path) -> None:
    def page(host: str, path: str) -> tuple[float, int, str]:
        if path == "/robots.txt":
            return (3.0 if host == MANY else 0.0), 404, ""
        return 0.0, 200, links("MANY/") if host == FEW else ""

    ending = crawl(tmp_path, page)
    assert (ending.reason, ending.progress.run_pages) == ("finished", 2)


@pytest.mark.slow
def test_a_worker_whose_supervisor_is_killed_ends_by_itself(tmp_path: Path) -> None:
    import subprocess
    import sys
    import time

    script = (
        "import asyncio,sys\n"
        "from harvestman.config import Config\n"
        "from harvestman.supervise import Supervisor\n"
        "from harvestman.wiring import prepare\n"
        f"c=Config(scope='host',data={str(tmp_path / 'data')!r},contact='t@example.org')\n"
        "s=['https://192.0.2.1/']\n"
        "sup=Supervisor(c,prepare(c,s),lambda p: print(sup.pids()[0],flush=True),vetted={1:1000})\n"
        "asyncio.run(sup.run())\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    os.kill(worker, signal.SIGSTOP)  # a poll is waiting unread when the parent dies
    time.sleep(1.2)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    os.kill(worker, signal.SIGCONT)
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    os.kill(worker, signal.SIGKILL)
    pytest.fail("the worker lived on")


@pytest.mark.slow
def test_a_drain_during_the_start_is_not_lost(tmp_path: Path) -> None:
    async def drain(supervisor: Supervisor) -> None:
        await asyncio.sleep(0)
        supervisor.drain()

    ending = crawl(tmp_path, few_and_many, during=drain)
    assert ending.reason == "interrupted"


@pytest.mark.slow
def test_draining_is_bounded(tmp_path: Path) -> None:
    """A page that takes nine seconds stays queued; nobody waits for it."""

    def page(host: str, path: str) -> tuple[float, int, str]:
        return (0.0, 404, "") if path == "/robots.txt" else (9.0, 200, "")

    drained_at = 0.0

    async def drain(supervisor: Supervisor) -> None:
        nonlocal drained_at
        for _ in range(150):
            await asyncio.sleep(0.1)
            if supervisor.progress().counts.get("leased"):
                break
        await asyncio.sleep(1.0)  # robots.txt is there by now
        supervisor.drain()
        drained_at = supervisor.progress().elapsed

    ending = crawl(tmp_path, page, during=drain, drain=1.0)
    assert (ending.reason, ending.progress.tally.pages) == ("interrupted", 0)
    assert ending.progress.elapsed - drained_at < 6


@pytest.mark.slow
def test_a_worker_that_cannot_start_says_why_at_once(tmp_path: Path) -> None:
    config = Config(
        scope="all", data=str(tmp_path / "data"), workers=1, dns="name.of.a.server:53", contact="test@example.org"
    )
    seeds = ["http://example.org/"]
    supervisor = Supervisor(config, prepare(config, seeds), lambda _: None)
    with pytest.raises(UsageError, match="name server"):
        asyncio.run(asyncio.wait_for(supervisor.run(), 20))
