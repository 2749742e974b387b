"""What a server's ETags and dates are worth, learned by site: some say "not modified" of a page that was.

Now and then a page that was said to be unchanged is asked for without them. What comes then shows whether the word was
true: the more often it was, the rarer such looks become. A site that lied is asked for whole pages for a while, and our
own digests tell what changed; they do so too where an ETag is new with every answer.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from harvestman.model import Instant, Seconds, UrlRecord, Validators, Visit

FIRST = 32
"""Answers "not modified" that are believed before the first look; each look that finds them true doubles it ..."""
MOST = 1_024
"""... up to this."""
DISTRUST = Seconds(30 * 86_400.0)
"""How long a site that lied is asked for whole pages."""
DOUBTS = 2
"""Looks in a row that find a change, while no conditional request did, which make a lie; of a liar one is enough."""
WARY = 8
"""How many "not modified" a site that lied before is believed."""
BARREN = 3
"""Conditional requests in a row that brought what we had: its ETags recognise nothing, so only its dates are sent."""
SLACK = Seconds(60.0)
"""Clocks differ."""
_NOT_MODIFIED = 304


def patience(held: Validators) -> int:
    """How many "not modified" are believed before the next look."""
    return WARY if held.lied else min(MOST, FIRST << min(held.proven, 16))


def distrusted(held: Validators | None, now: Instant) -> bool:
    return held is not None and held.lied > 0.0 and now < held.lied + DISTRUST


def conditions(held: Validators | None, record: UrlRecord, now: Instant) -> tuple[str, str]:
    """The ETag and the date to send for a page, each '' when it is not sent."""
    visit = record.visit
    if record.change is None or visit is None:
        return "", ""
    if held is None:
        return visit.etag, visit.last_modified
    looks = visit.code == _NOT_MODIFIED and held.unchecked >= patience(held)
    if looks or distrusted(held, now):
        return "", ""
    barren = held.barren >= BARREN and visit.last_modified
    return "" if barren else visit.etag, visit.last_modified


def learned(
    held: Validators | None, sent: tuple[str, str], before: Visit, visit: Visit, changed: bool
) -> Validators | None:
    """What a further visit shows; `sent`: the ETag and date that went with the request, `changed`: the page really did.

    None while there is nothing to remember.
    """
    if sent == ("", ""):
        looked = held is not None and held.unchecked > 0 and before.code == _NOT_MODIFIED
        return _looked(held, before, visit, changed) if held and looked else held
    if visit.code == _NOT_MODIFIED:
        was = held or Validators()
        return Validators(was.unchecked + 1, was.proven, was.doubts, was.lied, 0 if sent[0] else was.barren)
    if visit.digest != before.digest:  # a conditional request that brought news: it works
        return Validators(held.unchecked, held.proven, 0, held.lied, 0) if held else None
    was = held or Validators()
    return Validators(was.unchecked, was.proven, was.doubts, was.lied, min(BARREN, was.barren + bool(sent[0])))


def _looked(held: Validators, before: Visit, visit: Visit, changed: bool) -> Validators:
    """A look without validators at a page that was "not modified" the last time."""
    if not changed:
        return Validators(0, held.proven + 1, 0, Instant(0.0), held.barren)
    doubts = held.doubts + 1
    if _same(before, visit) or _changed_before(before, visit) or doubts >= DOUBTS or held.lied:
        return Validators(0, 0, 0, visit.at, held.barren)
    # It may have changed since. The next look comes sooner.
    return Validators(patience(held) // 2, held.proven, doubts, held.lied, held.barren)


def _same(before: Visit, visit: Visit) -> bool:
    """Another page under the same validator."""
    return visit.etag == before.etag if before.etag else visit.last_modified == before.last_modified != ""


def _changed_before(before: Visit, visit: Visit) -> bool:
    """By its own date it had changed when the server said that it had not."""
    try:
        told = parsedate_to_datetime(visit.last_modified)
        aware = told if told.tzinfo else told.replace(tzinfo=UTC)
        return aware < datetime.fromtimestamp(before.at - SLACK, UTC) and visit.last_modified != before.last_modified
    except (ValueError, OverflowError):
        return False
