"""The log of parsed pages: frames, torn tails, cutting back to what was committed, rotation."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep

import pytest

from harvestman.model import Instant, Link, Page
from harvestman.store.pages import PageLog, read_pages


def page(number: int) -> Page:
    links = [Link(f"https://a.test/{number}/{n}", "words ü", "nofollow") for n in range(3)]
    return Page(
        f"https://a.test/{number}", 200, Instant(1.5), "text/html", 1, "ab" * 32, text="text " * 50, links=links,
        simhash=2**64 - 1, duplicate_of=None,
    )  # fmt: skip


def written(directory: Path, groups: list[range], max_bytes: int = 1 << 30) -> PageLog:
    log = PageLog(directory, "w00", None, max_bytes)
    for group in groups:
        log.append([page(n) for n in group])
    return log


def numbers(directory: Path) -> list[int]:
    return [int(found.url.rpartition("/")[2]) for found in read_pages(directory)]


def test_pages_come_back_as_they_were_and_in_order(tmp_path: Path) -> None:
    written(tmp_path, [range(3), range(3, 4), range(4, 9)]).close()
    assert list(read_pages(tmp_path)) == [page(n) for n in range(9)]


def test_a_group_without_pages_costs_nothing(tmp_path: Path) -> None:
    log = written(tmp_path, [range(2)])
    before = log.position
    log.append([])
    assert log.position == before
    log.close()
    assert numbers(tmp_path) == [0, 1]


def test_workers_follow_one_another(tmp_path: Path) -> None:
    written(tmp_path, [range(2)]).close()
    other = PageLog(tmp_path, "w01", None)
    other.append([page(7)])
    other.close()
    assert numbers(tmp_path) == [0, 1, 7]


def test_a_reader_may_look_at_any_moment(tmp_path: Path) -> None:
    """Every length the file can have while it is being written gives whole groups and no error."""
    log = written(tmp_path, [range(2), range(2, 3)])
    name, length = log.position
    log.close()
    body = (tmp_path / name).read_bytes()
    assert len(body) == length
    seen = set()
    for cut in range(0, length + 1, 7):
        (tmp_path / name).write_bytes(body[:cut])
        seen.add(tuple(numbers(tmp_path)))
    assert seen <= {(), (0, 1), (0, 1, 2)}
    assert len(seen) >= 2


@pytest.mark.parametrize("damage", [b"\x00" * 40, b"\xff" * 40, b"\x00\x00\x00\x05abcd hello"])
def test_rubbish_behind_the_last_frame_is_left_out(tmp_path: Path, damage: bytes) -> None:
    log = written(tmp_path, [range(3)])
    name, _ = log.position
    log.close()
    with (tmp_path / name).open("ab") as file:
        file.write(damage)
    assert numbers(tmp_path) == [0, 1, 2]


def test_what_was_not_committed_is_cut_off_on_the_next_start(tmp_path: Path) -> None:
    log = written(tmp_path, [range(2)])
    committed = log.position
    log.append([page(2), page(3)])
    os.write(log._file, b"half a fra")
    log.close()
    again = PageLog(tmp_path, "w00", committed)
    assert again.position == committed
    again.append([page(9)])
    again.close()
    assert numbers(tmp_path) == [0, 1, 9]


def test_with_nothing_committed_the_log_begins_anew_but_only_its_own(tmp_path: Path) -> None:
    written(tmp_path, [range(2)]).close()
    other = PageLog(tmp_path, "w01", None)
    other.append([page(5)])
    other.close()
    PageLog(tmp_path, "w00", None).close()
    assert numbers(tmp_path) == [5]


def test_a_full_file_is_followed_by_another(tmp_path: Path) -> None:
    log = written(tmp_path, [range(n, n + 1) for n in range(10)], max_bytes=500)
    name, _ = log.position
    log.close()
    assert len(list(tmp_path.iterdir())) > 2
    assert name == max(path.name for path in tmp_path.iterdir())
    assert numbers(tmp_path) == list(range(10))


def test_files_begun_after_the_commit_are_removed(tmp_path: Path) -> None:
    log = written(tmp_path, [range(1), range(1, 2)], max_bytes=500)
    committed = log.position
    for n in range(2, 8):
        log.append([page(n)])
    assert log.position[0] > committed[0]
    log.close()
    again = PageLog(tmp_path, "w00", committed, max_bytes=500)
    again.append([page(100)])
    again.close()
    assert numbers(tmp_path) == [0, 1, 100]


def test_a_file_shorter_than_what_was_committed_is_not_made_longer_by_zeros(tmp_path: Path) -> None:
    """A power cut: State was on disk, the last frames of the log were not."""
    log = written(tmp_path, [range(2), range(2, 4)])
    name, length = log.position
    log.close()
    os.truncate(tmp_path / name, length - 10)
    again = PageLog(tmp_path, "w00", (name, length))
    again.append([page(50)])
    again.close()
    assert numbers(tmp_path) == [0, 1, 50]


def test_a_file_that_is_gone_is_not_missed(tmp_path: Path) -> None:
    log = PageLog(tmp_path, "w00", ("w00-00003.pages", 1234))
    log.append([page(1)])
    position = log.position
    log.close()
    assert numbers(tmp_path) == [1]
    again = PageLog(tmp_path, "w00", position)
    again.close()
    assert numbers(tmp_path) == [1]


def test_a_write_that_takes_only_a_part_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr("harvestman.store.pages.os.write", lambda file, body: real(file, body[:100]))
    log = written(tmp_path, [range(3), range(3, 5)])
    length = log.position[1]
    log.close()
    assert numbers(tmp_path) == list(range(5))
    assert length == (tmp_path / "w00-00000.pages").stat().st_size


def test_a_sync_that_waits_while_the_log_rotates_finds_the_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = PageLog(tmp_path, "w00", None, max_bytes=1)
    log.append([page(0)])
    closed: set[int] = set()
    stale: list[int] = []
    real_sync, real_close = os.fdatasync, os.close

    def slow_sync(file: int) -> None:
        if file in closed:
            stale.append(file)
        sleep(0.001)
        real_sync(file)

    def noted_close(file: int) -> None:
        real_close(file)
        closed.add(file)
        sleep(0.001)

    monkeypatch.setattr("harvestman.store.pages.os.fdatasync", slow_sync)
    monkeypatch.setattr("harvestman.store.pages.os.close", noted_close)
    with ThreadPoolExecutor(1) as thread:
        syncs = []
        for number in range(1, 20):
            closed.clear()
            syncs.append(thread.submit(log.sync))
            log.append([page(number)])
        assert [sync.result() for sync in syncs] == [None] * 19
    monkeypatch.undo()
    log.close()
    assert stale == []
    assert numbers(tmp_path) == list(range(20))


def test_a_rotation_that_fails_leaves_the_log_where_it_was(tmp_path: Path) -> None:
    log = PageLog(tmp_path, "w00", None, max_bytes=1)
    log.append([page(0)])
    before = log.position
    (tmp_path / "w00-00001.pages").mkdir()
    with pytest.raises(OSError, match="directory"):
        log.append([page(1)])
    assert log.position == before
    (tmp_path / "w00-00001.pages").rmdir()
    log.append([page(1)])
    log.close()
    assert numbers(tmp_path) == [0, 1]
