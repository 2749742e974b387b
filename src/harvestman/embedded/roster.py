"""Who owns which partition on one machine: a static split over the workers, region by region.

Each region has a block of as many partitions as a crawl without regions has, and its workers share the block. So a
site's partition is the same whatever regions are added behind its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from harvestman.model import Partition


def owner_of(partition: Partition, partitions: int, workers: Sequence[int]) -> int:
    """Of the `workers` of its region each has every n-th partition of the block: the one place that says so.

    A partition of a region that is no more has an owner too: links that were on their way there arrive and are sent on.
    """
    region, place = divmod(partition, partitions)
    region %= len(workers)
    return sum(workers[:region]) + place % workers[region]


class StaticRoster:
    """The roster of worker `index`. `workers`: how many there are, or how many in each region."""

    def __init__(self, partitions: int, workers: int | Sequence[int], index: int) -> None:
        self._block = partitions
        self._workers = (workers,) if isinstance(workers, int) else tuple(workers)
        self._index = index
        self.partitions = partitions * len(self._workers)

    def owns(self, partition: Partition) -> bool:
        return self.owner(partition) == self._index

    def owner(self, partition: Partition) -> int:
        return owner_of(partition, self._block, self._workers)
