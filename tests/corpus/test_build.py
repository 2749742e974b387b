"""Whole builds of a small crawl: what comes out, stopping and going on, crashes, the command line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
import pytest
import zstandard
from corpus.shelf import THEN, Shelf, page, prose

from harvestman.cli import corpus as verb
from harvestman.cli import main
from harvestman.corpus import build as subject
from harvestman.corpus import parts
from harvestman.corpus.build import Builder, Progress
from harvestman.corpus.document import document_of
from harvestman.corpus.manifest import Asked, Manifest, read_manifest
from harvestman.corpus.schema import DOCUMENTS, SCHEMA_VERSION, VERSION_KEY
from harvestman.errors import StateError, UsageError
from harvestman.store.replay import read

ROOT = "https://example.org"
PAGES = 12
USUAL = Asked()


class Here:
    """A crew without processes: tasks are done one after the other, in this one."""

    def __init__(self, workers: int, preload: list[str]) -> None:
        self._stopping = False

    def stop(self) -> None:
        self._stopping = True

    abandon = stop

    def run(self, tasks: list[Any], work: Callable[..., None], tell: Callable[[int, int], None]) -> list[Any]:
        from multiprocessing import Value

        done, died = Value("q", 0), []
        for task in tasks:
            if self._stopping:
                break
            try:
                work(task, done)
            except MemoryError:
                died.append(task)
            tell(done.value, 1)
        return died


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    lonely(monkeypatch)


def lonely(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(subject, "Crew", Here)
    patch.setattr(subject, "_SMALLEST_PART", 4)


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The crawl they all build from; nobody changes it."""
    shelf = Shelf(tmp_path_factory.mktemp("corpus") / "crawl")
    for number in range(PAGES):
        shelf.put(f"{ROOT}/{number}", page(prose(number), f"Title number {number} of them"))
    first = shelf.put(f"{ROOT}/first", page(prose(100), "The first of two"))
    shelf.put(f"{ROOT}/near", page(f"{prose(100)}\n{prose(101, 3)}", "The second of two"))
    shelf.again(f"{ROOT}/same", first)
    shelf.put(f"{ROOT}/0", page(prose(50), "Title number 0, new"))
    shelf.put(f"{ROOT}/short", page("Too short to keep.", "Short one"))
    shelf.put(f"{ROOT}/hidden", page(prose(60), head="<meta name=robots content=noindex>"))
    return shelf.close()


@pytest.fixture
def data(crawl: Path, tmp_path: Path) -> Path:
    """A copy of one's own."""
    return Path(shutil.copytree(crawl, tmp_path / "crawl"))


@pytest.fixture(scope="module")
def corpus(crawl: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Manifest]:
    """The usual build, for those who only read it."""
    data = Path(shutil.copytree(crawl, tmp_path_factory.mktemp("built") / "crawl"))
    with pytest.MonkeyPatch.context() as patch:
        lonely(patch)
        return data, built(data)


def built(data: Path, asked: Asked = USUAL, **more: bool) -> Manifest:
    manifest = Builder(data, asked, 1, lambda progress: None).run(THEN, **more)
    assert manifest is not None
    return manifest


def rows(data: Path) -> dict[str, dict[str, Any]]:
    table = pq.read_table(data / "corpus")
    return {row["url"].removeprefix(ROOT): row for row in table.to_pylist()}


def test_a_corpus(corpus: tuple[Path, Manifest]) -> None:
    data, manifest = corpus
    found = rows(data)
    assert set(found) == {*(f"/{number}" for number in range(PAGES)), "/first", "/near", "/short"}
    assert found["/0"]["text"] == prose(50)
    assert found["/1"]["text"] == prose(1)
    assert found["/first"]["copies"] == 1
    assert (found["/near"]["duplicate_of"], found["/near"]["cluster_size"]) == (f"{ROOT}/first", 2)
    assert 0.85 < found["/near"]["similarity"] < 1
    assert found["/first"]["duplicate_of"] is None
    assert (found["/short"]["keep"], found["/short"]["reason"]) == (False, "min_words")
    assert (manifest.documents, manifest.kept, manifest.duplicates, manifest.clusters) == (15, 13, 1, 1)
    assert manifest.left_out == {"noindex": 1}
    assert manifest.rejected == {"min_words": 1}
    assert manifest.words == sum(row["words"] for row in found.values() if row["keep"] and not row["duplicate_of"])
    assert len(manifest.files) > 2
    assert read_manifest(data) == manifest
    assert not (data / "corpus.part").exists()


