"""Addresses a crawler may touch."""

from __future__ import annotations

import pytest

from harvestman.errors import UsageError
from harvestman.policy.guard import Guard


@pytest.mark.parametrize(
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
        ("64:ff9b:1::1", "reserved"),
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("network", ["", "localhost", "127.0.0.0/33", "10.0.0.0/8/8"])
def test_bad_networks(network: str) -> None:
    with pytest.raises(UsageError, match="not a network"):
        Guard([network])


def test_the_memory_is_bounded() -> None:
    guard = Guard()
    assert all(guard.refusal(f"1.{n >> 8}.{n & 255}.1") is None for n in range(300))
    assert guard.refusal("1.0.0.1") is None
