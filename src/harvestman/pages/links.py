"""The links of a page, resolved, each URL once. The loop runs some sixty times a page.

Costs behind the shape: turbohtml finds one tag by an index (5 us a page) but several at once by a walk (95 us); most
repeated links repeat their href to the letter, so they are caught before they are resolved.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Final

from turbohtml import Document, Element

from harvestman.model import LISTING, Instant, Link, Seconds
from harvestman.policy import refresh
from harvestman.policy.urls import Base

MAX_LINKS: Final = 10_000
"""<a> elements that are read ..."""
MAX_OTHERS: Final = 500
"""... and of each other kind."""
MAX_HREFS: Final = 1_000_000
"""Characters that are resolved: the longest honest pages have some 80 a link."""
_LONGEST_HREF = 8_192
_LANDMARKS: Final = ("main", "header", "footer", "aside", "nav")
"""From the outer to the inner, as they mostly are where two hold the same links."""
_AROUND: Final = frozenset(_LANDMARKS[1:])
_MOST_LANDMARKS: Final = 100
_MOST_LOOKED_AT: Final = 300_000
"""Landmarks of a kind times the tags of the page: those in one another are looked through over and over."""
_IDLE: Final = frozenset({"", "stylesheet", "preload", "preconnect", "dns-prefetch", "icon", "shortcut icon"})
_LONGEST_LANGUAGE: Final = 35
_NEVER: Final = Instant(0.0)
_FEEDS = ("application/rss+xml", "application/atom+xml")
_ANCHOR = 200
_ANCHOR_SOURCE = 2_000
"""Characters of an anchor's text looked at, white space and all."""


class LinkSet:
    """The links of one page: <a> in the order of the page, then other kinds; of a URL the first stays, completed."""

    __slots__ = ("_base", "_by_url", "_text_left", "_urls", "cut", "refresh")

    def __init__(self, base: Base, anchor_text: int) -> None:
        """`anchor_text` bounds the characters read as anchors, for anchors can be nested to be read many times over."""
        self._base = base
        self._by_url: dict[str, Link] = {}
        self._urls: dict[str, str | None] = {}
        self._text_left = anchor_text
        self.cut = False
        """There were more than we read."""
        self.refresh: tuple[Seconds, str] | None = None
        """When the page leads on, and where to."""

    def links(self) -> list[Link]:
        return list(self._by_url.values())

    def add_anchors(self, elements: list[Element], places: Sequence[str]) -> None:
        """The hot loop: <a href>. `places` is empty when no element is in a landmark."""
        urls, by_url, resolve = self._urls, self._by_url, self._base.resolve
        text_left = self._text_left
        for element, place in zip(elements, places or repeat(""), strict=False):
            href = element.attr("href")
            if href is None:
                continue
            if href in urls:
                url = urls[href]
            else:
                url = urls[href] = resolve(href) if len(href) <= _LONGEST_HREF else None
            if url is None:
                continue
            first = by_url.get(url)
            if (
                first is not None
                and first.anchor
                and not first.rel
                and (place in _AROUND or first.place not in _AROUND)
            ):
                continue  # nothing to complete
            text = element.text if text_left > 0 else ""
            text_left -= len(text)
            anchor = " ".join(text[:_ANCHOR_SOURCE].split())[:_ANCHOR]
            rel = element.attr("rel")
            link = Link(url, anchor, rel[:_ANCHOR].lower() if rel else "", "a", _NEVER, place)
            by_url[url] = link if first is None else _completed(first, link)
        self._text_left = text_left

    def add(self, href: str | None, kind: str, anchor: str = "", rel: str = "", language: str = "") -> str | None:
        """One link of another kind; its URL when it has one."""
        if href is None or len(href) > _LONGEST_HREF:
            return None
        url = self._base.resolve(href)
        if url is not None:
            words = " ".join(anchor[:_ANCHOR_SOURCE].split())[:_ANCHOR]
            link = Link(url, words, rel[:_ANCHOR].lower(), kind, language=language)
            first = self._by_url.get(url)
            self._by_url[url] = link if first is None else _completed(first, link)
        return url

    def some(self, document: Document, tag: str, most: int = MAX_OTHERS) -> list[Element]:
        """Elements, of which only so many are read."""
        found = document.find_all(tag, limit=most + 1)
        if len(found) > most:
            self.cut = True
            found.pop()
        return found

    def short(self, elements: list[Element]) -> list[Element]:
        """The first anchors, up to MAX_HREFS characters of href; those that must be escaped count thrice."""
        left = MAX_HREFS
        for number, element in enumerate(elements):
            href = element.attr("href") or ""
            if len(href) <= _LONGEST_HREF:
                left -= len(href) if href.isascii() else 3 * len(href)
            if left < 0:
                self.cut = True
                return elements[:number]
        return elements


