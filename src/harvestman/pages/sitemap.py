"""Sitemaps and feeds: what a site says of its own pages, and when it says they changed.

A body becomes a `Listing` or nothing; never an exception, never more than `MAX_LINKS` links or `MAX_BYTES` read.
Whether a sitemap may speak for a URL of another site is not decided here: that depends on how the file was found (a
robots.txt may name one elsewhere), which only the caller knows.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from email.utils import mktime_tz, parsedate_tz
from itertools import chain
from typing import Final, Literal, cast

import msgspec
from isal import igzip_lib

from harvestman.model import LISTING, Instant, Link, Origin
from harvestman.policy.urls import Base

from .charset import canonical, header_charset
from .feed import Entry, Reader, is_root, root_of

MAX_LINKS: Final = 50_000
"""What the sitemap protocol allows a file."""
MAX_BYTES: Final = 52_428_800
"""Likewise, unpacked."""
MAX_SOURCES: Final = 1_000
"""Sitemaps a robots.txt may name."""
HEAD: Final = 4_096
"""Bytes of a body that `looks_like` needs."""
_PIECE: Final = 1 << 16
_MAX_LEGACY: Final = 10_000_000
"""Bytes read in a charset that has no incremental decoder."""
_LONGEST_LINE: Final = 8_192
_MAX_LINES: Final = 4 * MAX_LINKS
"""Lines read of a text, URLs or not."""
_BLANKS = "\ufeff \t\r\n"
_GZIP = b"\x1f\x8b"
_TRAILER: Final = 8
"""Checksum and size behind a gzip stream."""
_FAULTS: Final = (cast(type[Exception], igzip_lib.error), EOFError, ValueError)
_MARKS: Final = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xfe\xff", "utf-16"),
    (b"\xff\xfe", "utf-16"),
    (b"\0<", "utf-16-be"),
    (b"<\0", "utf-16-le"),
)
_DECLARED = re.compile(rb"""\s*<\?xml\s[^<>]{0,200}?encoding\s*=\s*["']\s*([\w.:+-]{1,40})""")
_OTHERS: Final = ("image/", "audio/", "video/", "font/", "application/pdf", "application/json", "text/css")
"""Types that need no look at the body."""
_PAGE = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html)[\s>]", re.IGNORECASE)
"""How most bodies begin: the look at the rest would take ten times as long."""
_WEB = re.compile(r"https?://[^/]", re.IGNORECASE)
_SLOPPY = re.compile(
    r"""(\d{4}) (?!\d) (?: [-/.](\d{1,2}) (?: [-/.](\d{1,2}) )? )?
    (?: [T\s]+ (\d{1,2}) : (\d{2}) (?: : (\d{2}) (?: [.,]\d+ )? )? )?
    \s* (?: ([+-]) (\d{2}) :? (\d{2})? )?""",
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)

Kind = Literal["urlset", "index", "rss", "atom", "text"]
_LINK_KINDS: Final = {"urlset": "sitemap", "text": "sitemap", "index": LISTING, "rss": "feed", "atom": "feed"}


class Listing(msgspec.Struct, frozen=True):
    """What a sitemap or feed lists, each URL once."""

    kind: Kind
    links: list[Link]
    """Of kind `sitemap` or `feed`; LISTING for those an index names, which are sitemaps themselves."""


def read(body: bytes, url: str, content_type: str) -> Listing | None:
    """Read a content-decoded body that was fetched from `url`; None when it is no sitemap and no feed."""
    pieces = texts(_pieces(body), content_type)
    head = next(pieces, "")
    root = root_of(head)
    kind, start = root or ("text", 0)
    links = _Links(url, _LINK_KINDS[kind])
    pieces = chain((head[start:],), pieces)
    if root is not None:
        _read_xml(pieces, kind, links)
    elif links.names(head.lstrip(_BLANKS)[:_LONGEST_LINE].partition("\n")[0].strip(_BLANKS)):
        _read_lines(pieces, links)
    else:
        return None
    return Listing(cast(Kind, kind), links.links())


