"""robots.txt against foreign programs' own cases and 4,195 real files; differences are listed in docs/robots.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import suites

from harvestman.errors import UrlError
from harvestman.model import Instant, Origin, Response
from harvestman.policy.ladder import Standing, settle, standing
from harvestman.policy.robots import escaped, parse, product_token
from harvestman.policy.urls import path_of, request_form

pytestmark = suites.needed

PROJECTS = ("google", "crawlercommons", "protego", "cpython")
DOCS = Path(__file__).parents[2] / "docs" / "robots.md"

DIFFER_FROM_GOOGLE = {
    # The URL has raw octets outside ASCII. Google's matcher wants them escaped by its caller; our paths always are.
    "raw octets": "google-0064 google-0066 crawlercommons-0055 crawlercommons-0057 crawlercommons-0062"
    " protego-0108 protego-0110 protego-0272 protego-0274",
    # The URL has %2f where the rule has %2F. Google upper-cases the rule only.
    "case of escapes": "crawlercommons-0069 crawlercommons-0078 crawlercommons-0079 protego-0034 protego-0036"
    " cpython-0011 cpython-0013 cpython-0021 cpython-0023 cpython-0035",
    # %7E is '~': RFC 9309 section 2.2.2 wants unreserved characters decoded before comparing. Google does not.
    "unreserved": "google-0067 crawlercommons-0087 crawlercommons-0109 crawlercommons-0153 protego-0234 protego-0275"
    " cpython-0014 cpython-0024",
    # RFC 9309 section 2.2.2: /robots.txt itself is always allowed. Google's matcher leaves that to its caller.
    "robots.txt itself": "crawlercommons-0049 crawlercommons-0101 crawlercommons-0116 crawlercommons-0145",
    # UTF-16 with a byte order mark. Google sees no rules; we read what was meant.
    "UTF-16": "crawlercommons-0331 crawlercommons-0332",
    # The crawler is called 'Foo Bar', which is no product token. We take the first word; Google matches nothing.
    "name with a space": "google-0041",
}


def path_for_matching(url: str) -> str:
    """Cut the path out of a URL that may not be one, leaving its escapes alone: requests would have them normalised."""
    rest = url.partition("://")[2] if "://" in url.partition("?")[0] else url.removeprefix("//")
    rest = rest.partition("#")[0]
    start = min((at for at in map(rest.find, "/?;") if at >= 0), default=len(rest))
    return rest[start:] if rest[start:].startswith("/") else "/" + rest[start:]


def allowed_cases() -> Iterator[tuple[str, dict[str, Any], bool]]:
    for project in PROJECTS:
        for case in suites.rows(f"robots/{project}_allowed.jsonl"):
            verdict = parse(suites.robots_body(case), case["user_agent"]).verdict(path_for_matching(case["url"]))
            yield f"{project}-{case['id'][-4:]}", case, verdict.allowed


def test_every_core_case_gives_the_agreed_answer() -> None:
    core = [(name, got == case["allowed"]) for name, case, got in allowed_cases() if case["tier"] == "core"]
    assert len(core) == 849
    assert [name for name, right in core if not right] == []


def test_we_differ_from_google_exactly_where_we_say_so() -> None:
    differing = {name for name, case, got in allowed_cases() if got != case["others"]["google"]}
    assert differing == set(" ".join(DIFFER_FROM_GOOGLE.values()).split())


@pytest.mark.parametrize("reason", DIFFER_FROM_GOOGLE)
def test_every_difference_is_in_the_documentation(reason: str) -> None:
    row = next(line for line in DOCS.read_text().splitlines() if line.startswith(f"| {reason} |"))
    assert set(DIFFER_FROM_GOOGLE[reason].split()) <= set(row.replace(",", " ").split())


@pytest.mark.slow
def test_agreed_probes_of_real_files() -> None:
    """Every probe on which three programs agree.

    They read whole files, the largest of 833 KiB: our limit of 1 MiB makes no difference here (decisions/0004).
    """
    probes, wrong = 0, []
    for file in suites.rows("robots/realworld.jsonl.gz"):
        body = suites.robots_body(file)
        agreed = [probe for probe in file["probes"] if probe["agree"]]
        rules = {agent: parse(body, agent) for agent in {probe["ua"] for probe in agreed}}
        for probe in agreed:
            path = path_for_matching(probe["url"])
            probes += 1
            if rules[probe["ua"]].verdict(path).allowed != probe["google"]:
                wrong.append((file["host"], probe["ua"], path))
    assert probes == 72_218
    assert wrong == []


def test_google_path_for_matching() -> None:
    cases = [case for case in suites.rows("robots/google_parse.jsonl") if case["kind"] == "path_for_matching"]
    compared = 0
    for case in cases:
        assert path_for_matching(case["url"]) == case["expected"], case["id"]
        try:
            assert path_of(request_form(case["url"])) == case["expected"], case["id"]
            compared += 1
        except UrlError:
            assert not case["url"].startswith("http")
    assert compared == 6


def test_google_escapes_and_tokens() -> None:
    for case in suites.rows("robots/google_parse.jsonl"):
        if case["kind"] == "escape_pattern":
            assert escaped(case["pattern"]) == case["expected"], case["id"]
        elif case["kind"] == "valid_product_token":
            token = case["token"]
            assert (token != "" and product_token(token) == token) == case["valid"], case["id"]


def test_google_parse() -> None:
    for case in suites.rows("robots/google_parse.jsonl"):
        if case["kind"] != "parse":
            continue
        expected = case["expected"]
        if "last_line" in expected:
            assert parse(suites.robots_body(case), "bar").verdict("/").line == expected["last_line"], case["id"]
        if "sitemaps" in expected:
            assert list(parse(suites.robots_body(case)).sitemaps) == expected["sitemaps"], case["id"]
        if expected.get("unknown_directives") == 0:
            assert parse(suites.robots_body(case), "foo").verdict("/AnyValue").line == 2, case["id"]
        elif "unknown_directives" in expected:
            assert parse(suites.robots_body(case), "foo").verdict("/AnyValue").line == 0, case["id"]


META_DIFFERENCES = {
    "cc_meta-0002": "'*<BR>' is not '*': Google and Protego read no group for everyone here",
    "cc_meta-0004": "asks for three names at once; a crawler has one",
    "cc_meta-0062": "a bare URL on a line of its own is not a Sitemap line",
    "cc_meta-0063": "sitemaps are kept as written: resolving them needs the URL of the robots.txt",
}


@pytest.mark.parametrize("suite", ["crawlercommons_meta", "protego_meta"])
def test_delays_and_sitemaps(suite: str) -> None:
    wrong, compared = set(), 0
    for case in suites.rows(f"robots/{suite}.jsonl"):
        agents = case.get("agents") or [case.get("user_agent")]
        rules = parse(suites.robots_body(case), agents[0] or "anybot") if "robots" in case else None
        if case["kind"] not in ("crawl_delay", "sitemaps") or rules is None:
            continue
        got = rules.crawl_delay if case["kind"] == "crawl_delay" else list(rules.sitemaps)
        compared += 1
        if got != case["expected"]:
            wrong.add(case["id"])
    assert compared >= 9
    assert wrong == {name for name in META_DIFFERENCES if suite.startswith("crawlercommons")}


def test_what_a_status_means() -> None:
    """crawler-commons' answers, but for 301 (we follow redirects, none reaches the ladder) and 429 (we wait)."""
    now = Instant(1e9)
    for case in suites.rows("robots/crawlercommons_meta.jsonl"):
        if not case["kind"].startswith("status") or case["http_status"] in (301, 429):
            continue
        answer = Response("http://h/robots.txt", case["http_status"], b"", {}, b"", "192.0.2.1", now, now, now)
        record = settle(Origin("http://h"), None, answer, b"", now)
        assert standing(record, now) == (Standing.RULES if case["http_status"] < 500 else Standing.FORBID)
        assert record.unreachable == (not case["allowed"] if case["kind"] == "status" else case["defer"])
