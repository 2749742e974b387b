"""Media types by header and by first bytes, and what the fetcher does about a body that is not what it claims."""

from __future__ import annotations

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from stages.rawserver import RawServer, fetching, get, get_failure, page, run, sends
from suites import needed, rows

from harvestman import media
from harvestman.model import Answer, FailureKind, Request, Response
from harvestman.pages.charset import canonical, header_charset
from harvestman.pages.sniff import kind_of

HOME = "127.0.0.1"
PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 40


@needed
def test_media_types_are_parsed_as_browsers_do() -> None:
    cases = 0
    for case in rows("http/wpt_mime_types.jsonl"):
        found = media.parse(case["input"])
        assert (str(found) if found else None) == case["output"], case["id"]
        if found and case["essence"]:
            assert found.essence == case["essence"], case["id"]
        if found:
            assert canonical(found.parameters.get("charset", "")) == _lower(case["encoding"]), case["id"]
        cases += 1
    assert cases == 955


@needed
def test_several_content_types_are_joined_as_browsers_do() -> None:
    cases = 0
    for case in rows("http/wpt_content_type_headers.jsonl"):
        joined = ", ".join(case["contentType"])
        found = media.told(joined)
        assert found is not None
        assert str(found) == case["mimeType"], case["id"]
        assert media.essence(joined) == case["documentContentType"], case["id"]
        assert canonical(found.parameters.get("charset", "")) == _lower(case["encoding"]), case["id"]
        cases += 1
    assert cases == 20


def _lower(name: str | None) -> str | None:
    return name.lower() if name else None


@pytest.mark.parametrize("value", ["text/html;charset='gbk'", "text/html; charset = gbk", 'text/html;charset=gbk"'])
def test_a_charset_that_the_standard_does_not_find_is_taken_as_meant(value: str) -> None:
    assert header_charset(value) == "gbk"


def test_the_last_charset_of_one_type_counts() -> None:
    assert header_charset("text/plain;charset=gbk, text/html;charset=windows-1254") == "windows-1254"


@given(st.text(max_size=60))
def test_any_header_gives_a_value(value: str) -> None:
    assert media.essence(value) == media.essence(value).lower()
    found = media.told(value)
    assert found is None or media.parse(str(found)) == found


def test_a_long_header_is_not_waited_for() -> None:
    assert media.essence("text/html;" + '="' * 500_000) == "text/html"


CASES = [
    (b"<!doctype html><p>x", "text/html", "text/html"),
    (PNG, "text/html", "image/png"),
    (b"PK\x03\x04rest", "text/html", "application/zip"),
    (b"%PDF-1.7\n", "text/html", "application/pdf"),
    (b"\x00\x00\x00\x18ftypmp42", "text/html", "video/mp4"),
    (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "text/html", "image/webp"),
    (b"MZ\x90\x00\x03", "text/html", "application/x-msdownload"),
    (b"MZ is how DOS programs begin", "text/html", "text/html"),
    (b"BM\x36\x00", "text/html", "image/bmp"),
    (b"BMW builds cars", "text/plain", "text/plain"),
    (b"RIFF raff", "text/html", "text/html"),
    (b"\x7fELF\x02", "text/html", "application/x-executable"),
    (b"wOF2\x00\x01", "text/html", "font/woff2"),
    (b"\xff\xfe<\x00p\x00>\x00", "text/html", "text/html"),
    (b"\xff\xfeh\x00i\x00", "text/plain", "text/plain"),
    (b"\x00\x01\x02", "text/plain", "application/octet-stream"),
    (PNG, "text/plain", "image/png"),
    (b"<p>not sniffed to a page", "text/plain", "text/plain"),
    (b"  <!DOCTYPE HTML><p>", "", "text/html"),
    (b"<p>x", "application/octet-stream", "text/html"),
    (b"<pre>x", "application/octet-stream", "text/plain"),
    (b"<?xml version='1.0'?><rss/>", "", "text/xml"),
    (b"<?xml version='1.0'?>\n<!DOCTYPE html>\n<html lang='en'>", "", "application/xhtml+xml"),
    (b"plain words", "application/octet-stream", "text/plain"),
    (b"%PDF-1.4", "application/octet-stream", "application/pdf"),
    (b"\x01\x02\x03", "application/octet-stream", "application/octet-stream"),
    (b"", "", ""),
    (PNG, "application/json", "application/json"),
]


@for_each(("head", "claimed", "kind"), CASES)
def test_what_a_body_is(head: bytes, claimed: str, kind: str) -> None:
    assert media.real(head, claimed) == kind


@given(st.binary(max_size=600), st.sampled_from(["text/html", "text/plain", "", "application/octet-stream"]))
def test_any_bytes_are_something_and_parsing_agrees(body: bytes, claimed: str) -> None:
    kind = media.real(body[: media.HEAD], claimed)
    assert kind or not body
    expected = {**dict.fromkeys(media.HTML, "html"), "text/plain": "text"}.get(kind, "other")
    assert kind_of(body, claimed) == expected


async def _asked(reply: bytes) -> Answer:
    async with RawServer({"*": sends(reply)}).listening() as server, fetching() as fetcher:
        return await get(fetcher, Request(f"http://site.test:{server.port}/", HOME))


@pytest.mark.parametrize(
    ("body", "kind", "detail"),
    [
        (PNG, "text/html", "image/png, though it says text/html"),
        (PNG, "", "image/png, though it says nothing"),
        (b"PK\x03\x04" + b"x" * 99, "application/octet-stream", "application/zip, though it says"),
        (b"\x00" * 99, "text/plain", "application/octet-stream, though it says text/plain"),
        (b"\x00" * 99, "application/octet-stream", "application/octet-stream, though it says"),
    ],
)
def test_a_binary_under_a_false_name_is_unwanted(body: bytes, kind: str, detail: str) -> None:
    if body == b"\x00" * 99 and kind == "application/octet-stream":
        detail = "application/octet-stream"
    answer = run(_asked(page(body, kind=kind)))
    assert not isinstance(answer, Response)
    assert answer.kind is FailureKind.UNWANTED
    assert answer.detail.startswith(detail)


@for_each(
    ("body", "kind"),
    [
        (b"<!doctype html><p>x", "application/octet-stream"),
        (b"words", "application/octet-stream"),
        (b"%PDF-1.7", "application/octet-stream"),
        (b"%PDF-1.7", "text/html"),
        (b"words", ""),
        (PNG, "application/pdf"),
    ],
)
def test_what_can_be_read_is_taken_under_any_name(body: bytes, kind: str) -> None:
    answer = run(_asked(page(body, kind=kind)))
    assert isinstance(answer, Response)
    assert answer.body == body


def test_a_binary_is_stopped_at_its_first_bytes() -> None:
    async def scene() -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 500000\r\n\r\n"
        async with RawServer({"*": sends(head + PNG, then_stall=True)}).listening() as server, fetching() as fetcher:
            failure = await get_failure(fetcher, Request(f"http://site.test:{server.port}/", HOME))
            assert (failure.kind, failure.detail) == (FailureKind.UNWANTED, "image/png, though it says text/html")

    run(scene())


def test_a_packed_body_is_not_judged_by_its_packing() -> None:
    raw = page(b"\x1f\x8b\x08" + b"\x00" * 20, extra="Content-Encoding: gzip\r\n")
    assert isinstance(run(_asked(raw)), Response)
    raw = page(b"\x1f\x8b\x08" + b"\x00" * 20, kind="application/octet-stream", extra="Content-Encoding: gzip\r\n")
    assert not isinstance(run(_asked(raw)), Response)
