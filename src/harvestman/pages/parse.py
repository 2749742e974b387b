"""From a body to a page: one parse, then links, directives, text, language and SimHash from the same tree.

CPU on the simulated web's median page (33 KB, 56 anchors, 20 KB of text): 0.6 ms, of which links 0.17, main text 0.13,
the tree 0.08, SimHash 0.08, language 0.07; real pages cost 0.9 ms per 100 KB. Hostile pages are cut, not waited for.
"""

from __future__ import annotations

from itertools import islice

from turbohtml import Document, Namespace
from turbohtml import parse as parse_html

from harvestman.model import Parsed
from harvestman.policy.urls import Base

from .charset import decode
from .directives import Directives, from_header, from_words
from .language import language
from .links import MAX_LINKS, LinkSet, base_of, collect
from .simhash import fingerprint
from .sniff import kind_of

MAX_BYTES = 2_000_000
"""What is read of a body."""
_MANY_TAGS = 10_000
_TOO_MANY_TAGS = 100_000
_THIN = 200
"""Characters of main text below which the whole page is fingerprinted."""
_CUT_FOR_TAGS = 150_000
"""Characters read of a page with too many tags: 100,000 in 2 MB is more than the longest honest page has."""
_TOO_DEEP = 512
"""Browsers stop nesting here; beyond, the text of nested elements would be read over and over."""
_DESCRIPTION = 1_000


def parse(body: bytes, content_type: str, url: str, *, x_robots_tag: str = "", agent: str = "harvestman") -> Parsed:
    """Read a content-decoded body that was fetched from `url`. Any bytes give a value."""
    header = from_header(x_robots_tag, agent)
    kind = kind_of(body, content_type)
    if kind == "other":
        return Parsed(kind, noindex=header.noindex, nofollow=header.nofollow)
    text, charset = decode(_cut(body), content_type)
    if kind == "html":
        return _page(text, charset, url, header, agent)
    return _with_text(Parsed(kind, charset, noindex=header.noindex, nofollow=header.nofollow), text.strip())


def _page(markup: str, charset: str, url: str, header: Directives, agent: str) -> Parsed:
    tags = markup.count("<") if len(markup) > 4 * _MANY_TAGS else 0
    if tags > _TOO_MANY_TAGS:
        markup = markup[:_CUT_FOR_TAGS]
    if "\0" in markup:  # a browser drops them from text too; a megabyte of them costs us 60 ms
        markup = markup.replace("\0", "")
    document = parse_html(markup, positions=False)
    if document.find("template") is not None:
        document.remove("template")
    deep = tags > _MANY_TAGS and _is_deep(document)
    links = LinkSet(base_of(document, Base(url)), anchor_text=0 if deep else 4 * len(markup))
    canonical = collect(document, links)
    description, asked = _metadata(document, agent)
    asked |= header
    page = Parsed(
        "html",
        charset,
        title=_title(document),
        description=description,
        canonical=canonical,
        links=links.links(),
        noindex=asked.noindex,
        nofollow=asked.nofollow,
        refresh=links.refresh,
    )
    if deep:
        return _with_text(page, "")
    main = document.main_text()
    if len(main) >= _THIN:
        return _with_text(page, main)
    # Too little to tell the pages of a site apart: the rest of the page does, and recognises copies of a list of links.
    whole = document.to_text().strip()
    _with_text(page, main or whole)
    return _printed(page, f"{page.title} {whole}" if main else whole)


def _with_text(parsed: Parsed, text: str) -> Parsed:
    parsed.text = text
    parsed.language = language(text)
    return _printed(parsed, text)


def _printed(parsed: Parsed, text: str) -> Parsed:
    parsed.simhash, parsed.weak, parsed.sample = fingerprint(text)
    return parsed


def _title(document: Document) -> str:
    for element in document.find_all("title", limit=50):
        if element.namespace is Namespace.HTML:
            return " ".join(element.text[:_DESCRIPTION].split())
    return ""


def _metadata(document: Document, agent: str) -> tuple[str, Directives]:
    """The description, and what the page asks of robots."""
    description = ""
    asked = Directives()
    for element in document.find_all("meta", limit=MAX_LINKS):
        name = (element.attr("name") or "").strip().lower()
        if name == "description" and not description:
            description = " ".join((element.attr("content") or "")[:_DESCRIPTION].split())
        elif name in ("robots", agent.strip().lower()):
            asked |= from_words(element.attr("content") or "")
    return description, asked


def _cut(body: bytes) -> bytes:
    """The part of a body that is read, not ending inside a UTF-8 character."""
    if len(body) <= MAX_BYTES:
        return body
    end = MAX_BYTES
    while end > MAX_BYTES - 4 and body[end] & 0xC0 == 0x80:
        end -= 1
    return body[:end]


def _is_deep(document: Document) -> bool:
    """Whether much of a large page is nested beyond reason, judged by every so many elements."""
    elements = document.find_all()
    sample = elements[:: max(1, len(elements) // 64)]
    return any(sum(1 for _ in islice(element.ancestors, _TOO_DEEP)) == _TOO_DEEP for element in sample)
