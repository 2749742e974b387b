"""Which addresses and ports a crawler may touch: the public web, and what the operator names.

A page chooses where its links and redirects lead, so without this a crawler is a way into its operator's network, and
a way to knock at the doors of anybody's. The networks are those of IANA's special-purpose registries, and the
addresses at which clouds tell a machine its secrets. docs/security.md has the whole of it.

`Guard.port_refusal` runs once per new URL and once per request: 0.2 us when the URL names no port, 1.5 us when it does.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from harvestman.errors import UsageError
from harvestman.policy.urls import port_of

WEB_PORTS: Final = frozenset({80, 443, 8000, 8008, 8080, 8081, 8443, 8888})
"""Where the public web is served; any other port must be named."""
_OTHER_PORTS: Final = frozenset(
    {*range(1024), 1080, 1433, 1521, 1723, 2049, 2181, 2375, 2376, 3128, 3306, 3389, 3690, 4190, 4369, 5060, 5061, 5432}
    | {5672, 5900, 6000, 6379, *range(6665, 6670), 6697, 8009, 9042, 9092, 9200, 9300, 10250, 11211, 27017}
)
"""Mail, files, databases, queues, remote control: never asked unless named, not even in a network that is."""

_Address = IPv4Address | IPv6Address
_Network = IPv4Network | IPv6Network

_NAMED: Final[tuple[tuple[_Network, str], ...]] = tuple(
    (ip_network(network), reason)
    for network, reason in (
        ("169.254.169.254/32", "a cloud metadata service"),
        ("169.254.170.2/32", "a cloud metadata service"),
        ("169.254.170.23/32", "a cloud metadata service"),
        ("169.254.42.42/32", "a cloud metadata service"),
        ("169.254.0.23/32", "a cloud metadata service"),
        ("100.100.100.200/32", "a cloud metadata service"),
        ("168.63.129.16/32", "a cloud metadata service"),
        ("192.0.0.192/32", "a cloud metadata service"),
        ("fd00:ec2::254/128", "a cloud metadata service"),
        ("fd00:ec2::23/128", "a cloud metadata service"),
        ("fd00:42::42/128", "a cloud metadata service"),
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
        ("192.31.196.0/24", "reserved (AS112)"),
        ("192.175.48.0/24", "reserved (AS112)"),
        ("192.52.193.0/24", "reserved (multicast tunnels)"),
        ("192.88.99.0/24", "reserved (6to4 relays)"),
        ("198.18.0.0/15", "reserved for benchmarks"),
        ("240.0.0.0/4", "reserved"),
        ("64:ff9b:1::/48", "reserved (a network's own NAT64)"),
        ("2620:4f:8000::/48", "reserved (AS112)"),
    )
)
_GLOBAL_6: Final = IPv6Network("2000::/3")
"""All of IPv6 that is assigned to the Internet; what lies outside is reserved."""
_RESERVED_6: Final = tuple(IPv6Network(network) for network in ("2001::/23", "2001:db8::/32", "3fff::/20"))
_MAPPED: Final = IPv6Network("::ffff:0:0/96")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_COMPATIBLE: Final = IPv6Network("::/96")
_TEREDO: Final = IPv6Network("2001::/32")
_LEADING_OUT: Final = (_MAPPED, _NAT64, _TEREDO)
"""Outside the assigned space, but what they lead to may be public."""
_ISATAP: Final = (0x0000_5EFE, 0x0200_5EFE)
""" "An IPv4 address follows", in the second half of an address of any network."""
_LOW: Final = 0xFFFF_FFFF
_CACHE_SIZE: Final = 1 << 16


class Guard:
    """Refuses addresses that are not public, except in the networks the scope names, and ports that are not the web's.

    In a network that is named every port is open but those of other services.
    """

    def __init__(self, allowed: Iterable[str] = (), ports: Iterable[int] = ()) -> None:
        """Take the networks and ports that may be touched all the same; raise UsageError for what is not a network."""
        self._allowed = tuple(_network(text) for text in allowed)
        self._ports = WEB_PORTS.union(ports)
        self._known: dict[str, str | None] = {}

    def refusal(self, address: str, port: int = 443) -> str | None:
        """Return why an address must not be touched (at a port), in words, or None when it may be."""
        try:
            reason = self._known[address]
        except KeyError:
            reason = self._judge(address)
        if reason is None and port not in self._ports:
            return self._closed(port, self._names(ip_address(address)))
        return reason

    def port_refusal(self, url: str) -> str | None:
        """Return why a request form must not be asked for whatever its address is, or None when that decides."""
        if url.find(":", 6) < 0:  # none but the scheme's: no port
            return None
        if url.find(":", 6, url.find("/", 8)) < 0 or (port := port_of(url)) in self._ports:
            return None
        return self._closed(port, bool(self._allowed))

    def _closed(self, port: int, named: bool) -> str | None:
        if named and port not in _OTHER_PORTS:
            return None
        return f"port {port} is not one of the web's; --allow-port {port} opens it"

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
        if reason := _special(address):
            return f"{text} is {reason}"
        for inner in _embedded(address):
            if reason := _special(inner):
                return f"{text} stands for {inner}, which is {reason}"
        return None

    def _names(self, address: _Address) -> bool:
        # The mapped form is the same endpoint. The others lead through somebody's gateway, whose 10.0.0.1 is not ours.
        if isinstance(address, IPv6Address) and (mapped := address.ipv4_mapped):
            address = mapped
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
    if isinstance(address, IPv4Address) or any(address in network for network in _LEADING_OUT):
        return None
    if address in _COMPATIBLE:
        inner = IPv4Address(int(address) & _LOW)
        return f"the old form of {inner}, which is {_special(inner) or 'reached by IPv4'}"
    if address not in _GLOBAL_6 or any(address in network for network in _RESERVED_6):
        return "reserved"
    return None


def _embedded(address: _Address) -> tuple[IPv4Address, ...]:
    """Return the IPv4 addresses an IPv6 address leads to: mapped, NAT64, 6to4, Teredo, ISATAP."""
    if isinstance(address, IPv4Address):
        return ()
    inner: tuple[IPv4Address, ...] = address.teredo or ()
    if address.sixtofour:
        inner += (address.sixtofour,)
    if address in _MAPPED or address in _NAT64 or int(address) >> 32 & _LOW in _ISATAP:
        inner += (IPv4Address(int(address) & _LOW),)
    return inner
