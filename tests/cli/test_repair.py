"""harvestman repair: whatever happens to queues, schedules and filter, the URL records bring it back."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from random import Random

import msgspec
import pytest
from cases import for_each
from cli import crawled, mending
from cli.mending import run
from hypothesis import given
from hypothesis import strategies as st

from harvestman.embedded.rows import WAITING, Row, id_in, queue_row
from harvestman.lock import locked
from harvestman.mend import difference, rows_of
from harvestman.model import HostKey, Instant, Status, UrlId, UrlRecord
from harvestman.policy.urls import host_of
from harvestman.ports import Changes

URL = UrlId(b"\0\7" + b"x" * 16)
HERE = HostKey("example.org")


def record(status: Status, due: float = 0.0) -> UrlRecord:
    return UrlRecord(crawled.HOME, status, 1, 4, 77, crawled.THEN, due=Instant(due))


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small crawl with pages that wait for another visit: in the schedule, in the queue, among the retries."""
    layout = mending.write(tmp_path_factory.mktemp("repair") / "crawl")
    with mending.opened(layout.data) as states:
        for state in states:
            asyncio.run(state.commit(_visits(state.url_rows())))
    (layout.data / "seen").mkdir()
    for index in range(2):
        (layout.data / layout.seen(index)).write_bytes(b"a filter")
    return layout.data


def _visits(rows: object) -> Changes:
    changes = Changes()
    for url, known in rows:  # type: ignore[attr-defined]
        if known.status in (Status.FETCHED, Status.DUPLICATE):
            known = msgspec.structs.replace(known, due=Instant(1_800_000_000.123456), seq=50 + len(changes.records))
            changes.records[url] = known
            changes.revisit.append((known.due, url))
    return changes


@pytest.fixture
def data(crawl: Path, tmp_path: Path) -> Path:
    """A copy, to be hurt."""
    return Path(shutil.copytree(crawl, tmp_path / "crawl"))


# -- what waits where ------------------------------------------------------------------------------------------------


@for_each(
    ("known", "families"),
    [
        (record(Status.PENDING), ["queue"]),
        (record(Status.PENDING, 5.0), ["due"]),
        (record(Status.FETCHED), []),
        (record(Status.FETCHED, 5.0), ["revisit", "queue", "due"]),
        (record(Status.DUPLICATE, 5.0), ["revisit", "queue", "due"]),
        (record(Status.REDIRECTED, 5.0), ["revisit", "queue", "due"]),
        *[(record(status, 5.0), []) for status in Status if status > Status.REDIRECTED],
    ],
)
def test_where_a_url_may_wait(known: UrlRecord, families: list[str]) -> None:
    rows = rows_of(URL, known)
    assert [family for family, _, _ in rows] == families
    assert {id_in(row) for row in rows} <= {URL}
    if "queue" in families:
        assert queue_row(HERE, URL, known) in rows


rows = st.lists(st.tuples(st.integers(1, 3), st.lists(st.booleans(), min_size=3, max_size=3)), max_size=8)


@given(rows)
def test_in_the_end_every_url_waits_in_one_place(urls: list[tuple[int, list[bool]]]) -> None:
    wanted: list[list[Row]] = [
        [(WAITING[place], b"%d" % number, b"") for place in range(places)] for number, (places, _) in enumerate(urls)
    ]
    held = [here[:places] for places, here in urls]
    there = {
        row for places, here in zip(wanted, held, strict=True) for row, is_in in zip(places, here, strict=True) if is_in
    }
    missing, surplus = difference(wanted, held)
    assert not there & set(missing)
    assert set(surplus) <= there
    after = there - set(surplus) | set(missing)
    assert [len(after & set(places)) for places in wanted] == [1] * len(wanted)
    assert len(missing) + len(surplus) == 0 or after != there


# -- the verb --------------------------------------------------------------------------------------------------------


def test_a_whole_crawl_is_left_as_it_is(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = mending.waiting(data)
    out, _ = run(capsys, "repair", data, "--dry-run")
    assert out.splitlines()[0] == f"{data}: nothing is wrong"
    out, _ = run(capsys, "repair", data)
    assert "nothing is wrong" in out
    assert "The seen-filter is made anew when the crawl starts." in out
    assert mending.waiting(data) == before
    assert not list((data / "seen").iterdir())


def test_what_is_told(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capsys, "repair", crawl, "--dry-run", "--json")[0])
    assert (found["whole"], found["dry_run"], found["discovered"]) == (True, True, 12)
    assert sum(worker["urls"] for worker in found["workers"]) == 13
    assert sum(worker["queued"] for worker in found["workers"]) == 4
    assert sum(worker["retries"] for worker in found["workers"]) == 1
    assert sum(worker["revisits"] for worker in found["workers"]) == 2
    assert [worker["worker"] for worker in found["workers"]] == ["w00", "w01"]


