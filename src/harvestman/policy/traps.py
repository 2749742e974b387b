"""Spider traps: URLs without end and with nothing new behind them. A trap stops a shape of URLs, never a site.

Three judges. `refusal` knows what no honest URL looks like. `learn` counts pages of one shape that brought nothing new:
a hundred in a row stop the shape, and far fewer do when the URL looks like a calendar, a session, a list without end or
a choice of filters; such a shape is given rope with the size of its site: a trap costs about a page in a hundred.
`slipped` looks for the rest in a finished log.

CPU time per call: `refusal` 0.5 us, `stopped` 0.1 us on a site without traps and 2 us on others, `shape_of` 2 us (4 for
a slug never met), `suspect` 2 us, `learn` 6 us for a new page, of which 3.5 are `novel`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from harvestman.config import Traps
from harvestman.model import Instant, SiteKey, SiteRecord, Trap
from harvestman.policy.novelty import EVERY, alike, novel
from harvestman.policy.sites import site_of
from harvestman.policy.urls import host_of

SHAPES: Final = 64
"""Shapes under suspicion that a site's record has room for."""
TRAPS: Final = 128
"""Stopped shapes that a site's record has room for."""
RELIEF: Final = 20
"""What a new page takes off its shape's count: a shape with less than one new page in twenty is stopped in the end."""
PARAMETERS: Final = 30
"""More of them in one URL are no page's address."""


class Rope(NamedTuple):
    """How many dull pages in a row a suspicious shape may have: one at once, one more for so many pages of its site."""

    pages: int
    most: int


ROPE: Final = {
    "session id": Rope(500, 8),
    "calendar": Rope(500, 8),
    "facets": Rope(500, 8),
    "repetition": Rope(500, 8),
    "pagination": Rope(100, 20),
}
"""By what a URL looks like. Lists get the most: they lead to what is not found elsewhere."""
CREDIT: Final = 40
"""A suspicious shape's new pages outweigh half as many dull ones to come, up to this."""

# -- the shape of a URL

_MANY_NAMES = 4
_DIGITS = re.compile(r"\d+")
_DATE = re.compile(r"\{y\}/\{n\}(?:/\{n\})?(?=/|$)")
_ISO_DATE = re.compile(r"\d{4}[-_.]\d\d?(?:[-_.]\d\d?)?")
_TOKEN = re.compile(
    r"(?=.*\d)(?:[0-9a-f]{8,}|[0-9A-F]{8,}|[0-9a-fA-F-]{32,36}|(?=.*[a-z])(?:(?=.*[A-Z])\w{8,}|\w{16,})"
    r"|(?=.*[A-Z])[0-9A-Z]{16,})"
)
_SEPARATOR = re.compile("[-_,+~]")
_LONGEST_WORD = 32
_LONGEST_SEGMENT = 64
_LONGEST_SHAPE = 200
_LONGEST_EXTENSION = 5


def shape_of(url: str) -> str:
    """The form of a URL without what varies: /articles/{date}/{s}, /item?id; the host does not matter."""
    path, mark, query = url[url.find("/", 8) :].partition("?")
    shape = "/".join([_segment(text) if len(text) <= _LONGEST_SEGMENT else "{s}" for text in path.split("/")])
    if "{y}" in shape:
        shape = _DATE.sub("{date}", shape).replace("{y}", "{n}")
    if mark:
        shape = f"{shape}?{_names(query)}"
    return shape[:_LONGEST_SHAPE]


@lru_cache(maxsize=8192)
def _segment(text: str) -> str:
    """{n} for a number, {y} for a number of four digits, {x} for a token, {s} for a slug of several words."""
    if text.isdigit():
        return "{y}" if len(text) == 4 else "{n}"
    if text.isalpha() and len(text) <= _LONGEST_WORD:
        return text
    stem, dot, end = text.rpartition(".")
    if not stem or len(end) > _LONGEST_EXTENSION:
        stem, dot, end = text, "", ""
    return _stem(stem) + dot + end


