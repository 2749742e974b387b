"""Turns the model into HTML: a few bytes of a page's own, the rest joined from pieces made once.

A hot loop, ugly on purpose in `Press.page` alone: the server must cost less than 0.1 ms a request
(`python -m harvestman.sim --bench` measures it).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from hashlib import shake_128
from html import escape
from typing import NamedTuple

from harvestman.sim import prose, themes
from harvestman.sim.fragments import Piece, gzipped, piece, stored
from harvestman.sim.hosts import LAYOUTS, Feature, Host
from harvestman.sim.odd import Odd
from harvestman.sim.paths import anchor, block_count, block_pages, paths, spelling
from harvestman.sim.web import SECTIONS_END, Throw, Web

_HEAD = (
    b'<!doctype html>\n<html lang="%b">\n<head>\n<meta charset="utf-8">\n<title>%b | %b</title>\n'
    b'<meta name="description" content="%b on %b, page %d.">\n<link rel="canonical" href="%b">\n'
)
_LEAD = b'<main>\n<article>\n<h1>%b</h1>\n<p class="lead">%b %b, number %d of %b, %b edition %d.</p>\n'
_FRAME = 10_000
"""About the size of a page without its passages."""


class Pool(NamedTuple):
    """Passages of one language, plain and deflated, repeated so that any 16-bit number is an index."""

    plain: list[bytes]
    deflated: list[bytes]
    mean: int


@cache
def _pool(language: str) -> Pool:
    pieces = [piece(_passage(number, texts)) for number, texts in enumerate(prose.passages(language))]
    times = 65_536 // len(pieces)
    return Pool(
        [each.plain for each in pieces] * times,
        [each.deflated for each in pieces] * times,
        sum(len(each.plain) for each in pieces) // len(pieces),
    )


def _passage(number: int, texts: Sequence[str]) -> bytes:
    """Markup around paragraphs: now and then a heading, an emphasis, a quotation."""
    first, *rest = (escape(text, quote=False) for text in texts)
    head, _, tail = first.partition(" ")
    heading = f'<h2 id="part-{number}">{head} {tail[:30].strip()}</h2>\n' if number % 3 == 0 else ""
    lines = [f'{heading}<p class="text text-{number % 3}"><em>{head}</em> {tail}</p>\n']
    lines += [f'<p class="text">{text}</p>\n' for text in rest]
    if number % 4 == 0:
        lines[-1] = f'<blockquote class="pull-quote">{lines[-1]}</blockquote>\n'
    return "".join(lines).encode()


def _item(href: str, text: str, rel: str = "") -> bytes:
    relation = f' rel="{rel}"' if rel else ""
    return f'<li class="item"><a href="{escape(href)}"{relation}>{escape(text)}</a></li>\n'.encode()


def _block(layout: int, block: int, pages: int) -> Piece:
    names = paths(layout, pages)
    items = (_item(spelling(names[page], page + block), anchor(page)) for page in block_pages(block, pages))
    return piece(b'<ul class="more">\n%b</ul>\n' % b"".join(items))


def _navigation(layout: int, pages: int) -> Piece:
    items = (_item(names, anchor(page)) for page, names in enumerate(paths(layout, pages)[:SECTIONS_END]))
    return piece(b'<nav class="main-nav" aria-label="Sections">\n<ul>\n%b</ul>\n</nav>\n' % b"".join(items))


class Press:
    """Prints the pages of one web, served at one port."""

    def __init__(self, web: Web, port: int) -> None:
        self.web, self.port, pages = web, port, web.plan.pages
        self._pools = {language: _pool(language) for language in {host.language for host in web.hosts} | {"en"}}
        self._tops = [piece(themes.theme(number)) for number in range(themes.COUNT)]
        self._navigation = [_navigation(layout, pages) for layout in range(LAYOUTS)]
        self._blocks = [
            [_block(layout, block, pages) for block in range(block_count(pages))] for layout in range(LAYOUTS)
        ]
        self._broken_navigation = [piece(each.plain + themes.JUNK) for each in self._navigation]
        self._middle = piece(themes.MIDDLE)
        self._origins = [b"http://%b:%d" % (host.name.encode(), port) for host in web.hosts]
        self._openings = [b'<li><a href="%b' % _opening(origin, at) for at, origin in enumerate(self._origins)]
        self._paths = [[path.encode() for path in paths(layout, pages)] for layout in range(LAYOUTS)]
        self._anchors = [anchor(page).encode() for page in range(pages)]
        self._closings = [
            [
                b'%b">%b</a></li>\n' % (escape(path.decode()).encode(), self._anchors[page])
                for page, path in enumerate(names)
            ]
            for names in self._paths
        ]
        self._homes = [b'%b/">%b</a></li>\n' % (self._openings[host.index], host.name.encode()) for host in web.hosts]

    def url(self, host: Host, path: str) -> bytes:
        return self._origins[host.index] + path.encode()

    def page(
        self, host: Host, page: int, *, version: int = 0, zipped: bool = False, edition: bytes = b"first"
    ) -> bytes:
        """The body of an ordinary page; another `edition` makes a near-duplicate of it."""
        web, name, layout, language = self.web, host.name.encode(), host.layout, host.language
        throw, pool = web.throw(host, page), self._pools[language]
        title = self._anchors[page] if page else name
        canonical = self._origins[host.index] + self._paths[layout][page]
        head = _HEAD % (language.encode(), title, name, title, name, page, canonical)
        lead = _LEAD % (title, title, self._anchors[throw.title % web.plan.pages], page, name, edition, version)
        count = max(1, (web.size(host, page) - _FRAME) // pool.mean)
        dice = shake_128(b"%d/%d/%d/%d" % (web.plan.seed, host.index, page, version)).digest(2 * count)
        chosen = struct.unpack(f"<{count}H", dice)
        last = self._ending(host, page, throw)
        top = self._tops[host.index % themes.COUNT]
        first = self._broken_navigation if host.feature is Feature.MALFORMED else self._navigation
        one, two, three = [self._blocks[layout][block] for block in throw.blocks]
        plain = b"".join(
            (head, top[0], first[layout][0], lead, *map(pool.plain.__getitem__, chosen),
             self._middle[0], one[0], two[0], three[0], last)
        )  # fmt: skip
        if not zipped:
            return plain
        deflated = (
            stored(head), top[1], first[layout][1], stored(lead), *map(pool.deflated.__getitem__, chosen),
            self._middle[1], one[1], two[1], three[1],
        )  # fmt: skip
        return gzipped(plain, deflated, last)

    def _ending(self, host: Host, page: int, throw: Throw) -> bytes:
        """Links to other hosts, to odd URLs where the page has them, and the foot."""
        openings, closings, all_hosts = self._openings, self._closings, self.web.hosts
        links = [
            openings[at] + closings[all_hosts[at].layout][number] if number else self._homes[at]
            for at, number in zip(throw.foreign_hosts, throw.foreign_pages, strict=True)
        ]
        if page < SECTIONS_END:
            if page == 0:
                links += [self._homes[child] for child in self.web.children(host)]
            links += [
                _item(entry.path, entry.path, "nofollow" if entry.nofollow else "") for entry in self.web.entries(host)
            ]
        links.append(themes.FOOT)
        return b"".join(links)

    def odd_page(self, host: Host, odd: Odd) -> bytes:
        """The body of an odd URL that is a page: short, with the links it has."""
        meta = f'<meta name="robots" content="{odd.tag}">\n' if odd.tag and ":" not in odd.tag else ""
        texts = self._pools[host.language].plain
        chosen = shake_128(f"{self.web.plan.seed}/{host.name}{odd.path}".encode()).digest(6)
        body = b"".join(texts[number] for number in struct.unpack("<3H", chosen))
        links = b"".join(_item(link, f"On to {link}") for link in ("/", *odd.links))
        title = f"{odd.kind.capitalize()} {escape(odd.path)} of {host.name}"
        top = f'<!doctype html>\n<html lang="{host.language}">\n<head>\n<meta charset="utf-8">\n'
        head = f"{top}<title>{title}</title>\n{meta}"
        return b"%b</head>\n<body>\n<main>\n<h1>%b</h1>\n%b</main>\n<ul>\n%b%b" % (
            head.encode(), title.encode(), body, links, themes.FOOT,
        )  # fmt: skip


def _opening(origin: bytes, index: int) -> bytes:
    """Links to other hosts are absolute; every fifth host is linked without the scheme."""
    return origin[len(b"http:") :] if index % 5 == 4 else origin
