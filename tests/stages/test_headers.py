"""A head is read alike when it comes from the wire and when it comes from the store."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import for_each
from hypothesis import example, given
from hypothesis import strategies as st

from harvestman.fetch.heads import parse_headers
from harvestman.model import Instant, Response
from harvestman.store.records import header_fields
from harvestman.store.warc import WarcWriter, read

AT = Instant(1_700_000_000.0)
STATUS = b"HTTP/1.1 200 OK\r\n"

ODD = [
    (b"A: 1\r\n", {"a": "1"}),
    (b"A: 1\r\na: 2\r\n", {"a": "1, 2"}),
    (b"A: 1\r\n folded\r\n\tagain\r\n", {"a": "1 folded again"}),
    (b"A: 1\r\n \r\n", {"a": "1"}),
    (b"A: 1\r\nno colon\r\n of: nothing\r\n", {"a": "1"}),
    (b" folded: first\r\nA: 1\r\n", {"a": "1"}),
    (b": nameless\r\n folded\r\nA: 1\r\n", {"a": "1"}),
    (b"A : 1 \r\n", {"a": "1"}),
    (b"A: \xe9\r\n", {"a": "\xe9"}),
    (b"Location: /voil\xc3\xa0\r\n", {"location": "/voil\xc3\xa0"}),
    (b"\xc0: 1\r\n", {"\xe0": "1"}),
    (b"A: \x85\r\n", {"a": "\x85"}),
    (b"A: 1\x0bb\r\nB: x\ry\n", {"a": "1\x0bb", "b": "x\ry"}),
]


def live(head: bytes) -> dict[str, str]:
    """As libcurl hands the lines over: each with its end."""
    return parse_headers([line + b"\n" for line in head.split(b"\n")[:-1]])


@for_each(("fields", "expected"), ODD)
def test_odd_heads(fields: bytes, expected: dict[str, str]) -> None:
    head = STATUS + fields + b"\r\n"
    assert live(head) == expected
    assert header_fields(head) == expected


@given(st.lists(st.text(" \t:ab\r\n\x0b\x85\xa0\xe9", max_size=12).map(lambda text: text.encode("latin-1"))))
@example([b"x", b" y"])
@example([b":", b" y"])
def test_live_and_stored_heads_give_the_same_fields(lines: list[bytes]) -> None:
    head = STATUS + b"".join(line + b"\r\n" for line in lines) + b"\r\n"
    assert header_fields(head) == live(head)


@pytest.mark.parametrize(("fields", "expected"), ODD)
def test_a_stored_response_has_the_fields_it_came_with(tmp_path: Path, fields: bytes, expected: dict[str, str]) -> None:
    head = STATUS + fields + b"Content-Length: 2\r\n\r\n"
    response = Response("http://a.test/", 200, head, live(head), b"hi", "192.0.2.1", AT, AT, AT)
    writer = WarcWriter(tmp_path, "w00", software="test", contact="me@example.org", now=lambda: AT)
    ref = writer.write(response, digest="0" * 64)
    writer.close()
    assert read(tmp_path, ref).headers == response.headers
    assert response.headers.items() >= expected.items()
