"""The gate: how good the main text is, on the public article benchmark. bench/corpus_f1.py prints more."""

from __future__ import annotations

import pytest
import suites
from corpus.articles import Article, articles, digest, score

from harvestman.corpus.document import read_page

pytestmark = [suites.needed, pytest.mark.slow]

DATA = "ff951c27d723c2305db17231aa008e408d45db664f2999f659965778c1134e56"
FLOORS = {"all": 0.973, "looked at": 0.967, "other half": 0.977}
"""Measured 0.975, 0.970, 0.980 with trafilatura 2.3.1, whose own best mode has 0.967. The issue asks for 0.962."""


def test_the_main_text_is_as_good_as_it_was() -> None:
    found = articles()
    assert digest(found) == DATA, "the benchmark's data has changed: measure again before trusting the floors"
    texts = {article.id: read_page(article.body, "text/html", article.url).text for article in found}

    def f1(chosen: list[Article]) -> float:
        return score((article.text, texts[article.id]) for article in chosen).f1

    halves = [[article for article in found if article.half == half] for half in (0, 1)]
    figures = dict(zip(FLOORS, map(f1, (found, *halves)), strict=True))
    assert all(figures[name] >= floor for name, floor in FLOORS.items()), figures
