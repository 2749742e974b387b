"""What becomes of a URL: every status and every kind of failure has a decision."""

from __future__ import annotations

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from harvestman.config import Limits, Retry
from harvestman.model import (
    Answer,
    Failure,
    FailureKind,
    Fault,
    HostKey,
    Instant,
    Lease,
    Origin,
    Response,
    Seconds,
    Status,
    UrlId,
    UrlRecord,
    Visit,
)
from harvestman.policy import outcomes
from harvestman.policy.outcomes import REDIRECTS, Decision, decide
from harvestman.policy.urls import key

NOW = Instant(1_700_000_000.0)
RETRY, LIMITS = Retry(), Limits()
URL = "https://a.test/dir"


def response(status: int, **headers: str) -> Response:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(URL, status, b"", fields, b"", "192.0.2.1", NOW, NOW, NOW)


def failure(kind: FailureKind, detail: str = "") -> Failure:
    return Failure(URL, kind, detail, "", NOW, NOW)


def decided(answer: Answer, attempts: int = 1, hops: int = 0, chance: float = 0.0, url: str = URL) -> Decision:
    return decide(url, answer, attempts, hops, RETRY, LIMITS, chance)


FINAL = {FailureKind.UNWANTED, FailureKind.TOO_LARGE, FailureKind.BAD_CONTENT, FailureKind.GUARD}


@for_each("kind", FailureKind)
def test_every_kind_of_failure_has_a_decision(kind: FailureKind) -> None:
    decision = decided(failure(kind, "words"))
    assert decision.error == str(kind)
    assert decision.reason == f"{kind}: words"
    if kind in FINAL:
        assert (decision.status, decision.retry_at) == (Status.REFUSED, None)
    else:
        assert decision.status is Status.PENDING
        assert decision.retry_at == NOW + outcomes.SLOWER[kind]


def test_every_status_has_a_decision() -> None:
    for status in (*range(100, 600), 600, 999):
        decision = decided(response(status))
        passing = status in (408, 425, 429) or 500 <= status < 600
        expected = Status.FETCHED if 200 <= status < 300 or status == 304 else Status.GONE
        assert decision.status is (Status.PENDING if passing else expected), status
        assert (decision.retry_at is not None) is passing, status
        assert (decision.error is None) is (decision.status is Status.FETCHED), status
        assert decision.reason


@pytest.mark.parametrize("answer", [response(503), response(429), failure(FailureKind.CONNECT)])
def test_the_fifth_failed_attempt_is_the_last(answer: Answer) -> None:
    decisions = [decided(answer, attempts=n) for n in range(1, 6)]
    assert [decision.status for decision in decisions] == [Status.PENDING] * 4 + [Status.DEAD]
    assert [decision.retry_at for decision in decisions] == [NOW + 1, NOW + 2, NOW + 4, NOW + 8, None]
    assert "attempt 5 of 5" in decisions[-1].reason
    assert decided(answer, attempts=9).status is Status.DEAD


@given(st.integers(1, 4), st.floats(0, 1, exclude_max=True), st.integers(0, 10**7))
def test_a_retry_waits_for_the_back_off_and_for_what_the_server_asks(attempts: int, chance: float, asked: int) -> None:
    decision = decided(response(503, retry_after=str(asked)), attempts, chance=chance)
    assert decision.retry_at is not None
    assert decision.retry_at >= NOW + asked
    assert decision.retry_at >= NOW + 2.0 ** (attempts - 1)


@pytest.mark.parametrize("status", REDIRECTS)
@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("https://b.test/x", "https://b.test/x"),
        ("/y?b=1&utm_source=z#frag", "https://a.test/y?b=1"),
        ("//c.test", "https://c.test/"),
        ("other", "https://a.test/other"),
        ("  /spaces  ", "https://a.test/spaces"),
        ("http://a.test/dir", "http://a.test/dir"),
        ("/dir?x=1", "https://a.test/dir?x=1"),
        ("http://b.test./x", "http://b.test/x"),
        # Read by a browser's rules, not by RFC 3986: any slashes introduce the host, tabs are nothing.
        ("https:\\\\b.test\\x", "https://b.test/x"),
        ("/a\tb", "https://a.test/ab"),
    ],
)
def test_where_a_redirect_leads(status: int, location: str, target: str) -> None:
    decision = decided(response(status, location=location))
    assert (decision.status, decision.target, decision.rename) == (Status.REDIRECTED, target, None)
    assert decision.error is None


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("https://a.test/dir", "/dir/"),
        ("https://a.test/dir/", "/dir"),
        ("https://a.test/p?b=1&a=2", "/p?a=2&b=1"),
        ("https://a.test/%7euser", "/~user"),
    ],
)
def test_a_redirect_to_another_spelling_of_the_same_key_is_a_new_name(url: str, location: str) -> None:
    decision = decided(response(301, location=location), url=url)
    assert decision.status is Status.PENDING
    assert decision.rename == "https://a.test" + location
    assert key(decision.rename) == key(url)
    assert decision.retry_at == NOW
    assert decision.target is None
    assert decision.error is None, "it does not count as an attempt"


