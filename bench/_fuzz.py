"""Hostile HTTP answers, made from well-formed ones by chance: one seed and number always give the same case. Pure."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Literal, TypeAlias

import brotli  # type: ignore[import-untyped]  # the package ships no types
import msgspec
import zstandard

End: TypeAlias = Literal["keep", "close", "reset", "stall"]


class Case(msgspec.Struct, frozen=True):
    """One answer as it goes over the wire: the parts, a pause before each but the first, and how it ends."""

    number: int
    seed: int
    made: tuple[str, ...]
    """What was done to it, in order."""
    parts: tuple[bytes, ...]
    pause: float
    end: End


HTML = (
    b"<!doctype html><html lang=en><head><meta charset=utf-8><title>A page</title><meta name=robots content=index>"
    b"<base href=/dir/><link rel=canonical href=/here></head><body><h1>News of the day</h1>"
    b"<p>The government presented a new bill on Wednesday, and few had read it. <a href=/next rel=nofollow>More</a>"
    b"<a href='//other.test/x?y=1&amp;z=2'>other</a> <a href=page.html>page</a><area href=#top><iframe src=/f></iframe>"
) + b"".join(b"<p>Paragraph %d of the story goes on and on, <a href=/story/%d>as told</a>." % (n, n) for n in range(40))
RSS = (
    b"<?xml version='1.0'?><rss version='2.0'><channel><item><link>/a</link>"
    b"<pubDate>Mon, 16 Nov 2026 01:00:00 GMT</pubDate></item></channel></rss>"
)
SITEMAP = (
    b"<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>"
    b"<url><loc>http://h1.test/a</loc><lastmod>2026-11-15</lastmod></url></urlset>"
)
LEGACY = "<meta charset=%s><title>Новости</title><p>Правительство представило законопроект <a href=/дальше>дальше</a>"

_STATUSES = (b"200 OK", b"200", b"206 Partial", b"301 Moved", b"304 Not Modified", b"404 Not Found", b"429 Slow",
             b"503 Busy", b"103 Early", b"101 Switching", b"999 What", b"000 Zero", b"-1 Minus")  # fmt: skip
_LENGTHS = (b"0", b"-1", b"1", b"+5", b"5, 5", b"5, 6", b"0x10", b"99999999999999999999999", b"9223372036854775807",
            b"1e3", b"", b"10000001", b"\x00")  # fmt: skip
_CODINGS = (b"gzip", b"x-gzip", b"deflate", b"br", b"zstd", b"gzip, gzip", b"br, zstd, gzip", b"identity", b"compress",
            b"gzip, " * 9 + b"gzip", b"\xff\xfe", b"")  # fmt: skip
_KINDS = (b"text/html", b"text/html; charset=utf-16", b"text/html; charset=iso-2022-jp", b"text/plain; charset=gb18030",
          b"text/html; charset=\xff", b"application/xhtml+xml", b"application/rss+xml", b"application/xml",
          b"application/pdf", b"application/json", b"image/png", b"", b"text/html;" + b"x=y;" * 500,
          b"text/html; charset=replacement", b"text/html; charset=x-user-defined")  # fmt: skip
_FIELDS = (
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: identity",
    b"Transfer-Encoding : chunked",
    b"Connection: close",
    b"Connection: keep-alive",
    b"Location: //[::1",
    b"Location: \xff\xfe",
    b"Location: javascript:alert(1)",
    b"Location: /" + b"a" * 4000,
    b"Retry-After: 99999999999999999999",
    b"Retry-After: Mon, 99 Foo 99999 99:99:99 GMT",
    b"Retry-After: -5",
    b"X-Robots-Tag: nofollow, " + b"none," * 300,
    b'ETag: "\x00"',
    b"Last-Modified: never",
    b" folded",
    b"\tfolded",
    b": empty",
    b"no colon",
    b"Set-Cookie: " + b"a" * 9000,
    b"Content-Encoding: gzip",
    b"Upgrade: h2c",
    b'Alt-Svc: h3=":1"',
    b"Trailer: X",
    b"A" * 70_000 + b": 1",
    b"Refresh: 0; url=/loop",
    b"Link: </a>; rel=canonical",
    b"Content-Range: bytes 0-1/2",
)


def answer(body: bytes, kind: bytes = b"text/html", *fields: bytes, status: bytes = b"200 OK") -> bytes:
    """A well-formed answer."""
    lines = (b"HTTP/1.1 " + status, b"Content-Type: " + kind, *fields, b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def chunked(body: bytes, size: int) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def coded(body: bytes, coding: str) -> bytes:
    """The body in a content coding."""
    match coding:
        case "gzip":
            return gzip.compress(body, 6, mtime=0)
        case "deflate":
            return zlib.compress(body)
        case "raw deflate":
            return zlib.compress(body)[2:-4]
        case "br":
            return bytes(brotli.compress(body, quality=4))
        case _:
            return zstandard.compress(body)


def well_formed() -> list[bytes]:
    """One answer of every kind a crawl meets."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
    encoded = [
        answer(coded(HTML, coding), b"text/html", b"Content-Encoding: " + coding.split()[-1].encode())
        for coding in ("gzip", "deflate", "raw deflate", "br", "zstd")
    ]
    legacy = [
        answer((LEGACY % name).encode(name, "replace")) for name in ("koi8-r", "windows-1251", "utf-16", "gb18030")
    ]
    return [
        answer(HTML),
        *encoded,
        *legacy,
        answer(coded(coded(HTML, "br"), "gzip"), b"text/html", b"Content-Encoding: br, gzip"),
        head + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(HTML, 100),
        head + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(coded(HTML, "gzip"), 64),
        head.replace(b"/1.1", b"/1.0") + b"\r\n" + HTML,
        b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + answer(HTML),
        answer(b"", b"text/html", b"Location: /elsewhere", status=b"302 Found"),
        answer(b"not here", status=b"404 Not Found"),
        b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n",
        answer(b"", status=b"429 Slow", kind=b"text/html; x"),
        answer(RSS, b"application/rss+xml"),
        answer(SITEMAP, b"application/xml"),
        answer(b"%PDF-1.7 " + b"\0\1\2" * 300, b"application/pdf"),
        answer(b"plain words, one after another", b"text/plain"),
        answer(b"\x89PNG\r\n\x1a\n", b"image/png"),
    ]  # fmt: skip


