"""The pipe to the browser, with a program at its other end that is none."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Awaitable, Callable

import pytest

from harvestman.render.cdp import BrowserGone, CommandRefused, Pipe, Said, end, start

PARROT = """
import json, os
heard = b""
while True:
    heard += os.read(3, 1 << 16)
    *whole, heard = heard.split(b"\\0")
    for message in map(json.loads, whole):
        if message["method"] == "die":
            os._exit(1)
        answer = {"id": message["id"], "result": message["params"]}
        if message["method"] == "refuse":
            answer = {"id": message["id"], "error": {"message": "no"}}
        if message["method"] == "event":
            os.write(4, b'{"method": "happened", "sessionId": "s", "params": {"text": "\\\\ud800"}}\\0')
        if message["method"] != "silence":
            left = json.dumps(answer).encode() + b"\\0"
            while left:
                left = left[os.write(4, left):]
"""


def talk(say: Callable[[Pipe], Awaitable[None]]) -> None:
    async def talking() -> None:
        pid, pipe = await start([sys.executable, "-S", "-c", PARROT], dict(os.environ))
        try:
            async with asyncio.timeout(10):
                await say(pipe)
        finally:
            pipe.close()
            await end(pid, [])

    asyncio.run(talking())


def test_answers_events_and_refusals() -> None:
    async def say(pipe: Pipe) -> None:
        heard: list[tuple[str, Said]] = []
        pipe.listeners["s"] = lambda method, said: heard.append((method, said))
        first, second = pipe.command("a", {"n": 1}), pipe.command("event", {"n": 2})
        assert [await second, await first] == [{"n": 2}, {"n": 1}]
        assert heard == [("happened", {"text": "\ud800"})]
        with pytest.raises(CommandRefused, match="no"):
            await pipe.command("refuse")

    talk(say)


def test_a_message_of_many_megabytes() -> None:
    async def say(pipe: Pipe) -> None:
        body = "x" * 4_000_000
        assert (await pipe.command("a", {"body": body}))["body"] == body

    talk(say)


def test_death_fails_all_who_wait_and_all_who_come_later() -> None:
    async def say(pipe: Pipe) -> None:
        waiting = [pipe.command("silence") for _ in range(3)]
        pipe.command("die")
        for answer in [*waiting, pipe.command("a")]:
            with pytest.raises(BrowserGone, match="the browser has died"):
                await answer
        with pytest.raises(BrowserGone, match="cannot be told b"):
            await pipe.command("b")

    talk(say)


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(BrowserGone, match="nothing-here cannot be started: No such file"):
        asyncio.run(start(["/nothing-here"], {}))


def test_it_holds_none_of_our_connections_open() -> None:
    ours, other = socket.socketpair()
    ours.set_inheritable(True)  # as libcurl's are
    other.settimeout(5)

    async def say(pipe: Pipe) -> None:
        await pipe.command("a")
        ours.close()
        assert other.recv(1) == b"", "closed by us, it is closed"

    with ours, other:
        talk(say)
