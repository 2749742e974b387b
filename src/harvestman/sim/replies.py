"""What the simulated web answers to a request: the model, the press, and a little memory for moody hosts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import formatdate, parsedate_to_datetime
from http import HTTPStatus
from typing import NamedTuple
from zlib import crc32

from isal import isal_zlib

from harvestman.sim.charsets import charset_of, encode
from harvestman.sim.fragments import bomb
from harvestman.sim.hosts import Feature, Host, Robots
from harvestman.sim.odd import Kind, Odd
from harvestman.sim.pages import Press
from harvestman.sim.paths import normal
from harvestman.sim.robots_txt import MOVED_TO, PATHS, rules
from harvestman.sim.web import Web

RETRY_AFTER = 3
THROTTLED_AT = frozenset({4, 15})
BURST_AT = frozenset({5, 6, 20})
"""Which page requests of a host are answered 429, or 503: counted, so it heals however often it is asked."""
OVERSIZED = 12_000_000
BOMB_MEGABYTES = 300
_CHUNK = b"<p>" + b"There is no end to this page. " * 2184 + b"</p>\n"
_HTML = "text/html; charset=utf-8"
_BORN = 1_735_689_600
"""The day the unchanging pages were written: 1 January 2025."""
_PAGE_HEAD = (
    b"HTTP/1.1 200 OK\r\nServer: harvestman-sim\r\nDate: %b\r\nContent-Type: text/html; charset=utf-8\r\n"
    b"ETag: W/\"%b\"\r\nLast-Modified: %b\r\nVary: Accept-Encoding\r\n%bContent-Length: %d\r\n\r\n"
)  # fmt: skip
_ZIPPED = b"Content-Encoding: gzip\r\n"


class Ask(NamedTuple):
    """What of a request matters."""

    host: str
    """Lower case, without the port."""
    target: str
    method: str = "GET"
    gzip: bool = False
    etag: str = ""
    since: str = ""
    """If-None-Match and If-Modified-Since."""


@dataclass(slots=True)
class Reply:
    """What to send, and how."""

    status: int
    head: bytes
    parts: tuple[bytes, ...] = ()
    """The body, not joined: the kernel does that as it copies."""
    stream: Iterator[bytes] | None = None
    """More body, made as it is sent."""
    delay: float = 0.0
    silent: bool = False
    """Never answer."""
    note: str = ""

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)


class Replies:
    """The answers of one web; `now` is a Unix time, given with each request."""

    def __init__(self, web: Web, press: Press, started: float) -> None:
        self.web, self._press, self._started = web, press, started
        self._counts: dict[int, int] = {}
        self._until: dict[int, float] = {}
        self._date, self._date_second = b"", 0
        self._birthdays = [formatdate(_BORN + day * 86_400, usegmt=True).encode() for day in range(365)]
        self._bomb = b""

    def reply(self, ask: Ask, now: float) -> Reply:
        if int(now) != self._date_second:
            self._date_second, self._date = int(now), formatdate(int(now), usegmt=True).encode()
        host = self.web.by_name.get(ask.host)
        if host is None:
            return self._plain(421, b"No such host in this web.\n")
        if ask.method not in ("GET", "HEAD"):
            return self._plain(405, b"Only GET and HEAD.\n", {"Allow": "GET, HEAD"})
        reply = self._answer(host, ask, now)
        if ask.method == "HEAD":
            reply.parts, reply.stream = (), None
        return reply

    def _answer(self, host: Host, ask: Ask, now: float) -> Reply:
        if ask.target in PATHS:
            return self._robots(host, ask)
        refusal = self._refusal(host, now) if host.feature in (Feature.THROTTLED, Feature.BURST) else None
        if refusal:
            return refusal
        page = self.web.page(host, ask.target)
        path = ask.target if page is not None else normal(ask.target)
        page = page if page is not None else self.web.page(host, path)
        reply = self._page(host, page, ask, now) if page is not None else self._odd(host, path, ask)
        if host.feature is Feature.SLOW:
            reply.delay = 0.5 + crc32(ask.target.encode("latin-1", "replace")) % 2500 / 1000
        return reply

    # -- robots.txt

    def _robots(self, host: Host, ask: Ask) -> Reply:
        moved = host.robots is Robots.MOVED
        if ask.target == MOVED_TO:
            return self._robots_file(host, ask) if moved else self._missing(404)
        return self._plain(302, b"", {"Location": MOVED_TO}) if moved else self._robots_file(host, ask)

    def _robots_file(self, host: Host, ask: Ask) -> Reply:
        match host.robots:
            case Robots.NONE:
                return self._missing(404)
            case Robots.FORBIDDEN:
                return self._plain(403, b"Forbidden.\n")
            case Robots.BROKEN:
                return self._plain(503, b"Out of order.\n")
            case Robots.SILENT:
                return Reply(0, b"", silent=True)
        return self._body(ask, rules(host.robots), "text/plain; charset=utf-8")

    # -- pages

    def _page(self, host: Host, page: int, ask: Ask, now: float) -> Reply:
        version = self.web.version(host, page, now - self._started) if host.feature is Feature.CHANGING else 0
        etag = f"{host.index:x}-{page:x}-{version:x}"
        if ask.etag or ask.since:
            modified = self._modified(host, page, version)
            if (etag in ask.etag) if ask.etag else _not_after(modified, ask.since):
                return self._bare(304, {"ETag": f'W/"{etag}"', "Last-Modified": modified.decode()})
        if host.feature is Feature.CHARSETS and page % 5:
            return self._foreign(host, page, ask)
        body = self._press.page(host, page, version=version, zipped=ask.gzip)
        modified = self._modified(host, page, version)
        head = _PAGE_HEAD % (self._date, etag.encode(), modified, _ZIPPED if ask.gzip else b"", sum(map(len, body)))
        return Reply(200, head, body)

    def _modified(self, host: Host, page: int, version: int) -> bytes:
        if not version:
            return self._birthdays[(host.index + page) % 365]
        return formatdate(self._started + self.web.changed_at(host, page, version), usegmt=True).encode()

    def _foreign(self, host: Host, page: int, ask: Ask) -> Reply:
        charset = charset_of(page)
        content_type = f"text/html; charset={charset.header}" if charset.header else "text/html"
        return self._body(ask, encode(b"".join(self._press.page(host, page)), charset), content_type)

    # -- everything else

    def _odd(self, host: Host, path: str, ask: Ask) -> Reply:
        odd = self.web.odd(host, path)
        if odd is None:
            return self._missing(404)
        match odd.kind:
            case Kind.REDIRECT:
                to, where = self.web.redirect(host, odd)
                location = self._press.url(to, where).decode() if to is not host or odd.status == 301 else where
                return self._plain(odd.status, b"Moved.\n", {"Location": location})
            case Kind.MISSING:
                return self._missing(odd.status)
            case Kind.BINARY:
                return self._plain(200, bytes(range(256)) * 160, {"Content-Type": odd.content_type})
            case Kind.OVERSIZED:
                return self._oversized(announced=path.endswith("announced"))
            case Kind.BOMB:
                self._bomb = self._bomb or bomb(BOMB_MEGABYTES)
                return self._plain(200, self._bomb, {"Content-Type": _HTML, "Content-Encoding": "gzip"})
            case Kind.DUPLICATE:
                return self._copy(host, odd, ask)
        return self._body(ask, self._odd_body(host, odd), _HTML, _tags(odd))

    def _copy(self, host: Host, odd: Odd, ask: Ask) -> Reply:
        """An ordinary page under another URL: the same bytes, on the wire too."""
        body = b"".join(self._press.page(host, odd.like % self.web.plan.pages, zipped=ask.gzip))
        return self._plain(200, body, {"Content-Type": _HTML, **({"Content-Encoding": "gzip"} if ask.gzip else {})})

    def _odd_body(self, host: Host, odd: Odd) -> bytes:
        if odd.kind is Kind.NEAR:
            return b"".join(self._press.page(host, odd.like % self.web.plan.pages, edition=b"another"))
        return self._press.odd_page(host, odd)

    def _oversized(self, announced: bool) -> Reply:
        count = OVERSIZED // len(_CHUNK)
        if announced:
            head = self._head(200, {"Content-Type": _HTML, "Content-Length": str(count * len(_CHUNK))})
            return Reply(200, head, stream=(_CHUNK for _ in range(count)))
        head = self._head(200, {"Content-Type": _HTML, "Transfer-Encoding": "chunked"})
        chunk = b"%x\r\n%b\r\n" % (len(_CHUNK), _CHUNK)
        return Reply(200, head, stream=(chunk if number < count else b"0\r\n\r\n" for number in range(count + 1)))

    # -- tempers

    def _refusal(self, host: Host, now: float) -> Reply | None:
        """A 429 or 503, when this host is due to give one."""
        if now < self._until.get(host.index, 0.0):
            return self._throttled()
        count = self._counts[host.index] = self._counts.get(host.index, 0) + 1
        if host.feature is Feature.THROTTLED and count in THROTTLED_AT:
            self._until[host.index] = now + RETRY_AFTER
            return self._throttled()
        if host.feature is Feature.BURST and count in BURST_AT:
            return self._plain(503, b"Busy, come again.\n")
        return None

    def _throttled(self) -> Reply:
        reply = self._plain(429, b"Too many requests.\n", {"Retry-After": str(RETRY_AFTER)})
        reply.note = f"retry={RETRY_AFTER}"
        return reply

    # -- heads

    def _head(self, status: int, fields: dict[str, str]) -> bytes:
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        start = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nServer: harvestman-sim\r\n"
        return f"{start}Date: {self._date.decode()}\r\n{lines}\r\n".encode("latin-1")

    def _bare(self, status: int, fields: dict[str, str]) -> Reply:
        return Reply(status, self._head(status, fields))

    def _plain(self, status: int, body: bytes, fields: dict[str, str] | None = None) -> Reply:
        given = {"Content-Type": "text/plain; charset=utf-8", **(fields or {}), "Content-Length": str(len(body))}
        return Reply(status, self._head(status, given), (body,))

    def _missing(self, status: int) -> Reply:
        body = b"<!doctype html>\n<title>Not here</title>\n<h1>Not here</h1>\n<p>There is no such page.</p>\n"
        return self._plain(status, body, {"Content-Type": _HTML})

    def _body(self, ask: Ask, body: bytes, content_type: str, fields: dict[str, str] | None = None) -> Reply:
        given = {"Content-Type": content_type, "Vary": "Accept-Encoding", **(fields or {})}
        if ask.gzip:
            return self._plain(200, isal_zlib.compress(body, 1, 31), {**given, "Content-Encoding": "gzip"})
        return self._plain(200, body, given)


def _tags(odd: Odd) -> dict[str, str]:
    place, _, tag = odd.tag.rpartition(":")
    return {"X-Robots-Tag": tag} if place == "header" else {}


def _not_after(modified: bytes, since: str) -> bool:
    try:
        return parsedate_to_datetime(modified.decode()) <= parsedate_to_datetime(since)
    except ValueError:
        return False
