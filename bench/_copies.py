"""Pairs of pages with a label: do they say the same? What near-duplicate detection is measured on.

The labels were written down before anything was tuned. Chance comes from a seed: every run makes the same pairs.

From the simulated web, whose plan knows what is a copy of what:

    same    edition     an ordinary page and the near-duplicate of it that its host serves elsewhere
            farm        two pages of a content farm: the same words for every town
    other   sibling     two ordinary pages of one host: one theme, one navigation, some common passages
            stranger    ordinary pages of two hosts of one theme

From real pages (never copied: read where they lie, edited in memory). What belongs to the article is told by the text
that people marked, so an edit knows body from boilerplate:

    same    boilerplate every run of words outside the body is replaced by words of another page's boilerplate
            dates       numbers outside the body change; a dateline with counters comes before the body
            ads         three advertisements of 8 to 20 words are put between the paragraphs of the body
            together    all three at once
            small       1 to 3 % of the words of the body are replaced, left out or added, each at a place of its own
    other   large       30 to 60 % of the sentences of the body are replaced by sentences of another article
            template    the whole body is that of another article: another page of the same site
            stranger    every two of the pages as they are

A page with fewer than 50 words in its body that are recognised in the markup is left out, and so are Readability's
artificial documents ("lorem ipsum ..."): they are near-duplicates of each other, and nobody's pages.
"""

from __future__ import annotations

import gzip
import json
import re
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape, unescape
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Final

from harvestman.sim.hosts import Feature
from harvestman.sim.odd import Kind, odd_urls
from harvestman.sim.pages import Press
from harvestman.sim.plan import Plan
from harvestman.sim.web import Web

