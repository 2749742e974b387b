"""Seed files of every kind, whole and broken."""

from __future__ import annotations

import argparse
import gzip
import io
import sys
from pathlib import Path

import pytest

from harvestman.cli import giving
from harvestman.cli.giving import Reading
from harvestman.errors import UsageError
from harvestman.seeds import LONGEST_LINE, Seeds, read_seeds

URLSET = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'


def read(tmp_path: Path, content: str | bytes) -> Seeds:
    path = tmp_path / "seeds"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_seeds(path)


@pytest.mark.parametrize(
    ("content", "urls"),
    [
        ("https://example.org\n", ["https://example.org/"]),
        ("https://example.org", ["https://example.org/"]),
        ("example.org/a%20b\r\nhttp://example.com\r\n", ["https://example.org/a%20b", "http://example.com/"]),
        ("# mine\n\n  example.org  \n", ["https://example.org/"]),
        ("\ufeffexample.org\n", ["https://example.org/"]),
        ("example.org\nexample.org/\n", ["https://example.org/"]),
        ("example.org:8080/x\n", ["https://example.org:8080/x"]),
        ("1,google.com\n2,example.org\n", ["https://google.com/", "https://example.org/"]),
        ("rank,domain\n1,example.org\n", ["https://example.org/"]),
        ('"1","example.org"\n', ["https://example.org/"]),
        ("1,example.org,12,13\n", ["https://example.org/"]),
        ("1\texample.org\n", ["https://example.org/"]),
        ("7,https://example.org/a\n", ["https://example.org/a"]),
        ('{"url": "https://example.org/", "rank": 3}\n{"url":"example.com"}\n', ["https://example.org/", "https://example.com/"]),
        (f"{URLSET}<url><loc> https://example.org/a </loc><lastmod>2026</lastmod></url></urlset>", ["https://example.org/a"]),
        ("\n <?xml version='1.0'?><urlset><url><loc>https://example.org/?a=1&amp;b=2</loc></url></urlset>", ["https://example.org/?a=1&b=2"]),
        (
            f'{URLSET}<url><loc>https://example.org/</loc><image:image xmlns:image="x"><image:loc>https://i.example/</image:loc>'
            "</image:image></url></urlset>",
            ["https://example.org/"],
        ),
    ],
)  # fmt: skip
def test_kinds_of_files(tmp_path: Path, content: str, urls: list[str]) -> None:
    found = read(tmp_path, content)
    assert (found.urls, found.problems) == (urls, [])
    assert read(tmp_path, gzip.compress(content.encode())) == found


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        (b"example.org\nnot a url\n", 2, "not a URL"),
        (b"example.org\n\n# x\nftp://example.org/\n", 4, "only http and https"),
        (b"example.org\nexa\xffmple.org\n", 2, "not UTF-8"),
        (b"example.org\nhttps://a:b@example.org/\n", 2, "user name"),
        (b"example.org\na.org,b.org\n", 2, "comma"),
        (b'{"url": "example.org"}\n{"link": "example.org"}\n', 2, "url"),
        (b'{"url": "example.org"}\n{"url": 1}\n', 2, "str"),
        (b'{"url": "example.org"}\n{"url": "example.org"\n', 2, "JSON"),
        (b"example.org\n" + b"x" * (3 * LONGEST_LINE) + b"\n", 2, "longer than"),
        (b"<urlset><url><loc>https://example.org/</loc></url>\n<url><loc>:</loc></url></urlset>", 2, "not a URL"),
        (b"<urlset>\n<url><loc>https://example.org/</loc></url>\n<url><loc>https", 3, "not well-formed"),
    ],
)
def test_a_bad_line_is_reported_and_the_rest_goes_on(tmp_path: Path, content: bytes, line: int, words: str) -> None:
    found = read(tmp_path, content)
    assert found.urls == ["https://example.org/"]
    assert [problem.line for problem in found.problems] == [line]
    assert words in found.problems[0].reason