def corpus(suites: Path) -> list[bytes]:
    """What is mutated: our own answers, and the raw files of the HTTP suite when it is there."""
    files = sorted((suites / "http" / "raw").glob("*.bin"))
    return well_formed() + [raw for raw in map(Path.read_bytes, files) if 0 < len(raw) <= 200_000]


class Cook:
    """Makes case after case from a seed."""

    def __init__(self, seed: int, material: Sequence[bytes]) -> None:
        self.seed = seed
        self._material = material
        self._bombs = bombs()

    def case(self, number: int) -> Case:
        rng = Random(f"{self.seed}/{number}")
        raw = rng.choice(self._material)
        made = [rng.choice(list(_MUTATIONS)) for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3, 5)))]
        for name in made:
            raw = _MUTATIONS[name](raw, rng, self)
        end: End = rng.choices(("keep", "close", "reset", "stall"), (25, 65, 8, 2))[0]
        parts, pause = _delivery(raw, rng) if end != "keep" else ([raw], 0.0)
        return Case(number, self.seed, tuple(made), tuple(parts), pause, end)

    def other(self, rng: Random) -> bytes:
        return rng.choice(self._material)

    def bomb(self, rng: Random) -> bytes:
        return rng.choice(self._bombs)


def _delivery(raw: bytes, rng: Random) -> tuple[list[bytes], float]:
    """Most come at once, some in pieces, a few drip."""
    style = rng.random()
    if style < 0.75 or len(raw) < 2:
        return [raw], 0.0
    places = sorted(rng.sample(range(1, len(raw)), min(len(raw) - 1, rng.randint(1, 12))))
    parts = [raw[a:b] for a, b in zip([0, *places], [*places, len(raw)], strict=True)]
    return parts, 0.3 if style > 0.98 else rng.choice((0.0, 0.001, 0.01))


def bombs() -> list[bytes]:
    """Small bodies that would become large ones, complete with the field that says how."""
    zeros = bytes(30_000_000)
    text = b"<a href=/x>" * 3_000_000
    packed = [(name, coded(zeros, name)) for name in ("gzip", "deflate", "br", "zstd")]
    packed += [(name, coded(text, name)) for name in ("gzip", "zstd")]
    packed += [("gzip, gzip", coded(coded(zeros, "gzip"), "gzip")), ("gzip", coded(b"", "gzip") * 20_000)]
    packed += [("gzip", coded(b"x", "gzip") * 5_000), ("zstd", coded(b"x", "zstd") * 20_000)]
    return [answer(body, b"text/html", b"Content-Encoding: " + name.encode()) for name, body in packed]


# -- what is done to an answer -----------------------------------------------------------------------------------


def _flip(raw: bytes, rng: Random, cook: Cook) -> bytes:
    changed = bytearray(raw)
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        if changed:
            changed[rng.randrange(len(changed))] = rng.choice((0, 10, 13, 32, 58, 255, rng.randrange(256)))
    return bytes(changed)


def _cut(raw: bytes, rng: Random, cook: Cook) -> bytes:
    return raw[: rng.randrange(len(raw) + 1)]


def _splice(raw: bytes, rng: Random, cook: Cook) -> bytes:
    other = cook.other(rng)
    start = rng.randrange(len(other) + 1)
    at = rng.randrange(len(raw) + 1)
    return raw[:at] + other[start : start + rng.randrange(2000)] + raw[at + rng.choice((0, rng.randrange(500))) :]


