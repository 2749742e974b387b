"""Which site a host belongs to: the registrable domain by the public suffix list.

The list comes with the package `publicsuffixlist` (no dependencies, released weekly). Private suffixes (blogspot.com,
github.io) count: each of their customers is a site of its own. An unlisted top-level domain is a suffix of one label.
"""

from __future__ import annotations

from functools import cache, lru_cache

from publicsuffixlist import PublicSuffixList

from harvestman.model import HostKey, SiteKey


@cache
def _suffixes() -> PublicSuffixList:
    """Read when it is first needed: it takes 85 ms."""
    return PublicSuffixList()


@lru_cache(maxsize=1 << 16)
def site_of(host: HostKey) -> SiteKey:
    """Return the registrable domain; a host without one (an address, a single label, a bare suffix) is its own site."""
    name = host.rstrip(".").lower()
    if not name or _is_address(name):
        return SiteKey(host)
    return SiteKey(_suffixes().privatesuffix(name) or name)


def _is_address(name: str) -> bool:
    # In a parsed URL a last label that begins with a digit is always part of an IPv4 address.
    return ":" in name or name.rpartition(".")[2].isdigit()
