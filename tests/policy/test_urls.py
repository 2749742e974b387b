"""The two forms of a URL: tables of what is meant, and properties that must hold for any text."""

from __future__ import annotations

import pytest
from cases import for_each
from hypothesis import example, given
from hypothesis import strategies as st

from harvestman.errors import UrlError
from harvestman.model import Partition, SiteKey
from harvestman.policy import urls

PAGE = "https://example.org/a/b.html?x=1"


@for_each(
    ("text", "expected"),
    [
        ("HTTP://Example.ORG", "http://example.org/"),
        ("https://example.org:443/a", "https://example.org/a"),
        ("http://example.org:8080/a", "http://example.org:8080/a"),
        ("https://example.org/a#top", "https://example.org/a"),
        ("https://example.org/a?", "https://example.org/a"),
        ("https://example.org/a?utm_source=x", "https://example.org/a"),
        ("https://example.org/a?b=1&utm_source=x&c=2&gclid=7", "https://example.org/a?b=1&c=2"),
        ("https://example.org/a?hsCtaTracking=1&b", "https://example.org/a?b"),
        ("https://example.org/a?gclidish=1&xutm_source=2", "https://example.org/a?gclidish=1&xutm_source=2"),
        ("https://example.org/a?b=2&a=1", "https://example.org/a?b=2&a=1"),
        ("https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://[::1]:81/", "http://[::1]:81/"),
        ("https://example.org/a/../b/./c", "https://example.org/b/c"),
        ("https://example.org/@user", "https://example.org/@user"),
    ],
)
def test_request_form(text: str, expected: str) -> None:
    assert urls.request_form(text) == expected


@for_each(
    ("text", "reason"),
    [
        ("mailto:a@example.org", "only http"),
        ("ftp://example.org/", "only http"),
        ("https://user:secret@example.org/", "user name or password"),
        ("https://user@example.org/", "user name or password"),
        ("https://", "not a URL"),
        ("https://exa mple.org/", "not a URL"),
        ("/relative", "not a URL"),
        ("https://example.org/" + "a" * 8192, "longer than 8192"),
    ],
)
def test_what_has_no_request_form(text: str, reason: str) -> None:
    with pytest.raises(UrlError, match=reason):
        urls.request_form(text)


@for_each(
    "text",
    [
        "https://user:secret@example.org/",
        "ftp://user:secret@example.org/",
        "https://user:secret@exa mple.org/",
        "http:\\\\user:secret@example.org:x",
        "https://secret@example.org:99999/",
        "//user:secret@example.org/",
    ],
)
def test_a_password_is_not_repeated(text: str) -> None:
    with pytest.raises(UrlError) as refused:
        urls.request_form(text)
    assert "secret" not in str(refused.value)
    assert "secret" not in urls.shown(text)
    assert urls.Base("https://example.org/").resolve(text) is None


def test_what_is_shown_keeps_what_is_no_password() -> None:
    assert urls.shown("https://example.org/@user?mail=a@b") == "https://example.org/@user?mail=a@b"


def test_the_longest_url() -> None:
    longest = "https://example.org/" + "a" * (urls.MAX_URL - 20)
    assert urls.request_form(longest) == longest
    assert urls.Base(PAGE).resolve(longest) == longest
    assert urls.Base(PAGE).resolve(longest + "a") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("example.org", "https://example.org/"),
        ("  example.org/path \n", "https://example.org/path"),
        ("example.org:8080/x", "https://example.org:8080/x"),
        ("http://example.org", "http://example.org/"),
        ("example.org/?u=http://other.org/", "https://example.org/?u=http://other.org/"),
    ],
)
def test_seeds(text: str, expected: str) -> None:
    assert urls.from_seed(text) == expected


@pytest.mark.parametrize("text", ["", "   ", "ftp://example.org/", "mailto:a@b.org"])
def test_bad_seeds(text: str) -> None:
    with pytest.raises(UrlError):
        urls.from_seed(text)


