"""Turns the model into HTML: a few bytes of a page's own, the rest joined from pieces made once.

A hot loop, ugly on purpose in `Press.page` alone: the server must cost less than 0.1 ms a request
(`python -m harvestman.sim.cost` measures it), and this is the largest part of it that is ours.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from typing import NamedTuple

from xxhash import xxh3_128_digest

from harvestman.sim import prose, themes
from harvestman.sim.fragments import HEADER, SEAL_SIZE, Piece, end, joined, piece, seal, sealed, start
from harvestman.sim.hosts import LAYOUTS, Feature, Host
from harvestman.sim.listings import FEEDS
from harvestman.sim.odd import Kind, Odd
from harvestman.sim.paths import anchor, block_count, block_pages, paths, spelling
from harvestman.sim.web import HUB_ROLLS, SECTIONS_END, Web

_MALFORMED = Feature.MALFORMED
"""By itself: to take a member out of its class costs more than to compare it."""
_CHAPTER = 4
"""Passages in a chapter."""
_CHAPTERS = 256
_PASSAGES = struct.Struct("<4H")
"""A page has fewer passages beside its chapters than would make another chapter."""
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


def _feed(host: Host) -> str:
    """What a home page says of the host's feed."""
    if host.feed not in FEEDS:
        return ""
    return f'<link rel="alternate" type="application/{host.feed}+xml" href="{FEEDS[host.feed]}">\n'


