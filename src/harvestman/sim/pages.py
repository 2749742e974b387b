"""Turns the model into HTML: a few bytes of a page's own, the rest joined from pieces made once.

The server must cost less than 0.1 ms a request (`python -m harvestman.sim.cost` measures it), so `Press.page` does no
more than choose; `fragments` joins.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import NamedTuple

from xxhash import xxh3_128_digest

from harvestman.sim import prose, themes
from harvestman.sim.fragments import Piece, Shelf, piece, sealed
from harvestman.sim.hosts import LAYOUTS, Feature, Host
from harvestman.sim.listings import FEEDS
from harvestman.sim.odd import Kind, Odd
from harvestman.sim.paths import anchor, block_count, block_pages, paths, spelling
from harvestman.sim.web import HUB_ROLLS, SECTIONS_END, Web

_MALFORMED = Feature.MALFORMED
"""By itself: to take a member out of its class costs more than to compare it."""
_CHAPTER = 4
"""Passages in a chapter."""
_PASSAGES = struct.Struct("<4H")
"""A page has fewer passages beside its chapters than would make another chapter."""
_FRAME = 10_800
"""About the size of a page without its passages."""


class Pool(NamedTuple):
    """Text in pieces of about one size, which stand side by side on the shelf."""

    first: int
    size: int
    mean: int
    """Bytes in a piece."""


class Form(NamedTuple):
    """What the pages of a host have in common."""

    name: str
    start: str
    origin: str
    paths: tuple[str, ...]
    theme: int
    navigation: int
    blocks: list[int]
    chapters: Pool
    passages: Pool


@cache
def _pieces(language: str) -> tuple[list[Piece], list[Piece]]:
    """Chapters, which make the bulk of a page, and passages, which make up the rest of its size."""
    passages = [sealed(_passage(number, texts)) for number, texts in enumerate(prose.passages(language))]
    chapters = [b"".join(passages[start : start + _CHAPTER]) for start in range(0, len(passages), _CHAPTER)]
    return [piece(text) for text in chapters], [piece(text) for text in passages]


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


def _navigation(layout: int, pages: int, broken: bool) -> bytes:
    items = (_item(names, anchor(page)) for page, names in enumerate(paths(layout, pages)[:SECTIONS_END]))
    whole = sealed(b'<nav class="main-nav" aria-label="Sections">\n<ul>\n%b</ul>\n</nav>\n' % b"".join(items))
    return sealed(whole + themes.JUNK) if broken else whole


def feed_link(host: Host) -> str:
    """What a home page says of the host's feed."""
    if host.feed not in FEEDS:
        return ""
    return f'<link rel="alternate" type="application/{host.feed}+xml" href="{FEEDS[host.feed]}">\n'


