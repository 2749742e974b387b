"""A small crawl on disk, made with the project's own writer: pages, revisits, errors."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, field
from pathlib import Path

from harvestman.layout import VERSION, CrawlFile, Layout
from harvestman.model import Instant, RecordRef, Response
from harvestman.store.records import header_fields
from harvestman.store.records import sha256 as payload_digest
from harvestman.store.warc import WarcWriter

THEN = Instant(1_790_000_000.0)
HTML = "text/html; charset=utf-8"
_NOUNS = """
river farmer neighbour machine town brother committee bird bread bridge letter map coast garden house winter morning
ship window teacher mountain kitchen island painter village market summer horse station library forest doctor valley
engine harbour soldier orchard lantern captain meadow castle tailor barrel compass
"""
_VERBS = "carried remembered bought repaired described saw visited painted found sold lost measured followed built"


def prose(seed: int, sentences: int = 30) -> str:
    """Sentences in paragraphs, the same for the same seed; of two seeds few runs of five words are alike."""
    chance = random.Random(seed)

    def noun() -> str:
        return chance.choice(_NOUNS.split())

    def sentence() -> str:
        who, did = f"The {noun()} of our {noun()} and {noun()}", chance.choice(_VERBS.split())
        return f"{who} {did} the {noun()} with {noun()} near that {noun()} {noun()}."

    lines = [sentence() for _ in range(sentences)]
    return "\n".join(" ".join(lines[start : start + 5]) for start in range(0, sentences, 5))


def page(text: str, title: str = "A title of its own", head: str = "", menu: str = "Home About Contact") -> bytes:
    body = "".join(f"<p>{line}</p>" for line in text.split("\n"))
    links = "".join(f'<a href="/{word}">{word}</a> ' for word in menu.split())
    return (
        f"<!doctype html><html lang=en><head><title>{title}</title>{head}</head><body><nav>{links}</nav>"
        f"<article><h1>{title}</h1>{body}</article><footer>Copyright of nobody</footer></body></html>"
    ).encode()


@dataclass
class Shelf:
    """Writes records into a crawl's directory; every record a second after the last."""

    data: Path
    now: float = THEN
    refs: list[RecordRef] = field(default_factory=list)

    def __post_init__(self) -> None:
        layout = Layout(self.data)
        layout.write(CrawlFile(VERSION, 64, 1))
        self._warc = WarcWriter(layout.warc, "w00", max_bytes=20_000, software="h", contact="c", now=lambda: THEN)

    def put(self, url: str, body: bytes, kind: str = HTML, fields: str = "", status: int = 200) -> Response:
        response = self._response(url, body, kind, fields, status)
        self.refs.append(self._warc.write(response, digest=hashlib.sha256(body).hexdigest()))
        return response

    def again(self, url: str, original: Response) -> None:
        """The URL was seen to have the content of another record."""
        response = self._response(url, original.body, HTML, "", 200)
        digest = hashlib.sha256(original.body).hexdigest()
        self._warc.write_revisit(
            response, refers_to_uri=original.url, refers_to_date=original.started, payload_digest=digest
        )

    def unmodified(self, original: Response) -> None:
        response = self._response(original.url, b"", HTML, "", 304)
        self._warc.write_unmodified(response, original.url, original.started, payload_digest(original.body))

    def close(self) -> Path:
        self._warc.close()
        return self.data

    def _response(self, url: str, body: bytes, kind: str, fields: str, status: int) -> Response:
        self.now += 1
        at = Instant(self.now)
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\n{fields}Content-Length: {len(body)}\r\n\r\n".encode()
        return Response(url, status, head, header_fields(head), body, "192.0.2.1", at, at, at)
