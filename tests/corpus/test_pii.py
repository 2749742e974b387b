"""What is masked, and what only looks personal."""

from __future__ import annotations

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from harvestman.corpus.pii import masked


@for_each(
    ("text", "expected"),
    [
        ("Write to jane.doe+news@mail.example.co.uk today", "Write to <EMAIL> today"),
        ("<a.b@example.org>, c@d.example", "<<EMAIL>>, <EMAIL>"),
        ("Call +49 (0)30 1234567 now", "Call <PHONE> now"),
        ("+1 212 555 0147", "<PHONE>"),
        ("+33 1 23 45 67 89.", "<PHONE>."),
        ("(212) 555-0147 or 212-555-0147", "<PHONE> or <PHONE>"),
        ("1-800-555-0147", "<PHONE>"),
        ("Tel: 030 1234567", "Tel: <PHONE>"),
        ("phone 555 0147", "phone <PHONE>"),
        ("Telefon 0351-4567890", "Telefon <PHONE>"),
        ("from 203.0.113.7 came", "from <IP> came"),
        ("at 203.0.113.7:8080", "at <IP>:8080"),
        ("2001:db8::8a2e:370:7334 is one", "<IP> is one"),
        ("fe80::1%eth0", "<IP>"),
        ("2001:0db8:85a3:0000:0000:8a2e:0370:7334", "<IP>"),
    ],
)
def test_what_is_personal_is_masked(text: str, expected: str) -> None:
    assert masked(text)[0] == expected


@for_each(
    "text",
    [
        "version 1.2.3.4 is out, and v10.0.19.1 too",
        "Chrome/91.0.4472.124",
        "release 2.10.0.1",
        "1.2.3 and 1.2.3.4.5 and 300.1.2.3 and 1.2.3.4-beta",
        "It costs $1,234,567.89 or 1.234.567,89 EUR",
        "12 345 678 people, 2020-11-16, 16.11.2026, 2019 2020 2021",
        "ISBN 978-3-16-148410-0",
        "at 12:30:15, 10:20, 1:2",
        "std::vector and a::b",
        "order 4012345678901, part 212555014",
        "the ratio 3.14159265358979",
        "lines 555-0147 to 560",
        "@handle and user@localhost and a@b",
        "1990-2000, pages 100-120, 24/7",
        "Section 10.1.1.2 is no address",
        "scores of 21-19, 18-21, 22-20",
    ],
)
def test_what_only_looks_personal_stays(text: str) -> None:
    assert masked(text) == (text, 0)


def test_masks_are_counted() -> None:
    assert masked("a@b.example, 203.0.113.7, +1 212 555 0147, a@c.example")[1] == 4


@given(st.text(alphabet="0123456789.:+-() abc@/", max_size=200))
def test_masking_ends_and_is_done_once(text: str) -> None:
    once, count = masked(text)
    assert (count == 0) == (once == text)
    assert masked(once)[0].count("<EMAIL>") >= once.count("<EMAIL>")


@pytest.mark.parametrize("piece", ["a@", "a.", "1.", "+1 ", ":", "0 ", "a@a.", "(1"])
def test_no_text_takes_long(piece: str) -> None:
    masked(piece * 20_000)
