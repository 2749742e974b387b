"""The whole archive in one file, for replay: WACZ 1.1.1.

archive/      the WARC files, as they are
indexes/      index.cdx.gz, the CDXJ lines in gzip members of LINES lines, and index.idx, which says where each begins
pages/        pages.jsonl, the seeds; extraPages.jsonl, every other page
datapackage.json, with the digest of each of these, and datapackage-digest.json, with that of the first

Archive and indexes are not compressed a second time, so a reader finds each record by its offset in the zip. All of it
is streamed.
"""

from __future__ import annotations

import heapq
import json
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from harvestman.export.rows import Exported, appearing
from harvestman.layout import Layout
from harvestman.model import Instant, Page
from harvestman.policy.urls import key, url_hash
from harvestman.store.cdxj import build_index
from harvestman.store.frames import frames
from harvestman.store.members import compressed
from harvestman.store.records import warc_date
from harvestman.stored import Files, Part, everything

VERSION: Final = "1.1.1"
LINES: Final = 1024
_CHUNK: Final = 1 << 20

Tell = Callable[[int], None]


class Resource(msgspec.Struct):
    """A file of the package, as datapackage.json lists it."""

    name: str
    path: str
    hash: str
    bytes: int


class Wanted(msgspec.Struct, frozen=True):
    """What goes into the package besides the archive."""

    software: str
    title: str
    now: Instant
    text: bool = False
    """The text of the pages, so that a replay tool can search in it."""
    noindex: bool = False
    """List also pages that ask not to be indexed; their raw records are there either way."""


def write_wacz(layout: Layout, found: list[Files], target: Path, counted: Exported, wanted: Wanted, tell: Tell) -> None:
    """Write the package. `tell` hears how many bytes of the archive are in."""
    with appearing(target) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as package:
        into = _Package(package, wanted.now, tell)
        warcs = [warc for files in found for warc in files.warcs]
        for warc in warcs:
            into.add(f"archive/{warc.path.name}", _content(warc))
        blocks: list[str] = []
        into.add("indexes/index.cdx.gz", _index(layout, warcs, blocks))
        into.add("indexes/index.idx", (line.encode() for line in blocks))
        listed = _Listed(layout, counted, wanted)
        into.add("pages/pages.jsonl", listed.lines("pages", "Seeds", seeds=True))
        into.add("pages/extraPages.jsonl", listed.lines("extra-pages", "Pages", seeds=False))
        _describe(into, wanted, listed.first)


def _describe(into: _Package, wanted: Wanted, first: Page | None) -> None:
    about: dict[str, Any] = {
        "profile": "data-package",
        "wacz_version": VERSION,
        "title": wanted.title,
        "software": wanted.software,
        "created": warc_date(wanted.now)[:19] + "Z",
    }
    if first is not None:
        about |= {"mainPageUrl": first.url, "mainPageDate": warc_date(first.fetched_at)}
    about["resources"] = list(into.resources)
    raw = msgspec.json.format(msgspec.json.encode(about), indent=2)
    into.add("datapackage.json", [raw])
    digest = {"path": "datapackage.json", "hash": into.resources[-1].hash}
    into.add("datapackage-digest.json", [msgspec.json.encode(digest)])


class _Package:
    """A zip that remembers what went into it."""

    def __init__(self, package: zipfile.ZipFile, now: Instant, tell: Tell) -> None:
        self._package = package
        self._date = time.gmtime(now)[:6]
        self._tell = tell
        self._written = 0
        self.resources: list[Resource] = []

    def add(self, path: str, chunks: Iterable[bytes]) -> None:
        digest, length = sha256(), 0
        info = zipfile.ZipInfo(path, self._date)
        info.compress_type = zipfile.ZIP_DEFLATED if path.startswith("pages/") else zipfile.ZIP_STORED
        info.external_attr = 0o644 << 16
        with self._package.open(info, "w", force_zip64=True) as out:
            for chunk in chunks:
                out.write(chunk)
                digest.update(chunk)
                length += len(chunk)
                self._tell(self._written + length)
        self._written += length
        self.resources.append(Resource(path.rpartition("/")[2].lower(), path, f"sha256:{digest.hexdigest()}", length))


def _content(part: Part) -> Iterator[bytes]:
    """A file, as far as it counts."""
    left = part.length
    with part.path.open("rb") as file:
        while left and (chunk := file.read(min(left, _CHUNK))):
            left -= len(chunk)
            yield chunk


# -- the index -------------------------------------------------------------------------------------------------------


def _index(layout: Layout, warcs: list[Part], blocks: list[str]) -> Iterator[bytes]:
    """The index, block by block; where each block begins is added to `blocks`."""
    blocks.append(f"!meta 0 {json.dumps({'format': 'cdxj-gzip-1.0', 'filename': 'index.cdx.gz'})}\n")
    with ExitStack() as stack:
        parts = [stack.enter_context(build_index(place).open(encoding="utf-8")) for place in layout.warcs()]
        lines = _counting(heapq.merge(*parts), warcs)
        offset = 0
        while block := list(islice(lines, LINES)):
            packed = compressed("".join(block).encode())
            place = {"offset": offset, "length": len(packed), "digest": f"sha256:{sha256(packed).hexdigest()}"}
            blocks.append(f"{block[0].partition('{')[0]}{json.dumps(place)}\n")
            offset += len(packed)
            yield packed


def _counting(lines: Iterator[str], warcs: list[Part]) -> Iterator[str]:
    """The lines of records that are in the package: a crawl that runs writes on meanwhile."""
    lengths = {part.path.name: part.length for part in warcs}
    for line in lines:
        entry = json.loads(line.split(" ", 2)[2])
        if int(entry["offset"]) < lengths.get(entry["filename"], 0):
            yield line


# -- the pages -------------------------------------------------------------------------------------------------------


class _Listed:
    """The lists of pages."""

    def __init__(self, layout: Layout, counted: Exported, wanted: Wanted) -> None:
        self._layout = layout
        self._counted = counted
        self._wanted = wanted
        self.first: Page | None = None

    def lines(self, name: str, title: str, *, seeds: bool) -> Iterator[bytes]:
        head = {"format": "json-pages-1.0", "id": name, "title": title, "hasText": self._wanted.text}
        yield msgspec.json.encode(head) + b"\n"
        for page in self._pages():
            if (page.depth == 0) is not seeds:
                continue
            if page.noindex and not self._wanted.noindex:
                self._counted.noindex += 1
                continue
            self._counted.rows += 1
            self.first = self.first or page
            yield self._line(page)

    def _pages(self) -> Iterator[Page]:
        for part in everything(self._layout):
            for frame in frames(part.path, 0, part.length):
                yield from frame.pages()

    def _line(self, page: Page) -> bytes:
        name = f"{url_hash(key(page.url))[:16]}-{round(page.fetched_at * 1000)}"
        about = {"id": name, "url": page.url, "ts": warc_date(page.fetched_at), "title": page.title}
        if self._wanted.text:
            about["text"] = page.text
        return msgspec.json.encode(about) + b"\n"
