"""How good is the main text, and what does it cost? Precision, recall and F1 of each tier on the article benchmark.

181 pages and what people say their text is (../shared/suites/extract): 4-word shingles, counts scaled per page. Rules
for lines were made by looking at one half of the pages ("looked at") only. Then what the rest of a document costs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import asdict

from _run import ROOT, Report, options

sys.path.insert(0, str(ROOT / "tests"))

import suites
from corpus.articles import Article, articles, digest, score

from harvestman.corpus import pii, quality
from harvestman.corpus.document import Place, Settings, document_of, read_page
from harvestman.corpus.extract import precise, recalled
from harvestman.corpus.minhash import signature
from harvestman.corpus.words import words_of
from harvestman.model import Instant, Response
from harvestman.pages.charset import decode
from harvestman.pages.parse import parse

KIND = "text/html"
TIERS: dict[str, Callable[[Article], str]] = {
    "hot path (pages.parse)": lambda article: parse(article.body, KIND, article.url).text,
    "trafilatura, fast, recall": lambda article: recalled(decode(article.body, KIND)[0]),
    "trafilatura, precision": lambda article: precise(decode(article.body, KIND)[0]),
    "corpus (both, voted)": lambda article: read_page(article.body, KIND, article.url).text,
}


def tiers(found: list[Article], report: Report) -> list[str]:
    """Print a row for each tier; returns the texts of the last."""
    rows: list[tuple[object, ...]] = []
    texts: list[str] = []
    for name, tier in TIERS.items():
        tier(found[0])
        began = time.process_time()
        texts = [tier(article) for article in found]
        cost = (time.process_time() - began) / len(found) * 1000
        pairs = list(zip(found, texts, strict=True))
        halves = [score((a.text, text) for a, text in pairs if a.half == half).f1 for half in (0, 1)]
        rows.append((name, *score((a.text, text) for a, text in pairs), *halves, cost))
    report.table(("tier", "precision", "recall", "F1", "F1 looked at", "F1 other half", "CPU ms/page"), rows)
    return texts


def costs(found: list[Article], texts: list[str], report: Report) -> None:
    """What the rest of a document costs."""
    words = [words_of(text) for text in texts]
    settings = Settings("harvestman", asdict(quality.Limits()))

    def document(number: int) -> object:
        article, at = found[number], Instant(0.0)
        response = Response(article.url, 200, b"", {"content-type": KIND}, article.body, "", at, at, at)
        return document_of(response, Place("", 0, 0), settings)

    steps: dict[str, Callable[[int], object]] = {
        "words": lambda number: words_of(texts[number]),
        "quality signals": lambda number: quality.signals(texts[number], words[number], "en", 1.0),
        "MinHash signature": lambda number: signature(words[number]),
        "masking (--mask-pii)": lambda number: pii.masked(texts[number]),
        "whole document": document,
    }
    rows = []
    for name, step in steps.items():
        began = time.process_time()
        for number in range(len(found)):
            step(number)
        rows.append((name, (time.process_time() - began) / len(found) * 1000))
    report.table(("step", "CPU ms/page"), rows)


def main() -> None:
    chosen = options(__doc__ or "").parse_args()
    if not (suites.ROOT / "README.md").exists():
        raise SystemExit(f"no conformance data at {suites.ROOT}; name its folder in SUITES")
    report = Report(__doc__ or "")
    found = articles()
    report.say(f"  {len(found)} pages, {sum(len(a.body) for a in found) / len(found) / 1000:.0f} KB each")
    report.say(f"  data     {digest(found)}")
    report.say()
    costs(found, tiers(found, report), report)
    report.keep(chosen.no_keep)


if __name__ == "__main__":
    main()
