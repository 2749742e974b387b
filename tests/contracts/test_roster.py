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


def test_the_partitions_are_split_evenly() -> None:
    counts = [sum(StaticRoster(64, 5, index).owns(Partition(p)) for p in range(64)) for index in range(5)]
    assert max(counts) - min(counts) <= 1
