"""A crawl in the formats others read; docs/export.md describes them.

`rows`     pages as one table: JSON lines, or one Parquet file
`dataset`  pages, text and links as partitioned Parquet
`wet`      the text of the pages as WARC conversion records
`wacz`     the whole archive in one file, for replay
"""

from harvestman.export.rows import (
    Exported,
    LinkRow,
    Row,
    appearing,
    counted_aloud,
    duplicate_rows,
    rows,
    schema,
    write_jsonl,
    write_parquet,
)

__all__ = [
    "Exported",
    "LinkRow",
    "Row",
    "appearing",
    "counted_aloud",
    "duplicate_rows",
    "rows",
    "schema",
    "write_jsonl",
    "write_parquet",
]
