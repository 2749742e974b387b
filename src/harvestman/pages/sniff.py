"""What a body is: a page, plain text, or something we keep but do not read."""

from __future__ import annotations

import re
from typing import Literal

Kind = Literal["html", "text", "other"]

_HTML_TYPES = ("text/html", "application/xhtml+xml")
_UNTOLD_TYPES = ("", "application/octet-stream", "application/unknown", "unknown/unknown", "*/*")
"""Content types that say nothing: the bytes decide."""
_BINARY = (
    b"%PDF-",
    b"\x89PNG",
    b"GIF8",
    b"\xff\xd8\xff",
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"RIFF",
    b"%!PS",
    b"\x00\x00\x01\x00",
)
_MARKUP = re.compile(
    rb"(?:\xef\xbb\xbf)?[\t\n\f\r ]*<(?:!--|(?:!doctype html|html|head|body|script|iframe|h1|div|font|table|a|style"
    rb"|title|b|br|p|meta)[\t\n\f\r />])",
    re.IGNORECASE,
)
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


def kind_of(body: bytes, content_type: str) -> Kind:
    """The kind of a body: as its content type says, unless that says nothing or is plainly wrong."""
    essence = content_type.partition(";")[0].partition(",")[0].strip().lower()
    if essence in _HTML_TYPES:
        return "other" if body.startswith(_BINARY) else "html"
    if essence == "text/plain":
        return "text"
    return _sniffed(body[:512]) if essence in _UNTOLD_TYPES else "other"


def _sniffed(head: bytes) -> Kind:
    if _MARKUP.match(head):
        return "html"
    return "other" if not head or head.startswith(_BINARY) or _CONTROL.search(head) else "text"
