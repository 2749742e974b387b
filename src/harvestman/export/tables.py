"""The tables of a crawl as Arrow has them: pages, text and links. Their columns are version SCHEMA_VERSION, and kept.

A column is only ever added, with a new version; one that changes its meaning gets a new name. Every file says the
version in its metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types

from harvestman.export.said import said
from harvestman.model import Page
from harvestman.policy.sites import site_of
from harvestman.policy.urls import host_of, key, url_hash

SCHEMA_VERSION: Final = 3
METADATA: Final = {"harvestman.schema_version": str(SCHEMA_VERSION)}

Values: TypeAlias = tuple[object, ...]

_TEXT = pa.string()
_TIME = pa.timestamp("ms", tz="UTC")

SCHEMAS: Final[dict[str, pa.Schema]] = {
    "pages": pa.schema(
        [
            ("url", _TEXT), ("url_hash", _TEXT), ("host", _TEXT), ("site", _TEXT), ("status", pa.int16()),
            ("fetched_at", _TIME), ("content_type", _TEXT), ("charset", _TEXT), ("language", _TEXT), ("title", _TEXT),
            ("description", _TEXT), ("canonical", _TEXT), ("depth", pa.int16()), ("digest", _TEXT),
            ("simhash", pa.uint64()), ("noindex", pa.bool_()), ("nofollow", pa.bool_()), ("near_duplicate_of", _TEXT),
            ("distance", pa.int8()), ("text_chars", pa.int32()),
            ("link_count", pa.int32()), ("author", _TEXT), ("published", _TEXT), ("modified", _TEXT), ("data", _TEXT),
            ("cut", _TEXT), ("rendered", pa.bool_()),
        ],
        metadata=METADATA,
    ),
    "text": pa.schema(
        [("url", _TEXT), ("url_hash", _TEXT), ("fetched_at", _TIME), ("digest", _TEXT), ("language", _TEXT),
         ("text", _TEXT)],
        metadata=METADATA,
    ),
    "links": pa.schema(
        [("source", _TEXT), ("source_hash", _TEXT), ("source_site", _TEXT), ("fetched_at", _TIME), ("target", _TEXT),
         ("target_hash", _TEXT), ("target_site", _TEXT), ("anchor", _TEXT), ("rel", _TEXT), ("kind", _TEXT),
         ("place", _TEXT), ("language", _TEXT)],
        metadata=METADATA,
    ),
}  # fmt: skip
"""By the name of the table."""


def page_values(page: Page) -> dict[str, list[Values]]:
    """The rows of one page in each table."""
    host = host_of(page.url)
    site, name, at = site_of(host), url_hash(key(page.url)), round(page.fetched_at * 1000)
    url = page.url
    return {
        "pages": [(
            url, name, host, site, page.status, at, page.content_type, page.charset, page.language, page.title,
            page.description, page.canonical, page.depth, page.digest, page.simhash, page.noindex,
            page.nofollow, page.near_duplicate_of, page.distance, len(page.text), len(page.links),
            page.data.author, page.data.published, page.data.modified, said(page.data), page.cut,
            page.rendered,
        )],
        "text": [(url, name, at, page.digest, page.language, page.text)],
        "links": list(_links(page, url, name, site, at)),
    }  # fmt: skip


def _links(page: Page, url: str, name: str, site: str, at: int) -> Iterator[Values]:
    for link in page.links:
        target = url_hash(key(link.url))
        yield (
            url, name, site, at, link.url, target, site_of(host_of(link.url)), link.anchor,
            link.rel, link.kind, link.place, link.language,
        )  # fmt: skip


def arrow(schema: pa.Schema, rows: Iterable[Values]) -> pa.Table:
    """Rows as a table."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
