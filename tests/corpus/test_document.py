"""From a stored response to a document, or to the word why there is none."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
from corpus.shelf import HTML, Shelf, page, prose

from harvestman.corpus import document as subject
from harvestman.corpus import extract
from harvestman.corpus.document import BROKEN, NO_PAGE, NO_TEXT, NOARCHIVE, NOINDEX, Place, Settings, document_of
from harvestman.corpus.quality import Limits
from harvestman.corpus.schema import Document

URL = "https://www.example.org/a"
PLACE = Place("warc/w00.warc.gz", 7, 11)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def made(
    shelf: Shelf, body: bytes, kind: str = HTML, fields: str = "", mask: bool = False, simple: bool = False
) -> Document | str:
    settings = Settings("harvestman", asdict(Limits()), mask, simple)
    return document_of(shelf.put(URL, body, kind, fields), PLACE, settings)


def test_a_page_becomes_a_document(shelf: Shelf) -> None:
    head = (
        '<meta name=author content="Jane Doe"><meta property="article:published_time" content="2026-01-02">'
        '<link rel=license href="https://creativecommons.org/licenses/by/4.0/">'
    )
    found = made(shelf, page(prose(1), "Of the river", head))
    assert isinstance(found, Document)
    assert found.text == prose(1)
    assert (found.url, found.site, found.title) == (URL, "example.org", "Of the river")
    assert (found.author, found.published, found.licence) == ("Jane Doe", "2026-01-02", "CC-BY-4.0")
    assert (found.warc, found.offset, found.length) == ("warc/w00.warc.gz", 7, 11)
    assert (found.language, found.keep, found.reason, found.masked) == ("en", True, "", 0)
    assert found.signals.language_confidence > 0.65
    assert found.media_type == "text/html"


@pytest.mark.parametrize(
    ("head", "fields", "why"),
    [
        ("<meta name=robots content=noindex>", "", NOINDEX),
        ("<meta name=robots content='nofollow, NOARCHIVE'>", "", NOARCHIVE),
        ("<meta name=harvestman content=noarchive>", "", NOARCHIVE),
        ("", "X-Robots-Tag: noindex\r\n", NOINDEX),
        ("", "X-Robots-Tag: harvestman: noarchive\r\n", NOARCHIVE),
    ],
)
def test_who_does_not_want_to_be_kept_is_not(shelf: Shelf, head: str, fields: str, why: str) -> None:
    assert made(shelf, page(prose(1), head=head), fields=fields) == why


def test_what_is_meant_for_another_robot_does_not_concern_us(shelf: Shelf) -> None:
    assert isinstance(made(shelf, page(prose(1)), fields="X-Robots-Tag: otherbot: noarchive\r\n"), Document)


def test_what_is_no_text_is_left_out(shelf: Shelf) -> None:
    assert made(shelf, b"{}", "application/json") == NO_PAGE
    assert made(shelf, b"<html><body></body></html>") == NO_TEXT
    assert made(shelf, b"\x1f\x8bnothing", HTML, "Content-Encoding: gzip\r\n") in (BROKEN, NO_TEXT)


def test_plain_text_is_taken_as_it_is(shelf: Shelf) -> None:
    found = made(shelf, prose(3).encode(), "text/plain")
    assert isinstance(found, Document)
    assert (found.text, found.extractor) == (prose(3), "plain")


def test_pdfs_are_read(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harvestman.pages.pdf.text_of", lambda body: prose(4))
    found = made(shelf, b"%PDF-1.4", "application/pdf")
    assert isinstance(found, Document)
    assert (found.text, found.extractor, found.media_type) == (prose(4), "pdf", "application/pdf")
    monkeypatch.setattr("harvestman.pages.pdf.text_of", lambda body: "")
    assert made(shelf, b"%PDF-1.4", "application/pdf") == subject.PDF_UNREAD


def test_masking_is_off_unless_asked_for(shelf: Shelf) -> None:
    body = page(prose(5) + "\nWrite to jane@example.org about the river and the garden, she will be glad of it.")
    plain, masked = made(shelf, body), made(shelf, body, mask=True)
    assert isinstance(plain, Document)
    assert isinstance(masked, Document)
    assert "jane@example.org" in plain.text
    assert "jane@example.org" not in masked.text
    assert masked.masked == 1


def test_a_page_that_takes_too_long_gets_the_simpler_text(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(markup: str) -> str:
        while True:
            pass

    monkeypatch.setattr(extract, "recalled", endless)
    monkeypatch.setattr(subject, "_PATIENCE", 0.05)
    found = made(shelf, page(prose(6)))
    assert isinstance(found, Document)
    assert found.extractor == "fast"


def test_a_page_that_the_better_reader_fails_on_gets_the_simpler_text(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extract, "recalled", lambda markup: {}[markup])
    found = made(shelf, page(prose(6)))
    assert isinstance(found, Document)
    assert found.extractor == "fast"


def test_a_hostile_page_is_not_handed_on(shelf: Shelf) -> None:
    assert made(shelf, b"<div>" * 20_000 + b"text " * 100) == NO_TEXT


def test_the_simple_way_asks_no_one_else(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract, "recalled", lambda markup: pytest.fail("asked"))
    found = made(shelf, page(prose(7)), simple=True)
    assert isinstance(found, Document)
    assert found.extractor == "fast"