def _stem(text: str) -> str:
    if len(text) >= 8 and _TOKEN.fullmatch(text) and not text.isdigit():
        return "{x}"
    words = _SEPARATOR.split(text)
    if len(words) > 3 or len(text) > _LONGEST_WORD or "%" in text:
        return "{s}"
    if _ISO_DATE.fullmatch(text):
        return "{date}"
    return "-".join([_word(word) for word in words])


def _word(text: str) -> str:
    if text.isalpha():
        return text
    return "{x}" if len(text) >= 8 and _TOKEN.fullmatch(text) else _DIGITS.sub("{n}", text)


def _names(query: str) -> str:
    names = {part.partition("=")[0] for part in query.split("&")}
    if len(names) > _MANY_NAMES:
        return "{many}"
    return "&".join(sorted({_DIGITS.sub("{n}", name) for name in names}))


# -- what a URL looks like

_SESSION_NAMES = r"(?:php|j|asp|cf|w)?sess(?:ion)?[\w.]*|[\w.]{0,12}session_?id|\w{0,4}sid|zenid|cfid|cftoken"
_OF_QUERY = re.compile(
    rf"(?:^|[&;])(?:(?P<session>(?:{_SESSION_NAMES})=(?=[^&]*\d)[\w,.-]{{8,}})"
    r"|(?P<calendar>(?:\w{0,12}date|year|month|week|day|cal\w{0,12}|jahr|monat|annee|mois|anno|mese)=\d)"
    r"|(?P<pagination>(?:page\w{0,8}|pg|pn?|cpage|seite|start|offset|skip|from|limitstart)=\d))"
)
_OF_PATH = re.compile(
    r"[/;](?:(?P<session>jsessionid=|\([a-z]\([0-9a-z]|(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{8,}/)"
    r"|(?P<calendar>\d{4}(?:/\d\d?(?:/\d\d?)?|-\d\d(?:-\d\d)?)/?$"
    r"|(?:calend\w{2,5}|kalender|agenda|events?|termine|schedule)/(?:\w{1,12}/)?\d{4}[/-]?\d)"
    r"|(?P<pagination>(?:page|seite|pagina|p)[/-]?\d+/?$))"
)
_FACET = re.compile(
    r"(?:^|[&;])(?:\w{0,12}(?:filter|facet|refine|sort|order|colou?r|size|brand|price|view|style|material)\w{0,12}"
    r"|fq?|dir|per_?page|limit|rating)(?:%5b|\[|=)"
)
_FACETS = 5
_NAMES = {"session": "session id"}


def suspect(url: str) -> str:
    """The trap a URL looks like: a key of ROPE, or empty. Most such URLs are honest; what they bring must decide."""
    path, _, query = url[url.find("/", 8) :].lower().partition("?")
    if query:
        found = _OF_QUERY.search(query)
        if (found is None or found.lastgroup != "session") and "&" in query and _has_facets(query):
            return "facets"
        if found and found.lastgroup:
            return _NAMES.get(found.lastgroup, found.lastgroup)
    found = _OF_PATH.search(path)
    if found and found.lastgroup:
        return _NAMES.get(found.lastgroup, found.lastgroup)
    return "repetition" if path.count("/") > 2 and _repeats(path, 2) else ""


def _has_facets(query: str) -> bool:
    return query.count("&") >= _FACETS - 1 or len(_FACET.findall(query)) > 1


# -- what is refused unseen

_LONGEST_UNIT = 8
_NESTED = "%252525"
"""Escaped four times over: a page that redirects to itself with its own address as a parameter."""


def refusal(url: str, rules: Traps) -> str | None:
    """Why a URL is refused on sight. Called for every new link."""
    slashes = url.count("/") - 2
    if len(url) > rules.url_length:
        return "url length"
    if slashes > rules.site_depth:
        return "path depth"
    if url.count("&") >= PARAMETERS:
        return "parameters"
    if (slashes > 3 and _repeats(url.partition("?")[0], 3)) or _NESTED in url:
        return "repetition"
    return None