def test_renaming_ends_too() -> None:
    decision = decided(response(301, location="/dir/"), hops=5)
    assert (decision.status, decision.error) == (Status.REDIRECTED, "redirect_limit")


def test_the_sixth_hop_is_not_followed() -> None:
    followed = [decided(response(302, location="/on"), hops=hops).target for hops in range(7)]
    assert followed == ["https://a.test/on"] * 5 + [None] * 2


@for_each(
    "location",
    ["", "#top", "/dir", "https://a.test/dir#frag", "mailto:x@y", "javascript:1", "http://", "https://u:p@b/"],
)
def test_redirects_to_nowhere_end_there(location: str) -> None:
    decision = decided(response(302, location=location))
    assert decision.status is Status.REDIRECTED
    assert (decision.target, decision.rename) == (None, None)
    assert decision.error in ("bad_redirect", "redirect_loop")


@given(st.text(max_size=60))
def test_no_location_breaks_it(location: str) -> None:
    decision = decided(response(302, location=location))
    assert decision.status in (Status.REDIRECTED, Status.PENDING)


@pytest.mark.parametrize("status", REDIRECTS)
def test_a_redirect_without_a_location_is_gone(status: int) -> None:
    assert decided(response(status)).status is Status.GONE


@for_each(
    ("sent", "target"),
    [
        ("/café".encode(), "https://a.test/caf%C3%A9"),
        ("/voilà".encode(), "https://a.test/voil%C3%A0"),
        ("/?q=日本".encode(), "https://a.test/?q=%E6%97%A5%E6%9C%AC"),
        ("https://bücher.test/".encode(), "https://xn--bcher-kva.test/"),
        ("/café".encode("latin-1"), "https://a.test/caf%E9"),
        (b"/caf%C3%A9", "https://a.test/caf%C3%A9"),
    ],
)
def test_a_location_is_requested_as_it_was_sent(sent: bytes, target: str) -> None:
    assert decided(response(301, location=sent.decode("latin-1"))).target == target


@given(st.binary(max_size=40))
def test_no_bytes_of_a_location_break_it(sent: bytes) -> None:
    decision = decided(response(301, location=sent.decode("latin-1")))
    assert decision.target is None or decision.target.isascii()


@pytest.mark.parametrize("location", ["", "#top", " #top"])
def test_a_redirect_to_a_part_of_the_page_is_a_loop(location: str) -> None:
    assert decided(response(302, location=location)).error == "redirect_loop"


def test_a_bad_redirect_says_where_it_led() -> None:
    decision = decided(response(302, location="mailto:x@y"))
    assert (decision.error, decision.reason) == ("bad_redirect", "bad redirect: cannot fetch 'mailto:x@y'")


def test_every_kind_of_failure_has_its_policy() -> None:
    assert {kind for kind in FailureKind if kind.fault is not Fault.REFUSED} == set(outcomes.SLOWER)


@for_each(("kind", "slower"), outcomes.SLOWER.items())
def test_failures_that_heal_slowly_are_tried_again_slowly(kind: FailureKind, slower: float) -> None:
    waits = []
    for attempt in range(1, 5):
        decision = decided(failure(kind), attempt)
        assert decision.status is Status.PENDING
        assert decision.retry_at is not None
        waits.append(decision.retry_at - NOW)
    assert waits == [min(3600.0, slower * wait) for wait in (1.0, 2.0, 4.0, 8.0)]
    assert decided(failure(kind), 5).status is Status.DEAD


def lease(failures: int, own: bool) -> Lease:
    return Lease(HostKey("a.test"), "", URL, UrlId(b"1"), None, Origin("https://a.test"), failures=failures, own=own)


def test_the_first_failure_of_a_host_is_the_urls() -> None:
    kinds = [kind for kind in FailureKind if kind.fault is not Fault.OURS]
    assert not any(outcomes.excused(lease(0, own), failure(kind)) for kind in kinds for own in (True, False))


@pytest.mark.parametrize("kind", [FailureKind.PROXY, FailureKind.CROWDED])
def test_a_proxys_failure_or_ours_is_never_the_urls(kind: FailureKind) -> None:
    assert all(outcomes.excused(lease(n, own), failure(kind)) for n in (0, 3) for own in (True, False))
    decision = decided(failure(FailureKind.PROXY, "refused"), attempts=0)
    assert (decision.status, decision.error) == (Status.PENDING, "proxy")
    assert decision.reason.startswith("proxy: ")


def test_a_failure_after_another_urls_is_the_hosts() -> None:
    assert outcomes.excused(lease(1, own=False), failure(FailureKind.TIMEOUT))
    assert outcomes.excused(lease(1, own=False), response(500))


