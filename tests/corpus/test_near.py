"""Signatures estimate similarity, bands find the pairs, clusters have one original."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvestman.corpus.files import write_arrow
from harvestman.corpus.minhash import BANDS, FEWEST_WORDS, SHINGLE, bands, signature, similarity
from harvestman.corpus.near import Signatures, Twin, signs_table, twins


def text(seed: int, length: int = 400) -> list[str]:
    chance = random.Random(seed)
    return [f"w{chance.randint(0, 5_000)}" for _ in range(length)]


def edited(words: list[str], changes: int, seed: int = 0) -> list[str]:
    chance, copy = random.Random(seed), list(words)
    for place in chance.sample(range(len(words)), changes):
        copy[place] = f"new{place}"
    return copy


def jaccard(one: list[str], other: list[str]) -> float:
    a, b = ({tuple(w[n : n + SHINGLE]) for n in range(len(w) - SHINGLE + 1)} for w in (one, other))
    return len(a & b) / len(a | b)


@given(seed=st.integers(0, 10**9), length=st.integers(60, 900), share=st.floats(0, 0.15))
def test_the_estimate_is_near_the_truth(seed: int, length: int, share: float) -> None:
    one = text(seed, length)
    other = edited(one, int(share * length), seed + 1)
    # Five standard deviations of 128 samples, and of fewer where there are fewer shingles than bins.
    spread = 5 * 0.5 / min(128, length - SHINGLE + 1) ** 0.5
    assert abs(similarity(signature(one), signature(other)) - jaccard(one, other)) <= spread


def test_the_estimate_is_not_biased() -> None:
    errors = []
    for seed in range(60):
        one = text(seed, 150)
        other = edited(one, 4, seed)
        errors.append(similarity(signature(one), signature(other)) - jaccard(one, other))
    assert abs(sum(errors) / len(errors)) < 0.02


def test_short_texts_have_no_signature() -> None:
    assert signature(["word"] * (FEWEST_WORDS - 1)) == b""
    assert len(signature(["word"] * FEWEST_WORDS)) == 512


def test_similar_texts_share_a_band_and_others_do_not() -> None:
    shared = [
        any(a == b for a, b in zip(bands(signature(text(n))), bands(signature(edited(text(n), 8, n))), strict=True))
        for n in range(40)
    ]
    assert sum(shared) >= 39
    assert not set(bands(signature(text(1)))) & set(bands(signature(text(2))))
    assert len(bands(signature(text(1)))) == BANDS


def found(
    tmp_path: Path, parts: Iterable[list[list[str]]], rank: list[tuple[int, int]] | None = None
) -> dict[int, Twin]:
    paths = []
    for number, texts in enumerate(parts):
        paths.append(tmp_path / f"{number}.arrow")
        signed = {words: signature(list(words)) for words in dict.fromkeys(map(tuple, texts))}
        write_arrow(signs_table([signed[tuple(words)] for words in texts]), paths[-1])
    return twins(Signatures(paths), 0.8, lambda number: rank[number] if rank else (0, 0))


def test_clusters_reach_across_parts_and_say_how_near(tmp_path: Path) -> None:
    one, other = text(1), text(2)
    near = edited(one, 6)
    told = found(tmp_path, [[one, ["too", "short"], other], [text(3), near], [one]])
    assert set(told) == {0, 4, 5}
    assert {twin.original for twin in told.values()} == {0}
    assert told[5].similarity == 1.0
    assert told[4].similarity == pytest.approx(jaccard(one, near), abs=0.12)
    assert {twin.size for twin in told.values()} == {3}


def test_the_original_is_the_best_then_the_oldest(tmp_path: Path) -> None:
    told = found(tmp_path, [[text(1)] * 3], [(1, 10), (0, 30), (0, 20)])
    assert {twin.original for twin in told.values()} == {2}


def test_nothing_among_strangers_and_nothing_among_none(tmp_path: Path) -> None:
    assert found(tmp_path, [[text(n) for n in range(50)]]) == {}
    assert found(tmp_path, [[]]) == {}
    assert found(tmp_path, []) == {}


def test_a_thousand_copies_are_one_cluster(tmp_path: Path) -> None:
    told = found(tmp_path, [[text(7)] * 1_000])
    assert len(told) == 1_000
    assert told[999] == Twin(0, 1.0, 1_000)
