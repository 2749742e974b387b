"""What a robots.txt allows: tables, hostile files, and properties."""

from __future__ import annotations

import gc
import re
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvestman.policy import patterns as arrangement
from harvestman.policy.robots import MAX_BODY, Verdict, escaped, parse


def allowed(body: str, path: str) -> bool:
    return parse(body.encode()).verdict(path).allowed


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        ("Disallow: /", "/", False),
        ("Disallow:", "/", True),
        ("Disallow: /a", "/ab", False),
        ("Disallow: /a$", "/ab", True),
        ("Disallow: /a$", "/a", False),
        ("Disallow: /a\nAllow: /a", "/a", True),
        ("Allow: /a\nDisallow: /ab", "/abc", False),
        ("Disallow: /a/*\nAllow: /a/", "/a/b", False),
        ("Disallow: /*.pdf$", "/x/y.pdf", False),
        ("Disallow: /*.pdf$", "/x/y.pdf?z", True),
        ("Disallow: /*.pdf", "/x/y.pdf?z", False),
        ("Disallow: *.pdf", "/y.pdf", False),
        ("Disallow: /a*b*c", "/a-c-b", True),
        ("Disallow: /a*b*c", "/a-b-c", False),
        ("Disallow: /a*aa$", "/aa", True),
        ("Disallow: /a*aa$", "/aaa", False),
        ("Disallow: /**x", "/y/x", False),
        ("Disallow: /a$b", "/a$bc", False),
        ("Disallow: $", "/", True),
        ("Disallow: *", "/", False),
        ("Disallow: /*$", "/anything", False),
        ("Disallow: /\nAllow: /d/index.html", "/d/", True),
        ("Disallow: /\nAllow: /d/index.html", "/d/x", False),
        ("Disallow: /", "/robots.txt", True),
        ("Disallow: /%7ejoe", "/~joe", False),
        ("Disallow: /ü", "/%c3%bc", False),
        ("Disallow: /a%2fb", "/a/b", True),
        ("disalow: /a", "/a", False),
        ("Disallow /a", "/a", False),
        ("Disallow /a b", "/a", True),
        ("Disallow: /a # why", "/a", False),
        ("Disallow: /a?b=1", "/a?b=12", False),
    ],
)
def test_verdicts(rules: str, path: str, expected: bool) -> None:
    assert allowed("User-agent: *\n" + rules, path) is expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("User-agent: Harvestman\nDisallow: /", False),
        ("User-agent: harvestman/2.0\nDisallow: /", False),
        ("User-agent: harvestmanbot\nDisallow: /", True),
        ("User-agent: *\nDisallow: /\nUser-agent: harvestman\nDisallow:", True),
        ("User-agent: harvestman\nUser-agent: *\nDisallow: /", False),
        ("User-agent: a\nUser-agent: harvestman\nDisallow: /", False),
        ("User-agent: harvestman\nDisallow: /x\nUser-agent: a\nDisallow: /", True),
        ("User-agent: harvestman\nAllow: /x\n\nUser-agent: a\nAllow: /\n\nUser-agent: harvestman\nDisallow: /", False),
        ("User-agent: *bot\nDisallow: /", True),
        ("User-agent: * # all\nDisallow: /", False),
        ("Disallow: /", True),
        ("\ufeffUser-agent: *\nDisallow: /", False),
        ("User-agent: *\rDisallow: /", False),
        ("User-agent: *\r\nDisallow: /\0x", False),
    ],
)
def test_groups(body: str, expected: bool) -> None:
    assert allowed(body, "/") is expected


def test_a_verdict_names_its_line() -> None:
    rules = parse("User-agent: *\r\n\r\nDisallow: /ü/ # no\r\nAllow: /*/x$".encode())
    assert rules.verdict("/%C3%BC/") == Verdict(False, "/ü/", 3)
    assert rules.verdict("/a/x") == Verdict(True, "/*/x$", 4)
    assert rules.verdict("/a") == Verdict(True, "", 0)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("User-agent: *\nCrawl-delay: 5", 5.0),
        ("User-agent: *\nCrawl-delay: .5", 0.5),
        ("User-agent: *\nCrawl-delay: 5\nCrawl-delay: 2", 5.0),
        ("User-agent: *\nCrawl-delay: -5", None),
        ("User-agent: *\nCrawl-delay: nan", None),
        ("User-agent: *\nCrawl-delay: 1e999", 1.0),
        ("User-agent: *\nCrawl-delay: " + "9" * 400, 999999999.0),
        ("User-agent: *\nCrawl-delay: 5\nUser-agent: harvestman\nDisallow: /x", None),
        ("User-agent: *\nUser-agent: harvestman\nCrawl-delay: 5", 5.0),
        ("User-agent: harvestman\nCrawl-delay: 5\nUser-agent: slow\nCrawl-delay: 20\nDisallow: /x", 5.0),
        ("Crawl-delay: 5", None),
    ],
)
def test_crawl_delay(body: str, expected: float | None) -> None:
    assert parse(body.encode()).crawl_delay == expected


def test_sitemaps_are_kept_once_in_order() -> None:
    body = "Sitemap: https://e.org/ü.xml\nsite-map: /b.xml\nUser-agent: x\nSitemap: https://e.org/ü.xml\nSitemap:\n"
    assert parse(body.encode()).sitemaps == ("https://e.org/ü.xml", "/b.xml")


