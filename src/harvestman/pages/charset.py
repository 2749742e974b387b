"""From bytes to text, as browsers do it: BOM, then Content-Type, then <meta>, then the bytes themselves.

Labels and legacy decoders are those of the WHATWG Encoding Standard, as turbohtml implements them (Python's codecs of
the same names differ: its latin-1 is not windows-1252, its big5 is a subset).
"""

from __future__ import annotations

import re
from functools import lru_cache

from turbohtml.detect import detect

from harvestman.media import told

_PRESCAN = 1024
MAX_WIDE = 600_000
"""Bytes read of UTF-16: Python takes 0.3 us for each half of a character that stands alone."""
MAX_BIG5 = 1_200_000
"""Bytes read of Big5, whose table is the slowest to walk when the bytes make no sense."""
_SAMPLE = 8192
"""Bytes the frequency detector looks at (0.09 ms per KB), around the first that are not UTF-8."""
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
_UTF16 = ("utf-16be", "utf-16le")
_PYTHON_CODECS = {"utf-8": "utf-8", "utf-16be": "utf-16-be", "utf-16le": "utf-16-le"}
_UTF16_LABELS = {
    "unicodefffe": "utf-16be",
    "utf-16be": "utf-16be",
    **dict.fromkeys(
        ("csunicode", "iso-10646-ucs-2", "ucs-2", "unicode", "unicodefeff", "utf-16", "utf-16le"), "utf-16le"
    ),
}
_HEADER = re.compile(r"""(?:^|[;,\s])charset\s*=\s*["']?\s*([\w.:+-]+)""", re.ASCII | re.IGNORECASE)
_LABEL = re.compile(r"[\w.:+-]+", re.ASCII)
_XML = re.compile(rb"""<\?xml\s[^>]{0,300}?encoding\s*=\s*["']([\w.:+-]+)["']""", re.ASCII)
_WIDE_XML = ((b"<\0?\0x\0", "utf-16le"), (b"\0<\0?\0x", "utf-16be"))
_LATE_META = re.compile(rb"<meta\s[^<>]{0,200}charset", re.IGNORECASE)
_ASCII_ONLY = bytes(range(128)) + b"?" * 128


def decode(body: bytes, content_type: str) -> tuple[str, str]:
    """The text of a body and the WHATWG name of its charset. Any bytes decode: what is malformed becomes U+FFFD."""
    for mark, charset in _BOMS:
        if body.startswith(mark):
            return _decode_as(body[len(mark) :], charset), charset
    declared = header_charset(content_type) or _prescan(body[:_PRESCAN]) or _xml_charset(body)
    if declared:
        return _decode_as(body, declared), declared
    return _guess(body)


def header_charset(content_type: str) -> str | None:
    """The charset a Content-Type header names, None when it names none we know."""
    return _header_charset(content_type[:_PRESCAN])


@lru_cache(maxsize=2048)
def _header_charset(content_type: str) -> str | None:
    """By the standard; where that finds none, what its author will have meant (`charset='gbk'`, `charset = gbk`)."""
    media = told(content_type)
    labels = [media.parameters.get("charset", "")] if media else []
    names = (canonical(label) for label in labels + _HEADER.findall(content_type))
    return next((name for name in names if name), None)


@lru_cache(maxsize=512)
def canonical(label: str) -> str | None:
    """The WHATWG name (lower case) for a label, None for a label that is not in the standard."""
    label = label.strip("\t\n\f\r ").lower()
    if not _LABEL.fullmatch(label):
        return None
    if label == "x-user-defined":
        return label
    return _UTF16_LABELS.get(label) or _prescan(b'<meta charset="%b">' % label.encode())


def _prescan(head: bytes) -> str | None:
    """What a <meta> in these first bytes declares.

    The detector does not say whether its answer came from a <meta> or from the bytes, so it is asked twice, with
    endings that make an undeclared text UTF-8 the first time and windows-1252 the second: only a declaration gives one
    answer to both.
    """
    if b"charset" not in head and b"charset" not in head.lower():
        return None
    padded = head.translate(_ASCII_ONLY).rjust(_PRESCAN)  # so that the endings lie beyond the prescan
    first = detect(padded + b"\xc3\xa9").encoding
    return first.lower() if first and first == detect(padded + b"\xe9").encoding else None


def _xml_charset(body: bytes) -> str | None:
    """What an XML declaration says, which browsers believe in HTML as well."""
    if body[:2] not in (b"<?", b"<\0", b"\0<"):
        return None
    for head, charset in _WIDE_XML:
        if body.startswith(head):
            return charset
    found = _XML.match(body, 0, _PRESCAN)
    said = canonical(found[1].decode()) if found else None
    return "utf-8" if said in ("utf-16be", "utf-16le") else said  # else we could not have read it


def _guess(body: bytes) -> tuple[str, str]:
    """Nothing declared: UTF-8 when the bytes are, else a <meta> beyond the prescan, else what the bytes look like."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as broken:
        charset = _late_meta(body) or _resemblance(body[max(0, broken.start - _PRESCAN) :][:_SAMPLE])
        return _decode_as(body, charset), charset
    return text, "windows-1252" if text.isascii() else "utf-8"  # the standard's default where both read the same


def _late_meta(body: bytes) -> str | None:
    found = _LATE_META.search(body, _PRESCAN // 2)
    return _prescan(body[found.start() : found.start() + _PRESCAN]) if found else None


def _resemblance(sample: bytes) -> str:
    """The legacy charset these bytes look most like; the sample ends at a tag, where no character can be cut in two."""
    whole = sample[: sample.rfind(b"<")] if len(sample) == _SAMPLE and b"<" in sample else sample
    return (detect(whole).encoding or "windows-1252").lower()


def _decode_as(body: bytes, charset: str) -> str:
    if charset in _UTF16:
        return body[: most_of(charset)].decode(_PYTHON_CODECS[charset], "replace")
    if charset in _PYTHON_CODECS:
        return body.decode(_PYTHON_CODECS[charset], "replace")
    return body[: most_of(charset)].decode(f"whatwg-{charset}", "replace")


def most_of(charset: str) -> int | None:
    """How many bytes are read of a page in it; None when it is quick to decode."""
    return MAX_WIDE if charset in _UTF16 else MAX_BIG5 if charset.startswith("big5") else None
