"""The text of PDFs, honest and hostile. Each is made here, byte by byte."""

from __future__ import annotations

import time
import zlib

import pytest

from harvestman.model import Bytes, Seconds
from harvestman.pages import pdf
from harvestman.pages.pdf import Limits, text_of

pytestmark = pytest.mark.skipif(not pdf.can_read(), reason="needs the corpus extra: pip install harvestman[corpus]")


def document(*pages: str, stream: bytes | None = None, packed: bool = False) -> bytes:
    """A PDF with a line of text on each page; or with this content stream on all of them."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, text in enumerate(pages):
        shown = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)").encode("cp1252")
        content = stream or b"BT /F1 12 Tf 50 700 Td (" + shown + b") Tj ET"
        filters = b""
        if packed:
            content, filters = zlib.compress(content, 9), b" /Filter /FlateDecode"
        parts.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R "
            f"/Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        parts.append(b"<< /Length %d%b >>\nstream\n%b\nendstream" % (len(content), filters, content))
    body, places = b"%PDF-1.7\n", []
    for number, part in enumerate(parts, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    start = len(body)
    size = len(parts) + 1
    body += b"xref\n0 %d\n0000000000 65535 f \n%btrailer\n<< /Size %d /Root 1 0 R >>\n" % (size, table, size)
    return body + b"startxref\n%d\n%%%%EOF\n" % start


def test_the_text_of_every_page_comes_in_order() -> None:
    text = text_of(document("First page, with (brackets).", "Zweite Seite über Ähren.", packed=True))
    assert text.split("\n") == ["First page, with (brackets).", "Zweite Seite über Ähren."]


def test_limits_on_pages_and_text_cut() -> None:
    body = document(*(f"page number {number}" for number in range(6)))
    assert text_of(body, Limits(pages=2)) == "page number 0\npage number 1"
    assert text_of(body, Limits(text=20)) == "page number 0\npage n"
    assert text_of(body, Limits(body=Bytes(100))) == ""


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>no PDF",
        pytest.param(b"%PDF-1.7\n", marks=pytest.mark.slow),
        b"%PDF-1.7\n" + b"\x00\xff" * 5_000,
        document("whole")[:300],
        document("x").replace(b"/Count 1", b"/Count 999999999"),
        pytest.param(document("x").replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]"), marks=pytest.mark.slow),
        pytest.param(document("x").replace(b"/Root 1 0 R", b"/Root 9 0 R"), marks=pytest.mark.slow),
    ],
)
def test_broken_documents_have_no_text_or_some(body: bytes) -> None:
    assert text_of(body, Limits(seconds=Seconds(3.0))) in ("", "x", "whole")


@pytest.mark.slow
def test_a_document_that_unpacks_without_end_is_stopped() -> None:
    bomb = document("x", stream=b"BT /F1 12 Tf " + b"(aaaaaaaaaaaaaaaa) Tj " * 1_500_000 + b"ET", packed=True)
    assert len(bomb) < 1_000_000
    began = time.monotonic()
    text = text_of(bomb, Limits(seconds=Seconds(1.0), memory=Bytes(400 << 20), text=1_000))
    assert len(text) <= 1_000
    assert time.monotonic() - began < 5.0
