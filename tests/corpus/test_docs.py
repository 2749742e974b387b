"""docs/corpus.md and the program say the same."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

from harvestman.corpus import document, licence, quality
from harvestman.corpus.manifest import NEAR
from harvestman.corpus.schema import DOCUMENTS, SCHEMA_VERSION

TEXT = (Path(__file__).parents[2] / "docs" / "corpus.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_columns_are_described_in_their_order() -> None:
    assert re.findall(r"^\| `(\w+)` \|", section("Columns"), re.MULTILINE) == DOCUMENTS.names
    assert f"Schema version {SCHEMA_VERSION}." in TEXT


def test_limits_are_described_in_their_order_with_their_defaults() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", section("Limits"), re.MULTILINE)
    assert [(name, float(value)) for name, value in rows] == [
        (n, float(v)) for n, v in asdict(quality.Limits()).items()
    ]
    assert f"`--near` ({NEAR})" in TEXT


def test_scripts_without_spaces_are_spared_what_is_marked() -> None:
    marked = re.findall(r"^\| `\w{3}_(\w+)` \| [\d.]+ \| \w\*", section("Limits"), re.MULTILINE)
    assert set(marked) == set(quality._SPACED_ONLY)


def test_words_of_the_program_are_there() -> None:
    left_out = (
        document.NOINDEX, document.NOARCHIVE, document.NO_PAGE, document.NO_TEXT, document.BROKEN, document.PDF_UNREAD
    )  # fmt: skip
    for word in (*left_out, *licence._RESERVED_WORDS, licence._TDM):
        assert f"`{word}`" in TEXT, word
