"""What a page says of itself: author, dates, properties, JSON-LD, microdata; alternates, pagination, places."""

from __future__ import annotations

import json
from datetime import datetime

import msgspec
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from turbohtml import Element
from turbohtml import parse as parse_html

from harvestman.model import Data, Link, Page, Parsed
from harvestman.pages.dates import iso
from harvestman.pages.metadata import MAX_BLOCKS, MAX_ITEMS, MAX_JSON, MAX_META, MAX_NAMES
from harvestman.pages.parse import parse

URL = "https://example.org/dir/page"
HERE = "https://example.org/dir/"


def page(markup: str, **options: str) -> Parsed:
    return parse(markup.encode(), "text/html; charset=utf-8", URL, **options)


def data(markup: str) -> Data:
    return page(markup).data


def ld(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f"<script type=application/ld+json>{text}</script>"


def meta(name: str, content: str) -> str:
    return f'<meta name="{name}" content="{content}">'


def test_a_page_that_says_nothing() -> None:
    parsed = page("<title>t</title><p>words <a href=x>y</a>")
    assert parsed.data == Data()
    assert parsed.cut == ""
    assert msgspec.msgpack.encode(parsed.data) == b"\x80"


# -- dates -----------------------------------------------------------------------------------------------------------


@for_each(
    ("said", "expected"),
    [
        ("2026-01-02", "2026-01-02"),
        (" 20260102 ", "2026-01-02"),
        ("2026/1/2", "2026-01-02"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05Z"),
        ("2026-01-02T03:04:05+0200", "2026-01-02T01:04:05Z"),
        ("2026-01-02T03:04:05.1234567Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02 03:04", "2026-01-02T03:04:00"),
        ("2026-01-02 03:04:05 +0100", "2026-01-02T02:04:05Z"),
        ("2026-01-02 03:04:05 UTC", "2026-01-02T03:04:05Z"),
        ("Fri, 02 Jan 2026 03:04:05 GMT", "2026-01-02T03:04:05Z"),
        ("2 Jan 2026 03:04:05 -0500", "2026-01-02T08:04:05Z"),
        ("1851-09-18", "1851-09-18"),
        ("", ""),
        ("yesterday", ""),
        ("2026", ""),
        ("2026-13-45", ""),
        ("0001-01-01T00:00:00", ""),
        ("1970-01-01T00:00:00Z", ""),
        ("9999-12-31T23:59:59Z", ""),
        ("1767322445", ""),
        ("{{ date }}", ""),
        ("2026-01-02" * 20, ""),
        ("２０２６-01-02", ""),
    ],
)
def test_dates_become_one_form(said: str, expected: str) -> None:
    assert iso(said) == expected


@given(st.text(max_size=60) | st.from_regex(r"[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}([T ][0-9:.+Z -]{1,20})?"))
def test_any_date_is_iso_or_nothing(said: str) -> None:
    date = iso(said)
    assert not date or 1500 <= datetime.fromisoformat(date).year <= 2100
    assert iso(date) == date


@for_each(
    ("markup", "published"),
    [
        ("<meta property=article:published_time content=2026-01-02>", "2026-01-02"),
        (meta("DC.date.issued", "2026-01-02"), "2026-01-02"),
        (meta("date", "2026-01-02"), "2026-01-02"),
        ("<meta itemprop=datePublished content=2026-01-02>", "2026-01-02"),
        (ld({"@type": "Article", "datePublished": "2026-01-02"}), "2026-01-02"),
        (ld([{"@graph": [{"@type": "WebSite"}, {"datePublished": ["2026-01-02"]}]}]), "2026-01-02"),
        ("<p itemscope><time itemprop=datePublished datetime=2026-01-02>today</time>", "2026-01-02"),
        ("<p><time datetime=2026-01-02>today</time>", "2026-01-02"),
        ("<article><time datetime=2026-01-02></time></article><time datetime=2025-01-01></time>", "2026-01-02"),
        # Times of comments, or of a list: of none it is known that it is the page's.
        ("<time datetime=2026-01-02></time><time datetime=2025-01-01></time>", ""),
        ("<article><time datetime=2026-01-02></article><article><time datetime=2025-01-01>", ""),
        (meta("date", "soon") + meta("pubdate", "2026-01-02"), "2026-01-02"),
        # The surest first.
        (meta("date", "2020-01-01") + ld({"datePublished": "2026-01-02"}), "2026-01-02"),
        (ld({"datePublished": "2020-01-01"}) + meta("article:published_time", "2026-01-02"), "2026-01-02"),
    ],
)
def test_when_it_was_published(markup: str, published: str) -> None:
    assert data(markup).published == published


REVIEW = "<meta itemprop=datePublished content=2001-01-01><meta itemprop=author content=Troll>"


def test_properties_of_an_item_are_not_the_page_s() -> None:
    review = f"<div itemscope><p itemprop=review itemscope>{REVIEW}<meta itemprop=description content=bad></p></div>"
    parsed = page(review + meta("date", "2026-01-02") + meta("description", "good"))
    assert (parsed.data.published, parsed.data.author, parsed.description) == ("2026-01-02", "", "good")
    assert "Troll" in parsed.data.microdata[0]


@pytest.mark.parametrize("whole", ["<html itemscope>", "<html><body itemscope>", "<html>"])
def test_properties_of_the_page_as_an_item_are_its_own(whole: str) -> None:
    parsed = page(f"{whole}<main>{REVIEW}<meta itemprop=description content=said></main>")
    assert (parsed.data.published, parsed.data.author, parsed.description) == ("2001-01-01", "Troll", "said")


def test_references_are_followed_in_the_first_things_only() -> None:
    """Of three thousand two hundred are looked at, whether or not there is more than we read."""
    things = [{"author": {"@id": "#a"}}] * 3_000 + [{"@id": "#a", "name": "Ann"}]
    assert data(ld(things)).author == ""
    assert data(ld(things) + ld("x" * MAX_JSON)).author == ""
    assert data(ld(things[-2:]) + ld("x" * MAX_JSON)).author == "Ann"


def test_when_it_was_modified() -> None:
    assert data("<meta property=article:modified_time content=2026-01-02T00:00:00Z>").modified == "2026-01-02T00:00:00Z"
    assert data(ld({"dateModified": "2026-01-02"})).modified == "2026-01-02"
    assert data(meta("dcterms.modified", "2026-01-02")).modified == "2026-01-02"


@for_each(
    ("markup", "author"),
    [
        (meta("author", " Ann\n Author "), "Ann Author"),
        ("<meta property=article:author content=https://social.test/ann>" + meta("dc.creator", "Ann"), "Ann"),
        (ld({"author": "Ann"}), "Ann"),
        (ld({"author": {"@type": "Person", "name": "Ann"}}), "Ann"),
        (ld({"author": [{"name": "Ann"}, {"name": ["Bob"]}, {"name": "Ann"}, 7, None]}), "Ann, Bob"),
        (ld({"@graph": [{"author": {"@id": "#a"}}, {"@id": "#a", "name": "Ann"}]}), "Ann"),
        ("<p itemscope><b itemprop=author itemscope><i itemprop=name>Ann</i></b>", "Ann"),
        (ld({"author": {"@id": "#nobody"}}), ""),
        (ld({"author": 5}), ""),
    ],
)
def test_who_wrote_it(markup: str, author: str) -> None:
    assert data(markup).author == author


# -- properties ------------------------------------------------------------------------------------------------------


def test_properties_are_kept_by_name_the_first_of_each() -> None:
    markup = (
        "<meta property=og:title content=' A title '><meta property=og:title content=no><meta name=Generator content=P>"
        "<meta name=twitter:card content=s><meta name=viewport content=wide><meta property=og:empty content=''>"
    )
    assert data(markup).meta == {"og:title": "A title", "generator": "P", "twitter:card": "s"}


def test_properties_are_bounded() -> None:
    parsed = page("".join(meta(f"og:{n}", "x" * 5_000) for n in range(200)) + meta("robots", "noindex"))
    assert len(parsed.data.meta) == MAX_NAMES
    assert {len(value) for value in parsed.data.meta.values()} == {1_000}
    assert parsed.cut == "meta"
    assert parsed.noindex
    assert page(meta("x", "y") * (MAX_META + 1)).cut == "meta"


# -- JSON-LD ---------------------------------------------------------------------------------------------------------


def test_json_ld_is_kept_as_sound_json() -> None:
    found = data(ld({"@type": "Article", "n": 1}) + ld(" [1, 2] ") + "<script>{}</script>" + ld("{broken"))
    assert [json.loads(block) for block in found.json_ld] == [{"@type": "Article", "n": 1}, [1, 2]]
    assert found.broken == 1


@pytest.mark.parametrize(
    ("block", "value"),
    [
        ('{"a": "one\ntwo"}', {"a": "one\ntwo"}),
        ('<!-- {"a": 1} -->', {"a": 1}),
        ('{"a": 1};', {"a": 1}),
        ('["half \\ud800"]', ["half ?"]),
        ("[123456789012345678901234567890]", [123456789012345678901234567890]),
    ],
)
def test_json_ld_that_is_not_quite_json(block: str, value: object) -> None:
    found = data(ld(block))
    assert [json.loads(each) for each in found.json_ld] == [value]
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=Data) == found


def test_halves_of_characters_can_be_stored() -> None:
    found = data(ld('{"author": "An\\ud800n", "datePublished": "2026-01-02\\udc00"}'))
    assert (found.author, found.published) == ("An?n", "")
    assert msgspec.msgpack.encode(found)


@for_each("block", ["[NaN]", "[1e999]", "", "[" * 5_000 + "]" * 5_000, f"[{'9' * 10_000}]", "{'a': 1}"])
def test_json_ld_that_is_none(block: str) -> None:
    found = data(ld(block))
    assert all(json.loads(each) is not None for each in found.json_ld)
    assert len(found.json_ld) + found.broken == 1


def test_json_ld_is_bounded() -> None:
    many = page(ld([1]) * (MAX_BLOCKS + 5))
    assert len(many.data.json_ld) == MAX_BLOCKS
    assert many.cut == "data"
    long = page(ld({"a": "x" * (MAX_JSON // 2)}) * 3)
    assert len(long.data.json_ld) == 1
    assert long.cut == "data"


# -- microdata -------------------------------------------------------------------------------------------------------


def test_microdata_is_kept_as_json() -> None:
    markup = (
        "<div itemscope itemtype=https://schema.org/Article itemid=urn:1><h1 itemprop='name headline'>A \n b</h1>"
        "<p itemprop=author itemscope itemtype=https://schema.org/Person><b itemprop=name>Ann</b></p></div>"
    )
    (item,) = map(json.loads, data(markup).microdata)
    assert item == {
        "@type": "https://schema.org/Article", "@id": "urn:1", "name": ["A b"], "headline": ["A b"],
        "author": [{"@type": "https://schema.org/Person", "name": ["Ann"]}],
    }  # fmt: skip


def test_microdata_is_bounded() -> None:
    many = page("<p itemscope><b itemprop=a>x</b></p>" * (MAX_ITEMS + 5))
    assert len(many.data.microdata) == MAX_ITEMS
    assert many.cut == "data"
    (item,) = map(json.loads, data(f"<p itemscope><b itemprop=a>{'word ' * 1_000}</b>").microdata)
    assert len(item["a"][0]) <= 500


def test_items_do_not_borrow_from_one_another() -> None:
    """Two items for each other's properties would be endless."""
    markup = (
        "<p itemscope itemref=b></p><b id=b itemprop=x itemscope itemref=c></b><b id=c itemprop=y itemscope itemref=b>"
    )
    assert data(markup).microdata == ["{}"]


# -- links -----------------------------------------------------------------------------------------------------------


def test_the_page_in_other_languages() -> None:
    parsed = page(
        "<link rel=alternate hreflang=de-AT href=/at><link rel=alternate hreflang=X-Default href=/>"
        "<link rel=alternate media=print href=/print><link rel='alternate' type=application/rss+xml href=/feed>"
    )
    assert parsed.links == [
        Link("https://example.org/at", "", "alternate", "alternate", language="de-at"),
        Link("https://example.org/", "", "alternate", "alternate", language="x-default"),
        Link("https://example.org/feed", "", "alternate", "sitemaps"),
    ]


def test_an_alternate_that_is_linked_to_as_well() -> None:
    (link,) = page("<link rel=alternate hreflang=de href=/de><a href=/de>Deutsch</a>").links
    assert (link.kind, link.anchor, link.language) == ("a", "Deutsch", "de")


def test_pagination() -> None:
    parsed = page("<link rel=next href=?p=3><link rel='prev nofollow' href=?p=1><a rel=next href=?p=3>on</a>")
    found = {(link.url, link.kind, link.rel) for link in parsed.links}
    assert found == {(f"{URL}?p=3", "a", "next"), (f"{URL}?p=1", "pagination", "prev")}


def places(markup: str) -> dict[str, str]:
    return {link.url.removeprefix(HERE): link.place for link in page(markup).links}


def test_places_of_links() -> None:
    markup = (
        "<a href=0>0</a><header><a href=1>1</a><nav><a href=2>2</a></nav><a href=3>3</a></header><main><a href=4>4</a>"
        "<aside><a href=5>5</a></aside><article><a href=6>6</a></article></main><footer><a href=7>7</a></footer>"
        "<a href=8>8</a><nav></nav><nav><a href=9>9</a></nav>"
    )
    assert places(markup) == dict(
        zip("0123456789", ["", "header", "nav", "header", "main", "aside", "main", "footer", "", "nav"], strict=True)
    )


def test_where_two_landmarks_hold_the_same_links() -> None:
    assert places("<footer><nav><a href=1>1</a></nav></footer><main><nav><a href=2>2</a></nav></main>") == {
        "1": "nav",
        "2": "nav",
    }


def test_content_is_a_better_place_than_its_frame() -> None:
    assert places("<nav><a href=1>x</a></nav><main><a href=1>y</a></main>") == {"1": "main"}
    assert places("<main><a href=1>x</a></main><nav><a href=1>y</a></nav>") == {"1": "main"}
    assert places("<nav><a href=1>x</a></nav><footer><a href=1>y</a></footer>") == {"1": "nav"}
    assert places("<nav><a href=1>x</a></nav><link rel=canonical href=1>") == {"1": "nav"}


def test_links_are_in_the_order_of_the_page() -> None:
    markup = "<main>" + "".join(f"<a href={n}>x</a>" for n in range(50)) + "</main><nav><a href=50>x</a></nav>"
    assert [int(link.url.removeprefix(HERE)) for link in page(markup).links] == list(range(51))


PIECES = ["<nav>", "</nav>", "<main>", "</main>", "<aside>", "</aside>", "<p>", "L"]


@given(st.lists(st.sampled_from(PIECES), max_size=60))
def test_places_are_those_of_the_nearest_landmark(pieces: list[str]) -> None:
    """The long way, every anchor asks its ancestors. Of landmarks that hold the same links, any will do."""
    markup = "".join(f"<a href={n}>x</a>" if piece == "L" else piece for n, piece in enumerate(pieces))
    found = places(markup)
    for anchor in parse_html(markup).find_all("a"):
        around = [
            each for each in anchor.ancestors if isinstance(each, Element) and each.tag in ("nav", "main", "aside")
        ]
        same = {each.tag for each in around if each.find_all("a") == around[0].find_all("a")}
        assert found[anchor.attr("href") or ""] in (same or {""})


# -- what else it asks -----------------------------------------------------------------------------------------------


def test_what_else_it_asks_of_robots() -> None:
    parsed = page(meta("robots", "NoArchive, max-snippet:5, nosnippet"), x_robots_tag="noai, otherbot: noimageai")
    assert parsed.data.asks == ["noai", "noarchive", "nosnippet"]
    assert not parsed.noindex
    assert parse(b"%PDF", "application/pdf", URL, x_robots_tag="noarchive").data.asks == ["noarchive"]


# -- on disk ---------------------------------------------------------------------------------------------------------


def test_pages_and_links_of_older_logs_still_read() -> None:
    old_link = ["https://example.org/a", "anchor", "nofollow", "a", 0.0]
    old = {
        "url": URL,
        "status": 200,
        "fetched_at": 1.0,
        "content_type": "",
        "depth": 0,
        "digest": "",
        "links": [old_link],
    }
    read = msgspec.msgpack.decode(msgspec.msgpack.encode(old), type=Page)
    assert read.links == [Link("https://example.org/a", "anchor", "nofollow")]
    assert (read.data, read.cut) == (Data(), "")


def test_pages_come_back_from_disk_as_they_went() -> None:
    parsed = page("<nav><a href=1>x</a></nav>" + ld({"author": "Ann \U0001f600"}) + meta("og:title", "é"))
    kept = Page(URL, 200, 1.0, "", 0, "", links=parsed.links, data=parsed.data, cut="size")  # type: ignore[arg-type]
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(kept), type=Page) == kept
