"""What the simulated web answers to a request: the model, the press, and a little memory for moody hosts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import formatdate, parsedate_to_datetime
from functools import cache, lru_cache
from http import HTTPStatus
from zlib import crc32

from isal import isal_zlib

from harvestman.sim import apps, scripts
from harvestman.sim.charsets import charset_of, encode
from harvestman.sim.fragments import bomb
from harvestman.sim.hosts import App, Feature, Host, Robots, Sitemap, Variety
from harvestman.sim.listings import written
from harvestman.sim.odd import LISTINGS, Kind, Odd
from harvestman.sim.pages import Press, feed_link
from harvestman.sim.paths import normal
from harvestman.sim.requests import Ask, Manners
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
_ZIPPED = "Content-Encoding: gzip\r\n"
_PLAIN = Feature.PLAIN
"""By itself: to take a member out of its class costs more than to compare it."""


@dataclass(slots=True)
class Reply:
    """What to send, and how."""

    status: int
    head: bytes
    body: bytes = b""
    stream: Iterator[bytes] | None = None
    """More body, made as it is sent."""
    delay: float = 0.0
    silent: bool = False
    """Never answer."""
    note: str = ""


class Replies:
    """The answers of one web; `now` is a Unix time, given with each request."""

    def __init__(self, web: Web, press: Press, started: float) -> None:
        self.web, self._press, self._started = web, press, started
        self._counts: dict[int, int] = {}
        self._until: dict[int, float] = {}
        self._date, self._date_second = "", 0
        self._page_start = ""
        self._birthdays = [formatdate(_BORN + day * 86_400, usegmt=True) for day in range(365)]
        self._bomb = b""

    def reply(self, ask: Ask, now: float) -> Reply:
        if int(now) != self._date_second:
            self._next_second(int(now))
        host = self.web.by_name.get(ask.host)
        if host is None:
            return self._plain(421, b"No such host in this web.\n")
        if ask.method == "GET":
            return self._answer(host, ask, now)
        if ask.method != "HEAD":
            return self._plain(405, b"Only GET and HEAD.\n", {"Allow": "GET, HEAD"})
        reply = self._answer(host, ask, now)
        reply.body, reply.stream = b"", None
        return reply

    def _next_second(self, now: int) -> None:
        """What is the same for all answers of a second."""
        self._date_second, self._date = now, formatdate(now, usegmt=True)
        self._page_start = f"{_start(200)}Date: {self._date}\r\nContent-Type: text/html; charset=utf-8\r\nETag: "

    def _answer(self, host: Host, ask: Ask, now: float) -> Reply:
        if ask.target in PATHS:
            return self._robots(host, ask)
        reply = None if host.feature is _PLAIN else self._refusal(host, now)
        if reply:
            return reply
        path = ask.target
        page = self.web.page(host, path)
        if page is None:
            path = normal(path)
            page = self.web.page(host, path)
        reply = self._odd(host, path, ask, now) if page is None else self._page(host, page, ask, now)
        if host.feature is not _PLAIN and host.feature is Feature.SLOW:
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
        where = self.web.sitemap(host) if host.sitemap is not Sitemap.KNOWN else None
        named = b"Sitemap: %b\n" % self._press.url(*where).encode() if where else b""
        return self._body(ask, named + rules(host.robots), "text/plain; charset=utf-8")

    # -- pages

    def _page(self, host: Host, page: int, ask: Ask, now: float) -> Reply:
        version, zipped, plain = 0, ask.manners.gzip, host.feature is _PLAIN
        if not plain:
            if host.app:
                return self._shell(host, host.app, page, ask)
            if host.feature is Feature.CHANGING:
                version = self.web.version(host, page, now - self._started)
        etag, modified = f'W/"{host.index}-{page}-{version}"', self._modified(host, page, version)
        if ask.manners.conditional and _known(etag, modified, ask.manners):
            return self._bare(304, {"ETag": etag, "Last-Modified": modified})
        if not plain and host.feature is Feature.CHARSETS and page % 5:
            return self._foreign(host, page, ask)
        body = self._press.page(host, page, version=version, zipped=zipped)
        head = (
            f"{self._page_start}{etag}\r\nLast-Modified: {modified}\r\n"
            f"Vary: Accept-Encoding\r\n{_ZIPPED if zipped else ''}Content-Length: {len(body)}\r\n\r\n"
        )
        return Reply(200, head.encode(), body)

    def _modified(self, host: Host, page: int, version: int) -> str:
        if not version:
            return self._birthdays[(host.index + page) % 365]
        return formatdate(self._started + self.web.changed_at(host, page, version), usegmt=True)

    def _foreign(self, host: Host, page: int, ask: Ask) -> Reply:
        charset = charset_of(page)
        content_type = f"text/html; charset={charset.header}" if charset.header else "text/html"
        return self._body(ask, encode(self._press.page(host, page), charset), content_type)

    # -- everything else

    def _odd(self, host: Host, path: str, ask: Ask, now: float) -> Reply:
        odd = self.web.odd(host, path)
        if odd is None:
            return self._missing(404)
        if odd.kind in LISTINGS and odd.status == 200:
            return self._listing(host, odd, ask, now)
        match odd.kind:
            case Kind.REDIRECT:
                to, where = self.web.redirect(host, odd)
                location = self._press.url(to, where) if to is not host or odd.status == 301 else where
                return self._plain(odd.status, b"Moved.\n", {"Location": location})
            case Kind.MISSING | Kind.LISTING:
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
            case Kind.RESOURCE:
                return self._resource(host, odd, ask)
        if host.app:
            return self._shell(host, host.app, path, ask)
        return self._body(ask, self._odd_body(host, odd), _HTML, _tags(odd))

    def _copy(self, host: Host, odd: Odd, ask: Ask) -> Reply:
        """An ordinary page under another URL: the same bytes, on the wire too."""
        body = self._press.page(host, odd.like % self.web.plan.pages, zipped=ask.manners.gzip)
        return self._plain(
            200, body, {"Content-Type": _HTML, **({"Content-Encoding": "gzip"} if ask.manners.gzip else {})}
        )

    def _odd_body(self, host: Host, odd: Odd) -> bytes:
        if odd.kind is Kind.NEAR:
            return self._press.page(host, odd.like % self.web.plan.pages, edition="another")
        return self._press.odd_page(host, odd)

    # -- scripted hosts

    def _shell(self, host: Host, app: App, page: int | str, ask: Ask) -> Reply:
        sources = [
            self._press.url(where, path) if where is not host else path
            for where, path in self.web.scripts(host)[: apps.tags(app)]
        ]
        body = scripts.shell(app, host.name, host.language, feed_link(host), apps.key(page), sources)
        return self._validated(ask, body, _HTML)

    def _resource(self, host: Host, odd: Odd, ask: Ask) -> Reply:
        """Whose script it is does not matter to a browser; whether another site's may read it does."""
        if odd.target is not None:
            return self._validated(ask, scripts.content(self._unscripted(host, odd.target)), odd.content_type)
        if odd.path in apps.LIBRARY:
            return self._validated(
                ask, scripts.shared(odd.path), odd.content_type, {"Access-Control-Allow-Origin": "*"}
            )
        assert host.app
        config = ""
        if host.app.variety is Variety.CONFIG:
            config = self._press.url(self.web.hosts[host.app.cdn], apps.CONFIG)
        return self._validated(ask, scripts.own(host.app, odd.path, config), odd.content_type)

    def _unscripted(self, host: Host, page: int | str) -> bytes:
        """The page as it would be without scripts."""
        if isinstance(page, int):
            return self._press.page(host, page)
        odd = self.web.odd(host, page)
        assert odd
        return self._press.odd_page(host, odd)

    def _validated(self, ask: Ask, body: bytes, content_type: str, fields: dict[str, str] | None = None) -> Reply:
        """With an ETag, which is all the validation that static files and programs have."""
        etag = f'W/"{crc32(body):08x}"'
        if ask.manners.etag and _known(etag, "", ask.manners):
            return self._bare(304, {"ETag": etag, **(fields or {})})
        return self._body(ask, body, content_type, {"ETag": etag, **(fields or {})})

    # -- sitemaps and feeds

    def _listing(self, host: Host, odd: Odd, ask: Ask, now: float) -> Reply:
        listed = self.web.listed(host, odd)
        dates = [now if listed.lying else self._changed(listed, path, now) for path in odd.links]
        body = written(odd, [self._press.url(listed, path) for path in odd.links], dates)
        if odd.content_type == "application/gzip":
            return self._plain(200, isal_zlib.compress(body, 1, 31), {"Content-Type": odd.content_type})
        return self._body(ask, body, odd.content_type)

    def _changed(self, host: Host, path: str, now: float) -> float:
        """When a page changed last, as its Last-Modified says; those without one never do."""
        page = self.web.page(host, path)
        if page is None:
            return _BORN
        version = self.web.version(host, page, now - self._started)
        if not version:
            return _BORN + (host.index + page) % 365 * 86_400
        return self._started + self.web.changed_at(host, page, version)

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
        if host.feature not in (Feature.THROTTLED, Feature.BURST):
            return None
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
        return f"{_start(status)}Date: {self._date}\r\n{lines}\r\n".encode("latin-1")

    def _bare(self, status: int, fields: dict[str, str]) -> Reply:
        return Reply(status, self._head(status, fields))

    def _plain(self, status: int, body: bytes, fields: dict[str, str] | None = None) -> Reply:
        given = {"Content-Type": "text/plain; charset=utf-8", **(fields or {}), "Content-Length": str(len(body))}
        return Reply(status, self._head(status, given), body)

    def _missing(self, status: int) -> Reply:
        body = b"<!doctype html>\n<title>Not here</title>\n<h1>Not here</h1>\n<p>There is no such page.</p>\n"
        return self._plain(status, body, {"Content-Type": _HTML})

    def _body(self, ask: Ask, body: bytes, content_type: str, fields: dict[str, str] | None = None) -> Reply:
        given = {"Content-Type": content_type, "Vary": "Accept-Encoding", **(fields or {})}
        if ask.manners.gzip:
            return self._plain(200, _zipped(body), {**given, "Content-Encoding": "gzip"})
        return self._plain(200, body, given)


@cache
def _start(status: int) -> str:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nServer: harvestman-sim\r\n"


@lru_cache(maxsize=64)
def _zipped(body: bytes) -> bytes:
    """Remembered, because most are robots.txt, of which there are few, and one of them is huge."""
    return isal_zlib.compress(body, 1, 31)


def _tags(odd: Odd) -> dict[str, str]:
    place, _, tag = odd.tag.rpartition(":")
    return {"X-Robots-Tag": tag} if place == "header" else {}


def _known(etag: str, modified: str, manners: Manners) -> bool:
    """Whether the client has this version already."""
    if manners.etag:
        return etag.removeprefix("W/") in manners.etag
    try:
        return parsedate_to_datetime(modified) <= parsedate_to_datetime(manners.since)
    except ValueError:
        return False
