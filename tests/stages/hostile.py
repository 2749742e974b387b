"""Pages made to cost as much as they can, and pages spoilt by chance: what no parser may stall or break on. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

MB: Final = 1_000_000
HTML: Final = "text/html"
PROSE: Final = "The government presented a new bill on Wednesday, and parliament will discuss it next week. "


def _times(piece: str, size: int) -> bytes:
    """As many of these as make that many bytes."""
    data = piece.encode()
    return data * (size // len(data))


def _ld(text: str) -> bytes:
    return f'<script type="application/ld+json">{text}</script>'.encode()


def _attributes(number: int, value: str = "1") -> str:
    return " ".join(f"a{n}={value}" for n in range(number))


def _itemrefs(number: int) -> bytes:
    """Items that all refer to all others."""
    names = " ".join(f"i{n}" for n in range(number))
    items = "".join(f'<div id=i{n} itemprop=p itemscope itemref="{names}">x</div>' for n in range(number))
    return items.encode()


def _lattice(levels: int) -> bytes:
    """Items that refer to two, each of which refers to the same two: 2 to the power of the levels ways down."""
    items = "".join(
        f'<p id={side}{n} itemprop=p itemscope itemref="a{n + 1} b{n + 1}">x</p>'
        for n in range(levels)
        for side in "ab"
    )
    return f'<div itemscope itemref="a0 b0"></div>{items}'.encode()


def _bodies(number: int) -> bytes:
    tags = (" ".join(f"{letter}{n}" for n in range(number)) for letter in "ab")
    return "".join(f"<body {attributes}>" for attributes in tags).encode()


def _copies(formats: int, paragraphs: int) -> bytes:
    """Formatting elements that every paragraph gets anew, for none was closed."""
    return ("<p>" + "".join(f"<b a{n}>" for n in range(formats)) + "</p><p>x" * paragraphs).encode()


def _adoption(number: int) -> bytes:
    return ("<a>" + "".join(f"<b id={n}>" for n in range(number)) + "<div></a>" * number).encode()


def _wide(text: str, codec: str, mark: bytes = b"") -> bytes:
    """UTF-16 of which every hundredth byte is missing, so that halves of characters change sides."""
    data = bytearray(text.encode(codec))
    del data[101::100]
    return mark + bytes(data)


HOSTILE: Final[dict[str, Callable[[], bytes]]] = {
    "20k nested div": lambda: b"<div>" * 20_000 + b"x",
    "400k nested div": lambda: _times("<div>", 2 * MB),
    "nested b": lambda: _times("<b>", 2 * MB),
    "nested b with attributes": lambda: "".join(f"<b id={n}>" for n in range(150_000)).encode(),
    "nested font in p": lambda: _times("<p><font size=1>", 2 * MB),
    "nested table": lambda: _times("<table><tr><td>", 2 * MB),
    "nested svg": lambda: _times("<svg>", 2 * MB),
    "svg, foreignObject, svg": lambda: _times("<svg><foreignObject>", 2 * MB),
    "nested math": lambda: _times("<math><mi>", 2 * MB),
    "nested template": lambda: b"<template>" * 20_000 + b"<a href=x>y",
    "200k nested template": lambda: _times("<template>", 2 * MB),
    "templates side by side": lambda: _times("<template><a href=x>y</a></template>", 2 * MB),
    "100k nested a": lambda: b"<a href=x>" * 100_000 + b"text",
    "nested a, object": lambda: b"<a href=x><object>" * 100_000 + b"text",
    "a in 500 levels, with text": lambda: (b"<div><a href=x>words and words" * 500) * 130,
    "nested p, links": lambda: b"<p><object>" * 500 + b"<p>aaaaaaaaaaaaaaaaaaaaaaaaaa</p>" * 4 + b"<a>" * 8_900,
    "nested p, few links": lambda: b"<p><object>" * 4_000 + b"a" * 30 + b"<a>" * 1_900,
    "nested select, option": lambda: _times("<select><optgroup><option>", 2 * MB),
    "100k option": lambda: b"<select>" + b"<option>x" * 100_000,
    "nested button": lambda: _times("<button><p>", 2 * MB),
    "nested list": lambda: _times("<ul><li>", 2 * MB),
    "nested dl": lambda: _times("<dl><dt><dd>", 2 * MB),
    "nested ruby": lambda: _times("<ruby><rt><rp>", 2 * MB),
    "nested article": lambda: b"<article><p>hello, world text" * 30_000,
    "nested article, shallow": lambda: (b"<article><p>hello, world" * 400 + b"</article>" * 400) * 100,
    "nested nav, shallow": lambda: b"<nav>" * 400 + b"<p>words<a href=x>y</a>" * 60_000,
    "landmarks, shallow": lambda: b"<main><header><nav><aside><footer>" * 90 + b"<i>w</i>" * 90_000,
    "nested blockquote, shallow": lambda: (b"<blockquote>" * 500 + PROSE.encode() * 40) * 20,
    "nested form": lambda: _times("<form><div>", 2 * MB),
    "nested iframe": lambda: _times("<iframe src=x></iframe>", 2 * MB),
    "formatting": lambda: b"<a><b><i><u><s><p>" * 40_000,
    "formatting, unclosed": lambda: _times("<b><i></b>", 2 * MB),
    "adoption agency": lambda: _adoption(4_000),
    "adoption agency, 20k": lambda: _adoption(20_000),
    "adoption agency, in turn": lambda: _times("<a><div></a>", 2 * MB),
    "adoption agency, p": lambda: _times("<p><b></p>", 2 * MB),
    "formats and paragraphs, 10 KB": lambda: _copies(300, 1_000),
    "formats and paragraphs, 30 KB": lambda: _copies(500, 3_300),
    "formats and paragraphs, 100 KB": lambda: _copies(500, 12_000),
    "formats and paragraphs, 2 MB": lambda: _copies(500, 240_000),
    "formats and paragraphs, few tags": lambda: _copies(340, 350),
    "formats, plain, and paragraphs": lambda: b"<p><b><i><u><s><em><tt><font><code>" * 3 + b"</p><p>x" * 2_400,
    "formats behind 1 MB": lambda: _times(f"<p>{PROSE}", MB) + _copies(500, 12_000),
    "svg, end tags of nothing": lambda: b"<svg>" + b"<g>" * 5_000 + b"</x>" * 90_000,
    "svg, end tags of nothing, 5k": lambda: b"<svg>" + b"<g>" * 550 + b"</x>" * 4_400,
    "foster parents": lambda: b"<table>" + _times("<b>x", MB),
    "foster parents, text": lambda: b"<table>" + _times("x<tr>", 2 * MB),
    "foster parents, nested": lambda: _times("<table>x<tr>y", 2 * MB),
    "framesets": lambda: _times("<frameset><frame src=a>", 2 * MB),
    "20k attributes": lambda: f"<a {_attributes(20_000)} href=/q>z</a>".encode(),
    "200k attributes": lambda: f"<a {_attributes(200_000)} href=/q>z</a>".encode(),
    "200k attributes of one name": lambda: b"<a " + _times("x=1 ", 2 * MB) + b"href=/q>z</a>",
    "20k elements of 100 attributes": lambda: f"<p {_attributes(100)}>".encode() * 20_000,
    "5k b of 100 attributes": lambda: (f"<b {_attributes(100)}>".encode() * 5_000) + b"<p>" * 200,
    "html repeated with attributes": lambda: "".join(f"<html a{n}=1><body b{n}=1>" for n in range(60_000)).encode(),
    "two bodies of 90k attributes": lambda: f"<body {_attributes(90_000)}><body {_attributes(90_000)} b>".encode(),
    "two bodies, distinct": lambda: _bodies(60_000),
    "two bodies, distinct, short": lambda: _bodies(1_600),
    "bodies, short": lambda: "".join(f"<body a{n:x}>" for n in range(2_650)).encode(),
    "html, short": lambda: "".join(f"<html a{n:x}>" for n in range(2_650)).encode(),
    "html and what is none": lambda: b"<html a><itml b>" + PROSE.encode() * 400,
    "body and what is none": lambda: b"<html a><body b><uody c>" + PROSE.encode() * 400,
    "body and what is none, many tags": lambda: b"<HTML a><BODY b><Uody c><btml d>" + b"<p>x" * 1_200,
    "roots that are none": lambda: _times("<ctml a><hody b><btml c><TODY d>", 40_000),
    "end tags of nothing below b": lambda: b"<b>" * 40_000 + b"</x>" * 59_000,
    "end tags of nothing below span": lambda: b"<span>" * 40_000 + b"</x>" * 59_000,
    "attribute of 1 MB": lambda: b'<a href="' + b"x" * MB + b'">y</a>',
    "20 attributes of 100 KB": lambda: f"<a {_attributes(20, 'v' * 100_000)} href=/q>".encode(),
    "class of 2 MB": lambda: b'<p class="' + _times("c ", 2 * MB) + b'">words',
    "rel of 1 MB": lambda: b'<a href=x rel="' + _times("next ", MB) + b'">y</a>',
    "50 MB of one tag": lambda: b'<a href="' + b"x" * 50 * MB,
    "50 MB of <p>": lambda: _times("<p>", 50 * MB),
    "50 MB of <br>": lambda: _times("<br>", 50 * MB),
    "50 MB of one text": lambda: b"<p>" + _times("word ", 50 * MB),
    "50 MB of one word": lambda: b"<p>" + b"w" * 50 * MB,
    "2 MB of NUL": lambda: b"\0" * 2 * MB,
    "NUL in tags": lambda: _times("<\0a hr\0ef=x\0>\0", 2 * MB),
    "2 MB of <": lambda: b"<" * 2 * MB,
    "2 MB of </": lambda: _times("</", 2 * MB),
    "2 MB of <!": lambda: _times("<!", 2 * MB),
    "2 MB of >": lambda: b"<p>" + b">" * 2 * MB,
    "2 MB of newlines": lambda: b"<p>" + b"\r\n" * MB,
    "2 MB of nbsp": lambda: b"<p>" + _times("\u00a0", 2 * MB),
    "one letter a line": lambda: b"<pre>" + _times("w\n", 2 * MB),
    "spaces in an anchor": lambda: b"<a href=x>" + b" " * 1_500_000,
    "UTF-16 LE, broken, marked": lambda: _wide(f"<p>{PROSE}" * 10_000, "utf-16-le", b"\xff\xfe"),
    "UTF-16 BE, broken, marked": lambda: _wide(f"<p>{PROSE}" * 10_000, "utf-16-be", b"\xfe\xff"),
    "UTF-16 LE, broken, unmarked": lambda: _wide(f"<p>{PROSE}" * 10_000, "utf-16-le"),
    "UTF-16 of an odd length": lambda: b"\xff\xfe" + b"<\0p\0>\0" * 300_000 + b"x",
    "halves of surrogates": lambda: b"\xff\xfe" + b"\x00\xd8a\x00" * 500_000,
    "2 MB of 0xFF": lambda: b"<p>" + b"\xff" * 2 * MB,
    "bytes by chance": lambda: Random(1).randbytes(2 * MB),
    "bytes by chance, tags": lambda: Random(2).randbytes(MB).replace(b"\x00", b"<a href=x>"),
    "big5 by chance": lambda: b"<meta charset=big5>" + Random(3).randbytes(2 * MB),
    "comments, unclosed": lambda: _times("<!--", 2 * MB),
    "comments": lambda: _times("<!-- x -->", 2 * MB),
    "CDATA, unclosed": lambda: b"<svg>" + _times("<![CDATA[", 2 * MB),
    "script, unclosed": lambda: b"<script>" + _times("<!--<script>", 2 * MB),
    "scripts": lambda: _times("<script>var x;</script>", 2 * MB),
    "style, unclosed": lambda: b"<style>" + _times("p{}", 2 * MB),
    "textarea, unclosed": lambda: b"<textarea>" + _times("</text", 2 * MB),
    "plaintext": lambda: b"<plaintext>" + _times("<p>", 2 * MB),
    "noscript": lambda: _times("<noscript><a href=x>", 2 * MB),
    "title of 2 MB": lambda: b"<title>" + _times("word ", 2 * MB),
    "titles": lambda: _times("<svg><title>x</title></svg>", 2 * MB),
    "title nested in svg": lambda: b"<svg>" + _times("<title><p>word ", 2 * MB),
    "80k links": lambda: "".join(f"<a href=/p{n}>q</a>" for n in range(80_000)).encode(),
    "9k long links": lambda: "".join(f"<a href=/{n}/{'é' * 60}?{'a=%zz&' * 10}>q</a>" for n in range(9_000)).encode(),
    "links with 8 KB": lambda: "".join(f'<a href="/{n}/{"../é" * 1_600}">q</a>' for n in range(200)).encode(),
    "data URIs": lambda: b'<a href="data:image/png;base64,' + b"QUJD" * (2_500_000) + b'">x</a>',
    "40 data URIs": lambda: (b'<img src="data:image/png;base64,' + b"QUJD" * 12_000 + b'"><a href=x>y</a>') * 40,
    "areas": lambda: "".join(f"<area href=/p{n}>" for n in range(80_000)).encode(),
    "frames": lambda: "".join(f"<frame src=/p{n}><iframe src=/q{n}></iframe>" for n in range(30_000)).encode(),
    "bases": lambda: _times("<base target=x>", 2 * MB),
    "link elements": lambda: "".join(f"<link rel=alternate hreflang=de href=/p{n}>" for n in range(40_000)).encode(),
    "feeds": lambda: "".join(f"<link rel=alternate type=text/x href=/{n}>" for n in range(40_000)).encode(),
    "100k meta": lambda: b"<meta name=a content=b>" * 100_000,
    "meta properties": lambda: "".join(f"<meta property=og:p{n} content=x>" for n in range(55_000)).encode(),
    "meta robots": lambda: _times("<meta name=robots content='noarchive, nosnippet'>", 2 * MB),
    "meta refresh": lambda: "".join(f"<meta http-equiv=refresh content='5;url=/{n}'>" for n in range(40_000)).encode(),
    "meta of 1 MB": lambda: b'<meta name=robots content="' + _times("noindex,", MB) + b'">',
    "meta description of 1 MB": lambda: b'<meta name=description content="' + _times("a b ", MB) + b'">',
    "meta itemprop, nested": lambda: b"<div>" * 2_900 + b"<meta itemprop=author content=x>" * 2_000,
    "meta dates": lambda: _times("<meta name=date content='Mon, 99 Foo 2020 10:00'>", 2 * MB),
    "JSON-LD, 100k nested lists": lambda: _ld("[" * 100_000 + "]" * 100_000),
    "JSON-LD, 100k nested objects": lambda: _ld('{"a":' * 100_000 + "1" + "}" * 100_000),
    "JSON-LD, 1 MB": lambda: _ld('{"@type": "Article", "articleBody": "' + "word " * 200_000 + '"}'),
    "JSON-LD, many authors": lambda: _ld('{"author": [' + '{"name": "x"},' * 3_000 + '{"name": "y"}]}'),
    "JSON-LD, authors elsewhere": lambda: (
        _ld("[" + ",".join(['{"author":{"@id":1}}'] * 3_000) + "]") + _ld(f'"{"x" * 5_000}"')
    ),
    "JSON-LD, long references": lambda: _ld(
        "[" + ",".join(f'{{"author":[{{"@id":[{"0," * 100}1]}}],"@id":[{"0," * 100}{n}]}}' for n in range(2, 140)) + "]"
    ),
    "JSON-LD, 40k blocks": lambda: _ld('{"a": 1}') * 40_000,
    "JSON-LD, broken blocks": lambda: _ld("{'a': 1,}" * 50) * 3_000,
    "JSON-LD, numbers": lambda: _ld("[" + "9" * 60_000 + "]") + _ld("[1e999, -0, 1E-999]"),
    "JSON-LD, escapes": lambda: _ld('["' + "\\ud800" * 9_000 + '"]'),
    "microdata, itemref loops": lambda: b"<p itemscope itemref=i0>" + _itemrefs(60),
    "microdata, itemref loops, 400": lambda: b"<p itemscope itemref=i0>" + _itemrefs(400),
    "microdata, itemref to itself": lambda: b"<div id=a itemscope itemref='a a a a'><b itemprop=x itemscope itemref=a>",
    "microdata, nested": lambda: b"<div itemscope itemprop=p>" * 20_000 + b"x",
    "microdata, nested, shallow": lambda: (b"<div itemscope itemprop=p>" * 300 + b"x" + b"</div>" * 300) * 200,
    "microdata, many items": lambda: _times("<p itemscope itemtype=https://a.test/T><b itemprop=name>x</b></p>", MB),
    "microdata, one item": lambda: b"<div itemscope>" + _times("<b itemprop=name>x</b>", 2 * MB),
    "microdata, itemref tree": lambda: _lattice(30),
    "microdata, long values": lambda: b"<p itemscope>" + b"<div itemprop=p>" * 400 + b"word " * 300_000,
    "times": lambda: _times("<time datetime=2020>", 2 * MB),
    "entities": lambda: b"<p>" + _times("&amp;", 2 * MB),
    "entities, unclosed": lambda: b"<p>" + _times("&notit", 2 * MB),
    "entities, numbers": lambda: b"<p>" + _times("&#x110000;&#xd800;&#0;", 2 * MB),
    "entities, long": lambda: b"<p>" + _times("&CounterClockwiseContourIntegral;", 2 * MB),
    "entities in attributes": lambda: b'<a href="' + _times("&amp;", 2 * MB) + b'">',
    "ampersands": lambda: b"<p>" + b"&" * 2 * MB,
    "headings": lambda: _times("<h1><h2>", 2 * MB),
    "custom elements": lambda: "".join(f"<x-{n}>" for n in range(180_000)).encode(),
    "end tags": lambda: _times("</p></div></b></br>", 2 * MB),
    "body again and again": lambda: _times("</body></html><body>x", 2 * MB),
    "words without end": lambda: b"".join(b"%x " % n for n in range(330_000)),
    "paragraphs of one word": lambda: b"".join(b"<p>%x" % n for n in range(250_000)),
    "combining marks": lambda: b"<p>" + _times("a\u0301\u0302\u0303", 2 * MB),
    "right to left": lambda: b"<p>" + _times("\u202e\u05d0 ", 2 * MB),
    "emoji": lambda: b"<p>" + _times("\U0001f469\u200d\U0001f680", 2 * MB),
    "everything, to its limit": lambda: (
        "".join(f"<nav><a href=/é{n}/{'x' * 60}>words of {n}</a></nav>" for n in range(9_000))
        + "".join(f"<area href=/a{n}><iframe src=/f{n}></iframe>" for n in range(1_000))
        + "".join(f"<link rel=alternate hreflang=de href=/l{n}>" for n in range(1_000))
        + "".join(f"<meta property=og:{n} content='{PROSE}'>" for n in range(1_900))
        + "".join(_ld(f'{{"author": "{PROSE * 30}"}}').decode() for n in range(19))
        + f"<p itemscope><b itemprop=name>{PROSE}</b>" * 400 + f"<p>{PROSE}" * 4_000
    ).encode(),
    "Chinese without spaces": lambda: b"<p>" + _times("\u6f22\u5b57", 2 * MB),
}  # fmt: skip
"""By name, what makes the body: most are worth building only when they are asked for."""

_PIECES: Final = (
    b"<a href=", b"<", b">", b'"', b"'", b"&", b"&#x", b"\0", b"\xff\xfe", b"<template>", b"</template>", b"<table>",
    b"<svg><title>", b"<b><p>", b"</p>", b"-->", b"<!--", b"<script type=application/ld+json>{", b"</script>",
    b" itemscope itemprop=a itemref=a id=a ", b"<meta name=date content=", b"<time datetime=9999-99-99>",
    b"<link rel=alternate hreflang=x href=//[>", b"<base href=", b"\xed\xa0\x80", b"\xf0\x9f", b"<nav><main><nav>",
    b"</nav>", b"<plaintext>", b"<frameset>", b"<select>", b"\x00\xd8",
)  # fmt: skip


def spoilt(pages: Sequence[bytes], seed: int) -> bytes:
    """A page with a few things done to it by chance: one seed, one page."""
    chance = Random(seed)
    body = bytearray(chance.choice(pages)[: chance.choice((2_000, 20_000, 200_000))])
    for _ in range(chance.randint(1, 40)):
        place = chance.randrange(len(body) + 1)
        match chance.randrange(5):
            case 0:
                body[place:place] = chance.choice(_PIECES)
            case 1:
                body[place:place] = chance.choice(_PIECES) * chance.randint(1, 200)
            case 2:
                del body[place : place + chance.randint(1, 500)]
            case 3:
                body[place:place] = body[place : place + chance.randint(1, 2_000)]
            case _:
                body[place : place + 1] = bytes((chance.randrange(256),))
    return bytes(body)
