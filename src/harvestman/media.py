"""Media types: what a Content-Type says, and what the first bytes of a body say, by the WHATWG's rules. Pure.

Fetching asks at the first chunk of a body, parsing asks of the whole: both must come to the same answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

HTML = ("text/html", "application/xhtml+xml")
UNTOLD = ("", "application/octet-stream", "application/unknown", "unknown/unknown", "binary/octet-stream", "*/*")
"""Types that say nothing: the bytes decide."""
PDF = "application/pdf"
HEAD = 512
"""Bytes that are looked at."""

_LONGEST = 1024
"""Characters of a Content-Type that are read."""
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TEXT = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_SPACE = "\t\n\r "
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)(?:"|\\?$)', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_VALUE = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.)*(?:"|\\?$))*', re.DOTALL)


@dataclass(slots=True, frozen=True)
class Media:
    """A media type, parsed."""

    essence: str
    parameters: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return "".join((self.essence, *(f";{name}={_written(value)}" for name, value in self.parameters.items())))


def parse(value: str) -> Media | None:
    """One media type; None when it is none."""
    kind, *rest = _split(value.strip(_SPACE))
    essence = kind.rstrip(_SPACE)
    major, slash, minor = essence.partition("/")
    if not slash or not _TOKEN.fullmatch(major) or not _TOKEN.fullmatch(minor):
        return None
    parameters: dict[str, str] = {}
    for part in rest:
        name, equals, text = part.lstrip(_SPACE).partition("=")
        name = name.lower()
        given = _unquoted(text) if equals else None
        if given is not None and _TOKEN.fullmatch(name) and _TEXT.fullmatch(given):
            parameters.setdefault(name, given)
    return Media(essence.lower(), parameters)


def told(content_type: str) -> Media | None:
    """What a Content-Type field says, repeats joined by commas: the last that is one, with the charset of its like."""
    found: Media | None = None
    charset = ""
    for value in _values(content_type[:_LONGEST]):
        media = parse(value)
        if media is None or media.essence == "*/*":
            continue
        if found is None or media.essence != found.essence:
            charset = media.parameters.get("charset", "")
        elif "charset" in media.parameters:
            charset = media.parameters["charset"]
        elif charset:
            media.parameters["charset"] = charset
        found = media
    return found


def essence(content_type: str) -> str:
    """The bare type of a Content-Type field, lower case; '' when it names none."""
    return _essence(content_type if len(content_type) <= _LONGEST else content_type[:_LONGEST])


def kind_of(essence: str) -> str:
    """What people call a type: html, text, pdf, xml, json, image, audio, video, font or other."""
    major, _, minor = essence.partition("/")
    if essence in HTML:
        return "html"
    if major in ("image", "audio", "video", "font"):
        return major
    for kind in ("pdf", "xml", "json"):
        if minor == kind or minor.endswith(f"+{kind}"):
            return kind
    return "text" if major == "text" else "other"


@lru_cache(maxsize=2048)
def _essence(content_type: str) -> str:
    media = told(content_type)
    return media.essence if media else ""


def _values(field: str) -> list[str]:
    """The values of a joined field: commas in quotation marks part nothing."""
    values, at = [], 0
    while at <= len(field):
        match = _VALUE.match(field, at)
        assert match is not None
        values.append(match[0].strip("\t "))
        at = match.end() + 1
    return values


def _split(value: str) -> list[str]:
    """The type and its parameters: semicolons inside a quoted value part nothing."""
    parts, start, at = [], 0, 0
    while at < len(value):
        if value[at] == ";":
            parts.append(value[start:at])
            start = at = at + 1
        elif value[at] == "=" and parts and value[at + 1 : at + 2] == '"' and "=" not in value[start:at]:
            quoted = _QUOTED.match(value, at + 1)
            end = quoted.end() if quoted else len(value)
            # What follows the quotation up to the next semicolon is nobody's.
            after = value.find(";", end)
            parts.append(value[start:end])
            start = at = len(value) + 1 if after < 0 else after + 1
        else:
            at += 1
    if start <= len(value):
        parts.append(value[start:])
    return parts


def _unquoted(text: str) -> str | None:
    """A parameter's value; None when it has none."""
    if not text.startswith('"'):
        return text.rstrip(_SPACE) or None
    quoted = _QUOTED.match(text)
    inner = quoted[1] if quoted else text[1:]
    whole = quoted is not None and quoted[0].endswith('"') and len(quoted[0]) > 1
    if not whole and text.endswith("\\") and not inner.endswith("\\"):
        inner += "\\"
    return _ESCAPE.sub(r"\1", inner)


