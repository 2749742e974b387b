"""No page can stall or break a worker: hostile ones (stages/hostile.py), and real ones spoilt by chance."""

from __future__ import annotations

import gzip
import time
from functools import cache

import msgspec
import pytest
import suites
from hypothesis import given
from hypothesis import strategies as st
from stages.hostile import HOSTILE, HTML, PROSE, spoilt
from turbohtml import parse as parse_html

from harvestman.model import Page, Parsed
from harvestman.pages import tree
from harvestman.pages.language import language
from harvestman.pages.links import MAX_LINKS, MAX_OTHERS
from harvestman.pages.parse import MAX_BYTES, parse
from harvestman.policy.urls import request_form

URL = "https://example.org/dir/page"
MOST = 0.5
"""CPU seconds of the best of three; 0.1 on a machine that has nothing else to do (bench/hostile_cpu.py)."""
QUICK = (
    "20k nested div", "nested b", "nested svg", "nested template", "100k nested a", "20k attributes", "100k option",
    "two bodies, distinct", "html, short", "formats and paragraphs, 30 KB", "svg, end tags of nothing", "formatting",
    "adoption agency", "foster parents", "2 MB of NUL", "UTF-16 LE, broken, marked", "halves of surrogates",
    "9k long links", "landmarks, shallow", "JSON-LD, 100k nested lists", "JSON-LD, broken blocks",
    "html and what is none", "body and what is none", "body and what is none, many tags", "roots that are none",
    "JSON-LD, authors elsewhere", "nested p, links", "microdata, itemref tree", "microdata, itemref loops",
    "microdata, long values", "entities, unclosed",
)  # fmt: skip
"""One of each sort; all of them with `make test`."""


def judged(body: bytes) -> tuple[Parsed, float]:
    best = float("inf")
    for _ in range(3):
        began = time.thread_time()
        parsed = parse(body, HTML, URL)
        language(parsed.text)
        best = min(best, time.thread_time() - began)
        if best < MOST / 5:
            break
    return parsed, best


def sound(parsed: Parsed) -> None:
    """What comes of it is bounded, and can be stored and read again."""
    assert len(parsed.links) <= MAX_LINKS + 5 * MAX_OTHERS
    assert len(parsed.text) <= MAX_BYTES
    assert all(len(link.anchor) <= 200 and len(link.rel) <= 200 for link in parsed.links)
    said = msgspec.msgpack.encode(parsed.data)
    assert len(said) < 1_000_000
    page = Page(URL, 200, 0.0, "", 0, "", title=parsed.title, text=parsed.text, links=parsed.links, data=parsed.data)  # type: ignore[arg-type]
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(page), type=Page) == page


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in QUICK else [pytest.mark.slow]) for n in HOSTILE])
def test_a_hostile_page_costs_little(name: str) -> None:
    language(PROSE)  # the model is loaded
    parsed, spent = judged(HOSTILE[name]())
    assert spent < MOST, f"{name}: {spent * 1000:.0f} ms"
    sound(parsed)


@pytest.mark.parametrize(
    ("name", "cut"),
    [
        ("400k nested div", "tags, depth"),
        ("20k nested div", "depth"),
        ("80k links", "tags, links"),
        ("areas", "links"),
        ("100k meta", "size, meta"),
        ("JSON-LD, 1 MB", "data"),
        ("microdata, many items", "data"),
        ("microdata, long values", "data"),
        ("one letter a line", "size"),
        ("UTF-16 LE, broken, marked", "size"),
        ("40 data URIs", ""),
        ("two bodies, distinct, short", ""),
    ],
)
def test_what_was_cut_is_told(name: str, cut: str) -> None:
    limits = parse(HOSTILE[name](), HTML, URL).cut.split(", ")
    assert ", ".join(limit for limit in limits if limit != "time") == cut  # a busy machine may be out of time as well


def test_a_tree_that_grows_too_fast_is_left() -> None:
    parsed = parse(HOSTILE["formats and paragraphs, 2 MB"](), HTML, URL)
    assert "tags" in parsed.cut
    assert "time" in parsed.cut or "depth" in parsed.cut


