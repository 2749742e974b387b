"""Pages that are not in plain UTF-8: by right, by surprise, or by mistake."""

from __future__ import annotations

from typing import NamedTuple


class Charset(NamedTuple):
    """How a page is encoded, and what it claims."""

    codec: str
    header: str
    """The charset parameter of Content-Type, '' for none."""
    meta: str
    """The name in the meta element."""


CHARSETS = (
    Charset("utf-8", "utf-8", "utf-8"),
    Charset("cp1252", "windows-1252", "windows-1252"),
    Charset("shift_jis", "", "shift_jis"),
    Charset("utf-16", "", "utf-8"),
    Charset("cp1252", "utf-8", "utf-8"),
)
_PHRASES = {
    "cp1252": "Übermut tut selten gut – “naïve façade”, 20 € für Käse und Brötchen in der Straße.",
    "shift_jis": "今日は天気がとても良いです。この町には古い橋があります。",
}


def charset_of(page: int) -> Charset:
    """Ordinary pages of a host with the `charsets` feature take turns."""
    return CHARSETS[page % len(CHARSETS)]


def encode(body: bytes, charset: Charset) -> bytes:
    """The same page in another charset, with a phrase that only reads right when the charset is got right."""
    text = body.decode().replace('<meta charset="utf-8">', f'<meta charset="{charset.meta}">', 1)
    phrase = _PHRASES.get(charset.codec, "Žluťoučký kůň — Ελληνικά — 漢字")
    text = text.replace("</h1>", f"</h1>\n<p>{phrase * 3}</p>", 1)
    return text.encode(charset.codec, errors="replace")
