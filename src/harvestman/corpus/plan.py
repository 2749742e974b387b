"""Which stored responses become documents: of each URL the newest, each content once. From the WARC files alone.

A revisit record says that a URL had, at some time, the content of another record; it counts as a version like any
other. So a page that went back to what it was is what it was, and a page that another URL has now word for word is one
document with a copy. Where a browser showed what a response makes, that is read in its place, also when the same
response comes again and nobody looks at it. Errors and redirects are none: a page that is gone keeps its last one.

Memory: 330 bytes a record while planning, in Arrow, 420 where a browser showed all of them; 30 bytes a document on disk
afterwards. A million records take 2 to 3 s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # ships no types
from xxhash import xxh3_128_digest

from harvestman.model import RESOURCE
from harvestman.policy.urls import key, path_of
from harvestman.store.members import members
from harvestman.store.records import DIGEST, KIND, instant, parse_record, response_of

RECORDS: Final = pa.schema([
    ("key", pa.binary(16)), ("at", pa.int64()), ("warc", pa.int32()), ("offset", pa.int64()), ("length", pa.int64()),
    ("own", pa.int8()), ("refers", pa.binary(16)), ("refers_at", pa.int64()), ("url", pa.string()),
    ("shown", pa.bool_()), ("digest", pa.binary(16)),
])  # fmt: skip
"""One row a version of a page. A revisit has no content of its `own`; it refers to that of a URL at a moment. What a
browser showed (`shown`) was made of the response before it."""
_PLACE: Final = ("warc", "offset", "length")
_TARGET: Final = ("to_warc", "to_offset", "to_length")
_SENT: Final = ("sent_warc", "sent_offset", "sent_length")
"""Where the response lies that was shown; null where none was."""
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
            yield (*found, 1, None, None, None, kind == "conversion", _digest(fields))
        elif kind == "revisit" and (response.status == _NOT_MODIFIED or 200 <= response.status < 300):
            uri, date = fields.get("warc-refers-to-target-uri"), fields.get("warc-refers-to-date")
            if uri and date:
                yield (*found, 0, _key(uri), _millis(date), response.url, False, None)


def _digest(fields: Mapping[str, str]) -> bytes:
    """By which a response is known when it comes again."""
    return xxh3_128_digest((fields.get(DIGEST.lower()) or fields.get("warc-payload-digest", "")).encode())


def _key(url: str) -> bytes:
    return xxh3_128_digest(key(url).encode("utf-8", "replace"))


def _millis(date: str) -> int:
    return round(instant(date) * 1000)


def chosen(records: pa.Table) -> pa.Table:
    """The responses that become documents, in the order they lie on disk: warc, offset, length, url, copies, sent_*.

    `url` is set where a document goes by another URL than its record, because that one has other content by now.
    `sent_` is where the response lies that a browser showed, which alone has the server's head.
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
        "copies": copies, **{name: first[name] for name in _SENT},
    })  # fmt: skip


def _resolved(records: pa.Table) -> pa.Table:
    """Every version with the place of its content; revisits of what is not there are left out."""
    own = pc.equal(records["own"], 1)
    responses = _as_shown(records.filter(own))
    content = responses.select(["key", "at", *_TARGET, *_SENT])
    revisits = records.filter(pc.invert(own)).select(["key", "at", "own", "url", "refers", "refers_at"])
    joined = revisits.join(content, ["refers", "refers_at"], ["key", "at"], join_type="inner")
    return pa.concat_tables([responses, joined.select(responses.column_names)])


def _as_shown(records: pa.Table) -> pa.Table:
    """The responses, each with the place of what a browser showed of it last, or of a response with the same content.

    What was shown of a response that is gone is nothing: nobody could say any more what its server asked for.
    """
    responses = records.filter(pc.invert(records["shown"])).select(["key", "at", "own", "url", "digest", *_PLACE])
    views = _views(records)
    is_shown = pc.is_in(responses["key"], views["key"])
    plain, found = responses.filter(pc.invert(is_shown)), responses.filter(is_shown)
    found = found.join(views, ["key", "digest"], join_type="left outer")
    is_shown = pc.is_valid(found["view_warc"])
    for name, to, sent in zip(_PLACE, _TARGET, _SENT, strict=True):
        own = found[name]
        found = found.append_column(to, pc.coalesce(found[f"view_{name}"], own))
        found = found.append_column(sent, pc.if_else(is_shown, own, None))
        plain = plain.append_column(to, plain[name]).append_column(sent, pa.nulls(len(plain), own.type))
    kept = ["key", "at", "own", "url", *_TARGET, *_SENT]
    return pa.concat_tables([plain.select(kept), found.select(kept)])


def _views(records: pa.Table) -> pa.Table:
    """What browsers showed last, by the URL and the content of the response before it."""
    records = records.filter(pc.is_in(records["key"], records.filter(records["shown"])["key"]))
    records = records.select(["key", "at", "shown", "digest", *_PLACE]).sort_by(_by("key", "at", "shown"))
    shown = records["shown"].to_numpy()
    sent = np.maximum.accumulate(np.where(shown, 0, np.arange(len(shown))))[shown]
    views, sent_by = records.filter(records["shown"]), records["key"].take(pa.array(sent))
    columns = {f"view_{name}": views[name] for name in _PLACE}
    digests = records["digest"].take(pa.array(sent))
    table = pa.table({"key": views["key"], "digest": digests, "at": views["at"], **columns})
    # The first of a URL may have nothing before it but another URL.
    table = table.filter(pc.and_(pc.equal(sent_by, views["key"]), pa.array(~shown[sent])))
    return _last_of_each(table.sort_by(_by("key", "digest", "at")), ["key", "digest"]).drop_columns(["at"])


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