SAME: Final = ("edition", "farm", "boilerplate", "dates", "ads", "together", "small")
"""Kinds of pairs that are near-duplicates; all others are not."""
FEWEST: Final = 50
_PIECES = re.compile(r"(<script\b.*?</script>|<style\b.*?</style>|<!--.*?-->|<[^>]*>)", re.DOTALL | re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_NUMBER = re.compile(r"\d+")
_BLOCK = re.compile(r"<(p|div|section|article|h[1-6])\b", re.IGNORECASE)
_ADS = (
    "Subscribe now and save half of the price for the first twelve months of your membership",
    "Advertisement: the new electric family car with a range of five hundred miles is here",
    "Sign up for our newsletter to get the best stories of the week straight to your inbox",
    "Sponsored: seven mistakes that almost everybody makes when buying a mattress online today",
    "Read more: what we know so far, and what the experts say will happen next year",
    "Download the app for free and never miss a story again, on any of your devices",
)


@dataclass(frozen=True, slots=True)
class Case:
    """A pair: bodies of two pages, and of which kind the pair is."""

    kind: str
    first: int
    """Which of the pages it is about ..."""
    second: int
    """... and which it is compared with."""

    @property
    def same(self) -> bool:
        return self.kind in SAME


@dataclass(slots=True)
class Labelled:
    """Pages, and pairs of them."""

    pages: list[bytes]
    cases: list[Case]

    def add(self, page: bytes) -> int:
        self.pages.append(page)
        return len(self.pages) - 1


# -- the simulated web


def simulated(seed: int = 7, hosts: int = 900, pages: int = 12) -> Labelled:
    """Pairs of the web of one plan."""
    web = Web(Plan(hosts=hosts, pages=pages, seed=seed, profile="mixed"))
    press, made = Press(web, 80), Labelled([], [])
    siblings: list[list[int]] = []
    for host in web.hosts:
        if host.feature is not Feature.DUPLICATES:
            continue
        own = [made.add(press.page(host, page)) for page in range(pages)]
        for odd in odd_urls(host.feature).values():
            if odd.kind is Kind.NEAR:
                copy = made.add(press.page(host, odd.like % pages, edition="another"))
                made.cases.append(Case("edition", own[odd.like % pages], copy))
        made.cases += [Case("sibling", *pair) for pair in combinations(own, 2)]
        siblings.append(own)
    for first, second in combinations(siblings, 2):
        made.cases += [Case("stranger", *pair) for pair in zip(first, second, strict=True)]
    _farms(Web(Plan(hosts=200, pages=pages, seed=seed, profile="wild")), made)
    return made


def _farms(web: Web, made: Labelled) -> None:
    press = Press(web, 80)
    for host in web.hosts:
        if host.feature is Feature.FARM:
            entries = (web.odd(host, path) for path in _offers(web, host.name))
            farmed = [made.add(press.odd_page(host, odd)) for odd in entries if odd is not None]
            made.cases += [Case("farm", *pair) for pair in combinations(farmed, 2)]


def _offers(web: Web, name: str) -> list[str]:
    """A few URLs of a content farm: its door and what it leads to."""
    host = web.by_name[name]
    door = next(entry.path for entry in web.entries(host) if entry.path.startswith("/service/"))
    odd = web.odd(host, door)
    return [door, *(odd.links[:3] if odd else ())]


# -- real pages


@dataclass(slots=True)
class Source:
    """A real page in pieces: tags, and runs of text that are the article's or are not."""

    pieces: list[str]
    body: list[int]
    """Which pieces are text of the article ..."""
    frame: list[int]
    """... and which are any other text."""

    def words(self, places: Sequence[int]) -> list[str]:
        return [word for place in places for word in self.pieces[place].split()]

    def page(self, changed: dict[int, str]) -> bytes:
        return "".join(changed.get(place, piece) for place, piece in enumerate(self.pieces)).encode()


Edit = Callable[[Source, Source, Random], dict[int, str]]
"""What is changed in the pieces of a page; the other page lends its words."""


def real(suites: Path, seed: int = 7) -> Labelled:
    """Pairs of real pages, each of them edited in every way."""
    sources = [source for source in _sources(suites) if _fit(source.words(source.body))]
    made = Labelled([], [])
    originals = [made.add(source.page({})) for source in sources]
    for number, (source, original) in enumerate(zip(sources, originals, strict=True)):
        for kind, edit in EDITS.items():
            chance = Random(f"{seed}/{number}/{kind}")
            other = sources[(number + chance.randrange(1, len(sources))) % len(sources)]
            made.cases.append(Case(kind, original, made.add(source.page(edit(source, other, chance)))))
    made.cases += [Case("stranger", *pair) for pair in combinations(originals, 2)]
    return made


def _fit(words: Sequence[str]) -> bool:
    return len(words) >= FEWEST and "ipsum" not in words


def _sources(suites: Path) -> Iterator[Source]:
    folder = suites / "extract"
    for row in map(json.loads, (folder / "aeb.jsonl").open(encoding="utf-8")):
        yield _source(gzip.decompress((folder / row["file"]).read_bytes()), row["text"])
    texts = {row["file"]: row["text"] for row in map(json.loads, (folder / "readability.jsonl").open(encoding="utf-8"))}
    with tarfile.open(folder / "readability_html.tar.xz") as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None and member.name in texts:
                yield _source(file.read(), texts[member.name])


def _source(markup: bytes, article: str) -> Source:
    pieces = _PIECES.split(markup.decode("utf-8", "replace"))
    known = _plain(article)
    body: list[int] = []
    frame: list[int] = []
    begun = False
    for place, piece in enumerate(pieces):
        if piece.startswith("<"):
            begun = begun or piece[:5].lower() == "<body"
        elif begun and (plain := _plain(piece)):
            (body if len(plain) > 20 and plain in known else frame).append(place)
    return Source(pieces, body, frame)


def _plain(text: str) -> str:
    return " ".join(unescape(text).split())


def _boilerplate(source: Source, other: Source, chance: Random) -> dict[int, str]:
    lent = other.words(other.frame) or ["Menu"]
    changed: dict[int, str] = {}
    at = chance.randrange(len(lent))
    for place in source.frame:
        count = len(source.pieces[place].split())
        changed[place] = " ".join(lent[(at + step) % len(lent)] for step in range(count)) + " "
        at += count
    return changed


def _dates(source: Source, other: Source, chance: Random) -> dict[int, str]:
    changed = {
        place: _NUMBER.sub(lambda found: str(chance.randrange(1, 10 ** len(found[0]))), source.pieces[place])
        for place in source.frame
    }
    line = (
        f"<p>Updated {chance.randrange(1, 29)} March {chance.randrange(2019, 2026)}, {chance.randrange(24)}:15. "
        f"{chance.randrange(10_000):,} views, {chance.randrange(500)} comments, {chance.randrange(900)} shares</p>"
    )
    return changed | _before(source, source.body[0], line)


def _ads(source: Source, other: Source, chance: Random) -> dict[int, str]:
    changed: dict[int, str] = {}
    for place in sorted(chance.sample(source.body, min(3, len(source.body)))):
        words = chance.choice(_ADS).split()
        text = " ".join(words[: chance.randrange(8, 21)])
        changed |= _before(source, place, f'<div class="promo"><p>{text}.</p></div>')
    return changed


def _before(source: Source, place: int, block: str) -> dict[int, str]:
    """A block put in front of the paragraph that a run of text is in."""
    start = next((at for at in range(place - 1, -1, -1) if _BLOCK.match(source.pieces[at])), place)
    return {start: block + source.pieces[start]}


def _together(source: Source, other: Source, chance: Random) -> dict[int, str]:
    return _boilerplate(source, other, chance) | _dates_line(source, other, chance) | _ads(source, other, chance)


def _dates_line(source: Source, other: Source, chance: Random) -> dict[int, str]:
    """The dateline alone: the numbers of the frame are gone with its words."""
    return {place: text for place, text in _dates(source, other, chance).items() if place not in set(source.frame)}


def _small(source: Source, other: Source, chance: Random) -> dict[int, str]:
    lent = [word for word in other.words(other.body) if word.isalpha()] or ["other"]
    rate = chance.uniform(0.01, 0.03)
    total = len(source.words(source.body))
    touched = set(chance.sample(range(total), max(1, round(rate * total))))
    changed: dict[int, str] = {}
    at = 0
    for place in source.body:
        words: list[str] = []
        for word in source.pieces[place].split():
            if at not in touched:
                words.append(word)
            else:
                deed = chance.randrange(3)
                words += [chance.choice(lent)] if deed == 0 else [] if deed == 1 else [word, chance.choice(lent)]
            at += 1
        changed[place] = f" {' '.join(words)} "
    return changed


def _large(source: Source, other: Source, chance: Random) -> dict[int, str]:
    """Whole sentences are replaced until a part of all words, drawn beforehand, is new."""
    lent = _sentences(other)
    places = [(place, number) for place in source.body for number, _ in enumerate(_split(source.pieces[place]))]
    chance.shuffle(places)
    wanted = chance.uniform(0.3, 0.6) * len(source.words(source.body))
    split = {place: _split(source.pieces[place]) for place in source.body}
    at = chance.randrange(len(lent))
    for place, number in places:
        if wanted <= 0:
            break
        old = len(split[place][number].split())
        new: list[str] = []
        while len(new) < old:
            new += lent[at % len(lent)].split()
            at += 1
        split[place][number] = " ".join(new[: max(old, 1)])
        wanted -= old
    return {place: f" {' '.join(sentences)} " for place, sentences in split.items()}


def _template(source: Source, other: Source, chance: Random) -> dict[int, str]:
    """Each run of the body holds as many words of the other article as it held of its own; what is over comes last."""
    lent = other.words(other.body)
    changed: dict[int, str] = {}
    for place in source.body:
        count = len(source.pieces[place].split())
        changed[place], lent = f" {' '.join(lent[:count])} ", lent[count:]
    last = source.body[-1]
    changed[last] += " ".join(lent)
    return changed


def _split(text: str) -> list[str]:
    return [sentence for sentence in _SENTENCE.split(text.strip()) if sentence] or [""]


def _sentences(source: Source) -> list[str]:
    return [sentence for place in source.body for sentence in _split(source.pieces[place]) if sentence] or [escape("…")]


EDITS: Final[dict[str, Edit]] = {
    "boilerplate": _boilerplate,
    "dates": _dates,
    "ads": _ads,
    "together": _together,
    "small": _small,
    "large": _large,
    "template": _template,
}