@for_each(
    ("href", "expected"),
    [
        ("c.html", "https://example.org/a/c.html"),
        ("/c", "https://example.org/c"),
        ("../c", "https://example.org/c"),
        ("?y=2", "https://example.org/a/b.html?y=2"),
        ("", "https://example.org/a/b.html?x=1"),
        ("//other.org/p", "https://other.org/p"),
        ("///other.org/p", "https://other.org/p"),
        ("http://Other.org", "http://other.org/"),
        (" \n/c\t", "https://example.org/c"),
        ("c?a=1&fbclid=2#f", "https://example.org/a/c?a=1"),
        ("c:d", None),
        ("\ud800", "https://example.org/a/%EF%BF%BD"),
        ("\0c", "https://example.org/a/c"),
        ("#top", None),
        ("mailto:a@b.org", None),
        ("JavaScript:void(0)", None),
        ("tel:1", None),
        ("data:text/html,x", None),
        ("http://", None),
        ("http://a b/", None),
        ("http://u:p@other.org/", None),
        ("https://xn--pokxncvks/", "https://xn--pokxncvks/"),
    ],
)
def test_resolve(href: str, expected: str | None) -> None:
    assert urls.Base(PAGE).resolve(href) == expected


def test_resolve_below_a_host_with_bad_punycode() -> None:
    base = urls.Base("http://XN--pokxncvks/a/b")
    assert base.url == "http://xn--pokxncvks/a/b"
    assert base.resolve("XN--c") == "http://xn--pokxncvks/a/XN--c"


class Forms:
    """Every request form there is, as if all had been met."""

    def __contains__(self, text: object) -> bool:
        try:
            return isinstance(text, str) and urls.request_form(text) == text
        except UrlError:
            return False


PIECES = [
    *"/?#:.%\\@&= \tab2eA",
    "..",
    "//",
    "http:",
    "https://",
    "example.org",
    "utm_x=1",
    "%2e",
    "\ud800",
    "é",
    "xn--a",
]


@given(
    st.sampled_from(
        [PAGE, "https://example.org", "http://example.org:81/a/?b/c", "https://xn--a/b", "http://[::1]/a;b"]
    ),
    st.lists(st.sampled_from(PIECES), max_size=8).map("".join),
)
@example(PAGE, "//example.org/a")
@example(PAGE, "?a")
@example(PAGE, "")
@example(PAGE, "a:b")
def test_what_is_known_resolves_as_if_it_were_not(page: str, href: str) -> None:
    assert urls.Base(page, Forms()).resolve(href) == urls.Base(page).resolve(href)


def test_a_base_must_be_a_page_we_could_fetch() -> None:
    with pytest.raises(UrlError):
        urls.Base("about:blank")


@for_each(
    ("url", "expected"),
    [
        ("https://e.org/", "https://e.org/"),
        ("https://e.org//", "https://e.org/"),
        ("https://e.org/a/", "https://e.org/a"),
        ("https://e.org/a//", "https://e.org/a"),
        ("https://e.org/a/?b=1", "https://e.org/a?b=1"),
        ("https://e.org/?b=1", "https://e.org/?b=1"),
        ("https://e.org/a?c=2&b=1&&a", "https://e.org/a?a&b=1&c=2"),
        ("https://e.org/%7ejoe/%e4", "https://e.org/~joe/%E4"),
        ("https://e.org/%41%2f%2F", "https://e.org/A%2F%2F"),
        ("https://e.org/a?q=%7e%26", "https://e.org/a?q=~%26"),
        ("https://e.org/a?utm%5Fsource=1", "https://e.org/a"),
        ("https://e.org/a%zz", "https://e.org/a%zz"),
        ("https://e.org/%4%31", "https://e.org/%4%31"),
        ("https://e.org/%%41", "https://e.org/%%41"),
        ("https://e.org/%2%45/x", "https://e.org/%2%45/x"),
    ],
)
def test_key(url: str, expected: str) -> None:
    assert urls.key(url) == expected