class Press:
    """Prints the pages of one web, served at one port."""

    def __init__(self, web: Web, port: int) -> None:
        self.web, self.port, self._pages, self._seed = web, port, web.plan.pages, web.plan.seed
        pages = self._pages
        self._shelf = shelf = Shelf()
        self._origins = [f"http://{host.name}:{port}" for host in web.hosts]
        self._titles = [anchor(page) for page in range(pages)]
        for targets in web.rolls:  # first, so that the number of a roll is that of its piece
            shelf.add(self._roll(targets))
        self._pools = {
            language: (self._pool(chapters), self._pool(passages))
            for language in {host.language for host in web.hosts} | {"en"}
            for chapters, passages in [_pieces(language)]
        }
        self._blocks = [
            [shelf.add(_block(layout, block, pages)) for block in range(block_count(pages))]
            for layout in range(LAYOUTS)
        ]
        self._forms: dict[int, Form] = {}
        self._middle = shelf.add(piece(sealed(themes.MIDDLE)))
        self._themes = [shelf.add(piece(sealed(themes.theme(number)))) for number in range(themes.COUNT)]
        self._navigations = [
            [shelf.add(piece(_navigation(layout, pages, broken))) for layout in range(LAYOUTS)]
            for broken in (False, True)
        ]

    def _pool(self, pieces: Sequence[Piece]) -> Pool:
        first, *_ = [self._shelf.add(each) for each in pieces]
        return Pool(first, len(pieces), sum(len(each.plain) for each in pieces) // len(pieces))

    def url(self, host: Host, path: str) -> str:
        return self._origins[host.index] + path

    def page(self, host: Host, page: int, *, version: int = 0, zipped: bool = False, edition: str = "first") -> bytes:
        """The body of an ordinary page; another `edition` makes a near-duplicate of it."""
        index = host.index
        name, start, origin, names, theme, navigation, blocks, chapters, passages = self._forms.get(
            index
        ) or self._form(host)
        (one, two, three), (first, second, third), echo, size = self.web.throw(host, page)
        title = self._titles[page] if page else name
        head = (
            f'{start}{title} | {name}</title>\n<meta name="description" content="{title} on {name}, page {page}.">\n'
            f'<link rel="canonical" href="{origin}{names[page]}">\n{"" if page else feed_link(host)}'
        )
        lead = (
            f'<main>\n<article>\n<h1>{title}</h1>\n<p class="lead">{title} {self._titles[echo % self._pages]}, '
            f"number {page} of {name}, {edition} edition {version}.</p>\n"
        )
        parts: list[bytes | int] = [
            head.encode(), theme, navigation, lead.encode(),
            *self._text(b"%d/%d/%d" % (index, page, version), size - _FRAME, chapters, passages),
            self._middle, blocks[first], blocks[second], blocks[third], one, two, three,
        ]  # fmt: skip
        last = themes.FOOT if page >= SECTIONS_END else self._ending(host, page)
        return self._shelf.zipped(parts, last) if zipped else self._shelf.plain(parts, last)

    def _form(self, host: Host) -> Form:
        """Made when it is first asked for."""
        form = self._forms[host.index] = Form(
            host.name,
            f'<!doctype html>\n<html lang="{host.language}">\n<head>\n<meta charset="utf-8">\n<title>',
            self._origins[host.index],
            paths(host.layout, self._pages),
            *self._top(host),
            self._blocks[host.layout],
            *self._pools[host.language],
        )
        return form

    def _top(self, host: Host) -> tuple[int, int]:
        """Theme and navigation, which are the same on all pages of a host, and on those of many hosts."""
        return self._themes[host.index % themes.COUNT], self._navigations[host.feature is _MALFORMED][host.layout]

    def _text(self, key: bytes, size: int, long: Pool, short: Pool) -> list[int]:
        """Which chapters and passages make up so many bytes."""
        chapter, chapters, mean = long
        passage, passages, mean_passage = short
        many, rest = divmod(size, mean) if size > 0 else (0, 0)
        few = rest // mean_passage or (0 if many else 1)
        dice = xxh3_128_digest(key, self._seed)
        while len(dice) < many + _PASSAGES.size:
            dice += xxh3_128_digest(dice, self._seed)
        text = [chapter + number % chapters for number in dice[:many]]
        for number in _PASSAGES.unpack_from(dice, many)[:few]:
            text.append(passage + number % passages)  # noqa: PERF401  # they are few
        return text

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
        body = self._passages(host, f"{host.name}{odd.path}", 3)
        links = b"".join(_item(link, f"On to {link}") for link in ("/", *odd.links))
        if odd.kind is Kind.HUB:
            links += self._shelf.plain(range(HUB_ROLLS))
        title = f"{odd.kind.capitalize()} {escape(odd.path)} of {host.name}"
        top = f'<!doctype html>\n<html lang="{host.language}">\n<head>\n<meta charset="utf-8">\n'
        head = f"{top}<title>{title}</title>\n{meta}"
        return b"%b</head>\n<body>\n<main>\n<h1>%b</h1>\n%b</main>\n<ul>\n%b</ul>\n%b" % (
            head.encode(), title.encode(), body, links, themes.FOOT,
        )  # fmt: skip

    def _trap_page(self, host: Host, odd: Odd) -> bytes:
        """A page like any other of its host, whose text is that of all in the trap but for its own address."""
        title = f"{host.feature.capitalize()} {escape(odd.path.strip('/'))}"
        base = odd.path.rpartition("/")[0] + "/" if odd.path.endswith(".html") else ""
        links = b"".join(_item(link.removeprefix(base), link) for link in odd.links)
        head = (
            f'<!doctype html>\n<html lang="{host.language}">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        )
        return b"%b%b<main>\n<h1>%b</h1>\n%b</main>\n<ul>\n%b</ul>\n%b" % (
            head.encode(), self._shelf.plain(self._top(host)), title.encode(),
            self._passages(host, host.name, 4), links, themes.FOOT,
        )  # fmt: skip

    def _passages(self, host: Host, key: str, count: int) -> bytes:
        """Text in the language of a host, the same for the same key."""
        first, passages, _ = self._pools[host.language][1]
        chosen = _PASSAGES.unpack_from(xxh3_128_digest(key.encode(), self._seed))
        return self._shelf.plain([first + number % passages for number in chosen[:count]])
