"""Reads the few things the simulated web wants to know out of the bytes of a request."""

from __future__ import annotations

from typing import NamedTuple

_REMEMBERED = 65_536


class Manners(NamedTuple):
    """What the header fields beside Host say."""

    agent: str = ""
    gzip: bool = False
    close: bool = False
    """The client wants the connection closed after the answer."""
    etag: str = ""
    since: str = ""
    """If-None-Match and If-Modified-Since."""
    conditional: bool = False
    """There is one of them."""


class Ask(NamedTuple):
    """A request: what of it matters."""

    host: str
    """Lower case, without the port."""
    target: str
    method: str = "GET"
    manners: Manners = Manners()


def parse(head: bytes) -> Ask | None:
    """A head without its final blank line; None when it is no HTTP request."""
    line, _, fields = head.partition(b"\r\n")
    parts = line.decode("latin-1").split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1"):
        return None
    method, target, version = parts
    host, manners = _remembered.get(fields) or _remember(fields)
    if version == "HTTP/1.0":
        manners = manners._replace(close=True)
    return Ask(host, target if target[:1] == "/" else _path(target), method, manners)


_remembered: dict[bytes, tuple[str, Manners]] = {}
"""What fields say, because a crawler says the same to a host with every request. An `lru_cache` touches more memory."""


def _remember(fields: bytes) -> tuple[str, Manners]:
    if len(_remembered) >= _REMEMBERED:
        _remembered.clear()
    said = _remembered[fields] = _said(fields)
    return said


def _said(fields: bytes) -> tuple[str, Manners]:
    """The host and the manners."""
    lines = fields.decode("latin-1").split("\r\n")
    etag, since = _field(lines, "if-none-match:"), _field(lines, "if-modified-since:")
    manners = Manners(
        _field(lines, "user-agent:"),
        "gzip" in _field(lines, "accept-encoding:").lower(),
        "close" in _field(lines, "connection:").lower(),
        etag,
        since,
        bool(etag or since),
    )
    return _field(lines, "host:").lower().partition(":")[0], manners


def _field(lines: list[str], name: str) -> str:
    """The value of a header field, by its lower-case name; empty when it is not there."""
    for line in lines:
        if line[: len(name)].lower() == name:
            return line[len(name) :].strip()
    return ""


def _path(target: str) -> str:
    """The origin form of a target in absolute form."""
    return "/" + target.partition("://")[2].partition("/")[2]
