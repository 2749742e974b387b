"""Bytes become text the way browsers do it."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from harvestman.pages.charset import canonical, decode, header_charset

SUITES = Path(os.environ.get("SUITES", Path(__file__).parents[3] / "shared" / "suites"))
needs_suites = pytest.mark.skipif(not (SUITES / "html").is_dir(), reason=f"no conformance suites at {SUITES}")


class Case(TypedDict, total=False):
    id: str
    label: str
    name: str
    body_b64: str
    content_type: str | None
    expected: str
    expected_encoding: str
    expected_text: str


def cases(name: str) -> Iterator[Case]:
    for line in (SUITES / "html" / name).read_text("utf-8").splitlines():
        yield json.loads(line)


@needs_suites
def test_all_labels_of_the_standard() -> None:
    wrong = [c["label"] for c in cases("encoding_labels_wpt.jsonl") if canonical(c["label"]) != c["name"].lower()]
    assert wrong == []


_LATE = "declared beyond the prescan in a body of ASCII, which reads the same in either charset: nobody looks for it"
_LENIENT = "malformed, but what is meant is plain; a guess would be worse"
_NO_TAG = "'< meta' is no tag in any browser"
_IN_BODY = "browsers read a <meta> within the first 1,024 bytes wherever it stands"
_NOT_CONTENT_TYPE = "only http-equiv=content-type declares a charset"
_GBK = "the standard calls it gbk; its decoder is that of gb18030"
_UTF_32 = "the standard knows no UTF-32: browsers dropped it as a danger"
_BIG_ENDIAN = "utf-16 is a name of utf-16le"
UNLIKE = {
    **{f"encoding_html5lib-{n:04}": _LATE for n in range(48, 54)},
    **{f"encoding_w3lib_header-{n:04}": _LENIENT for n in (7, 8, 9, 10, 11, 16, 17)},
    "encoding_w3lib_header-0029": "of several values the last that is a media type counts",
    **{f"encoding_w3lib_declared-{n:04}": _NO_TAG for n in (7, 24)},
    **{f"encoding_w3lib_declared-{n:04}": _IN_BODY for n in (12, 28)},
    **{f"encoding_w3lib_declared-{n:04}": _NOT_CONTENT_TYPE for n in (13, 14, 29)},
    **{f"encoding_w3lib_decode-{n:04}": _GBK for n in (6, 7)},
    **{f"encoding_w3lib_decode-{n:04}": _UTF_32 for n in (22, 23, 24, 25, 27)},
    "encoding_w3lib_decode-0026": _BIG_ENDIAN,
}
"""Where we do otherwise than a suite says, and why."""
_PYTHON_NAMES = {
    "ascii": "windows-1252",
    "big5hkscs": "big5",
    "cp1251": "windows-1251",
    "cp1252": "windows-1252",
    "iso8859-4": "iso-8859-4",
    "utf-16-be": "utf-16be",
    "utf-16-le": "utf-16le",
    "utf8": "utf-8",
}
"""w3lib gives the names of Python's codecs."""


def named(charset: str | None) -> str | None:
    return _PYTHON_NAMES.get(charset, charset) if charset else None


def unlike(name: str) -> set[str]:
    return {case for case in UNLIKE if case.rpartition("-")[0] == name}


@needs_suites
def test_html5lib_sniffing_cases() -> None:
    wrong = set()
    for case in cases("encoding_html5lib.jsonl"):
        _, charset = decode(base64.b64decode(case["body_b64"]), case["content_type"] or "")
        if charset != case["expected"]:
            wrong.add(case["id"])
    assert wrong == unlike("encoding_html5lib")


@needs_suites
def test_w3lib_header_cases() -> None:
    found = {
        case["id"]: (header_charset(case["content_type"] or ""), case) for case in cases("encoding_w3lib_header.jsonl")
    }
    wrong = {name for name, (charset, case) in found.items() if charset != named(case["expected"])}
    assert wrong == unlike("encoding_w3lib_header")


@needs_suites
def test_w3lib_declared_cases() -> None:
    """Where w3lib finds nothing, the standard's name for plain ASCII."""
    wrong = set()
    for case in cases("encoding_w3lib_declared.jsonl"):
        _, charset = decode(base64.b64decode(case["body_b64"]), "")
        if charset != (named(case["expected"]) or "windows-1252"):
            wrong.add(case["id"])
    assert wrong == unlike("encoding_w3lib_declared")


@needs_suites
def test_w3lib_decode_cases() -> None:
    """Text and charset; of plain ASCII the text alone, for what to call it is a matter of defaults."""
    wrong = set()
    for case in cases("encoding_w3lib_decode.jsonl"):
        body = base64.b64decode(case["body_b64"])
        text, charset = decode(body, case["content_type"] or "")
        expected = charset if body.isascii() else named(case["expected_encoding"])
        if (text, charset) != (case["expected_text"], expected):
            wrong.add(case["id"])
    assert wrong == unlike("encoding_w3lib_decode")


@for_each(
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
        (b'<?xml version="1.0" encoding="koi8-r"?>\xf0', "", '<?xml version="1.0" encoding="koi8-r"?>П', "koi8-r"),
        (
            b"<?xml encoding='koi8-r'?><meta charset=utf-8>",
            "",
            "<?xml encoding='koi8-r'?><meta charset=utf-8>",
            "utf-8",
        ),
        (b"<?xml encoding='utf-16'?>\xc3\xa9", "", "<?xml encoding='utf-16'?>é", "utf-8"),
        ("<?xml?>é".encode("utf-16-le"), "text/html", "<?xml?>é", "utf-16le"),
        ("<?xml?>é".encode("utf-16-be"), "text/html", "<?xml?>é", "utf-16be"),
        (b"<?xml version='1.0'?>\xc3\xa9", "", "<?xml version='1.0'?>é", "utf-8"),
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


@for_each(
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
