"""A short fuzz of the response path (bench/fuzz_responses.py runs as long as is asked), and what it found."""

from __future__ import annotations

import asyncio
import gzip
import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import cast

import pytest
from stages.rawserver import RawServer, fetching, get, get_failure, get_page, page, run, sends
from virtual import OneJob

from harvestman.config import Config
from harvestman.fetch import heads
from harvestman.fetch.curl import Limits
from harvestman.fetch.decode import MAX_MEMBERS, BadBody, decode
from harvestman.frontier.routing import Router
from harvestman.harvest import Harvest
from harvestman.model import Answer, Bytes, Failure, FailureKind, Instant, Lease, Request, Response, Status, UrlRecord
from harvestman.policy import urls
from harvestman.ports import Content, State
from harvestman.store.warc import WarcWriter

BENCH = Path(__file__).parents[2] / "bench"
HOME = "127.0.0.1"


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="descriptors and memory are counted in /proc")
def test_a_short_fuzz_finds_nothing(tmp_path: Path) -> None:
    options = f"--cases 500 --seed 4 --no-keep --failures {tmp_path}"
    command = [sys.executable, "fuzz_responses.py", *options.split()]
    done = subprocess.run(command, cwd=BENCH, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "fetched 2xx" in done.stdout


async def asked(reply: bytes, limits: Limits | None = None) -> Answer:
    async with RawServer({"*": sends(reply)}).listening() as server, fetching(limits) as fetcher:
        return await get(fetcher, Request(f"http://site.test:{server.port}/", HOME))


def failed(answer: Answer) -> tuple[FailureKind, str]:
    assert isinstance(answer, Failure), answer
    return answer.kind, answer.detail


def test_a_status_of_many_digits_is_none(capfd: pytest.CaptureFixture[str]) -> None:
    """Python refuses to read a number of 4,300 digits; that is no reason for a traceback."""
    assert heads.status_of(b"HTTP/1.1 " + b"2" * 9000) == 0
    assert heads.status_of(b"HTTP/1.1 2000 OK") == 0
    answer = run(asked(b"HTTP/1.1 " + b"2" * 9000 + b" OK\r\n\r\nbody"))
    assert failed(answer)[0] is FailureKind.PROTOCOL
    assert capfd.readouterr().err == ""


def test_a_head_that_breaks_off_is_asked_for_again() -> None:
    """libcurl calls it a success; without this it was an answer with status 0, and its page gone for good."""
    answer = run(asked(b"HTTP/1.1 302 Found\r\nContent-Type: text/html\r\n"))
    assert failed(answer) == (FailureKind.TRUNCATED, "the head breaks off")


def test_a_crowd_of_gzip_members_costs_little() -> None:
    """Half a million empty ones, ten megabytes, once took a minute."""
    began = time.process_time()
    assert isinstance(decode(gzip.compress(b"") * 500_000, "gzip"), BadBody)
    assert time.process_time() - began < 1.0
    many = decode(gzip.compress(b"word ") * (MAX_MEMBERS + 500), "gzip")
    assert many == b"word " * (MAX_MEMBERS + 1)
    large = [Random(n).randbytes(100_000) for n in range(30)]
    assert decode(b"".join(map(gzip.compress, large)), "gzip") == b"".join(large)
    assert decode(gzip.compress(b"one ") + gzip.compress(b"two")[:-9], "gzip") == b"one two"


CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_a_body_in_many_pieces_is_put_together_and_in_too_many_refused() -> None:
    body = b"".join(b"2\r\n%02d\r\n" % (n % 100) for n in range(3000))
    answer = run(asked(CHUNKED + body + b"0\r\n\r\n"))
    assert isinstance(answer, Response)
    assert answer.body == b"".join(b"%02d" % (n % 100) for n in range(3000))
    refused = run(asked(CHUNKED + body * 2 + b"0\r\n\r\n", Limits(pieces=4000)))
    assert failed(refused) == (FailureKind.PROTOCOL, "a body in more than 4000 pieces")


@pytest.mark.slow
def test_bodies_under_way_hold_no_more_than_they_may() -> None:
    async def scene() -> None:
        begun = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 900000\r\n\r\n" + b"x" * 700_000
        replies = {
            "/slow": sends(begun, then_stall=True),
            "/large": page(b"y" * 500_000),
            "/small": page(b"z" * 100_000),
        }
        async with RawServer({**replies}).listening() as server, fetching(Limits(held=Bytes(1_000_000))) as fetcher:
            base = f"http://site.test:{server.port}"
            slow = asyncio.create_task(get(fetcher, Request(f"{base}/slow", HOME), 20))
            await asyncio.sleep(0.2)
            crowded = await get_failure(fetcher, Request(f"{base}/large", HOME))
            assert (crowded.kind, crowded.detail) == (FailureKind.CROWDED, "too many large bodies at once")
            assert len((await get_page(fetcher, Request(f"{base}/small", HOME))).body) == 100_000
            assert failed(await slow)[0] is FailureKind.TIMEOUT
            for _ in range(4):  # all that was held is given back
                assert len((await get_page(fetcher, Request(f"{base}/large", HOME))).body) == 500_000

    run(scene())


class _Empty:
    async def near(self, prints: list[tuple[int, int]], most: int) -> list[list[object]]:
        return [[] for _ in prints]

    async def sites(self, names: list[object]) -> list[None]:
        return [None for _ in names]

    async def contents(self, digests: list[bytes]) -> list[Content | None]:
        return [None for _ in digests]


def test_a_seed_may_be_a_feed(tmp_path: Path) -> None:
    """What a seed was found by is no URL."""
    url = "https://news.test/feed"
    body = b"<?xml version='1.0'?><rss version='2.0'><channel><item><link>https://news.test/a</link></item></channel></rss>"
    fields = {"content-type": "application/rss+xml"}
    now = Instant(1.0)
    answer = Response(url, 200, b"HTTP/1.1 200 OK\r\n\r\n", fields, body, HOME, now, now, now)
    router = Router(1)
    record = UrlRecord(url, Status.PENDING, 0, 0, 0, now, "seed", kind="seed")
    lease = Lease(urls.host_of(url), HOME, url, router.id_of(url), record, urls.origin_of(url))
    warc = WarcWriter(tmp_path, "w", software="test", contact="", now=time.time)
    harvest = Harvest(Config(), cast(State, _Empty()), warc, router, OneJob(), Random(1), {})
    [taken] = run(harvest.gather([(lease, record, answer, None)]))
    warc.close()
    assert [link.found.url for link in taken.links] == ["https://news.test/a"]
