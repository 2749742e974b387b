"""Sitemaps and feeds: where a host has them, what they list, how they are written.

Each lists pages that nothing else leads to (`ORPHANS`, `NEWS`), so that a crawl that does not read it is found out.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import formatdate
from html import escape

from harvestman.sim.hosts import Feed, Host, Sitemap
from harvestman.sim.odd import Kind, Odd

WELL_KNOWN = "/sitemap.xml"
LISTED = 1_000
"""Ordinary pages that a sitemap lists, at most."""
LATEST = 5
"""Ordinary pages in a feed."""
ORPHANS = ("/orphan/1", "/orphan/2", "/orphan/3")
"""Pages of a host with a sitemap that are found nowhere else."""
NEWS = ("/news-flash/1", "/news-flash/2")
"""The same for a feed."""
PLACES = {
    Sitemap.KNOWN: WELL_KNOWN,
    Sitemap.XML: "/sitemaps/main.xml",
    Sitemap.INDEX: "/sitemap_index.xml",
    Sitemap.GZIP: "/sitemap.xml.gz",
    Sitemap.TEXT: "/sitemap.txt",
    Sitemap.HIDDEN: "/private/sitemap.xml",
    Sitemap.ELSEWHERE: "/sitemaps/www.xml",
}
"""On the host itself, ELSEWHERE on the one before."""
FEEDS = {Feed.RSS: "/feed.xml", Feed.ATOM: "/atom.xml"}
_PARTS = ("/sitemaps/1.xml", "/sitemaps/2.xml.gz")
_XML, _GZIP, _TEXT = "application/xml", "application/gzip", "text/plain; charset=utf-8"
_TYPES = {".xml": _XML, ".gz": _GZIP, ".txt": _TEXT}


# -- what there is


def listing(host: Host, after: Host, path: str, pages: Sequence[str]) -> Odd | None:
    """The sitemap or feed at a path; `after` is the next host, whose sitemap may be here, `pages` are all paths."""
    if path == PLACES.get(host.sitemap) and host.sitemap is not Sitemap.ELSEWHERE:
        if host.sitemap is Sitemap.INDEX:
            return Odd(path, Kind.INDEX, links=_PARTS, content_type=_XML)
        return _listing(path, _listed(pages))
    if host.sitemap is Sitemap.INDEX and path in _PARTS:
        return _listing(path, _listed(pages)[_PARTS.index(path) :: 2])
    if path == PLACES[Sitemap.ELSEWHERE] and after.sitemap is Sitemap.ELSEWHERE:
        return _listing(path, _listed(pages), away=1)
    if path == FEEDS.get(host.feed):
        return Odd(path, Kind.LISTING, links=(*pages[:LATEST], *NEWS), content_type=f"application/{host.feed}+xml")
    return Odd(path, Kind.LISTING, 404) if path == WELL_KNOWN else None


def _listed(pages: Sequence[str]) -> tuple[str, ...]:
    return (*pages[:LISTED], *ORPHANS)


def _listing(path: str, links: tuple[str, ...], away: int = 0) -> Odd:
    return Odd(path, Kind.LISTING, links=links, away=away, content_type=_TYPES[path[path.rindex(".") :]])


def orphan(host: Host, path: str) -> Odd | None:
    """A page that only a sitemap or feed lists."""
    if host.sitemap is not Sitemap.NONE and path in ORPHANS:
        return Odd(path, Kind.QUIET if host.sitemap is Sitemap.HIDDEN else Kind.PAGE)
    return Odd(path) if host.feed is not Feed.NONE and path in NEWS else None


# -- how it is written


def written(odd: Odd, urls: Sequence[str], dates: Sequence[float]) -> bytes:
    """The body of a sitemap or feed, before it is compressed: its URLs, and when each is said to have changed."""
    if odd.kind is Kind.INDEX:
        return _document("sitemapindex", "".join(f"<sitemap><loc>{url}</loc></sitemap>\n" for url in urls))
    entries = [(escape(url), when) for url, when in zip(urls, dates, strict=True)]
    match odd.content_type:
        case "text/plain; charset=utf-8":
            return "".join(f"{url}\n" for url in urls).encode()
        case "application/rss+xml":
            return _rss(entries)
        case "application/atom+xml":
            return _atom(entries)
    lines = (f"<url><loc>{url}</loc><lastmod>{_w3c(at)}</lastmod></url>\n" for url, at in entries)
    return _document("urlset", "".join(lines))


def _document(root: str, inside: str) -> bytes:
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="{space}">\n{inside}</{root}>\n'.encode()


def _rss(entries: Sequence[tuple[str, float]]) -> bytes:
    items = "".join(
        f"<item><title>News</title><link>{url}</link><guid>{url}</guid>"
        f"<pubDate>{formatdate(at, usegmt=True)}</pubDate></item>\n"
        for url, at in entries
    )
    head = f"<title>News</title>\n<link>{entries[0][0]}</link>\n<description>What is new</description>\n"
    return f'<?xml version="1.0"?>\n<rss version="2.0">\n<channel>\n{head}{items}</channel>\n</rss>\n'.encode()


def _atom(entries: Sequence[tuple[str, float]]) -> bytes:
    items = "".join(
        f'<entry><title>News</title><id>{url}</id><link rel="alternate" href="{url}"/>'
        f"<updated>{_w3c(at)}</updated></entry>\n"
        for url, at in entries
    )
    head = f"<title>News</title>\n<id>{entries[0][0]}</id>\n<updated>{_w3c(max(at for _, at in entries))}</updated>\n"
    return f'<?xml version="1.0"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n{head}{items}</feed>\n'.encode()


def _w3c(when: float) -> str:
    return datetime.fromtimestamp(int(when), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
