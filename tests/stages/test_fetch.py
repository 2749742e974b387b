"""The fetcher against real sockets on loopback."""

from __future__ import annotations

import asyncio
import errno
import os
import select
import selectors
import shutil
import socket
import ssl
import subprocess
import time
from pathlib import Path

import pycurl
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from stages.rawserver import (
    QUICK,
    RawServer,
    Reply,
    fetching,
    get,
    get_failure,
    get_page,
    page,
    run,
    sends,
    stall,
    wall,
)

from harvestman import media
from harvestman.errors import UsageError
from harvestman.fetch import faults, heads
from harvestman.fetch.certificates import KnownBad
from harvestman.fetch.curl import Fetcher, Limits, refuse_bad_libcurl
from harvestman.fetch.transfer import same_address
from harvestman.model import Answer, Bytes, Failure, FailureKind, Request, Response, Seconds

HOME = "127.0.0.1"


def at(server: RawServer, path: str = "/", host: str = "site.test", scheme: str = "http") -> str:
    return f"{scheme}://{host}:{server.port}{path}"


async def fetched(reply: bytes, *, limits: Limits | None = None, robots: bool = False) -> Answer:
    """The answer to one request served with `reply`, the connection closed after it."""
    async with RawServer({"*": sends(reply)}).listening() as server, fetching(limits) as fetcher:
        return await get(fetcher, Request(at(server), HOME, robots=robots))


def test_a_page_comes_back_as_it_was_sent() -> None:
    async def scene() -> None:
        raw = page(b"body", extra="X-Two: a\r\nx-two: b\r\n")
        async with RawServer({"*": raw}).listening() as server, fetching() as fetcher:
            before = wall()
            response = await get_page(fetcher, Request(at(server, "/p?q=1"), HOME))
            assert response.head + response.body == raw
            assert response.status == 200
            assert response.headers["x-two"] == "a, b"
            assert response.headers["content-type"] == "text/html"
            assert response.address == HOME
            assert before <= response.started <= response.first_byte <= response.finished <= wall()
            assert response.tls_error is None

    run(scene())