class Press:
    """Prints the pages of one web, served at one port."""

    def __init__(self, web: Web, port: int) -> None:
        self.web, self.port, self._pages, self._seed = web, port, web.plan.pages, web.plan.seed
        pages = self._pages
        self._pools = {language: _pools(language) for language in {host.language for host in web.hosts} | {"en"}}
        self._blocks = [
            [_block(layout, block, pages) for block in range(block_count(pages))] for layout in range(LAYOUTS)
        ]
        self._navigation = [_navigation(layout, pages) for layout in range(LAYOUTS)]
        self._tops: dict[int, Piece] = {}
        self._middle = piece(sealed(themes.MIDDLE))
        self._origins = [f"http://{host.name}:{port}" for host in web.hosts]
        self._titles = [anchor(page) for page in range(pages)]
        self._rolls = [self._roll(targets) for targets in web.rolls]

    def url(self, host: Host, path: str) -> str:
        return self._origins[host.index] + path

    def page(
        self, host: Host, page: int, *, version: int = 0, zipped: bool = False, edition: str = "first"
    ) -> tuple[bytes, ...]:
        """The body of an ordinary page, in parts; another `edition` makes a near-duplicate of it."""
        index, name, layout, language = host.index, host.name, host.layout, host.language
        (one, two, three), (first, second, third), echo, size = self.web.throw(host, page)
        title = self._titles[page] if page else name
        head = (
            f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
            f'<title>{title} | {name}</title>\n<meta name="description" content="{title} on {name}, page {page}.">\n'
            f'<link rel="canonical" href="{self._origins[index]}{paths(layout, self._pages)[page]}">\n'
            f"{'' if page else _feed(host)}"
        ).encode()
        lead = (
            f'<main>\n<article>\n<h1>{title}</h1>\n<p class="lead">{title} {self._titles[echo % self._pages]}, '
            f"number {page} of {name}, {edition} edition {version}.</p>\n"
        ).encode()
        chapters, passages = self._pools[language]
        long, short = self._text(index, page, version, max(0, size - _FRAME), chapters.mean, passages.mean)
        top, middle, blocks, rolls = self._top(host), self._middle, self._blocks[layout], self._rolls
        links = (blocks[first], blocks[second], blocks[third], rolls[one], rolls[two], rolls[three])
        last = themes.FOOT if page >= SECTIONS_END else self._ending(host, page)
        if not zipped:
            return (
                head, seal(head), top.plain, lead, seal(lead),
                *map(chapters.plain.__getitem__, long), *map(passages.plain.__getitem__, short),
                middle.plain, *[each.plain for each in links], last,
            )  # fmt: skip
        before, between = len(head) + SEAL_SIZE, len(lead) + SEAL_SIZE
        (_, deflated, over), (_, ending, under) = top, middle
        (_, a, u), (_, b, v), (_, c, w), (_, d, x), (_, e, y), (_, f, z) = links
        text = sum(map(chapters.sizes.__getitem__, long)) + sum(map(passages.sizes.__getitem__, short))
        return (
            HEADER, start(before), head, seal(head), deflated, start(between), lead, seal(lead),
            *map(chapters.deflated.__getitem__, long), *map(passages.deflated.__getitem__, short),
            ending, a, b, c, d, e, f, *end(before + over + between + text + under + u + v + w + x + y + z, last),
        )  # fmt: skip

    def _top(self, host: Host) -> Piece:
        """Theme and navigation, which are the same on all pages of a host, and on those of many hosts."""
        broken = host.feature is _MALFORMED
        key = (host.index % themes.COUNT * LAYOUTS + host.layout) * 2 + broken
        if key not in self._tops:
            theme, navigation = piece(sealed(themes.theme(host.index % themes.COUNT))), self._navigation[host.layout]
            if broken:
                navigation = piece(sealed(navigation.plain + themes.JUNK))
            self._tops[key] = joined(theme, navigation)
        return self._tops[key]

    def _text(
        self, index: int, page: int, version: int, size: int, chapter: int, passage: int
    ) -> tuple[bytes, Iterable[int]]:
        """Which chapters (a byte each) and passages make up so many bytes of the page."""
        many, rest = divmod(size, chapter)
        few = rest // passage or (0 if many else 1)
        dice = xxh3_128_digest(b"%d/%d/%d" % (index, page, version), self._seed)
        while len(dice) < many + _PASSAGES.size:
            dice += xxh3_128_digest(dice, self._seed)
        return dice[:many], [number & 1023 for number in _PASSAGES.unpack_from(dice, many)[:few]]

    def _ending(self, host: Host, page: int) -> bytes:
        """The foot of a home or section page: the links to odd URLs come before it."""
        links = [self._foreign_link(child, 0) for child in self.web.children(host)] if page == 0 else []
        entries = self.web.entries(host)
        links += [_item(entry.path, entry.path, "nofollow" if entry.nofollow else "") for entry in entries]
        return b'<ul class="here">\n%b</ul>\n%b' % (b"".join(links), themes.FOOT)

    def _roll(self, targets: Sequence[tuple[int, int]]) -> Piece:
        links = b"".join(self._foreign_link(at, page) for at, page in targets)
        return piece(sealed(b'<ul class="elsewhere">\n%b</ul>\n' % links))

    def _foreign_link(self, at: int, page: int) -> bytes:
        """Links to other hosts are absolute; every fifth host is linked without the scheme."""
        origin, path = self._origins[at], self.web.path(self.web.hosts[at], page).replace("&", "&amp;")
        start = origin.removeprefix("http:") if at % 5 == 4 else origin
        text = self._titles[page] if page else origin.removeprefix("http://")
        return f'<li><a href="{start}{path}">{text}</a></li>\n'.encode()

    def odd_page(self, host: Host, odd: Odd) -> bytes:
        """The body of an odd URL that is a page: short, with the links it has."""
        if odd.kind in (Kind.TRAP, Kind.FARM):
            return self._trap_page(host, odd)
        meta = f'<meta name="robots" content="{odd.tag}">\n' if odd.tag and ":" not in odd.tag else ""
        texts = self._pools[host.language][1].plain
        chosen = _PASSAGES.unpack_from(xxh3_128_digest(f"{host.name}{odd.path}".encode(), self._seed))
        body = b"".join(texts[number % len(texts)] for number in chosen[:3])
        links = b"".join(_item(link, f"On to {link}") for link in ("/", *odd.links))
        if odd.kind is Kind.HUB:
            links += b"".join(roll.plain for roll in self._rolls[:HUB_ROLLS])
        title = f"{odd.kind.capitalize()} {escape(odd.path)} of {host.name}"
        top = f'<!doctype html>\n<html lang="{host.language}">\n<head>\n<meta charset="utf-8">\n'
        head = f"{top}<title>{title}</title>\n{meta}"
        return b"%b</head>\n<body>\n<main>\n<h1>%b</h1>\n%b</main>\n<ul>\n%b</ul>\n%b" % (
            head.encode(), title.encode(), body, links, themes.FOOT,
        )  # fmt: skip

    def _trap_page(self, host: Host, odd: Odd) -> bytes:
        """A page like any other of its host, whose text is that of all in the trap but for its own address."""
        texts = self._pools[host.language][1].plain
        chosen = _PASSAGES.unpack_from(xxh3_128_digest(host.name.encode(), self._seed))
        title = f"{host.feature.capitalize()} {escape(odd.path.strip('/'))}"
        base = odd.path.rpartition("/")[0] + "/" if odd.path.endswith(".html") else ""
        links = b"".join(_item(link.removeprefix(base), link) for link in odd.links)
        head = (
            f'<!doctype html>\n<html lang="{host.language}">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        )
        return b"%b%b<main>\n<h1>%b</h1>\n%b</main>\n<ul>\n%b</ul>\n%b" % (
            head.encode(), self._top(host).plain, title.encode(),
            b"".join(texts[number % len(texts)] for number in chosen), links, themes.FOOT,
        )  # fmt: skip
