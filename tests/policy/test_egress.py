"""Which way a host is reached: a table of matches, and what must hold for any of them."""

from __future__ import annotations

from collections import Counter

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from harvestman.config import Config, Politeness, Proxy, check
from harvestman.config import Egress as Addresses
from harvestman.errors import ConfigError
from harvestman.model import DIRECT, HostKey, Seconds, SiteKey
from harvestman.policy.egress import NO_TOR, Egress
from harvestman.policy.politeness import asked_delay, promised
from harvestman.policy.sites import site_of

TOR = Proxy(("*.onion",), "socks5h://127.0.0.1:9050")
SOME = Proxy(("example.org", "*.de"), "http://127.0.0.1:3128", user="anna", password_env="SECRET")
STRAIGHT = Proxy(("home.example", "192.0.2.1"), "direct")
ALL = Proxy(("*",), "https://proxy.example:443")


def proxy_of(host: str, *proxies: Proxy) -> str:
    return Egress(proxies).route(HostKey(host), site_of(HostKey(host))).proxy


@for_each(
    ("host", "proxy"),
    [
        ("abc.onion", TOR.url),
        ("www.abc.onion", TOR.url),
        ("onion", ""),
        ("example.org", SOME.url),
        ("www.example.org", ""),
        ("a.de", SOME.url),
        ("a.b.de", SOME.url),
        ("de", ""),
        ("onion.de.example.com", ""),
    ],
)
def test_a_name_is_that_host_and_a_star_those_below(host: str, proxy: str) -> None:
    assert proxy_of(host, TOR, SOME) == proxy


def test_the_first_table_that_matches_decides() -> None:
    assert proxy_of("a.test", STRAIGHT, ALL) == ALL.url
    assert proxy_of("home.example", STRAIGHT, ALL) == ""
    assert proxy_of("192.0.2.1", STRAIGHT, ALL) == ""
    assert proxy_of("home.example", ALL, STRAIGHT) == ALL.url
    assert proxy_of("2001:db8::1", Proxy(("[2001:DB8::1]",), TOR.url)) == TOR.url


def test_an_onion_host_without_a_proxy_has_no_way_and_the_cure_is_named() -> None:
    for proxies in ((), (STRAIGHT,), (Proxy(("*",), "direct"),)):
        route = Egress(proxies).route(HostKey("abc.onion"), SiteKey("abc.onion"))
        assert route is NO_TOR
        assert route.proxy == route.source == ""
    assert "[[proxies]]" in NO_TOR.refusal
    assert "socks5h://127.0.0.1:9050" in NO_TOR.refusal


def test_sites_behind_tor_are_users_of_their_own_unless_the_proxy_has_one() -> None:
    egress = Egress((TOR, SOME))
    one = egress.route(HostKey("a.x.onion"), SiteKey("x.onion"))
    assert (one.user, one.password_env) == ("x.onion", "")
    assert egress.route(HostKey("b.x.onion"), SiteKey("x.onion")) == one
    assert egress.route(HostKey("y.onion"), SiteKey("y.onion")).user == "y.onion"
    assert egress.route(HostKey("a.de"), SiteKey("a.de")).user == "anna"
    named = Egress((Proxy(("*",), TOR.url, user="us"),))
    assert named.route(HostKey("x.onion"), SiteKey("x.onion")).user == "us"


def test_nothing_set_is_the_straight_way() -> None:
    assert Egress().route(HostKey("a.test"), SiteKey("a.test"), "192.0.2.1") is DIRECT
    assert Egress().reaches("2001:db8::1")


hosts = st.from_regex(r"[a-z]{1,8}(\.[a-z]{1,8}){0,3}", fullmatch=True).map(HostKey)
OURS = ("192.0.2.10", "192.0.2.11", "192.0.2.12", "2001:db8::10")


