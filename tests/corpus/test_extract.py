"""Votes, headlines and furniture; what trafilatura is asked and when."""

from __future__ import annotations

import pytest
from cases import for_each
from corpus.shelf import page, prose

from harvestman.corpus import extract
from harvestman.corpus.extract import Reading, is_furniture, is_headline, main_text


@for_each(
    "line",
    [
        "Read more: What the mayor said",
        "Related: Five facts about maps",
        "Tags: boats, water, weather",
        "Follow us on Twitter and Facebook.",
        "Sign up for our free daily newsletter",
        "Click here to get the app",
        "Advertisement",
        "Lesen Sie auch: Der Rest",
        "Leia também: Outra coisa",
        "© 2020 Somebody. All rights reserved.",
        "Jane Doe contributed to this report.",
    ],
)
def test_furniture_goes(line: str) -> None:
    assert is_furniture(line)


@for_each(
    "line",
    [
        "He said that one should read more books.",
        "The related work is described in section two.",
        "They follow the river until it meets the sea.",
        "A source told us that more is to come.",
        "Picture a garden behind the house.",
        "Share prices fell by two per cent.",
        "She decided to sign up with the navy.",
        "Subscribe " + "word " * 80,
    ],
)
def test_sentences_stay(line: str) -> None:
    assert not is_furniture(line)


@for_each(
    ("line", "expected"),
    [
        ("The Old Bridge Falls", True),
        ("the old bridge falls", True),
        ("Old bridge falls, the", True),
        ("old bridge falls", True),
        ("The bridge", False),
        ("Why it matters that the old bridge falls in the end, and what comes next", False),
        ("", True),
    ],
)
def test_headlines_are_known(line: str, expected: bool) -> None:
    assert is_headline(line, ["The old bridge falls | The Daily Map", "The old bridge falls"]) is expected


def test_a_reading_votes_for_lines_it_has() -> None:
    reading = Reading("The quick brown fox jumps over the lazy dog.\nOh no!")
    assert reading.has("quick brown fox jumps over")
    assert reading.has("oh, no")
    assert not reading.has("a slow brown fox crawls under")
    assert not reading.has("—")


def test_readings_that_agree_are_not_questioned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract, "precise", lambda markup: pytest.fail("asked a second time"))
    text = prose(1)
    found = main_text(page(text, "Of the river").decode(), text, ["Of the river"])
    assert found.way == "agreed"
    assert found.text == text


def test_where_they_differ_a_line_needs_a_second_voice(monkeypatch: pytest.MonkeyPatch) -> None:
    body, menu, late = prose(1), "Something that only the first reading has seen here", prose(2, 5)
    monkeypatch.setattr(extract, "recalled", lambda markup: f"{body}\n{menu}\n{late}")
    monkeypatch.setattr(extract, "precise", lambda markup: body)
    assert main_text("", late, []) == (f"{body}\n{late}", "voted")


def test_where_the_better_reader_finds_nothing_ours_must_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract, "recalled", lambda markup: "")
    assert main_text("", "Some text of ours.", []) == ("Some text of ours.", "fast")
    assert main_text("", "", []) == ("", "")
