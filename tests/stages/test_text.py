"""The main text of the hot path: every rule, bounds on hostile pages, and the gate on the public article benchmark."""

from __future__ import annotations

import hashlib
import tarfile
import time

import pytest
import suites
from cases import for_each
from corpus.articles import articles, digest, score
from hypothesis import given
from hypothesis import strategies as st
from turbohtml import parse as parse_html

from harvestman.pages.parse import parse
from harvestman.pages.text import main_text

PROSE = "The river rose by two metres in the night, and the town's bridges were closed before the morning. "
OTHER = "Nobody in the valley had seen anything like it since the spring of the year the old mill burned down. "


def text(body: str) -> str:
    return main_text(parse_html(f"<!doctype html><body>{body}", positions=False))


def article(inside: str = "", prose: str = PROSE) -> str:
    return f"<article>{f'<p>{prose}</p>' * 5}{inside}<p>{prose}</p></article>"


# -- where the prose is ------------------------------------------------------------------------------------------------


def test_the_article_without_what_surrounds_it() -> None:
    around = "<header><p>Welcome to the daily paper of the valley.</p></header>"
    assert text(f"{around}<main>{article()}</main><footer><p>{OTHER}</p></footer>").split("\n\n") == [PROSE.strip()] * 6


def test_an_article_in_parts_is_found_whole() -> None:
    parts = "".join(f"<div class=column><p>{number}. {PROSE}</p><p>{OTHER}</p></div>" for number in range(5))
    found = text(f"<div><div>{parts}</div><div><p>{OTHER}</p></div></div>")
    assert [f"{number}. {PROSE.strip()}" in found for number in range(5)] == [True] * 5


@pytest.mark.parametrize(
    "name", ["class=comments", "id=disqus_thread", "class='side-bar wide'", "class=cookie-consent"]
)
def test_named_furniture_is_not_the_article_though_it_is_longer(name: str) -> None:
    found = text(f"<div><p>{PROSE}</p><p>{PROSE}</p><p>{PROSE}</p></div><div {name}>{f'<p>{OTHER}</p>' * 5}</div>")
    assert PROSE.strip() in found
    assert OTHER.strip() not in found


def test_teasers_that_are_links_are_no_prose() -> None:
    teasers = "".join(f"<a href={number}><div><p>{OTHER}</p></div></a>" for number in range(9))
    found = text(f"<div class=list>{teasers}</div><div class=text>{article()}</div>")
    assert OTHER.strip() not in found
    assert PROSE.strip() in found


def test_paragraphs_of_links_weigh_nothing() -> None:
    links = f"<p><a href=x>{OTHER}</a></p>" * 20
    assert OTHER.strip() not in text(f"<div>{links}</div><div>{article()}</div>")


def test_text_in_other_elements_is_found_when_there_are_no_paragraphs() -> None:
    lines = "<br>".join([PROSE] * 6)
    found = text(f"<div class=gdpr><p>{OTHER}</p></div><table><tr><td>{lines}</td><td>Tuesday</td></tr></table>")
    assert found.count(PROSE.strip()) == 6
    assert "Tuesday" not in found
    assert OTHER.strip() not in found


def test_no_prose_is_no_text() -> None:
    assert text("") == ""
    assert text("<ul><li><a href=a>Alpha</a><li><a href=b>Beta</a></ul><p>Three words here") == ""
    assert text(f"<div class=cookie-banner><p>{PROSE}</p></div>") == ""


def test_parse_takes_the_whole_page_when_there_is_no_prose() -> None:
    parsed = parse(b"<nav>Home</nav><p>Only this.</p>", "text/html", "https://example.org/")
    assert parsed.text.split() == ["Home", "Only", "this."]


# -- what is cut out of it ---------------------------------------------------------------------------------------------


@for_each(
    "stuck",
    [
        "<aside><p>Stuck in the middle of it.</p></aside>",
        "<nav>Stuck</nav>",
        "<figure><img src=x><figcaption>Stuck under a picture</figcaption></figure>",
        "<div class='Share-Bar'>Stuck</div>",
        "<section id=relatedStories><h2>Stuck</h2></section>",
        "<span class=photo-caption>Stuck</span>",
        "<ul><li><a href=a>Stuck one</a><li><a href=b>Stuck two</a></ul>",
        "<div>More: <a href=a>Stuck in a block that is a link, all but a word of it</a></div>",
        "<button>Stuck</button>",
    ],
)
def test_what_is_stuck_into_an_article_is_cut_out(stuck: str) -> None:
    found = text(article(stuck))
    assert "Stuck" not in found
    assert found.count(PROSE.strip()) == 6


@for_each(
    "kept",
    [
        "<h1>Kept</h1>",
        "<h2>Kept</h2>",
        "<ul><li>Kept as a list of things, not of links<li><a href=x>two</a></ul>",
        "<p>Kept with <a href=x>a link in it</a></p>",
        "<blockquote class=meta-analysis>Kept</blockquote>",
        "<div class=metal>Kept</div>",
        "<pre>Kept = 1</pre>",
        "<table><tr><td>Kept</td></tr></table>",
    ],
)
def test_what_belongs_to_an_article_is_kept(kept: str) -> None:
    assert "Kept" in text(article(kept))