@pytest.mark.slow
def test_everything_deleted(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = mending.waiting(data)
    with mending.opened(data) as states:
        for state in states:
            for family in WAITING:
                state.renew(family)
    assert not mending.waiting(data)
    out, _ = run(capsys, "repair", data, "--dry-run")
    assert f"to be mended with `harvestman repair {data}`" in out
    assert not mending.waiting(data), "it was to say, not to do"
    assert "mended\n" in run(capsys, "repair", data)[0]
    assert mending.waiting(data) == before
    assert mending.examined(data).whole


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
def test_entries_lost_moved_and_made_up(data: Path, capsys: pytest.CaptureFixture[str], seed: int) -> None:
    rng = Random(seed)
    before = mending.waiting(data)
    hurt = 0
    with mending.opened(data) as states:
        for state in states:
            here = [row for family in WAITING for row in state.waiting_rows(family)]
            gone = rng.sample(here, len(here) // 2)
            ids = [url for url, _ in state.url_rows()]
            false = [("due", url[:2] + bytes(8) + url, b"") for url in rng.sample(ids, len(ids) // 2)]
            false += [("queue", url[:2] + b"example.org\0\4" + rng.randbytes(8), url) for url in ids[:2]]
            state.write_rows(false, gone)
            hurt += len(gone) + len(false)
    found = json.loads(run(capsys, "repair", data, "--json")[0])["workers"]
    assert sum(worker["missing"] + worker["stale"] for worker in found) == hurt
    assert mending.waiting(data) == before
    assert mending.examined(data).whole


def test_a_page_may_wait_for_its_visit_in_the_queue_but_not_twice(data: Path) -> None:
    with mending.opened(data) as states:
        for state in states:
            for url, known in state.url_rows():
                if known.status is Status.FETCHED:
                    revisit, queue, _ = rows_of(url, known)
                    state.write_rows([queue], [revisit])
    assert mending.examined(data).whole
    moved = mending.waiting(data)
    with mending.opened(data) as states:
        for state in states:
            for url, known in state.url_rows():
                if known.status is Status.FETCHED:
                    state.write_rows(rows_of(url, known))
    assert sum(worker.stale for worker in mending.examined(data).workers) == 2
    assert moved < mending.waiting(data)


def test_cursors_and_numbers(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cursor beyond what waits would hide it; a number below what waits would be given out twice."""
    partition = 0
    with mending.opened(data) as states:
        for state in states:
            for place, host in state.host_rows():
                if host.host == HERE:
                    partition = place
                    host.cursors = [9] * 8
                    asyncio.run(state.commit(Changes(hosts={HERE: (place, host)}, marks={"seq": b"3"})))
    clocks = mending.host(data, crawled.HOME)
    assert sum(worker.hidden for worker in mending.examined(data).workers) == 1
    run(capsys, "repair", data)
    assert mending.host(data, crawled.HOME) == msgspec.structs.replace(clocks, cursors=[])
    with mending.opened(data) as states:
        highest = max(known.seq for _, known in states[partition % 2].url_rows())
        assert int(states[partition % 2].read_mark("seq") or 0) == highest > 3


@pytest.mark.parametrize(
    "damage", [pytest.param(each, marks=pytest.mark.slow) for each in ("deleted", "cut", "altered")]
)
def test_files_of_the_queues_are_damaged(data: Path, capsys: pytest.CaptureFixture[str], damage: str) -> None:
    before = mending.waiting(data)
    files = _queue_files(data)
    assert files
    for file in files:
        _hurt(file, damage)
    assert "harvestman repair" in run(capsys, "status", data, code=3)[1]
    out, _ = run(capsys, "repair", data)
    assert "mended" in out
    assert ("opened without" in out) == (damage != "altered")
    assert ("cannot be read" in out) == (damage == "altered")
    assert "are lost with these files" not in out
    assert mending.waiting(data) == before
    assert mending.examined(data).whole


def _queue_files(data: Path) -> set[Path]:
    """The queues of every worker in files of their own."""
    with mending.opened(data) as states:
        queues = [[*state.waiting_rows("queue")] for state in states]
        for state in states:
            state.renew("queue")
        before = set(data.glob("state/*/*.sst"))
        for state, queue in zip(states, queues, strict=True):
            state.write_rows(queue)
            state._family["queue"].flush(True)
        return set(data.glob("state/*/*.sst")) - before


def _hurt(file: Path, damage: str) -> None:
    content = file.read_bytes()
    if damage == "deleted":
        file.unlink()
    elif damage == "cut":
        file.write_bytes(content[: len(content) // 2])
    else:
        file.write_bytes(b"\xaa" * 64 + content[64:])


def test_what_makes_no_sense_is_refused(crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with locked(crawl):
        assert "in use by another crawl" in run(capsys, "repair", crawl, code=3)[1]
        run(capsys, "repair", crawl, "--dry-run")
    assert "holds no crawl" in run(capsys, "repair", tmp_path / "none", code=3)[1]
    assert not list(tmp_path.iterdir())
    assert host_of(crawled.HOME) == HERE
