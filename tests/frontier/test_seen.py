"""The seen-set: generations, snapshots, rebuilding; and that no URL is ever dropped on a guess."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from virtual import in_a_loop

from harvestman.embedded.objects import DirectoryObjects
from harvestman.embedded.state import RocksState
from harvestman.frontier.seen import Keeper, Seen
from harvestman.model import Instant, Status, UrlId, UrlRecord
from harvestman.ports import Changes

NAME = "seen/w00.bloom"


def url_id(number: int) -> UrlId:
    return UrlId((number % 7).to_bytes(2) + (number * 0x9E3779B97F4A7C15 % 2**64).to_bytes(16))


def ids(numbers: range) -> list[UrlId]:
    return [url_id(n) for n in numbers]


async def unseen(seen: Seen, urls: list[UrlId]) -> list[UrlId]:
    """Those that State does not know."""
    return (await seen.sort(urls))[0]


async def remember(state: RocksState, urls: list[UrlId]) -> None:
    """Commit URLs the frontier found new."""
    record = UrlRecord("https://a.test/", Status.PENDING, 0, 0, 0, Instant(0.0))
    await state.commit(Changes(records=dict.fromkeys(urls, record), new=urls))


@pytest.fixture
def objects(tmp_path: Path) -> DirectoryObjects:
    return DirectoryObjects(tmp_path / "objects")


@in_a_loop
async def test_each_url_is_new_once(state: RocksState) -> None:
    seen = Seen(state, 1_000)
    first = await unseen(seen, ids(range(500)))
    await remember(state, first)
    assert first == ids(range(500))
    assert await unseen(seen, ids(range(400, 600))) == ids(range(500, 600))


@in_a_loop
async def test_an_uncommitted_url_is_new_again(state: RocksState) -> None:
    """The commit that was to hold it was lost: the filter remembers it, State does not, State is right."""
    seen = Seen(state, 1_000)
    assert len(await unseen(seen, ids(range(5)))) == 5
    assert await unseen(seen, ids(range(5))) == ids(range(5))


@in_a_loop
async def test_a_full_filter_is_followed_by_a_larger_one_and_all_are_asked(state: RocksState) -> None:
    seen = Seen(state, 100)
    for start in range(0, 3_000, 100):
        new = await unseen(seen, ids(range(start, start + 100)))
        assert len(new) == 100
        await remember(state, new)
    assert 3 <= len(seen._filters) <= 8
    assert await unseen(seen, ids(range(3_000))) == []


@in_a_loop
async def test_false_positives_drop_nothing(state: RocksState) -> None:
    """With a filter that is wrong every other time, every URL is still new exactly once."""
    seen = Seen(state, 200, errors=0.5)
    found: list[UrlId] = []
    for start in range(0, 3_000, 60):
        new = await unseen(seen, ids(range(start, start + 60)))
        await remember(state, new)
        found += new
        assert await unseen(seen, ids(range(start, start + 60))) == []
    assert sorted(found) == sorted(ids(range(3_000)))


@in_a_loop
async def test_a_snapshot_and_what_came_after_it_are_all_there_after_a_restart(
    state: RocksState, objects: DirectoryObjects
) -> None:
    seen = Seen(state, 300)
    await remember(state, await unseen(seen, ids(range(1_000))))
    await seen.snapshot(objects, NAME)
    assert await state.fresh() == []
    await remember(state, await unseen(seen, ids(range(1_000, 1_200))))
    heir = Seen(state, 300)
    assert await heir.restore(objects, NAME) == "snapshot"
    assert len(heir._filters) >= 2
    filters = heir._filters
    assert all(any(url in part for part in filters) for url in ids(range(1_200))), "without asking State"
    assert set(await unseen(heir, ids(range(1_100, 1_300)))) == set(ids(range(1_200, 1_300)))


@in_a_loop
async def test_dying_between_snapshot_and_forgetting_does_no_harm(state: RocksState, objects: DirectoryObjects) -> None:
    seen = Seen(state, 300)
    await remember(state, await unseen(seen, ids(range(200))))
    await seen.snapshot(objects, NAME)
    await remember(state, ids(range(200)))  # as if they had never been forgotten
    heir = Seen(state, 300)
    assert await heir.restore(objects, NAME) == "snapshot"
    assert await unseen(heir, ids(range(300))) == ids(range(200, 300))


def cut(body: bytes) -> bytes:
    return body[:-7]


def flipped(body: bytes) -> bytes:
    return body[:500] + bytes([body[500] ^ 1]) + body[501:]


def foreign(body: bytes) -> bytes:
    return b"XXXX" + body[4:]


@pytest.mark.parametrize("damage", [cut, flipped, foreign, lambda body: b"", lambda body: body[:9]])
@in_a_loop
async def test_a_damaged_snapshot_is_rebuilt_from_state(
    damage: object, state: RocksState, objects: DirectoryObjects
) -> None:
    assert callable(damage)
    seen = Seen(state, 300)
    await remember(state, await unseen(seen, ids(range(1_000))))
    await seen.snapshot(objects, NAME)
    await remember(state, await unseen(seen, ids(range(1_000, 1_100))))
    whole = await objects.get(NAME)
    assert whole is not None
    await objects.put(NAME, damage(whole))
    heir = Seen(state, 300)
    assert await heir.restore(objects, NAME) == "lost"
    assert await unseen(heir, ids(range(900, 1_100))) == [], "it fails open: State is asked"
    await heir.snapshot(objects, "none")
    assert await objects.get("none") is None, "what is not whole is not written"
    assert await heir.rebuild() == 1_100
    filters = heir._filters
    assert all(any(url in part for part in filters) for url in ids(range(1_100)))
    assert set(await unseen(heir, ids(range(1_200)))) == set(ids(range(1_100, 1_200)))


@in_a_loop
async def test_a_sound_snapshot_that_the_filter_library_refuses_is_rebuilt_too(
    state: RocksState, objects: DirectoryObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Seen(state, 300)
    await remember(state, await unseen(seen, ids(range(50))))

    class Foreign:
        """A filter as another version of the library wrote it."""

        def to_bytes(self) -> bytes:
            return b"of another version"

    monkeypatch.setattr(seen, "_filters", [Foreign()])
    await seen.snapshot(objects, NAME)
    heir = Seen(state, 300)
    assert await heir.restore(objects, NAME) == "lost"
    assert await unseen(heir, ids(range(60))) == ids(range(50, 60))


@in_a_loop
async def test_nothing_at_all_is_empty(state: RocksState, objects: DirectoryObjects) -> None:
    assert await Seen(state, 10).restore(objects, NAME) == "empty"


@in_a_loop
async def test_the_records_of_known_urls_come_with_the_answer(state: RocksState) -> None:
    seen = Seen(state, 100)
    await remember(state, await unseen(seen, ids(range(3))))
    new, known = await seen.sort(ids(range(2, 5)))
    assert new == ids(range(3, 5))
    assert {url: record.url for url, record in known.items()} == {url_id(2): "https://a.test/"}


@in_a_loop
async def test_at_its_capacity_it_errs_once_in_ten_thousand(state: RocksState) -> None:
    seen = Seen(state, 20_000)
    await unseen(seen, ids(range(19_999)))
    assert len(seen._filters) == 1
    wrong = sum(url in seen._filters[0] for url in ids(range(100_000, 300_000)))
    assert wrong <= 40, f"{wrong} of 200,000: twice the promise, which chance alone does not explain"


@in_a_loop
async def test_a_lost_filter_is_rebuilt_behind_the_crawl_and_written_again(
    state: RocksState, objects: DirectoryObjects
) -> None:
    await remember(state, ids(range(5_000)))
    seen = Seen(state, 10_000)
    keeper = Keeper(seen, objects, NAME)
    await keeper.open()
    assert await unseen(seen, ids(range(4_990, 5_010))) == ids(range(5_000, 5_010)), "while it is being rebuilt"
    await remember(state, ids(range(5_000, 5_010)))
    for _ in range(100):
        await asyncio.sleep(0)
    await keeper.close()
    heir = Seen(state, 10_000)
    assert await heir.restore(objects, NAME) == "snapshot"
    assert await unseen(heir, ids(range(5_020))) == ids(range(5_010, 5_020))


@in_a_loop
async def test_a_rebuild_that_is_cut_short_writes_nothing(state: RocksState, objects: DirectoryObjects) -> None:
    await remember(state, ids(range(5_000)))
    keeper = Keeper(Seen(state, 10_000), objects, NAME)
    await keeper.open()
    await keeper.close()
    assert await objects.get(NAME) is None
