"""Which way a host is reached: straight, through a proxy, from which of our addresses.

Through a proxy the name is the proxy's to look up: we never do, so nobody but the proxy learns it. A .onion name has no
other way than a proxy; without one it is refused before anybody is asked about it (RFC 7686).

A site always leaves from the same address of ours, so the clock its servers see is the one that we keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from ipaddress import ip_address
from typing import Final

from harvestman.config import Egress as Addresses
from harvestman.config import Proxy
from harvestman.model import DIRECT, HostKey, Route, SiteKey
from harvestman.policy.politeness import ONION

NO_TOR: Final = Route(
    refusal="a .onion host is reached through Tor alone: "
    '[[proxies]] with match = ["*.onion"] and url = "socks5h://127.0.0.1:9050" names the way'
)
_SOCKS: Final = "socks5h://"


@dataclass(frozen=True, slots=True)
class _Rule:
    """A table of [[proxies]], ready to be asked."""

    names: frozenset[str]
    ends: tuple[str, ...]
    route: Route

    def matches(self, host: str) -> bool:
        return host in self.names or host.endswith(self.ends)


class Egress:
    """Promises: the same site and address give the same route; a host that a proxy matches never has another."""

    def __init__(self, proxies: Sequence[Proxy] = (), addresses: Addresses | None = None) -> None:
        ours = addresses or Addresses()
        self._rules = tuple(_rule(proxy) for proxy in proxies)
        self._sources = {
            version: tuple(text for text in ours.addresses if ip_address(text).version == version) for version in (4, 6)
        }
        self._from = {text: Route(source=text) for text in ours.addresses}
        self._limits = {proxy.url: proxy.at_once for proxy in proxies}
        self._per_address = ours.per_address

    def route(self, host: HostKey, site: SiteKey, address: str = "") -> Route:
        """The way to a host. Straight ways differ by the `address` they lead to, once that is known."""
        for rule in self._rules:
            if rule.matches(host):
                if rule.route.proxy:
                    return _isolated(rule.route, site)
                break
        if host.endswith(ONION):
            return NO_TOR
        if address and self._from:
            return self._from_ours(site, address)
        return DIRECT

    def _from_ours(self, site: SiteKey, address: str) -> Route:
        sources = self._sources[6 if ":" in address else 4]
        if not sources:
            return Route(refusal=f"no address of egress.addresses can reach {address}")
        # The highest of one draw per address: one more address moves only the sites that it wins.
        return self._from[max(sources, key=lambda source: blake2b(f"{site} {source}".encode(), digest_size=8).digest())]

    def reaches(self, address: str) -> bool:
        """Whether one of our addresses is of the family of `address`."""
        return not self._from or bool(self._sources[6 if ":" in address else 4])

    def at_once(self, route: Route) -> int:
        """How many requests may be under way by this route."""
        return self._limits[route.proxy] if route.proxy else self._per_address


def _rule(proxy: Proxy) -> _Rule:
    names = frozenset(_host(pattern) for pattern in proxy.match if "*" not in pattern)
    ends = tuple("" if pattern == "*" else _host(pattern[1:]) for pattern in proxy.match if "*" in pattern)
    if proxy.url == "direct":
        return _Rule(names, ends, DIRECT)
    return _Rule(names, ends, Route(proxy.url, proxy.user, proxy.password_env, proxy.slack))


def _host(pattern: str) -> str:
    return pattern.lower().strip("[]")


def _isolated(route: Route, site: SiteKey) -> Route:
    """Tor gives each SOCKS user circuits of its own, so no exit or service sees two sites side by side."""
    if route.user or not route.proxy.startswith(_SOCKS):
        return route
    return Route(route.proxy, site, "", route.slack)
