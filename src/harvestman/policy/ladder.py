"""What a fetch of robots.txt means for its origin: DESIGN section 5, drawn in docs/robots.md.

`settle` turns an answer into the durable record; `standing` says what that record permits at a given moment.
"""

from __future__ import annotations

import enum
import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

from harvestman.model import Failure, Instant, Origin, Response, RobotsRecord, Seconds

FRESH: Final = Seconds(24 * 3600.0)
"""How long an answer with rules, or with none, is not asked for again (RFC 9309 section 2.4)."""
FIRST_RETRY: Final = Seconds(2.0)
LAST_RETRY: Final = Seconds(3600.0)
PATIENCE: Final = Seconds(12 * 3600.0)
"""How long an unreachable robots.txt forbids everything before the last good copy may stand in."""
KEPT: Final = Seconds(30 * 24 * 3600.0)
"""How old that copy may be; also the longest Retry-After we believe."""

_SECONDS = re.compile(r"([0-9]+)((?:\.[0-9]{0,9})?)")
"""RFC 9110 knows whole seconds alone; some servers write 120.0."""


class Standing(enum.Enum):
    """What to do before a page of the origin is fetched."""

    ASK = "ask"
    """Fetch robots.txt first."""
    RULES = "rules"
    """Obey the rules in the record's body."""
    FORBID = "forbid"
    """Fetch nothing: robots.txt is unreachable."""


def settle(
    origin: Origin,
    previous: RobotsRecord | None,
    answer: Response | Failure | None,
    body: bytes,
    now: Instant,
    fresh: Seconds = FRESH,
) -> RobotsRecord:
    """Return the record after a try; `body` is decoded, `answer` None means that redirects did not end.

    `fresh`: how long a copy is used before it is asked for again.
    """
    match answer:
        case None:
            return _good(origin, b"", now, fresh, "too many redirects: no rules")
        case Response(status=status) if 200 <= status < 300:
            return _good(origin, body, now, fresh, f"{status}: rules")
        case Response(status=304) if previous is not None and previous.good_at:
            return _good(origin, previous.body, now, fresh, "304: rules unchanged")
        case Response(status=status) if 300 <= status < 500 and status != 429:
            return _good(origin, b"", now, fresh, f"{status}: no rules")
        case Response(status=status, headers=headers):
            return _unreachable(origin, previous, now, f"{status}: unreachable", retry_after(headers, now))
        case Failure(kind=kind, detail=detail):
            return _unreachable(origin, previous, now, f"{kind}: {detail}" if detail else str(kind), None)


def standing(record: RobotsRecord | None, now: Instant) -> Standing:
    """Return what the record permits at `now`."""
    if record is None or now >= record.expires:
        return Standing.ASK
    if not record.unreachable or _may_stand_in(record, now):
        return Standing.RULES
    return Standing.FORBID


def retry_after(headers: dict[str, str], now: Instant) -> Seconds | None:
    """Return how long the server asks us to wait, from seconds or a date; None when it does not say so legibly.

    A repeated header comes joined by commas: its first legible value counts. A date has a comma of its own, so the
    whole is tried first.
    """
    value = headers.get("retry-after", "").strip()
    for text in (value, *value.split(",")):
        asked = _pause(text.strip(), now)
        if asked is not None:
            return asked
    return None


def _pause(value: str, now: Instant) -> Seconds | None:
    number = _SECONDS.fullmatch(value)
    if number:
        return Seconds(float(number[1][:9] + number[2]))
    try:
        moment = parsedate_to_datetime(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return Seconds(max(0.0, moment.timestamp() - now))
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _good(origin: Origin, body: bytes, now: Instant, fresh: Seconds, reason: str) -> RobotsRecord:
    return RobotsRecord(
        origin=origin, body=body, good_at=now, tried_at=now, expires=Instant(now + fresh), reason=reason
    )


def _unreachable(
    origin: Origin, previous: RobotsRecord | None, now: Instant, reason: str, asked: Seconds | None
) -> RobotsRecord:
    """Forbid everything from now on, but keep the last good copy."""
    again = previous is not None and previous.unreachable
    since = previous.unreachable_since if previous is not None and again else now
    return RobotsRecord(
        origin=origin,
        body=previous.body if previous is not None else b"",
        good_at=previous.good_at if previous is not None else Instant(0.0),
        tried_at=now,
        expires=Instant(now + _wait(previous if again else None, asked)),
        unreachable=True,
        reason=reason,
        unreachable_since=since,
    )


def _wait(failed: RobotsRecord | None, asked: Seconds | None) -> float:
    """Return the pause before the next try: twice the last one up to an hour, and at least what the server asks."""
    wait = min(2 * max(failed.expires - failed.tried_at, FIRST_RETRY / 2), LAST_RETRY) if failed else FIRST_RETRY
    return max(wait, min(asked or 0.0, KEPT))


def _may_stand_in(record: RobotsRecord, now: Instant) -> bool:
    """A copy exists, is at most 30 days old, and the silence has lasted 12 hours."""
    return bool(record.good_at) and now - record.good_at <= KEPT and now - record.unreachable_since >= PATIENCE
