"""What a person should know of while a crawl goes on.

Does it lean too hard on one target? Politeness limits the pace; this watches the share. Requests are counted in rounds.
When a round is full and one target (a site, or an address that many sites share) had more than its share of it although
there was enough else to ask, there is an alert.

Has a site that many others link to moved all at once? Its name may have been taken over: what it says from now on may
be somebody else's word. Networks are compared, not addresses, for those change every day; and a network that a host has
been in before is no news, so that a name that goes back and forth between two providers is told of once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network

from harvestman.config import Watch
from harvestman.model import SiteRecord
from harvestman.policy.budget import linkers

ROUND = 2_000
"""Requests in a round."""
NETWORK_4, NETWORK_6 = 16, 32
"""Bits of an address that make a network: about what one provider has."""
MOVERS = 10_000
"""Hosts whose former networks are remembered."""


@dataclass(slots=True)
class Shares:
    """The requests of the round under way."""

    sites: Counter[str] = field(default_factory=Counter)
    addresses: Counter[str] = field(default_factory=Counter)
    requests: int = 0

    def asked(self, site: str, address: str, rules: Watch) -> list[str]:
        """Count a request; alerts when a round is over, most often none."""
        self.sites[site] += 1
        self.addresses[address] += 1
        self.requests += 1
        if self.requests < ROUND:
            return []
        alerts = [*_heavy("site", self.sites, rules), *_heavy("address", self.addresses, rules)]
        self.sites.clear()
        self.addresses.clear()
        self.requests = 0
        return alerts


def _heavy(what: str, asked: Counter[str], rules: Watch) -> list[str]:
    if len(asked) < rules.targets:
        return []
    total = asked.total()
    return [
        f"{what} {name} got {count / total:.0%} of the last {total} requests, to {len(asked)} of them"
        for name, count in asked.most_common(3)
        if count > rules.share * total
    ]


class Moves:
    """The networks of the hosts that have moved."""

    def __init__(self) -> None:
        self._homes: dict[str, frozenset[str]] = {}

    def moved(self, host: str, before: Iterable[str], after: Iterable[str]) -> str | None:
        """The alert for a host whose addresses changed, when none of them is in a network it was ever seen in."""
        known, new = _networks(before) | self._homes.get(host, frozenset()), _networks(after)
        if len(self._homes) >= MOVERS:
            self._homes.clear()
        self._homes[host] = known | new
        if known & new:
            return None
        return f"host {host} moved: its addresses were in {_listed(known)} and all are in {_listed(new)} now"


def esteemed(site: SiteRecord, rules: Watch) -> bool:
    """Whether so many other sites link to a site that a person should hear of its moves."""
    return linkers(site.linkers) >= rules.linkers


def _networks(addresses: Iterable[str]) -> frozenset[str]:
    return frozenset(_network(address) for address in addresses)


def _network(address: str) -> str:
    bits = NETWORK_6 if ip_address(address).version == 6 else NETWORK_4
    return str(ip_network(f"{address.partition('%')[0]}/{bits}", strict=False))


def _listed(networks: frozenset[str]) -> str:
    return ", ".join(sorted(networks))
