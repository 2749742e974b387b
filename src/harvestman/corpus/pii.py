"""Masks e-mail addresses, telephone numbers and IP addresses. Off unless asked for: it is a blunt tool.

It is tuned to leave prose alone: versions, prices, dates, ISBNs, identifiers and measurements are not telephone
numbers. A number counts as one when it begins with + and a country code, when it is written the North American way, or
when a word such as "phone" stands right before it. What people write in other ways is missed; names are not looked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import AddressValueError, IPv4Address, IPv6Address

EMAIL = "<EMAIL>"
PHONE = "<PHONE>"
ADDRESS = "<IP>"

_EMAIL = re.compile(
    r"(?<![\w.+-])[a-z0-9][\w.+%-]{0,63}@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,24}\b", re.I
)
_VERSION_WORD = re.compile(r"(?:\b(?:version|ver|release|build|firmware|driver|section|v)\.?\s?|[§#/=-])$", re.I)
_IPV4 = re.compile(r"(?<![\w.:-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])(?=[0-9a-f]*:[0-9a-f:]*:)[0-9a-f:]{4,39}(?:%\w+)?(?![\w:])", re.I)
_GAP = r"[ \u00a0.\-/]?"
_PHONES = (
    # +49 (0)30 1234567
    re.compile(
        rf"(?<![\w+])\+[1-9]\d{{0,2}}{_GAP}(?:\(\d{{1,4}}\){_GAP})?\d{{1,5}}(?:{_GAP}\d{{2,5}}){{1,4}}(?![\d.,]?\d)"
    ),
    # (212) 555-0147, 212-555-0147, 1-800-555-0147
    re.compile(
        r"(?<![\w.,+$€£-])(?:1[ .-])?(?:\([2-9]\d\d\) ?|[2-9]\d\d([-.]))[2-9]\d\d(?(1)\1|[-. ])\d{4}(?![\w-]|\.\d)"
    ),
    # whatever is announced as one
    re.compile(rf"(?<![\w.,])\(?\d{{1,5}}\)?(?:{_GAP}\d{{2,8}}){{1,4}}(?![\d.,]?\d)"),
)
_SPOKEN = re.compile(
    r"(?:\b(?:tel|phone|telephone|mobile|cell|fax|call(?:\s(?:us|me|him|her))?(?:\s(?:at|on))?|whatsapp|telefon|telefone|"
    r"teléfono|téléphone|telefono|mobil|handy|ring|тел)\b\.?\s?[:.]?\s?|☎\s?)$",
    re.I,
)
_DIGITS = re.compile(r"\d")
_Check = Callable[[str, str], bool]
"""Of what was found and what stands before it: whether it is to be masked."""
_NEAR = 20
"""Characters before a number that may say what it is."""


def masked(text: str) -> tuple[str, int]:
    """The text with what is personal replaced, and how much was."""
    text, emails = _EMAIL.subn(EMAIL, text)
    text, fours = _replaced(text, _IPV4, ADDRESS, _is_ipv4)
    text, sixes = _replaced(text, _IPV6, ADDRESS, _is_ipv6)
    count = emails + fours + sixes
    for pattern, check in zip(_PHONES, (_is_long, _is_long, _is_announced), strict=True):
        text, found = _replaced(text, pattern, PHONE, check)
        count += found
    return text, count


def _replaced(text: str, pattern: re.Pattern[str], mask: str, check: _Check) -> tuple[str, int]:
    count = 0

    def replace(found: re.Match[str]) -> str:
        nonlocal count
        before = text[max(0, found.start() - _NEAR) : found.start()]
        if not check(found[0], before):
            return found[0]
        count += 1
        return mask

    return pattern.sub(replace, text), count


def _is_ipv4(found: str, before: str) -> bool:
    """1.2.3.4 is an address unless it is called a version, and when no part of it begins with a zero."""
    try:
        IPv4Address(found)
    except AddressValueError:
        return False
    return not _VERSION_WORD.search(before)


def _is_ipv6(found: str, before: str) -> bool:
    """12:30:15 is a time; an address has '::' or eight groups."""
    try:
        IPv6Address(found)
    except AddressValueError:
        return False
    return len(_DIGITS.findall(found)) > 1 or found.count(":") > 2


def _is_long(found: str, before: str) -> bool:
    return 8 <= len(_DIGITS.findall(found)) <= 15


def _is_announced(found: str, before: str) -> bool:
    return 7 <= len(_DIGITS.findall(found)) <= 15 and bool(_SPOKEN.search(before))
