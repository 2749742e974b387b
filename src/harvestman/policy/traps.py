"""Spider traps: URLs without end and with nothing new behind them. A trap stops a family of URLs, never a site.

Three judges. `refusal` knows what no honest URL looks like. `learn` counts pages of one shape that brought nothing new:
a hundred in a row stop the shape, and far fewer do when the URL looks like a calendar, a session, a list without end or
a choice of filters; such a shape is given rope with the size of its site: a trap costs about a page in a hundred.
`slipped` looks for the rest in a finished log.

Some traps make new shapes without end, and are counted and stopped as a family (see decision 0010):

    /guide/**    paths below /guide/ in which a word comes again: links that nest for ever, in every mixture
    /catalog?**  choices of filters at /catalog, whatever their names
    /service/*   pages right below /service/ that are named by words: a hundred shapes, all of the same text

CPU time per call: `refusal` 0.5 us, `caught` 0.1 us on a site without traps and 3 us on others, `shape_of` 2 us (4 for
a slug never met), `suspect` 2 us, `learn` 6 us for a new page, of which 3.5 are `novel`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from harvestman.config import Budget, Traps
from harvestman.model import Instant, SiteKey, SiteRecord, Trap
from harvestman.policy.novelty import EVERY, LOOSE, SAME, alike, farm, novel
from harvestman.policy.sites import site_of
from harvestman.policy.urls import host_of

SHAPES: Final = 64
"""Shapes and families under suspicion that a site's record has room for."""
TRAPS: Final = 128
"""Stopped shapes and families that a site's record has room for."""
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
SPREADING: Final = ("session id", "calendar")
"""Traps of several shapes that lead to one another: the views of a calendar, all that is linked with a session."""
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


# -- the family of a shape

_VARIES = ("{n}", "{x}", "{s}", "{date}")


def _below(shape: str) -> str:
    """/guide/** for a shape below /guide/."""
    return shape[: shape.find("/", 1) + 1] + "**"


def _choices(shape: str) -> str:
    """/catalog?** for a shape with a query at /catalog."""
    return shape.partition("?")[0] + "?**"


def _siblings(shape: str) -> str:
    """/service/* for a shape right below /service/ that keeps words of its last segment; empty for others."""
    if "?" in shape:
        return ""
    start, _, last = shape.rstrip("/").rpartition("/")
    return f"{start}/*" if start and last.partition(".")[0] not in _VARIES else ""


def _key(shape: str, name: str) -> str:
    """What pages of a shape are counted and stopped under, by what its URLs look like."""
    return _below(shape) if name == "repetition" else _choices(shape) if name == "facets" else shape


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
_ONE_FACET = re.compile(
    r"(?:[a-z]{1,12}_)?(?:filter|facet|refine|sort|colou?r|size|brand|price|style|material)(?:_?[a-z]{1,12})?(?:%5b|\[|=)"
    r"|order(?:_?by|_?dir)?=[a-z]|dir=(?:asc|desc)|view=(?:gallery|grid|list|mobile|print|table)$"
)
_FACETS = 5
_NAMES = {"session": "session id"}


def suspect(url: str) -> str:
    """The trap a URL looks like: a key of ROPE, or empty. Most such URLs are honest; what they bring must decide."""
    path, _, query = url[url.find("/", 8) :].lower().partition("?")
    if query:
        found = _OF_QUERY.search(query)
        if (found is None or found.lastgroup != "session") and _has_facets(query):
            return "facets"
        if found and found.lastgroup:
            return _NAMES.get(found.lastgroup, found.lastgroup)
    found = _OF_PATH.search(path)
    if found and found.lastgroup:
        return _NAMES.get(found.lastgroup, found.lastgroup)
    return "repetition" if path.count("/") > 2 and _again(path) else ""


def _path(url: str) -> str:
    return url[url.find("/", 8) :].lower().partition("?")[0]


def _has_facets(query: str) -> bool:
    """Several filters, or one that can be nothing else: viewforum.php?f=2 is a place, and so is index.php?view=news."""
    if "&" not in query:
        return _ONE_FACET.match(query) is not None
    return query.count("&") >= _FACETS - 1 or len(_FACET.findall(query)) > 1


