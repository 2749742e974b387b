"""Sitemaps and feeds: the foreign suite, dates, broken files and hostile ones."""

from __future__ import annotations

import gzip
import re
import time
from datetime import UTC, datetime
from typing import Any

import pytest
import suites
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from harvestman.model import Origin
from harvestman.pages import sitemap
from harvestman.pages.feed import MAX_DEPTH, Reader
from harvestman.pages.sitemap import HEAD, Listing, instant, looks_like, read, sources
from harvestman.policy.robots import parse as parse_robots
from harvestman.policy.urls import request_form

HERE = "https://example.org/maps/sitemap.xml"


def listing(body: str | bytes, content_type: str = "text/xml", url: str = HERE) -> Listing:
    found = read(body.encode() if isinstance(body, str) else body, url, content_type)
    assert found is not None
    return found


def urls(body: str | bytes, content_type: str = "text/xml") -> list[str]:
    return [link.url for link in listing(body, content_type).links]


def urlset(*entries: str) -> str:
    return f"<urlset>{''.join(f'<url>{entry}</url>' for entry in entries)}</urlset>"


# -- the foreign suite -----------------------------------------------------------------------------------------------

DIFFERENT = {
    "sitemap-002": "a DOCTYPE is passed over, what is declared in it is not expanded: the URL without an entity stays",
    "sitemap-006": "namespaces are not read: many files have the wrong one",
    "sitemap-020": "broken XML: what can be had is taken",
    "sitemap-034": "the location rule is the caller's",
    "sitemap-041": "a date without a zone is read as UTC's",
    "sitemap-050": "the location rule is the caller's",
    "sitemap-067": "an entity in a URL is not expanded, and what is left of the URL is not what its author wrote",
}
KINDS = {
    "INDEX": "index", "XML": "urlset", "TEXT": "text", "ATOM": "atom", "RSS": "rss",
    "urlset": "urlset", "sitemapindex": "index",
}  # fmt: skip


def cases() -> list[dict[str, Any]]:
    return list(suites.rows("sitemap/sitemaps.jsonl")) if (suites.ROOT / "sitemap").exists() else []


def of_case(case: dict[str, Any]) -> Listing | None:
    return read((suites.ROOT / "sitemap" / case["file"]).read_bytes(), case["url"], case["content_type"] or "")


def expected(case: dict[str, Any]) -> dict[str, float]:
    dates = case.get("lastmods") or [entry.get("lastmod", "") for entry in case.get("entries", [])]
    return dict(zip(map(request_form, case.get("urls", [])), map(seconds_of, dates), strict=True))


def seconds_of(date: str | None) -> float:
    if not date:
        return 0.0
    moment = datetime.fromisoformat(date)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


@suites.needed
@pytest.mark.parametrize("case", [case for case in cases() if case["id"] not in DIFFERENT], ids=lambda case: case["id"])
def test_what_others_read_we_read(case: dict[str, Any]) -> None:
    found = of_case(case)
    links = found.links if found else []
    assert [(link.url, link.modified) for link in links if not link.rel] == list(expected(case).items())
    if found:
        assert found.kind == KINDS[case["type"]]


@suites.needed
@pytest.mark.parametrize("case", [case for case in cases() if case["id"] in DIFFERENT], ids=lambda case: case["id"])
def test_the_differences_are_still_there(case: dict[str, Any]) -> None:
    found = of_case(case)
    assert found is not None
    assert {link.url: link.modified for link in found.links} != expected(case)


@suites.needed
def test_the_suite_in_numbers() -> None:
    assert len(cases()) == 68
    assert {case["id"] for case in cases()} > set(DIFFERENT)


@suites.needed
def test_alternates_of_the_suite() -> None:
    case = next(case for case in cases() if case["id"] == "sitemap-066")
    found = of_case(case)
    assert found is not None
    alternates = set(case["entries"][0]["alternate"])
    assert {link.url for link in found.links} == alternates
    assert {link.url for link in found.links if link.rel == "alternate"} == alternates - set(case["urls"])


