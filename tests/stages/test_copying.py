"""Pages held against the ones before them, over a real State: labelled, handed on, forgotten, and durable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from virtual import in_a_loop

from harvestman.copying import Copying, Read
from harvestman.embedded.state import RocksState
from harvestman.frontier.routing import Router
from harvestman.model import Instant, Page, Partition, SiteKey, SiteRecord, Status, UrlRecord, Visit
from harvestman.pages.simhash import fingerprint
from harvestman.policy.copies import Print
from harvestman.ports import Changes

ROUTER = Router(16)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[RocksState]:
    opened = RocksState(tmp_path / "state", cache_bytes=1 << 20, write_buffer=4 << 20)
    yield opened
    opened.shut()


def article(seed: int, *, edited: int = 0) -> str:
    """400 words; `edited` of them are others than in the article of that seed."""
    chance = Random(seed)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(400)]
    for number in range(edited):
        words[13 + 37 * number] = f"edited{number}"
    return "\n\n".join(" ".join(words[start : start + 80]) for start in range(0, 400, 80))


def read(url: str, text: str, at: float = 1.0, canonical: str | None = None, before: int = 0) -> Read:
    """`before`: the SimHash that it had at an earlier visit."""
    print = Print(*fingerprint(text))
    page = Page(url, 200, Instant(at), "text/html", 0, "", text=text, canonical=canonical, simhash=print.simhash)
    record = UrlRecord(url, Status.PENDING, 0, 0, 1, Instant(0.0))
    record.visit = Visit(Instant(0.5), 200, simhash=before) if before else None
    return page, print, record


async def told(state: RocksState, *groups: list[Read]) -> list[str | None]:
    """What each page says that it duplicates; a commit after every group."""
    copying = Copying(state, ROUTER)
    for group in groups:
        await copying.compare(group)
        await state.commit(Changes(near=copying.take()))
    return [page.near_duplicate_of for group in groups for page, _, _ in group]


@in_a_loop
async def test_a_near_duplicate_says_of_what_and_how_near(state: RocksState) -> None:
    first, copy, other = (
        read("https://a.test/1", article(1)),
        read("https://a.test/2", article(1, edited=3)),
        read("https://a.test/3", article(2)),
    )
    assert await told(state, [first], [copy, other]) == [None, "https://a.test/1", None]
    assert copy[0].distance in range(7)
    assert (first[0].distance, other[0].distance) == (None, None)


@in_a_loop
async def test_copies_within_one_group_are_recognised(state: RocksState) -> None:
    group = [read(f"https://a.test/{number}", article(1, edited=number)) for number in range(4)]
    assert await told(state, group) == [None, *["https://a.test/0"] * 3]


@in_a_loop
async def test_a_farm_takes_one_place(state: RocksState) -> None:
    await told(state, *([read(f"https://a.test/{number}", article(1, edited=number % 5))] for number in range(30)))
    assert len(list(state.waiting_rows("near"))) == 1


@in_a_loop
async def test_the_canonical_copy_takes_the_place_of_the_one_before(state: RocksState) -> None:
    printed = read("https://a.test/print", article(1), 1.0, canonical="https://a.test/story")
    story = read("https://a.test/story", article(1, edited=2), 2.0, canonical="https://a.test/story")
    mail = read("https://a.test/mail", article(1, edited=1), 3.0)
    assert await told(state, [printed], [story], [mail]) == [None, None, "https://a.test/story"]


@in_a_loop
async def test_the_copy_on_the_site_that_is_thought_more_of_stands_for_both(state: RocksState) -> None:
    record = SiteRecord(SiteKey("b.test"), Instant(0.0), cash=500.0, linkers=0xFF)
    _, _, partition = ROUTER.place(read("https://b.test/", "")[2].url.split("/")[2])  # type: ignore[arg-type]
    await state.commit(Changes(sites={record.site: (Partition(partition), record)}))
    pages = [read("https://a.test/1", article(1))], [read("https://b.test/1", article(1, edited=1))]
    assert await told(state, *pages, [read("https://c.test/1", article(1))]) == [None, None, "https://b.test/1"]


@in_a_loop
async def test_a_further_visit_is_no_copy_of_the_page_itself(state: RocksState) -> None:
    first = read("https://a.test/1", article(1))
    again = read("https://a.test/1", article(1, edited=1), before=first[1].simhash)
    assert await told(state, [first], [again], [read("https://a.test/2", article(1))]) == [
        None,
        None,
        "https://a.test/1",
    ]
    assert len(list(state.waiting_rows("near"))) == 1


@in_a_loop
async def test_a_page_that_changed_no_longer_stands_for_what_it_said(state: RocksState) -> None:
    first = read("https://a.test/1", article(1))
    changed = read("https://a.test/1", article(2), before=first[1].simhash)
    assert await told(state, [first], [changed], [read("https://a.test/2", article(1))]) == [None, None, None]


@in_a_loop
async def test_it_is_known_after_a_restart(tmp_path: Path) -> None:
    state = RocksState(tmp_path / "kept")
    await told(state, [read("https://a.test/1", article(1))])
    state.shut()
    state = RocksState(tmp_path / "kept")
    assert await told(state, [read("https://a.test/2", article(1, edited=2))]) == ["https://a.test/1"]
    state.shut()
