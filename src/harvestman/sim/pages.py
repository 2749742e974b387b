"""Turns the model into HTML: a few bytes of a page's own, the rest joined from pieces made once.

A hot loop, ugly on purpose in `Press.page` alone: the server must cost less than 0.1 ms a request
(`python -m harvestman.sim.cost` measures it).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from hashlib import shake_128
from html import escape
from typing import NamedTuple, TypeAlias

from harvestman.sim import prose, themes
from harvestman.sim.fragments import Piece, gzipped, piece, stored
from harvestman.sim.hosts import LAYOUTS, Feature, Host
from harvestman.sim.odd import Odd
from harvestman.sim.paths import anchor, block_count, block_pages, paths, spelling
from harvestman.sim.web import SECTIONS_END, TARGETS, Throw, Web

_HEAD = (
    b'<!doctype html>\n<html lang="%b">\n<head>\n<meta charset="utf-8">\n<title>%b | %b</title>\n'
    b'<meta name="description" content="%b on %b, page %d.">\n<link rel="canonical" href="%b">\n'
)
_LEAD = b'<main>\n<article>\n<h1>%b</h1>\n<p class="lead">%b %b, number %d of %b, %b edition %d.</p>\n'
_CHAPTER = 4
_FRAME = 9_500
"""About the size of a page without its passages."""


_Dice: TypeAlias = tuple[int, ...]


class Pool(NamedTuple):
    """Text in pieces of about one size, plain and deflated, repeated so that any 16-bit number is an index."""

    plain: list[bytes]
    deflated: list[bytes]
    mean: int


def _pool(texts: Sequence[bytes]) -> Pool:
    pieces = [piece(text) for text in texts]
    times = 65_536 // len(pieces)
    mean = sum(len(each.plain) for each in pieces) // len(pieces)
    return Pool([each.plain for each in pieces] * times, [each.deflated for each in pieces] * times, mean)


@cache
def _pools(language: str) -> tuple[Pool, Pool]:
    """Chapters, which make the bulk of a page, and passages, which make up the rest of its size."""
    passages = [_passage(number, texts) for number, texts in enumerate(prose.passages(language))]
    chapters = [b"".join(passages[start : start + _CHAPTER]) for start in range(0, len(passages), _CHAPTER)]
    return _pool(chapters), _pool(passages)


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
        self._pools = {language: _pools(language) for language in {host.language for host in web.hosts} | {"en"}}
        self._tops = [piece(themes.theme(number)) for number in range(themes.COUNT)]
        self._navigation = [_navigation(layout, pages) for layout in range(LAYOUTS)]
        self._blocks = [
            [_block(layout, block, pages) for block in range(block_count(pages))] for layout in range(LAYOUTS)
        ]
        self._broken_navigation = [piece(each.plain + themes.JUNK) for each in self._navigation]
        self._middle = piece(themes.MIDDLE)
        self._origins = [b"http://%b:%d" % (host.name.encode(), port) for host in web.hosts]
        self._paths = [[path.encode() for path in paths(layout, pages)] for layout in range(LAYOUTS)]
        self._escaped = [[path.replace(b"&", b"&amp;") for path in names] for names in self._paths]
        self._anchors = [anchor(page).encode() for page in range(pages)]
        foreign = [self._foreign_link(at, page) for at, page in web.targets[:TARGETS]]
        self._foreign = foreign * (len(web.targets) // TARGETS)

    def url(self, host: Host, path: str) -> bytes:
        return self._origins[host.index] + path.encode()

    def page(
        self, host: Host, page: int, *, version: int = 0, zipped: bool = False, edition: bytes = b"first"
    ) -> bytes:
        """The body of an ordinary page; another `edition` makes a near-duplicate of it."""
        web, name, layout, language = self.web, host.name.encode(), host.layout, host.language
        throw, (chapters, passages) = web.throw(host, page), self._pools[language]
        title = self._anchors[page] if page else name
        canonical = self._origins[host.index] + self._paths[layout][page]
        head = _HEAD % (language.encode(), title, name, title, name, page, canonical)
        lead = _LEAD % (title, title, self._anchors[throw.title % web.plan.pages], page, name, edition, version)
        long, short = self._text(host, page, version, chapters.mean, passages.mean)
        last = self._ending(host, page, throw)
        top = self._tops[host.index % themes.COUNT]
        first = self._broken_navigation if host.feature is Feature.MALFORMED else self._navigation
        one, two, three = [self._blocks[layout][block] for block in throw.blocks]
        plain = b"".join((
            head, top[0], first[layout][0], lead,
            *map(chapters.plain.__getitem__, long), *map(passages.plain.__getitem__, short),
            self._middle[0], one[0], two[0], three[0], last,
        ))  # fmt: skip
        if not zipped:
            return plain
        deflated = (
            stored(head), top[1], first[layout][1], stored(lead),
            *map(chapters.deflated.__getitem__, long), *map(passages.deflated.__getitem__, short),
            self._middle[1], one[1], two[1], three[1],
        )  # fmt: skip
        return gzipped(plain, deflated, last)

    def _text(self, host: Host, page: int, version: int, chapter: int, passage: int) -> tuple[_Dice, _Dice]:
        """Which chapters and passages the page is made of, so that it gets the size it should have."""
        many, rest = divmod(max(0, self.web.size(host, page) - _FRAME), chapter)
        few = max(rest // passage, 0 if many else 1)
        key = b"%d/%d/%d/%d" % (self.web.plan.seed, host.index, page, version)
        dice = struct.unpack(f"<{many + few}H", shake_128(key).digest(2 * (many + few)))
        return dice[:many], dice[many:]

    def _ending(self, host: Host, page: int, throw: Throw) -> bytes:
        """Links to other hosts, to odd URLs where the page has them, and the foot."""
        links = [*map(self._foreign.__getitem__, throw.foreign)]
        if page < SECTIONS_END:
            if page == 0:
                links += [self._foreign_link(child, 0) for child in self.web.children(host)]
            entries = self.web.entries(host)
            links += [_item(entry.path, entry.path, "nofollow" if entry.nofollow else "") for entry in entries]
        links.append(themes.FOOT)
        return b"".join(links)

    def _foreign_link(self, at: int, page: int) -> bytes:
        """Links to other hosts are absolute; every fifth host is linked without the scheme."""
        origin, path = self._origins[at], self._escaped[self.web.hosts[at].layout][page]
        start = origin[len(b"http:") :] if at % 5 == 4 else origin
        return b'<li><a href="%b%b">%b</a></li>\n' % (start, path, self._anchors[page] if page else origin[7:])

    def odd_page(self, host: Host, odd: Odd) -> bytes:
        """The body of an odd URL that is a page: short, with the links it has."""
        meta = f'<meta name="robots" content="{odd.tag}">\n' if odd.tag and ":" not in odd.tag else ""
        texts = self._pools[host.language][1].plain
        chosen = shake_128(f"{self.web.plan.seed}/{host.name}{odd.path}".encode()).digest(6)
        body = b"".join(texts[number] for number in struct.unpack("<3H", chosen))
        links = b"".join(_item(link, f"On to {link}") for link in ("/", *odd.links))
        title = f"{odd.kind.capitalize()} {escape(odd.path)} of {host.name}"
        top = f'<!doctype html>\n<html lang="{host.language}">\n<head>\n<meta charset="utf-8">\n'
        head = f"{top}<title>{title}</title>\n{meta}"
        return b"%b</head>\n<body>\n<main>\n<h1>%b</h1>\n%b</main>\n<ul>\n%b%b" % (
            head.encode(), title.encode(), body, links, themes.FOOT,
        )  # fmt: skip
