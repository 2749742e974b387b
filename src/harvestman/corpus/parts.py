"""What the processes of a build do: go through a WARC file, or read the documents of a part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types

from harvestman.model import RecordRef, Response
from harvestman.store.replay import read

from . import plan
from .document import Place, Settings, as_sent, document_of
from .files import appear, read_arrow, settle, write_arrow
from .manifest import Notes
from .minhash import signature
from .near import signs_table
from .schema import TEXTS, Document, table_of
from .words import words_of

_GROUP_CHARACTERS: Final = 32 << 20
_NOTES: Final = "harvestman.corpus.notes"


class Ledger(msgspec.Struct):
    """A WARC file to be gone through."""

    warc: Path
    number: int
    made: Path


class Chapter(msgspec.Struct):
    """A part to be read: some rows of the plan."""

    number: int
    first: int
    count: int
    data: Path
    sources: list[str]
    """The WARC files, as the plan numbers them."""
    here: Path
    settings: Settings

    @property
    def texts(self) -> Path:
        return self.here / "texts" / f"{self.number:05d}.parquet"

    @property
    def signs(self) -> Path:
        return self.here / "signs" / f"{self.number:05d}.arrow"

    def places(self) -> Iterator[Place]:
        for row in read_arrow(self.here / "plan.arrow").slice(self.first, self.count).to_pylist():
            is_shown = row["sent_warc"] is not None
            sent = Place(self.sources[row["sent_warc"]], row["sent_offset"], row["sent_length"]) if is_shown else None
            yield Place(self.sources[row["warc"]], row["offset"], row["length"], row["url"], row["copies"], sent)

    def notes(self) -> Notes:
        metadata = pq.read_metadata(self.texts).metadata or {}
        return msgspec.json.decode(metadata[_NOTES.encode()], type=Notes)

    def table(self, columns: list[str] | None = None) -> pa.Table:
        return pq.read_table(self.texts, columns=columns)


def index(ledger: Ledger, done: Synchronized[int]) -> None:
    """The versions of pages in a WARC file."""
    table = plan.records_of(ledger.warc, ledger.number)
    appear(ledger.made, lambda part: write_arrow(table, part))
    _count(done)


def read_part(chapter: Chapter, done: Synchronized[int]) -> None:
    """The documents of a part, and their signatures."""
    left_out: Counter[str] = Counter()
    signatures: list[bytes] = []
    part = chapter.texts.with_name(chapter.texts.name + ".unfinished")
    with pq.ParquetWriter(part, TEXTS, compression="zstd") as writer:
        for group in _groups(_documents(chapter, left_out, done)):
            signatures += (signature(words_of(document.text)) for document in group)
            writer.write_table(table_of(group))
        notes = msgspec.json.encode(Notes(left_out, chapter.settings.simple))
        writer.add_key_value_metadata({_NOTES: notes.decode()})
    appear(chapter.signs, lambda path: write_arrow(signs_table(signatures), path))
    settle(part, chapter.texts)  # the last: by it a part is known to be whole


def _documents(chapter: Chapter, left_out: Counter[str], done: Synchronized[int]) -> Iterator[Document]:
    for place in chapter.places():
        document = _read(_response(chapter.data, place, chapter.settings), place, chapter.settings)
        if isinstance(document, str):
            left_out[document] += 1
        else:
            yield document
        _count(done)


def _response(data: Path, place: Place, settings: Settings) -> Response:
    """What lies there."""
    path = data / place.warc
    response = read(path.parent, RecordRef(path.name, place.offset, place.length))
    return response if place.sent is None else as_sent(response, _response(data, place.sent, settings), settings.agent)


def _read(response: Response, place: Place, settings: Settings) -> Document | str:
    """One page among millions that we cannot read is counted, with what went wrong, and does not end the build."""
    try:
        return document_of(response, place, settings)
    except MemoryError:
        raise
    except Exception as error:
        return f"failed: {type(error).__name__}"


def _groups(documents: Iterator[Document]) -> Iterator[list[Document]]:
    """Row groups: memory is bounded by them, whatever a part holds."""
    group: list[Document] = []
    volume = 0
    for document in documents:
        group.append(document)
        volume += len(document.text)
        if volume >= _GROUP_CHARACTERS:
            yield group
            group, volume = [], 0
    if group:
        yield group


def _count(done: Synchronized[int]) -> None:
    with done.get_lock():
        done.value += 1