def test_nothing_beyond_the_size_limit_is_read() -> None:
    """Nor is the line that the limit cuts: '/private' must not become '/'."""
    head, rule = b"User-agent: *\n#", b"\nDisallow: /private\n"
    for beyond, line in ((-1, 3), (0, 3), (1, 0), (7, 0), (99, 0)):
        body = head + b"x" * (MAX_BODY - len(head) - len(rule) + beyond) + rule
        assert len(body) == MAX_BODY + beyond
        assert parse(body).verdict("/private").line == line
        assert parse(body[:MAX_BODY]).verdict("/private").line == line, "as the fetcher cuts it"


@given(st.binary(max_size=300), st.text(max_size=40))
def test_nothing_raises(body: bytes, path: str) -> None:
    assert isinstance(parse(b"User-agent: *\nDisallow: " + body).verdict(path), Verdict)
    assert isinstance(parse(body).verdict(path), Verdict)


PATTERNS = st.lists(st.tuples(st.booleans(), st.text(st.sampled_from("/ab*$~é"), min_size=1, max_size=7)), max_size=30)


@given(PATTERNS, st.lists(st.text(st.sampled_from("/ab$~é"), max_size=9), max_size=6), st.sampled_from([256, 5]))
def test_verdicts_equal_those_of_a_plain_search(rules: list[tuple[bool, str]], tails: list[str], opened: int) -> None:
    """Whether the patterns lie open or in blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrangement, "OPEN", opened)
        patch.setattr(arrangement, "BLOCK", 3)
        lines = [f"{'Allow' if allow else 'Disallow'}: {pattern}" for allow, pattern in rules]
        parsed = parse("\n".join(["User-agent: *", *lines]).encode())
        for path in ("/" + tail for tail in tails):
            weights = {
                number: (len(escaped(pattern)), allow)
                for number, (allow, pattern) in enumerate(rules, 2)
                if _plainly_matches(escaped(pattern), escaped(path))
            }
            best = max(weights.values(), default=(0, True))
            verdict = parsed.verdict(path)
            assert verdict.allowed is best[1]
            assert weights.get(verdict.line, (0, True)) == best, "its line is one of the heaviest"
            assert verdict.rule == (rules[verdict.line - 2][1] if verdict.line else "")


def test_a_long_file_is_judged_as_a_short_one() -> None:
    """Each rule of a packed file is found, with its line and its text, and so are those it lies in."""
    texts = [f"/{n % 7}/{'x' * (n % 11)}/{n}{('', '$', '*', '/', '%7e')[n % 5]}" for n in range(5_000)]
    rules = parse("\n".join(["User-agent: *", "Disallow: /3/", *(f"Allow: {text}" for text in texts)]).encode())
    for number, text in list(enumerate(texts, 3))[::17]:
        path = escaped(text.rstrip("$*"))
        assert rules.verdict(path) == Verdict(True, text, number)
        if text.endswith("$"):
            assert rules.verdict(path + "?").line != number
    assert rules.verdict("/3/y") == Verdict(False, "/3/", 2)
    assert rules.verdict("/2/y") == rules.verdict("/!") == Verdict(True)


@pytest.mark.parametrize(
    ("body", "most"),
    [
        pytest.param(
            "\n".join(f"Disallow: /some/{n % 13}/directory/{n}/" for n in range(20_000)), 1.0, marks=pytest.mark.slow
        ),
        ("\n".join(f"Disallow: /some/{n % 13}/directory/{n}/" for n in range(2_000)), 1.0),
        ("\n".join(f"Disallow: /some/{n % 13}/directory/{n}/" for n in range(250)), 4.0),
        ("\n".join(f"Disallow: /*/directory/{n}/*.html$" for n in range(5_000)), 6.0),
        ("\n".join(f"Disallow: /caf%c3%a9/{n}/" for n in range(250)), 9.0),
    ],
)
def test_rules_take_about_the_bytes_they_say(body: str, most: float) -> None:
    text = ("User-agent: *\n" + body).encode()
    parse(text)
    gc.collect()
    tracemalloc.start()
    rules = parse(text)
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < most * len(text)
    assert 0.75 < rules.size / taken < 1.33


def _plainly_matches(pattern: str, path: str) -> bool:
    body, end = (pattern[:-1], "$") if pattern.endswith("$") else (pattern, "")
    return re.match(".*".join(map(re.escape, body.split("*"))) + ("\\Z" if end else ""), path) is not None


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("Disallow: /" + "*a" * 500 + "*b", "/" + "a" * 2000),
        ("Disallow: " + "*" * 1000 + "x", "/" + "a" * 2000),
        ("Disallow: /*" + "a" * 45 + "b" + "a" * 45, "/" + "a" * 2000),
    ],
)
def test_hostile_patterns_cost_little(line: str, path: str) -> None:
    """As many different ones as fit into the limit; a verdict stays far below the delay between two requests."""
    lines = [f"{line}{n:05d}" for n in range(MAX_BODY // (len(line) + 6))]
    rules = parse(("User-agent: *\n" + "\n".join(lines)).encode())
    began = time.process_time()
    assert rules.verdict(path).allowed
    assert time.process_time() - began < 0.25
