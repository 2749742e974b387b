"""What is left of pages that were taken down: everything below the data directory is searched.

Two questions. Does any raw record, page or row of State belong to a URL that is blocked? And does any stretch of their
bodies stand anywhere: in records and pages unpacked, in the rows of State, in every other file as it is? A stretch that
a page of another URL has as well (a menu, a footer) belongs to that page; it is counted, and is no trace.
"""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec
import zstandard

from harvestman.layout import Layout
from harvestman.model import Status, UrlRecord
from harvestman.policy.blocklist import BLOCKED, Which
from harvestman.ports import Content, Near
from harvestman.store.frames import frames
from harvestman.store.members import members
from harvestman.store.records import parse_record

from .survey import log_files, raw_files

CHUNK = 4 << 20
ADDRESSES = 8
"""URLs that are searched for by name, at most."""
OPAQUE = (".7z", ".xz", ".bz2", ".tar", ".tgz")
"""Files that are not looked into: they are told of instead."""
TOLD = 100
_encode = msgspec.msgpack.encode
_url = msgspec.msgpack.Decoder(UrlRecord).decode
_content = msgspec.msgpack.Decoder(Content).decode
_near = msgspec.msgpack.Decoder(Near).decode
Row = tuple[str, bytes, bytes]


class Proof(msgspec.Struct):
    """What was searched, and what was found."""

    files: int = 0
    bytes: int = 0
    """As they lie on disk."""
    records: int = 0
    pages: int = 0
    rows: int = 0
    """Of State."""
    phrases: int = 0
    shared: int = 0
    """Phrases that pages of other URLs have as well."""
    left: list[str] = []
    """Where there is something that should be gone; the first ones."""
    unsearched: list[str] = []
    """Files that cannot be looked into."""
    named: dict[str, int] = {}
    """Where the address itself still stands, as a link of others or in its own record: how many times."""

    @property
    def clean(self) -> bool:
        return not self.left and not self.unsearched


class Search:
    """One search through a crawl that stands still."""

    def __init__(self, layout: Layout, which: Which, phrases: Iterable[bytes], urls: Iterable[str]) -> None:
        self._layout = layout
        self._which = which
        self._phrases = list(phrases)
        self._names = [url.partition("//")[2].encode() for url in sorted(urls)[:ADDRESSES]]
        self._elsewhere: set[bytes] = set()
        self._done: set[Path] = set()
        self.proof = Proof(phrases=len(self._phrases))

    def run(self, rows: Iterable[Row]) -> Proof:
        for path in raw_files(self._layout):
            self._whole(path, self._records(path))
        for path in log_files(self._layout):
            self._whole(path, self._pages(path))
        for row in rows:
            self._row(row)
        for path in sorted(self._layout.data.rglob("*")):
            if path.is_file() and not path.is_symlink():
                self._file(path)
        self.proof.shared = len(self._elsewhere)
        return self.proof

    def _whole(self, path: Path, end: int) -> None:
        if end == path.stat().st_size:
            self._done.add(path)
        else:
            self.proof.unsearched.append(f"{self._name(path)} from byte {end} on: broken")

    def _records(self, path: Path) -> int:
        end = 0
        for member in members(path):
            end = member.offset + member.length
            fields, _ = parse_record(member.data)
            url = fields.get("warc-target-uri", "")
            self.proof.records += 1
            gone = self._which.of(url) is not None
            if gone:
                self._leave(f"{self._name(path)}:{member.offset}: a {fields.get('warc-type')} record of it")
            other = bool(url) and not gone
            self._look(member.data, f"{self._name(path)}:{member.offset}", "raw records", other)
        return end

    def _pages(self, path: Path) -> int:
        end = 0
        for frame in frames(path):
            end = frame.end
            for page in frame.pages():
                self.proof.pages += 1
                gone = self._which.of(page.url) is not None
                if gone:
                    self._leave(f"{self._name(path)}:{frame.start}: a page of it")
                self._look(_encode(page), f"{self._name(path)}:{frame.start}", "pages", not gone)
        return end

    def _row(self, row: Row) -> None:
        family, key, value = row
        self.proof.rows += 1
        if (problem := _ROWS.get(family)) and problem(self._which, value):
            self._leave(f"State, {family} {key.hex()}")
        self._look(value, f"State, {family} {key.hex()}", "State", other=False)

    def _file(self, path: Path) -> None:
        self.proof.files += 1
        self.proof.bytes += path.stat().st_size
        if path in self._done:
            return
        if path.suffix in OPAQUE:
            self.proof.unsearched.append(self._name(path))
            return
        with path.open("rb") as file:
            self._stream(file.read, path)
        try:
            for read in _unpacked(path):
                self._stream(read, path)
        except (OSError, EOFError, ValueError, zlib.error, zstandard.ZstdError, zipfile.BadZipFile):
            self.proof.unsearched.append(self._name(path))

    def _stream(self, read: Callable[[int], bytes], path: Path) -> None:
        longest = max(map(len, (*self._phrases, *self._names)), default=1)
        before = b""
        while data := read(CHUNK):
            self._look(before + data, self._name(path), self._name(path), other=False)
            before = data[1 - longest :] if longest > 1 else b""

    def _look(self, data: bytes, where: str, kind: str, other: bool) -> None:
        """`other`: it belongs to a page that stays, and so does what it says."""
        for phrase in self._phrases:
            if phrase in data:
                if other:
                    self._elsewhere.add(phrase)
                elif phrase not in self._elsewhere:
                    self._leave(f"{where}: a stretch of it")
        if any(name in data for name in self._names):
            self.proof.named[kind] = self.proof.named.get(kind, 0) + 1

    def _leave(self, where: str) -> None:
        if len(self.proof.left) < TOLD and where not in self.proof.left:
            self.proof.left.append(where)

    def _name(self, path: Path) -> str:
        return path.relative_to(self._layout.data).as_posix()


def _unpacked(path: Path) -> Iterator[Callable[[int], bytes]]:
    """The contents of a packed file, each to be read piece by piece; nothing for one that is not packed."""
    match path.suffix:
        case ".gz":
            with gzip.open(path) as file:
                yield file.read
        case ".zst":
            with path.open("rb") as packed:
                yield zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True).read
        case ".zip" | ".wacz":
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    with archive.open(name) as part:
                        yield gzip.GzipFile(fileobj=part).read if name.endswith(".gz") else part.read
        case ".parquet":
            yield from _columns(path)


def _columns(path: Path) -> Iterator[Callable[[int], bytes]]:
    # Here, so that a crawl without datasets starts without it.
    from pyarrow import parquet  # type: ignore[import-untyped]  # ships no types

    with parquet.ParquetFile(path) as table:
        for batch in table.iter_batches():
            yield io.BytesIO(batch.serialize()).read


def _url_left(which: Which, value: bytes) -> bool:
    record = _url(value)
    return which.of(record.url) is not None and not is_cleared(record)


def is_cleared(record: UrlRecord) -> bool:
    """Whether a URL's record says nothing but that it is blocked."""
    visit = record.visit
    return record.status is Status.REFUSED and visit is not None and visit.reason.startswith(BLOCKED) and not visit.code


_ROWS: dict[str, Callable[[Which, bytes], bool]] = {
    "url": _url_left,
    "content": lambda which, value: which.of(_content(value).url) is not None,
    "near": lambda which, value: which.of(_near(value).url) is not None,
}
