"""What a page says of its licence, and what rights it reserves. Hints, not verdicts: nobody has checked them.

A link to a Creative Commons licence may be about one picture of the page; `rel=license`, JSON-LD and meta elements
speak of the page itself and come first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from turbohtml import Document

_CC = re.compile(
    r"creativecommons\.org/(?:licenses/(by(?:-nc)?(?:-nd|-sa)?)/(\d\.\d)|publicdomain/(zero|mark)/(\d\.\d))", re.I
)
_NAMED = re.compile(r"\bCC[ -]?(BY(?:[ -]NC)?(?:[ -](?:ND|SA))?)[ -](\d\.\d)\b|\b(CC0)\b", re.I)
_META = ("dc.rights", "dcterms.rights", "dcterms.license", "dc.license", "license", "licence", "copyright", "rights")
_LINK_HEADER = re.compile(r"<([^>]*)>[^,]*;\s*rel\s*=\s*\"?[^\",;]*\blicense\b", re.I)
_LONGEST = 200
_MOST = 10
_RESERVED_WORDS = ("noai", "noimageai")
_TDM = "tdm-reservation"


@dataclass(slots=True, frozen=True)
class Rights:
    """What was found."""

    licence: str = ""
    """As SPDX names it (CC-BY-SA-4.0), from the first hint that names one; '' when none does."""
    hints: tuple[str, ...] = ()
    """Where it was said and what: 'rel: https://creativecommons.org/...'."""
    reservations: tuple[str, ...] = ()
    """Signals against text and data mining: noai, noimageai, tdm-reservation."""


NOTHING = Rights()


def rights_of(document: Document, headers: dict[str, str]) -> Rights:
    """The hints of a page and of the head it came with."""
    hints = tuple(dict.fromkeys(f"{where}: {value}" for where, value in _hints(document, headers)))[:_MOST]
    licence = next((name for name in map(spdx, hints) if name), "")
    return Rights(licence, hints, tuple(_reservations(document, headers)))


def spdx(text: str) -> str:
    """The SPDX name of the Creative Commons licence that a text names or links to; '' when it does neither."""
    found = _CC.search(text)
    if found:
        if found[3]:
            return "CC0-1.0" if found[3].lower() == "zero" else "CC-PDM-1.0"
        return f"CC-{found[1].upper()}-{found[2]}"
    named = _NAMED.search(text)
    if not named:
        return ""
    return "CC0-1.0" if named[3] else f"CC-{named[1].upper().replace(' ', '-')}-{named[2]}"


def _hints(document: Document, headers: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Those that speak of the page first."""
    for found in _LINK_HEADER.finditer(headers.get("link", "")):
        yield "header", _short(found[1])
    for element in document.find_all("link", limit=500) + document.find_all("a", limit=5_000):
        if "license" in (element.attr("rel") or "").lower().split():
            yield "rel", _short(element.attr("href") or "")
    for value in _said(document.json_ld()):
        yield "json-ld", _short(value)
    for element in document.find_all("meta", limit=500):
        name = (element.attr("name") or element.attr("property") or "").lower()
        if name in _META and (element.attr("content") or "").strip():
            yield "meta", _short(element.attr("content") or "")
    for element in document.find_all("a", limit=5_000):
        if _CC.search(element.attr("href") or ""):
            yield "link", _short(element.attr("href") or "")


def _said(data: object, depth: int = 0) -> Iterator[str]:
    """The values of `license` in JSON-LD, wherever it stands."""
    if depth > 8:
        return
    if isinstance(data, list):
        for item in data[:100]:
            yield from _said(item, depth + 1)
    elif isinstance(data, dict):
        for name, value in data.items():
            if name == "license":
                yield from _names(value)
            else:
                yield from _said(value, depth + 1)


def _names(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for key in ("@id", "url", "name") if isinstance(text := value.get(key), str))
    elif isinstance(value, list):
        for item in value[:_MOST]:
            yield from _names(item)


def _reservations(document: Document, headers: dict[str, str]) -> Iterator[str]:
    said = headers.get("x-robots-tag", "").lower()
    tdm = headers.get(_TDM, "").strip() == "1"
    for element in document.find_all("meta", limit=500):
        name = (element.attr("name") or "").strip().lower()
        if name == "robots":
            said += "," + (element.attr("content") or "").lower()
        tdm = tdm or (name == _TDM and (element.attr("content") or "").strip() == "1")
    words = set(re.split(r"[\s,:]+", said))
    yield from (word for word in _RESERVED_WORDS if word in words)
    if tdm:
        yield _TDM


def _short(value: str) -> str:
    return " ".join(value[:_LONGEST].split())
