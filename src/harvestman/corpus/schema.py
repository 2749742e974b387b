"""The columns of the corpus, in their order. docs/corpus.md describes them; a change of meaning raises the version."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types

from .quality import Signals

SCHEMA_VERSION: Final = 1
VERSION_KEY: Final = b"harvestman.corpus.schema_version"


class Document(msgspec.Struct):
    """One document, before it is compared with the others."""

    id: str
    url: str
    site: str
    fetched_at: int
    """Milliseconds, UTC."""
    warc: str
    offset: int
    length: int
    digest: str
    media_type: str
    title: str
    author: str
    published: str
    text: str
    extractor: str
    language: str
    signals: Signals
    keep: bool
    reason: str
    licence: str
    licence_hints: list[str]
    reservations: list[str]
    masked: int
    copies: int


_TEXT = pa.string()
_KINDS: Final = {"int": pa.int32(), "float": pa.float32(), "bool": pa.bool_()}
_TYPES: Final[dict[str, pa.DataType]] = {
    "fetched_at": pa.timestamp("ms", tz="UTC"),
    "offset": pa.int64(),
    "length": pa.int64(),
    "keep": pa.bool_(),
    "licence_hints": pa.list_(_TEXT),
    "reservations": pa.list_(_TEXT),
    "masked": pa.int32(),
    "copies": pa.int32(),
}
_SIGNALS: Final = [(field.name, _KINDS[str(field.type)]) for field in fields(Signals)]


def _columns() -> list[tuple[str, pa.DataType]]:
    columns: list[tuple[str, pa.DataType]] = [("schema_version", pa.int16())]
    for name in Document.__struct_fields__:
        columns += _SIGNALS if name == "signals" else [(name, _TYPES.get(name, _TEXT))]
    return columns


TEXTS: Final = pa.schema(_columns())
"""What is known of a document by itself."""
COMPARED: Final = [("duplicate_of", _TEXT), ("similarity", pa.float32()), ("cluster_size", pa.int32())]
"""What comes of comparing it with the others."""
DOCUMENTS: Final = pa.schema(
    [*_columns(), *COMPARED],
    metadata={VERSION_KEY: str(SCHEMA_VERSION).encode(), b"made_by": b"harvestman corpus build"},
)


def table_of(documents: list[Document]) -> pa.Table:
    """Documents as a table of the schema TEXTS."""
    signals = {name for name, _ in _SIGNALS}

    def values(name: str) -> list[object]:
        if name == "schema_version":
            return [SCHEMA_VERSION] * len(documents)
        if name in signals:
            return [getattr(document.signals, name) for document in documents]
        return [_clean(getattr(document, name)) for document in documents]

    return pa.Table.from_arrays([pa.array(values(field.name), field.type) for field in TEXTS], schema=TEXTS)


def _clean(value: object) -> object:
    """Text as UTF-8 can hold it: a page may carry half a surrogate pair."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value