@pytest.mark.parametrize("whole", ["body", "article", "main"])
def test_the_names_of_what_holds_the_page_are_about_a_part_of_it(whole: str) -> None:
    found = text(f"<{whole} class='has-sidebar comments-open'>{article()}</{whole}>")
    assert found.count(PROSE.strip()) == 6


def test_furniture_that_holds_much_of_the_article_is_not_cut_out() -> None:
    assert OTHER.strip() in text(
        f"<div><p>{PROSE}</p><p>{PROSE}</p><div class=promo-box>{f'<p>{OTHER}</p>' * 30}</div></div>"
    )


def test_a_page_made_of_comments_keeps_them() -> None:
    posts = "".join(f"<div class=comment><p>{number}. {PROSE}</p><p>{OTHER}</p></div>" for number in range(20))
    assert text(f"<div id=thread><h1>A thread</h1>{posts}</div>").count(PROSE.strip()) == 20


def test_nothing_is_cut_out_of_a_list_with_a_word_of_welcome() -> None:
    entries = "".join(f"<li><a href={number}>Entry {number}</a>" for number in range(30))
    assert "Entry 29" in text(f"<div><p>{PROSE}</p><ul>{entries}</ul></div>")


# -- any page ----------------------------------------------------------------------------------------------------------

HOSTILE = {
    "lists of links in lists of links": article() + "<ul><li><a href=x>y</a>" * 3_300,
    "blocks in blocks": article() + "<div><a href=x>y</a>" * 4_900,
    "paragraphs in paragraphs": ("<p><object>" + "word " * 80) * 4_900,
    "text between breaks": "<div>" + "word<br>" * 90_000,
    "text in nested blocks": ("<div>" + "word " * 30) * 9_000,
    "long classes": f"<div class='{'x' * 200_000}'>{article()}</div>" * 9,
    "many classes": article() + "".join(f"<div class='k{number} {'x' * 190}'>" for number in range(9_000)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_cost_little(name: str) -> None:
    """0.09 s at most on the reference machine; a slow one may take three times that."""
    document = parse_html(HOSTILE[name], positions=False)
    started = time.process_time()
    main_text(document)
    assert time.process_time() - started < 0.3


PIECES = [
    "<p>",
    "</p>",
    "<div class=share>",
    "<div>",
    "</div>",
    "<ul><li>",
    "<a href=x>",
    "</a>",
    "<article>",
    "<object>",
]
PIECES += [
    "<table><td>",
    "<svg>",
    "<select>",
    "<button>",
    "<template>",
    "<body id=comments>",
    "<aside>",
    PROSE,
    "\ud800",
]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=40))
def test_any_markup_has_a_text(pieces: list[str]) -> None:
    found = main_text(parse_html("".join(pieces), positions=False))
    assert isinstance(found, str)
    assert found == found.strip()


# -- how good it is ----------------------------------------------------------------------------------------------------

ARTICLES = "ff951c27d723c2305db17231aa008e408d45db664f2999f659965778c1134e56"
FLOORS = {"all": 0.960, "looked at": 0.957, "other half": 0.962}
"""Measured 0.966, 0.963, 0.968; the issue asks for 0.92. The details were made by looking at one half of the pages, but
the worst failures of turbohtml's own main text (0.906, 0.912, 0.902) were known of both."""
READABILITY = "04582ded400e0466c0eb95ac4a3bef16b0c424e6cc4c24ada7b01c0c01f72463"
AGREEMENT = 0.93
"""Measured 0.940; turbohtml's own main text has 0.890. It is but another program's opinion: not to be optimised."""
CHANGED = "the benchmark's data has changed: measure again before trusting the floors"


@suites.needed
@pytest.mark.slow
def test_the_text_is_as_good_as_it_was() -> None:
    pages = articles()
    assert digest(pages) == ARTICLES, CHANGED
    texts = {page.id: parse(page.body, "text/html", page.url).text for page in pages}
    halves = [pages, *([page for page in pages if page.half == half] for half in (0, 1))]
    figures = [score((page.text, texts[page.id]) for page in half).f1 for half in halves]
    assert all(figure >= floor for figure, floor in zip(figures, FLOORS.values(), strict=True)), figures


@suites.needed
@pytest.mark.slow
def test_the_text_is_much_like_what_readability_finds() -> None:
    archive, cases = (suites.ROOT / "extract" / name for name in ("readability_html.tar.xz", "readability.jsonl"))
    assert hashlib.sha256(archive.read_bytes() + cases.read_bytes()).hexdigest() == READABILITY, CHANGED
    with tarfile.open(archive) as members:
        bodies = {
            member.name.rpartition("/")[2]: file.read() for member in members if (file := members.extractfile(member))
        }
    pairs = [
        (case["text"], parse(bodies[case["file"]], "text/html", case["base_url"]).text)
        for case in suites.rows("extract/readability.jsonl")
    ]
    assert len(pairs) == 130
    assert score(pairs).f1 >= AGREEMENT
