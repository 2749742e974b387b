"""From a raw record to a document of the corpus. Pure but for PDFs, which are read in a process of their own.

What cannot or must not be a document is a word instead: why it was left out.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from types import FrameType

import msgspec
from turbohtml import Document as Tree
from turbohtml import Element
from turbohtml import parse as parse_html

from harvestman import media
from harvestman.fetch.decode import BadBody, decode
from harvestman.model import Parsed, Response, Seconds
from harvestman.pages import charset, pdf
from harvestman.pages.directives import from_header, from_words
from harvestman.pages.parse import MAX_BYTES, parse
from harvestman.policy.sites import site_of
from harvestman.policy.urls import host_of, key, url_hash

from . import extract, licence, pii, quality
from .schema import Document
from .tongue import language_of
from .words import words_of

NOINDEX = "noindex"
NOARCHIVE = "noarchive"
NO_PAGE = "not a page"
BROKEN = "broken body"
NO_TEXT = "no text"
PDF_UNREAD = "PDF without text"

_PATIENCE = Seconds(10.0)
"""CPU that the main text of one page may cost; then the crawl's own text must do."""
_LONGEST_FIELD = 300


class Settings(msgspec.Struct, frozen=True):
    """What shapes a document."""

    agent: str
    limits: dict[str, float]
    mask_pii: bool = False
    simple: bool = False
    """Only the crawl's own text: for pages that bring trafilatura, or what it stands on, down."""


@dataclass(slots=True, frozen=True)
class Place:
    """Where a record lies, and what the plan says of it."""

    warc: str
    offset: int
    length: int
    url: str | None = None
    """By which URL it is to go, where its own has other content by now."""
    copies: int = 0
    sent: Place | None = None
    """Where the response lies of which a browser showed this: it has the head."""


@dataclass(slots=True)
class _Content:
    """What was read of a body."""

    text: str
    extractor: str
    title: str = ""
    author: str = ""
    published: str = ""
    rights: licence.Rights = licence.NOTHING


def document_of(response: Response, place: Place, settings: Settings) -> Document | str:
    """The document that a stored response makes, or why it makes none."""
    body = decode(response.body, response.headers.get("content-encoding", ""))
    if isinstance(body, BadBody):
        return BROKEN
    content = _read(body, response, settings)
    if isinstance(content, str):
        return content
    if not content.text:
        return NO_TEXT
    return _described(content, body, response, place, settings)


def as_sent(shown: Response, sent: Response, agent: str) -> Response:
    """What a browser showed, under the head of the response it was made of, and asking of robots what that asked.

    Scripts may take such a wish out of the page again; whoever does not run them could not know.
    """
    headers, body = sent.headers, decode(sent.body, sent.headers.get("content-encoding", ""))
    asked = [headers.get("x-robots-tag", "")]
    if not isinstance(body, BadBody):
        parsed = parse(body, headers.get("content-type", ""), sent.url, agent=agent)
        # Before the rest: behind a name they would be meant for that robot.
        asked = [*([NOINDEX] if parsed.noindex else ()), *parsed.data.asks, *asked]
    return replace(
        shown,
        headers={**headers, "content-encoding": "", "x-robots-tag": ", ".join(filter(None, asked)), **shown.headers},
    )


def _described(content: _Content, body: bytes, response: Response, place: Place, settings: Settings) -> Document:
    text, title, hidden = content.text, content.title, 0
    language, confidence = language_of(text)
    if settings.mask_pii:
        (text, hidden), (title, more), (author, most) = map(pii.masked, (text, title, content.author))
        content.author, hidden = author, hidden + more + most
    signals = quality.signals(text, words_of(text), language, confidence)
    reason = quality.verdict(signals, quality.Limits(**settings.limits))  # type: ignore[arg-type]  # ints among them
    url = place.url or response.url
    return Document(
        id=url_hash(key(url)), url=url, site=site_of(host_of(url)), fetched_at=round(response.started * 1000),
        warc=place.warc, offset=place.offset, length=place.length, digest=sha256(body).hexdigest(),
        media_type=_media(body, response), title=title, author=content.author, published=content.published, text=text,
        extractor=content.extractor, language=language, signals=signals, keep=not reason, reason=reason,
        licence=content.rights.licence, licence_hints=list(content.rights.hints),
        reservations=list(content.rights.reservations), masked=hidden, copies=place.copies,
    )  # fmt: skip


