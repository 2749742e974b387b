"""What a fetch of robots.txt means, in virtual time."""

from __future__ import annotations

import pytest
from cases import for_each

from harvestman.model import Failure, FailureKind, Instant, Origin, Response, RobotsRecord, Seconds
from harvestman.policy.ladder import Standing, retry_after, settle, standing

ORIGIN = Origin("https://e.org")
START = Instant(1_700_000_000.0)
HOUR = 3600.0
DAY = 24 * HOUR
RULES = b"User-agent: *\nDisallow: /private/\n"


def response(status: int, **headers: str) -> Response:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(ORIGIN + "/robots.txt", status, b"", fields, b"", "192.0.2.1", START, START, START)


def failure(kind: FailureKind) -> Failure:
    return Failure(ORIGIN + "/robots.txt", kind, "", "", START, START)


def after(seconds: float) -> Instant:
    return Instant(START + seconds)


GOOD = settle(ORIGIN, None, response(200), RULES, START)


@pytest.mark.parametrize("status", [200, 204, 206])
def test_rules_are_kept_a_day(status: int) -> None:
    record = settle(ORIGIN, None, response(status), RULES, START)
    assert (record.body, record.good_at, record.expires, record.unreachable) == (RULES, START, after(DAY), False)
    assert standing(record, after(DAY - 1)) is Standing.RULES
    assert standing(record, after(DAY)) is Standing.ASK


@for_each("status", [400, 401, 403, 404, 410, 418, 451, 499])
def test_client_errors_mean_no_rules(status: int) -> None:
    record = settle(ORIGIN, GOOD, response(status), b"<html>Disallow: /", START)
    assert (record.body, record.expires, record.unreachable) == (b"", after(DAY), False)
    assert standing(record, START) is Standing.RULES


def test_endless_redirects_mean_no_rules() -> None:
    record = settle(ORIGIN, GOOD, None, b"", START)
    assert (record.body, record.unreachable, record.expires) == (b"", False, after(DAY))


def test_an_unchanged_copy_is_fresh_again() -> None:
    record = settle(ORIGIN, GOOD, response(304), b"", after(DAY))
    assert (record.body, record.good_at, record.unreachable) == (RULES, after(DAY), False)


@for_each("answer", [*map(response, (429, 500, 502, 503, 599, 100)), *map(failure, FailureKind)])
def test_unreachable_forbids_everything(answer: Response | Failure) -> None:
    record = settle(ORIGIN, None, answer, b"", START)
    assert (record.unreachable, record.unreachable_since, record.good_at) == (True, START, 0.0)
    assert record.reason
    assert standing(record, after(1)) is Standing.FORBID
    assert standing(record, after(2)) is Standing.ASK


def test_tries_grow_from_a_minute_to_an_hour() -> None:
    record, now, pauses = None, START, []
    for _ in range(9):
        record = settle(ORIGIN, record, response(503), b"", now)
        pauses.append(record.expires - now)
        now = record.expires
    assert pauses == [2, 4, 8, 16, 32, 64, 128, 256, 512]
    assert record is not None
    assert record.unreachable_since == START


def test_a_good_answer_ends_it() -> None:
    record = settle(ORIGIN, settle(ORIGIN, None, response(503), b"", START), response(200), RULES, after(60))
    assert (record.unreachable, record.unreachable_since, record.body) == (False, 0.0, RULES)
    again = settle(ORIGIN, record, response(503), b"", after(2 * DAY))
    assert (again.expires, again.unreachable_since) == (after(2 * DAY + 2), after(2 * DAY))


def unreachable_until(moment: Instant) -> RobotsRecord:
    """A copy fetched at START; from one day later nothing but 503."""
    record, now = GOOD, after(DAY)
    while now <= moment:
        record = settle(ORIGIN, record, response(503), b"", now)
        now = record.expires
    return record


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        (24, Standing.FORBID),
        (35.9, Standing.FORBID),
        (36, Standing.RULES),
        (30 * 24, Standing.RULES),
        (30 * 24 + 0.1, Standing.FORBID),
        (60 * 24, Standing.FORBID),
    ],
)
def test_the_last_copy_stands_in_after_twelve_hours_for_thirty_days(hours: float, expected: Standing) -> None:
    moment = after(hours * HOUR)
    record = unreachable_until(moment)
    assert record.body == RULES
    assert standing(record, moment) is expected
    assert standing(record, record.expires) is Standing.ASK


def test_nothing_stands_in_for_a_copy_that_never_was() -> None:
    record = settle(ORIGIN, None, response(503), b"", START)
    record.expires = after(DAY)
    assert standing(record, after(20 * HOUR)) is Standing.FORBID


def test_no_record() -> None:
    assert standing(None, START) is Standing.ASK


@for_each(
    ("value", "expected"),
    [
        ("120", 120.0),
        (" 7 ", 7.0),
        ("Tue, 14 Nov 2023 22:15:20 GMT", 120.0),
        ("Tue, 14 Nov 2023 22:13:00 GMT", 0.0),
        ("99999999999999999999", 999999999.0),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", 1.5),
        ("120.0", 120.0),
        ("120.", 120.0),
        ("120, 120", 120.0),
        ("120, 60", 120.0),
        ("soon, 60", 60.0),
        ("30, Tue, 14 Nov 2023 22:15:20 GMT", 30.0),
        ("Tue, 14 Nov 2023 22:15:20 GMT, Tue, 14 Nov 2023 22:15:20 GMT", 120.0),
        ("soon, later", None),
        (".5", None),
        ("99999999999999999999.5", 999999999.5),
        ("٣", None),
    ],
)
def test_retry_after(value: str, expected: Seconds | None) -> None:
    assert retry_after({"retry-after": value}, START) == expected


@pytest.mark.parametrize(
    ("value", "pause"),
    [("10", 10), ("900", 900), ("86400", DAY), ("Tue, 14 Nov 2023 22:23:20 GMT", 600), ("999999999", 30 * DAY)],
)
def test_retry_after_is_obeyed(value: str, pause: float) -> None:
    assert settle(ORIGIN, None, response(429, retry_after=value), b"", START).expires == after(pause)
