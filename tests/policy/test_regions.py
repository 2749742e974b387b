"""The region of a site: by its ending, by the address of its servers, by how fast they answer; and it stays there."""

from __future__ import annotations

from random import Random

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from harvestman.config import Region
from harvestman.errors import ConfigError
from harvestman.model import Failure, FailureKind, Instant, Reach, Response, Seconds, SiteKey, SiteRecord
from harvestman.policy.regions import (
    BETTER,
    ENOUGH,
    UNREACHED,
    Assignment,
    Choice,
    Rules,
    Table,
    choose,
    measure,
    reached,
)

EU = Region("eu", tlds=("de", "co.uk", "example.com"), networks=("193.0.0.0/8", "2001:db8::/32"))
US = Region("us", tlds=("uk", "example.co.uk"), networks=("193.7.0.0/16", "10.0.0.0/8"))
ASIA = Region("asia")
RULES = Rules((ASIA, EU, US))


@for_each(
    ("site", "region"),
    [
        ("spiegel.de", 1), ("de", 1), ("bbc.co.uk", 1), ("example.com", 1),
        ("example.co.uk", 2), ("parliament.uk", 2), ("other.com", None), ("xde", None), ("127.0.0.1", None),
    ],
)  # fmt: skip
def test_the_longest_ending_decides(site: str, region: int | None) -> None:
    assert RULES.by_ending(SiteKey(site)) == region


@for_each(
    ("address", "region"),
    [("193.1.2.3", 1), ("193.7.2.3", 2), ("10.9.9.9", 2), ("194.1.2.3", None), ("2001:db8::7", 1), ("::1", None)],
)
def test_the_smallest_network_decides(address: str, region: int | None) -> None:
    assert RULES.by_address(address) == region


def test_a_part_of_a_site_cannot_be_elsewhere_than_the_site() -> None:
    with pytest.raises(ConfigError, match=r"'www\.example\.org' is a part of the site 'example\.org'"):
        Rules((Region("eu", tlds=("www.example.org",)),))


@given(st.dictionaries(st.text(min_size=1, max_size=12), st.integers(0, 255), max_size=200), st.text(max_size=12))
def test_the_table_knows_what_it_was_told_and_nothing_else(rows: dict[str, int], other: str) -> None:
    table = Table(rows.items())
    assert len(table) == len(rows)
    assert {site: table.get(SiteKey(site)) for site in rows} == rows
    assert table.get(SiteKey(other)) == rows.get(other)


def test_an_ending_wins_over_what_was_learned_and_the_first_region_has_the_rest() -> None:
    assigned = Assignment(RULES, Table([("far.org", 2), ("spiegel.de", 2)]))
    assert [assigned(SiteKey(site)) for site in ("spiegel.de", "far.org", "near.org")] == [1, 2, 0]


def answer(seconds: float, address: str = "194.0.0.1") -> Response:
    return Response("", 200, b"", {}, b"", address, Instant(10.0), Instant(10.0 + seconds), Instant(99.0))


def test_what_is_measured_is_the_time_to_the_first_byte_and_the_last_address() -> None:
    site = SiteRecord(SiteKey("a.org"), Instant(0.0))
    measure(site, "eu", answer(0.25, "194.0.0.9"))
    assert (site.address, site.reach["eu"].answers) == ("194.0.0.9", 1)
    assert site.reach["eu"].seconds == pytest.approx(0.25)
    for kind in FailureKind:
        measure(site, str(kind), Failure("", kind, "", "", Instant(0.0), Instant(1.0)))
    assert site.reach.keys() == {"eu", "connect", "timeout"}
    assert (site.address, site.reach["timeout"].seconds) == ("194.0.0.9", UNREACHED)


@given(st.floats(0.01, 5.0), st.integers(0, 2**32))
def test_the_estimate_finds_the_median_whatever_hangs_now_and_then(middle: float, seed: int) -> None:
    rng = Random(seed)
    reach: Reach | None = None
    for _ in range(400):
        reach = reached(reach, Seconds(60.0 if rng.random() < 0.1 else middle * rng.uniform(0.8, 1.2)))
    assert reach is not None
    assert middle * 0.6 < reach.seconds < middle * 1.7
    assert reach.answers == 400


def site(name: str = "a.org", address: str = "", **seconds: float) -> SiteRecord:
    found = SiteRecord(SiteKey(name), Instant(0.0), address=address)
    found.reach = {region: Reach(Seconds(time), ENOUGH) for region, time in seconds.items()}
    return found


@for_each(
    ("record", "home", "choice"),
    [
        (site("spiegel.de", "10.0.0.1", asia=0.1), 0, Choice(1, "tld")),
        (site(address="10.0.0.1", asia=0.1), 0, Choice(2, "address")),
        (site(address="194.0.0.1"), 0, Choice(0, "default")),
        (site(asia=0.4), 0, Choice(0, "default")),
        (site(asia=0.6), 0, Choice(1, "trial")),
        (site(asia=0.6), 1, Choice(1, "trial")),
        (site(asia=0.6, eu=0.59), 1, Choice(2, "trial")),
        (site(asia=0.6, eu=0.1), 1, Choice(1, "latency")),
        (site(asia=0.6, eu=0.59, us=0.58), 2, Choice(2, "latency")),
        (site(asia=0.6, eu=0.59, us=0.4), 1, Choice(2, "latency")),
        (site(asia=0.1, eu=0.59), 1, Choice(0, "latency")),
    ],
)
def test_first_the_ending_then_the_address_then_the_time(record: SiteRecord, home: int, choice: Choice) -> None:
    assert choose(record, home, RULES) == choice


def test_a_region_may_keep_its_slow_sites() -> None:
    patient = Rules((Region("asia", slow=Seconds(0.0)), EU))
    assert choose(site(asia=9.0), 0, patient) == Choice(0, "default")


def test_a_few_answers_say_nothing() -> None:
    record = site(asia=0.6)
    record.reach["asia"] = Reach(Seconds(9.0), ENOUGH - 1)
    assert choose(record, 0, RULES) == Choice(0, "default")


@given(st.lists(st.floats(0.02, 3.0), min_size=1, max_size=6), st.integers(0, 2**32))
def test_a_site_tries_each_region_once_and_comes_to_rest(times: list[float], seed: int) -> None:
    """It ends where it is fast enough, or where nowhere else is much faster; noise does not set it in motion again."""
    rng = Random(seed)
    rules = Rules([Region(f"r{number}") for number in range(len(times))])
    record, home, moves = SiteRecord(SiteKey("a.org"), Instant(0.0)), 0, 0
    for _ in range(3 * len(times) + 10):
        for _ in range(100):
            measure(record, f"r{home}", answer(times[home] * rng.uniform(0.95, 1.05)))
        there = choose(record, home, rules).region
        moves, home = moves + (there != home), there
    assert choose(record, home, rules).region == home
    assert moves <= 2 * len(times)
    tried = [times[int(name[1:])] for name in record.reach]
    assert times[home] <= min(tried) / BETTER * 1.3
    assert times[home] <= 0.5 * 1.2 or len(tried) == len(times)