def test_links_behind_hostile_parts_are_found() -> None:
    """What is cheap to pass by does not end a page."""
    for name in ("20k attributes", "two bodies, distinct", "attribute of 1 MB", "40 data URIs"):
        body = HOSTILE[name]()[: MAX_BYTES - 100] + b"<a href=/behind>x</a>"
        assert "https://example.org/behind" in {link.url for link in parse(body, HTML, URL).links}, name


ROOTS = [f"<{name}{end}" for name in ("html", "body", "itml", "ctml", "btml", "hody", "uody", "tody") for end in " />"]


@given(st.lists(st.tuples(st.sampled_from(ROOTS), st.booleans()), max_size=12), st.sampled_from(["x", "<p>y"]))
def test_near_roots_in_any_mixture_parse(tags: list[tuple[str, bool]], filling: str) -> None:
    """Pages are searched for repeated roots; whatever is like one must not break that."""
    markup = "".join(f"{tag.upper() if upper else tag}a{n}>" for n, (tag, upper) in enumerate(tags))
    parsed = parse(f"{markup}<a href=/behind>z</a>{filling * 37_000}".encode()[:37_000], HTML, URL)
    assert parsed.cut == ""
    assert [link.url for link in parsed.links] == ["https://example.org/behind"]


@given(
    st.lists(st.sampled_from([*ROOTS, *"<bBsSigfm \t\n\v/>\0\xe9", "<tt ", "<FONT\f", "trong", "strike"])).map("".join)
)
def test_the_compiled_survey_counts_the_same(markup: str) -> None:
    body = markup.encode()
    assert tree.survey(body) == tree.survey_python(body)


def test_a_directory_of_7000_files_keeps_most_of_its_links() -> None:
    """Apache's index as a table: 15 tags a file."""
    row = (
        '<tr><td valign="top"><img src="/icons/compressed.gif" alt="[   ]"></td>'
        '<td><a href="p-{0}.gz">p-{0}.gz</a></td>'
        '<td align="right">2026-01-01 10:00  </td><td align="right">1.2M</td><td>&nbsp;</td></tr>'
    )
    body = f"<h1>Index of /</h1><table>{''.join(row.format(n) for n in range(7_000))}</table>".encode()
    parsed = parse(body, HTML, URL)
    assert len(parsed.links) > 5_000
    assert "tags" in parsed.cut


class Slow:
    """The clock of a machine three times as slow as one on which an honest page takes half of what it may."""

    def __init__(self) -> None:
        self.now = 0.0

    def thread_time(self) -> float:
        self.now += 3 * 0.5 * tree._PACE * tree._PIECE
        return self.now


def test_a_slow_machine_reads_all_of_an_honest_page(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = '<li class="a b"><span>x</span><a href="/w/{0}" title="t {0}">word {0}</a> &amp; &eacute;t&eacute;</li>'
    body = f"<ul>{''.join(entry.format(n) for n in range(9_000))}</ul>".encode()
    monkeypatch.setattr(tree, "time", Slow())
    parsed = parse(body, HTML, URL)
    assert (parsed.cut, len(parsed.links)) == ("", 9_000)
    assert "word 8999" in parsed.text


def test_what_was_read_in_time_keeps_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is nested or grown beyond reason loses it."""
    monkeypatch.setattr(tree, "_watched", lambda markup: (parse_html(markup[:50_000], positions=False), False))
    parsed = parse(f"<p>{PROSE}".encode() * 6_000, HTML, URL)
    assert parsed.cut == "time"
    assert parsed.text.startswith(PROSE.strip())


@cache
def real() -> list[bytes]:
    files = sorted((suites.ROOT / "extract" / "aeb_html").glob("*.gz"))[:30]
    own = f"<title>t</title><nav><a href=x>y</a></nav><p>{PROSE}<p itemscope><b itemprop=name>z</b>".encode() * 20
    return [own, *(gzip.decompress(path.read_bytes()) for path in files)]


@pytest.mark.parametrize(
    "first", [0, pytest.param(100, marks=pytest.mark.slow), pytest.param(1_000, marks=pytest.mark.slow)]
)
def test_pages_spoilt_by_chance(first: int) -> None:
    for seed in range(first, first + (40 if first == 0 else 400)):
        parsed, spent = judged(spoilt(real(), seed))
        assert spent < MOST, f"seed {seed}: {spent * 1000:.0f} ms"
        sound(parsed)
        assert all(request_form(link.url) == link.url for link in parsed.links), f"seed {seed}"
