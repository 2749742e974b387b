"""Every promise of `ports.Roster`: each partition has exactly one owner."""

from __future__ import annotations

import pytest

from harvestman.embedded.roster import StaticRoster
from harvestman.model import Partition


@pytest.mark.parametrize(("partitions", "workers"), [(64, 1), (64, 2), (64, 3), (7, 7), (1024, 12)])
def test_every_partition_has_exactly_one_owner(partitions: int, workers: int) -> None:
    rosters = [StaticRoster(partitions, workers, index) for index in range(workers)]
    for partition in map(Partition, range(partitions)):
        owners = [index for index, roster in enumerate(rosters) if roster.owns(partition)]
        assert len(owners) == 1
        assert all(roster.owner(partition) == owners[0] for roster in rosters)
    assert all(roster.partitions == partitions for roster in rosters)


@pytest.mark.parametrize("workers", [(1, 1), (2, 1, 3), (64, 1), (1,)])
def test_every_partition_of_a_region_has_exactly_one_owner_among_its_workers(workers: tuple[int, ...]) -> None:
    rosters = [StaticRoster(64, workers, index) for index in range(sum(workers))]
    assert rosters[0].partitions == 64 * len(workers)
    first = 0
    for region, count in enumerate(workers):
        for partition in map(Partition, range(64 * region, 64 * (region + 1))):
            (owner,) = (index for index, roster in enumerate(rosters) if roster.owns(partition))
            assert first <= owner < first + count
        first += count
    assert rosters[0].owner(Partition(64 * len(workers) + 5)) < sum(workers), "of a region that is no more"


def test_the_partitions_are_split_evenly() -> None:
    counts = [sum(StaticRoster(64, 5, index).owns(Partition(p)) for p in range(64)) for index in range(5)]
    assert max(counts) - min(counts) <= 1
