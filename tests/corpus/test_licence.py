"""What pages say of their licence."""

from __future__ import annotations

import pytest
from cases import for_each
from turbohtml import parse

from harvestman.corpus.licence import rights_of, spdx


@for_each(
    ("text", "name"),
    [
        ("https://creativecommons.org/licenses/by-sa/4.0/", "CC-BY-SA-4.0"),
        ("http://creativecommons.org/licenses/by-nc-nd/3.0/de/", "CC-BY-NC-ND-3.0"),
        ("https://creativecommons.org/publicdomain/zero/1.0/", "CC0-1.0"),
        ("Published under CC BY-NC 4.0", "CC-BY-NC-4.0"),
        ("CC0", "CC0-1.0"),
        ("https://creativecommons.org/about/", ""),
        ("All rights reserved", ""),
    ],
)
def test_names(text: str, name: str) -> None:
    assert spdx(text) == name


@pytest.mark.parametrize(
    ("markup", "hint", "licence"),
    [
        ('<link rel="license" href="https://creativecommons.org/licenses/by/4.0/">', "rel", "CC-BY-4.0"),
        ('<a rel="nofollow license" href="/terms">t</a>', "rel", ""),
        ('<script type="application/ld+json">{"@graph":[{"license":{"@id":"https://creativecommons.org/licenses/by/2.0/"}}]}'
         "</script>", "json-ld", "CC-BY-2.0"),
        ('<meta name="DC.rights" content="CC BY-SA 3.0">', "meta", "CC-BY-SA-3.0"),
        ('<p><a href="//creativecommons.org/licenses/by/3.0/">photo</a>', "link", "CC-BY-3.0"),
    ],
)  # fmt: skip
def test_hints(markup: str, hint: str, licence: str) -> None:
    found = rights_of(parse(f"<html><body>{markup}"), {})
    assert found.hints[0].startswith(f"{hint}: ")
    assert found.licence == licence


def test_what_speaks_of_the_page_comes_before_a_mere_link() -> None:
    page = parse(
        '<a href="https://creativecommons.org/licenses/by/2.0/">a photo</a>'
        '<a rel=license href="https://creativecommons.org/licenses/by-nc/4.0/">this page</a>'
    )
    assert rights_of(page, {}).licence == "CC-BY-NC-4.0"


def test_heads_speak_too() -> None:
    heads = {"link": '</x>; rel="next", <https://creativecommons.org/licenses/by/4.0/>; rel="license"'}
    assert rights_of(parse(""), heads).licence == "CC-BY-4.0"
    assert rights_of(parse(""), {"tdm-reservation": "1", "x-robots-tag": "noai"}).reservations == (
        "noai",
        "tdm-reservation",
    )
    assert rights_of(parse('<meta name=robots content="noimageai, noai">'), {}).reservations == ("noai", "noimageai")


def test_silence_is_no_licence() -> None:
    found = rights_of(parse("<p>noai is a word"), {})
    assert (found.licence, found.hints, found.reservations) == ("", (), ())
