"""All that is stored of one URL: its raw records, its pages, and the pages that link to it.

Records are found through the CDXJ index, by halving. Pages have no index by URL: the page log is read from end to end,
but only the few frames that have the URL's bytes in them are decoded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from harvestman.errors import StateError
from harvestman.fetch.decode import BadBody, decode
from harvestman.layout import Layout
from harvestman.model import Instant, Page, RecordRef
from harvestman.policy.urls import key
from harvestman.store.cdxj import INDEX, build_index, surt
from harvestman.store.frames import frames
from harvestman.store.replay import read
from harvestman.stored import everything

REVISIT = "warc/revisit"
Tell = Callable[[int], None]
"""Hears how many bytes of the page log were read."""


class Version(msgspec.Struct):
    """A raw record of a URL."""

    at: str
    """UTC, to the second: 20261116032127."""
    status: int
    mime: str
    """'warc/revisit' when only the head was stored: the body was known."""
    digest: str
    """Of the body as transferred."""
    file: str
    offset: int
    length: int


class InLink(msgspec.Struct):
    """A link of another page to it."""

    url: str
    anchor: str
    rel: str
    fetched_at: Instant
    place: str = ""
    """As `Link.place`."""


class Seen(msgspec.Struct):
    """What the page log has."""

    pages: list[Page]
    """Its versions, the oldest first."""
    inlinks: list[InLink]
    """Each linking page once, by its latest version that links."""


# -- pages -----------------------------------------------------------------------------------------------------------


def pages_about(layout: Layout, url: str, tell: Tell) -> Seen:
    """Its pages and in-links; a page log of 1 GB takes seconds."""
    wanted, needle = key(url), _needle(url)
    pages: list[Page] = []
    linking: dict[str, InLink] = {}
    passed = 0
    for part in everything(layout):
        for frame in frames(part.path, 0, part.length):
            if needle.encode() in frame.packed:
                for page in frame.pages():
                    _look(page, wanted, needle, pages, linking)
            tell(passed + frame.end)
        passed += part.length
    # After a crash a fetch may have been parsed twice.
    once = {page.fetched_at: page for page in pages}
    return Seen([once[at] for at in sorted(once)], sorted(linking.values(), key=lambda link: link.url))


def _look(page: Page, wanted: str, needle: str, pages: list[Page], linking: dict[str, InLink]) -> None:
    if needle in page.url and key(page.url) == wanted:
        pages.append(page)
        return
    for link in page.links:
        if needle in link.url and key(link.url) == wanted:
            before = linking.get(page.url)
            if before is None or before.fetched_at < page.fetched_at:
                linking[page.url] = InLink(page.url, link.anchor, link.rel, page.fetched_at, link.place)


def _needle(url: str) -> str:
    """What every spelling of a URL has in it: its beginning, up to where spellings may differ."""
    return url.partition("?")[0].partition("%")[0].rstrip("/")


# -- records ---------------------------------------------------------------------------------------------------------


def versions(layout: Layout, url: str) -> list[Version]:
    """Its raw records, the oldest first. Brings the index up to date, which costs a pass over what is new."""
    wanted = key(url)
    found = []
    for directory in layout.warcs():
        for line in _lines(_index(directory), surt(url)):
            _, at, entry = line.split(" ", 2)
            about = json.loads(entry)
            if key(about["url"]) == wanted:
                found.append(_version(at, about, directory))
    return sorted(found, key=lambda version: version.at)


def _version(at: str, about: dict[str, str], directory: Path) -> Version:
    return Version(
        at, int(about.get("status", "0")), about.get("mime", ""), about.get("digest", ""),
        str(directory / about["filename"]), int(about["offset"]), int(about["length"]),
    )  # fmt: skip


def _index(directory: Path) -> Path:
    index = directory / INDEX
    raw = [path.stat().st_mtime_ns for path in directory.glob("*.warc.gz")]
    if index.exists() and raw and index.stat().st_mtime_ns > max(raw):
        return index
    return build_index(directory)


def _lines(index: Path, name: str) -> Iterator[str]:
    """The lines of one SURT."""
    start = f"{name} ".encode()
    with index.open("rb") as file:
        _seek(file, start)
        for line in file:
            if line.startswith(start):
                yield line.decode()
            elif line > start:
                return


def _seek(file: BinaryIO, start: bytes) -> None:
    """To the beginning of a line, at or shortly before the first that is not less than `start`."""
    low, high = 0, file.seek(0, 2)
    while high - low > 1 << 14:
        middle = (low + high) // 2
        file.seek(middle)
        file.readline()
        if file.readline() < start and file.tell() < high:
            low = middle
        else:
            high = middle
    file.seek(low)
    if low:
        file.readline()


def body(layout: Layout, url: str, origin: str) -> bytes:
    """The last body of a URL, decoded; `origin` is the URL it duplicates, if it does. StateError when there is none."""
    own = versions(layout, url)
    if not own:
        raise StateError(f"no raw record of {url} is stored")
    last = own[-1]
    if last.mime == REVISIT:
        others = versions(layout, origin) if origin else []
        same = [each for each in (*own, *others) if each.mime != REVISIT and each.digest == last.digest]
        if not same:
            raise StateError(f"the record that {last.file}:{last.offset} refers to is not stored any more")
        last = same[-1]
    path = Path(last.file)
    response = read(path.parent, RecordRef(path.name, last.offset, last.length))
    decoded = decode(response.body, response.headers.get("content-encoding", ""))
    if isinstance(decoded, BadBody):
        raise StateError(f"the body at {last.file}:{last.offset} cannot be decoded: {decoded.reason}")
    return decoded
