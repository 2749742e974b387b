"""The article benchmark of the suites: its pages, its metric, its digest."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import suites


class Article(NamedTuple):
    """A page and what a person says its text is."""

    id: str
    url: str
    body: bytes
    text: str

    @property
    def half(self) -> int:
        """0 for the pages that rules for lines were made by looking at, 1 for the others."""
        return hashlib.sha256(self.id.encode()).digest()[3] % 2


class Score(NamedTuple):
    precision: float
    recall: float
    f1: float


def articles() -> list[Article]:
    def body(case: dict[str, Any]) -> bytes:
        return gzip.decompress((suites.ROOT / "extract" / case["file"]).read_bytes())

    cases = suites.rows("extract/aeb.jsonl")
    return [Article(case["id"], case["url"], body(case), case["text"]) for case in cases]


def digest(found: Iterable[Article]) -> str:
    """Of all pages and texts: a figure is only worth something with the data it was measured on."""
    whole = hashlib.sha256()
    for article in sorted(found):
        for part in (article.id.encode(), article.body, article.text.encode()):
            whole.update(hashlib.sha256(part).digest())
    return whole.hexdigest()


def score(pairs: Iterable[tuple[str, str]]) -> Score:
    """Of (expected, extracted) texts: 4-word shingles, counts scaled per page, as section 4 of the suites asks."""
    hit = extra = missed = 0.0
    for expected, extracted in pairs:
        want, got = _shingles(expected), _shingles(extracted)
        right, wrong, lost = (sum(part.values()) for part in (want & got, got - want, want - got))
        total = right + wrong + lost or 1
        hit, extra, missed = hit + right / total, extra + wrong / total, missed + lost / total
    precision, recall = hit / (hit + extra), hit / (hit + missed)
    return Score(precision, recall, 2 * precision * recall / (precision + recall))


def _shingles(text: str, size: int = 4) -> Counter[tuple[str, ...]]:
    words = re.findall(r"\w+", text)
    return Counter(tuple(words[start : start + size]) for start in range(max(1, len(words) - size + 1)))
