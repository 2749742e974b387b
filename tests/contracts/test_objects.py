"""Every promise of `ports.Objects`, for every implementation."""

from __future__ import annotations

from pathlib import Path

import pytest
from virtual import in_a_loop

from harvestman.embedded.objects import DirectoryObjects
from harvestman.ports import Objects


@pytest.fixture(params=["directory"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    assert request.param == "directory"
    return DirectoryObjects(tmp_path / "objects")


@in_a_loop
async def test_what_is_put_can_be_had_whole_or_by_range(objects: Objects) -> None:
    await objects.put("warc/one.gz", b"0123456789")
    assert await objects.get("warc/one.gz") == b"0123456789"
    assert await objects.get("warc/one.gz", 3) == b"3456789"
    assert await objects.get("warc/one.gz", 3, 4) == b"3456"
    assert await objects.get("warc/one.gz", 0, 0) == b""
    assert await objects.get("warc/one.gz", 8, 100) == b"89"
    assert await objects.get("warc/one.gz", 50, 5) == b""


@in_a_loop
async def test_a_missing_name_is_none_and_deleting_it_is_nothing(objects: Objects) -> None:
    assert await objects.get("no/such") is None
    assert await objects.get("nothing", 5, 5) is None
    await objects.delete("no/such")
    await objects.put("a", b"x")
    await objects.delete("a")
    assert await objects.get("a") is None


@in_a_loop
async def test_a_list_is_sorted_and_by_prefix_of_the_name(objects: Objects) -> None:
    assert await objects.list("") == []
    for name in ("warc/b", "warc/a", "warc2/c", "seen/w00.bloom", "top"):
        await objects.put(name, b"")
    assert await objects.list("") == ["seen/w00.bloom", "top", "warc/a", "warc/b", "warc2/c"]
    assert await objects.list("warc/") == ["warc/a", "warc/b"]
    assert await objects.list("war") == ["warc/a", "warc/b", "warc2/c"]
    assert await objects.list("none") == []


@in_a_loop
async def test_a_put_replaces_the_old(objects: Objects) -> None:
    await objects.put("a", b"old and long")
    await objects.put("a", b"new")
    assert await objects.get("a") == b"new"


@in_a_loop
async def test_a_put_that_dies_half_way_leaves_the_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = DirectoryObjects(tmp_path)
    await objects.put("seen/w00", b"old")

    def power_cut(number: int) -> None:
        raise OSError("power cut")

    monkeypatch.setattr("os.fsync", power_cut)
    with pytest.raises(OSError, match="power cut"):
        await objects.put("seen/w00", b"new")
    assert await objects.get("seen/w00") == b"old"
    assert await objects.list("") == ["seen/w00"], "the half that was written is no object"
