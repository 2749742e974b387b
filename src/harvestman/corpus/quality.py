"""Signals of a text's quality, and one verdict. Pure.

They are those of the public recipes for language-model corpora: Gopher (Rae et al. 2021), C4 (Raffel et al. 2020)
and FineWeb (Penedo et al. 2024), with their thresholds. Every signal is a column, so that a reader may choose
otherwise; the verdict names the first limit that a text breaks, in the order of `_RULES`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields

from harvestman.errors import UsageError

from .words import is_unspaced

_BULLETS = ("•", "‣", "▪", "◦", "●", "*", "-", "–", "·")
_ELLIPSES = ("...", "…", "[…]")
_ENDS = (".", "!", "?", '"', "”", "’", "'", ")", ":", ";", "。", "！", "？", "」", "।", "؟")
_SYMBOL = re.compile(r"#|\.\.\.|…")
_SHORT_LINE = 30
_LITTLE = 200
"""Words below which a page that asks for JavaScript says little else."""
_SCRIPT_WARNING = re.compile(
    r"(?:enable|requires?|turn on|activate|aktivieren|activez?|activar?)\W+(?:\w+\W+){0,3}javascript", re.I
)
_STOP_WORDS = {
    "en": "the be to of and that have with",
    "de": "der die das und ist nicht ein zu mit",
    "fr": "le la les de et un une des que est",
    "es": "el la los de que y en un una por",
    "pt": "o a os de que e do da em um uma",
    "it": "il la di che e un una per non con",
    "nl": "de het een en van ik dat die in niet",
    "pl": "w i na z do nie się że to jest",
    "ru": "и в не на я что с по это как",
    "sv": "och i att det som en på är av för",
    "id": "yang dan di itu dengan untuk tidak ini dari dalam",
    "tr": "bir ve bu da de için ile çok olarak",
}  # fmt: skip
_STOPS = {language: frozenset(words.split()) for language, words in _STOP_WORDS.items()}


@dataclass(slots=True, frozen=True)
class Signals:
    """Numbers about a text. Shares are between 0 and 1."""

    words: int
    mean_word_length: float
    symbol_ratio: float
    """'#' and ellipses for each word."""
    alphabetic_share: float
    """Of words: those with a letter."""
    bullet_share: float
    """Of lines: those that begin with a bullet."""
    ellipsis_share: float
    """Of lines: those that end in an ellipsis."""
    ended_share: float
    """Of lines: those that end as sentences do."""
    short_line_share: float
    """Of lines: those of 30 characters or fewer."""
    lines_per_word: float
    stop_words: int
    """Different ones, of those that no text in its language does without; -1 where we have no list."""
    duplicate_line_share: float
    """Of characters: those in lines that stood there before."""
    duplicate_paragraph_share: float
    """Of characters: those in paragraphs (parted by an empty line) that stood there before."""
    top_2gram_share: float
    """Of characters: those of the most frequent run of 2 words, of 3, of 4."""
    top_3gram_share: float
    top_4gram_share: float
    duplicate_5gram_share: float
    """Of words: those in runs of 5 words, of 10, that stood there before."""
    duplicate_10gram_share: float
    brace_ratio: float
    """Opening curly braces for each word: code, or a page that shows its own."""
    unspaced_share: float
    """Of words: those of scripts without spaces, where a character counts as a word."""
    lorem_ipsum: bool
    javascript_warning: bool
    language_confidence: float


@dataclass(slots=True, frozen=True)
class Limits:
    """What a text must keep to."""

    min_words: int = 50
    max_words: int = 100_000
    min_mean_word_length: float = 3.0
    max_mean_word_length: float = 10.0
    max_symbol_ratio: float = 0.1
    min_alphabetic_share: float = 0.8
    max_bullet_share: float = 0.9
    max_ellipsis_share: float = 0.3
    min_ended_share: float = 0.12
    max_short_line_share: float = 0.67
    max_lines_per_word: float = 0.3
    min_stop_words: int = 2
    max_duplicate_line_share: float = 0.2
    max_duplicate_paragraph_share: float = 0.2
    max_top_2gram_share: float = 0.2
    max_top_3gram_share: float = 0.18
    max_top_4gram_share: float = 0.16
    max_duplicate_5gram_share: float = 0.15
    max_duplicate_10gram_share: float = 0.1
    max_brace_ratio: float = 0.025
    min_language_confidence: float = 0.65

    def changed(self, told: Sequence[str]) -> Limits:
        """With some of them set, as NAME=VALUE."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        for setting in told:
            name, _, value = setting.partition("=")
            name = name.strip().replace("-", "_")
            if name not in values:
                raise UsageError(f"--limit {setting}: there is no limit {name!r}; there are {', '.join(values)}")
            try:
                values[name] = type(values[name])(value)
            except ValueError:
                raise UsageError(f"--limit {setting}: {value!r} is no number") from None
        return Limits(**values)


