"""TLS against real servers: sessions are resumed, HTTP/2 is spoken, certificates are judged by the policy."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from pathlib import Path

import pytest
from stages.certificates import self_signed
from stages.h2server import H2Server
from stages.rawserver import RawServer, fetching, get, get_failure, get_page, page, run, wall

from harvestman.fetch.curl import Fetcher
from harvestman.fetch.sessions import Sessions
from harvestman.model import FailureKind, Request, Response

HOME = "127.0.0.1"
LAST = page(b"<p>bye", extra="Connection: close\r\n")


@dataclass
class Handshakes(RawServer):
    """Closes each connection after one answer, and counts which handshakes were resumed."""

    whole: int = 0
    resumed: int = 0

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        shaken: ssl.SSLObject = writer.get_extra_info("ssl_object")
        self.resumed += bool(shaken.session_reused)
        self.whole += not shaken.session_reused
        await super().talk(reader, writer)


def test_a_host_is_met_again_with_a_short_handshake(tmp_path: Path) -> None:
    async def scene() -> tuple[int, int]:
        tls, trusted = self_signed(tmp_path, "site.test")
        async with Handshakes({"*": LAST}).listening(tls=tls) as server, fetching(ca_file=trusted) as fetcher:
            assert isinstance(server, Handshakes)
            for n in range(5):
                await get_page(fetcher, Request(f"https://site.test:{server.port}/{n}", HOME))
            return server.whole, server.resumed

    assert run(scene()) == (1, 4)


@pytest.mark.slow
def test_sessions_outlast_visits_to_many_other_hosts(tmp_path: Path) -> None:
    """libcurl alone keeps those of 25 hosts: none of 100 would be resumed."""

    async def scene() -> tuple[int, int]:
        tls, trusted = self_signed(tmp_path, "*.site.test")
        async with Handshakes({"*": LAST}).listening(tls=tls) as server, fetching(ca_file=trusted) as fetcher:
            assert isinstance(server, Handshakes)
            for _ in range(2):
                for first in range(0, 100, 50):
                    batch = [Request(f"https://h{n}.site.test:{server.port}/", HOME) for n in range(first, first + 50)]
                    await asyncio.gather(*(get_page(fetcher, request) for request in batch))
            return server.whole, server.resumed

    whole, resumed = run(scene())
    assert whole + resumed == 200
    assert resumed >= 97


def test_the_places_for_sessions_are_bounded() -> None:
    sessions = Sessions(shares=8)
    shares = {id(sessions.of(f"host{n}.test")) for n in range(1000)}
    assert len(shares) == 8
    assert sessions.of("host1.test") is sessions.of("host1.test")


def test_an_unverified_session_never_stands_in_for_a_verified_one(tmp_path: Path) -> None:
    """After a page was fetched in spite of its certificate, robots.txt is still refused, resumed session or not."""

    async def scene() -> None:
        tls, _ = self_signed(tmp_path, "site.test")
        async with Handshakes({"*": LAST}).listening(tls=tls) as server, fetching() as fetcher:
            url = f"https://site.test:{server.port}/"
            for _ in range(3):
                assert (await get_page(fetcher, Request(url, HOME))).tls_error
                failure = await get_failure(fetcher, Request(f"{url}robots.txt", HOME, robots=True))
                assert failure.kind is FailureKind.TLS

    run(scene())


def test_where_the_policy_refuses_a_bad_certificate_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    async def scene() -> None:
        tls, _ = self_signed(tmp_path, "site.test")
        fetcher = Fetcher(user_agent="t", guard=lambda ip, port: None, now=wall, record_invalid=False)
        async with RawServer().listening(tls=tls) as server:
            failure = await get_failure(fetcher, Request(f"https://site.test:{server.port}/", HOME))
            assert failure.kind is FailureKind.TLS
            assert "self-signed certificate" in failure.detail
            assert server.heads == []
        await fetcher.close()

    run(scene())


def test_http_2_where_the_server_offers_it(tmp_path: Path) -> None:
    async def scene() -> None:
        tls, trusted = self_signed(tmp_path, "site.test")
        async with H2Server().listening(tls) as server, fetching(ca_file=trusted) as fetcher:
            for n in range(5):
                response = await get_page(fetcher, Request(f"https://site.test:{server.port}/{n}?a=b", HOME))
                assert response.head.startswith(b"HTTP/2 200")
                assert (response.status, response.body, response.tls_error) == (200, b"<p>two", None)
                assert response.headers["content-type"] == "text/html"
            assert server.asked == [(f"site.test:{server.port}", f"/{n}?a=b") for n in range(5)]
            assert server.connections == 1

    run(scene())


@pytest.mark.parametrize("hosts", [1, 5])
def test_http_2_never_carries_two_requests_at_once(tmp_path: Path, hosts: int) -> None:
    """The frontier never leases a host twice; if it did, or two hosts share an address, each has its own connection."""

    async def scene() -> None:
        tls, trusted = self_signed(tmp_path, "*.site.test")
        async with H2Server(pause=0.1).listening(tls) as server, fetching(ca_file=trusted) as fetcher:
            await get_page(fetcher, Request(f"https://h0.site.test:{server.port}/", HOME))
            urls = [f"https://h{n % hosts}.site.test:{server.port}/{n}" for n in range(5)]
            answers = await asyncio.gather(*(get(fetcher, Request(url, HOME)) for url in urls))
            assert all(isinstance(answer, Response) for answer in answers)
            assert server.crowded == 0
            assert server.connections == 5

    run(scene())
