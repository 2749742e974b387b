"""The table of bands: exact against brute force, bounded, and the compiled kernel equals its definition."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvestman.embedded import near as module
from harvestman.embedded.near import BANDS, MOST_HITS, VALUES, NearTable, add, add_python, near, near_python

PRINTS = st.integers(0, 2**64 - 1)


def far(one: int, other: int, weak: int) -> int:
    return ((one ^ other) & ~weak).bit_count()


def weak_bits(chance: Random, each: int) -> int:
    return sum(1 << 16 * band + bit for band in range(BANDS) for bit in chance.sample(range(16), each))


@given(PRINTS, st.sets(st.integers(0, 63), max_size=3), st.integers(0, 2**32))
def test_whatever_differs_in_three_firm_bits_or_fewer_is_found(print: int, bits: set[int], seed: int) -> None:
    chance = Random(seed)
    weak = weak_bits(chance, chance.randrange(6))
    other = print ^ sum(1 << bit for bit in bits) ^ (chance.getrandbits(64) & weak)
    table = NearTable(1)
    table.add(chance.getrandbits(64))
    table.add(other)
    assert (far(print, other, weak), other) in table.near(print, weak, 3), f"seed {seed}"


@pytest.mark.parametrize("most", [0, 3, 6, *(pytest.param(most, marks=pytest.mark.slow) for most in (1, 2, 4, 5))])
def test_it_agrees_with_brute_force_on_all_pairs(most: int) -> None:
    chance = Random(most)
    centres = [chance.getrandbits(64) for _ in range(60)]
    known = {centre ^ sum(1 << bit for bit in chance.sample(range(64), k)) for centre in centres for k in range(6)}
    table = NearTable(400_000)
    for print in known:
        table.add(print)
    for print in [*known, *(chance.getrandbits(64) for _ in range(50))]:
        weak = weak_bits(chance, 2)
        found = table.near(print, weak, most)
        distances = [(((print ^ other) & ~weak).bit_count(), other) for other in known]
        expected = sorted(
            (distance, other)
            for distance, other in distances
            if distance <= most and any(not (print ^ other) & ~weak & 0xFFFF << 16 * band for band in range(BANDS))
        )
        assert found == expected[:MOST_HITS], f"seed {most}"
        within = {other for distance, other in distances if distance <= min(most, 3)}
        assert within <= {other for _, other in found}


@given(st.lists(PRINTS | st.integers(0, 40).map(lambda number: number << 16), max_size=60), st.integers(0, 2**32))
def test_the_kernel_equals_its_definition(prints: list[int], seed: int) -> None:
    chance, room = Random(seed), 5
    one, other = SCRATCH
    for print in prints:
        assert add(one, room, print) == add_python(other, room, print)
    for print in prints[:10]:
        asked = print ^ 1 << chance.randrange(64)
        weak, most = weak_bits(chance, chance.randrange(4)), chance.randrange(8)
        assert near(one, room, asked, weak, most) == near_python(other, room, asked, weak, most), f"seed {seed}"


SCRATCH = bytearray(BANDS * VALUES * 32), bytearray(BANDS * VALUES * 32)


def test_the_kernel_is_built() -> None:
    """Where it is not, the test above compares the definition with itself; that must not go unseen."""
    if add is add_python:
        pytest.skip("the compiled kernel is not built: `python setup.py build_ext --inplace`")
    assert near.__module__.endswith("_near")
    assert module.near is near


def test_adding_twice_is_adding_once() -> None:
    table = NearTable(1)
    assert [table.add(5) for _ in range(20)] == [None] * 20
    assert table.near(5, 0, 0) == [(0, 5)]


def test_a_full_bucket_gives_up_its_oldest_and_says_which() -> None:
    table = NearTable(1)
    room = table.room
    prints = [number << 16 for number in range(1, 3 * room + 1)]  # all have 0 in the first band
    gone = [table.add(print) for print in prints]
    assert gone == [None] * room + prints[: 2 * room]
    assert table.bytes == NearTable(1).bytes


def test_a_million_fingerprints_take_less_than_40_bytes_each() -> None:
    assert NearTable(1_000_000).bytes <= 40 * 1_000_000


@pytest.mark.skipif(add is add_python, reason="the compiled kernel is not built")
@pytest.mark.parametrize("wrong", [0, 256])
def test_a_table_of_another_size_is_refused(wrong: int) -> None:
    with pytest.raises(ValueError, match="size"):
        add(bytearray(100), wrong, 1)
    with pytest.raises(ValueError, match="size"):
        near(bytearray(100), 5, 1, 0, 3)
