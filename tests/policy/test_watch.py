"""One target must not get a disproportionate share unnoticed."""

from __future__ import annotations

from harvestman.config import Watch
from harvestman.policy import watch
from harvestman.policy.watch import Shares


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
