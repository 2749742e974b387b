"""Addresses a crawler may touch."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from harvestman.errors import UsageError
from harvestman.policy.guard import WEB_PORTS, Guard


@for_each(
    ("address", "reason"),
    [
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("::1", "loopback"),
        ("0.0.0.0", "unspecified"),
        ("0.1.2.3", "unspecified"),
        ("::", "unspecified"),
        ("10.0.0.1", "private"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("fc00::1", "private"),
        ("fec0::1", "private"),
        ("169.254.1.1", "link-local"),
        ("fe80::1", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("169.254.169.254", "metadata"),
        ("fd00:ec2::254", "metadata"),
        ("100.64.0.1", "carrier"),
        ("100.127.255.255", "carrier"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "reserved"),
        ("192.0.2.1", "documentation"),
        ("198.18.0.1", "benchmarks"),
        ("2001:db8::1", "reserved"),
        ("100::1", "reserved"),
        ("64:ff9b:1::1", "NAT64"),
        ("64:ff9b:1::7f00:1", "NAT64"),
        ("::ffff:0:127.0.0.1", "reserved"),
        ("::1.1.1.1", "the old form of 1.1.1.1"),
        ("2a00:1450::5efe:7f00:1", "127.0.0.1, which is loopback"),
        ("2a00:1450::200:5efe:a00:1", "10.0.0.1, which is private"),
        ("2002:101:101::5efe:7f00:1", "loopback"),
        ("4000::5efe:101:101", "reserved"),
        ("169.254.170.23", "metadata"),
        ("169.254.42.42", "metadata"),
        ("fd00:42::42", "metadata"),
        ("168.63.129.16", "metadata"),
        ("192.0.0.170", "reserved"),
        ("192.31.196.1", "AS112"),
        ("2620:4f:8000::1", "AS112"),
        ("4000::1", "reserved"),
        ("::ffff:127.0.0.1", "127.0.0.1, which is loopback"),
        ("::ffff:169.254.169.254", "metadata"),
        ("::127.0.0.1", "loopback"),
        ("64:ff9b::10.0.0.1", "private"),
        ("2002:7f00:1::", "loopback"),
        ("2001:0:4136:e378:8000:63bf:80ff:fffe", "loopback"),
        ("2001:0:7f00:1:8000:63bf:3fff:fdd2", "loopback"),
        ("localhost", "not an IP address"),
        ("", "not an IP address"),
        ("127.1", "not an IP address"),
        ("[::1]", "not an IP address"),
    ],
)
def test_refused(address: str, reason: str) -> None:
    guard = Guard()
    assert reason in (guard.refusal(address) or "")
    assert guard.refusal(address) == guard.refusal(address)


@for_each(
    "address",
    [
        "1.1.1.1",
        "93.184.216.34",
        "172.32.0.1",
        "100.63.255.255",
        "100.128.0.1",
        "2606:4700::1111",
        "2a00:1450::1",
        "::ffff:1.1.1.1",
        "64:ff9b::1.1.1.1",
        "2002:101:101::1",
        "2a00:1450::5efe:101:101",
        "2620:4f:8001::1",
    ],
)
def test_public(address: str) -> None:
    assert Guard().refusal(address) is None


def test_named_networks() -> None:
    guard = Guard(["127.0.0.0/8", "fd00::/8", "10.1.2.3"])
    assert guard.refusal("127.3.2.1") is None
    assert guard.refusal("::ffff:127.3.2.1") is None
    assert guard.refusal("fd12::1") is None
    assert guard.refusal("10.1.2.3") is None
    assert guard.refusal("10.1.2.4") is not None
    assert guard.refusal("169.254.169.254") is not None
    assert guard.refusal("2001:0:a01:204:8000:63bf:80ff:fffe") is not None, "its server is not named"


@pytest.mark.parametrize("address", ["64:ff9b::10.1.2.3", "2002:a01:203::1", "2a00:1450::5efe:a01:203", "::10.1.2.3"])
def test_a_network_is_named_for_itself_and_not_for_what_lies_behind_a_gateway(address: str) -> None:
    assert Guard(["10.1.2.0/24"]).refusal("::ffff:10.1.2.3") is None
    assert "10.1.2.3, which is private" in (Guard(["10.1.2.0/24"]).refusal(address) or "")
    assert Guard([address]).refusal(address) is None


@for_each("port", sorted(WEB_PORTS))
def test_the_ports_of_the_web_are_open(port: int) -> None:
    assert Guard().refusal("93.184.216.34", port) is None
    assert Guard().port_refusal(f"http://example.org:{port}/") is None


@for_each("port", [1, 21, 22, 23, 25, 81, 3000, 6379, 8001, 9200, 11211, 27017, 65535])
def test_other_ports_must_be_named(port: int) -> None:
    cure = f"--allow-port {port} opens it"
    for host, address in (("example.org", "93.184.216.34"), ("[2606:4700::1111]", "2606:4700::1111")):
        assert cure in (Guard().refusal(address, port) or "")
        assert cure in (Guard().port_refusal(f"http://{host}:{port}/a:b") or "")
        assert Guard(ports=[port]).refusal(address, port) is None
        assert Guard(ports=[port]).port_refusal(f"http://{host}:{port}/a:b") is None
    assert "loopback" in (Guard(ports=[port]).refusal("127.0.0.1", port) or ""), "a port names no address"


def test_a_network_that_is_named_is_open_but_for_other_services() -> None:
    guard = Guard(["127.0.0.0/8"])
    assert guard.refusal("127.0.0.1", 3000) is None
    assert guard.refusal("::ffff:127.0.0.1", 40_000) is None
    assert guard.port_refusal("http://name.test:3000/") is None, "its address will tell"
    assert "port 3000" in (guard.refusal("93.184.216.34", 3000) or "")
    for port in (22, 25, 111, 6379, 11211):
        assert f"port {port} " in (guard.refusal("127.0.0.1", port) or "")
        assert f"port {port} " in (guard.port_refusal(f"http://127.0.0.1:{port}/") or "")
        assert Guard(["127.0.0.0/8"], [port]).refusal("127.0.0.1", port) is None


@pytest.mark.parametrize(
    "url",
    ["http://example.org/", "https://example.org/a:b", "https://example.org/?t=10:22", "http://[2606:4700::1111]/x:22"],
)
def test_a_url_without_a_port_is_never_refused_for_it(url: str) -> None:
    assert Guard().port_refusal(url) is None


SPECIAL = st.sampled_from([0, 0x64, 0x100, 0x2001, 0x2002, 0x2620, 0x2A00, 0x3FFE, 0x3FFF, 0x5F00, 0xFD00, 0xFE80])
LIKELY = st.builds(lambda head, rest: head << 112 | rest, SPECIAL, st.integers(0, 2**112 - 1) | st.integers(0, 2**33))


@given(st.integers(0, 2**128 - 1) | LIKELY)
def test_an_address_is_public_only_where_ipaddress_says_so(number: int) -> None:
    """A second opinion. The other way round it does not hold: we refuse more."""
    address = IPv6Address(number)
    if Guard().refusal(str(address)) is None and address not in IPv6Network("64:ff9b::/96"):
        assert address.is_global or address.teredo or address.ipv4_mapped


@given(st.integers(0, 2**32 - 1))
def test_the_mapped_form_is_judged_like_the_address(number: int) -> None:
    address = IPv4Address(number)
    refused = Guard().refusal(str(address))
    assert (Guard().refusal(f"::ffff:{address}") is None) == (refused is None)
    assert (Guard().refusal(f"64:ff9b::{address}") is None) == (refused is None)
    assert refused is not None or address.is_global


@pytest.mark.parametrize("network", ["", "localhost", "127.0.0.0/33", "10.0.0.0/8/8"])
def test_bad_networks(network: str) -> None:
    with pytest.raises(UsageError, match="not a network"):
        Guard([network])


def test_the_memory_is_bounded() -> None:
    guard = Guard()
    assert all(guard.refusal(f"1.{n >> 8}.{n & 255}.1") is None for n in range(300))
    assert guard.refusal("1.0.0.1") is None