@pytest.mark.parametrize("factory", ["uvloop", "asyncio", "asyncio without epoll"])
def test_works_on_every_loop(factory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if factory == "asyncio without epoll":
        monkeypatch.delattr(select, "epoll")

    async def scene() -> list[int]:
        async with RawServer({"*": page(b"x" * 200_000)}).listening() as server, fetching() as fetcher:
            requests = [Request(at(server, host=f"h{n}.test"), HOME) for n in range(20)]
            return [len((await get_page(fetcher, request)).body) for request in requests]

    if factory == "asyncio without epoll":
        # asyncio's own selector was chosen at import; only the fetcher looks for epoll now.
        loop = asyncio.SelectorEventLoop(selectors.SelectSelector())
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            assert runner.run(scene()) == [200_000] * 20
    else:
        assert (run(scene()) if factory == "uvloop" else asyncio.run(scene())) == [200_000] * 20


@pytest.mark.parametrize(
    ("path", "etag", "modified"),
    [
        ("/", "", ""),
        ("/a/../b/./c?x=%2f&y=a|b#fragment", "", ""),
        ("?only=query", "", ""),
        ("/cond", '"abc"', "Sat, 15 Nov 2025 10:00:00 GMT"),
        ("/evil", '"a"\r\nX-Evil: 1', "\n"),
        ("//double//slash", "W/" + '"weak"', ""),
    ],
)
def test_the_recorded_request_is_the_one_on_the_wire(path: str, etag: str, modified: str) -> None:
    async def scene() -> None:
        async with RawServer().listening() as server, fetching() as fetcher:
            for again in range(2):  # a pooled handle must not remember the conditions of the request before
                request = Request(at(server, path), HOME, etag="" if again else etag, last_modified=modified)
                response = await get_page(fetcher, request)
                assert response.request_head == server.heads[-1]
            head = server.heads[0].decode()
            assert "X-Evil" not in head
            assert ('If-None-Match: "abc"' in head) == (etag == '"abc"')
            assert "If-None-Match" not in server.heads[1].decode()
            assert "User-Agent: TestBot/1.0 (+http://t)\r\n" in head
            assert "Accept-Encoding: gzip, deflate, br, zstd\r\n" in head

    run(scene())


def test_a_host_keeps_its_connection_and_two_addresses_do_not_share_one() -> None:
    async def scene() -> None:
        async with RawServer().listening("0.0.0.0") as server, fetching() as fetcher:
            for n in range(5):
                await get_page(fetcher, Request(at(server, f"/{n}"), HOME))
            assert server.connections == 1
            await get_page(fetcher, Request(at(server), "127.0.0.2"))
            assert server.connections == 2
            await get_page(fetcher, Request(at(server, host="other.test"), "127.0.0.2"))
            assert server.connections == 3

    run(scene())


@pytest.mark.slow
def test_an_idle_connection_is_dropped_after_its_time() -> None:
    async def scene() -> None:
        async with RawServer().listening() as server, fetching(Limits(idle=Seconds(1))) as fetcher:
            await get_page(fetcher, Request(at(server), HOME))
            await asyncio.sleep(2.1)  # libcurl counts whole seconds
            await get_page(fetcher, Request(at(server), HOME))
            assert server.connections == 2

    run(scene())


def test_a_connection_the_server_has_closed_is_replaced() -> None:
    async def scene() -> None:
        closing = page(extra="Connection: close\r\n")
        async with RawServer({"*": closing}).listening() as server, fetching() as fetcher:
            for _ in range(3):
                assert (await get_page(fetcher, Request(at(server), HOME))).status == 200
            assert server.connections == 3

    run(scene())


def test_redirects_are_not_followed() -> None:
    async def scene() -> None:
        reply = page(b"", status="302 Found", extra="Location: /next\r\n")
        async with RawServer({"*": reply}).listening() as server, fetching() as fetcher:
            response = await get_page(fetcher, Request(at(server), HOME))
            assert (response.status, response.headers["location"]) == (302, "/next")
            assert len(server.heads) == 1

    run(scene())


def test_the_guard_refuses_when_the_socket_is_made() -> None:
    async def scene() -> None:
        asked: list[tuple[str, int]] = []

        def guard(ip: str, port: int) -> str | None:
            asked.append((ip, port))
            return "loopback is not for crawlers"

        async with RawServer().listening() as server, fetching(guard=guard) as fetcher:
            failure = await get_failure(fetcher, Request(at(server), HOME))
            assert (failure.kind, failure.detail) == (FailureKind.GUARD, "loopback is not for crawlers")
            assert asked == [(HOME, server.port)]
            assert server.connections == 0

    run(scene())


def test_the_pin_beats_the_host_name() -> None:
    """A URL that spells an address is connected to the vetted one, not to the one it spells."""

    async def scene() -> None:
        async with RawServer().listening("127.0.0.3") as server, fetching() as fetcher:
            request = Request(at(server, host="127.0.0.9"), "127.0.0.3")
            assert (await get_page(fetcher, request)).status == 200
            assert f"Host: 127.0.0.9:{server.port}\r\n".encode() in server.heads[0]

    run(scene())


def test_ipv6_addresses_are_pinned_too() -> None:
    async def scene() -> None:
        try:
            async with RawServer().listening("::1") as server, fetching() as fetcher:
                assert (await get_page(fetcher, Request(at(server), "::1"))).status == 200
        except OSError as fault:
            pytest.skip(f"no IPv6 loopback here: {fault}")

    run(scene())


@pytest.mark.parametrize(("one", "other", "same"), [("::1", "0:0::1", True), ("1.2.3.4", "1.2.3.5", False)])
def test_addresses_are_compared_by_value(one: str, other: str, same: bool) -> None:
    assert same_address(one, other) is same


@for_each(
    "url",
    [
        "",
        "nonsense",
        "ftp://site.test/",
        "file:///etc/passwd",
        "http://ü.test/",
        "http://a b/",
        "http://a/\0",
        "http:///",
    ],
)
def test_a_url_that_cannot_be_asked_for_is_a_failure(url: str) -> None:
    async def scene() -> None:
        async with fetching(QUICK) as fetcher:
            failure = await get_failure(fetcher, Request(url, HOME))
            assert failure.kind is FailureKind.PROTOCOL
            assert failure.url == url
            assert fetcher.in_flight == 0

    run(scene())


def test_without_an_address_nothing_is_looked_up() -> None:
    async def scene() -> None:
        async with RawServer().listening() as server, fetching() as fetcher:
            failure = await get_failure(fetcher, Request(at(server, host="localhost"), ""))
            assert "no vetted address" in failure.detail
            assert server.connections == 0

    run(scene())


def test_credentials_are_not_sent() -> None:
    async def scene() -> None:
        async with RawServer().listening() as server, fetching() as fetcher:
            failure = await get_failure(fetcher, Request(at(server, host="user:pass@site.test"), HOME))
            assert failure.kind is FailureKind.PROTOCOL
            assert "credentials" in failure.detail
            assert (await get_page(fetcher, Request(at(server, "/@name?a@b"), HOME))).status == 200
            assert len(server.heads) == 1

    run(scene())


def test_nothing_listens() -> None:
    async def scene() -> Failure:
        async with RawServer().listening() as server:
            port = server.port
        async with fetching() as fetcher:
            return await get_failure(fetcher, Request(f"http://site.test:{port}/", HOME))

    assert run(scene()).kind is FailureKind.CONNECT


SLOW: dict[str, tuple[Reply, str]] = {
    "/silent": (stall, "no first byte"),
    "/head-stalls": (sends(b"HTTP/1.1 200 OK\r\n", then_stall=True), "head too slow"),
    "/status-stalls": (sends(b"HTTP/1.1 200", then_stall=True), "no first byte"),
    "/body-stalls": (sends(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", then_stall=True), "body too slow"),
    "/head-drips": (sends(b"HTTP/1.1 200 OK\r\nX: ", *[b"y"] * 40, pause=0.05), "head too slow"),
}


def test_slow_answers_end_in_a_timeout() -> None:
    async def scene() -> None:
        replies = {path: reply for path, (reply, _) in SLOW.items()} | {"/ok": page()}
        async with RawServer(replies).listening() as server, fetching(QUICK) as fetcher:
            began = time.monotonic()
            failures = await asyncio.gather(*(get_failure(fetcher, Request(at(server, path), HOME)) for path in SLOW))
            assert time.monotonic() - began < 1.5
            assert [failure.kind for failure in failures] == [FailureKind.TIMEOUT] * len(SLOW)
            assert [failure.detail for failure in failures] == [detail for _, detail in SLOW.values()]
            assert (await get_page(fetcher, Request(at(server, "/ok"), HOME))).status == 200

    run(scene())


def test_a_connection_that_is_never_accepted_times_out() -> None:
    async def scene() -> None:
        full = socket.socket()
        full.bind((HOME, 0))
        full.listen(0)
        port = full.getsockname()[1]
        crowd = [socket.socket() for _ in range(4)]
        for one in crowd:
            one.setblocking(False)
            one.connect_ex((HOME, port))
        try:
            limits = Limits(connect=Seconds(0.2), first_byte=Seconds(3))
            async with fetching(limits) as fetcher:
                failure = await get_failure(fetcher, Request(f"http://site.test:{port}/", HOME))
            assert (failure.kind, failure.detail) == (FailureKind.TIMEOUT, "no connection")
        finally:
            for one in (*crowd, full):
                one.close()

    run(scene())


def test_large_documents_get_more_time() -> None:
    async def scene() -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nContent-Length: 6\r\n\r\n"
        slow = sends(head, b"%PDF", b"-1", pause=0.35)
        async with RawServer({"*": slow}).listening() as server, fetching(QUICK) as fetcher:
            assert (await get_page(fetcher, Request(at(server), HOME))).body == b"%PDF-1"

    run(scene())


SMALL = Limits(body=Bytes(1000), error_body=Bytes(100), robots_body=Bytes(50), head=Bytes(2000))


@for_each(
    ("reply", "kind"),
    [
        (page(b"x" * 1001), FailureKind.TOO_LARGE),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", FailureKind.TOO_LARGE),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + b"x" * 1001, FailureKind.TOO_LARGE),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n" + b"x" * 0xFFF, FailureKind.TOO_LARGE),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", FailureKind.TRUNCATED),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", FailureKind.TRUNCATED),
        (b"HTTP/1.1 200 OK\r\n" + b"X-Filler: yes\r\n" * 200 + b"\r\n", FailureKind.PROTOCOL),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 3000 + b"\r\n\r\n", FailureKind.PROTOCOL),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 200, FailureKind.PROTOCOL),
        (b"", FailureKind.CONNECT),
        (b"<html>an HTTP/0.9 answer", FailureKind.PROTOCOL),
        (page(kind="image/png"), FailureKind.UNWANTED),
        (page(b"\x00\x01\x02", kind="application/octet-stream"), FailureKind.UNWANTED),
        (page(kind="Video/MP4; codecs=x"), FailureKind.UNWANTED),
    ],
)
def test_answers_that_are_refused(reply: bytes, kind: FailureKind) -> None:
    answer = run(fetched(reply, limits=SMALL))
    assert isinstance(answer, Failure)
    assert answer.kind is kind