def test_lines_after_a_bad_one_are_read(tmp_path: Path) -> None:
    found = read(tmp_path, b"x" * (2 * LONGEST_LINE) + b"\nexample.org\nnot a url\nexample.com\n")
    assert found.urls == ["https://example.org/", "https://example.com/"]
    assert [problem.line for problem in found.problems] == [1, 3]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no seed"),
        ("# nothing\n\n", "no seed"),
        ("not a url\n", "line 1"),
        ("<html><body>hello</body></html>", "no sitemap"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><urlset><url><loc>https://&a;.org/</loc></url></urlset>', "no seed"),
        ("<sitemapindex><sitemap><loc>https://example.org/s.xml</loc></sitemap></sitemapindex>", "not followed"),
    ],
)
def test_a_file_without_seeds_is_refused(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read(tmp_path, content)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_seeds(tmp_path / "none")


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="directory"):
        read_seeds(tmp_path)


def test_broken_gzip(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        read(tmp_path, gzip.compress(b"example.org\n" * 10_000)[:60])


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"example.org\n"))))
    assert read_seeds("-").urls == ["https://example.org/"]


def test_a_sitemap_in_utf_16(tmp_path: Path) -> None:
    text = '<?xml version="1.0" encoding="UTF-16"?><urlset><url><loc>https://example.org/é</loc></url></urlset>'
    assert read(tmp_path, text.encode("utf-16")).urls == ["https://example.org/%C3%A9"]


def test_a_long_list(tmp_path: Path) -> None:
    found = read(tmp_path, "".join(f"{rank},site{rank}.example\n" for rank in range(20_000)))
    assert (len(found.urls), found.problems) == (20_000, [])


def test_a_comment_may_follow_a_seed(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("http://a.org/  # the first\nhttp://b.org/#part\n  # nothing\n")
    found = read_seeds(tmp_path / "s")
    assert found.urls == ["http://a.org/", "http://b.org/"]
    assert not found.problems


def test_two_urls_on_a_line_are_a_problem(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("http://a.org/\nhttp://b.org/ http://c.org/\n")
    found = read_seeds(tmp_path / "s")
    assert found.urls == ["http://a.org/"]
    assert [(each.line, "white space" in each.reason) for each in found.problems] == [(2, True)]


@pytest.mark.parametrize(
    ("text", "urls", "bad"),
    [
        ('url,title\nhttp://a.org/,Home\nhttp://b.org/,"B, and more"\n', ["http://a.org/", "http://b.org/"], []),
        ("title;URL\nHome;http://a.org/\nnothing\n", ["http://a.org/"], [3]),
        ("GlobalRank,TldRank,Domain,TLD\n1,1,a.org,org\n2,1,,com\n", ["https://a.org/"], [3]),
        ("url\na.org\n", ["https://a.org/"], []),
        ("# mine\n\nname,host\nA,a.org\nB,not a host\n", ["https://a.org/"], [5]),
    ],
)
def test_a_header_names_the_column(tmp_path: Path, text: str, urls: list[str], bad: list[int]) -> None:
    (tmp_path / "s.csv").write_text(text)
    found = read_seeds(tmp_path / "s.csv")
    assert found.urls == urls
    assert [each.line for each in found.problems] == bad


def test_seeds_without_a_scheme_are_remembered(tmp_path: Path) -> None:
    assert read(tmp_path, "a.org\nhttps://b.org/\n").bare == {"https://a.org/"}


def test_a_long_list_is_told_of_on_stderr_while_it_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of many lines, of which 10,000 take two seconds."""
    path, hours = tmp_path / "s", iter(range(0, 1_000, 2))
    monkeypatch.setattr(giving, "Reading", lambda quiet: Reading(quiet, lambda: next(hours)))
    for quiet, lines in ((False, 35_000), (True, 12_000)):
        path.write_text("".join(f"host{n}.example\n" for n in range(lines)))
        options = argparse.Namespace(urls=["https://example.org/"], seeds=[path], quiet=quiet, json=True)
        assert len(giving.given_seeds(options).urls) == lines + 1
        out, said = capsys.readouterr()
        assert out == ""
        assert said.splitlines() == ([] if quiet else TOLD)


TOLD = [
    "reading seeds: 10,000 ...",
    "reading seeds: 30,000 ...",
    "reading seeds: 35,001; now they are checked and written down ...",
]
"""The first word after two seconds, the next one no sooner than three after it."""


def test_a_short_list_is_read_in_silence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s"
    path.write_text("".join(f"host{n}.example\n" for n in range(20_000)))
    reading = Reading(False, lambda: 7.0)
    assert len(read_seeds(path, reading.tell).urls) == 20_000
    reading.done(20_000)
    assert capsys.readouterr() == ("", "")
