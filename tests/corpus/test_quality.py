"""Each signal on a text made for it, and the verdict."""

from __future__ import annotations

import re

import pytest
from cases import for_each
from corpus.shelf import prose
from hypothesis import given
from hypothesis import strategies as st

from harvestman.corpus.quality import Limits, Signals, signals, verdict
from harvestman.corpus.words import words_of
from harvestman.errors import UsageError


def of(text: str, language: str = "en", confidence: float = 0.95) -> Signals:
    return signals(text, words_of(text), language, confidence)


def judged(text: str, language: str = "en", confidence: float = 0.95) -> str:
    return verdict(of(text, language, confidence), Limits())


def test_prose_is_kept() -> None:
    assert judged(prose(1)) == ""


@for_each(
    ("text", "reason"),
    [
        ("Too short to be of use to anybody.", "min_words"),
        ("a b c d e f g h i j k l m n. " * 10, "min_mean_word_length"),
        ("Donaudampfschifffahrtsgesellschaft. " * 60, "max_mean_word_length"),
        ("# " * 30 + prose(2, 10), "max_symbol_ratio"),
        ("\n".join(f"The price of it is {n} or {n}{n}, 1{n}, 2{n}." for n in range(100, 140)), "min_alphabetic_share"),
        ("\n".join(f"• {line}" for line in prose(3).split("\n")), "max_bullet_share"),
        ("\n".join(f"{line[:-1]}…" for line in prose(4).split("\n")), "max_ellipsis_share"),
        (prose(5).replace(".", ""), "min_ended_share"),
        ("\n".join(f"{word} thing." for word in prose(6).split()), "max_short_line_share"),
        (re.sub(r"\b(?:[Tt]he|of|and|with|that|to)\b", "so", prose(7)), "min_stop_words"),
        (prose(8, 10) + "\n" + prose(8, 10), "max_duplicate_line_share"),
        (prose(9, 10) + " {" * 30 + ".", "max_brace_ratio"),
        (prose(10) + " Lorem ipsum dolor sit amet.", "lorem_ipsum"),
        (prose(11, 5) + "\nPlease enable JavaScript to see this page.", "javascript_warning"),
    ],
)  # fmt: skip
def test_each_limit_is_named(text: str, reason: str) -> None:
    assert judged(text) == reason


def test_repeated_phrases_are_found() -> None:
    found = of(" ".join(f"buy cheap watches online number {n}." for n in range(60)))
    assert found.top_4gram_share > 0.5
    assert found.duplicate_5gram_share > 0.7
    assert of(prose(12)).duplicate_10gram_share < 0.1


def test_an_unsure_language_is_named() -> None:
    assert judged(prose(13), confidence=0.4) == "min_language_confidence"


def test_where_there_is_no_list_stop_words_are_not_asked_for() -> None:
    assert of(prose(14), "fi").stop_words == -1
    assert judged(prose(14), "fi") == ""


def test_scripts_without_spaces_are_counted_by_character() -> None:
    sentences = [
        "私は昨日友達と一緒に映画を見に行きました。",
        "天気予報によると明日は雨が降るそうです。",
        "新しい図書館が駅前に来月開館する予定だ。",
    ]
    found = of("\n".join(sentences * 1), "ja")
    assert found.words > 50
    assert found.unspaced_share == 1.0
    assert verdict(found, Limits()) == ""


def test_limits_can_be_told() -> None:
    limits = Limits().changed(["min-words=10", "max_bullet_share=0.5"])
    assert (limits.min_words, limits.max_bullet_share) == (10, 0.5)
    with pytest.raises(UsageError, match="there is no limit 'nothing'; there are min_words"):
        Limits().changed(["nothing=1"])
    with pytest.raises(UsageError, match="no number"):
        Limits().changed(["min_words=many"])


@given(st.text(max_size=300))
def test_shares_are_shares(text: str) -> None:
    found = of(text)
    for name in Signals.__slots__:
        value = getattr(found, name)
        if name.endswith("_share"):
            assert 0.0 <= value <= 1.0, name
