"""Who owns which partition on one machine: a static split over the workers."""

from __future__ import annotations

from harvestman.model import Partition


def owner_of(partition: Partition, workers: int) -> int:
    """Each of `workers` has every `workers`-th partition: the one place that says so."""
    return partition % workers


class StaticRoster:
    """The roster of worker `index` of `workers`."""

    def __init__(self, partitions: int, workers: int, index: int) -> None:
        self.partitions = partitions
        self._workers = workers
        self._index = index

    def owns(self, partition: Partition) -> bool:
        return owner_of(partition, self._workers) == self._index

    def owner(self, partition: Partition) -> int:
        return owner_of(partition, self._workers)
