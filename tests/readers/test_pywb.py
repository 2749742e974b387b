"""A real pywb server replays what was crawled, from WARC and CDXJ and from a WACZ, as docs/export.md says how."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from http.client import HTTPConnection
from pathlib import Path

import pytest
from formats.small import HOME, write
from readers.environment import need

from harvestman.cli.main import main
from harvestman.fetch.decode import decode
from harvestman.layout import Layout
from harvestman.store.cdxj import build_index, surt
from harvestman.store.pages import read_pages

pytestmark = [pytest.mark.readers, pytest.mark.slow]
BIN = Path(sys.executable).parent
LATEST = "20991231235959id_"
"""The version that is nearest to the end of the century, its bytes as they were."""


def tool(here: Path, *words: str | Path) -> None:
    done = subprocess.run([BIN / words[0], *words[1:]], cwd=here, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def collect(here: Path, name: str, crawl: Layout, index: bytes = b"") -> None:
    """A collection of pywb: WARC files and their index."""
    tool(here, "wb-manager", "init", name)
    for path in crawl.warc.glob("*.warc.gz"):
        shutil.copy(path, here / "collections" / name / "archive")
    (here / "collections" / name / "indexes" / "index.cdxj").write_bytes(index or build_index(crawl.warc).read_bytes())


@pytest.fixture(scope="module")
def archive(crawled: Layout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two collections of pywb with the same crawl: one of WARC and CDXJ, one of WACZ."""
    need("pywb")
    here = tmp_path_factory.mktemp("pywb")
    collect(here, "warc", crawled)
    tool(here, "wb-manager", "init", "wacz")
    assert main(["export", str(crawled.data), "--format", "wacz", "--output", str(here / "crawl.wacz")]) == 0
    tool(here, "wb-manager", "add", "--unpack-wacz", "wacz", "crawl.wacz")
    return here


@pytest.fixture(scope="module")
def server(archive: Path) -> Iterator[int]:
    """pywb's own server on a free port of the loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with (archive / "pywb.log").open("wb") as log:
        process = subprocess.Popen(
            [BIN / "wayback", "--bind", "127.0.0.1", "--port", str(port)], cwd=archive, stdout=log, stderr=log
        )
    try:
        _await(process, port, archive / "pywb.log")
        yield port
    finally:
        process.terminate()
        process.wait(20)


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.2)
    raise RuntimeError(f"pywb did not start: {log.read_text()}")


def replayed(port: int, collection: str, url: str) -> tuple[int, bytes]:
    """The status and the body, unpacked, that pywb answers with for a URL."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", f"/{collection}/{LATEST}/{url}")
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    plain = decode(body, answer.headers.get("Content-Encoding", ""))
    assert isinstance(plain, bytes), plain
    return answer.status, plain


def digests(crawl: Layout) -> dict[str, set[str]]:
    """What may come back for a URL: replay tools take http for https and leave www. out, so others may be meant too."""
    by_key: dict[str, set[str]] = {}
    pages = list(read_pages(crawl.pages))
    for page in pages:
        by_key.setdefault(surt(page.url), set()).add(page.digest)
    return {page.url: by_key[surt(page.url)] for page in pages}


@pytest.mark.parametrize("collection", ["warc", "wacz"])
def test_every_page_comes_back_byte_for_byte(crawled: Layout, server: int, collection: str) -> None:
    pages = digests(crawled)
    assert len([url for url, found in pages.items() if len(found) == 1]) > 80
    for url, found in pages.items():
        status, body = replayed(server, collection, url)
        assert status == 200, url
        assert sha256(body).hexdigest() in found, url


def test_copies_errors_and_redirects_come_back_too(archive: Path, server: int, tmp_path: Path) -> None:
    """A revisit record has no body: pywb finds that of the page it refers to."""
    collect(archive, "small", write(tmp_path / "crawl"))
    for url, status, words in (
        (HOME, 200, b"Second version"),
        (f"{HOME}copy", 200, b"First version"),
        (f"{HOME}a?b=2&x=1", 200, b"Page a"),
        (f"{HOME}gone", 404, b"no"),
        (f"{HOME}old", 301, b""),
    ):
        found = replayed(server, "small", url)
        assert found[0] == status
        assert words in found[1]


def test_what_was_taken_down_is_not_replayed(crawled: Layout, archive: Path, server: int, tmp_path: Path) -> None:
    """The rest is, by an index that was made before: nothing in the files has moved."""
    pages = digests(crawled)
    gone, *others = [url for url, found in pages.items() if len(found) == 1]
    copy = Layout(Path(shutil.copytree(crawled.data, tmp_path / "crawl")))
    old = build_index(copy.warc).read_bytes()
    assert main(["takedown", str(copy.data), "--url", gone, "--reason", "test"]) == 0
    collect(archive, "stale", copy, old)
    collect(archive, "fresh", copy)
    status, body = replayed(server, "stale", gone)
    assert status >= 400
    assert sha256(body).hexdigest() not in pages[gone]
    assert replayed(server, "fresh", gone)[0] == 404
    for url in others[:20]:
        for collection in ("stale", "fresh"):
            assert sha256(replayed(server, collection, url)[1]).hexdigest() in pages[url]
