"""The links of a page, resolved, each URL once. The loop runs some sixty times a page.

Costs behind the shape: turbohtml finds one tag by an index (5 us a page) but several at once by a walk (95 us); most
repeated links repeat their href to the letter, so they are caught before they are resolved.
"""

from __future__ import annotations

from turbohtml import Document, Element

from harvestman.model import LISTING, Link, Seconds
from harvestman.policy import refresh
from harvestman.policy.urls import Base

MAX_LINKS = 10_000
_LONGEST_HREF = 8_192
_FEEDS = ("application/rss+xml", "application/atom+xml")
_ANCHOR = 200
_ANCHOR_SOURCE = 2_000
"""Characters of an anchor's text looked at, white space and all."""


class LinkSet:
    """The links of one page in the order they were found; of a URL found again the first stays, completed."""

    __slots__ = ("_base", "_by_url", "_text_left", "_urls", "refresh")

    def __init__(self, base: Base, anchor_text: int) -> None:
        """`anchor_text` bounds the characters read as anchors, for anchors can be nested to be read many times over."""
        self._base = base
        self._by_url: dict[str, Link] = {}
        self._urls: dict[str, str | None] = {}
        self._text_left = anchor_text
        self.refresh: tuple[Seconds, str] | None = None
        """When the page leads on, and where to."""

    def links(self) -> list[Link]:
        return list(self._by_url.values())

    def add_anchors(self, elements: list[Element]) -> None:
        """The hot loop: <a href>."""
        urls, by_url, resolve, text_left = self._urls, self._by_url, self._base.resolve, self._text_left
        for element in elements:
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
            if first is not None and first.anchor and not first.rel:
                continue  # nothing to complete
            text = element.text if text_left > 0 else ""
            text_left -= len(text)
            anchor = " ".join(text[:_ANCHOR_SOURCE].split())[:_ANCHOR]
            rel = element.attr("rel")
            link = Link(url, anchor, rel.lower() if rel else "")
            by_url[url] = link if first is None else _completed(first, link)
        self._text_left = text_left

    def add(self, href: str | None, kind: str, anchor: str = "", rel: str = "") -> str | None:
        """One link of another kind; its URL when it has one."""
        if href is None or len(href) > _LONGEST_HREF:
            return None
        url = self._base.resolve(href)
        if url is not None:
            link = Link(url, " ".join(anchor[:_ANCHOR_SOURCE].split())[:_ANCHOR], rel.lower(), kind)
            first = self._by_url.get(url)
            self._by_url[url] = link if first is None else _completed(first, link)
        return url


def collect(document: Document, links: LinkSet) -> str | None:
    """Find every link outside <template>, and return the canonical URL."""
    links.add_anchors(document.find_all("a", limit=MAX_LINKS))
    for area in document.find_all("area", limit=MAX_LINKS):
        links.add(area.attr("href"), "area", area.attr("alt") or "", area.attr("rel") or "")
    for tag in ("iframe", "frame"):
        for frame in document.find_all(tag, limit=MAX_LINKS):
            links.add(frame.attr("src"), "frame")
    for meta in document.find_all("meta", limit=MAX_LINKS):
        if (meta.attr("http-equiv") or "").strip().lower() == "refresh":
            _refresh(meta, links)
    return _link_elements(document, links)


def base_of(document: Document, page: Base) -> Base:
    """What links are resolved against: the first <base href>, itself resolved against the page's URL."""
    for element in document.find_all("base", limit=MAX_LINKS):
        href = element.attr("href")
        if href is not None:
            url = page.resolve(href)
            return Base(url) if url else page
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
    """The first canonical URL, and on the way the feeds that the page offers."""
    canonical = None
    for element in document.find_all("link", limit=MAX_LINKS):
        rel = (element.attr("rel") or "").lower()
        if canonical is None and "canonical" in rel and "canonical" in rel.split():
            canonical = links.add(element.attr("href"), "canonical", rel="canonical")
        elif "alternate" in rel and (element.attr("type") or "").strip().lower() in _FEEDS:
            links.add(element.attr("href"), LISTING, rel="alternate")
    return canonical


def _completed(first: Link, again: Link) -> Link:
    """The first link, with the anchor it lacked; a nofollow speaks of one link, so it stays only if both have it."""
    anchor = first.anchor or again.anchor
    rel = again.rel if "nofollow" in first.rel and "nofollow" not in again.rel else first.rel
    if anchor is first.anchor and rel is first.rel:
        return first
    return Link(first.url, anchor, rel, first.kind)