@given(hosts)
def test_a_site_always_leaves_from_the_same_address_and_a_new_one_moves_only_its_own(host: HostKey) -> None:
    site = site_of(host)
    route = Egress(addresses=Addresses(OURS)).route(host, site, "198.51.100.1")
    assert route.source in OURS[:3]
    assert route == Egress(addresses=Addresses(OURS)).route(HostKey(f"www.{host}"), site, "198.51.100.2")
    fewer = Egress(addresses=Addresses(OURS[:2])).route(host, site, "198.51.100.1")
    assert route.source in (fewer.source, OURS[2])
    assert Egress(addresses=Addresses(OURS)).route(host, site, "2001:db8:1::1").source == OURS[3]


def test_sites_are_spread_evenly() -> None:
    egress = Egress(addresses=Addresses(OURS))
    counts = Counter(
        egress.route(HostKey(f"s{n}.test"), SiteKey(f"s{n}.test"), "198.51.100.1").source for n in range(3000)
    )
    assert set(counts) == set(OURS[:3])
    assert min(counts.values()) > 850


def test_a_family_we_have_no_address_of_is_not_reached() -> None:
    egress = Egress(addresses=Addresses(("192.0.2.10",)))
    assert egress.reaches("198.51.100.1")
    assert not egress.reaches("2001:db8::1")
    assert "2001:db8::1" in egress.route(HostKey("a.test"), SiteKey("a.test"), "2001:db8::1").refusal


@given(hosts, st.floats(0, 100), st.floats(0, 100), st.none() | st.floats(0, 100))
def test_onion_hosts_are_a_class_of_their_own(host: HostKey, delay: float, onion: float, asked: float | None) -> None:
    rules = Politeness(delay=Seconds(delay), onion_delay=Seconds(onion))
    hidden = HostKey(f"{host}.onion")
    assert promised(rules, hidden) == max(delay, onion)
    assert promised(rules, HostKey(f"{host}.test")) == delay
    crawl_delay = None if asked is None else Seconds(asked)
    assert asked_delay(rules, hidden, crawl_delay) == max(delay, onion, asked or 0.0)


def test_the_onion_delay_is_longer_by_default() -> None:
    assert (promised(Politeness(), HostKey("a.onion")), promised(Politeness(), HostKey("a.test"))) == (5.0, 1.0)


@for_each(
    ("proxy", "words"),
    [
        (Proxy(("*",), "socks5://127.0.0.1:1"), "not socks5h://HOST:PORT"),
        (Proxy(("*",), "socks5h://127.0.0.1"), "not socks5h://HOST:PORT"),
        (Proxy(("*",), "http://127.0.0.1:1/path"), "not socks5h://HOST:PORT"),
        (Proxy(("*",), "http://anna:secret@127.0.0.1:1"), "user and password_env"),
        (Proxy((), "http://127.0.0.1:1"), "matches no host"),
        (Proxy(("http://a.test",), "http://127.0.0.1:1"), "write a host"),
        (Proxy(("a.*",), "http://127.0.0.1:1"), "write a host"),
        (Proxy(("*",), "http://127.0.0.1:1", password_env="X"), "no user"),
        (Proxy(("*",), "http://127.0.0.1:1", at_once=0), "at_once"),
        (Proxy(("*",), "http://127.0.0.1:1", slack=Seconds(-1.0)), "slack"),
    ],
)
def test_what_no_proxy_can_be_is_refused_with_the_cure(proxy: Proxy, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check(Config(proxies=(proxy,)))
    assert words in str(refused.value)
    assert "secret" not in str(refused.value)


def test_what_no_address_can_be_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"egress\.addresses: 'eth0'"):
        check(Config(egress=Addresses(("eth0",))))
    with pytest.raises(ConfigError, match=r"egress\.per_address"):
        check(Config(egress=Addresses(per_address=0)))
    assert check(Config(proxies=(TOR, SOME, STRAIGHT, ALL), egress=Addresses(OURS)))
