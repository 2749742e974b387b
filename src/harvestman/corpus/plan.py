"""Which stored responses become documents: of each URL the newest, each content once. From the WARC files alone.

A revisit record says that a URL had, at some time, the content of another record; it counts as a version like any
other. So a page that went back to what it was is what it was, and a page that another URL has now word for word is one
document with a copy. What a browser showed is a version too, and newer than what the server sent. Errors and redirects
are none: a page that is gone keeps its last one.

Memory: at most 300 bytes a record while planning, in Arrow; 30 bytes a document on disk afterwards. A million records
take 2 s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # ships no types
from xxhash import xxh3_128_digest

from harvestman.model import RESOURCE
from harvestman.policy.urls import key, path_of
from harvestman.store.members import members
from harvestman.store.records import KIND, instant, parse_record, response_of

RECORDS: Final = pa.schema([
    ("key", pa.binary(16)), ("at", pa.int64()), ("warc", pa.int32()), ("offset", pa.int64()), ("length", pa.int64()),
    ("own", pa.int8()), ("refers", pa.binary(16)), ("refers_at", pa.int64()), ("url", pa.string()),
])  # fmt: skip
"""One row a version of a page. A revisit has no content of its `own`; it refers to that of a URL at a moment."""
_TARGET: Final = ("to_warc", "to_offset", "to_length")
_NOT_MODIFIED = 304
ROBOTS: Final = "/robots.txt"
"""Stored with the pages, and none."""


def records_of(warc: Path, number: int) -> pa.Table:
    """The versions of pages in a WARC file, which the plan calls by its number."""
    rows = list(_rows(warc, number))
    columns = zip(*rows, strict=True) if rows else [[] for _ in RECORDS]
    return pa.table([pa.array(list(c), f.type) for c, f in zip(columns, RECORDS, strict=True)], schema=RECORDS)


def _rows(warc: Path, number: int) -> Iterator[tuple[object, ...]]:
    for member in members(warc):
        fields, block = parse_record(member.data)
        kind = fields.get("warc-type")
        if kind not in ("response", "revisit", "conversion") or fields.get(KIND.lower()) == RESOURCE:
            continue
        response = response_of(fields, block)
        if path_of(response.url) == ROBOTS:
            continue
        found = (_key(response.url), _millis(fields["warc-date"]), number, member.offset, member.length)
        if kind != "revisit" and 200 <= response.status < 300:
            yield (*found, 1, None, None, None)
        elif kind == "revisit" and (response.status == _NOT_MODIFIED or 200 <= response.status < 300):
            uri, date = fields.get("warc-refers-to-target-uri"), fields.get("warc-refers-to-date")
            if uri and date:
                yield (*found, 0, _key(uri), _millis(date), response.url)


def _key(url: str) -> bytes:
    return xxh3_128_digest(key(url).encode("utf-8", "replace"))


def _millis(date: str) -> int:
    return round(instant(date) * 1000)


def chosen(records: pa.Table) -> pa.Table:
    """The responses that become documents, in the order they lie on disk: warc, offset, length, url, copies.

    `url` is set where a document goes by another URL than its record, because that one has other content by now.
    """
    versions = _resolved(records)
    newest = _last_of_each(versions.sort_by(_by("key", "at", "own", *_TARGET[:2])), ["key"])
    by_content = newest.sort_by([*_by(*_TARGET[:2]), ("own", "descending"), *_by("at", "key")])
    starts = _starts(by_content, _TARGET[:2])
    ends = pa.concat_arrays([starts[1:], pa.array([by_content.num_rows] * bool(len(starts)), pa.int64())])
    copies = pc.cast(pc.subtract(pc.subtract(ends, starts), 1), pa.int32())
    first = by_content.take(starts)
    return pa.table({
        "warc": first["to_warc"], "offset": first["to_offset"], "length": first["to_length"], "url": first["url"],
        "copies": copies,
    })  # fmt: skip


def _resolved(records: pa.Table) -> pa.Table:
    """Every version with the place of its content; revisits of what is not there are left out."""
    own = pc.equal(records["own"], 1)
    responses = records.filter(own)
    places = {to: responses[name] for to, name in zip(_TARGET, ("warc", "offset", "length"), strict=True)}
    content = pa.table({"key": responses["key"], "at": responses["at"], **places})
    revisits = records.filter(pc.invert(own)).select(["key", "at", "own", "url", "refers", "refers_at"])
    joined = revisits.join(content, ["refers", "refers_at"], ["key", "at"], join_type="inner")
    kept = ["key", "at", "own", "url", *_TARGET]
    whole = responses.select(["key", "at", "own", "url"])
    for name, column in places.items():
        whole = whole.append_column(name, column)
    return pa.concat_tables([whole.select(kept), joined.select(kept)])


def _by(*names: str) -> list[tuple[str, str]]:
    return [(name, "ascending") for name in names]


def _last_of_each(table: pa.Table, names: Sequence[str]) -> pa.Table:
    starts = _starts(table, names)
    last = pa.array([table.num_rows - 1] * bool(len(starts)), pa.int64())
    return table.take(pa.concat_arrays([pc.subtract(starts[1:], 1), last]))


def _starts(table: pa.Table, names: Sequence[str]) -> pa.Array:
    """Where each run of rows with equal values begins, in a sorted table."""
    if not table.num_rows:
        return pa.array([], pa.int64())
    differs = None
    for name in names:
        column = table[name].combine_chunks()
        here = pc.not_equal(column[1:], column[:-1])
        differs = here if differs is None else pc.or_(differs, here)
    inner = pc.add(pc.cast(pc.indices_nonzero(differs), pa.int64()), 1)
    return pa.concat_arrays([pa.array([0], pa.int64()), inner])