@for_each(
    ("url", "host", "origin", "path", "port"),
    [
        ("https://e.org/", "e.org", "https://e.org", "/", 443),
        ("http://e.org/a?b=c/d", "e.org", "http://e.org", "/a?b=c/d", 80),
        ("http://e.org:8080/a", "e.org", "http://e.org:8080", "/a", 8080),
        ("http://[::1]/a", "::1", "http://[::1]", "/a", 80),
        ("https://[::1]:81/a", "::1", "https://[::1]:81", "/a", 81),
        ("http://a/", "a", "http://a", "/", 80),
    ],
)
def test_parts(url: str, host: str, origin: str, path: str, port: int) -> None:
    assert (urls.host_of(url), urls.origin_of(url)) == (host, origin)
    assert (urls.path_of(url), urls.port_of(url)) == (path, port)


def test_names_of_urls() -> None:
    assert urls.url_hash("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    name = urls.url_id("https://e.org/", Partition(258))
    assert name[:2] == b"\x01\x02"
    assert len(name) == 18
    assert name[2:] != urls.url_id("https://e.org/a", Partition(258))[2:]
    assert {urls.partition_of(SiteKey(f"s{n}.org"), 4) for n in range(100)} == {0, 1, 2, 3}


HOSTILE = st.text(st.characters(), max_size=60)
URLISH = st.text(st.sampled_from("ab/.%?&=#:@\\ [];2e5Ffu_tm\u00e9\ud800\0\n"), max_size=40)


@given(HOSTILE | URLISH)
@example("http://[")
@example("//")
@example("///")
@example("http:\\\\xn--\ud800")
@example("xn--//xn--")
@example("??")
def test_resolve_never_raises_and_gives_request_forms(href: str) -> None:
    url = urls.Base(PAGE).resolve(href)
    if url is not None:
        assert urls.request_form(url) == url
        assert urls.origin_of(url) + urls.path_of(url) == url
        assert urls.host_of(url)
        assert urls.port_of(url) >= 0


@given(URLISH | HOSTILE)
def test_the_key_is_stable(tail: str) -> None:
    url = urls.Base(PAGE).resolve("/" + tail)
    if url is not None:
        key = urls.key(url)
        assert urls.key(key) == key
        assert urls.key(urls.request_form(key)) == key
        assert len(key) <= len(url)


@given(HOSTILE | URLISH)
def test_request_form_raises_only_url_errors(text: str) -> None:
    for reading in (urls.request_form, urls.from_seed):
        try:
            url = reading(text)
        except UrlError:
            continue
        assert reading(url) == url


DOTTED = [
    ("http://example.com./x", "http://example.com/x"),
    ("http://example.com.", "http://example.com/"),
    ("http://example.com.:8080/x", "http://example.com:8080/x"),
    ("https://example.com.:443/", "https://example.com/"),
    ("http://example.com%2E/x", "http://example.com/x"),
    ("http://localhost./", "http://localhost/"),
    ("http://127.0.0.1./", "http://127.0.0.1/"),
    ("http://[::1]:80/a./b", "http://[::1]/a./b"),
    ("http://example.com/x./y.:z", "http://example.com/x./y.:z"),
    ("http://example.com/?u=http://b.org./", "http://example.com/?u=http://b.org./"),
    # An empty label: no such host, and none is made of it.
    ("http://example.com../x", "http://example.com../x"),
    ("http://./x", "http://./x"),
]


@for_each(("text", "form"), DOTTED)
def test_a_host_with_a_trailing_dot_is_the_host_without(text: str, form: str) -> None:
    assert urls.request_form(text) == form
    assert urls.request_form(form) == form
    assert urls.from_seed(text) == form
    assert urls.Base("https://other.test/").resolve(text) == form
    assert urls.Base(text).resolve("") == form


def test_masking_a_long_text_is_no_long_work() -> None:
    text = "http://[" + "/" * 200_000
    assert urls.shown(text)[:20] == text[:20]
    assert "secret" not in urls.shown("http:/me:secret@host/")