def test_every_document_leads_back_to_its_record(corpus: tuple[Path, Manifest]) -> None:
    data, _ = corpus
    from harvestman.model import RecordRef

    for row in rows(data).values():
        warc = data / row["warc"]
        response = read(warc.parent, RecordRef(warc.name, row["offset"], row["length"]))
        assert response.url == row["url"]
        assert response.started == row["fetched_at"].timestamp()
        assert row["schema_version"] == SCHEMA_VERSION


def test_the_schema_is_the_documented_one(corpus: tuple[Path, Manifest]) -> None:
    data, _ = corpus
    schema = pq.read_schema(data / "corpus" / "part-00000.parquet")
    assert schema.equals(DOCUMENTS)
    assert schema.metadata[VERSION_KEY] == str(SCHEMA_VERSION).encode()


@pytest.mark.usefixtures("alone")
def test_json_lines_hold_the_same(data: Path, corpus: tuple[Path, Manifest]) -> None:
    parquet = rows(corpus[0])
    shutil.copytree(corpus[0] / "corpus", data / "corpus")
    built(data, Asked(format="jsonl"))
    lines = b"".join(
        zstandard.ZstdDecompressor().stream_reader(path.open("rb")).read()
        for path in sorted((data / "corpus").glob("part-*.jsonl.zst"))
    ).splitlines()
    found = {row["url"].removeprefix(ROOT): row for row in map(json.loads, lines)}
    assert set(found) == set(parquet)
    assert found["/near"]["duplicate_of"] == parquet["/near"]["duplicate_of"]
    assert found["/1"]["fetched_at"].endswith("Z")
    assert list(found["/1"]) == DOCUMENTS.names
    assert not list((data / "corpus").glob("*.parquet"))


@pytest.mark.usefixtures("alone")
def test_only_what_is_worth_keeping(data: Path) -> None:
    manifest = built(data, Asked(only_kept=True))
    assert manifest.written == manifest.kept == len(rows(data)) == 13
    assert manifest.documents == 15


@pytest.mark.usefixtures("alone")
def test_a_build_that_was_stopped_goes_on(data: Path) -> None:
    seen: list[Progress] = []

    def stop_soon(progress: Progress) -> None:
        seen.append(progress)
        if progress.stage == "reading":
            builder.stop()

    builder = Builder(data, Asked(), 1, stop_soon)
    assert builder.run(THEN) is None
    texts = data / "corpus.part" / "texts"
    before = {path.name: path.stat().st_mtime_ns for path in texts.glob("*.parquet")}
    assert len(before) == 1
    assert not (data / "corpus").exists()
    with pytest.raises(StateError, match="goes on with the one that was begun"):
        read_manifest(data)
    told: list[Progress] = []
    manifest = Builder(data, Asked(), 1, told.append).run(THEN)
    assert manifest is not None
    assert manifest.documents == 15
    reading = [progress for progress in told if progress.stage == "reading"]
    assert reading[0].done > seen[-1].done, "what was read before counts as done"


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
def test_an_unfinished_build_keeps_its_plan_and_its_settings(data: Path) -> None:
    builder = Builder(data, Asked(), 1, lambda progress: builder.stop() if progress.stage == "reading" else None)
    assert builder.run(THEN) is None
    with pytest.raises(UsageError, match="--fresh"):
        built(data, Asked(mask_pii=True))
    assert built(data, Asked(mask_pii=True), fresh=True).documents == 15
    assert built(data).documents == 15, "a finished build does not stand in the way of another"


