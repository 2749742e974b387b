"""What counts as new on a site."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harvestman.config import Budget, Traps
from harvestman.model import Instant, SiteKey, SiteRecord, Trap
from harvestman.policy.novelty import ENOUGH, LOOKS, LOOSE, NEAR, SAME, exhausted, farm, novel, share

RULES, BUDGET = Traps(), Budget()
hashes = st.integers(1, 2**64 - 1)


def a_site() -> SiteRecord:
    return SiteRecord(SiteKey("a.test"), Instant(0.0))


def far(number: int) -> int:
    """SimHashes with at least 8 bits between any two: each byte says the number again."""
    return int.from_bytes(bytes([number] * 8))


@given(hashes, st.sets(st.integers(0, 63), max_size=20))
def test_a_few_bits_make_nothing_new(simhash: int, flipped: set[int]) -> None:
    site = a_site()
    assert novel(site, simhash, False, RULES)
    other = simhash
    for bit in flipped:
        other ^= 1 << bit
    assert novel(site, other, False, RULES) == (len(flipped) > NEAR or other == 0)


def test_where_a_trap_is_suspected_more_bits_may_differ() -> None:
    site = a_site()
    assert novel(site, 0xFFFF, False, RULES, suspicious=True)
    assert not novel(site, 0xFFFF ^ 0b111111, False, RULES, suspicious=True)
    assert novel(site, 0xFFFF ^ 0b1111111 << 20, False, RULES, suspicious=True)
    assert LOOSE == 6


def test_suspicious_pages_are_remembered_apart_and_in_bounds() -> None:
    site = a_site()
    novel(site, far(200), False, RULES, suspicious=True)
    for number in range(1, 150):
        assert novel(site, far(number), False, RULES)
    assert not novel(site, far(200), False, RULES, suspicious=True)
    for number in range(1, 50):
        novel(site, far(number), False, RULES, suspicious=True)
    assert len(site.looks) == LOOKS


def seen(*simhashes: int) -> SiteRecord:
    site = a_site()
    for simhash in simhashes:
        novel(site, simhash, False, RULES)
    return site


def test_a_copy_is_never_new_and_a_page_without_text_counts_for_nothing() -> None:
    site = a_site()
    assert not novel(site, 0, True, RULES)
    assert not novel(site, 0xABCDEF, True, RULES)
    assert novel(site, 0, False, RULES)
    assert (site.novel, site.dull, site.recent) == (0, 2, [])


@given(st.lists(st.tuples(hashes | st.just(0), st.booleans()), max_size=200), st.integers(1, 60))
def test_memory_is_bounded_and_every_page_counts_once(pages: list[tuple[int, bool]], window: int) -> None:
    site, rules = a_site(), Traps(novelty_pages=window)
    new = [novel(site, simhash, duplicate, rules) for simhash, duplicate in pages]
    textless = sum(not simhash and not duplicate for simhash, duplicate in pages)
    assert site.novel == sum(new) - textless
    assert site.novel + site.dull == len(pages) - textless
    assert len(site.recent) <= window
    assert len(set(site.recent)) == len(site.recent)


def test_only_different_pages_are_remembered_and_what_comes_again_longest() -> None:
    site = seen(*[far(number) for number in range(1, 51)])
    assert not novel(site, far(1), False, RULES)
    for number in range(51, 100):
        assert novel(site, far(number), False, RULES)
    assert not novel(site, far(1), False, RULES)
    assert novel(site, far(2), False, RULES)


def test_fifty_dull_pages_in_a_row_exhaust_a_site_and_a_new_one_revives_it() -> None:
    site = seen(far(1))
    for _ in range(RULES.novelty_pages):
        assert not exhausted(site, RULES)
        novel(site, far(1), False, RULES)
    assert exhausted(site, RULES)
    novel(site, far(2), False, RULES)
    assert not exhausted(site, RULES)


def test_a_farm_is_flagged_when_it_has_shown_enough() -> None:
    site = a_site()
    site.novel, site.dull = 5, ENOUGH - 6
    assert farm(site, BUDGET) == ""
    site.dull += 1
    assert farm(site, BUDGET) == "content farm: 195 of 200 pages say what others of the site say"
    site.novel = 11
    assert farm(site, BUDGET) == ""


def test_pages_spared_count_for_the_flag_alone() -> None:
    site = a_site()
    site.novel, site.dull = 10, 100
    site.traps["/service/*"] = Trap(SAME, Instant(0.0), "", refused=500)
    site.traps["/calendar/{date}"] = Trap("calendar", Instant(0.0), "", refused=500)
    assert farm(site, BUDGET) == ""
    assert farm(site, BUDGET, spared=True).endswith("and 500 like them were not asked for")
    site.novel = 40
    assert farm(site, BUDGET, spared=True) == ""


def test_share_of_new_pages() -> None:
    site = a_site()
    assert share(site) == 1.0
    site.dull = 9
    assert share(site) == 0.1
    site.novel = 90
    assert share(site) == 0.91
