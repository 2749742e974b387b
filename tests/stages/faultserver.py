"""A server of every fault, in a process of its own: descriptors and memory of the tests are then the fetcher's alone.

    python faultserver.py FOLDER    makes its certificates in FOLDER, prints its ports as JSON, serves until stdin ends

What to do is in the path: /hang/37 says nothing after 37 bytes, /reset/37 resets there, /bomb/br is a brotli bomb. The
tables here say what each must end in.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import socket
import ssl
import struct
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import brotli  # type: ignore[import-untyped]  # the package ships no types

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 40\r\n\r\n"
WHOLE = HEAD + b"<p>forty bytes of a page, no more of it."
STATUS_LINE = WHOLE.index(b"\r\n") + 2
_OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
_CHUNKED = _OK + b"Transfer-Encoding: chunked\r\n\r\n"
LONGEST = 60.0
"""No fault goes on for longer than this, whatever the other side does."""
MOST = 64 << 20
"""Nor does an endless one send more."""

_ENDLESS: dict[str, tuple[bytes, bytes]] = {
    "body": (_OK + b"\r\n", b"<p>more" * 8192),
    "tiny-chunks": (_CHUNKED, b"1\r\nx\r\n" * 8192),
    "two-byte-chunks": (_CHUNKED, b"2\r\nxy\r\n" * 8192),
    "chunk-extension": (_CHUNKED + b"5;", b"extension" * 8192),
    "chunk-zeros": (_CHUNKED, b"0" * 65536),
    "trailers": (_CHUNKED + b"2\r\nhi\r\n0\r\n", b"X-Trailer: more\r\n" * 4096),
    "huge-chunk": (_CHUNKED + b"7fffffffffffffff\r\n", b"data" * 16384),
    "interim": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2048),
    "hints": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n" * 1024),
    "headers": (_OK, b"X-More: of the same\r\n" * 4096),
    "short-headers": (_OK, b"a:\r\n" * 16384),
    "header-line": (_OK + b"X-Long: ", b"y" * 65536),
    "folds": (_OK + b"X-Fold: a\r\n", b" fold\r\n" * 8192),
    "status-line": (b"HTTP/1.1 200 ", b"O" * 65536),
    "nothing-http": (b"", b"noise and no end of it " * 4096),
}
"""What comes first, and what comes then for ever."""
ENDLESS_KINDS: dict[str, frozenset[str]] = {
    "body": frozenset({"too_large", "crowded"}),
    "huge-chunk": frozenset({"too_large", "crowded"}),
    "chunk-extension": frozenset({"timeout", "truncated", "protocol"}),
    "chunk-zeros": frozenset({"truncated", "protocol"}),
    **dict.fromkeys(set(_ENDLESS) - {"body", "huge-chunk", "chunk-extension", "chunk-zeros"}, frozenset({"protocol"})),
}

WRONG: dict[str, tuple[bytes, str]] = {
    "short": (_OK + b"Content-Length: 4\r\nConnection: close\r\n\r\nlonger than that", "ok"),
    "long": (_OK + b"Content-Length: 4000\r\n\r\nshorter than that", "truncated"),
    "negative": (_OK + b"Content-Length: -5\r\n\r\nbody", "protocol"),
    "twice": (_OK + b"Content-Length: 4\r\nContent-Length: 9\r\n\r\nbody", "protocol"),
    "beyond-limit": (_OK + b"Content-Length: 10000000001\r\n\r\nbody", "too_large"),
    "overflow": (_OK + b"Content-Length: 99999999999999999999999999\r\n\r\nbody", "ok"),
    "bad-chunk": (_CHUNKED + b"xyz\r\nbody\r\n", "truncated protocol"),
    "negative-chunk": (_CHUNKED + b"-5\r\nbody\r\n", "truncated protocol"),
    "overflowing-chunk": (_CHUNKED + b"fffffffffffffffffffff\r\nbody\r\n", "truncated protocol"),
    "no-last-chunk": (_CHUNKED + b"4\r\nbody\r\n", "truncated"),
    "wrong-chunk-end": (_CHUNKED + b"2\r\nbody\r\n0\r\n\r\n", "truncated protocol"),
    "long-status": (b"HTTP/1.1 " + b"2" * 9000 + b" OK\r\n\r\nbody", "protocol"),
    "no-status": (b"HTTP/1.1 OK\r\n\r\nbody", "protocol"),
    "false-gzip": (
        _OK + b"Content-Encoding: gzip\r\nContent-Length: 9\r\n\r\n\x1f\x8b\x00\x00\x00bad\x00",
        "bad_content",
    ),
    "five-codings": (_OK + b"Content-Encoding: br, br, br, br, br\r\nContent-Length: 2\r\n\r\nxy", "bad_content"),
}
"""Answers that are wrong about themselves, the connection closed after each; and what each may end in."""

GIGABYTE = 1 << 30
BOMBS = ("gzip", "deflate", "raw-deflate", "br", "zstd", "gzip-twice")


def bomb(coding: str) -> Iterator[bytes]:
    """A body that would become ten gigabytes, made as it goes: the head of a stream, then one piece over and over."""
    if coding == "gzip-twice":
        outer = zlib.compressobj(9, zlib.DEFLATED, 31)
        for piece in bomb("gzip"):
            yield outer.compress(piece)
        yield outer.flush()
        return
    first, piece, size = _bomb_parts(coding)
    yield first
    for _ in range(10 * GIGABYTE // size // 64):
        yield piece * 64


def _bomb_parts(coding: str) -> tuple[bytes, bytes, int]:
    """What a stream of zeros begins with, what it repeats, and how many zeros each repeat stands for."""
    size = 1 << 20
    if coding == "zstd":  # a frame of run-length blocks: four bytes for 128 KB
        return b"\x28\xb5\x2f\xfd\x00\x38", b"\x02\x00\x10\x00", 1 << 17
    if coding == "br":
        packer = brotli.Compressor(quality=5)
        first, piece = ((packer.process(bytes(size)) + packer.flush()) for _ in range(2))
        return first, piece, size
    inflatable = zlib.compressobj(9, zlib.DEFLATED, {"gzip": 31, "deflate": 15, "raw-deflate": -15}[coding])
    first, piece = ((inflatable.compress(bytes(size)) + inflatable.flush(zlib.Z_FULL_FLUSH)) for _ in range(2))
    return first, piece, size


class Faults:
    """One connection after another, each as its path asks."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, RuntimeError):
            async with asyncio.timeout(LONGEST):
                head = await reader.readuntil(b"\r\n\r\n")
                verb, _, word = head.split(b" ", 2)[1].decode().strip("/").partition("/")
                await self._act(verb, word, reader, writer)
        writer.close()

    async def _act(self, verb: str, word: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        match verb:
            case "hang":
                writer.write(WHOLE[: int(word)])
                await reader.read()
            case "reset":
                await _sent(writer, WHOLE[: int(word)])
                await asyncio.sleep(0.05)  # so that the bytes are read before the reset is
                reset(writer)
            case "close":
                writer.write(WHOLE[: int(word)])
            case "drip":
                await _drip(writer, int(word))
            case "endless":
                first, piece = _ENDLESS[word]
                await _sent(writer, first)
                for _ in range(MOST // len(piece)):
                    await _sent(writer, piece)
            case "wrong":
                await _sent(writer, WRONG[word][0])
            case "bomb":
                await _sent(writer, _OK + b"Content-Encoding: %b\r\n\r\n" % named(word))
                for piece in bomb(word):
                    await _sent(writer, piece)
            case _:
                writer.write(WHOLE)


def named(coding: str) -> bytes:
    """What the Content-Encoding field says of it."""
    return {"gzip-twice": b"gzip, gzip", "raw-deflate": b"deflate"}.get(coding, coding.encode())


async def _sent(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


async def _drip(writer: asyncio.StreamWriter, start: int) -> None:
    """Slowloris: all up to a place at once, then a byte a second."""
    await _sent(writer, WHOLE[:start])
    for at in range(start, len(WHOLE)):
        await asyncio.sleep(1.0)
        await _sent(writer, WHOLE[at : at + 1])


def reset(writer: asyncio.StreamWriter) -> None:
    """Make the coming close a RST."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


# -- TLS ---------------------------------------------------------------------------------------------------------


def certificate(folder: Path, name: str, days: int) -> ssl.SSLContext:
    """A server's context with a self-signed certificate; one of -1 days has expired."""
    key, request, cert = folder / f"{name}.key", folder / f"{name}.csr", folder / f"{name}.pem"
    make = f"openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout {key} -out {request}"
    asked = [*make.split(), "-subj", f"/CN={name}.test", "-addext", f"subjectAltName=DNS:*.{name}.test"]
    sign = f"openssl x509 -req -in {request} -signkey {key} -days {days} -copy_extensions copy -out {cert}"
    subprocess.run(asked, check=True, capture_output=True)
    subprocess.run(sign.split(), check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context


async def _garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        await reader.read(1)
        await _sent(writer, b"\x16\x03\x03\x40\x00" + b"\xa5" * 3000)
    writer.close()


async def _silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, TimeoutError):
        await asyncio.wait_for(_read_all(reader), LONGEST)
    writer.close()


async def _read_all(reader: asyncio.StreamReader) -> None:
    while await reader.read(65536):
        pass


async def _resets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        await reader.read(1)
        reset(writer)
    writer.close()


Speaker = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def main(folder: Path) -> None:
    faults = Faults()
    trusted = {name: certificate(folder, name, days) for name, days in (("expired", -1), ("good", 2))}
    unknown = certificate(folder, "unknown", 2)
    # A client that trusts these two finds nothing wrong with the one but its date, with the other but its name.
    (folder / "trusted.pem").write_text("".join((folder / f"{name}.pem").read_text() for name in trusted))
    listeners: dict[str, tuple[Speaker, ssl.SSLContext | None]] = {
        "plain": (faults.serve, None),
        "garbage": (_garbage, None),
        "silent": (_silent, None),
        "resets": (_resets, None),
        "expired": (faults.serve, trusted["expired"]),
        "good": (faults.serve, trusted["good"]),
        "unknown": (faults.serve, unknown),
    }
    ports = {}
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)  # clients that go away are the rule
    async with contextlib.AsyncExitStack() as stack:
        for name, (speak, tls) in listeners.items():
            server = await asyncio.start_server(speak, "127.0.0.1", 0, ssl=tls, backlog=4096)
            await stack.enter_async_context(_closing(server))
            ports[name] = server.sockets[0].getsockname()[1]
        print(json.dumps(ports), flush=True)
        await asyncio.to_thread(sys.stdin.read)
        os._exit(0)  # connections that never end are not waited for


@contextlib.asynccontextmanager
async def _closing(server: asyncio.Server) -> AsyncIterator[None]:
    try:
        yield
    finally:
        server.close()


@contextmanager
def faulty(folder: Path) -> Iterator[dict[str, int]]:
    """The ports of a fault server that runs as long as the block does."""
    child = subprocess.Popen(
        [sys.executable, __file__, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        yield json.loads(child.stdout.readline())
    finally:
        child.stdin.close()
        child.stdout.close()
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def room_for_sockets(wanted: int) -> bool:
    """Raise the limit of open files as far as needed; False when the system does not allow so many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < wanted:
        return False
    if 0 <= soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return True


if __name__ == "__main__":
    room_for_sockets(8192)
    with contextlib.suppress(ImportError):
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    asyncio.run(main(Path(sys.argv[1])))
