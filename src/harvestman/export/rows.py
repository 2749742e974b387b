"""The pages of a crawl as a table: Parquet or JSON lines. Columns are described in docs/export.md.

Pages are streamed: memory is bounded by one row group, whatever the size of the crawl.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types

from harvestman.export.said import said
from harvestman.export.tables import METADATA, SCHEMA_VERSION
from harvestman.model import Link, Page, Status, UrlRecord
from harvestman.policy.sites import site_of
from harvestman.policy.urls import host_of, key, url_hash

GROUP_ROWS: Final = 5_000
GROUP_BYTES: Final = 64 << 20
"""A row group is written when it has this many rows, or this much text."""


class LinkRow(msgspec.Struct):
    """A link of a page."""

    url: str
    anchor: str
    rel: str
    kind: str
    place: str
    language: str


class Row(msgspec.Struct):
    """One page, as exported. The order of the fields is that of the columns."""

    url: str
    url_hash: str
    host: str
    site: str
    status: int
    fetched_at: float
    content_type: str
    charset: str
    language: str
    title: str
    description: str
    text: str
    canonical: str | None
    depth: int
    digest: str
    simhash: int
    noindex: bool
    nofollow: bool
    duplicate_of: str | None
    near_duplicate_of: str | None
    distance: int | None
    author: str
    published: str
    modified: str
    data: str | None
    """JSON."""
    cut: str
    rendered: bool
    links: list[LinkRow] | None = None


class Exported(msgspec.Struct):
    """How much was written, and how much was left out on purpose."""

    rows: int = 0
    noindex: int = 0
    """Pages that ask not to be indexed, left out."""


def rows(pages: Iterable[Page], counted: Exported, *, noindex: bool, links: bool) -> Iterator[Row]:
    """Pages as rows; those that ask not to be indexed only with `noindex`."""
    for page in pages:
        if page.noindex and not noindex:
            counted.noindex += 1
            continue
        counted.rows += 1
        yield _row(page, links)


def duplicate_rows(records: Iterable[UrlRecord], counted: Exported) -> Iterator[Row]:
    """A row for each URL whose content is that of another: without text, `duplicate_of` says where that is."""
    for record in records:
        visit = record.visit
        if record.status is Status.DUPLICATE and visit is not None:
            counted.rows += 1
            yield _row(
                Page(
                    record.url, visit.code, visit.at, visit.content_type, record.depth, visit.digest.hex(),
                    simhash=visit.simhash, duplicate_of=visit.target,
                ),
                links=False,
            )  # fmt: skip


def _row(page: Page, links: bool) -> Row:
    host = host_of(page.url)
    return Row(
        page.url, url_hash(key(page.url)), host, site_of(host), page.status, page.fetched_at, page.content_type,
        page.charset, page.language, page.title, page.description, page.text, page.canonical, page.depth, page.digest,
        page.simhash, page.noindex, page.nofollow, page.duplicate_of,
        page.near_duplicate_of, page.distance, page.data.author, page.data.published, page.data.modified,
        said(page.data), page.cut, page.rendered, [_link(link) for link in page.links] if links else None,
    )  # fmt: skip


def _link(link: Link) -> LinkRow:
    return LinkRow(link.url, link.anchor, link.rel, link.kind, link.place, link.language)


@contextmanager
def appearing(path: Path) -> Iterator[Path]:
    """Where to write what shall appear at `path` when it is whole. If it comes to nothing, nothing is left behind.

    No directory is made. A device or a pipe is written to as it is.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
    if path.exists() and not path.is_file():
        yield path
        return
    part = path.with_name(path.name + ".part")
    try:
        yield part
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


# -- JSON lines ------------------------------------------------------------------------------------------------------


def write_jsonl(table: Iterable[Row], file: IO[bytes], *, links: bool) -> None:
    """One JSON object a line. Dates are ISO 8601, `simhash` is hex: no reader loses digits of it.

    Lines have no metadata and are cut, joined and piped: the version of the schema is in each.
    """
    encode = msgspec.json.Encoder().encode
    for row in table:
        fields: dict[str, object] = {"schema_version": SCHEMA_VERSION, **msgspec.structs.asdict(row)}
        fields["fetched_at"] = _iso(row.fetched_at)
        fields["simhash"] = f"{row.simhash:016x}"
        fields["data"] = None if row.data is None else msgspec.Raw(row.data.encode())
        if not links:
            del fields["links"]
        file.write(encode(fields) + b"\n")


def _iso(at: float) -> str:
    milliseconds = round(at * 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(milliseconds // 1000)) + f".{milliseconds % 1000:03d}Z"


# -- Parquet ---------------------------------------------------------------------------------------------------------

_TEXT = pa.string()
_LINK = pa.struct([(name, _TEXT) for name in LinkRow.__struct_fields__])
_TYPES: Final[dict[str, pa.DataType]] = {
    "status": pa.int16(),
    "fetched_at": pa.timestamp("ms", tz="UTC"),
    "depth": pa.int16(),
    "simhash": pa.uint64(),
    "noindex": pa.bool_(),
    "nofollow": pa.bool_(),
    "rendered": pa.bool_(),
    "distance": pa.int8(),
    "links": pa.list_(_LINK),
}


def schema(links: bool) -> pa.Schema:
    """The columns of the table."""
    names = [name for name in Row.__struct_fields__ if links or name != "links"]
    return pa.schema([(name, _TYPES.get(name, _TEXT)) for name in names], metadata=METADATA)


def write_parquet(table: Iterable[Row], path: Path, *, links: bool) -> None:
    """A Parquet file, zstd. It appears under its name when it is whole."""
    columns = schema(links)
    with appearing(path) as part, pq.ParquetWriter(part, columns, compression="zstd") as writer:
        for group in _groups(table):
            writer.write_table(_arrow(group, columns))


def _groups(table: Iterable[Row]) -> Iterator[list[Row]]:
    group: list[Row] = []
    volume = 0
    for row in table:
        group.append(row)
        volume += len(row.text) + 200 * len(row.links or ())
        if len(group) >= GROUP_ROWS or volume >= GROUP_BYTES:
            yield group
            group, volume = [], 0
    if group:
        yield group


def _arrow(group: list[Row], columns: pa.Schema) -> pa.Table:
    def values(name: str) -> list[object]:
        if name == "fetched_at":
            return [round(row.fetched_at * 1000) for row in group]
        if name == "links":
            return [
                [{n: _clean(v) for n, v in msgspec.structs.asdict(link).items()} for link in row.links or ()]
                for row in group
            ]
        return [_clean(getattr(row, name)) for row in group]

    arrays = [pa.array(values(field.name), field.type) for field in columns]
    return pa.Table.from_arrays(arrays, schema=columns)


def _clean(value: object) -> object:
    """Text as UTF-8 can hold it: a page may carry half a surrogate pair."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode()
    return value


Tell = Callable[[int], None]


def counted_aloud(pages: Iterable[Page], tell: Tell, every: int = 10_000) -> Iterator[Page]:
    """The same pages; `tell` hears now and then how many went by."""
    for number, page in enumerate(pages, 1):
        if number % every == 0:
            tell(number)
        yield page