def test_the_gate_closes_before_the_body_comes() -> None:
    async def scene() -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nContent-Length: 500000\r\n\r\n"
        async with RawServer({"*": sends(head, then_stall=True)}).listening() as server, fetching() as fetcher:
            began = time.monotonic()
            failure = await get_failure(fetcher, Request(at(server), HOME))
            assert (failure.kind, failure.detail) == (FailureKind.UNWANTED, "image/jpeg")
            assert time.monotonic() - began < 1.0

    run(scene())


@for_each(
    ("reply", "robots", "body"),
    [
        (page(b"x" * 1000), False, b"x" * 1000),
        (page(b"e" * 5000, status="404 Not Found"), False, b"e" * 100),
        (page(b"e" * 5000, status="500 Oops", kind="image/png"), False, b"e" * 100),
        (page(b"r" * 5000, kind="application/octet-stream"), True, b"r" * 50),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"r" * 5000, True, b"r" * 50),
        (page(b"r" * 5000, status="503 Busy"), True, b"r" * 50),
        (page(b"no type", kind=""), False, b"no type"),
        (page(b"", kind="image/png", status="304 Not Modified"), False, b""),
    ],
)
def test_answers_that_are_taken_whole_or_cut(reply: bytes, robots: bool, body: bytes) -> None:
    answer = run(fetched(reply, limits=SMALL, robots=robots))
    assert isinstance(answer, Response)
    assert answer.body == body