def signals(text: str, words: Sequence[str], language: str, confidence: float) -> Signals:
    """Everything there is to say of a text, given its words (`words_of`)."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]
    count, length = max(1, len(words)), sum(map(len, words))
    stops = _STOPS.get(language)
    return Signals(
        words=len(words),
        mean_word_length=length / count,
        symbol_ratio=len(_SYMBOL.findall(text)) / count,
        alphabetic_share=sum(map(_has_letter, words)) / count,
        bullet_share=_share(lines, lambda line: line.startswith(_BULLETS)),
        ellipsis_share=_share(lines, lambda line: line.endswith(_ELLIPSES)),
        ended_share=_share(lines, lambda line: line.endswith(_ENDS)),
        short_line_share=_share(lines, lambda line: len(line) <= _SHORT_LINE),
        lines_per_word=len(lines) / count,
        stop_words=len(stops.intersection(words)) if stops else -1,
        duplicate_line_share=_repeated(lines),
        duplicate_paragraph_share=_repeated(paragraphs) if len(paragraphs) > 1 else 0.0,
        top_2gram_share=_top(words, 2, length),
        top_3gram_share=_top(words, 3, length),
        top_4gram_share=_top(words, 4, length),
        duplicate_5gram_share=_duplicates(words, 5),
        duplicate_10gram_share=_duplicates(words, 10),
        brace_ratio=text.count("{") / count,
        unspaced_share=sum(map(is_unspaced, words)) / count,
        lorem_ipsum="lorem ipsum" in text.lower(),
        javascript_warning=_SCRIPT_WARNING.search(text) is not None,
        language_confidence=confidence,
    )


def verdict(signals: Signals, limits: Limits) -> str:
    """Why a text is not worth keeping, as the name of the limit that it breaks; '' when it is."""
    return next((reason for reason, breaks in _RULES.items() if breaks(signals, limits)), "")


_Rule = Callable[[Signals, Limits], bool]
_SPACED_ONLY = ("mean_word_length", "lines_per_word", "short_line_share", "duplicate_5gram_share")
"""Signals that mean nothing where a character counts as a word."""


def _rules() -> Iterator[tuple[str, _Rule]]:
    """A rule for each limit, in their order, and one for each thing that no text may have."""

    for limit in (field.name for field in fields(Limits)):
        yield limit, _rule(limit)
    yield "lorem_ipsum", lambda s, _: s.lorem_ipsum
    yield "javascript_warning", lambda s, _: s.javascript_warning and s.words < _LITTLE


def _rule(limit: str) -> _Rule:
    side, _, signal = limit.partition("_")

    def breaks(signals: Signals, limits: Limits) -> bool:
        value, bound = getattr(signals, signal), getattr(limits, limit)
        if value < 0 or (signal in _SPACED_ONLY and signals.unspaced_share > 0.5):
            return False
        return bool(value < bound if side == "min" else value > bound)

    return breaks


_RULES = dict(_rules())


def _has_letter(word: str) -> bool:
    return word.isalpha() or any(map(str.isalpha, word))


def _share(lines: Sequence[str], test: Callable[[str], bool]) -> float:
    return sum(map(test, lines)) / max(1, len(lines))


def _repeated(parts: Sequence[str]) -> float:
    """The share of characters in parts that stood there before."""
    seen: set[str] = set()
    again = 0
    for part in parts:
        if part in seen:
            again += len(part)
        seen.add(part)
    return again / max(1, sum(map(len, parts)))


def _top(words: Sequence[str], size: int, length: int) -> float:
    """The share of characters in the most frequent run, if it comes more than once."""
    runs = Counter(zip(*(words[start:] for start in range(size)), strict=False))
    if not runs:
        return 0.0
    run, count = max(runs.items(), key=lambda item: item[1] * sum(map(len, item[0])) if item[1] > 1 else 0)
    return count * sum(map(len, run)) / max(1, length) if count > 1 else 0.0


def _duplicates(words: Sequence[str], size: int) -> float:
    """The share of words in runs that stood there before; each word counts once."""
    seen: set[tuple[str, ...]] = set()
    covered, end = 0, 0
    for start, run in enumerate(zip(*(words[at:] for at in range(size)), strict=False)):
        if run in seen:
            covered += start + size - max(start, end)
            end = start + size
        else:
            seen.add(run)
    return covered / max(1, len(words))
