"""One target must not get a disproportionate share unnoticed, and no site of weight move."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvestman.config import Watch
from harvestman.model import Instant, SiteKey, SiteRecord
from harvestman.policy import watch
from harvestman.policy.budget import linked
from harvestman.policy.watch import Moves, Shares, esteemed


def alerts(targets: list[tuple[str, str]], rules: Watch) -> list[str]:
    shares = Shares()
    return [alert for site, address in targets for alert in shares.asked(site, address, rules)]


def test_an_even_crawl_raises_nothing() -> None:
    even = [(f"s{n % 100}.test", f"10.0.0.{n % 100}") for n in range(3 * watch.ROUND)]
    assert alerts(even, Watch()) == []


def test_a_site_and_an_address_with_too_large_a_share_are_named_once_a_round() -> None:
    heavy = [("big.test", "10.9.9.9") if n % 2 else (f"s{n % 200}.test", f"10.0.0.{n % 200}") for n in range(4_000)]
    found = alerts(heavy, Watch())
    assert len(found) == 4
    assert found[0] == "site big.test got 50% of the last 2000 requests, to 101 of them"
    assert found[1].startswith("address 10.9.9.9 got 50%")


def test_a_crawl_of_few_sites_is_what_was_asked_for() -> None:
    assert alerts([("one.test", "10.0.0.1")] * 3 * watch.ROUND, Watch()) == []
    assert alerts([("one.test", "10.0.0.1")] * watch.ROUND, Watch(targets=1)) != []


def test_a_host_that_moves_to_another_network_is_named_with_both() -> None:
    found = Moves().moved("news.test", ["93.184.1.1", "93.184.9.9"], ["203.0.113.7", "2001:db8:1::7"])
    assert found == (
        "host news.test moved: its addresses were in 93.184.0.0/16 and all are in 2001:db8::/32, 203.0.0.0/16 now"
    )


def test_other_addresses_of_the_same_network_are_no_move() -> None:
    assert Moves().moved("a.test", ["93.184.1.1"], ["93.184.200.1", "203.0.113.7"]) is None
    assert Moves().moved("a.test", ["2001:db8:1::1"], ["2001:db8:ffff::1"]) is None
    assert Moves().moved("a.test", ["2001:db8:1::1"], ["2001:db9:1::1"]) is not None


def test_a_name_that_goes_back_and_forth_is_told_of_once() -> None:
    moves = Moves()
    here, there = ["93.184.1.1"], ["104.16.0.1"]
    assert moves.moved("a.test", here, there) is not None
    assert moves.moved("a.test", there, here) is None
    assert moves.moved("a.test", here, there) is None
    assert moves.moved("b.test", here, there) is not None
    assert moves.moved("a.test", there, ["198.51.100.1"]) is not None


_ADDRESSES = st.lists(st.ip_addresses().filter(lambda one: not getattr(one, "scope_id", None)).map(str), min_size=1)


@given(_ADDRESSES, _ADDRESSES)
def test_a_move_is_told_exactly_when_no_network_is_shared(before: list[str], after: list[str]) -> None:
    def prefixes(addresses: list[str]) -> set[tuple[int, int]]:
        parsed = [ipaddress.ip_address(address) for address in addresses]
        return {(one.version, int(one) >> (96 if one.version == 6 else 16)) for one in parsed}

    told = Moves().moved("a.test", before, after) is not None
    assert told == (not prefixes(before) & prefixes(after))


def test_the_memory_of_moves_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MOVERS", 500)
    moves = Moves()
    for n in range(2 * watch.MOVERS + 5):
        moves.moved(f"h{n}.test", ["93.184.1.1"], ["104.16.0.1"])
    assert len(moves._homes) <= watch.MOVERS


def test_a_site_has_weight_when_many_others_link_to_it() -> None:
    site = SiteRecord(SiteKey("a.test"), Instant(0.0))
    assert not esteemed(site, Watch())
    for n in range(30):
        site.linkers = linked(site.linkers, n)
    assert esteemed(site, Watch())
    assert not esteemed(site, Watch(linkers=100))
