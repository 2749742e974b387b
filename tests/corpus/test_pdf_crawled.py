"""A PDF from the server that has it to a document of the corpus, with nothing put in place of anything."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
import pytest
from corpus.shelf import page, prose
from stages.test_pdf import document

from harvestman.cli.main import main
from harvestman.config import Config, Limits, Politeness
from harvestman.layout import Layout
from harvestman.model import RecordRef, Seconds
from harvestman.pages import pdf
from harvestman.store.replay import read
from harvestman.supervise import Supervisor
from harvestman.wiring import prepare

SENTENCES = [each for each in re.findall(r"\S[^.]*\.", prose(11)) if len(each) < 95]
PAPER = document(*SENTENCES, packed=True)
"""A sentence on each page: what runs over the edge of the paper is not read."""
HOME = page(prose(12), head='<link rel=license href="https://creativecommons.org/licenses/by/4.0/">', menu="paper.pdf")
SERVED = {
    "/": ("text/html; charset=utf-8", HOME),
    "/paper.pdf": ("application/pdf", PAPER),
}


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        kind, body = SERVED.get(self.path, ("text/plain", b""))
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nobody reads it."""


@contextmanager
def serving() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.slow
@pytest.mark.skipif(not pdf.can_read(), reason="needs the corpus extra: pip install harvestman[corpus]")
def test_a_pdf_of_a_crawl_becomes_a_document(tmp_path: Path) -> None:
    with serving() as home:
        config = Config(
            seeds=(home,), data=str(tmp_path / "data"), allow=("127.0.0.0/8",),
            politeness=Politeness(delay=Seconds(0.1)), limits=Limits(patience=Seconds(2.0)),
        )  # fmt: skip
        layout = prepare(config, list(config.seeds))
        asyncio.run(asyncio.wait_for(Supervisor(config, layout, lambda _: None).run(), 60))
    assert main(["corpus", "build", str(layout.data), "--workers", "1", "--quiet"]) == 0
    found = {row["url"]: row for row in pq.read_table(layout.data / "corpus").to_pylist()}
    assert set(found) == {home, f"{home}paper.pdf"}
    paper = found[f"{home}paper.pdf"]
    assert (paper["extractor"], paper["media_type"], paper["language"]) == ("pdf", "application/pdf", "en")
    assert paper["text"].split("\n") == SENTENCES
    assert (paper["words"], paper["keep"]) == (len(" ".join(SENTENCES).split()), True)
    assert _raw(layout, paper) == PAPER
    assert paper["digest"] == sha256(PAPER).hexdigest()
    assert (found[home]["licence"], paper["licence"]) == ("CC-BY-4.0", "")
    assert _raw(layout, found[home]) == HOME


def _raw(layout: Layout, row: dict[str, str | int]) -> bytes:
    """The body of the record that a document says it was made of."""
    where = Path(str(row["warc"]))
    response = read(layout.data / where.parent, RecordRef(where.name, int(row["offset"]), int(row["length"])))
    assert response.url == row["url"]
    return response.body
