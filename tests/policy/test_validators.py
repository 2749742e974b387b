"""Servers honest and lying, visited for years: which are found out, and what the looks cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from functools import cache

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvestman.model import Change, Instant, Seconds, Status, UrlRecord, Validators, Visit
from harvestman.policy import validators
from harvestman.policy.validators import BARREN, DISTRUST, FIRST, MOST, conditions, distrusted, learned, patience

START = Instant(1_700_000_000.0)
DAY = Seconds(86_400.0)
URL = "https://a.test/"


@dataclass
class Reply:
    """A version of a page as a server shows it; 304 when it says that we have it."""

    version: int
    code: int = 200
    etag: str = ""
    date: str = ""


Server = Callable[[int, str, Instant, str, str], Reply]
"""(the version there is, since when, now, If-None-Match, If-Modified-Since) -> what it answers."""


def honest(version: int, _date: str, _now: Instant, etag: str, _since: str) -> Reply:
    mine = f'"{version}"'
    return Reply(version, 304 if etag == mine else 200, mine)


def dated(version: int, date: str, _now: Instant, _etag: str, since: str) -> Reply:
    return Reply(version, 304 if since == date else 200, "", date)


def stuck(version: int, _date: str, _now: Instant, etag: str, _since: str) -> Reply:
    """Its ETag is never renewed."""
    return Reply(version, 304 if etag else 200, '"forever"')


def deaf(version: int, _date: str, _now: Instant, etag: str, _since: str) -> Reply:
    """304 to everything conditional, though its ETags are right."""
    return Reply(version, 304 if etag else 200, f'"{version}"')


def deaf_with_date(version: int, date: str, _now: Instant, etag: str, _since: str) -> Reply:
    return Reply(version, 304 if etag else 200, f'"{version}"', date)


def restless(version: int, date: str, now: Instant, etag: str, since: str) -> Reply:
    """A new ETag with every answer; its dates are right."""
    known = not etag and since == date
    return Reply(version, 304 if known else 200, f'"{now}"', date)


def always_now(version: int, _date: str, now: Instant, _etag: str, _since: str) -> Reply:
    """Last modified: now."""
    return Reply(version, 200, "", formatdate(now, usegmt=True))


@dataclass
class Story:
    """A site of one page, visited daily."""

    server: Server
    every: int
    """Days between two changes; 0 for none."""
    held: Validators | None = None
    visits: int = 0
    whole: int = 0
    behind: int = 0
    """Visits after which we held an old version for the new one."""
    found_out: int = 0

    def live(self, days: int) -> Story:
        record = UrlRecord(URL, Status.FETCHED, 0, 0, 0, START, change=Change(1.0, DAY, START))
        first = self.server(0, _date(0), START, "", "")
        record.visit = Visit(START, 200, "ok", b"0", 0, first.etag, first.date)
        held_version = 0
        for day in range(1, days + 1):
            now = Instant(START + day * DAY)
            version = day // self.every if self.every else 0
            sent = conditions(self.held, record, now)
            reply = self.server(version, _date(version * self.every), now, *sent)
            before = record.visit
            assert before is not None
            self.visits += 1
            if reply.code == 200:
                self.whole += 1
                held_version = reply.version
            etag, date = reply.etag or before.etag, reply.date or before.last_modified
            digest = b"%d" % held_version
            visit = msgspec.structs.replace(
                before, at=now, code=reply.code, digest=digest, etag=etag, last_modified=date
            )
            self.held = learned(self.held, sent, before, visit, before.digest != digest)
            self.behind += held_version != version
            if not self.found_out and distrusted(self.held, now):
                self.found_out = day
            record.visit = visit
        return self


@cache
def _date(day: int) -> str:
    return formatdate(START + day * DAY, usegmt=True)


@pytest.mark.parametrize("server", [honest, dated])
@pytest.mark.parametrize("every", [0, 1, 2, 3, 7, 10, 30, 100, 365])
def test_the_honest_are_not_accused_and_looks_become_rare(server: Server, every: int) -> None:
    story = Story(server, every).live(4_000)
    assert story.found_out == 0
    assert story.behind == 0
    changes = 4_000 // every if every else 0
    assert story.whole <= changes + 10  # looks: at 32, 64, 128, ... visits


@pytest.mark.parametrize(("server", "latest"), [(stuck, FIRST + 2), (deaf_with_date, 2 * FIRST), (deaf, 2 * FIRST)])
@pytest.mark.parametrize("every", [1, 3, 7])
def test_a_304_for_a_changed_page_is_found_out(server: Server, latest: int, every: int) -> None:
    story = Story(server, every).live(latest)
    assert 0 < story.found_out <= latest
    if server is deaf_with_date and every == 7:  # by its own date it had changed when it said that it had not
        assert story.found_out <= FIRST + 2
    story = Story(server, every).live(360)
    # Once found out it is distrusted for a month, then believed for a week.
    assert story.behind < 0.4 * story.visits


def test_a_liar_is_believed_again_after_a_month_and_found_out_again() -> None:
    held = Validators(lied=START)
    record = UrlRecord(URL, Status.FETCHED, 0, 0, 0, START, change=Change(1.0, DAY, START))
    record.visit = Visit(START, 200, "ok", b"1", 0, '"1"', "date")
    assert conditions(held, record, Instant(START + DISTRUST - 1)) == ("", "")
    assert conditions(held, record, Instant(START + DISTRUST)) == ('"1"', "date")


def test_etags_that_recognise_nothing_give_way_to_dates() -> None:
    story = Story(restless, 0).live(100)
    assert story.whole == BARREN + 1  # then 304s, and one look
    assert story.found_out == 0


def test_dates_that_are_always_new_cost_bodies_and_nothing_else() -> None:
    story = Story(always_now, 10).live(200)
    assert story.whole == story.visits
    assert (story.behind, story.found_out) == (0, 0)


def test_a_first_visit_has_nothing_to_ask_by() -> None:
    record = UrlRecord(URL, Status.PENDING, 0, 0, 0, START)
    record.visit = Visit(START, 200, "ok", b"1", 0, '"1"', "date")
    assert conditions(None, record, START) == ("", "")


def test_a_page_that_was_whole_the_last_time_is_not_looked_at() -> None:
    """It would prove nothing: the change may have come since."""
    held = Validators(unchecked=FIRST)
    record = UrlRecord(URL, Status.FETCHED, 0, 0, 0, START, change=Change(1.0, DAY, START))
    record.visit = Visit(START, 200, "ok", b"1", 0, '"1"', "")
    assert conditions(held, record, START) == ('"1"', "")
    record.visit.code = 304
    assert conditions(held, record, START) == ("", "")


@given(st.integers(0, 10_000))
def test_patience_grows_to_its_limit(proven: int) -> None:
    assert FIRST <= patience(Validators(proven=proven)) <= MOST
    assert patience(Validators(proven=proven)) <= patience(Validators(proven=proven + 1))


VISITS = st.builds(
    Visit, at=st.floats(0, 4e9).map(Instant), code=st.sampled_from([0, 200, 304]), digest=st.binary(max_size=2),
    etag=st.text(max_size=3), last_modified=st.text(max_size=40) | st.sampled_from(["Sat, 15 Nov 2025 10:00:00 GMT"]),
)  # fmt: skip


@given(
    st.none() | st.builds(Validators, unchecked=st.integers(0, 2_000), proven=st.integers(0, 20)),
    st.tuples(st.text(max_size=2), st.text(max_size=2)), VISITS, VISITS, st.booleans(),
)  # fmt: skip
def test_anything_can_be_learned_from(
    held: Validators | None, sent: tuple[str, str], before: Visit, visit: Visit, changed: bool
) -> None:
    after = learned(held, sent, before, visit, changed)
    assert after is None or (after.barren <= BARREN and after.doubts < validators.DOUBTS)
    assert held is None or after is not None
