"""What a page says of itself for machines: one pass over <meta>, then JSON-LD, microdata and <time> where they are.

Every part is bounded: by number, by characters, and by what reading it can cost. A page that has none of it costs 5 us:
the tree knows its tags and attributes, so each question that has no answer is answered at once (bench/pages_cpu.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from turbohtml import Document, Element, MicrodataItem

from harvestman.model import Data

from .dates import iso
from .directives import Directives, from_words

MAX_META: Final = 2_000
"""Elements looked at."""
MAX_NAMES: Final = 64
"""Of <meta> elements, kept."""
LONGEST: Final = 1_000
"""Characters of a description or another value."""
_LONGEST_NAME: Final = 64
_LONGEST_ASKED: Final = 2_000
MAX_REFRESHES: Final = 10
MAX_SCRIPTS: Final = 2_000
MAX_BLOCKS: Final = 20
MAX_JSON: Final = 64_000
"""Characters of JSON-LD, in all."""
_MAX_NODES: Final = 200
"""Things that JSON-LD speaks of, looked at for an author or a date."""
_AUTHORS: Final = 5
_AUTHOR: Final = 200
MAX_ITEMS: Final = 20
_MAX_SCOPES: Final = 500
_MAX_READ: Final = 50_000_000
"""Properties times the size of the page: those in one another are read over and over."""
_MAX_DEPTH: Final = 6
_MAX_VALUES: Final = 20
_LONGEST_VALUE: Final = 500
_LONGEST_ITEMS: Final = 16_000

_PREFIXES: Final = ("og:", "twitter:", "article:", "product:", "book:", "profile:", "video:", "dc.", "dcterms.")
_PUBLISHED: Final = ("article:published_time", "og:article:published_time")
_PERHAPS_PUBLISHED: Final = (
    "datepublished", "dc.date.issued", "dcterms.issued", "dc.date.created", "dcterms.created", "dc.date",
    "dcterms.date", "citation_publication_date", "citation_date", "parsely-pub-date", "sailthru.date", "pubdate",
    "publish-date", "publish_date", "date",
)  # fmt: skip
_MODIFIED: Final = ("article:modified_time", "og:article:modified_time", "og:updated_time")
_PERHAPS_MODIFIED: Final = ("datemodified", "dc.date.modified", "dcterms.modified", "last-modified", "revised")
_AUTHOR_NAMES: Final = (
    "author", "article:author", "dc.creator", "dcterms.creator", "parsely-author", "sailthru.author", "citation_author",
)  # fmt: skip
_TELLING: Final = frozenset({*_PUBLISHED, *_PERHAPS_PUBLISHED, *_MODIFIED, *_PERHAPS_MODIFIED, *_AUTHOR_NAMES})
_WHOLE: Final = frozenset({"html", "body"})
"""An item that is one of these is the page."""
_KEPT: Final = _TELLING | {"generator", "keywords"}


@dataclass(slots=True)
class Meta:
    """What the <meta> elements say."""

    description: str = ""
    asked: Directives = field(default_factory=Directives)
    refreshes: list[Element] = field(default_factory=list)
    named: dict[str, str] = field(default_factory=dict)
    """As `Data.meta`."""
    cut: bool = False


def read_meta(document: Document, agent: str) -> Meta:
    """The one pass over <meta>; `agent` is our name in lower case."""
    meta = Meta()
    elements = document.find_all("meta", limit=MAX_META + 1)
    if len(elements) > MAX_META:
        meta.cut = True
        elements.pop()
    named = meta.named
    for element in elements:
        name = element.attr("name") or element.attr("property") or _of_the_page(element)
        pragma = element.attr("http-equiv")
        if pragma and pragma[:_LONGEST_NAME].strip().lower() == "refresh" and len(meta.refreshes) < MAX_REFRESHES:
            meta.refreshes.append(element)
        if not name:
            continue
        name = name[:_LONGEST_NAME].strip().lower()
        if name == "description":
            meta.description = meta.description or " ".join((element.attr("content") or "")[:LONGEST].split())
        elif name in ("robots", agent):
            meta.asked |= from_words((element.attr("content") or "")[:_LONGEST_ASKED])
        elif (name in _KEPT or name.startswith(_PREFIXES)) and name not in named:
            value = (element.attr("content") or "")[:LONGEST].strip()
            if value and len(named) < MAX_NAMES:
                named[name] = value
            elif value:
                meta.cut = True
    return meta


def _of_the_page(element: Element) -> str | None:
    """The property that it gives the page; one in an item, say a review, is of that item, and read with microdata."""
    name = element.attr("itemprop")
    if not name:
        return None
    item = element.closest("[itemscope]")
    return name if item is None or item.tag in _WHOLE else None


def read_data(document: Document, meta: Meta, size: int) -> tuple[Data, bool]:
    """All of it, and whether any was left out for being too much; `size` is that of the page, in characters."""
    data = Data(meta=meta.named, asks=sorted(meta.asked.others))
    nodes, cut = _json_ld(document, data)
    scopes = document.select("[itemscope]")
    if scopes:
        items, too_much = _microdata(document, data, len(scopes), size)
        nodes, cut = nodes + items, cut or too_much
    if nodes or not _TELLING.isdisjoint(meta.named):
        _about(data, nodes)
    if not data.published:
        data.published = _timed(document)
    return data, cut


def _about(data: Data, nodes: list[dict[str, Any]]) -> None:
    """Who wrote it, and when: the surest first."""
    named = data.meta
    data.author = _author(named, nodes)
    data.published = _date(named, _PUBLISHED) or _said(nodes, "datePublished") or _date(named, _PERHAPS_PUBLISHED)
    data.modified = _date(named, _MODIFIED) or _said(nodes, "dateModified") or _date(named, _PERHAPS_MODIFIED)


# -- JSON-LD ---------------------------------------------------------------------------------------------------------


def _json_ld(document: Document, data: Data) -> tuple[list[dict[str, Any]], bool]:
    """Keeps the blocks, and returns the things they speak of."""
    nodes: list[dict[str, Any]] = []
    left, blocks = MAX_JSON, 0
    for script in document.find_all("script", limit=MAX_SCRIPTS):
        if "ld+json" not in (script.attr("type") or "").lower():
            continue
        text = script.text.strip()
        left -= len(text)
        blocks += 1
        if blocks > MAX_BLOCKS or left < 0:
            return nodes[:_MAX_NODES], True
        value, sound = _value(text)
        if not sound:
            data.broken += 1
            continue
        data.json_ld.append(sound)
        nodes += _nodes(value)
    return nodes[:_MAX_NODES], False


def _value(text: str) -> tuple[Any, str]:
    """What a block says, and that as sound JSON; '' when it cannot be read."""
    try:
        return msgspec.json.decode(text), text
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass
    try:  # many have bare newlines in their strings, or stand in a comment
        value = json.loads(text.removeprefix("<!--").removesuffix("-->").strip(" \t\r\n;"), strict=False)
        sound = json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8", "replace").decode()
        return json.loads(sound), sound  # without halves of characters, which cannot be stored
    except (ValueError, RecursionError):
        return None, ""


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """The things at the top of a block, and those of its graph."""
    for each in value if isinstance(value, list) else (value,):
        if isinstance(each, dict):
            yield each
            graph = each.get("@graph")
            if isinstance(graph, list):
                yield from (node for node in graph[:_MAX_NODES] if isinstance(node, dict))


# -- microdata -------------------------------------------------------------------------------------------------------


def _microdata(document: Document, data: Data, scopes: int, size: int) -> tuple[list[dict[str, Any]], bool]:
    """Keeps the items at the top, and returns them."""
    if scopes > _MAX_SCOPES or len(document.select("[itemprop]")) * size > _MAX_READ:
        return [], True
    for element in document.select("[itemref]"):  # items that borrow from one another can be endless
        del element.attrs["itemref"]
    try:
        found = document.microdata()
    except RecursionError:
        return [], True
    items = [_item(item, _MAX_DEPTH) for item in found[:MAX_ITEMS]]
    left = _LONGEST_ITEMS
    for item in items:
        text = msgspec.json.encode(item).decode()
        left -= len(text)
        if left < 0:
            return items, True
        data.microdata.append(text)
    return items, len(found) > MAX_ITEMS


def _item(item: MicrodataItem, depth: int) -> dict[str, Any]:
    kept: dict[str, Any] = {"@type": item.type[:_LONGEST_VALUE]} if item.type else {}
    if item.id:
        kept["@id"] = item.id[:_LONGEST_VALUE]
    for name in list(item.properties)[:_MAX_VALUES]:
        values = item.properties[name][:_MAX_VALUES]
        kept[name[:_LONGEST_NAME]] = [
            " ".join(value[:_LONGEST_VALUE].split()) if isinstance(value, str) else _item(value, depth - 1)
            for value in values
            if isinstance(value, str) or depth > 1
        ]
    return kept


# -- author and dates ------------------------------------------------------------------------------------------------


def _author(named: dict[str, str], nodes: list[dict[str, Any]]) -> str:
    for name in _AUTHOR_NAMES:
        said = named.get(name, "")
        if said and "://" not in said:
            return _joined([said])
    things = {node["@id"]: node for node in reversed(nodes) if isinstance(node.get("@id"), str)}
    for node in nodes:
        names = _names(node.get("author"), things) if "author" in node else []
        if names:
            return _joined(names)
    return ""


def _names(value: Any, things: dict[str, dict[str, Any]]) -> list[str]:
    """Of one or several persons, given by name, in full, or by reference to another thing of the page."""
    names: list[str] = []
    for each in value[:_AUTHORS] if isinstance(value, list) else (value,):
        if isinstance(each, dict) and "name" not in each:
            known = each.get("@id")
            each = things.get(known, each) if isinstance(known, str) else each
        name = each.get("name") if isinstance(each, dict) else each
        name = name[0] if isinstance(name, list) and name else name
        if isinstance(name, str) and name.strip() and "://" not in name:
            names.append(name)
    return names


def _joined(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(" ".join(name[:_AUTHOR].split()) for name in names))[:_AUTHOR]


def _date(named: dict[str, str], names: tuple[str, ...]) -> str:
    return next((date for name in names if name in named and (date := iso(named[name]))), "")


def _said(nodes: list[dict[str, Any]], name: str) -> str:
    for node in nodes:
        value = node.get(name)
        value = value[0] if isinstance(value, list) and value else value
        date = iso(value) if isinstance(value, str) else ""
        if date:
            return date
    return ""


def _timed(document: Document) -> str:
    """The first <time> of the only article, or the only <time> there is: others are of comments, or of a list."""
    times = document.find_all("time", limit=2)
    if not times:
        return ""
    if len(times) > 1:
        articles = document.find_all("article", limit=2)
        first = articles[0].find("time") if len(articles) == 1 else None
        times = [first] if first else []
    return iso(times[0].attr("datetime") or "") if times else ""
