"""SimHash: the compiled kernel and its definition agree, and little changes move few bits."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harvestman.pages.simhash import distance, simhash, simhash_python

TRICKY = [
    "",
    "Ünïcode WORDS",
    "日本語のテキスト、です。",
    "ก ข ค",
    "\ud800 lone",
    "a\u2019b",
    "\u00a0x\u00a0",
    "\uffff",
    "𝒳y",
    "x" * 99,
    "Ａ，Ｂ",
]


@given(st.text(st.characters(exclude_categories=())) | st.text("aB1é€日、\u00a0\u2014ก𝒳\ud800 .-", max_size=60))
@example("a")
@example("a b")
@example("a b c")
def test_kernel_equals_its_definition(text: str) -> None:
    assert simhash(text) == simhash_python(text)


@pytest.mark.parametrize("text", TRICKY)
def test_tricky_texts_agree(text: str) -> None:
    assert simhash(text) == simhash_python(text)
    assert simhash(text * 50) == simhash_python(text * 50)


def test_the_kernel_is_built() -> None:
    """Where it is not, the tests above compare the definition with itself; that must not go unseen."""
    if simhash is simhash_python:
        pytest.skip("the compiled kernel is not built: `python setup.py build_ext --inplace`")
    assert simhash.__module__.endswith("_simhash")


def test_no_words_is_zero() -> None:
    assert simhash("") == simhash(" .,;!? \n\u2014\u00a0、") == 0


def test_case_spacing_and_punctuation_do_not_matter() -> None:
    assert simhash("The quick, brown fox -- jumps!") == simhash("the QUICK brown\n\u201cfox\u201d jumps")


def test_word_order_matters() -> None:
    assert simhash("one two three four five") != simhash("five four three two one")


def _words(seed: int, count: int) -> list[str]:
    chance = random.Random(seed)
    return ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(count)]


@pytest.mark.parametrize("seed", range(20))
def test_near_duplicates_are_near_and_strangers_far(seed: int) -> None:
    words = _words(seed, 800)
    changed = [*words[:400], "changed", *words[401:]]
    assert distance(simhash(" ".join(words)), simhash(" ".join(changed))) <= 6
    assert distance(simhash(" ".join(words)), simhash(" ".join(_words(seed + 1000, 800)))) >= 12


def test_one_character_of_unspaced_script_moves_few_bits() -> None:
    chance = random.Random(1)
    text = "".join(chr(chance.randint(0x4E00, 0x9FFF)) for _ in range(600))
    assert distance(simhash(text), simhash(text[:300] + "変" + text[301:])) <= 6


def test_result_is_64_bits_unsigned() -> None:
    assert all(0 <= simhash(" ".join(_words(seed, 20))) < 1 << 64 for seed in range(50))


def test_not_a_string_is_refused() -> None:
    with pytest.raises((TypeError, AttributeError)):
        simhash(b"bytes")  # type: ignore[arg-type]  # the point of the test