def looks_like(body_head: bytes, content_type: str) -> bool:
    """Whether a body that begins like this is a sitemap or feed in XML, gzipped or not, whatever its type says.

    A list in plain text is only known by where it was found.
    """
    if _PAGE.match(body_head) or content_type.strip().lower().startswith(_OTHERS):
        return False
    piece = next(_pieces(body_head[:HEAD]), b"")[:HEAD]
    return b"<" in piece and is_root(next(texts(iter((piece,)), content_type), ""))


def sources(origin: Origin, named: Sequence[str]) -> list[str]:
    """Where an origin's sitemaps are: those its robots.txt names, as written there, else the well-known place."""
    base = Base(f"{origin}/robots.txt")
    urls = (base.resolve(text) for text in named[:MAX_SOURCES] or ("/sitemap.xml",))
    return list(dict.fromkeys(url for url in urls if url is not None))


class _Links:
    """The links of one listing, each URL once: with its last date, an alternate only if it is nothing else."""

    def __init__(self, url: str, kind: str) -> None:
        self._base = Base(url)
        self._host = url.split("/", 3)[2].lower() + "/"
        self._kind = kind
        self._alternates: dict[str, str | None] = {}
        self._by_url: dict[str, Link] = {}

    def full(self) -> bool:
        return len(self._by_url) >= MAX_LINKS

    def links(self) -> list[Link]:
        return list(self._by_url.values())[:MAX_LINKS]

    def add(self, entries: Iterable[Entry]) -> None:
        by_url, kind, resolve = self._by_url, self._kind, self._base.resolve
        for href, dates, alternate, _ in entries:
            if alternate:
                url = self._resolve_again(href)
            elif href.startswith("http") and len(href) < _LONGEST_LINE:
                url = resolve(href)
            else:
                url = self._resolve(href)
            if url is None:
                continue
            modified = _NEVER if not dates else instant(dates[0]) if len(dates) == 1 else max(map(instant, dates))
            first = by_url.get(url)
            if first is None:
                by_url[url] = Link(url, "", "alternate" if alternate else "", kind, modified)
            elif modified > first.modified or (first.rel and not alternate):
                by_url[url] = Link(url, "", first.rel if alternate else "", kind, max(modified, first.modified))

    def _resolve(self, href: str) -> str | None:
        if not href.startswith("http") and self._lacks_scheme(href):
            href = "//" + href
        return self._base.resolve(href) if len(href) <= _LONGEST_LINE else None

    def _resolve_again(self, href: str) -> str | None:
        """Pages in many languages name each other over and over."""
        urls = self._alternates
        return urls[href] if href in urls else urls.setdefault(href, self._resolve(href))

    def _lacks_scheme(self, href: str) -> bool:
        """'example.org/page' in a file of example.org is no path."""
        return href[: len(self._host)].lower() == self._host

    def names(self, line: str) -> bool:
        """Whether a line of text is a URL: no path and no sentence."""
        return (_WEB.match(line) is not None or self._lacks_scheme(line)) and len(line.split()) == 1


def _read_xml(pieces: Iterable[str], kind: str, links: _Links) -> None:
    reader = Reader(kind)
    for piece in pieces:
        reader.feed(piece)
        links.add(reader.found)
        reader.found.clear()
        if reader.full or links.full():
            break
    reader.close()
    links.add(reader.found)


def _read_lines(pieces: Iterable[str], links: _Links) -> None:
    rest, count = "", 0
    for piece in chain(pieces, ("\n",)):
        *lines, rest = (rest[: _LONGEST_LINE + 1] + piece).replace("\r", "\n").split("\n")
        stripped = (line.strip(_BLANKS) for line in lines)
        links.add((line, (), False, 0) for line in stripped if links.names(line))
        count += len(lines)
        if count >= _MAX_LINES or links.full():
            return


