"""Dates as pages write them, made one form: ISO 8601, in UTC where the zone is known. Garbage becomes ''."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

_LONGEST: Final = 48
_SHORTEST: Final = len("20260102")
_FIRST, _LAST = 1500, 2100
"""Years between which a date is taken for one: programs write 0001, 1970 and 9999 for nothing at all."""
_UNSET: Final = "1970-01-01"
_ODD: Final = re.compile(
    r"(\d{4})[-/.](\d\d?)[-/.](\d\d?)(?:[T\s]+(\d\d?):(\d\d)(?::(\d\d))?(?:[.,]\d+)?\s*(Z|UTC|GMT|[+-]\d\d:?\d\d)?)?",
    re.ASCII | re.IGNORECASE,
)


def iso(text: str) -> str:
    """A date or a moment: '2026-01-02', '2026-01-02T03:04:05' or, with a zone, '2026-01-02T03:04:05Z'."""
    text = text[: 4 * _LONGEST].strip()
    if not _SHORTEST <= len(text) <= _LONGEST:
        return ""
    try:
        moment = _read(text)
        if moment is None or not _FIRST <= moment.year < _LAST:
            return ""
        said = _written(moment, timed=":" in text or "T" in text[8:])
    except (ValueError, OverflowError):
        return ""
    return "" if said.startswith(_UNSET) else said


def _read(text: str) -> datetime | None:
    if not text[0].isdigit():
        return parsedate_to_datetime(text)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        found = _ODD.fullmatch(text)
    if found is None:
        return parsedate_to_datetime(text) if text[1:3].strip()[:1].isalpha() or " " in text[1:3] else None
    year, month, day, hour, minute, second, zone = found.groups()
    plain = f"{year}-{month:0>2}-{day:0>2}T{hour or '0':0>2}:{minute or '00'}:{second or '00'}"
    zone = "+00:00" if zone and zone[0] not in "+-" else zone or ""
    return datetime.fromisoformat(plain + zone)


def _written(moment: datetime, timed: bool) -> str:
    if not timed:
        return moment.date().isoformat()
    if moment.tzinfo is None:
        return moment.isoformat(timespec="seconds")
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"