def _repeats(path: str, times: int) -> bool:
    """Whether segments in a row come again at once, `times` in all; a lone one must be a word, and come once more."""
    segments = path.split("/")
    spare = len(segments) - len(set(segments))
    if spare < times:
        return False
    for unit in range(1, min(len(segments) // times, _LONGEST_UNIT) + 1):
        run, needed = 0, unit * (times if unit == 1 else times - 1)
        for one, other in zip(segments, segments[unit:], strict=False):
            run = run + 1 if one == other and (unit > 1 or one.isalpha()) else 0
            if run >= needed:
                return True
    return False


# -- what is learned

_LONGEST_EXAMPLE = 300


def learn(
    site: SiteRecord, url: str, simhash: int, duplicate: bool, links: Sequence[str], now: Instant, rules: Traps
) -> Trap | None:
    """Take in a page seen for the first time; the trap when its shape is stopped from now on.

    `links` are those of the page that were new to us. A suspicious page that leads to new pages of other, unsuspicious
    shapes does what such pages are for: a list whose text is all navigation, an empty day of a calendar that is used.
    """
    name = suspect(url)
    new = novel(site, simhash, duplicate, rules, suspicious=name != "")
    if new and not name and not site.shapes:
        return None
    shape = shape_of(url)
    if shape == "/" or shape in site.traps:
        return None
    if new or (name and _leads_on(site, shape, links)):
        _relieve(site.shapes, shape, name)
        return None
    count = site.shapes.pop(shape, 0) + (2 if name else 1)
    if count >= _limit(site, name, rules):
        return _stop(site, shape, Trap(name or "same content", now, url))
    _count(site.shapes, shape, count)
    return None


def _relieve(shapes: dict[str, int], shape: str, name: str) -> None:
    if name:
        _count(shapes, shape, max(shapes.get(shape, 0) - 1, -CREDIT))
    elif shape in shapes:
        count = shapes.pop(shape) - RELIEF
        if count > 0:
            shapes[shape] = count


def _count(shapes: dict[str, int], shape: str, count: int) -> None:
    """Note it; where there is no room, the least suspicious other goes."""
    shapes[shape] = count
    if len(shapes) > SHAPES:
        del shapes[min((other for other in shapes if other not in (EVERY, shape)), key=shapes.__getitem__)]


def _leads_on(site: SiteRecord, shape: str, links: Iterable[str]) -> bool:
    """Whether one of the links opens something of the site that is not the trap itself, its home or another trap."""
    return any(
        not suspect(link)
        and shape_of(link) not in ("/", shape)
        and stopped(site, link) is None
        and site_of(host_of(link)) == site.site
        for link in links
    )


def _limit(site: SiteRecord, name: str, rules: Traps) -> int:
    """The count that stops a shape. A site caught with one trap of a kind gets no rope for the next."""
    if not name:
        return rules.shape_urls
    if any(trap.name == name and not trap.pardoned for trap in site.traps.values()):
        return 1
    pages, most = ROPE[name]
    return min(2 * min(site.fetched // pages, most - 1) + 1, rules.shape_urls)


def _stop(site: SiteRecord, key: str, trap: Trap) -> Trap:
    if len(site.traps) >= TRAPS:
        idle = {key: trap.refused for key, trap in site.traps.items() if not trap.pardoned}
        if idle:
            del site.traps[min(idle, key=idle.__getitem__)]
    trap.example = trap.example[:_LONGEST_EXAMPLE]
    site.traps[key] = trap
    return trap


def stopped(site: SiteRecord, url: str) -> Trap | None:
    """The trap that a URL's shape was stopped for. The caller counts it in `refused` when it acts on it."""
    if not site.traps:
        return None
    trap = site.traps.get(shape_of(url))
    return None if trap is None or trap.pardoned else trap


def refused(site: SiteRecord, name: str, url: str, now: Instant) -> Trap:
    """Record a `refusal` with the site. Its key is name and shape, so that it stops no other URL of the shape.

    A pardoned one is for the caller to let through.
    """
    key = f"{name} {shape_of(url)}"
    if key not in site.traps and len(site.traps) >= TRAPS // 2:
        key = f"{name} {EVERY}"
    trap = site.traps.get(key) or _stop(site, key, Trap(name, now, url))
    trap.refused += 1
    return trap


def pardon(site: SiteRecord, key: str) -> bool:
    """Let a shape go on, for good; False when there is no such trap."""
    trap = site.traps.get(key)
    if trap is None:
        return False
    trap.pardoned = True
    return True


# -- pages with too many links

FARM_LINKS: Final = 10
"""A tenth of the links a page may have make a link farm when they lead to other sites ..."""
FARM_SHARE: Final = 0.8
"""... and most of the page's links do."""


class Fan(NamedTuple):
    """What is done with the links of a page that has too many."""

    name: str
    keep: int
    """The first so many are followed."""
    important: bool
    """Whether they pass importance on."""


def fan_out(foreign: int, total: int, rules: Traps) -> Fan | None:
    """Judge a page by its links, and by those of them that lead to other sites; None for an ordinary page.

    A link farm's links are followed, for sites have to earn their budgets anyway; they only count for nothing.
    """
    if foreign * FARM_LINKS > rules.fan_out and foreign > FARM_SHARE * total:
        return Fan("link farm", rules.fan_out, important=False)
    if total > rules.fan_out:
        return Fan("fan-out", rules.fan_out, important=True)
    return None


# -- what slipped through

ROOM: Final = 20_000
"""Shapes of all sites that a pass over the log keeps; of twice as many, those that wasted least are dropped."""
LEAST: Final = 20
"""Pages that make a finding."""
NEW_IN: Final = 10
"""A shape with fewer than one new page in so many is a finding."""
_LATEST = 16


class Finding(NamedTuple):
    """A shape that cost many pages and brought few."""

    site: SiteKey
    shape: str
    name: str
    pages: int
    contents: int
    """Pages unlike the ones of the shape before them."""
    example: str


class _Seen:
    __slots__ = ("contents", "example", "latest", "pages")

    def __init__(self, example: str) -> None:
        self.example = example
        self.pages = self.contents = 0
        self.latest: list[int] = []

    def add(self, content: int) -> None:
        self.pages += 1
        if alike(self.latest, content) < 0:
            self.contents += 1
            self.latest.append(content)
            del self.latest[:-_LATEST]

    @property
    def wasted(self) -> int:
        return self.pages - self.contents


def slipped(records: Iterable[tuple[str, bytes, int]], room: int = ROOM) -> list[Finding]:
    """Find shapes without novelty in a crawl's pages (URL, digest, SimHash), the most wasteful first.

    Memory is bounded by `room`: a shape is forgotten only while twice as many others were met, and at least `room` of
    them had wasted as much.
    """
    seen: dict[tuple[SiteKey, str], _Seen] = {}
    for url, digest, simhash in records:
        key = site_of(host_of(url)), shape_of(url)
        if key not in seen:
            if len(seen) >= 2 * room:
                seen = dict(sorted(seen.items(), key=lambda item: item[1].wasted, reverse=True)[:room])
            seen[key] = _Seen(url)
        seen[key].add(simhash or int.from_bytes(digest[:8]))
    found = [(key, each) for key, each in seen.items() if each.pages >= LEAST and each.contents * NEW_IN < each.pages]
    found.sort(key=lambda item: item[1].wasted, reverse=True)
    return [
        Finding(site, shape, suspect(each.example) or "same content", each.pages, each.contents, each.example)
        for (site, shape), each in found
    ]