# -- dates -----------------------------------------------------------------------------------------------------------

_NEVER: Final = Instant(0.0)


def instant(text: str) -> Instant:
    """The moment a W3C or RFC 822 date means, also a sloppy one; 0 when it means none. Without a zone it is UTC's."""
    try:
        moment = datetime.fromisoformat(text)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        seconds = _other_date(text)
    return Instant(seconds) if seconds > 0 else _NEVER


def _other_date(text: str) -> float:
    try:
        return _sloppy(text) or _mail(text)
    except (ValueError, OverflowError, IndexError, TypeError):  # the last two: what the mail parser may trip over
        return 0.0


def _sloppy(text: str) -> float:
    found = _SLOPPY.match(text)
    if found is None:
        return 0.0
    sign, zone_hours, zone_minutes = found.groups()[6:]
    year, month, day, hour, minute, second = (int(part) if part else 0 for part in found.groups()[:6])
    moment = datetime(year, month or 1, day or 1, hour, minute, second, tzinfo=UTC)
    ahead = int(zone_hours or 0) * 3600 + int(zone_minutes or 0) * 60
    return moment.timestamp() + (ahead if sign == "-" else -ahead)


def _mail(text: str) -> float:
    parts = parsedate_tz(text[:100])
    return float(mktime_tz((*parts[:9], parts[9] or 0))) if parts else 0.0


# -- bytes -----------------------------------------------------------------------------------------------------------


def _pieces(body: bytes) -> Iterator[bytes]:
    """A body, unpacked when it is gzip, piece by piece and no more than may be read of it."""
    if body[:2] == _GZIP:
        yield from _unpacked(body)
    else:
        for start in range(0, min(len(body), MAX_BYTES), _PIECE):
            yield body[start : start + _PIECE]


def _unpacked(body: bytes) -> Iterator[bytes]:
    """What can be had of a gzip file, its members one after the other."""
    room = MAX_BYTES
    while body[:2] == _GZIP:
        stream = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP)
        # The end comes apart, so that a wrong checksum costs nothing.
        ends = [body[-_TRAILER:], body[:-_TRAILER]]
        try:
            while room > 0 and not stream.eof and (ends or not stream.needs_input):
                piece = stream.decompress(ends.pop() if stream.needs_input else b"", min(_PIECE, room))
                room -= len(piece)
                if piece:
                    yield piece
        except _FAULTS:
            return
        body = stream.unused_data + b"".join(reversed(ends)) if stream.eof and room > 0 else b""


def texts(pieces: Iterator[bytes], content_type: str) -> Iterator[str]:
    """The pieces of a file as characters: malformed ones become U+FFFD."""
    head = next(pieces, b"")
    codec = _codec(head[:HEAD], content_type)
    make = codecs.lookup(codec).incrementaldecoder
    if make is None:
        yield _joined(chain((head,), pieces)).decode(codec, "replace")
        return
    decoder = make("replace")
    for piece in chain((head,), pieces):
        yield decoder.decode(piece)
    yield decoder.decode(b"", True)


def _joined(pieces: Iterable[bytes]) -> bytes:
    whole = bytearray()
    for piece in pieces:
        whole += piece
        if len(whole) >= _MAX_LEGACY:
            break
    return bytes(whole)


def _codec(head: bytes, content_type: str) -> str:
    """As the byte order mark says, else the XML declaration, else the header: that one many servers send with all."""
    for mark, codec in _MARKS:
        if head.startswith(mark):
            return codec
    declared = _DECLARED.match(head)
    charset = (canonical(declared[1].decode()) if declared else None) or header_charset(content_type) or "utf-8"
    # What can be read as ASCII up to here is not UTF-16, whatever it says.
    return "utf-8" if charset.startswith("utf-") else f"whatwg-{charset}"
