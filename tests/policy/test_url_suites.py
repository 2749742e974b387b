"""URLs against the WHATWG suite and the normalisers of crawler-commons and w3lib."""

from __future__ import annotations

import pytest
import suites

from harvestman.errors import UrlError
from harvestman.policy import urls

pytestmark = suites.needed

NORMALISERS = (
    "crawlercommons_normalize",
    "w3lib_canonicalize_url",
    "w3lib_safe_url_string",
    "w3lib_safe_download_url",
    "w3lib_url_query_cleaner",
)


def key_of(text: str) -> str | None:
    try:
        return urls.key(urls.request_form(text))
    except UrlError:
        return None


def test_every_http_case_of_the_whatwg_suite() -> None:
    cases = [case for case in suites.rows("url/wpt_urltestdata.jsonl") if case["http"]]
    wrong = [case["id"] for case in cases if urls.parse_href(case["input"], case["base"]) != case.get("href")]
    assert len(cases) == 451
    assert wrong == []


@pytest.mark.parametrize(("suite", "floor"), [("wpt_toascii", 87), ("wpt_idna_v2", 2667)])
def test_international_hosts(suite: str, floor: int) -> None:
    """Four cases of wpt_idna_v2 turn on the version of Unicode that url-py was built with."""
    right = 0
    for case in suites.rows(f"url/{suite}.jsonl"):
        expected = f"https://{case['output']}/x" if case["output"] else None
        right += urls.parse_href(f"https://{case['input']}/x", None) == expected
    assert right >= floor


@pytest.mark.parametrize("suite", NORMALISERS)
def test_keys_are_stable(suite: str) -> None:
    inputs = [case["input"] for case in suites.rows(f"url/{suite}.jsonl") if "input" in case]
    assert inputs
    for text in inputs:
        key = key_of(text)
        assert key is None or (urls.key(key) == key and key_of(key) == key), text


@pytest.mark.parametrize(("suite", "floor"), [("crawlercommons_normalize", 103), ("w3lib_canonicalize_url", 47)])
def test_agreement_with_other_normalisers(suite: str, floor: int) -> None:
    """Our key of the input equals our key of their answer in 103 of 134 and 47 of 60 cases.

    Where it does not, on purpose:
    - crawler-commons merges '//' in paths, drops '=1' (no name) and the '=' of 'b=', the root dot of 'example.org.':
      different resources on some servers, and losing one is worse than fetching one twice (9 cases);
    - it escapes '[', '^', '|', '`' and a lone '%', which the WHATWG parser leaves, as browsers do (10 cases);
    - we take no ftp:, file: or relative URLs, and none with a user name (9 and 9 cases);
    - w3lib writes 'c' as 'c=', %20 as '+', and %2C as ',': readings of HTML forms that not every server shares (5).
    """
    agreed = 0
    for case in suites.rows(f"url/{suite}.jsonl"):
        if "input" not in case or "expected" not in case or case.get("options") or case.get("remove_params"):
            continue
        expected = case["expected"]
        agreed += key_of(case["input"]) == (key_of(expected) if expected is not None else None)
        if expected is not None and key_of(expected) is None:
            agreed -= key_of(case["input"]) is None
    assert agreed >= floor


def test_resolution() -> None:
    """All of crawler-commons' cases that begin at a web page, without user names or mere fragments."""
    compared = 0
    for case in suites.rows("url/crawlercommons_resolve.jsonl"):
        base, expected = case["base"] or "https://example.org/", case["expected"]
        if base.startswith("http") and "@" not in expected and not case["input"].startswith("#"):
            got = urls.Base(base).resolve(case["input"])
            assert got == (expected.partition("#")[0] if expected.startswith("http") else None), case["id"]
            compared += 1
    assert compared >= 15