def _written(value: str) -> str:
    if _TOKEN.fullmatch(value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


# -- the first bytes ---------------------------------------------------------------------------------------------------

_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", PDF),
    (b"%!PS-Adobe-", "application/postscript"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"\x00\x00\x02\x00", "image/x-icon"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"OggS\x00", "application/ogg"),
    (b"MThd\x00\x00\x00\x06", "audio/midi"),
    (b"fLaC\x00", "audio/flac"),
    (b"\x00\x00\x01\xba", "video/mpeg"),
    (b"\x00\x00\x01\xb3", "video/mpeg"),
    (b"FLV\x01", "video/x-flv"),
    (b"\x00\x01\x00\x00", "font/ttf"),
    (b"OTTO\x00", "font/otf"),
    (b"ttcf\x00", "font/collection"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"Rar!\x1a\x07", "application/x-rar-compressed"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"BZh91AY&SY", "application/x-bzip2"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"\x7fELF", "application/x-executable"),
    (b"\xca\xfe\xba\xbe", "application/x-executable"),
    (b"\xcf\xfa\xed\xfe", "application/x-executable"),
    (b"\x00asm", "application/wasm"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
)
_BY_FIRST: dict[int, tuple[tuple[bytes, str], ...]] = {
    first: tuple(pair for pair in _SIGNATURES if pair[0][0] == first) for first in {pair[0][0] for pair in _SIGNATURES}
}
_RIFF = {b"WEBP": "image/webp", b"AVI ": "video/avi", b"WAVE": "audio/wave"}
_WORDLIKE = ((b"MZ", "application/x-msdownload"), (b"BM", "image/bmp"), (b"ID3", "audio/mpeg"))
"""Signatures that a text could begin with: they count only where there are bytes that no text has."""
_BINARY = bytes((*range(0x09), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)))
"""Bytes that no text has."""
_MARKUP = re.compile(
    rb"(?:\xef\xbb\xbf)?[\t\n\f\r ]*<(?:!--|(?:!doctype html|html|head|body|script|iframe|h1|div|font|table|a|style"
    rb"|title|b|br|p|meta)[\t\n\f\r />])",
    re.IGNORECASE,
)
_XML = re.compile(rb"(?:\xef\xbb\xbf)?[\t\n\f\r ]*<\?xml[\t\n\f\r ]")
_ROOT = re.compile(rb"<html[\t\n\f\r >]", re.IGNORECASE)
_BOMS = (b"\xfe\xff", b"\xff\xfe", b"\xef\xbb\xbf")
_OPENS = frozenset(b"<\t\n\r ")
"""What nearly every page begins with, and no binary."""


def signature(head: bytes) -> str:
    """The binary type that these first bytes are the mark of; '' when they are of none."""
    if not head or head[0] in _OPENS:
        return ""
    for mark, kind in _BY_FIRST.get(head[0], ()):
        if head.startswith(mark):
            return kind
    if head[4:8] == b"ftyp":
        return "video/mp4"
    if head.startswith(b"RIFF"):
        return _RIFF.get(head[8:12], "")
    if head.startswith(b"FORM") and head[8:12] == b"AIFF":
        return "audio/aiff"
    wordlike = next((kind for mark, kind in _WORDLIKE if head.startswith(mark)), "")
    return wordlike if wordlike and not _is_text(head) else ""


def sniffed(head: bytes) -> str:
    """What a body of untold type is, by its first bytes; application/octet-stream when they are no text."""
    if _MARKUP.match(head):
        return "text/html"
    if _XML.match(head):
        return "application/xhtml+xml" if _ROOT.search(head) else "text/xml"
    marked = signature(head)
    if marked:
        return marked
    return "text/plain" if _is_text(head) else "application/octet-stream"


def real(head: bytes, claimed: str) -> str:
    """The type of a body whose Content-Type claims `claimed` (an essence): the claim, unless the bytes belie it.

    A page or text that begins as an image or archive is one; what claims nothing is what it looks like. Of other
    claims (XML, JSON, PDF) the bytes are not asked.
    """
    if claimed in HTML:
        return signature(head) or claimed
    if claimed in UNTOLD:
        return sniffed(head) if head else claimed
    if claimed == "text/plain":
        return claimed if _is_text(head) else signature(head) or "application/octet-stream"
    return claimed


def _is_text(head: bytes) -> bool:
    looked = head[:HEAD]
    return looked.startswith(_BOMS) or len(looked.translate(None, _BINARY)) == len(looked)
