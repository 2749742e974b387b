"""Which URLs belong to a crawl."""

from __future__ import annotations

import time

import pytest
from cases import for_each

from harvestman.errors import UsageError
from harvestman.policy.scope import Scope
from harvestman.policy.sites import site_of
from harvestman.policy.urls import host_of

SEEDS = ["https://www.example.org/docs/start.html?x=/y", "other.net"]


def admits(scope: Scope, url: str) -> bool:
    host = host_of(url)
    return scope.admits(url, host, site_of(host))


@for_each(
    ("mode", "url", "expected"),
    [
        ("site", "https://www.example.org/a", True),
        ("site", "http://blog.example.org:81/a", True),
        ("site", "https://other.net/", True),
        ("site", "https://third.net/", False),
        ("host", "https://www.example.org/a", True),
        ("host", "https://example.org/a", False),
        ("path", "https://www.example.org/docs/", True),
        ("path", "https://www.example.org/docs/deep/er?q", True),
        ("path", "https://www.example.org/docs", False),
        ("path", "https://www.example.org/news/", False),
        ("path", "https://other.net/anything", True),
        ("path", "http://other.net/anything", False),
        ("all", "https://anything.example/", True),
    ],
)
def test_modes(mode: str, url: str, expected: bool) -> None:
    assert admits(Scope.build(mode, SEEDS), url) is expected


PATTERNS = """
# a comment
- *.pdf
- https://e.org/*/old/*
+ https://e.org/*
+ re:https?://news\\.org/\\d{4}/.*
+https://exact.org/a?b=1
""".splitlines()


@for_each(
    ("url", "expected"),
    [
        ("https://e.org/", True),
        ("https://e.org/a.pdf", False),
        ("https://e.org/v1/old/x", False),
        ("https://e.org/old/x", True),
        ("https://sub.e.org/", False),
        ("http://news.org/2024/x", True),
        ("http://newsxorg/2024/x", False),
        ("http://news.org/24/x", False),
        ("https://exact.org/a?b=1", True),
        ("https://exact.org/aXb=1", False),
        ("https://exact.org/a?b=12", False),
    ],
)
def test_patterns(url: str, expected: bool) -> None:
    assert admits(Scope.build("patterns", [], PATTERNS), url) is expected


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["+ *", "https://e.org/"], "line 2"),
        (["# x", "+"], "line 2"),
        (["+ re:("], "line 1: not a regular expression"),
        (["- *"], "admit nothing"),
        ([], "admit nothing"),
    ],
)
def test_bad_patterns(lines: list[str], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        Scope.build("patterns", [], lines)


def test_bad_modes_and_seeds() -> None:
    with pytest.raises(UsageError, match="choose site, host, path, all or @FILE"):
        Scope.build("galaxy", SEEDS)
    with pytest.raises(UsageError, match="seed"):
        Scope.build("site", ["ftp://e.org/"])


def test_no_url_makes_a_glob_slow() -> None:
    scope = Scope.build("patterns", [], ["+ *" + "a*" * 30 + "b"])
    began = time.process_time()
    assert not admits(scope, "https://e.org/" + "a" * 2000)
    assert time.process_time() - began < 0.1
