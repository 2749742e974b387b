"""The best main text of a page: trafilatura's, put to the vote where it and our own reading of the page disagree.

1. trafilatura in its fast mode that favours recall, and the text the crawl itself made of the page (`pages.parse`).
2. Where these two differ (16 % of pages) trafilatura is asked again, with its fall-backs and favouring precision, and a
   line of the first reading stays only if one of the other two has it as well.
3. The headline (a column of its own) and furniture go: "Read more: ...", "Follow us on ...", "Tags: ...".

On the 181 articles of the public benchmark (bench/corpus_f1.py) that is F1 0.975 at 1.6 times the cost of trafilatura's
fast mode, which has 0.963; its best mode has 0.967. The rules of 3 were made by looking at one half of the pages; the
other half gained no less by them. That the readings are combined so was chosen by the figures of all pages.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple, cast

from harvestman.errors import UsageError

_AGREE = 0.9
"""Similarity (Jaccard over 4 words) from which on two readings of a page are one."""
_RUN = 4
_HEAD_LINES = 3
"""Lines at the top among which the headline is looked for."""
_FURNITURE_WORDS = 60
_LABEL_WORDS = 40
_WORD = re.compile(r"\w+")

_LABELLED = re.compile(
    r"""\W*(?:
    (?:also\s)?(?:read|watch|see|listen)\s(?:more|also|next|this|now|here)\b
    | related(?:\s(?:articles?|stories|story|posts?|links?|content|news|topics?|coverage))?\s*[:|–-]
    | related\s(?:articles?|stories|posts?|links?|content)\W*$
    | more(?:\s(?:from|on|stories|news)\b.*)?: | also\son\b | recommended(?:\s(?:for\syou|stories|reading))?\W*$
    | you\s(?:may|might)\s(?:also\s)?(?:like|be\sinterested) | don.t\smiss\b
    | (?:tags?|categor(?:y|ies)|keywords?|topics?|labels?|filed\s(?:under|in)|posted\s(?:in|by|on)
        |published(?:\s(?:by|on|in))?|written\sby|image\scredits?|photo\s(?:credits?|by|via)|picture|source|via
        |schlagwörter|etiquetas|mots[\s-]clés|más\sinformación)\s*:
    | (?:like|enjoy|love)\s(?:this|what)\b.{0,60}\bshare | share\s(?:this|it|on|via)\b
    | follow\s(?:us|me|him|her|them|@\w+|[\w.'’ ]{1,40}\son)\b
    | (?:please\s)?(?:sign\sup|subscribe|register)\s(?:for|to|now|here|today)\b
    | get\s(?:our|the|more)\b.{0,80}\b(?:newsletter|inbox)\b | click\s(?:here|on\sthe|to)\b | tap\shere
    | (?:advertisements?|sponsored|anzeige|publicidad|publicité|pubblicità|реклама)\W*$
    | (?:story|article)\scontinues\sbelow | continue\sreading | scroll\s(?:down|for)
    | (?:copyright|©|\(c\))\s | all\srights\sreserved
    | (?:leia|veja)\s(?:mais|também) | (?:lea|leer|lee)\s(?:más|también) | te\spuede\sinteresar | (?:à\s)?lire\saussi
    | voir\saussi | leggi\sanche | lesen\ssie\s(?:auch|mehr) | mehr\s(?:zum\sthema|dazu) | auch\sinteressant
    | lees\s(?:ook|meer) | baca\s(?:juga|selengkapnya) | läs\s(?:också|mer) | czytaj\s(?:także|też|więcej)
    | читайте\sтакже
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_TELLING = re.compile(
    r"""follow\b.{0,40}\bon\s(?:twitter|facebook|instagram|x\b|youtube)
    | \bfollow\s(?:him|her|us|them|me)\b.{0,30}(?:@|twitter|facebook) | \b(?:free|daily|weekly)\b.{0,20}\bnewsletter
    | \bsign\sup\b.{0,60}\b(?:newsletter|updates|alerts|inbox)
    | contributed\sto\sthis\s(?:report|story|article)\W*$ | \bfor\smore\sinformation\W*$""",
    re.IGNORECASE | re.VERBOSE,
)


class Main(NamedTuple):
    """A main text, and how it came about."""

    text: str
    way: str
    """agreed: both readings were one; voted: line by line; fast: trafilatura found nothing, the crawl's text is it."""


class Reading:
    """A text as a voter: which lines it has."""

    def __init__(self, text: str) -> None:
        words = _words(text)
        self.runs = _runs(words)
        self._words = f" {' '.join(words)} "

    def has(self, line: str) -> bool:
        """Whether more than half of a line is in the text; a short one must be there as it is."""
        words = _words(line)
        if len(words) < _RUN:
            return bool(words) and f" {' '.join(words)} " in self._words
        runs = [tuple(words[start : start + _RUN]) for start in range(len(words) - _RUN + 1)]
        return 2 * sum(run in self.runs for run in runs) > len(runs)

    def like(self, other: Reading) -> float:
        """Their Jaccard similarity."""
        return len(self.runs & other.runs) / (len(self.runs | other.runs) or 1)


def main_text(markup: str, fast: str, titles: Sequence[str]) -> Main:
    """The main text of a page, of which the crawl made the text `fast`; `titles` are what it may be headed with."""
    first = recalled(markup)
    if not first:
        return Main(_tidy(fast, titles), "fast") if fast else Main("", "")
    way, ours = "agreed", Reading(fast)
    if Reading(first).like(ours) < _AGREE:
        second = precise(markup)
        if second:
            way, first = "voted", _voted(first, (Reading(second), ours))
    return Main(_tidy(first, titles), way)


def is_furniture(line: str) -> bool:
    """Whether a line is no part of the article: a pointer elsewhere, a plea, a label."""
    words = len(_words(line))
    if words > _FURNITURE_WORDS:
        return False
    return bool((words <= _LABEL_WORDS and _LABELLED.match(line)) or _TELLING.search(line))


def is_headline(line: str, titles: Sequence[str]) -> bool:
    """Whether a line says what a title says: the same words, a part of them, or nearly the same."""
    words = _words(line)
    return not words or any(_same_headline(words, _words(title)) for title in titles)


def _same_headline(line: list[str], title: list[str]) -> bool:
    if line == title:
        return True
    if 3 <= len(line) <= len(title) and f" {' '.join(line)} " in f" {' '.join(title)} ":
        return True
    common, larger = len({*line} & {*title}), max(len({*line}), len({*title}))
    return len(title) >= 4 and len(line) <= 1.5 * len(title) and common >= 0.8 * larger


def _voted(text: str, others: Sequence[Reading]) -> str:
    return "\n".join(line for line in text.split("\n") if any(other.has(line) for other in others))


def _tidy(text: str, titles: Sequence[str]) -> str:
    lines = text.split("\n")
    head = [line for line in lines[:_HEAD_LINES] if not is_headline(line, titles)]
    return "\n".join(line for line in (*head, *lines[_HEAD_LINES:]) if not is_furniture(line)).strip()


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _runs(words: list[str]) -> set[tuple[str, ...]]:
    return {tuple(words[start : start + _RUN]) for start in range(max(1, len(words) - _RUN + 1))}


# -- trafilatura -------------------------------------------------------------------------------------------------------


def recalled(markup: str) -> str:
    """trafilatura's fast reading, favouring recall."""
    return _trafilatura()(markup, fast=True, favor_recall=True, include_comments=False) or ""


def precise(markup: str) -> str:
    """trafilatura's reading with its fall-backs, favouring precision."""
    return _trafilatura()(markup, favor_precision=True, include_comments=False) or ""


@cache
def _trafilatura() -> Callable[..., str | None]:
    try:
        from trafilatura import extract
    except ImportError as missing:
        raise UsageError(f"the corpus needs trafilatura ({missing}): pip install 'harvestman[corpus]'") from None
    for name in ("trafilatura", "htmldate", "justext", "courlan"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # a page without text is no error of ours
    return cast(Callable[..., str | None], extract)


def ready() -> None:
    """UsageError, with the cure, when the extra is not installed."""
    _trafilatura()