def test_interim_heads_and_trailers_stay_out_of_the_head() -> None:
    final = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    raw = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + final + b"2\r\nhi\r\n0\r\nX-Trailer: late\r\n\r\n"
    answer = run(fetched(raw))
    assert isinstance(answer, Response)
    assert (answer.status, answer.head, answer.body) == (200, final, b"hi")
    assert answer.headers == {"transfer-encoding": "chunked"}


def test_encodings_are_left_on() -> None:
    answer = run(fetched(page(b"\x1f\x8b not really gzip", extra="Content-Encoding: gzip\r\n")))
    assert isinstance(answer, Response)
    assert answer.body == b"\x1f\x8b not really gzip"


def test_close_answers_for_everything_in_flight() -> None:
    async def scene() -> None:
        answers: list[Answer] = []
        async with RawServer({"*": stall}).listening() as server:
            fetcher = Fetcher(user_agent="t", guard=lambda ip, port: None, now=wall)
            for n in range(10):
                fetcher.start(Request(at(server, host=f"h{n}.test"), HOME), answers.append)
            await asyncio.sleep(0.05)
            assert fetcher.in_flight == 10
            await fetcher.close()
            assert fetcher.in_flight == 0
            assert [(a.kind, a.detail) for a in answers if isinstance(a, Failure)] == [
                (FailureKind.TIMEOUT, "aborted")
            ] * 10
            fetcher.start(Request(at(server), HOME), answers.append)
            assert len(answers) == 10
            await asyncio.sleep(0)
            assert len(answers) == 11
            await fetcher.close()

    run(scene())


def test_close_gives_every_descriptor_back() -> None:
    async def scene() -> None:
        async with RawServer({"*": page(), "/stall": stall}).listening() as server:
            before = len(os.listdir("/proc/self/fd"))
            fetcher = Fetcher(user_agent="t", guard=lambda ip, port: None, now=wall)
            for n in range(20):
                await get_page(fetcher, Request(at(server, host=f"h{n}.test"), HOME))
                fetcher.start(Request(at(server, "/stall", host=f"s{n}.test"), HOME), lambda answer: None)
            await asyncio.sleep(0.05)
            await fetcher.close()
            await asyncio.sleep(0.05)  # the server's side closes as well
            assert len(os.listdir("/proc/self/fd")) <= before

    if not os.path.exists("/proc/self/fd"):
        pytest.skip("descriptors are counted in /proc")
    run(scene())


def test_an_answer_may_start_the_next_fetch() -> None:
    async def scene() -> None:
        async with RawServer().listening() as server, fetching() as fetcher:
            finished = asyncio.get_running_loop().create_future()
            statuses: list[int] = []

            def done(answer: Answer) -> None:
                assert isinstance(answer, Response)
                statuses.append(answer.status)
                if len(statuses) == 50:
                    finished.set_result(None)
                else:
                    fetcher.start(Request(at(server, f"/{len(statuses)}"), HOME), done)

            fetcher.start(Request(at(server), HOME), done)
            await asyncio.wait_for(finished, 5)
            assert statuses == [200] * 50
            assert server.connections == 1

    run(scene())


def certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, str]:
    """A self-signed certificate for `name`: the server's context, and the file a client would trust it by."""
    if shutil.which("openssl") is None:
        pytest.skip("the openssl program is needed to make a certificate")
    key, cert = folder / "key.pem", folder / "cert.pem"
    command = (
        f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout {key} -out {cert}"
    )
    subprocess.run(
        [*command.split(), "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context, str(cert)


def test_a_bad_certificate_is_told_for_a_page_and_fatal_for_robots(tmp_path: Path) -> None:
    async def scene() -> None:
        context, _ = certificate(tmp_path, "site.test")
        async with RawServer().listening(tls=context) as server, fetching() as fetcher:
            url = at(server, scheme="https")
            response = await get_page(fetcher, Request(url, HOME))
            assert response.status == 200
            assert response.tls_error is not None
            assert "certificate" in response.tls_error
            failure = await get_failure(fetcher, Request(url, HOME, robots=True))
            assert failure.kind is FailureKind.TLS
            again = await get_page(fetcher, Request(url, HOME))
            assert again.tls_error == response.tls_error

    run(scene())


def test_a_bad_certificate_costs_one_failed_handshake_not_one_a_page(tmp_path: Path) -> None:
    async def scene() -> None:
        context, _ = certificate(tmp_path, "site.test")
        sockets: list[str] = []

        def guard(ip: str, _: int) -> None:
            sockets.append(ip)

        async with RawServer().listening(tls=context) as server, fetching(guard=guard) as fetcher:
            for n in range(4):
                response = await get_page(fetcher, Request(at(server, f"/{n}", scheme="https"), HOME))
                assert response.tls_error
            assert len(sockets) == 2

    run(scene())


def test_what_is_known_of_certificates_is_forgotten_in_time() -> None:
    known = KnownBad(Seconds(10), capacity=2)
    known.note("a.test", "expired", 100.0)
    assert known.reason("a.test", 109.0) == "expired"
    assert known.reason("a.test", 110.0) is None
    assert known.reason("b.test", 100.0) is None
    for site in ("b.test", "c.test", "d.test"):
        known.note(site, "expired", 100.0)
    assert known.reason("d.test", 100.0) == "expired"
    assert known.reason("b.test", 100.0) is None


def test_running_out_of_descriptors_is_a_failure_not_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: int) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    async def scene() -> None:
        async with RawServer().listening() as server, fetching() as fetcher:
            with monkeypatch.context() as patch:
                patch.setattr("harvestman.fetch.transfer.socket.socket", none_left)
                failure = await get_failure(fetcher, Request(at(server), HOME))
            assert (failure.kind, failure.detail) == (FailureKind.CONNECT, "no socket: Too many open files")
            assert (await get_page(fetcher, Request(at(server), HOME))).status == 200

    run(scene())


def test_a_good_certificate_is_verified_and_a_wrong_name_is_told(tmp_path: Path) -> None:
    async def scene() -> None:
        context, trusted = certificate(tmp_path, "site.test")
        async with RawServer().listening(tls=context) as server, fetching(ca_file=trusted) as fetcher:
            good = await get_page(fetcher, Request(at(server, scheme="https"), HOME))
            assert (good.status, good.tls_error) == (200, None)
            assert (await get_page(fetcher, Request(at(server, scheme="https"), HOME, robots=True))).status == 200
            assert server.connections == 1
            wrong = await get_page(fetcher, Request(at(server, host="wrong.test", scheme="https"), HOME))
            assert wrong.tls_error is not None
            assert "wrong.test" in wrong.tls_error

    run(scene())


def test_plain_http_on_a_tls_port_is_a_tls_failure() -> None:
    async def answer_at_once(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 This is no TLS port\r\n\r\n")
        writer.close()

    async def scene() -> Failure:
        server = await asyncio.start_server(answer_at_once, HOME, 0)
        async with server, fetching() as fetcher:
            port = server.sockets[0].getsockname()[1]
            return await get_failure(fetcher, Request(f"https://site.test:{port}/", HOME))

    assert run(scene()).kind is FailureKind.TLS


def test_every_libcurl_error_has_a_meaning() -> None:
    """Fails when a new pycurl brings an error we have not thought about."""
    names = {name for name in dir(pycurl) if name.startswith("E_")}
    mapped = {name for name in names if getattr(pycurl, name) in faults.KINDS and not name.startswith("E_MULTI_")}
    families = {name for name in names if name.startswith(faults.IMPOSSIBLE_FAMILIES)}
    assert names - mapped - faults.IMPOSSIBLE - families == set()
    assert not mapped & faults.IMPOSSIBLE
    assert faults.kind_of(12345, head_complete=False) is FailureKind.PROTOCOL
    assert faults.kind_of(pycurl.E_RECV_ERROR, head_complete=True) is FailureKind.TRUNCATED


def test_the_leaking_libcurl_is_refused() -> None:
    with pytest.raises(UsageError, match="upgrade"):
        refuse_bad_libcurl("8.21.0")
    refuse_bad_libcurl("8.23.0")


@for_each(
    ("value", "kind", "wanted"),
    [
        ("text/html; charset=utf-8", "text/html", True),
        ("TEXT/PLAIN", "text/plain", True),
        ("", "", True),
        ("garbage", "", True),
        ("text/html, image/png", "image/png", False),
        ("text/html, nonsense", "text/html", True),
        ("application/vnd.api+json", "application/vnd.api+json", True),
        ("image/svg+xml", "image/svg+xml", False),
        ("application/zip", "application/zip", False),
        ("font/woff2", "font/woff2", False),
        ("application/pdf", "application/pdf", True),
        ("application/octet-stream", "application/octet-stream", True),
    ],
)
def test_media_types(value: str, kind: str, wanted: bool) -> None:
    assert media.essence(value) == kind
    assert heads.wanted(kind) is wanted


@for_each(
    ("url", "parts"),
    [
        ("http://a.test/", ("a.test", "/")),
        ("http://A.test:80/x?y#z", ("a.test", "/x?y")),
        ("https://a.test:443", ("a.test", "/")),
        ("https://a.test:80?q", ("a.test:80", "/?q")),
        ("http://[::1]:8080/p?a=/b", ("[::1]:8080", "/p?a=/b")),
        ("http://[::80]/", ("[::80]", "/")),
    ],
)
def test_urls_are_split_as_requests_spell_them(url: str, parts: tuple[str, str]) -> None:
    assert heads.split_url(url) == parts


def test_header_oddities() -> None:
    lines = [b"HTTP/1.1 200 OK\r\n", b"A: 1\r\n", b" folded\r\n", b"no colon\r\n", b"B : \xe9 \r\n", b"\r\n"]
    assert heads.parse_headers(lines) == {"a": "1 folded", "b": "é"}
    assert heads.declared_length({"content-length": "7, 7"}) == 7
    assert heads.declared_length({"content-length": "7", "transfer-encoding": "chunked"}) == 0
    assert heads.declared_length({"content-length": "²"}) == 0
    assert heads.status_of(b"HTTP/2 204 \r\n") == 204
    assert heads.status_of(b"junk") == 0


@given(st.lists(st.binary(min_size=1, max_size=40)))
def test_no_header_line_is_too_odd(lines: list[bytes]) -> None:
    assert all(name == name.lower() for name in heads.parse_headers([b"HTTP/1.1 200 OK\r\n", *lines]))
    assert heads.status_of(lines[0] if lines else b"") >= 0


@given(st.text(max_size=60))
def test_no_validator_writes_a_line_of_its_own(value: str) -> None:
    assert all("\n" not in line and "\r" not in line for line in heads.conditions(value, value))


def test_a_request_goes_out_once_even_when_the_connection_breaks() -> None:
    """libcurl would repeat it at once on a new connection: a second request within the delay."""

    async def scene() -> None:
        server = RawServer({"/keeps": page(), "/breaks": sends()})
        async with server.listening(), fetching() as fetcher:
            base = f"http://site.test:{server.port}"
            await get_page(fetcher, Request(f"{base}/keeps", "127.0.0.1"))
            failure = await get_failure(fetcher, Request(f"{base}/breaks", "127.0.0.1"))
            assert failure.detail == "the connection broke before an answer"
            await asyncio.sleep(0.1)
            assert [head.split()[1] for head in server.heads] == [b"/keeps", b"/breaks"]
            await get_page(fetcher, Request(f"{base}/keeps", "127.0.0.1"))

    run(scene())
