"""What a browser showed becomes the document, under the terms that the server sent."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
import pytest
import shown
from corpus.shelf import HTML, Shelf, page, prose

from harvestman.cli.main import main
from harvestman.corpus.plan import chosen, records_of
from harvestman.model import RESOURCE, Instant, RecordRef
from harvestman.policy.urls import key, url_hash
from harvestman.store.warc import read

A, B = "https://example.org/a", "https://example.org/b"
SHELL = page("Please turn on JavaScript.")


class Stage(Shelf):
    """A shelf with what a browser showed, and what scripts asked for."""

    def show(self, url: str, body: bytes) -> None:
        self.now += 1.0
        self._warc.write_conversion(url, Instant(self.now), body, hashlib.sha256(body).hexdigest())

    def resource(self, url: str, body: bytes, kind: str) -> None:
        response = self._response(url, body, kind, "", 200)
        self._warc.write(response, digest=hashlib.sha256(body).hexdigest(), kind=RESOURCE)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def planned(stage: Stage) -> list[tuple[str, bytes, bytes, int]]:
    """Of each document: its URL, what was read of it, what the server sent if that is another thing, its copies."""
    directory = stage.close() / "warc"
    files = sorted(directory.glob("*.warc.gz"))
    plan = chosen(pa.concat_tables([records_of(path, number) for number, path in enumerate(files)]))
    found = []
    for row in plan.to_pylist():
        response = read(directory, RecordRef(files[row["warc"]].name, row["offset"], row["length"]))
        sent = b""
        if row["sent_warc"] is not None:
            ref = RecordRef(files[row["sent_warc"]].name, row["sent_offset"], row["sent_length"])
            sent = read(directory, ref).body
        found.append((row["url"] or response.url, response.body, sent, row["copies"]))
    return sorted(found)


# -- which version -----------------------------------------------------------------------------------------------------


def test_what_was_shown_is_read_instead_of_what_was_sent(stage: Stage) -> None:
    stage.put(A, SHELL)
    stage.put(B, page("b"))
    stage.show(A, page("a"))
    assert planned(stage) == [(A, page("a"), SHELL, 0), (B, page("b"), b"", 0)]


def test_the_last_look_counts(stage: Stage) -> None:
    stage.put(A, SHELL)
    stage.show(A, page("old"))
    stage.show(A, page("new"))
    assert planned(stage) == [(A, page("new"), SHELL, 0)]


def test_a_shell_that_comes_again_and_is_not_shown_again_is_what_it_was(stage: Stage) -> None:
    stage.put(A, SHELL)
    stage.show(A, page("a"))
    stage.put(A, SHELL)
    assert planned(stage) == [(A, page("a"), SHELL, 0)]


@pytest.mark.parametrize("how", ["again", "unmodified"])
def test_a_revisit_of_what_was_shown_is_that(stage: Stage, how: str) -> None:
    first = stage.put(A, SHELL)
    stage.show(A, page("a"))
    stage.unmodified(first) if how == "unmodified" else stage.again(A, first)
    assert planned(stage) == [(A, page("a"), SHELL, 0)]


def test_a_page_that_changed_and_was_not_shown_is_what_was_sent(stage: Stage) -> None:
    stage.put(A, SHELL)
    stage.show(A, page("a"))
    stage.put(A, page("no scripts any more"))
    assert planned(stage) == [(A, page("no scripts any more"), b"", 0)]


def test_a_copy_of_what_was_shown_is_a_copy(stage: Stage) -> None:
    first = stage.put(A, SHELL)
    stage.show(A, page("a"))
    stage.again(B, first)
    assert planned(stage) == [(A, page("a"), SHELL, 1)]


def test_the_same_shell_elsewhere_is_another_page(stage: Stage) -> None:
    stage.put(A, SHELL)
    stage.put(B, SHELL)
    stage.show(A, page("a"))
    assert planned(stage) == [(A, page("a"), SHELL, 0), (B, SHELL, b"", 0)]


def test_what_was_shown_of_nothing_is_nothing(stage: Stage) -> None:
    stage.put(A, page("a"))
    stage.show(B, page("b"))
    assert planned(stage) == [(A, page("a"), b"", 0)]


def test_what_scripts_asked_for_is_no_page(stage: Stage) -> None:
    stage.put(A, SHELL)
    stage.resource(f"{A}.js", b"let it = 1", "text/javascript")
    stage.resource(f"{A}.json", page("a"), HTML)
    stage.show(A, page("a"))
    assert planned(stage) == [(A, page("a"), SHELL, 0)]


# -- whole builds ------------------------------------------------------------------------------------------------------


def built(data: Path) -> dict[str, dict[str, Any]]:
    assert main(["corpus", "build", str(data), "--workers", "1", "--quiet"]) == 0
    return {row["url"]: row for row in pq.read_table(data / "corpus").to_pylist()}


@pytest.mark.slow
def test_what_the_server_asks_for_holds_for_what_was_shown(stage: Stage) -> None:
    asks = {
        "noindex": "X-Robots-Tag: noindex\r\n",
        "noarchive": "X-Robots-Tag: noarchive\r\n",
        "other": "X-Robots-Tag: otherbot: noindex\r\n",
        "reserved": "TDM-Reservation: 1\r\n",
        "licensed": "Content-Encoding: identity\r\n",
    }
    for number, (name, fields) in enumerate(asks.items()):
        stage.put(f"{A}/{name}", SHELL, fields=fields)
        stage.show(f"{A}/{name}", page(prose(number)))
    for name in ("noindex", "noarchive"):
        head = f'<meta name="robots" content="{name}">'
        stage.put(f"{A}/meta-{name}", page("Wait", head=head), fields=asks["other"])
        stage.show(f"{A}/meta-{name}", page(prose(9)))
    found = built(stage.close())
    assert {*found} == {f"{A}/other", f"{A}/reserved", f"{A}/licensed"}
    assert found[f"{A}/reserved"]["reservations"]
    assert not found[f"{A}/other"]["reservations"]


@pytest.mark.slow
def test_the_documents_of_a_crawl_are_what_was_shown(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    data = shown.crawl(tmp_path_factory, tmp_path)
    found, latest = built(data), shown.latest(data)
    assert {*found} == {*latest}, "a document for each page, and for nothing else"
    assert {row["id"] for row in found.values()} == {url_hash(key(url)) for url in latest}
    for url, row in found.items():
        assert row["digest"] == latest[url].digest
        assert row["fetched_at"].timestamp() <= latest[url].fetched_at + 0.001
    full = shown.filled(data)
    assert len(full) > shown.HOSTS
    for url in full:
        words = found[url]["text"].split()
        assert len(words) > len(latest[url].text.split()) / 2, "the text of the rendered page"
        assert found[url]["media_type"] == "text/html"
        where = Path(found[url]["warc"])
        ref = RecordRef(where.name, found[url]["offset"], found[url]["length"])
        assert hashlib.sha256(read(data / where.parent, ref).body).hexdigest() == found[url]["digest"]
    assert not [row for row in found.values() if row["keep"] and "JavaScript" in row["text"][:200]], "no shells"