def _again(path: str) -> int:
    """How many words below the first segment of a path were there before; numbers and letters are none.

    /10/10 is a date, /a/b/a a place on a disk and /servo/servo/wiki a project of its owner's name.
    """
    below = path.split("/")[2:]
    if len(below) == len(set(below)):
        return 0
    words = [text for text in below if len(text) > 1 and not text.isdigit()]
    return max(len(words) - len(set(words)), 2 * _repeats(path, 2))


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
    """Take in a page seen for the first time; the trap when its shape or family is stopped from now on.

    `links` are those of the page that were new to us. A suspicious page that leads to new pages of other, unsuspicious
    shapes does what such pages are for: a list whose text is all navigation, an empty day of a calendar that is used.
    """
    name = suspect(url)
    new = novel(site, simhash, duplicate, rules, suspicious=name != "")
    if new and not name and not site.shapes:
        return None
    shape = shape_of(url)
    key, family = _key(shape, name), "" if name else _siblings(shape)
    if shape == "/" or key in site.traps or family in site.traps:
        return None
    if new or (name and _leads_on(site, key, links)):
        if name:
            _count(site.shapes, key, max(site.shapes.get(key, 0) - 1, -CREDIT))
        elif (key in site.shapes or family in site.shapes) and _speaks(site, simhash):
            _relieve(site.shapes, key)
            _relieve(site.shapes, family)
        return None
    # A family is as large as its shapes are many: of a shape, only the first dull page counts.
    if family and key not in site.shapes and _add(site, family, 1, rules.shape_urls):
        return _stop(site, family, Trap(SAME, now, url))
    if _add(site, key, _weight(url, name), _limit(site, url, name, rules)):
        return _stop(site, key, Trap(name or SAME, now, url))
    return None


def _add(site: SiteRecord, key: str, weight: int, limit: int) -> bool:
    """Count a dull page; whether that was the last one."""
    count = site.shapes.pop(key, 0) + weight
    if count < limit:
        _count(site.shapes, key, count)
    return count >= limit


def _speaks(site: SiteRecord, simhash: int) -> bool:
    """Whether a new page speaks for its like: one without text does not, nor one that differs in a line or two."""
    return simhash != 0 and alike(site.recent[:-1], simhash, LOOSE) < 0


def _relieve(shapes: dict[str, int], key: str) -> None:
    count = shapes.pop(key, 0) - RELIEF
    if count > 0:
        shapes[key] = count


def _count(shapes: dict[str, int], shape: str, count: int) -> None:
    """Note it; where there is no room, the least suspicious other goes."""
    shapes[shape] = count
    if len(shapes) > SHAPES:
        del shapes[min((other for other in shapes if other not in (EVERY, shape)), key=shapes.__getitem__)]


def _leads_on(site: SiteRecord, key: str, links: Iterable[str]) -> bool:
    """Whether one of the links opens something of the site that is not the trap itself, its home or another trap."""
    return any(
        not suspect(link)
        and shape_of(link) not in ("/", key)
        and not caught(site, link)
        and site_of(host_of(link)) == site.site
        for link in links
    )


def _lone(url: str, name: str) -> bool:
    """Whether only one word of the path comes again: /news/sport/news/ may well be honest, so it takes two."""
    return name == "repetition" and _again(_path(url)) == 1


def _weight(url: str, name: str) -> int:
    return 2 if name and not _lone(url, name) else 1