def collect(document: Document, links: LinkSet, size: int, tags: int, refreshes: Sequence[Element] = ()) -> str | None:
    """Find every link outside <template>, and return the canonical URL; `size` is in characters, `tags` a guess."""
    anchors = links.some(document, "a", MAX_LINKS)
    if size > MAX_HREFS:
        anchors = links.short(anchors)
    links.add_anchors(anchors, places(document, anchors, tags))
    for area in links.some(document, "area"):
        links.add(area.attr("href"), "area", area.attr("alt") or "", area.attr("rel") or "")
    for tag in ("iframe", "frame"):
        for frame in links.some(document, tag):
            links.add(frame.attr("src"), "frame")
    for element in refreshes:
        _refresh(element, links)
    return _link_elements(document, links)


def places(document: Document, anchors: list[Element], tags: int) -> list[str]:
    """The innermost landmark around each anchor; empty when there is none.

    The anchors of a landmark stand in one piece of the list, which has them in the order of the page: so each landmark
    is looked through once, and no anchor is asked for its ancestors (0.1 us a link, instead of 2).
    """
    most = min(_MOST_LANDMARKS, _MOST_LOOKED_AT // max(tags, 1) + 1)
    names: list[int] = []
    pieces = []
    for rank, tag in enumerate(_LANDMARKS):
        start = 0
        for landmark in document.find_all(tag, limit=most):
            inside = landmark.find_all("a")
            if not inside:
                continue
            names = names or list(map(id, anchors))  # elements themselves are slow to compare
            start = _index(names, id(inside[0]), start)
            pieces.append((start, -len(inside), rank))
    if not pieces:
        return []
    found = [""] * len(anchors)
    for start, length, rank in sorted(pieces):  # the inner ones come last
        end = min(start - length, len(anchors))
        found[start:end] = [_LANDMARKS[rank]] * (end - start)
    return found


def base_of(document: Document, page: Base) -> Base:
    """What links are resolved against: the first <base href>, itself resolved against the page's URL."""
    for element in document.find_all("base", limit=MAX_OTHERS):
        href = element.attr("href")
        if href is not None:
            url = page.resolve(href)
            return Base(url, page.known) if url else page
    return page


def _refresh(meta: Element, links: LinkSet) -> None:
    """A link, and if it is the first that everybody obeys, where the page leads.

    What stands in <noscript> is for clients without scripts: mostly a page that says so.
    """
    told = refresh.read(meta.attr("content") or "")
    url = links.add(told[1], "refresh") if told else None
    if told and url and links.refresh is None and meta.closest("noscript") is None:
        links.refresh = told[0], url


def _link_elements(document: Document, links: LinkSet) -> str | None:
    """The first canonical URL, and on the way the page in other languages, the pages before and after it, its feeds."""
    canonical = None
    for element in links.some(document, "link"):
        rel = (element.attr("rel") or "")[:_ANCHOR].lower()
        if rel in _IDLE:
            continue
        words = rel.split()
        if "canonical" in words:
            canonical = canonical or links.add(element.attr("href"), "canonical", rel="canonical")
        elif "alternate" in words:
            _alternate(element, links)
        elif "next" in words:
            links.add(element.attr("href"), "pagination", rel="next")
        elif "prev" in words or "previous" in words:
            links.add(element.attr("href"), "pagination", rel="prev")
    return canonical


def _alternate(element: Element, links: LinkSet) -> None:
    """A feed, or the page in another language."""
    if (element.attr("type") or "")[:_ANCHOR].strip().lower() in _FEEDS:
        links.add(element.attr("href"), LISTING, rel="alternate")
        return
    language = (element.attr("hreflang") or "")[:_LONGEST_LANGUAGE].strip().lower()
    if language:
        links.add(element.attr("href"), "alternate", rel="alternate", language=language)


def _completed(first: Link, again: Link) -> Link:
    """The first link, with what it lacked; a nofollow speaks of one link, so it stays only if both have it."""
    anchor = first.anchor or again.anchor
    rel = again.rel if "nofollow" in first.rel and "nofollow" not in again.rel else first.rel
    place = again.place if first.place in _AROUND and again.kind == "a" and again.place not in _AROUND else first.place
    language = first.language or again.language
    if (anchor, rel, place, language) == (first.anchor, first.rel, first.place, first.language):
        return first
    return Link(first.url, anchor, rel, first.kind, place=place, language=language)


def _index(names: list[int], name: int, start: int) -> int:
    try:
        return names.index(name, start)
    except ValueError:  # beyond what is read
        return len(names)
