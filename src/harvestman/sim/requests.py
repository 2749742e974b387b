"""Reads the few things the simulated web wants to know out of the bytes of a request."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from harvestman.sim.replies import Ask


class Head(NamedTuple):
    """A request head, parsed."""

    ask: Ask
    agent: bytes
    close: bool
    """The client wants the connection closed after the answer."""


class Manners(NamedTuple):
    """What the header fields after Host say: nearly always the same for a crawler, so they are remembered."""

    agent: bytes
    gzip: bool
    close: bool
    etag: str
    since: str


def parse(head: bytes) -> Head | None:
    """A head without its final blank line; None when it is no HTTP request."""
    line, _, fields = head.partition(b"\r\n")
    parts = line.split(b" ")
    if len(parts) != 3 or not parts[2].startswith(b"HTTP/1"):
        return None
    first, _, rest = fields.partition(b"\r\n")
    if first[:5].lower() == b"host:":
        host, manners = first[5:], _manners(rest)
    else:
        host, manners = _field(fields.lower(), b"host:"), _manners(fields)
    name = host.strip().lower().partition(b":")[0].decode("latin-1")
    target = parts[1] if parts[1].startswith(b"/") else _path(parts[1])
    ask = Ask(name, target.decode("latin-1"), parts[0].decode("latin-1"), manners.gzip, manners.etag, manners.since)
    return Head(ask, manners.agent, manners.close or parts[2] == b"HTTP/1.0")


@lru_cache(maxsize=4096)
def _manners(fields: bytes) -> Manners:
    low = fields.lower()
    return Manners(
        _field(fields, b"user-agent:"),
        b"gzip" in _field(low, b"accept-encoding:"),
        b"close" in _field(low, b"connection:"),
        _field(fields, b"if-none-match:").decode("latin-1"),
        _field(fields, b"if-modified-since:").decode("latin-1"),
    )


def _field(fields: bytes, name: bytes) -> bytes:
    """The value of a header field, by its lower-case name; b'' when it is not there."""
    for line in fields.split(b"\r\n"):
        if line[: len(name)].lower() == name:
            return line[len(name) :].strip()
    return b""


def _path(target: bytes) -> bytes:
    """The origin form of a target in absolute form."""
    return b"/" + target.partition(b"://")[2].partition(b"/")[2]