def test_a_url_that_fails_again_and_again_has_itself_to_blame_but_for_what_no_page_can_do() -> None:
    assert not outcomes.excused(lease(3, own=True), failure(FailureKind.TIMEOUT))
    assert not outcomes.excused(lease(3, own=True), response(500))
    assert outcomes.excused(lease(3, own=True), failure(FailureKind.CONNECT))
    assert outcomes.excused(lease(3, own=True), response(429))


# -- redirects that go on and on ---------------------------------------------------------------------------------------


def redirected(url: str, location: str, behind: tuple[str, ...], status: int = 302) -> Decision:
    answer = Response(url, status, b"", {"location": location}, b"", "192.0.2.1", NOW, NOW, NOW)
    return decide(url, answer, 1, len(behind), RETRY, LIMITS, 0.0, behind)


def test_a_loop_is_named() -> None:
    a, b, c = (f"https://a.test/{name}" for name in "abc")
    decision = redirected(c, "/b", (a, b))
    assert decision == Decision(Status.REDIRECTED, f"redirect loop: {b} -> {c} -> {b}", error="redirect_loop")
    assert redirected(a, "/a", ()).reason == f"redirect loop: {a} -> {a}"
    assert redirected(c, "/a", (a, b)).reason == f"redirect loop: {a} -> {b} -> {c} -> {a}"
    assert redirected(c, "/d", (a, b)).target == "https://a.test/d"


def test_a_loop_between_two_spellings_is_named() -> None:
    decision = redirected("https://a.test/dir/", "/dir", ("https://a.test/dir",))
    assert decision.reason == "redirect loop: https://a.test/dir -> https://a.test/dir/ -> https://a.test/dir"
    assert decision.rename is None


@pytest.mark.parametrize("status", REDIRECTS)
def test_what_is_permanent(status: int) -> None:
    assert redirected(URL, "/elsewhere", (), status).permanent is (status in (301, 308))


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=30))
def test_no_chain_is_longer_than_five(path: list[str]) -> None:
    """Whatever a server redirects to, following ends after five hops, or at a loop."""
    url, behind = "https://a.test/start", tuple[str, ...]()
    for name in path:
        decision = redirected(url, f"/{name}", behind)
        if decision.target is None:
            assert decision.error in ("redirect_loop", "redirect_limit")
            break
        url, behind = decision.target, (*behind, url)
    assert len(behind) <= LIMITS.max_hops


@pytest.mark.parametrize(
    ("delay", "target", "reason", "permanent"),
    [
        (0.0, "https://a.test/next", "refresh at once", True),
        (0.1, "https://a.test/next", "refresh after 0.1 s", False),
        (5.0, "https://b.test/", "refresh after 5 s", False),
    ],
)
def test_a_page_that_soon_leads_on_is_a_redirect(delay: float, target: str, reason: str, permanent: bool) -> None:
    decision = outcomes.refreshed(URL, Seconds(delay), target, 0, LIMITS, ())
    assert decision == Decision(Status.REDIRECTED, reason, target=target, permanent=permanent)


def test_a_page_that_stays_or_reloads_itself_is_a_page() -> None:
    assert outcomes.refreshed(URL, Seconds(5.1), "https://a.test/next", 0, LIMITS, ()) is None
    assert outcomes.refreshed(URL, Seconds(0.0), URL, 0, LIMITS, ()) is None
    assert outcomes.refreshed(URL, Seconds(0.0), f"{URL}/", 0, LIMITS, ()) is None


def test_refreshes_are_hops_like_any_other() -> None:
    behind = tuple(f"https://a.test/{n}" for n in range(5))
    limit = outcomes.refreshed(URL, Seconds(0.0), "https://a.test/next", 5, LIMITS, behind)
    assert limit is not None
    assert (limit.error, limit.target) == ("redirect_limit", None)
    loop = outcomes.refreshed(URL, Seconds(0.0), behind[0], 5, LIMITS, behind)
    assert loop is not None
    assert loop.error == "redirect_loop"


def test_a_permanent_redirect_is_believed_until_it_is_due() -> None:
    def record(code: int, reason: str, due: float, status: Status = Status.REDIRECTED) -> UrlRecord:
        visit = Visit(NOW, code, reason, target="https://a.test/there")
        return UrlRecord(URL, status, 0, 0, 0, NOW, due=Instant(due), visit=visit)

    later = NOW + 10
    assert outcomes.leads_to(record(301, "HTTP 301", later), NOW) == "https://a.test/there"
    assert outcomes.leads_to(record(308, "HTTP 308", later), NOW) == "https://a.test/there"
    assert outcomes.leads_to(record(200, "refresh at once", later), NOW) == "https://a.test/there"
    assert outcomes.leads_to(record(302, "HTTP 302", later), NOW) == ""
    assert outcomes.leads_to(record(200, "refresh after 2 s", later), NOW) == ""
    assert outcomes.leads_to(record(301, "HTTP 301", NOW), NOW) == ""
    assert outcomes.leads_to(record(200, "ok", later, Status.DUPLICATE), NOW) == ""
