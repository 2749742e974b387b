"""Paragraphs to fill pages with, written once per process: the same text on every machine."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import accumulate, islice
from typing import TypeVar

from harvestman.sim import words

T = TypeVar("T")

POOL = 1024
"""English passages. Two pages of 15 passages seldom share one, so ordinary pages are no near-duplicates."""
OTHER_POOL = 256
PASSAGE = 3
"""Paragraphs in a passage, the unit pages are put together from."""


def zipf(items: Sequence[T], rng: random.Random) -> Iterator[T]:
    """Endlessly draws items with the frequencies of words: the n-th as often as 1/n of the first."""
    weights = list(accumulate(1 / (rank + 3) for rank in range(len(items))))
    while True:
        yield from rng.choices(items, cum_weights=weights, k=4096)


class English:
    """Writes sentences that are grammatical, if not wise."""

    def __init__(self, rng: random.Random) -> None:
        self._chance = rng.random
        self._rng = rng
        draw = partial(zipf, rng=rng)
        self._noun, self._adjective, self._adverb = draw(words.NOUNS), draw(words.ADJECTIVES), draw(words.ADVERBS)
        self._verb, self._preposition = draw(words.VERBS), draw(words.PREPOSITIONS)
        self._determiner, self._opener, self._joiner = draw(words.DETERMINERS), draw(words.OPENERS), draw(words.JOINERS)

    def paragraph(self) -> str:
        return " ".join(self.sentence() for _ in range(3 + int(self._chance() * 9)))

    def sentence(self) -> str:
        clauses = [self._clause()]
        if self._chance() < 0.45:
            clauses.append(f", {next(self._joiner)} {self._clause()}")
        text = "".join(clauses)
        if self._chance() < 0.15:
            return f"{next(self._opener)} {text}."
        return f"{text[0].upper()}{text[1:]}{'?' if self._chance() < 0.04 else '.'}"

    def title(self) -> str:
        return f"{next(self._adjective)} {next(self._noun)} {next(self._preposition)} {words.plural(next(self._noun))}"

    def _clause(self) -> str:
        place = f" {next(self._preposition)} {self._thing()}" if self._chance() < 0.6 else ""
        return f"{self._thing()} {self._deed()} {self._thing()}{place}"

    def _thing(self) -> str:
        noun = next(self._noun)
        if self._chance() < 0.25:
            noun = words.plural(noun)
            lead = "" if self._chance() < 0.5 else "the "
        else:
            lead = next(self._determiner) + " "
        return f"{lead}{next(self._adjective)} {noun}" if self._chance() < 0.4 else lead + noun

    def _deed(self) -> str:
        verb, chance = next(self._verb), self._chance()
        if chance < 0.5:
            return words.past(verb)
        if chance < 0.7:
            return f"{next(self._adverb)} {words.past(verb)}"
        return f"was {words.progressive(verb)}" if chance < 0.85 else f"will {verb}"


def _foreign_paragraph(draw: Iterator[str], rng: random.Random) -> str:
    sentences = (" ".join(islice(draw, rng.randint(6, 18))) for _ in range(rng.randint(3, 10)))
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in sentences)


def _writer(language: str) -> Callable[[], str]:
    """Something that writes one paragraph after the other."""
    rng = random.Random(f"harvestman/{language}")
    if language == "en":
        return English(rng).paragraph
    if language == "ja":
        return lambda: "".join(rng.choices(words.JAPANESE, k=rng.randint(3, 8)))
    return partial(_foreign_paragraph, zipf(words.OTHER_TONGUES[language], rng), rng)


@cache
def passages(language: str) -> tuple[tuple[str, ...], ...]:
    """The text of one language (en, de, fr, es or ja), as passages of paragraphs."""
    paragraph = _writer(language)
    count = POOL if language == "en" else OTHER_POOL
    return tuple(tuple(paragraph() for _ in range(PASSAGE)) for _ in range(count))


@cache
def titles() -> tuple[str, ...]:
    """Headlines, for titles, anchors and slugs."""
    english = English(random.Random("harvestman/titles"))
    return tuple(english.title() for _ in range(1024))
