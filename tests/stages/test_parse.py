"""From a body to a page: kinds, links, directives, text; and nothing a page contains can stall or break it."""

from __future__ import annotations

import base64
import gzip
import json
import os
import tarfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from suites import needed, rows

from harvestman.model import Link, Parsed
from harvestman.pages.parse import MAX_BYTES, parse
from harvestman.policy import refresh
from harvestman.policy.urls import request_form

SUITES = Path(os.environ.get("SUITES", Path(__file__).parents[3] / "shared" / "suites"))
needs_suites = pytest.mark.skipif(not (SUITES / "html").is_dir(), reason=f"no conformance suites at {SUITES}")
URL = "https://example.org/dir/page"
PROSE = "The government presented a new bill on Wednesday, and parliament will discuss it next week in full session. "


def page(markup: str, **options: str) -> Parsed:
    return parse(markup.encode(), "text/html; charset=utf-8", URL, **options)


def links(markup: str) -> list[Link]:
    return page(markup).links


def urls(markup: str) -> list[str]:
    return [link.url for link in links(markup)]


@for_each(
    ("content_type", "body", "kind"),
    [
        ("text/html", b"anything", "html"),
        ("TEXT/HTML;charset=utf-8", b"", "html"),
        ("application/xhtml+xml", b"<html/>", "html"),
        ("text/html, text/html", b"x", "html"),
        ("text/plain", b"<html>", "text"),
        ("", b"  <!DOCTYPE html><p>x", "html"),
        ("application/octet-stream", b"<html lang=en>", "html"),
        ("", b"just words", "text"),
        ("", b"\x00\x01\x02", "other"),
        ("", b"", "other"),
        ("text/html", b"%PDF-1.7 ...", "other"),
        ("application/pdf", b"<html>", "other"),
        ("image/png", b"\x89PNG", "other"),
        ("application/json", b"{}", "other"),
    ],
)
def test_kinds(content_type: str, body: bytes, kind: str) -> None:
    parsed = parse(body, content_type, URL)
    assert parsed.kind == kind
    assert kind != "other" or (parsed.text == "" and parsed.links == [])


def test_anchor_text_and_rel() -> None:
    markup = '<a href="a" rel="NoFollow UGC"> One\n <b>two</b>\t</a><area href=b alt="the map"><a>no href</a>'
    assert links(markup) == [
        Link("https://example.org/dir/a", "One two", "nofollow ugc"),
        Link("https://example.org/dir/b", "the map", "", "area"),
    ]


def test_long_anchors_are_cut() -> None:
    (link,) = links(f"<a href=a>{'word ' * 1000}</a>")
    assert len(link.anchor) <= 200
    assert link.anchor.startswith("word word")


def test_every_url_once_first_wins() -> None:
    markup = (
        "<a href=a>first</a><a href='./a'>second</a><a href=/dir/a#x>third</a><a href=b><img></a><a href=b>named</a>"
    )
    assert [(link.url[20:], link.anchor) for link in links(markup)] == [("/dir/a"[1:], "first"), ("dir/b", "named")]


def test_nofollow_holds_only_if_every_link_has_it() -> None:
    assert links("<a rel=nofollow href=a>x</a><a href=a>y</a>") == [Link("https://example.org/dir/a", "x")]
    assert links("<a rel=nofollow href=a>x</a><a rel=nofollow href=./a>y</a>")[0].rel == "nofollow"


def test_frames_refresh_and_canonical() -> None:
    parsed = page(
        '<link rel="stylesheet canonical" href="/c"><meta http-equiv=Refresh content="5; URL=\'next\'">'
        "<iframe src=f1></iframe><a href=x>x</a>"
    )
    assert {link.kind: link.url for link in parsed.links} == {
        "a": "https://example.org/dir/x",
        "frame": "https://example.org/dir/f1",
        "refresh": "https://example.org/dir/next",
        "canonical": "https://example.org/c",
    }
    assert parsed.canonical == "https://example.org/c"


def test_framesets() -> None:
    assert urls("<frameset><frame src=a><frame src=b></frameset>") == [f"https://example.org/dir/{n}" for n in "ab"]


def test_base_href_is_the_first_with_an_address() -> None:
    assert urls("<base target=_top><base href=//other.test/x/><base href=/no/><a href=y>") == ["https://other.test/x/y"]
    assert urls("<base href='/up/'><a href=y>") == ["https://example.org/up/y"]
    assert urls("<base href='javascript:0'><a href=y>") == ["https://example.org/dir/y"]


def test_templates_hold_no_links() -> None:
    assert urls("<template><a href=in></a><template><a href=in2></a></template></template><a href=out></a>") == [
        "https://example.org/dir/out"
    ]


def test_what_cannot_be_fetched_is_no_link() -> None:
    assert urls("<a href='mailto:a@b.c'><a href='javascript:x()'><a href='#top'><a href='http://[bad'><a href=ok>") == [
        "https://example.org/dir/ok"
    ]


