"""Which partition a link belongs to, and under which name it is known there.

Region r of a crawl has the partitions from r * P on, P of them; a crawl without regions is one region.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harvestman.model import Discovery, HostKey, Partition, SiteKey, UrlId
from harvestman.policy.sites import site_of
from harvestman.policy.urls import host_of, key, partition_of, url_id


@dataclass(slots=True)
class Routed:
    """A discovery with its address in State."""

    found: Discovery
    host: HostKey
    site: SiteKey
    partition: Partition

    @property
    def id(self) -> UrlId:
        return url_id(key(self.found.url), self.partition)


REMEMBERED = 50_000
"""Hosts."""


class Router:
    """Host -> (site, partition), remembered."""

    def __init__(self, partitions: int, region_of: Callable[[SiteKey], int] | None = None) -> None:
        """`partitions`: of each region. `region_of`: the number of a site's region, the same for ever."""
        self._partitions = partitions
        self._region_of = region_of
        self._known: dict[str, tuple[HostKey, SiteKey, Partition]] = {}

    def place(self, host: HostKey) -> tuple[HostKey, SiteKey, Partition]:
        found = self._known.get(host)
        if found is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            site = site_of(host)
            partition = partition_of(site, self._partitions)
            if self._region_of is not None:
                partition = Partition(self._region_of(site) * self._partitions + partition)
            found = self._known[host] = (host, site, partition)
        return found

    def route(self, found: Discovery) -> Routed:
        host, site, partition = self.place(host_of(found.url))
        return Routed(found, host, site, partition)

    def id_of(self, url: str) -> UrlId:
        """The name in State of a URL in request form."""
        return url_id(key(url), self.place(host_of(url))[2])