@suites.needed
def test_xml_is_recognised_and_text_is_not() -> None:
    for case in cases():
        body = (suites.ROOT / "sitemap" / case["file"]).read_bytes()
        listed = case.get("type") in ("TEXT", "url") or case["id"] == "sitemap-033"
        assert looks_like(body[:HEAD], case["content_type"] or "") is not listed, case["id"]


@suites.needed
def test_the_sitemaps_a_robots_txt_names() -> None:
    for case in suites.rows("sitemap/robots_sitemaps_scrapy.jsonl"):
        named = parse_robots(case["robots"].encode()).sitemaps
        assert sources(Origin(case["base_url"]), named) == case["expected"]


# -- kinds -----------------------------------------------------------------------------------------------------------


def test_links_say_what_they_are() -> None:
    assert [(link.kind, link.rel) for link in listing(urlset("<loc>/a</loc>")).links] == [("sitemap", "")]
    index = listing("<sitemapindex><sitemap><loc>/a.xml.gz</loc></sitemap></sitemapindex>")
    assert (index.kind, [link.kind for link in index.links]) == ("index", ["sitemaps"])
    rss = listing("<rss><channel><link>/</link><item><link>/a</link></item></channel></rss>")
    assert (rss.kind, [(link.url, link.kind) for link in rss.links]) == ("rss", [("https://example.org/a", "feed")])
    text = listing("https://example.org/a\nno url\n\r\n HTTP://EXAMPLE.org/b#c \rexample.org/d", "text/plain")
    assert (text.kind, {link.kind for link in text.links}) == ("text", {"sitemap"})
    assert [link.url[-13:] for link in text.links] == ["example.org/a", "example.org/b", "example.org/d"]


@for_each(
    "body",
    [
        "",
        "\0\0",
        "hello",
        "not a\nhttp://example.org/",
        "<html><body><rss></body></html>",
        "<svg/>",
        "{}",
        "<urlsets/>",
    ],
)
def test_what_is_no_listing(body: str) -> None:
    assert read(body.encode(), HERE, "text/xml") is None
    assert not looks_like(body.encode(), "text/xml")


def test_a_listing_of_nothing() -> None:
    assert listing("<urlset/>") == Listing("urlset", [])
    assert listing("<rss version='2.0'>") == Listing("rss", [])


def test_atom() -> None:
    body = """<a:feed xmlns:a="http://www.w3.org/2005/Atom" xml:base="https://other.org/blog/">
      <a:link href="/"/><a:updated>2026-01-01T00:00:00Z</a:updated>
      <a:entry><a:link rel="enclosure" href="x.mp3"/><a:link href="one"/><a:link rel="alternate" href="one.txt"/>
        <a:published>2026-02-01T00:00:00Z</a:published><a:updated>2026-02-03T00:00:00Z</a:updated></a:entry>
      <a:entry xml:base="deep/"><a:link rel="alternate" type="text/html" href="two"/></a:entry>
      <a:entry><a:id>urn:x</a:id></a:entry></a:feed>"""
    found = listing(body, "application/atom+xml")
    assert [(link.url, link.modified) for link in found.links] == [
        ("https://other.org/blog/one", instant("2026-02-03")),
        ("https://other.org/blog/deep/two", 0.0),
    ]


def test_rss_links_hide_in_odd_places() -> None:
    body = """<rss><channel><atom:link href="/self" rel="self"/>
      <item><atom:link href="/no"/><link><![CDATA[ /a?x=1&y=2 ]]></link><media:link>/no</media:link></item>
      <item><link href="/b"/></item><item><guid>https://example.org/c</guid></item><item><guid>17</guid></item>
      <item><description>&lt;a href="/no"&gt; &nbsp;</description><link>/d&eacute;</link></item></channel></rss>"""
    assert urls(body) == [f"https://example.org/{path}" for path in ("a?x=1&y=2", "b", "c", "d%C3%A9")]