def test_title_and_description() -> None:
    parsed = page(
        "<svg><title>icon</title></svg><title> The\n title </title><meta name=Description content=' A  page '>"
    )
    assert (parsed.title, parsed.description) == ("The title", "A page")


@for_each(
    ("markup", "header", "expected"),
    [
        ("", "", (False, False)),
        ("<meta name=robots content='noindex, nofollow'>", "", (True, True)),
        ("<meta name=ROBOTS content=NONE>", "", (True, True)),
        ("<meta name=robots content='index,follow'>", "", (False, False)),
        ("<meta name=harvestman content=noindex>", "", (True, False)),
        ("<meta name=googlebot content=noindex>", "", (False, False)),
        ("<meta name=robots content=nofollow><meta name=harvestman content=noindex>", "", (True, True)),
        ("", "noindex", (True, False)),
        ("", "googlebot: noindex", (False, False)),
        ("", "googlebot: noindex nofollow", (False, False)),
        # One header for another robot, or two of which the second is for all: in doubt we obey.
        ("", "googlebot: noindex, nofollow", (False, True)),
        ("", "googlebot: noarchive, nofollow, noindex", (True, True)),
        ("", "googlebot: noindex, otherbot: nofollow", (False, False)),
        ("", "googlebot: noindex, harvestman: nofollow", (False, True)),
        ("", "Harvestman: none", (True, True)),
        ("", "max-snippet: 5, noindex", (True, False)),
        ("", "unavailable_after: Sat, 01 Jan 2028 00:00:00 GMT, nofollow", (False, True)),
        ("<meta name=robots content=nofollow>", "noindex", (True, True)),
    ],
)
def test_directives(markup: str, header: str, expected: tuple[bool, bool]) -> None:
    parsed = page(markup + "<a href=x>kept</a>", x_robots_tag=header)
    assert (parsed.noindex, parsed.nofollow) == expected
    assert len(parsed.links) == 1


@pytest.mark.parametrize("agent", ["Harvestman", "harvestman", "HARVESTMAN"])
def test_our_name_is_known_in_any_case(agent: str) -> None:
    parsed = parse(b"<meta name=harvestMan content=noindex>", "text/html", URL, agent=agent)
    assert (parsed.noindex, parsed.nofollow) == (True, False)
    parsed = parse(b"<p>words", "text/html", URL, x_robots_tag="harvestMan: nofollow", agent=agent)
    assert (parsed.noindex, parsed.nofollow) == (False, True)


def test_directives_of_other_kinds_come_from_the_header() -> None:
    assert parse(b"%PDF", "application/pdf", URL, x_robots_tag="noindex").noindex
    assert parse(b"x", "text/plain", URL, x_robots_tag="nofollow").nofollow


def test_text_and_simhash() -> None:
    nav = "<nav><a href=1>Home</a> <a href=2>About</a></nav>"
    first = page(f"<body>{nav}<article><h1>News</h1>{f'<p>{PROSE}</p>' * 5}</article><script>var x</script></body>")
    assert PROSE.strip() in first.text
    assert "About" not in first.text
    assert "var x" not in first.text
    assert first.simhash != 0


def test_a_page_without_main_text_keeps_all_its_text() -> None:
    parsed = page("<ul><li><a href=a>Alpha</a><li><a href=b>Beta</a></ul><style>p{}</style>")
    assert parsed.text.split() == ["*", "Alpha", "*", "Beta"]


def test_plain_text() -> None:
    parsed = parse((PROSE + "é\n").encode("latin-1"), "text/plain; charset=latin-1", URL)
    assert (parsed.kind, parsed.charset, parsed.text) == ("text", "windows-1252", PROSE + "é")


def test_the_same_bytes_give_the_same_value() -> None:
    markup = f"<title>t</title><a href=x>y</a><p>{PROSE}"
    assert page(markup) == page(markup)


def test_a_cut_does_not_change_the_charset() -> None:
    body = "é".encode() * (MAX_BYTES // 2 + 10)
    for shift in range(3):
        assert parse(b"x" * shift + body, "text/plain", URL).charset == "utf-8"


@given(st.binary(max_size=1500), st.sampled_from(["text/html", "", "text/plain", "text/html; charset=utf-16"]))
def test_any_bytes_parse(body: bytes, content_type: str) -> None:
    assert parse(body, content_type, URL).kind in ("html", "text", "other")


PIECES = [
    "<a href=",
    "<base href=",
    "<meta http-equiv=refresh content=",
    "<template>",
    "</template>",
    "<table>",
    "<svg>",
    ">",
    "'",
]
PIECES += [
    "http://",
    "//",
    "x",
    "\ud800",
    "&#xd800;",
    "\0",
    "?a=%zz",
    "<title>",
    "</a>",
    "5;url=",
    "<link rel=canonical href=",
]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=40))
def test_any_markup_parses(pieces: list[str]) -> None:
    parsed = parse("".join(pieces).encode("utf-8", "surrogatepass"), "text/html", URL)
    assert len({link.url for link in parsed.links}) == len(parsed.links)
    assert all(request_form(link.url) == link.url for link in parsed.links)


