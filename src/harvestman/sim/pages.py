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
from typing import NamedTuple

from harvestman.sim import prose, themes
from harvestman.sim.fragments import Piece, gzipped, piece, sealed, stored
from harvestman.sim.hosts import LAYOUTS, Feature, Host
from harvestman.sim.odd import Odd
from harvestman.sim.paths import anchor, block_count, block_pages, paths, spelling
from harvestman.sim.web import SECTIONS_END, Web

_HEAD = (
    b'<!doctype html>\n<html lang="%b">\n<head>\n<meta charset="utf-8">\n<title>%b | %b</title>\n'
    b'<meta name="description" content="%b on %b, page %d.">\n<link rel="canonical" href="%b">\n'
)
_LEAD = b'<main>\n<article>\n<h1>%b</h1>\n<p class="lead">%b %b, number %d of %b, %b edition %d.</p>\n'
_CHAPTER = 4
"""Passages in a chapter."""
_CHAPTERS = 256
_FRAME = 10_800
"""About the size of a page without its passages."""


class Pool(NamedTuple):
    """Text in pieces of about one size, plain and deflated. Short lists: they have to stay in the processor's cache."""

    plain: list[bytes]
    deflated: list[bytes]
    sizes: list[int]
    mean: int


def _pool(texts: Sequence[bytes], count: int) -> Pool:
    """`count` pieces; where there are fewer texts, each serves several times."""
    pieces = [piece(text) for text in texts] * (count // len(texts))
    sizes = [len(each.plain) for each in pieces]
    return Pool([each.plain for each in pieces], [each.deflated for each in pieces], sizes, sum(sizes) // len(sizes))


@cache
def _pools(language: str) -> tuple[Pool, Pool]:
    """Chapters, which make the bulk of a page, and passages, which make up the rest of its size."""
    passages = [sealed(_passage(number, texts)) for number, texts in enumerate(prose.passages(language))]
    chapters = [b"".join(passages[start : start + _CHAPTER]) for start in range(0, len(passages), _CHAPTER)]
    return _pool(chapters, _CHAPTERS), _pool(passages, _CHAPTER * _CHAPTERS)


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
    return piece(sealed(b'<ul class="more">\n%b</ul>\n' % b"".join(items)))


def _navigation(layout: int, pages: int) -> Piece:
    items = (_item(names, anchor(page)) for page, names in enumerate(paths(layout, pages)[:SECTIONS_END]))
    return piece(sealed(b'<nav class="main-nav" aria-label="Sections">\n<ul>\n%b</ul>\n</nav>\n' % b"".join(items)))


class Press:
    """Prints the pages of one web, served at one port."""

    def __init__(self, web: Web, port: int) -> None:
        self.web, self.port, pages = web, port, web.plan.pages
        self._pools = {language: _pools(language) for language in {host.language for host in web.hosts} | {"en"}}
        self._tops = [piece(sealed(themes.theme(number))) for number in range(themes.COUNT)]
        self._navigation = [_navigation(layout, pages) for layout in range(LAYOUTS)]
        self._blocks = [
            [_block(layout, block, pages) for block in range(block_count(pages))] for layout in range(LAYOUTS)
        ]
        self._broken_navigation = [piece(sealed(each.plain + themes.JUNK)) for each in self._navigation]
        self._middle = piece(sealed(themes.MIDDLE))
        self._origins = [b"http://%b:%d" % (host.name.encode(), port) for host in web.hosts]
        self._paths = [[path.encode() for path in paths(layout, pages)] for layout in range(LAYOUTS)]
        self._escaped = [[path.replace(b"&", b"&amp;") for path in names] for names in self._paths]
        self._anchors = [anchor(page).encode() for page in range(pages)]
        self._rolls = [self._roll(targets) for targets in web.rolls]

    def url(self, host: Host, path: str) -> bytes:
        return self._origins[host.index] + path.encode()

    def page(
        self, host: Host, page: int, *, version: int = 0, zipped: bool = False, edition: bytes = b"first"
    ) -> tuple[bytes, ...]:
        """The body of an ordinary page, in parts; another `edition` makes a near-duplicate of it."""
        web, name, layout, language = self.web, host.name.encode(), host.layout, host.language
        throw, (chapters, passages) = web.throw(host, page), self._pools[language]
        title = self._anchors[page] if page else name
        canonical = self._origins[host.index] + self._paths[layout][page]
        head = sealed(_HEAD % (language.encode(), title, name, title, name, page, canonical))
        lead = sealed(_LEAD % (title, title, self._anchors[throw.title % web.plan.pages], page, name, edition, version))
        long, short = self._text(host, page, version, chapters.mean, passages.mean)
        last = self._ending(host, page)
        top = self._tops[host.index % themes.COUNT]
        first = (self._broken_navigation if host.feature is Feature.MALFORMED else self._navigation)[layout]
        links = [self._blocks[layout][block] for block in throw.blocks]
        links += [self._rolls[roll] for roll in throw.rolls]
        if not zipped:
            return (
                head, top[0], first[0], lead,
                *map(chapters.plain.__getitem__, long), *map(passages.plain.__getitem__, short),
                self._middle[0], *[each[0] for each in links], last,
            )  # fmt: skip
        size = len(head) + len(top[0]) + len(first[0]) + len(lead) + len(self._middle[0])
        size += sum([len(each[0]) for each in links])
        size += sum(map(chapters.sizes.__getitem__, long)) + sum(map(passages.sizes.__getitem__, short))
        deflated = (
            stored(head), top[1], first[1], stored(lead),
            *map(chapters.deflated.__getitem__, long), *map(passages.deflated.__getitem__, short),
            self._middle[1], *[each[1] for each in links],
        )  # fmt: skip
        return gzipped(deflated, size, last)

    def _text(self, host: Host, page: int, version: int, chapter: int, passage: int) -> tuple[bytes, list[int]]:
        """Which chapters (a byte each) and passages make up the page, so that it gets the size it should have."""
        many, rest = divmod(max(0, self.web.size(host, page) - _FRAME), chapter)
        few = max(rest // passage, 0 if many else 1)
        key = b"%d/%d/%d/%d" % (self.web.plan.seed, host.index, page, version)
        dice = shake_128(key).digest(many + 2 * few)
        return dice[:many], [dice[at] << 2 | dice[at + 1] & 3 for at in range(many, len(dice), 2)]

    def _ending(self, host: Host, page: int) -> bytes:
        """The links to odd URLs where the page has them, and the foot."""
        if page >= SECTIONS_END:
            return themes.FOOT
        links = [self._foreign_link(child, 0) for child in self.web.children(host)] if page == 0 else []
        entries = self.web.entries(host)
        links += [_item(entry.path, entry.path, "nofollow" if entry.nofollow else "") for entry in entries]
        return b'<ul class="here">\n%b</ul>\n%b' % (b"".join(links), themes.FOOT)

    def _roll(self, targets: Sequence[tuple[int, int]]) -> Piece:
        links = b"".join(self._foreign_link(at, page) for at, page in targets)
        return piece(sealed(b'<ul class="elsewhere">\n%b</ul>\n' % links))

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
        body = b"".join(texts[number % len(texts)] for number in struct.unpack("<3H", chosen))
        links = b"".join(_item(link, f"On to {link}") for link in ("/", *odd.links))
        title = f"{odd.kind.capitalize()} {escape(odd.path)} of {host.name}"
        top = f'<!doctype html>\n<html lang="{host.language}">\n<head>\n<meta charset="utf-8">\n'
        head = f"{top}<title>{title}</title>\n{meta}"
        return b"%b</head>\n<body>\n<main>\n<h1>%b</h1>\n%b</main>\n<ul>\n%b</ul>\n%b" % (
            head.encode(), title.encode(), body, links, themes.FOOT,
        )  # fmt: skip