@pytest.mark.parametrize("prefix", ["", "s:", "any.thing-1:"])
@pytest.mark.parametrize("comment", ["", "<!-- not <url><loc>/no</loc></url> -->"])
def test_any_prefix_with_and_without_the_short_cut(prefix: str, comment: str) -> None:
    entries = (
        "<url><loc>/a</loc></url>\n"
        "<url>\n<loc> /b?c&amp;d </loc><lastmod>2026-01-02</lastmod><priority>1</priority></url>"
        "<url><lastmod>2026-01-03</lastmod><loc>/e</loc></url>"
        '<url><loc>/f</loc><x:link rel="alternate" hreflang="de" href="/g?h&amp;i"/></url>'
        "<url><image:image><image:loc>/no</image:loc></image:image></url>"
    )
    entries = re.sub(r"(</?)(url|loc|lastmod|priority)\b", rf"\1{prefix}\2", entries)
    found = listing(f"<{prefix}urlset>{comment}{entries}</{prefix}urlset>")
    assert {link.url.removeprefix("https://example.org"): (link.modified, link.rel) for link in found.links} == {
        "/a": (0.0, ""),
        "/b?c&d": (instant("2026-01-02"), ""),
        "/e": (instant("2026-01-03"), ""),
        "/f": (0.0, ""),
        "/g?h&i": (0.0, "alternate"),
    }


def test_a_url_is_listed_once_with_its_last_date() -> None:
    link = '<x:link rel="alternate" hreflang="en" href="/a"/>'
    dated = [
        f"<loc>/a{fragment}</loc><lastmod>2026-01-0{day}</lastmod>" for fragment, day in (("#x", 1), ("", 3), ("", 2))
    ]
    body = urlset(f"<loc>/b</loc>{link}", *dated, "<loc>/a</loc>")
    assert {link.url[-1]: (link.modified, link.rel) for link in listing(body).links} == {
        "b": (0.0, ""),
        "a": (instant("2026-01-03"), ""),
    }


def test_a_date_stays_with_its_entry() -> None:
    body = urlset("<lastmod>2026</lastmod>", "<loc>/a</loc><x/>", "<loc>/b</loc><x/><lastmod>2026</lastmod>")
    assert [link.modified for link in listing(body).links] == [0.0, instant("2026")]


def test_entries_that_are_no_urls_are_passed_over() -> None:
    bad = ["mailto:a@b", "ftp://example.org/", "https://a:b@example.org/", "/" + "x" * 10_000, "", "http://[", "#top"]
    assert urls(urlset("<loc>/a</loc>", *(f"<loc>{href}</loc>" for href in bad), "<loc>/b</loc>")) == [
        "https://example.org/a",
        "https://example.org/b",
    ]


