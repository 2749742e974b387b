"""The sites at hand: one shared record each, read from State when first needed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from weakref import WeakValueDictionary

from harvestman.frontier.staging import Staging
from harvestman.model import Instant, Partition, SiteKey, SiteRecord
from harvestman.ports import State


class Sites:
    """Least recently used out first, but a record that a host in RAM holds is the only one of its site."""

    def __init__(self, state: State, staging: Staging, capacity: int) -> None:
        self._state = state
        self._staging = staging
        self._capacity = capacity
        self._lately: OrderedDict[SiteKey, SiteRecord] = OrderedDict()
        self._alive: WeakValueDictionary[SiteKey, SiteRecord] = WeakValueDictionary()

    def __getitem__(self, site: SiteKey) -> SiteRecord:
        """A site that was brought before, in this turn of the loop."""
        return self._alive[site]

    async def bring(self, names: Iterable[tuple[Partition, SiteKey]], now: Instant) -> None:
        """Have these sites at hand, at least until the next call."""
        while len(self._lately) > self._capacity:
            self._lately.popitem(last=False)
        missing: list[tuple[Partition, SiteKey]] = []
        for name in names:
            record = self._alive.get(name[1])
            if record is None:
                missing.append(name)
            else:
                self._keep(record)
        if missing:
            staged = self._staging.changes.sites
            for (_, site), stored in zip(missing, await self._state.sites(missing), strict=True):
                newer = staged.get(site)
                self._keep(newer[1] if newer else stored or SiteRecord(site, now))

    def changed(self, partition: Partition, record: SiteRecord) -> None:
        """To be written with the next commit."""
        self._staging.changes.sites[record.site] = (partition, record)

    def _keep(self, record: SiteRecord) -> None:
        self._alive[record.site] = record
        self._lately[record.site] = record
        self._lately.move_to_end(record.site)
