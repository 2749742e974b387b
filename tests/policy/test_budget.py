"""What a site may take of a crawl: earned, spent, waited for."""

from __future__ import annotations

from random import Random

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from harvestman.config import Budget
from harvestman.model import Instant, SiteKey, SiteRecord
from harvestman.policy.budget import (
    DAY,
    NEVER,
    SHARE_FROM,
    SHARE_PAUSE,
    TRUSTED_BY,
    allowance,
    linked,
    linkers,
    spent,
    wait,
)

RULES = Budget()
NOON = Instant(20_000.5 * DAY)
sketches = st.integers(0, 2**64 - 1)


def a_site(**facts: int | bool) -> SiteRecord:
    site = SiteRecord(SiteKey("a.test"), Instant(0.0))
    for name, value in facts.items():
        setattr(site, name, value)
    return site


def sketch_of(count: int) -> int:
    hashes, sketch = Random(7), 0
    for _ in range(count):
        sketch = linked(sketch, hashes.getrandbits(6))
    return sketch


@for_each("count", [0, 1, 5, 20, 60, 120])
def test_the_sketch_tells_about_how_many_sites_link(count: int) -> None:
    assert linkers(sketch_of(count)) == pytest.approx(count, rel=0.35, abs=0.6)


def test_a_full_sketch_earns_all() -> None:
    assert linkers(2**64 - 1) > TRUSTED_BY
    assert allowance(a_site(linkers=2**64 - 1), RULES) == RULES.pages_per_day


@given(sketches, st.integers(0, 63))
def test_a_sketch_fits_its_field_and_only_grows(sketch: int, other: int) -> None:
    more = linked(sketch, other)
    assert more < 2**64
    assert linked(more, other) == more
    assert linkers(more) >= linkers(sketch)


sites = st.builds(
    a_site,
    vouched=st.booleans(),
    linkers=sketches,
    novel=st.integers(0, 10**6),
    dull=st.integers(0, 10**6),
    fetched=st.integers(0, 10**6),
    today=st.integers(0, 10**6),
    day=st.integers(19_990, 20_000),
)


@given(sites)
def test_an_allowance_lies_within_its_bounds(site: SiteRecord) -> None:
    assert RULES.unearned_per_day * RULES.farm_cut <= allowance(site, RULES) <= RULES.pages_per_day


@given(sites, st.integers(0, 63))
def test_links_and_novelty_never_cost(site: SiteRecord, other: int) -> None:
    before = allowance(site, RULES)
    site.linkers = linked(site.linkers, other)
    site.novel += 1
    assert allowance(site, RULES) >= before


def test_earning() -> None:
    assert allowance(a_site(), RULES) == 10_000
    assert allowance(a_site(vouched=True), RULES) == 500_000
    assert 10_000 < allowance(a_site(linkers=sketch_of(5)), RULES) < 30_000
    assert allowance(a_site(linkers=sketch_of(5), novel=10, dull=90), RULES) < 12_000
    assert allowance(a_site(vouched=True), Budget(pages_per_day=7)) == 7


def test_a_farm_is_cut_to_a_tenth_whoever_vouched_for_it() -> None:
    assert allowance(a_site(novel=10, dull=990), RULES) == 1_000
    assert allowance(a_site(vouched=True, novel=10, dull=990), RULES) == 50_000


@given(sites, st.lists(st.floats(0, 10 * DAY), max_size=30))
def test_every_page_is_charged_to_its_day(site: SiteRecord, steps: list[float]) -> None:
    before, now, today = site.fetched, NOON, 0
    site.day = 19_990
    for step in steps:
        later = Instant(now + step)
        today = today + 1 if today and later // DAY == now // DAY else 1
        now = later
        spent(site, now)
        assert (site.day, site.today) == (now // DAY, today)
    assert site.fetched == before + len(steps)


def test_a_site_waits_for_the_next_day_in_utc() -> None:
    site = a_site()
    for _ in range(9_999):
        spent(site, NOON)
    assert wait(site, 10**9, RULES, NOON) is None
    spent(site, NOON)
    tomorrow = wait(site, 10**9, RULES, NOON)
    assert tomorrow == Instant(20_001.0 * DAY)
    assert wait(site, 10**9, RULES, Instant(tomorrow)) is None
    assert site.today == 10_000, "waiting changes nothing"


def test_the_limit_of_the_crawl_is_for_ever() -> None:
    rules = Budget(pages=50)
    site = a_site(vouched=True)
    for _ in range(49):
        spent(site, NOON)
    spent(site, NOON, again=True)
    assert (site.fetched, site.today) == (49, 50)
    assert wait(site, 49, rules, NOON) is None
    spent(site, NOON)
    assert wait(site, 50, rules, NOON) == NEVER


def test_a_share_counts_once_the_crawl_has_begun() -> None:
    rules = Budget(share=0.1)
    site = a_site(vouched=True, fetched=SHARE_FROM - 1)
    assert wait(site, SHARE_FROM - 1, rules, NOON) is None
    assert wait(site, SHARE_FROM, rules, NOON) == NOON + SHARE_PAUSE
    assert wait(site, SHARE_FROM * 10, rules, NOON) is None
    assert wait(site, SHARE_FROM, RULES, NOON) is None, "no share is asked for"


@given(sites, st.integers(0, 10**7))
def test_a_wait_is_in_the_future(site: SiteRecord, crawled: int) -> None:
    later = wait(site, crawled, Budget(share=0.2, pages=500_000), NOON)
    assert later is None or later > NOON