@pytest.mark.parametrize("extra", ["", "<!---->"])
def test_no_more_than_the_protocol_allows(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sitemap.MAX_LINKS == 50_000
    monkeypatch.setattr(sitemap, "MAX_LINKS", 1_000)
    body = urlset(*(f"<loc>/{number}</loc>{extra}" for number in range(10_000)))
    assert len(listing(body).links) == 1_000
    text = "".join(f"https://example.org/{number}\n" for number in range(10_000))
    assert len(listing(text, "text/plain").links) == 1_000


def test_where_sitemaps_are() -> None:
    origin = Origin("https://example.org")
    assert sources(origin, ()) == ["https://example.org/sitemap.xml"]
    assert sources(origin, ("/a.xml", "mailto:x", "https://cdn.example/b.xml", "/a.xml#")) == [
        "https://example.org/a.xml",
        "https://cdn.example/b.xml",
    ]


# -- dates -----------------------------------------------------------------------------------------------------------

DAY = datetime(2026, 3, 4, tzinfo=UTC).timestamp()


@for_each(
    ("text", "seconds"),
    [
        ("2026", DAY - 62 * 86400),
        ("2026-03", DAY - 3 * 86400),
        ("2026-03-04", DAY),
        ("20260304", DAY),
        ("2026-03-04T05:06Z", DAY + 18360),
        ("2026-03-04T05:06+01:00", DAY + 14760),
        ("2026-03-04T05:06:07Z", DAY + 18367),
        ("2026-03-04T05:06:07-0130", DAY + 18367 + 5400),
        ("2026-03-04T05:06:07.5Z", DAY + 18367.5),
        ("2026-03-04T05:06:07.123456789+00:00", DAY + 18367.123456),
        ("2026-03-04t05:06:07", DAY + 18367),
        ("2026-03-04 05:06:07", DAY + 18367),
        ("2026-03-04 05:06:07 +0100", DAY + 14767),
        ("2026-03-04 05:06:07 UTC", DAY + 18367),
        ("2026/3/4", DAY),
        ("2026-3-4T5:06", DAY + 18360),
        ("2026-03-04T05:06:07+01:00[Europe/Paris]", DAY + 14767),
        ("Wed, 04 Mar 2026 05:06:07 GMT", DAY + 18367),
        ("Wed, 4 Mar 26 05:06:07 +0100", DAY + 14767),
        ("04 Mar 2026 05:06 EST", DAY + 18360 + 18000),
        ("Wed Mar  4 05:06:07 2026", DAY + 18367),
        ("Wednesday, 04-Mar-26 05:06:07 GMT", DAY + 18367),
        ("", 0),
        ("yesterday", 0),
        ("0000-00-00", 0),
        ("2026-13-41", 0),
        ("1066-10-14", 0),
        ("9" * 400, 0),
    ],
)
def test_dates(text: str, seconds: float) -> None:
    assert instant(text) == pytest.approx(seconds, abs=1e-5)


@given(st.datetimes(datetime(1971, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC)))
def test_a_moment_is_read_as_it_is_written(moment: datetime) -> None:
    assert instant(moment.isoformat()) == pytest.approx(moment.timestamp(), abs=1e-3)


@given(
    st.text(max_size=40) | st.from_regex(r"[A-Z][a-z]{2}, \d+ [A-Z][a-z]{2} \d+ [\d:]+ [+\-A-Z0-9]*", fullmatch=True)
)
def test_any_text_is_a_date_or_none(text: str) -> None:
    assert instant(text) >= 0


# -- bytes -----------------------------------------------------------------------------------------------------------


def test_gzip_is_known_by_its_bytes() -> None:
    packed = gzip.compress(urlset("<loc>/a</loc>").encode())
    for kind in ("application/gzip", "text/xml", ""):
        assert urls(packed, kind) == ["https://example.org/a"]
        assert looks_like(packed, kind)
    assert urls(packed[:-8] + b"checksum") == ["https://example.org/a"]
    assert urls(gzip.compress(b"<urlset>") + packed) == ["https://example.org/a"]


def test_a_cut_gzip_gives_what_can_be_had() -> None:
    body = urlset(*(f"<loc>/{number * 7919 % 10_007}</loc>" for number in range(5000)))
    packed = gzip.compress(body.encode())
    some = urls(packed[: len(packed) // 2])
    assert 1000 < len(some) < 5000
    assert set(some) <= set(urls(body))
    assert read(packed[:5], HERE, "") is None


@for_each(
    ("codec", "declared", "content_type"),
    [
        ("utf-8", "", ""),
        ("utf-8-sig", "iso-8859-1", ""),
        ("utf-16", "utf-16", ""),
        ("utf-16-le", "utf-16", ""),
        ("utf-16-be", "utf-16", ""),
        ("utf-8", "utf-16", ""),
        ("latin-1", "ISO-8859-1", ""),
        ("latin-1", "iso-8859-1", "text/xml; charset=utf-8"),
        ("latin-1", "", "text/xml; charset=iso-8859-1"),
        ("utf-8", "no-such-charset", ""),
    ],
)
def test_encodings(codec: str, declared: str, content_type: str) -> None:
    declaration = f'<?xml version="1.0" encoding="{declared}"?>\n' if declared else ""
    body = (declaration + urlset("<loc>/é</loc>")).encode(codec)
    assert urls(body, content_type) == ["https://example.org/%C3%A9"]
    assert looks_like(body, content_type)


@pytest.mark.parametrize("codec", ["gbk", "shift_jis", "euc_jp", "big5"])
def test_encodings_of_several_bytes(codec: str) -> None:
    body = f"<?xml version='1.0' encoding='{codec.replace('_', '-')}'?>{urlset('<loc>/日本</loc>')}"
    assert urls(body.encode(codec)) == ["https://example.org/%E6%97%A5%E6%9C%AC"]


def test_characters_cut_by_the_pieces() -> None:
    body = urlset(*(f"<loc>/{'é' * (number % 50)}{number}</loc>" for number in range(5000)))
    assert len(urls(body)) == 5000


# -- broken and hostile ----------------------------------------------------------------------------------------------


@for_each(
    "body",
    [
        urlset("<loc>/a?b=1&c=2</loc>", "<loc>/d</loc>"),
        urlset("<loc>/a?b=1&c=2</loc><lastmod>2026</lastmod>", "<lastmod>x</lastmod><loc>/d</loc>"),
        "<urlset><url><loc>/a?b=1&c=2</url><url><loc>/d</loc>",
        "<urlset><url><loc>/a?b=1&amp;c=2<lastmod>2026</lastmod></url><url><loc>/d</loc></url>",
        "<urlset><url x=1><loc>/a?b=1&c=2</loc></url><url><loc>/d</loc></url></url></urlset>",
        "<urlset><url><loc><![CDATA[/a?b=1&c=2]]></loc></url></oops><url><loc><![CDATA[/d]]></loc></url>",
        "<urlset><!-- a -- b --><url><loc>/a?b=1&c=2</loc></url><url><loc>/d</lo",
        "<urlset>\x01<url><loc>/a?b=1&amp;c=2\x02</loc></url></urlset><url><loc>/d</loc></url>",
        "<br /><b>Warning</b>: in line 3\n<?xml version='1.0'?>" + urlset("<loc>/a?b=1&c=2</loc>", "<loc>/d</loc>"),
        '<urlset><url><loc>/d</loc><x:link rel="alternate" href="/a?b=1&c=2"/></url></urlset>',
    ],
)
def test_broken_xml_gives_what_can_be_had(body: str) -> None:
    assert set(urls(body)) == {"https://example.org/a?b=1&c=2", "https://example.org/d"}


def test_half_a_url_is_none() -> None:
    assert urls("<urlset><url><loc>/a</loc></url><url><loc>/b/and-") == ["https://example.org/a"]
    assert urls("<urlset><url><loc>/a</loc></url><url><loc>/b/&x;</loc></url></urlset>") == ["https://example.org/a"]


def test_a_line_too_long_is_no_url() -> None:
    assert urls("https://example.org/a\nhttps://example.org/" + "b" * 200_000, "text/plain") == [
        "https://example.org/a"
    ]


def test_nothing_declared_is_expanded_or_fetched() -> None:
    bomb = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    body = f'<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY e0 "ha">{bomb}<!ENTITY f SYSTEM "file:///etc/passwd">]>'
    body += urlset("<loc>/a</loc>", "<loc>/&e11;</loc>", "<loc>/&f;</loc>", "<loc>/b</loc>")
    assert urls(body) == ["https://example.org/a", "https://example.org/b"]
    assert looks_like(body.encode(), "application/xml")


MANY = 2_000_000
HOSTILE = {
    "deep": lambda: b"<a>" * (MANY // 3),
    "deep and broken": lambda: b"&" + b"<a>" * (MANY // 3),
    "long name": lambda: b"<" + b"a" * MANY,
    "long attribute": lambda: b"<a b='" + b"c" * MANY,
    "many attributes": lambda: b"<a " + b" ".join(b"a%d='1'" % number for number in range(MANY // 12)),
    "many names": lambda: b"".join(b"<a%d b%d=''/>" % (number, number) for number in range(MANY // 20)),
    "many names in the broken": lambda: b"&" + b"".join(b"<a%d/>" % number for number in range(MANY // 20)),
    "long comment": lambda: b"<!--" + b"a" * MANY,
    "comments in the broken": lambda: b"&" + b"<!--" * (MANY // 4),
    "long loc": lambda: b"<url><loc>/" + b"a" * MANY,
    "loc of lines": lambda: b"<url><loc>" + b"\n" * (MANY // 2),
    "lone ampersands": lambda: b"&a" * (MANY // 2),
    "lone brackets": lambda: b"&" + b"<" * (MANY // 5),
    "ends that match nothing": lambda: b"&" + b"<a></b>" * (MANY // 20),
    "attributes in the broken": lambda: b"&" + (b"<a " + b"b" * 4000 + b">") * (MANY // 8000),
    "one URL": lambda: b"<url><loc>/a</loc></url>" * (MANY // 100),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_xml_costs_little(name: str) -> None:
    body = b"<urlset><url><loc>/first</loc></url>" + HOSTILE[name]()
    begun = time.process_time()
    assert urls(body)[0] == "https://example.org/first"
    assert time.process_time() - begun < 2


def test_a_deep_file_is_left() -> None:
    reader = Reader("urlset")
    reader.feed("<urlset>" + "<a>" * 2 * MAX_DEPTH)
    assert reader.full


@pytest.mark.slow
def test_a_gzip_bomb_costs_little() -> None:
    packed = gzip.compress(b"<urlset><url><loc>/first</loc></url>" + b" " * 300_000_000, 1)
    begun = time.process_time()
    assert urls(packed) == ["https://example.org/first"]
    assert time.process_time() - begun < 3


def test_a_prolog_of_comments_is_read_in_linear_time() -> None:
    begun = time.process_time()
    assert read(b"<!-- a -->" * 400_000 + b"<x>", HERE, "") is None
    assert time.process_time() - begun < 1


PARTS = [
    "<urlset>", "<rss>", "<feed>", "<url>", "</url>", "<loc>", "</loc>", "<item>", "<entry>", "<link>",
    "<link href='/a'/>", "</", "<", ">", "&", "&amp;", "&x;", "&#0;", "&#x110000;", "<![CDATA[", "]]>", "<!--", "-->",
    "<?", "?>", "<!DOCTYPE a [", "]>", "/a", "http://b/", "\ud800", "\0", "é",
]  # fmt: skip


@given(st.lists(st.sampled_from(PARTS) | st.text(max_size=5), max_size=40), st.sampled_from(["utf-8", "utf-16", "gbk"]))
def test_any_bytes_give_a_value(parts: list[str], codec: str) -> None:
    body = "".join(parts).encode(codec, "replace")
    for whole in (body, b"<urlset>" + body, gzip.compress(body)[:-3]):
        found = read(whole, HERE, "text/xml")
        assert found is None or all(request_form(link.url) == link.url for link in found.links)
        looks_like(whole, "")


@for_each("size", [*range(1, 20), 40, 60])
def test_pieces_of_any_size_give_the_same(size: int) -> None:
    text = "<urlset>\n<url><loc>/a?b&amp;c</loc><lastmod>2026</lastmod></url>"
    text += "<url>\n<loc>/d?e&f</loc></url><url><loc>/g</loc></url></urlset>"
    reader = Reader("urlset")
    for start in range(0, len(text), size):
        reader.feed(text[start : start + size])
    reader.close()
    assert sorted(reader.found) == [("/a?b&c", ("2026",), False, 2), ("/d?e&f", (), False, 3), ("/g", (), False, 3)]
