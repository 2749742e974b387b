"""DNS over HTTPS against real servers on loopback: HTTP/1.1 as asyncio speaks it, HTTP/2 by hand."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import dns.message
import dns.rcode
import pytest
from stages.nameserver import Clock, NameServer, Zone
from stages.rawserver import run

from harvestman.fetch.dns import Resolver
from harvestman.fetch.nameservers import Https
from harvestman.model import Seconds

ZONE: Zone = {(f"h{n}.test", "A"): [(f"h{n}.test", 3600, "A", f"192.0.2.{n}")] for n in range(60)} | {
    ("six.test", "AAAA"): [("six.test", 3600, "AAAA", "2001:db8::6")]
}
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING, END_STREAM, END_HEADERS, ACK = 0, 1, 4, 6, 1, 4, 1


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and dns.test that signed itself, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("the openssl program is needed to make a certificate")
    folder = tmp_path_factory.mktemp("keys")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=dns.test"
    names = ["-addext", "subjectAltName=IP:127.0.0.1,DNS:dns.test", "-keyout", str(key), "-out", str(cert)]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    return cert, key


@dataclass
class DohServer:
    """Speaks HTTP/2 or HTTP/1.1 as the other side prefers; notes what it was asked, and over how many connections."""

    names: NameServer
    status: int = 200
    kind: str = "application/dns-message"
    age: int = 0
    silent: bool = False
    spoil: Callable[[bytes], bytes] = lambda wire: wire
    heads: list[bytes] = field(default_factory=list)
    connections: int = 0
    unanswered: int = 0
    at_once: int = 0
    port: int = 0
    talks: set[asyncio.Task[object]] = field(default_factory=set)

    def reply(self, query: bytes) -> bytes:
        return self.spoil(self.names.answer(query).to_wire(max_size=65_535))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        talk = asyncio.current_task()
        assert talk is not None
        self.talks.add(talk)
        two = writer.get_extra_info("ssl_object").selected_alpn_protocol() == "h2"
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await (self.speak_two(reader, writer) if two else self.speak_one(reader, writer))
        self.talks.discard(talk)
        writer.close()

    async def speak_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            size = int(head.lower().partition(b"content-length:")[2].split()[0])
            body = self.reply(await reader.readexactly(size))
            if not self.silent:
                fields = f"Content-Type: {self.kind}\r\nAge: {self.age}\r\nContent-Length: {len(body)}"
                writer.write(f"HTTP/1.1 {self.status} So\r\n{fields}\r\n\r\n".encode() + body)

    async def speak_two(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Just enough: no window is ever filled, and what HPACK packs into a request is of no interest."""
        assert await reader.readexactly(len(PREFACE)) == PREFACE
        writer.write(frame(SETTINGS, 0, 0))
        waiting: dict[int, bytes] = {}
        while True:
            head = await reader.readexactly(9)
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:9], "big")
            body = await reader.readexactly(int.from_bytes(head[:3], "big"))
            if kind in (SETTINGS, PING) and not flags & ACK:
                writer.write(frame(kind, ACK, 0, body if kind == PING else b""))
            elif kind == HEADERS:
                waiting[stream] = b""
                self.unanswered += 1
                self.at_once = max(self.at_once, self.unanswered)
            elif kind == DATA:
                waiting[stream] += body
                if flags & END_STREAM:
                    asyncio.get_running_loop().call_later(0.05, self.answer_two, writer, stream, waiting.pop(stream))

    def answer_two(self, writer: asyncio.StreamWriter, stream: int, query: bytes) -> None:
        self.unanswered -= 1
        kind = self.kind.encode()
        # HPACK: ":status: 200" is entry 8 of its table, "content-type" entry 31; literals need no table.
        packed = b"\x88\x0f\x10" + bytes([len(kind)]) + kind
        writer.write(frame(HEADERS, END_HEADERS, stream, packed) + frame(DATA, END_STREAM, stream, self.reply(query)))

    @asynccontextmanager
    async def listening(self, keys: tuple[Path, Path], protocols: tuple[str, ...] = ()) -> AsyncIterator[DohServer]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*keys)
        if protocols:
            context.set_alpn_protocols(protocols)
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for talk in self.talks:
                talk.cancel()
            await asyncio.gather(*self.talks, return_exceptions=True)

    def upstream(self, name: str = "127.0.0.1") -> Https:
        return Https(f"https://{name}:{self.port}/dns-query", "127.0.0.1")


def frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


@asynccontextmanager
async def asking(
    server: DohServer, keys: tuple[Path, Path], *, name: str = "127.0.0.1", trusted: bool = True, patience: float = 5.0
) -> AsyncIterator[Resolver]:
    ca_file = str(keys[0]) if trusted else None
    resolver = Resolver(
        upstreams=[server.upstream(name)], now=Clock(), hosts={}, patience=Seconds(patience), tries=1, ca_file=ca_file
    )
    try:
        yield resolver
    finally:
        await resolver.close()


@pytest.mark.parametrize("name", ["127.0.0.1", "dns.test"])
def test_one_post_a_question_over_a_connection_that_is_kept(keys: tuple[Path, Path], name: str) -> None:
    async def play() -> None:
        async with DohServer(NameServer(ZONE)).listening(keys) as server, asking(server, keys, name=name) as resolver:
            assert (await resolver.resolve("h1.test")).addresses == ("192.0.2.1",)
            assert (await resolver.resolve("six.test")).addresses == ("2001:db8::6",)
            assert (await resolver.resolve("nobody.test")).error == "no such name"
            assert server.names.asked[:3] == [("h1.test", "A"), ("six.test", "A"), ("six.test", "AAAA")]
            assert server.connections == 1
            lines = server.heads[0].decode().lower().split("\r\n")
            assert lines[0] == "post /dns-query http/1.1"
            assert {"content-type: application/dns-message", "accept: application/dns-message"} <= set(lines)
            assert f"host: {name}:{server.port}" in lines
            assert not [line for line in lines if line.startswith("user-agent")]

    run(play())


