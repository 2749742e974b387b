"""Who owns which partition on one machine: a static split over the workers."""

from __future__ import annotations

from harvestman.model import Partition


class StaticRoster:
    """Worker `index` of `workers` owns every `workers`-th partition."""

    def __init__(self, partitions: int, workers: int, index: int) -> None:
        self.partitions = partitions
        self._workers = workers
        self._index = index

    def owns(self, partition: Partition) -> bool:
        return partition % self._workers == self._index

    def owner(self, partition: Partition) -> int:
        return partition % self._workers
