"""show: one URL with its text, links, versions and their differences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from formats.small import HOME, Small, write

from harvestman.cli.main import main
from harvestman.lookup import versions


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("show") / "crawl").data


def shown(capsys: pytest.CaptureFixture[str], data: Path, url: str, *options: str, code: int = 0) -> str:
    assert main(["show", url, "--data", str(data), *options]) == code
    return capsys.readouterr().out


def test_all_of_a_page_in_words(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, data, HOME)
    for part in (
        "fetched: HTTP 200", "title     A title", "language  en", "versions (3)", "as before", "text (2 lines)",
        "  Second version.", "links out (1)", f"  {HOME}a?b=2&x=1  'to it'", "links in (2)",
        "  https://www.example.com/B/?z=1&A=2  'to it'",
    ):  # fmt: skip
        assert part in text, part


def test_all_of_a_page_in_json(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(shown(capsys, data, f"{HOME}a/?x=1&b=2".replace("a/", "a"), "--json"))
    assert found["url"] == f"{HOME}a?b=2&x=1"
    assert found["page"]["text"] == "Page a. é"
    assert [link["url"] for link in found["links_in"]] == [HOME]
    assert [(each["status"], each["mime"]) for each in found["versions"]] == [(200, "text/html")]


def test_text_diff_and_raw(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, data, HOME, "--text") == "Welcome.\nSecond version.\n"
    assert shown(capsys, data, HOME, "--diff").splitlines()[2:] == [
        "@@ -1,2 +1,2 @@", " Welcome.", "-First version.", "+Second version."
    ]  # fmt: skip
    assert "Second version" in shown(capsys, data, HOME, "--raw")
    assert shown(capsys, data, f"{HOME}a?b=2&x=1", "--raw") == "<title>Seite ü</title><p>Page a. é</p>"


def differing(capsys: pytest.CaptureFixture[str], data: Path, *which: str) -> list[str]:
    lines = shown(capsys, data, HOME, "--diff", *which).splitlines()
    return [line for line in lines[2:] if line[:1] in "+-"] or lines


def test_any_two_versions_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Small(tmp_path / "crawl") as small:
        for text in ("One.", "Two.", "Three.", "Three."):
            small.page(HOME, text, title=f"{small.now}")
            small.commit()
            small.now += 86_400
    data = tmp_path / "crawl"
    assert differing(capsys, data, "1", "3") == ["-One.", "+Three."]
    assert differing(capsys, data, "3", "1") == ["-Three.", "+One."]
    assert differing(capsys, data) == differing(capsys, data, "3", "4") == [
        "The text is the same; the page around it changed."
    ]  # fmt: skip
    assert differing(capsys, data, "2", "2") == ["Both are the version of 2026-09-22 14:13:40 UTC."]
    assert differing(capsys, data, "2026-09-21", "2026-09-22") == ["-One.", "+Two."]
    assert differing(capsys, data, "2026-09-22T14:13", "2026-09-22T14:13:40") == ["-One.", "+Two."]
    assert differing(capsys, data, "20260922", "2030-01-01") == ["-Two.", "+Three."]
    listed = shown(capsys, data, HOME)
    assert "texts, for --diff (4)" in listed
    assert "  1  2026-09-21 14:13:30 UTC  4 characters" in listed
    assert [each["number"] for each in json.loads(shown(capsys, data, HOME, "--json"))["texts"]] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("which", "words"),
    [
        (("1", "9"), "there is no version 9: there is 1 to 2, of 2026-09-21"),
        (("0", "1"), "there is no version 0"),
        (("1999-12-31", "2"), "there is no version as old as 1999-12-31: there is 1 to 2"),
        (("yesterday", "1"), "'yesterday' is no version"),
        (("1",), "compares two versions"),
        (("1", "2", "1"), "compares two versions"),
    ],
)
def test_a_version_that_is_not_there_is_refused(
    data: Path, capsys: pytest.CaptureFixture[str], which: tuple[str, ...], words: str
) -> None:
    assert main(["show", HOME, "--data", str(data), "--diff", *which]) == 2
    assert words in capsys.readouterr().err


def test_a_duplicate_shows_what_it_duplicates(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, data, f"{HOME}copy")
    assert f"byte for byte that of {HOME}" in text
    assert "First version" in shown(capsys, data, f"{HOME}copy", "--raw")


def test_what_has_no_page_says_so(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "gone: ok" in shown(capsys, data, f"{HOME}gone")
    assert shown(capsys, data, f"{HOME}gone", "--text") == ""
    assert shown(capsys, data, f"{HOME}gone", "--raw") == "no"
    assert main(["show", f"{HOME}empty", "--data", str(data), "--diff"]) == 0
    assert "one version only" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "code", "words"),
    [
        ("nonsense:foo", 2, "not a URL we could crawl"),
        ("two words", 2, "not a URL we could crawl"),
        ("https://example.org/never", 0, "never seen"),
        ("https://unknown.example/", 0, "never seen"),
    ],
)
def test_nonsense_and_the_unknown_are_as_in_why(
    data: Path, capsys: pytest.CaptureFixture[str], url: str, code: int, words: str
) -> None:
    text = shown(capsys, data, url, code=code)
    assert words in text
    assert main(["why", url, "--data", str(data)]) == code
    assert capsys.readouterr().out == text


def test_a_limit_below_nothing_is_refused(data: Path) -> None:
    assert main(["show", HOME, "--data", str(data), "--limit", "-1"]) == 2


def test_a_raw_record_that_is_gone_is_said_to_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Small(tmp_path / "crawl") as small:
        small.page(HOME)
        small.commit()
    for path in small.layout.warc.iterdir():
        path.unlink()
    assert main(["show", HOME, "--data", str(tmp_path / "crawl"), "--raw"]) == 3
    assert "no raw record" in capsys.readouterr().err


def test_a_url_is_found_in_a_long_index(tmp_path: Path) -> None:
    """Halving ends at the right line, wherever that is."""
    with Small(tmp_path / "crawl") as small:
        for number in range(300):
            small.page(f"{HOME}p{number:03d}", f"text {number}")
        small.commit()
    for number in range(300):
        (version,) = versions(small.layout, f"{HOME}p{number:03d}")
        assert version.status == 200
    assert versions(small.layout, f"{HOME}p") == []
    assert versions(small.layout, "https://zzz.example/") == []
