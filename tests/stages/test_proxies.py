"""Proxies, with real ones on loopback: pproxy (an independent SOCKS5 and HTTP proxy), and one that plays Tor."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from stages.certificates import self_signed
from stages.rawserver import RawServer, fetching, get, get_failure, get_page, page, run, wall
from stages.socksserver import GENERAL, HOST_UNREACHABLE, NOT_ALLOWED, REFUSED, SocksServer

from harvestman.fetch.curl import Fetcher
from harvestman.fetch.limits import Limits
from harvestman.fetch.ways import proxy_host
from harvestman.model import FailureKind, Request, Response, Route, Seconds

HOME = "127.0.0.1"
ONION = "duckduckgogg42xjoc72x3sjasowoarfbgcmvfimaftt6twagswzczad.onion"


def via(scheme: str, port: int, user: str = "", password_env: str = "", host: str = HOME) -> Route:
    return Route(f"{scheme}://{host}:{port}", user, password_env)


def free_port() -> int:
    with socket.create_server((HOME, 0)) as listener:
        return int(listener.getsockname()[1])


PPROXY = """
import asyncio, sys
sys.modules["uvloop"] = None  # pproxy would use it the way it worked years ago
asyncio.set_event_loop(asyncio.new_event_loop())
from pproxy.server import main
main()
"""


@asynccontextmanager
async def pproxy(*options: str) -> AsyncIterator[int]:
    """pproxy in a process of its own, speaking SOCKS5 and HTTP on one port; stopped by its pid."""
    port = free_port()
    listen = [part.format(port=port) for part in options or ("http+socks5://127.0.0.1:{port}",)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PPROXY, "-l", *listen, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        for _ in range(200):
            with suppress(OSError):
                _, writer = await asyncio.open_connection(HOME, port)
                writer.close()
                break
            await asyncio.sleep(0.05)
        yield port
    finally:
        process.terminate()
        await process.wait()


def test_pproxy_carries_plain_and_tls_pages_by_socks_and_http(tmp_path: Path) -> None:
    async def scene() -> None:
        tls, trusted = self_signed(tmp_path, "localhost")
        # The guard is not asked about the proxy: the operator has named it.
        refuse_all = fetching(ca_file=trusted, guard=lambda ip, port: "no")
        plain, secure = RawServer(), RawServer()
        async with pproxy() as port, plain.listening(), secure.listening(tls=tls), refuse_all as fetcher:
            for scheme in ("socks5h", "http"):
                for url in (f"http://localhost:{plain.port}/a?b", f"https://localhost:{secure.port}/a?b"):
                    response = await get_page(fetcher, Request(url, HOME, route=via(scheme, port)))
                    assert (response.status, response.body, response.tls_error) == (200, b"<p>hello", None)
                    assert response.head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type")
                    assert response.address == ""
        assert len(plain.heads) == len(secure.heads) == 2
        assert b"GET /a?b HTTP/1.1\r\nHost: localhost" in plain.heads[0]

    run(scene())


def test_pproxy_with_a_password_from_the_environment() -> None:
    async def scene() -> None:
        plain = RawServer()
        secrets = {"OURS": "s3cret", "WRONG": "guess"}
        fetcher = Fetcher(user_agent="t", guard=lambda ip, port: None, now=wall, secrets=secrets)
        async with pproxy("socks5://127.0.0.1:{port}#anna:s3cret") as port, plain.listening():
            url = f"http://localhost:{plain.port}/"
            # First the wrong one: once it knows an address, pproxy asks for no password.
            bad = await get_failure(fetcher, Request(url, HOME, route=via("socks5h", port, "anna", "WRONG")))
            assert "guess" not in str(bad)
            good = await get(fetcher, Request(url, HOME, route=via("socks5h", port, "anna", "OURS")))
            assert isinstance(good, Response)
        await fetcher.close()
        assert len(plain.heads) == 1

    run(scene())


def test_an_onion_name_reaches_the_proxy_as_it_is_and_each_site_is_a_user_of_its_own() -> None:
    async def scene() -> None:
        server = RawServer()
        async with server.listening(), fetching(guard=lambda ip, port: "no") as fetcher:
            tor = SocksServer({ONION: (HOME, server.port), "other.onion": (HOME, server.port)})
            async with tor.listening():
                for site in (ONION, "other.onion"):
                    route = via("socks5h", tor.port, user=site)
                    for n in range(2):
                        await get_page(fetcher, Request(f"http://{site}/{n}", HOME, route=route))
        assert tor.asked == [(ONION, 80, ONION), ("other.onion", 80, "other.onion")]  # connections are kept
        assert tor.kinds == {3}
        assert f"Host: {ONION}\r\n".encode() in server.heads[0]

    run(scene())


def test_two_users_of_a_proxy_share_no_connection() -> None:
    async def scene() -> None:
        server = RawServer()
        async with server.listening(), fetching() as fetcher:
            tor = SocksServer({"a.onion": (HOME, server.port)})
            async with tor.listening():
                for user in ("one", "two", "one"):
                    await get_page(fetcher, Request("http://a.onion/", HOME, route=via("socks5h", tor.port, user)))
        assert [user for _, _, user in tor.asked] == ["one", "two"]

    run(scene())


def test_a_handle_goes_back_to_the_straight_way() -> None:
    async def scene() -> None:
        server = RawServer({"*": page(extra="Connection: close\r\n")})
        async with server.listening(), fetching() as fetcher:
            tor = SocksServer({"a.test": (HOME, server.port)})
            async with tor.listening():
                for n in range(6):
                    route = via("socks5h", tor.port, "a.test") if n % 2 else Route()
                    response = await get_page(fetcher, Request(f"http://a.test:{server.port}/{n}", HOME, route=route))
                    assert response.address == ("" if n % 2 else HOME)
        assert len(tor.asked) == 3
        assert server.connections == 6

    run(scene())


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (GENERAL, FailureKind.CONNECT),
        (NOT_ALLOWED, FailureKind.CONNECT),
        (HOST_UNREACHABLE, FailureKind.CONNECT),
        (REFUSED, FailureKind.CONNECT),
        (0xF2, FailureKind.CONNECT),
    ],
)
def test_what_a_proxy_says_of_the_host_is_the_hosts_failure(reply: int, kind: FailureKind) -> None:
    async def scene() -> None:
        async with SocksServer({"a.onion": reply}).listening() as tor, fetching() as fetcher:
            failure = await get_failure(fetcher, Request("http://a.onion/", HOME, route=via("socks5h", tor.port, "a")))
            assert failure.kind is kind

    run(scene())


@pytest.mark.parametrize("scheme", ["socks5h", "http", "https"])
@pytest.mark.parametrize("url", ["http://a.test/", "https://a.test/"])
def test_a_proxy_that_is_not_there_is_the_proxys_failure(scheme: str, url: str) -> None:
    async def scene() -> None:
        async with fetching() as fetcher:
            failure = await get_failure(fetcher, Request(url, HOME, route=via(scheme, free_port())))
            assert (failure.kind, failure.address) == (FailureKind.PROXY, "")
            assert "127.0.0.1" in failure.detail

    run(scene())


def test_a_proxy_that_does_not_know_us_is_the_proxys_failure() -> None:
    async def scene() -> None:
        denied = page(b"who?", status="407 Proxy Authentication Required", extra="Connection: close\r\n")
        tor = SocksServer({"a.test": GENERAL}, accounts={"anna": "x"})
        async with RawServer({"*": denied}).listening() as web, tor.listening(), fetching() as fetcher:
            for route, url in (
                (via("http", web.port), "http://a.test/"),
                (via("http", web.port), "https://a.test/"),
                (via("socks5h", tor.port), "http://a.test/"),
                (via("socks5h", tor.port, "bert"), "http://a.test/"),
            ):
                failure = await get_failure(fetcher, Request(url, HOME, route=route))
                assert failure.kind is FailureKind.PROXY, failure

    run(scene())


def test_a_tunnel_that_the_proxy_cannot_dig_is_the_hosts_failure() -> None:
    async def scene() -> None:
        no = page(b"", status="502 Bad Gateway", extra="Connection: close\r\n")
        async with RawServer({"*": no}).listening() as proxy, fetching() as fetcher:
            route = via("http", proxy.port)
            failure = await get_failure(fetcher, Request("https://a.test/", HOME, route=route))
            assert failure.kind is FailureKind.CONNECT
            assert "502" in failure.detail
            plain = await get_page(fetcher, Request("http://a.test/", HOME, route=route))
            assert plain.status == 502
            assert proxy.heads[-1].startswith(b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n")

    run(scene())


def test_a_proxys_own_certificate_is_always_verified(tmp_path: Path) -> None:
    async def scene() -> None:
        tls, trusted = self_signed(tmp_path, "proxy.test")
        async with RawServer().listening(tls=tls) as proxy:
            named = via("https", proxy.port, host="proxy.test")
            async with fetching() as fetcher:
                for url in ("http://a.test/", "https://a.test/"):
                    failure = await get_failure(fetcher, Request(url, HOME, route=named))
                    assert failure.kind is FailureKind.PROXY, failure
            assert proxy.heads == []
            # Known by its name, though we connect to the address we were told.
            async with fetching(ca_file=trusted, guard=lambda ip, port: "no") as fetcher:
                assert (await get_page(fetcher, Request("http://a.test/", HOME, route=named))).status == 200

    run(scene())


def test_a_bad_certificate_behind_a_proxy_is_the_pages(tmp_path: Path) -> None:
    async def scene() -> None:
        tls, _ = self_signed(tmp_path, "wrong.test")
        async with RawServer().listening(tls=tls) as server, fetching() as fetcher:
            tor = SocksServer({"a.onion": (HOME, server.port)})
            async with tor.listening():
                route = via("socks5h", tor.port, "a.onion")
                response = await get_page(fetcher, Request("https://a.onion/", HOME, route=route))
                assert response.tls_error
                robots = Request("https://a.onion/robots.txt", HOME, robots=True, route=route)
                assert (await get_failure(fetcher, robots)).kind is FailureKind.TLS

    run(scene())


def test_a_proxy_gets_more_time() -> None:
    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.8)
        writer.write(page(extra="Connection: close\r\n"))

    async def scene() -> None:
        quick = Limits(connect=Seconds(0.3), first_byte=Seconds(0.3))
        async with RawServer({"*": slow}).listening() as proxy, fetching(quick) as fetcher:
            failure = await get_failure(fetcher, Request("http://a.test/", HOME, route=via("http", proxy.port)))
            assert failure.kind is FailureKind.TIMEOUT
            patient = Route(f"http://{HOME}:{proxy.port}", slack=Seconds(2))
            assert (await get_page(fetcher, Request("http://a.test/", HOME, route=patient))).status == 200

    run(scene())


def test_a_request_leaves_from_the_address_it_is_told() -> None:
    async def scene() -> None:
        peers: list[str] = []

        class Noting(RawServer):
            async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                peers.append(writer.get_extra_info("peername")[0])
                await super().talk(reader, writer)

        async with Noting({"*": page()}).listening() as server, fetching() as fetcher:
            for n, source in enumerate(("127.0.0.3", "127.0.0.4", "127.0.0.3", "")):
                await get_page(fetcher, Request(f"http://a.test:{server.port}/{n}", HOME, route=Route(source=source)))
            nowhere = Request(f"http://b.test:{server.port}/", HOME, route=Route(source="192.0.2.7"))
            failure = await get_failure(fetcher, nowhere)
            assert failure.kind is FailureKind.CONNECT
        assert peers == ["127.0.0.3", "127.0.0.4", HOME]  # the third request found the connection of the first

    run(scene())


@pytest.mark.parametrize(
    ("proxy", "host"),
    [("socks5h://127.0.0.1:9050", "127.0.0.1"), ("https://p.test:3128", "p.test"), ("http://[::1]:80", "::1")],
)
def test_the_host_of_a_proxy(proxy: str, host: str) -> None:
    assert proxy_host(proxy) == host


def test_the_environment_cannot_turn_a_proxy_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("no_proxy", "*")

    async def scene() -> None:
        server = RawServer()
        async with server.listening(), fetching(guard=lambda ip, port: "no") as fetcher:
            tor = SocksServer({ONION: (HOME, server.port)})
            async with tor.listening():
                route = via("socks5h", tor.port)
                await get_page(fetcher, Request(f"http://{ONION}:{server.port}/", HOME, route=route))

    run(scene())


def test_a_site_behind_socks_that_answers_407_is_no_fault_of_the_proxy() -> None:
    async def scene() -> None:
        server = RawServer({"*": page(status="407 Proxy Authentication Required")})
        async with server.listening(), fetching() as fetcher:
            tor = SocksServer({ONION: (HOME, server.port)})
            async with tor.listening():
                route = via("socks5h", tor.port)
                answer = await get_page(fetcher, Request(f"http://{ONION}:{server.port}/", HOME, route=route))
                assert answer.status == 407

    run(scene())


def test_a_proxy_that_takes_no_connections_is_the_proxys_failure() -> None:
    async def scene() -> None:
        # A full queue of a listener that accepts nobody: to the next one it looks as if packets were dropped.
        with socket.socket() as listener:
            listener.bind((HOME, 0))
            listener.listen(0)
            port = listener.getsockname()[1]
            waiting = [socket.socket() for _ in range(8)]
            for each in waiting:
                each.setblocking(False)
                each.connect_ex((HOME, port))
            async with fetching(Limits(connect=Seconds(0.3), first_byte=Seconds(0.3))) as fetcher:
                route = Route(f"socks5h://{HOME}:{port}")
                failure = await get_failure(fetcher, Request("http://far.example/", HOME, route=route))
            for each in waiting:
                each.close()
        assert (failure.kind, failure.detail) == (FailureKind.PROXY, "no connection")

    run(scene())
