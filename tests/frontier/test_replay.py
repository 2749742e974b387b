"""Raw records an earlier process stored and did not live to take in; addresses that come late."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from virtual import START, Drive, OneJob, Reply, config, in_a_loop, web

from harvestman.config import Config
from harvestman.embedded.state import RocksState
from harvestman.harvest import Handed, Harvest, Taken
from harvestman.model import Instant, RecordRef, Response, Status
from harvestman.ports import Changes
from harvestman.recover import replayed
from harvestman.store.warc import WarcWriter


def stored(url: str, status: int, at: Instant, body: bytes = b"<title>x</title>", **headers: str) -> Response:
    fields = {"content-type": "text/html", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return Response(url, status, b"HTTP/1.1 200 OK\r\n\r\n", fields, body, "192.0.2.1", at, at, at)


def harvest_of(drive: Drive, directory: Path) -> Harvest:
    warc = WarcWriter(directory / "warc", "w00", software="test", contact="", now=lambda: float(START))
    return Harvest(Config(), drive.state, warc, drive.router, OneJob(), Random(1), {})


@in_a_loop
async def test_what_a_stored_answer_asked_for_is_obeyed_after_a_crash(state: RocksState, tmp_path: Path) -> None:
    drive = Drive(state, web())
    await drive.add(["https://busy.test/a", "https://busy.test/b"])
    answer = stored("https://busy.test/a", 429, START, retry_after="3600")
    heir = await drive.crash(1.0)
    harvest = harvest_of(heir, tmp_path)
    group = await replayed([(RecordRef("f", 0, 1), answer)], state, harvest, heir.frontier, heir.router)
    assert [taken.decision.status for taken in group] == [Status.PENDING]
    await heir.commit()
    await heir.run(patience=7200)
    assert min(line.started for line in heir.journal) >= START + 3600


@in_a_loop
async def test_only_the_page_that_brought_the_worker_down_is_parked(state: RocksState, tmp_path: Path) -> None:
    urls = [f"https://h{number}.test/" for number in range(3)]
    drive = Drive(state, web())
    await drive.add(urls)
    found = [(RecordRef("f", n, 1), stored(url, 200, START, body=b"%d" % n)) for n, url in enumerate(urls)]
    # Twice the worker died in here; the second time it had said what it was about to read.
    await state.commit(Changes(marks={"replays": b"2", "replaying": b"f:1"}))
    heir = await drive.crash()
    harvest = harvest_of(heir, tmp_path)
    await replayed(found, state, harvest, heir.frontier, heir.router)
    await heir.commit()
    records = await state.records([heir.router.id_of(url) for url in urls])
    assert [record.status for record in records if record] == [Status.FETCHED, Status.DEAD, Status.FETCHED]
    assert await state.mark("replays") == b"0"


@in_a_loop
async def test_two_pages_that_bring_the_worker_down_are_both_found_out(
    state: RocksState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = [f"https://h{number}.test/" for number in range(5)]
    drive = Drive(state, web())
    await drive.add(urls)
    found = [(RecordRef("f", n, 1), stored(url, 200, START, body=b"%d" % n)) for n, url in enumerate(urls)]
    whole = Harvest.gather

    async def deadly(self: Harvest, answers: Sequence[Handed]) -> list[Taken]:
        if any(answer[0].url in (urls[1], urls[3]) for answer in answers):
            raise MemoryError
        return await whole(self, answers)

    monkeypatch.setattr(Harvest, "gather", deadly)
    for life in range(4):
        heir = await drive.crash()
        try:
            await replayed(found, state, harvest_of(heir, tmp_path / str(life)), heir.frontier, heir.router)
        except MemoryError:
            continue
        break
    await heir.commit()
    assert life == 3, "one life for the group, one for each of the two, and one that ends well"
    records = await state.records([heir.router.id_of(url) for url in urls])
    dead, read = Status.DEAD, Status.FETCHED
    assert [record.status for record in records if record] == [read, dead, read, dead, read]
    assert await state.mark("replaying") == b""


@in_a_loop
async def test_a_site_keeps_its_pace_when_all_its_addresses_are_found_at_once(state: RocksState) -> None:
    drive = Drive(state, web(page=Reply(took=0.01)))
    await drive.add([f"https://h{number}.many.test/" for number in range(40)])
    leases = []
    while (lease := await drive.frontier.next(drive.now)) is not None:
        leases.append(lease)
    assert len(leases) == 40
    late = Instant(drive.now + 5)
    claimed = [drive.frontier.claim(lease, f"addr {n}", Instant(late + 300), late) for n, lease in enumerate(leases)]
    assert sum(claimed) == 1, "one slot, one request; the others have a slot each from now on"


@in_a_loop
async def test_an_address_that_is_past_its_time_when_it_comes_is_claimed_all_the_same(state: RocksState) -> None:
    drive = Drive(state, web(), settings=config())
    await drive.add(["https://late.test/"])
    lease = await drive.frontier.next(drive.now)
    assert lease is not None
    assert drive.frontier.claim(lease, "192.0.2.9", Instant(drive.now - 1), drive.now)
    answer = stored(lease.url, 404, Instant(drive.now + 1))
    await drive.frontier.settle_robots(lease, answer, b"", 0.5)
    assert drive.frontier.counts()["leased"] == 0