def _limit(site: SiteRecord, url: str, name: str, rules: Traps) -> int:
    """The count that stops a shape. A site caught with one trap of a kind gets no rope for the next."""
    if not name:
        return rules.shape_urls
    least = 2 if _lone(url, name) else 1
    if any(trap.name == name and not trap.pardoned for trap in site.traps.values()):
        return least
    pages, most = ROPE[name]
    return min(2 * min(site.fetched // pages, most - 1) + least, rules.shape_urls)


def _stop(site: SiteRecord, key: str, trap: Trap) -> Trap:
    if len(site.traps) >= TRAPS:
        idle = {key: trap.refused for key, trap in site.traps.items() if not trap.pardoned}
        if idle:
            del site.traps[min(idle, key=idle.__getitem__)]
    trap.example = trap.example[:_LONGEST_EXAMPLE]
    site.traps[key] = trap
    return trap


def caught(site: SiteRecord, url: str, via: str = "") -> str:
    """The key in `site.traps` of the trap that a URL is part of; empty when it may go on. `via`: where it was found."""
    traps = site.traps
    if not traps:
        return ""
    shape = shape_of(url)
    if shape in traps:
        return "" if traps[shape].pardoned else shape
    for key in _families(url, shape, traps):
        return "" if traps[key].pardoned else key
    source = _source(via) if via else ""
    if source in traps and _spreads(traps[source], url) and via.startswith(url[: url.find("/", 8) + 1]):
        return source
    return ""


@lru_cache(maxsize=256)
def _source(via: str) -> str:
    """The shape of a page: its links come together, so it is worked out once for all of them."""
    return shape_of(via)


def _spreads(trap: Trap, url: str) -> bool:
    return trap.name in SPREADING and not trap.pardoned and suspect(url) == trap.name


def _families(url: str, shape: str, traps: Container[str]) -> Iterator[str]:
    """Those of the families stopped that a URL belongs to. The URL is looked at only where there is such a family."""
    key = _below(shape)
    if key in traps and _again(_path(url)):
        yield key
    key = _choices(shape) if "?" in url else _siblings(shape)
    if key in traps and (not key.endswith("?**") or suspect(url) == "facets"):
        yield key


def turned_away(site: SiteRecord, key: str, rules: Budget) -> Trap:
    """Count a URL that was not asked for, being `caught`. Where enough of them say the same, the site is flagged."""
    trap = site.traps[key]
    trap.refused += 1
    if trap.name == SAME and not site.flagged:
        site.flagged = farm(site, rules, spared=True)
    return trap


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
"""Shapes and families of all sites that a pass over the log keeps; of twice as many, the least wasteful are dropped."""
LEAST: Final = 20
"""Pages that make a finding."""
NEW_IN: Final = 10
"""A shape or family with fewer than one new page in so many is a finding."""
_LATEST = 16


class Finding(NamedTuple):
    """A shape or family that cost many pages and brought few."""

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
    """Find shapes and families without novelty in a crawl's pages (URL, digest, SimHash), the most wasteful first.

    Memory is bounded by `room`: a shape is forgotten only while twice as many others were met, and at least `room` of
    them had wasted as much.
    """
    seen: dict[tuple[SiteKey, str], _Seen] = {}
    for url, digest, simhash in records:
        site, name, shape = site_of(host_of(url)), suspect(url), shape_of(url)
        family = "" if name else _siblings(shape)
        for key in (_key(shape, name), family) if family else (_key(shape, name),):
            if (site, key) not in seen:
                if len(seen) >= 2 * room:
                    seen = dict(sorted(seen.items(), key=lambda item: item[1].wasted, reverse=True)[:room])
                seen[site, key] = _Seen(url)
            seen[site, key].add(simhash or int.from_bytes(digest[:8]))
    found = {key: each for key, each in seen.items() if each.pages >= LEAST and each.contents * NEW_IN < each.pages}
    return [
        Finding(site, shape, suspect(each.example) or SAME, each.pages, each.contents, each.example)
        for (site, shape), each in sorted(_once(found).items(), key=lambda item: item[1].wasted, reverse=True)
    ]


def _once(found: dict[tuple[SiteKey, str], _Seen]) -> dict[tuple[SiteKey, str], _Seen]:
    """Each waste under one name: that of the shape which has half of its family's, or else that of the family."""
    homes = {(site, key): (site, _siblings(key)) for site, key in found}
    alone = {home for key, home in homes.items() if home in found and home != key and _half(found[key], found[home])}
    return {
        key: each for key, each in found.items()
        if key not in alone and (homes[key] == key or homes[key] not in found or homes[key] in alone)
    }  # fmt: skip


def _half(shape: _Seen, family: _Seen) -> bool:
    return 2 * shape.wasted >= family.wasted
