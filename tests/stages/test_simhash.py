"""SimHash: the compiled kernel and its definition agree, and little changes move few bits."""

from __future__ import annotations

import random

import pytest
from cases import for_each
from hypothesis import example, given
from hypothesis import strategies as st

from harvestman.pages.simhash import fingerprint, fingerprint_python, simhash, simhash_python

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


def distance(a: int, b: int) -> int:
    """How many of the 64 bits differ."""
    return (a ^ b).bit_count()


def _lines(lengths: list[int]) -> str:
    return "\n".join(" ".join(f"w{line}x{word}" for word in range(words)) for line, words in enumerate(lengths))


@given(
    st.text(st.characters(exclude_categories=()))
    | st.text("aB1é€日、\u00a0\u2014ก𝒳\ud800 .-\n", max_size=60)
    | st.lists(st.integers(0, 70), max_size=6).map(_lines)
)
@example("a")
@example("a b")
@example("a b c")
@example("a\nb\nc\nd")
def test_kernel_equals_its_definition(text: str) -> None:
    assert fingerprint(text) == fingerprint_python(text)
    assert simhash(text) == fingerprint(text)[0]


@for_each("text", TRICKY)
def test_tricky_texts_agree(text: str) -> None:
    assert fingerprint(text) == fingerprint_python(text)
    assert fingerprint(text * 50) == fingerprint_python(text * 50)


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


def test_short_lines_weigh_little() -> None:
    """A menu of as many words as the article has moves its SimHash less than the article's own words do."""
    article = "\n\n".join(" ".join(_words(seed, 60)) for seed in range(5))
    menu = "\n".join(" ".join(_words(100 + seed, 3)) for seed in range(100))
    assert distance(simhash(article), simhash(f"{menu}\n{article}")) <= 3
    assert distance(simhash(menu), simhash(f"{menu}\n{article}")) >= 12


def test_five_bits_of_every_band_are_weak_and_edits_turn_them_over_first() -> None:
    weak_turned = firm_turned = 0
    for seed in range(30):
        words = _words(seed, 400)
        first, *_ = fingerprint(" ".join(words))
        words[100] = words[300] = "changed"
        second, weak, _ = fingerprint(" ".join(words))
        assert [(weak >> band & 0xFFFF).bit_count() for band in (0, 16, 32, 48)] == [5, 5, 5, 5]
        weak_turned += ((first ^ second) & weak).bit_count()
        firm_turned += ((first ^ second) & ~weak).bit_count()
    assert weak_turned > 5 * firm_turned


def test_result_is_64_bits_unsigned() -> None:
    assert all(0 <= simhash(" ".join(_words(seed, 20))) < 1 << 64 for seed in range(50))


def test_not_a_string_is_refused() -> None:
    with pytest.raises((TypeError, AttributeError)):
        simhash(b"bytes")  # type: ignore[arg-type]  # the point of the test
