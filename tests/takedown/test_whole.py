"""A real crawl, everything made of it, and takedowns: judged by the tools of others and by a search of our own.

The search shares nothing with the proof that a takedown prints: it knows gzip, zstd, zip and Parquet, and tries them on
every file, wherever in it such data begin.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
import pytest
import zstandard
from simweb import sim_web

from harvestman.cli.main import main
from harvestman.layout import Layout
from harvestman.policy.urls import key, url_hash
from harvestman.store.pages import read_pages
from harvestman.supervise import Supervisor
from harvestman.views import View
from harvestman.wiring import prepare

BIN = Path(sys.executable).parent
WINDOW, STRIDE, NEEDLES = 30, 5, 25
MADE = (
    *("warc", "pages", "query", "corpus"),
    *("export/dataset", "export/wet", "export/crawl.wacz", "export/pages.parquet"),
)
"""Where the text of a page stands."""


# -- searching ---------------------------------------------------------------------------------------------------------


def unpacked(data: bytes, depth: int = 3) -> Iterator[bytes]:
    """The data, and all that is packed in them, at any place and several times over."""
    yield data
    if not depth:
        return
    for found in re.finditer(rb"\x1f\x8b\x08", data):
        yield from _tried(zlib.decompressobj(31).decompress, data[found.start() :], depth)
    for found in re.finditer(rb"\x28\xb5\x2f\xfd", data):
        yield from _tried(zstandard.ZstdDecompressor().decompressobj().decompress, data[found.start() :], depth)
    if data[:4] == b"PAR1":
        yield json.dumps(pq.read_table(io.BytesIO(data)).to_pylist(), default=str, ensure_ascii=False).encode()
    if data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(data)) as package:
            for name in package.namelist():
                yield from unpacked(package.read(name), depth - 1)


def _tried(unpack: object, data: bytes, depth: int) -> Iterator[bytes]:
    assert callable(unpack)
    try:
        inside = unpack(data)
    except (zlib.error, zstandard.ZstdError):
        return  # three or four bytes that look like a beginning, and are none
    yield from unpacked(inside, depth - 1)


def everything(directory: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            for data in unpacked(path.read_bytes()):
                yield path.relative_to(directory).as_posix(), data
    if (directory / "crawl.json").exists():  # the database packs its rows in its own way
        with View(Layout(directory)) as view:
            yield "rows", b"\0".join(key + value for _, state in view.workers() for _, key, value in state.rows())


def where(directory: Path, needles: list[bytes]) -> set[str]:
    """The files in which any of these stands."""
    wanted = re.compile(b"|".join(map(re.escape, needles)))
    return {name for name, data in everything(directory) if wanted.search(data)}


def needles_of(gone: list[str], stays: list[str]) -> list[bytes]:
    """Stretches of texts that go, which none that stays has."""
    rest = "\n".join(stays)
    found = []
    for text in gone:
        for line in text.splitlines():
            cuts = [line[at : at + WINDOW] for at in range(0, len(line) - WINDOW, STRIDE)]
            found += [cut.encode() for cut in cuts if cut.isascii() and '"' not in cut and cut not in rest]
    return found[:: max(1, len(found) // NEEDLES)]


# -- a crawl and what is made of it ------------------------------------------------------------------------------------


def crawl(here: Path) -> Layout:
    with sim_web(here, hosts=8, pages=8, profile="clean") as web:
        config = web.config(here / "data", workers=2, delay=0.1, patience=2.0)
        layout = prepare(config, list(config.seeds))
        asyncio.run(asyncio.wait_for(Supervisor(config, layout, lambda _: None).run(), 90))
    return layout


def make(layout: Layout, *, corpus: bool = False) -> None:
    """Everything that verbs make of a crawl; the corpus, which takes longest, when it is asked for."""
    data = str(layout.data)
    for form in ("dataset", "parquet", "wet", "wacz", "cdxj"):
        assert main(["export", data, "--format", form, *(["--text"] if form == "wacz" else [])]) == 0
    assert main(["query", data, "select count(*) from pages, links, urls, hosts"]) == 0
    assert main(["graph", "rank", data]) == 0
    if corpus:
        assert main(["corpus", "build", data, "--workers", "1", "--quiet"]) == 0


def tool(*words: str | Path) -> str:
    """A program of another package, which must be content."""
    done = subprocess.run([BIN / words[0], *words[1:]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check(layout: Layout) -> None:
    """WARC, WET, CDXJ and WACZ, by the programs of others."""
    raw = sorted(layout.warc.glob("*.warc.gz"))
    packed = [*raw, *sorted((layout.data / "export" / "wet").iterdir())]
    tool("warcio", "check", *packed)
    for path in packed:
        tool("fastwarc", "check", path)
    assert (layout.warc / "index.cdxj").read_text() == tool("cdxj-indexer", "--sort", *raw)
    tool("wacz", "validate", "-f", layout.data / "export" / "crawl.wacz")


class Indexer:
    """A process of somebody else that follows the feed, and keeps a file for each page and its cursor."""

    def __init__(self, layout: Layout, home: Path) -> None:
        self._layout, self._home = layout, home
        home.mkdir()
        self._cursor = "0"

    def read(self, killed_after: int = 1 << 30) -> list[str]:
        """Deal with events; killed after some of them, it has not stored the cursor of the last."""
        command = [
            sys.executable,
            "-m",
            "harvestman",
            "feed",
            str(self._layout.data),
            "--json",
            "--after",
            self._cursor,
        ]
        done = subprocess.run(command, capture_output=True, check=True)
        changes = []
        for line in done.stdout.splitlines()[:killed_after]:
            event = json.loads(line)
            changes.append(event["change"])
            mine = self._home / event["url_hash"]
            if event["change"] in ("new", "changed"):
                record = event["warc"]
                with (self._layout.warc / record["file"]).open("rb") as file:
                    file.seek(record["offset"])
                    mine.write_bytes(file.read(record["length"]))
            elif event["change"] in ("duplicate", "redirected", "gone", "removed"):
                mine.unlink(missing_ok=True)
            if len(changes) < killed_after:
                self._cursor = event["cursor"]
        return changes


# -- the test ----------------------------------------------------------------------------------------------------------


def orders(layout: Layout) -> Iterator[tuple[str, str, set[str]]]:
    """A URL, a prefix and a site that are there, with the pages each of them means."""
    urls = sorted({page.url for page in read_pages(layout.pages)})
    deep = [url for url in urls if urlsplit(url).path.count("/") > 1]
    yield "url", deep[0], {deep[0]}
    last = deep[-1].rpartition("/")[0] + "/"
    yield "prefix", last, {url for url in urls if url.startswith(last)}
    host = next(name for url in urls if (name := str(urlsplit(url).hostname)) not in deep[0] + last)
    site = ".".join(host.split(".")[-2:])
    yield "site", site, {url for url in urls if f".{urlsplit(url).hostname}".endswith(f".{site}")}


@pytest.mark.slow
def test_what_is_taken_down_is_gone_from_everything(tmp_path: Path) -> None:
    layout = crawl(tmp_path)
    indexer = Indexer(layout, tmp_path / "index")
    indexer.read(killed_after=20)
    assert indexer.read().count("new") == 8 * 8 - 19
    make(layout, corpus=True)
    check(layout)
    for number, (kind, text, meant) in enumerate(orders(layout), 1):
        pages = list(read_pages(layout.pages))
        needles = needles_of(
            [page.text for page in pages if page.url in meant], [page.text for page in pages if page.url not in meant]
        )
        assert len(needles) >= 3, (kind, text)
        before = where(layout.data, needles)
        assert {name for name in MADE if not _within(name, before)} == ({"corpus"} if number > 1 else set())
        assert where(tmp_path / "index", needles)

        done = tool("harvestman", "takedown", layout.data, f"--{kind}", text, "--reason", f"case {number}", "--json")
        assert where(layout.data, needles) == set()
        told = json.loads(done)
        audit = [json.loads(line) for line in layout.takedowns.read_text().splitlines()]
        assert audit[-1] == told
        assert (told["kind"], told["reason"], told["pages"]) == (kind, f"case {number}", len(meant))
        assert {url_hash(key(url)) for url in meant} <= {*told["urls"]}
        assert told["proof"]["left"] == told["proof"]["unsearched"] == []
        assert told["proof"]["shared"] < told["proof"]["phrases"]

        assert indexer.read(killed_after=1) == ["removed"]
        again = indexer.read()
        assert again.count("removed") >= len(meant)
        assert where(tmp_path / "index", needles) == set()
        make(layout)
        assert {page.url for page in read_pages(layout.pages)} == {page.url for page in pages} - meant
    assert where(layout.data, needles) == set()
    check(layout)
    assert "nothing is left" in tool("harvestman", "takedown", layout.data, "--verify")


def _within(name: str, files: set[str]) -> bool:
    return any(file == name or file.startswith(f"{name}/") for file in files)