@pytest.mark.usefixtures("alone")
def test_a_part_that_brings_its_process_down_is_read_simply(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = document_of

    def fragile(response: Any, place: Any, settings: Any) -> Any:
        if response.url == f"{ROOT}/5" and not settings.simple:
            raise MemoryError
        return real(response, place, settings)

    monkeypatch.setattr(parts, "document_of", fragile)
    manifest = built(data)
    assert (manifest.documents, manifest.simple_parts) == (15, 1)
    assert rows(data)["/5"]["extractor"] == "fast"


@pytest.mark.usefixtures("alone")
def test_a_page_that_cannot_be_read_is_counted(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def clumsy(response: Any, place: Any, settings: Any) -> Any:
        return 1 // 0 if response.url == f"{ROOT}/5" else document_of(response, place, settings)

    monkeypatch.setattr(parts, "document_of", clumsy)
    assert built(data).left_out == {"noindex": 1, "failed: ZeroDivisionError": 1}


def test_no_crawl_no_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["corpus", "build", str(tmp_path)]) == 3
    assert "holds no crawl" in capsys.readouterr().err
    data = Shelf(tmp_path / "crawl").close()
    assert main.main(["corpus", "stats", str(data)]) == 3
    assert "harvestman corpus build" in capsys.readouterr().err
    for path in (data / "warc").iterdir():
        path.unlink()
    assert main.main(["corpus", "build", str(data)]) == 3
    assert "no WARC files" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "cure"),
    [
        (["--workers", "0"], "at least one process"),
        (["--near", "2"], "between 0.5 and 1"),
        (["--limit", "x=1"], "there is no limit 'x'"),
    ],
)
def test_wrong_options_name_the_cure(
    data: Path, options: list[str], cure: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["corpus", "build", str(data), *options]) == 2
    assert cure in capsys.readouterr().err


def test_the_extra_is_asked_for_by_name(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from harvestman.corpus import extract

    extract._trafilatura.cache_clear()
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    with pytest.raises(UsageError, match=r"pip install 'harvestman\[corpus\]'"):
        built(data)


@pytest.fixture
def handlers() -> Any:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.slow
@pytest.mark.usefixtures("handlers")
def test_the_command_line_in_real_processes(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["corpus", "build", str(data), "--workers", "2", "--json"]) == 0
    printed = capsys.readouterr()
    manifest = msgspec.json.decode(printed.out, type=Manifest)
    assert manifest.documents == 15
    assert "planning" in printed.err
    assert main.main(["corpus", "stats", str(data)]) == 0
    shown = capsys.readouterr().out
    assert "15; 15 written" in shown
    assert "noindex 1" in shown


@pytest.mark.usefixtures("handlers", "alone")
def test_ctrl_c_ends_it_with_130(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(self: verb.Display, progress: Progress) -> None:
        if progress.stage == "reading" and progress.done:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(verb.Display, "show", interrupted)
    assert main.main(["corpus", "build", str(data)]) == 130
    assert "goes on from here" in capsys.readouterr().err


def test_progress_says_how_long() -> None:
    assert verb.told(Progress("reading", 300, 1_000, 2), 200, 10.0) == (
        "reading: 300 of 1,000 pages, 20.0/s by 2 workers, 35 s to go"
    )
    assert verb.told(Progress("planning", 1, 2), 1, 10.0) == "planning: 1 of 2 WARC files"


@pytest.mark.slow
def test_kill_9_costs_no_more_than_the_parts_under_way(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "crawl")
    for number in range(120):
        shelf.put(f"{ROOT}/{number}", page(prose(number), f"Title number {number} of them"))
    data = shelf.close()
    command = [sys.executable, "-m", "harvestman", "corpus", "build", str(data), "--workers", "1"]
    texts = data / "corpus.part" / "texts"
    first = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        for _ in range(1_200):
            if len(list(texts.glob("*.parquet"))) == 1 or first.poll() is not None:
                break
            time.sleep(0.05)
    finally:
        first.kill()
        first.wait()
    (whole,) = texts.glob("*.parquet")
    before = whole.stat()
    second = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(1_200):
        if second.poll() is not None:
            break
        if whole.exists():
            assert (whole.stat().st_mtime_ns, whole.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
        time.sleep(0.05)
    assert second.wait(timeout=10) == 0
    assert {path: row["text"] for path, row in rows(data).items()} == {f"/{n}": prose(n) for n in range(120)}
