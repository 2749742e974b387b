"""Reads the few things the simulated web wants to know out of the bytes of a request."""

from __future__ import annotations

from typing import NamedTuple

from harvestman.sim.replies import Ask


class Head(NamedTuple):
    """A request head, parsed."""

    ask: Ask
    agent: bytes
    close: bool
    """The client wants the connection closed after the answer."""


def parse(head: bytes) -> Head | None:
    """A head without its final blank line; None when it is no HTTP request."""
    line, _, fields = head.partition(b"\r\n")
    parts = line.split(b" ")
    if len(parts) != 3 or not parts[2].startswith(b"HTTP/1"):
        return None
    fields = b"\r\n" + fields + b"\r\n"
    low = fields.lower()
    host = _field(low, low, b"\r\nhost:")
    conditional = b"\r\nif-" in low
    ask = Ask(
        host.rpartition(b":")[0].decode("latin-1") if b":" in host else host.decode("latin-1"),
        _path(parts[1]).decode("latin-1"),
        parts[0].decode("latin-1"),
        b"gzip" in _field(low, low, b"\r\naccept-encoding:"),
        _field(fields, low, b"\r\nif-none-match:").decode("latin-1") if conditional else "",
        _field(fields, low, b"\r\nif-modified-since:").decode("latin-1") if conditional else "",
    )
    close = b"close" in _field(low, low, b"\r\nconnection:") or parts[2] == b"HTTP/1.0"
    return Head(ask, _field(fields, low, b"\r\nuser-agent:"), close)


def _field(fields: bytes, low: bytes, name: bytes) -> bytes:
    """The value of a header field, found in the lower-case copy and cut out of `fields`."""
    start = low.find(name)
    if start < 0:
        return b""
    start += len(name)
    return fields[start : fields.find(b"\r\n", start)].strip()


def _path(target: bytes) -> bytes:
    """Origin form, also of a target in absolute form."""
    if target.startswith(b"/"):
        return target
    rest = target.partition(b"://")[2]
    return b"/" + rest.partition(b"/")[2]