@for_each(
    ("content", "told"),
    [
        ("5;url=next", (5.0, "next")),
        ("0; URL='a b'", (0.0, "a b")),
        ('0;url="x"', (0.0, "x")),
        ("5", None),
        ("", None),
        ("3; ", None),
        ("0.5,url=x", (0.5, "x")),
        (".1;x", (0.1, "x")),
        ("1.2.3;x", (1.2, "x")),
        ("1; x", (1.0, "x")),
        ("url=x", None),
        (f"{'9' * 400};x", (99999999999999999999.0, "x")),
    ],
)
def test_what_a_refresh_says(content: str, told: tuple[float, str] | None) -> None:
    assert refresh.read(content) == told


REFRESH_SKIPPED = {
    "meta_refresh_w3lib-0003": "the file ends inside the tag, which browsers take for no tag",
    "meta_refresh_w3lib-0013": "a query in the page's own charset: we ask in UTF-8",
    "meta_refresh_w3lib-0021": "an option that takes <noscript> for the page",
    "meta_refresh_w3lib-0023": "an option that takes a script for the page",
}


@needed
def test_meta_refreshes_as_w3lib_reads_them() -> None:
    cases = 0
    for case in rows("html/meta_refresh_w3lib.jsonl"):
        if case["id"] in REFRESH_SKIPPED:
            continue
        kind = f"text/html; charset={case['encoding']}"
        parsed = parse(base64.b64decode(case["body_b64"]), kind, f"{case['page_url']}")
        expected = (case["expected_seconds"], case["expected_url"]) if case["expected_url"] else None
        assert parsed.refresh == expected, case["id"]
        cases += 1
    assert cases == 22


def test_a_refresh_for_clients_without_scripts_is_a_link_only() -> None:
    parsed = parse(b'<noscript><meta http-equiv=refresh content="0;url=/nojs"></noscript>', "text/html", URL)
    assert parsed.refresh is None
    assert [link.kind for link in parsed.links] == ["refresh"]


REFRESH_DIFFERS = {
    "test_get_meta_refresh_unterminated_tag": "a tag cut off by the end of the file is dropped by the standard",
    "test_nonascii_url_latin1_query": "queries are escaped as UTF-8, whatever the page's charset",
    "test_inside_noscript": "a browser without scripts follows it, and so do we",
    "test_inside_script": "w3lib is told to look into scripts here",
}


@needs_suites
def test_meta_refresh_suite() -> None:
    wrong = set()
    for line in (SUITES / "html" / "meta_refresh_w3lib.jsonl").read_text("utf-8").splitlines():
        case = json.loads(line)
        parsed = parse(base64.b64decode(case["body_b64"]), f"text/html; charset={case['encoding']}", case["page_url"])
        found = [link.url for link in parsed.links if link.kind == "refresh"]
        expected = [] if case["expected_url"] is None else [request_form(case["expected_url"])]
        if found != expected:
            wrong.add(case["test"].rpartition("::")[2])
    assert wrong <= REFRESH_DIFFERS.keys()


def real_pages() -> Iterator[tuple[bytes, str, list[str]]]:
    with tarfile.open(SUITES / "extract" / "readability_html.tar.xz") as archive:
        files = {member.name: stream.read() for member in archive if (stream := archive.extractfile(member))}
    with gzip.open(SUITES / "html" / "links_realpages.jsonl.gz") as lines:
        for line in lines:
            case = json.loads(line)
            archived = files.get(case["file"]) if case["archive"] else None
            body = archived or gzip.decompress((SUITES / case["file"]).read_bytes())
            yield body, case["page_url"], case["links"]


REAL_PAGES = "11d02fb116c776cb94a1ea78bf8b616056ee5f58ca3b8049528058fbcac1c0ad"
"""The SHA-256 of the pages and links below: with other data, other figures."""


@pytest.mark.slow
@needs_suites
def test_links_of_real_pages() -> None:
    """All 31,000 links but those to a part of the page itself ('#top'), which lead nowhere new."""
    missed = invented = agreed = 0
    digest = sha256()
    for body, url, expected_links in real_pages():
        digest.update(f"{url} {len(body)} {' '.join(expected_links)}\n".encode() + body)
        found = {link.url for link in parse(body, "text/html", url).links if link.kind in ("a", "area")}
        expected = {request_form(link) for link in expected_links} - ({request_form(url)} - found)
        agreed += len(found & expected)
        missed += len(expected - found)
        invented += len(found - expected)
    assert digest.hexdigest() == REAL_PAGES
    assert agreed / (agreed + missed) >= 0.999
    assert agreed / (agreed + invented) >= 0.999
