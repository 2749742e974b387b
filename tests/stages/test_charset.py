"""Bytes become text the way browsers do it."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvestman.pages.charset import canonical, decode, header_charset

SUITES = Path(os.environ.get("SUITES", Path(__file__).parents[3] / "shared" / "suites"))
needs_suites = pytest.mark.skipif(not (SUITES / "html").is_dir(), reason=f"no conformance suites at {SUITES}")


class Case(TypedDict, total=False):
    label: str
    name: str
    body_b64: str
    content_type: str | None
    expected: str
    needs_full_parse: bool


def cases(name: str) -> Iterator[Case]:
    for line in (SUITES / "html" / name).read_text("utf-8").splitlines():
        yield json.loads(line)


@needs_suites
def test_all_labels_of_the_standard() -> None:
    wrong = [c["label"] for c in cases("encoding_labels_wpt.jsonl") if canonical(c["label"]) != c["name"].lower()]
    assert wrong == []


@needs_suites
def test_html5lib_sniffing_cases() -> None:
    """All but late declarations in ASCII bodies: those read the same in either charset, so nobody looks for them."""
    wrong = []
    for case in cases("encoding_html5lib.jsonl"):
        body = base64.b64decode(case["body_b64"])
        _, charset = decode(body, case["content_type"] or "")
        if charset != case["expected"] and not (case["needs_full_parse"] and body.isascii()):
            wrong.append((body[:80], charset, case["expected"]))
    assert wrong == []


@pytest.mark.parametrize(
    ("body", "content_type", "text", "charset"),
    [
        ("é".encode(), "text/html; charset=utf-8", "é", "utf-8"),
        ("é".encode(), "text/html", "é", "utf-8"),
        (b"plain", "", "plain", "windows-1252"),
        (b"\xe9", "text/html; charset=ISO-8859-1", "é", "windows-1252"),
        (b"\x80", "text/html; charset=latin1", "€", "windows-1252"),
        (b"\xef\xbb\xbf\xc3\xa9", "text/html; charset=koi8-r", "é", "utf-8"),
        ("é".encode("utf-16-le"), "text/html; charset=utf-16", "é", "utf-16le"),
        (b"\xff\xfe\xe9\x00", "text/html; charset=utf-8", "é", "utf-16le"),
        (b"\xfe\xff\x00\xe9", "", "é", "utf-16be"),
        (b'<meta charset="windows-1251">\xcf', "text/html", '<meta charset="windows-1251">П', "windows-1251"),
        (b"<meta charset=utf-8>\xff", "text/html", "<meta charset=utf-8>\ufffd", "utf-8"),
        ("日本".encode("shift_jis"), "text/html;charset=sjis", "日本", "shift_jis"),
        (b"\xc3\xa9", "text/html; charset=nonsense", "é", "utf-8"),
    ],
)
def test_precedence(body: bytes, content_type: str, text: str, charset: str) -> None:
    assert decode(body, content_type) == (text, charset)


def test_a_declaration_beyond_the_prescan_counts_when_the_bytes_are_not_utf8() -> None:
    body = b"<!--" + b"x" * 5000 + b"--><meta charset=koi8-r><p>" + "привет".encode("koi8-r")
    assert decode(body, "text/html")[1] == "koi8-r"
    assert decode(body, "text/html")[0].endswith("привет")


def test_an_undeclared_legacy_charset_is_recognised() -> None:
    prose = "Правительство в среду представило новый законопроект о защите данных. " * 20
    assert decode(prose.encode("windows-1251"), "text/html") == (prose, "windows-1251")


def test_a_long_body_is_judged_by_a_sample() -> None:
    prose = "<p>政府は水曜日に新しい法案を提出した。" * 2000
    assert decode(b"<html>" * 400 + prose.encode("euc-jp"), "")[1] == "euc-jp"


@pytest.mark.parametrize(
    ("header", "charset"),
    [
        ("text/html; charset=UTF-8", "utf-8"),
        ('text/html;charset="utf-8"', "utf-8"),
        ("text/html; charset = 'gb2312'", "gbk"),
        ('text/html; foo="a; charset=utf-7;"; charset=utf-8', "utf-8"),
        ("text/html; xcharset=utf-8", None),
        ("text/html", None),
        ("", None),
        ("text/html; charset=\u00fctf", None),
    ],
)
def test_header_charset(header: str, charset: str | None) -> None:
    assert header_charset(header) == charset


@given(
    st.binary(max_size=2000),
    st.sampled_from(["", "text/html; charset=gbk", "a; charset=replacement", "charset=utf-16"]),
)
def test_any_bytes_decode(body: bytes, content_type: str) -> None:
    text, charset = decode(body, content_type)
    assert isinstance(text, str)
    assert charset == charset.lower()
    text.encode("utf-8")  # no lone surrogates


@given(st.text(max_size=30))
def test_any_label_is_answered(label: str) -> None:
    known = canonical(label)
    assert known is None or canonical(known) == known
