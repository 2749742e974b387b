"""Which pages are near-duplicates, and which of the two stands for both."""

from __future__ import annotations

from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from harvestman.model import Instant, SiteKey, SiteRecord
from harvestman.policy.copies import FARTHEST, Copy, Print, alike, distance, esteem, neighbours, shared, stands

A, B = SiteKey("a.test"), SiteKey("b.test")
FULL = bytes(range(1, 33))


def copy(url: str, at: float = 0.0, canonical: str = "", site: SiteKey = A) -> Copy:
    return Copy(url, Instant(at), canonical, site)


def site(name: SiteKey, cash: float) -> SiteRecord:
    return SiteRecord(name, Instant(0.0), cash=cash, linkers=1)


def test_weak_bits_do_not_count() -> None:
    assert distance(Print(0b1111, 0b0011, FULL), 0) == 2
    assert distance(Print(0b1111, 0, FULL), 0) == 4


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.lists(st.integers(0, 2**64 - 1)), st.integers(0, 63))
def test_neighbours_are_those_within_the_farthest(simhash: int, weak: int, others: list[int], bit: int) -> None:
    print = Print(simhash, weak, FULL)
    known = [*others, simhash ^ 1 << bit]
    near = [(distance(print, other), other) for other in known if distance(print, other) <= FARTHEST]
    assert neighbours(print, known) == near
    assert near


@for_each(
    ("one", "other", "part"),
    [
        (FULL, FULL, 1.0),
        (FULL, bytes(32), 0.0),
        (bytes(32), bytes(32), 0.0),
        (FULL[:16] + bytes(16), FULL, 0.5),
        (FULL[:8] + bytes(24), FULL[:8] + bytes(24), 1.0),
        (FULL[:4] + bytes(28), FULL[:2] + bytes([99, 98]) + bytes(28), 0.5),
    ],
)
def test_what_two_samples_share(one: bytes, other: bytes, part: float) -> None:
    assert shared(one, other) == shared(other, one) == part


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_a_share_is_a_share(one: bytes, other: bytes) -> None:
    assert 0.0 <= shared(one, other) <= 1.0


def test_both_must_be_alike_the_hash_and_the_sample() -> None:
    near, beyond = (1 << FARTHEST) - 1, (1 << FARTHEST + 1) - 1
    print = Print(0, 0, FULL)
    assert alike(print, near, FULL)
    assert not alike(print, beyond, FULL)
    assert not alike(print, 0, FULL[:15] + bytes(17))


def test_the_page_that_the_other_names_stands_for_both() -> None:
    old, new = copy("https://a.test/old", 1.0), copy("https://a.test/new", 2.0)
    assert stands(old, copy(new.url, 2.0, old.url), {})
    assert not stands(copy(old.url, 1.0, new.url), new, {})
    assert not stands(copy(old.url, 1.0, "https://a.test/new/"), new, {}), "in any spelling"
    assert not stands(copy(old.url, 1.0, new.url), copy(new.url, 2.0, new.url), {})


def test_a_page_that_names_itself_or_a_third_has_said_nothing_of_the_other() -> None:
    old, new = "https://a.test/old", "https://a.test/new"
    assert stands(copy(old, 1.0, old), copy(new, 2.0, new), {})
    assert stands(copy(old, 1.0, "https://a.test/"), copy(new, 2.0, new), {})
    assert not stands(copy(old, 3.0, old), copy(new, 2.0, new), {})


def test_then_the_site_that_others_think_more_of_then_the_first() -> None:
    sites = {A: site(A, 1.0), B: site(B, 1000.0)}
    small, large = copy("https://a.test/", 1.0), copy("https://b.test/", 2.0, site=B)
    assert esteem(sites[B]) > esteem(sites[A]) > esteem(None)
    assert not stands(small, large, sites)
    assert stands(large, small, sites)
    assert stands(small, large, {}), "when nothing is known of either"
    assert not stands(small, copy("https://a.test/other", 0.5), sites)


@given(st.integers(0, 2), st.integers(0, 2), st.floats(0, 9), st.floats(0, 9), st.booleans())
def test_it_does_not_matter_which_came_to_us_first(one: int, other: int, at: float, later: float, same: bool) -> None:
    """But for two that were seen at one moment: then the one that is known stays."""
    names = ["", "https://a.test/1", "https://b.test/2"]
    sites = {A: site(A, 5.0), B: site(B, 50.0)}
    first = copy("https://a.test/1", at, names[one])
    second = copy("https://b.test/2", later, names[other], A if same else B)
    if at != later:
        assert stands(first, second, sites) is not stands(second, first, sites)
