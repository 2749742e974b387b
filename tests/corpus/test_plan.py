"""Of each URL the newest version, each content once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pytest
from corpus.shelf import Shelf, page

from harvestman.corpus.plan import chosen, records_of
from harvestman.model import RecordRef
from harvestman.store.warc import read

A, B, C = "https://example.org/a", "https://example.org/b", "https://example.org/c"


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def planned(shelf: Shelf) -> list[tuple[str, bytes, int]]:
    """URL, body and copies of each document."""
    files = sorted((shelf.close() / "warc").glob("*.warc.gz"))
    plan = chosen(pa.concat_tables([records_of(path, number) for number, path in enumerate(files)]))
    found = []
    for row in plan.to_pylist():
        response = read(shelf.data / "warc", RecordRef(files[row["warc"]].name, row["offset"], row["length"]))
        found.append((row["url"] or response.url, response.body, row["copies"]))
    return sorted(found)


def test_the_newest_version_wins(shelf: Shelf) -> None:
    shelf.put(A, page("old"))
    shelf.put(B, page("b"))
    shelf.put(A, page("new"))
    assert planned(shelf) == [(A, page("new"), 0), (B, page("b"), 0)]


def test_one_url_spelt_in_two_ways_is_one(shelf: Shelf) -> None:
    shelf.put("https://example.org/a/?y=2&x=1", page("old"))
    shelf.put("https://example.org/a/?x=1&y=2", page("new"))
    assert [body for _, body, _ in planned(shelf)] == [page("new")]


def test_errors_and_redirects_are_no_versions(shelf: Shelf) -> None:
    shelf.put(A, page("text"))
    shelf.put(A, page("gone"), status=404)
    shelf.put(B, b"", status=301)
    assert planned(shelf) == [(A, page("text"), 0)]


def test_robots_txt_is_no_page(shelf: Shelf) -> None:
    shelf.put("https://example.org/robots.txt", b"User-agent: *\nDisallow:\n", "text/plain")
    assert planned(shelf) == []


def test_exact_copies_are_one_document(shelf: Shelf) -> None:
    first = shelf.put(A, page("text"))
    shelf.again(B, first)
    shelf.again(C, first)
    assert planned(shelf) == [(A, page("text"), 2)]


def test_a_page_that_went_back_is_what_it_was(shelf: Shelf) -> None:
    first = shelf.put(A, page("one"))
    shelf.put(A, page("two"))
    shelf.again(A, first)
    assert planned(shelf) == [(A, page("one"), 0)]


def test_not_modified_says_which_version_it_is(shelf: Shelf) -> None:
    first = shelf.put(A, page("one"))
    shelf.unmodified(first)
    assert planned(shelf) == [(A, page("one"), 0)]


def test_a_copy_outlives_its_original(shelf: Shelf) -> None:
    first = shelf.put(A, page("one"))
    shelf.again(B, first)
    shelf.put(A, page("two"))
    assert planned(shelf) == [(A, page("two"), 0), (B, page("one"), 0)]


def test_a_revisit_of_what_is_not_there_is_no_version(shelf: Shelf, tmp_path: Path) -> None:
    elsewhere = Shelf(tmp_path / "elsewhere")
    stranger = elsewhere.put(C, page("stranger"))
    shelf.put(A, page("one"))
    shelf.again(B, stranger)
    assert planned(shelf) == [(A, page("one"), 0)]


def test_nothing_stored_nothing_planned(shelf: Shelf) -> None:
    assert planned(shelf) == []
