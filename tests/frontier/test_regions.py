"""What a worker of a region puts down of its sites: where they are, and how long they take to answer."""

from __future__ import annotations

import pytest
from virtual import Drive, Reply, in_a_loop, web

from harvestman.embedded.state import RocksState
from harvestman.model import FailureKind, HostKey, Instant, SiteRecord
from harvestman.policy.regions import UNREACHED


def slow(url: str, now: Instant) -> Reply:
    if "down" in url:
        return Reply(failure=FailureKind.CONNECT)
    return Reply(404 if url.endswith("robots.txt") else 200, took=0.7)


async def site_of(drive: Drive, host: str) -> SiteRecord:
    _, site, partition = drive.router.place(HostKey(host))
    (record,) = await drive.state.sites([(partition, site)])
    assert record is not None
    return record


@in_a_loop
async def test_every_answer_of_a_site_is_measured_from_its_region(state: RocksState) -> None:
    drive = Drive(state, slow)
    drive.frontier.region = "eu"
    await drive.add([f"https://www.a.test/{number}" for number in range(4)] + ["https://down.test/"])
    await drive.run(patience=100)
    record = await site_of(drive, "a.test")
    assert record.address == "addr-of-www.a.test"
    assert record.reach.keys() == {"eu"}
    assert record.reach["eu"].seconds == pytest.approx(0.7, rel=0.6)
    assert record.reach["eu"].answers == 5
    assert (await site_of(drive, "down.test")).reach["eu"].seconds == UNREACHED


@in_a_loop
async def test_without_regions_nothing_is(state: RocksState) -> None:
    drive = Drive(state, web())
    await drive.add(["https://a.test/"])
    await drive.run()
    record = await site_of(drive, "a.test")
    assert (record.address, record.reach) == ("", {})
