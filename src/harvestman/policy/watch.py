"""Does the crawl lean too hard on one target? Politeness limits the pace; this watches the share.

Requests are counted in rounds. When a round is full and one target (a site, or an address that many sites share) had
more than its share of it although there was enough else to ask, a person should know.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from harvestman.config import Watch

ROUND = 2_000
"""Requests in a round."""


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
