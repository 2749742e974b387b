"""HTTP heads: what we send, what we read from what comes back, and which content types we want. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harvestman.headers import parse_fields
from harvestman.media import UNTOLD

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,application/pdf;q=0.8,*/*;q=0.5"
ACCEPT_LANGUAGE = "en,*;q=0.5"
ACCEPT_ENCODING = "gzip, deflate, br, zstd"

_LARGE = frozenset({"application/pdf", "application/x-pdf"})
_WANTED = _LARGE | {
    "application/atom+xml",
    "application/feed+json",
    "application/json",
    "application/ld+json",
    "application/rdf+xml",
    "application/rss",
    "application/rss+xml",
    "application/xhtml+xml",
    "application/xml",
}
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def wanted(kind: str, packed: bool = False) -> bool:
    """Whether a page of this media type is worth its body.

    One that says nothing is, up to its first bytes; if it is `packed` (content-encoded) those tell nothing, and only a
    missing type is forgiven.
    """
    return readable(kind) or not kind or (kind in UNTOLD and not packed)


def readable(kind: str) -> bool:
    """Whether it is a type that we keep."""
    return kind.startswith("text/") or kind in _WANTED or (kind.endswith(("+xml", "+json")) and kind[:6] != "image/")


def large(kind: str) -> bool:
    """Whether documents of this type are large by nature and get more time."""
    return kind in _LARGE


def parse_headers(lines: Sequence[bytes]) -> dict[str, str]:
    """The fields of a head (status line first, blank line last), read as the store reads it back."""
    return parse_fields(lines[1:])


def status_of(line: bytes) -> int:
    """The code of a status line; 0 when there is none in it: three digits, as RFC 9110 has it."""
    parts = line.split(None, 2)
    return int(parts[1]) if len(parts) > 1 and len(parts[1]) == 3 and parts[1].isdigit() else 0


def declared_length(headers: dict[str, str]) -> int:
    """The body length the headers promise; 0 when they promise none that counts."""
    if "transfer-encoding" in headers:
        return 0
    value = headers.get("content-length", "").partition(",")[0]
    return int(value) if value.isascii() and value.isdigit() and len(value) < 20 else 0


def fixed_fields() -> tuple[str, ...]:
    """The fields every request carries after Host and User-Agent, in wire order."""
    return f"Accept: {ACCEPT}", f"Accept-Language: {ACCEPT_LANGUAGE}", f"Accept-Encoding: {ACCEPT_ENCODING}"


def conditions(etag: str | None, last_modified: str | None) -> list[str]:
    """The conditional fields of a revisit. A validator that could not stand in a header line is left out."""
    fields = []
    if etag and _sendable(etag):
        fields.append(f"If-None-Match: {etag}")
    if last_modified and _sendable(last_modified):
        fields.append(f"If-Modified-Since: {last_modified}")
    return fields


def _sendable(value: str) -> bool:
    # A control character here would let a server write lines into our next request. A blank end would be
    # trimmed on the way, so the record of the request would differ from the wire.
    return value.isprintable() and value.isascii() and value == value.strip()


def split_url(url: str) -> tuple[str, str]:
    """Authority as the Host field wants it, and the request target, of an absolute http(s) URL."""
    scheme, _, rest = url.partition("://")
    rest = rest.partition("#")[0]
    cut = min((i for i in (rest.find("/"), rest.find("?")) if i >= 0), default=len(rest))
    authority, target = rest[:cut].lower(), rest[cut:]
    if not target.startswith("/"):
        target = "/" + target
    return authority.removesuffix(_DEFAULT_PORTS.get(scheme.lower(), ":")), target


def request_head(url: str, user_agent: str, fields: Iterable[str]) -> bytes:
    """The head of a GET, byte for byte as it goes over an HTTP/1.1 wire (over HTTP/2: its HTTP/1.1 form)."""
    authority, target = split_url(url)
    lines = "\r\n".join((f"GET {target} HTTP/1.1", f"Host: {authority}", f"User-Agent: {user_agent}", *fields))
    return f"{lines}\r\n\r\n".encode("latin-1")