def _read(body: bytes, response: Response, settings: Settings) -> _Content | str:
    asked = response.headers.get("x-robots-tag", "")
    refusal = _refused_by_header(asked, settings.agent)
    if refusal:
        return refusal
    if _media(body, response) == media.PDF:
        text = pdf.text_of(body)
        return _Content(text, "pdf") if text else PDF_UNREAD
    kind = response.headers.get("content-type", "")
    parsed = parse(body, kind, response.url, x_robots_tag=asked, agent=settings.agent)
    if parsed.kind == "text":
        return _Content(parsed.text, "plain")
    return _page(body, kind, parsed, response, settings) if parsed.kind == "html" else NO_PAGE


def _page(body: bytes, kind: str, parsed: Parsed, response: Response, settings: Settings) -> _Content | str:
    if parsed.noindex:
        return NOINDEX
    if not parsed.text:  # no words, or nested beyond reason: nothing that a slower reader should be let loose on
        return NO_TEXT
    markup, _ = charset.decode(body[:MAX_BYTES], kind)
    tree = parse_html(markup, positions=False)
    if _asks_for(tree, settings.agent, NOARCHIVE):
        return NOARCHIVE
    article = tree.article()
    ours = extract.Main(parsed.text, "fast")
    main = ours if settings.simple else _main(markup, parsed.text, _titles(tree, parsed))
    return _Content(
        main.text, main.way, parsed.title or _line(article.title), _line(article.byline), _line(article.date),
        licence.rights_of(tree, response.headers),
    )  # fmt: skip


def read_page(body: bytes, kind: str, url: str) -> extract.Main:
    """The main text of an HTML page alone, as a document has it."""
    parsed = parse(body, kind, url)
    markup, _ = charset.decode(body[:MAX_BYTES], kind)
    return _main(markup, parsed.text, _titles(parse_html(markup, positions=False), parsed))


def _main(markup: str, ours: str, titles: list[str]) -> extract.Main:
    try:
        with _limited(_PATIENCE):
            return extract.main_text(markup, ours, titles)
    except (_TooSlow, Exception):  # whatever lxml and trafilatura raise on pages made to hurt: there is a text without
        return extract.Main(ours, "fast")


def _titles(tree: Tree, parsed: Parsed) -> list[str]:
    told = [element.attr("content") or "" for element in _metas(tree, "og:title")]
    return [parsed.title, *(element.text for element in tree.find_all("h1", limit=5)), *told]


def _metas(tree: Tree, *names: str) -> Iterator[Element]:
    for element in tree.find_all("meta", limit=500):
        if (element.attr("name") or element.attr("property") or "").strip().lower() in names:
            yield element


def _refused_by_header(asked: str, agent: str) -> str:
    """`noarchive` is read by the rules for `noindex`: for whom it is meant, and what counts in doubt."""
    if not asked:
        return ""
    if from_header(asked, agent).noindex:
        return NOINDEX
    return NOARCHIVE if from_header(asked.lower().replace(NOARCHIVE, NOINDEX), agent).noindex else ""


def _asks_for(tree: Tree, agent: str, word: str) -> bool:
    said = (element.attr("content") or "" for element in _metas(tree, "robots", agent))
    return any(from_words(content.lower().replace(word, NOINDEX)).noindex for content in said)


def _media(body: bytes, response: Response) -> str:
    return media.real(body[: media.HEAD], media.essence(response.headers.get("content-type", "")))


def _line(value: str | None) -> str:
    return " ".join((value or "")[:_LONGEST_FIELD].split())


# -- time --------------------------------------------------------------------------------------------------------------


class _TooSlow(BaseException):
    """Not an Exception: those are caught, and gone on after, in many places of what is called."""


@contextmanager
def _limited(seconds: Seconds) -> Iterator[None]:
    """_TooSlow when the block needs more CPU than that."""

    def late(number: int, frame: FrameType | None) -> None:
        raise _TooSlow

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