def _repeat(raw: bytes, rng: Random, cook: Cook) -> bytes:
    at = rng.randrange(len(raw) + 1)
    piece = raw[at : at + rng.choice((1, 7, 60, 500))]
    return raw[:at] + piece * min(rng.choice((2, 50, 5_000, 100_000)), 400_000 // (len(piece) or 1)) + raw[at:]


def _parted(raw: bytes) -> tuple[list[bytes], bytes]:
    head, _, body = raw.partition(b"\r\n\r\n")
    return head.split(b"\r\n"), body


def _whole(lines: Sequence[bytes], body: bytes) -> bytes:
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def _double_line(raw: bytes, rng: Random, cook: Cook) -> bytes:
    lines, body = _parted(raw)
    line = rng.choice(lines)
    lines[rng.randrange(len(lines)) : 0] = [line] * rng.choice((1, 2, 500))
    return _whole(lines, body)


def _drop_line(raw: bytes, rng: Random, cook: Cook) -> bytes:
    lines, body = _parted(raw)
    del lines[rng.randrange(len(lines))]
    return _whole(lines, body)


def _add_field(raw: bytes, rng: Random, cook: Cook) -> bytes:
    lines, body = _parted(raw)
    lines.insert(rng.randrange(len(lines)) + 1, rng.choice(_FIELDS))
    return _whole(lines, body)


def _odd_value(name: bytes, values: Sequence[bytes]) -> _Mutation:
    def change(raw: bytes, rng: Random, cook: Cook) -> bytes:
        lines, body = _parted(raw)
        kept = [line for line in lines if not line.lower().startswith(name.lower())]
        return _whole([*kept, name + b": " + rng.choice(values)], body)

    return change


def _status(raw: bytes, rng: Random, cook: Cook) -> bytes:
    lines, body = _parted(raw)
    lines[0] = rng.choice((b"HTTP/1.1 ", b"HTTP/1.0 ", b"HTTP/2 ", b"HTTP/9.9 ", b"ICY ")) + rng.choice(_STATUSES)
    return _whole(lines, body)


def _interim(raw: bytes, rng: Random, cook: Cook) -> bytes:
    return b"HTTP/1.1 100 Continue\r\nA: b\r\n\r\n" * rng.choice((1, 3, 20_000)) + raw


def _rechunk(raw: bytes, rng: Random, cook: Cook) -> bytes:
    lines, body = _parted(raw)
    kept = [line for line in lines if not line.lower().startswith((b"content-length", b"transfer-encoding"))]
    framed = chunked(body, rng.choice((1, 3, 100, 5_000)))
    old, new = rng.choice(_CHUNK_TRICKS)
    return _whole([*kept, b"Transfer-Encoding: chunked"], framed.replace(old, new, rng.choice((1, 3, -1))))


_CHUNK_TRICKS = (
    (b"", b""),
    (b"0\r\n\r\n", b""),
    (b"0\r\n\r\n", b"0\r\nX: y\r\n" * 3 + b"\r\n"),
    (b"\r\n", b"\n"),
    (b"0\r\n\r\n", b"0\r\n" + b"X-T: " + b"y" * 300_000),
    (b"64\r\n", b"64;ext=" + b"e" * 20_000 + b"\r\n"),
    (b"1\r\n", b"ffffffffffffffff\r\n"),
    (b"1\r\n", b"7fffffffffffffff\r\n"),
    (b"1\r\n", b"-1\r\n"),
    (b"64\r\n", b"0x64\r\n"),
    (b"64\r\n", b"63\r\n"),
    (b"64\r\n", b"000000000000000000000064\r\n"),
    (b"3\r\n", b" 3 \r\n"),
)


def _noise(raw: bytes, rng: Random, cook: Cook) -> bytes:
    lines, _ = _parted(raw)
    return _whole(lines, rng.randbytes(rng.choice((0, 5, 300, 20_000))))


def _bomb(raw: bytes, rng: Random, cook: Cook) -> bytes:
    return cook.bomb(rng)


def _tags(raw: bytes, rng: Random, cook: Cook) -> bytes:
    """Markup that is work: nested, nameless, endless."""
    piece = rng.choice(
        (
            b"<div>",
            b"<a href=/x>",
            b"<p a=b c>",
            b"<table><tr><td>",
            b"<b><i>",
            b"<!--",
            b"<svg>",
            b"&lt;",
            b"<a href='/\xff\x00'>",
            b"<meta charset=utf-7>",
            b"<template>",
            b"</p>",
            b"<base href=x:>",
        )
    )
    return answer(HTML[: rng.randrange(500)] + piece * rng.choice((1, 30, 3_000, 20_000)))


_Mutation: TypeAlias = Callable[[bytes, Random, Cook], bytes]
_MUTATIONS: dict[str, _Mutation] = {
    "flip": _flip,
    "cut": _cut,
    "splice": _splice,
    "repeat": _repeat,
    "double line": _double_line,
    "drop line": _drop_line,
    "add field": _add_field,
    "length": _odd_value(b"Content-Length", _LENGTHS),
    "coding": _odd_value(b"Content-Encoding", _CODINGS),
    "kind": _odd_value(b"Content-Type", _KINDS),
    "status": _status,
    "interim": _interim,
    "rechunk": _rechunk,
    "noise": _noise,
    "bomb": _bomb,
    "tags": _tags,
}