def test_many_questions_at_once_share_one_http2_connection(keys: tuple[Path, Path]) -> None:
    async def play() -> None:
        server = DohServer(NameServer(ZONE))
        async with server.listening(keys, ("h2", "http/1.1")), asking(server, keys) as resolver:
            found = await asyncio.gather(*(resolver.resolve(f"h{n}.test") for n in range(60)))
            assert [one.addresses for one in found] == [(f"192.0.2.{n}",) for n in range(60)]
            assert (server.connections, server.heads) == (1, [])
            assert server.at_once > 10

    run(play())


def test_a_server_without_http2_is_not_flooded_with_connections(keys: tuple[Path, Path]) -> None:
    async def play() -> None:
        async with DohServer(NameServer(ZONE)).listening(keys) as server, asking(server, keys) as resolver:
            found = await asyncio.gather(*(resolver.resolve(f"h{n}.test") for n in range(60)))
            assert [one.addresses for one in found] == [(f"192.0.2.{n}",) for n in range(60)]
            assert server.connections <= 8

    run(play())


@pytest.mark.parametrize(("name", "trusted"), [("127.0.0.1", False), ("other.test", True)])
def test_a_certificate_that_does_not_hold_is_no_answer(keys: tuple[Path, Path], name: str, trusted: bool) -> None:
    async def play() -> None:
        server = DohServer(NameServer(ZONE))
        async with server.listening(keys), asking(server, keys, name=name, trusted=trusted) as resolver:
            found = await resolver.resolve("h1.test")
            assert found.addresses == ()
            assert "unreachable" in (found.error or "")
            assert "certificate" in (found.error or "").lower() or "ssl" in (found.error or "").lower()
            assert server.names.asked == []

    run(play())


def wrong_name(wire: bytes) -> bytes:
    return wire.replace(b"\x02h1\x04test", b"\x02h2\x04test")


def wrong_id(wire: bytes) -> bytes:
    return b"\x00\x07" + wire[2:]


@pytest.mark.parametrize(
    "server",
    [
        DohServer(NameServer(ZONE), status=500),
        DohServer(NameServer(ZONE), status=302),
        DohServer(NameServer(ZONE), kind="text/html"),
        DohServer(NameServer(ZONE), spoil=wrong_name),
        DohServer(NameServer(ZONE), spoil=wrong_id),
        DohServer(NameServer(ZONE), spoil=lambda wire: wire[:20]),
        DohServer(NameServer(ZONE), spoil=lambda wire: b""),
        DohServer(NameServer(ZONE), spoil=lambda wire: wire + bytes(70_000)),
    ],
    ids=["500", "302", "html", "wrong name", "wrong id", "cut", "empty", "too long"],
)
def test_what_is_not_the_answer_is_none(keys: tuple[Path, Path], server: DohServer) -> None:
    async def play() -> None:
        async with server.listening(keys), asking(server, keys) as resolver:
            found = await resolver.resolve("h1.test")
            assert found.addresses == ()
            assert "unreachable" in (found.error or "")

    run(play())


def test_a_servers_failure_is_no_denial(keys: tuple[Path, Path]) -> None:
    async def play() -> None:
        server = DohServer(NameServer(ZONE, rcode=dns.rcode.SERVFAIL))
        async with server.listening(keys), asking(server, keys) as resolver:
            assert (await resolver.resolve("h1.test")).error == "servfail"

    run(play())


def test_the_time_in_a_cache_on_the_way_counts(keys: tuple[Path, Path]) -> None:
    async def play() -> None:
        server = DohServer(NameServer(ZONE), age=600)
        async with server.listening(keys), asking(server, keys) as resolver:
            assert (await resolver.resolve("h1.test")).expires == Clock().time + 3000

    run(play())


def test_a_silent_server_is_passed_over_and_the_loop_goes_on_meanwhile(keys: tuple[Path, Path]) -> None:
    async def play() -> None:
        silent, plain = DohServer(NameServer(ZONE), silent=True), NameServer(ZONE)
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        async with silent.listening(keys), plain.listening():
            resolver = Resolver(
                upstreams=[silent.upstream(), plain.upstream], now=Clock(), hosts={}, patience=Seconds(0.4),
                ca_file=str(keys[0]),
            )  # fmt: skip
            ticking = asyncio.create_task(tick())
            assert (await resolver.resolve("h1.test")).addresses == ("192.0.2.1",)
            assert ticks > 5
            assert (await resolver.resolve("h2.test")).addresses == ("192.0.2.2",)
            assert silent.names.asked == [("h1.test", "A")]
            ticking.cancel()
            await resolver.close()

    run(play())


def test_closing_ends_what_is_being_asked(keys: tuple[Path, Path]) -> None:
    async def play() -> None:
        server = DohServer(NameServer(ZONE), silent=True)
        async with server.listening(keys), asking(server, keys, patience=60) as resolver:
            waiting = asyncio.create_task(resolver.resolve("h1.test"))
            await asyncio.sleep(0.1)
            await resolver.close()
            assert (await asyncio.wait_for(waiting, 1)).addresses == ()

    run(play())
