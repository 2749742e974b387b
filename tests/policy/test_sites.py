"""Sites by the public suffix list."""

from __future__ import annotations

import pytest
import suites
from cases import for_each

from harvestman.model import HostKey
from harvestman.policy.sites import site_of

DIFFERENCES = {
    "crawlercommons_registrable-0027": "asks for private suffixes to be left out; for us they count",
    "crawlercommons_registrable-0068": "the same",
    "crawlercommons_registrable-0069": "the same",
    "crawlercommons_registrable-0029": "not a host a parsed URL can have",
    "crawlercommons_registrable-0031": "not a host a parsed URL can have",
    "crawlercommons_registrable-0034": "a label over 63 characters: DNS refuses it, the site does not matter",
    "crawlercommons_registrable-0035": "the same",
}


@for_each(
    ("host", "site"),
    [
        ("www.example.org", "example.org"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("joe.github.io", "joe.github.io"),
        ("www.joe.blogspot.com", "joe.blogspot.com"),
        ("github.io", "github.io"),
        ("com", "com"),
        ("localhost", "localhost"),
        ("www.h0001.test", "h0001.test"),
        ("127.0.0.1", "127.0.0.1"),
        ("10.1.2.3", "10.1.2.3"),
        ("::1", "::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("www.example.org.", "example.org"),
        ("www.xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("www.food.xn--55qx5d.cn", "food.xn--55qx5d.cn"),
        ("", ""),
        (".", "."),
        ("a..b", "a..b"),
    ],
)
def test_site_of(host: str, site: str) -> None:
    assert site_of(HostKey(host)) == site


@suites.needed
@pytest.mark.parametrize(("suite", "count"), [("psl_official", 78), ("crawlercommons_registrable", 73)])
def test_suites(suite: str, count: int) -> None:
    """A host without a registrable domain is its own site."""
    wrong, seen = set(), 0
    for case in suites.rows(f"psl/{suite}.jsonl"):
        seen += 1
        if case["host"] is not None:
            expected = case["registrable_domain"] or case["host"].lower()
            if site_of(HostKey(case["host"])) != expected:
                wrong.add(case["id"])
    assert seen == count
    assert wrong == {name for name in DIFFERENCES if name.startswith(suite)}
