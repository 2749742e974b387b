"""Which addresses a crawler may touch: the public Internet, and what the operator names.

A page chooses where its links and redirects lead, so without this a crawler is a way into its operator's network.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from harvestman.errors import UsageError

_Address = IPv4Address | IPv6Address
_Network = IPv4Network | IPv6Network

_NAMED: Final[tuple[tuple[_Network, str], ...]] = tuple(
    (ip_network(network), reason)
    for network, reason in (
        ("169.254.169.254/32", "a cloud metadata service"),
        ("169.254.170.2/32", "a cloud metadata service"),
        ("100.100.100.200/32", "a cloud metadata service"),
        ("168.63.129.16/32", "a cloud metadata service"),
        ("192.0.0.192/32", "a cloud metadata service"),
        ("fd00:ec2::254/128", "a cloud metadata service"),
        ("fd20:ce::254/128", "a cloud metadata service"),
        ("0.0.0.0/8", "this host ('unspecified')"),
        ("::/128", "this host ('unspecified')"),
        ("127.0.0.0/8", "loopback"),
        ("::1/128", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("fe80::/10", "link-local"),
        ("100.64.0.0/10", "shared by a carrier's NAT"),
        ("224.0.0.0/4", "multicast"),
        ("ff00::/8", "multicast"),
        ("10.0.0.0/8", "private"),
        ("172.16.0.0/12", "private"),
        ("192.168.0.0/16", "private"),
        ("fc00::/7", "private"),
        ("fec0::/10", "private (site-local)"),
        ("192.0.0.0/24", "reserved (IETF protocols)"),
        ("192.0.2.0/24", "reserved for documentation"),
        ("198.51.100.0/24", "reserved for documentation"),
        ("203.0.113.0/24", "reserved for documentation"),
        ("192.88.99.0/24", "reserved (6to4 relays)"),
        ("198.18.0.0/15", "reserved for benchmarks"),
        ("240.0.0.0/4", "reserved"),
    )
)
_GLOBAL_6: Final = IPv6Network("2000::/3")
"""All of IPv6 that is assigned to the Internet; what lies outside is reserved."""
_RESERVED_6: Final = tuple(IPv6Network(network) for network in ("2001::/23", "2001:db8::/32", "3fff::/20"))
_NAT64: Final = IPv6Network("64:ff9b::/96")
_COMPATIBLE: Final = IPv6Network("::/96")
_CACHE_SIZE: Final = 1 << 16


class Guard:
    """Refuses addresses that are not public, except in the networks the scope names."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        """Take the networks that may be touched all the same; raise UsageError for one that is not a network."""
        self._allowed = tuple(_network(text) for text in allowed)
        self._known: dict[str, str | None] = {}

    def refusal(self, address: str) -> str | None:
        """Return why an address must not be touched, in words, or None when it may be."""
        try:
            return self._known[address]
        except KeyError:
            return self._judge(address)

    def _judge(self, text: str) -> str | None:
        if len(self._known) >= _CACHE_SIZE:
            self._known.clear()
        self._known[text] = reason = self._reason(text)
        return reason

    def _reason(self, text: str) -> str | None:
        try:
            address = ip_address(text)
        except ValueError:
            return f"{text!r} is not an IP address"
        if self._names(address):
            return None
        for form in (address, *_embedded(address)):
            if (reason := _special(form)) and not self._names(form):
                return f"{text} is {reason}" if form is address else f"{text} stands for {form}, which is {reason}"
        return None

    def _names(self, address: _Address) -> bool:
        return any(address in network for network in self._allowed)


def _network(text: str) -> _Network:
    try:
        return ip_network(text.strip(), strict=False)
    except ValueError as failure:
        raise UsageError(f"not a network: {text!r} ({failure}); write it as 127.0.0.0/8 or fd00::/8") from failure


def _special(address: _Address) -> str | None:
    for network, reason in _NAMED:
        if address in network:
            return reason
    if isinstance(address, IPv4Address) or _embedded(address):
        return None
    if address not in _GLOBAL_6 or any(address in network for network in _RESERVED_6):
        return "reserved"
    return None


def _embedded(address: _Address) -> tuple[IPv4Address, ...]:
    """Return the IPv4 addresses an IPv6 address leads to: mapped, compatible, NAT64, 6to4, Teredo."""
    if isinstance(address, IPv4Address):
        return ()
    if address.ipv4_mapped:
        return (address.ipv4_mapped,)
    if address.sixtofour:
        return (address.sixtofour,)
    if address.teredo:
        return address.teredo
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        return (IPv4Address(int(address) & 0xFFFF_FFFF),)
    return ()
