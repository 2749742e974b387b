"""The files of a link graph, below DIR/graph. Their columns are described in docs/graph.md.

graph.json            what the graph was built from, what was counted, how it was ranked: written last
nodes.parquet         the pages, sorted by `key`; the place of a row is its number
edges.parquet         who links to whom, by number, each pair once, sorted by `to`: what ranks are made of
links.parquet         every link with its anchor (unless it was left out)
aliases.parquet       URLs that stand for a node: redirects, duplicates, pages that name another as theirs
hosts.parquet         the hosts
host_edges.parquet    which host links to which, and how often

Every file carries the fingerprint of its source, and graph.json names the one that counts: a build that is cut short
leaves files that are refused, not a graph of two halves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
import xxhash

from harvestman.errors import StateError
from harvestman.export import appearing
from harvestman.layout import Layout
from harvestman.lock import locked

VERSION: Final = 2
ROWS: Final = 1 << 17
"""Of a row group."""
_TEXT: Final = pa.string()
_INT: Final = pa.int32()

NODES: Final = pa.schema([
    ("key", pa.uint64()), ("url", _TEXT), ("host", _TEXT), ("site", _TEXT), ("fetched", pa.bool_()),
    ("in_degree", _INT), ("out_degree", _INT), ("rank", pa.float64()),
])  # fmt: skip
EDGES: Final = pa.schema([("from", _INT), ("to", _INT)])
LINKS: Final = pa.schema([
    ("from", _INT), ("to", _INT), ("anchor", _TEXT), ("rel", _TEXT), ("kind", _TEXT), ("place", _TEXT),
    ("counts", pa.bool_()),
])  # fmt: skip
ALIASES: Final = pa.schema([("key", pa.uint64()), ("url", _TEXT), ("node", _INT)])
HOSTS: Final = pa.schema([
    ("host", _TEXT), ("site", _TEXT), ("nodes", _INT), ("in_links", pa.int64()), ("linking_sites", _INT),
    ("rank", pa.float64()),
])  # fmt: skip
HOST_EDGES: Final = pa.schema([("from", _TEXT), ("to", _TEXT), ("links", pa.int64())])
SCHEMAS: Final = {
    "nodes": NODES,
    "edges": EDGES,
    "links": LINKS,
    "aliases": ALIASES,
    "hosts": HOSTS,
    "host_edges": HOST_EDGES,
}
Tell: TypeAlias = Callable[[str, int], None]
"""Hears now and then what is being done, and how much of it is."""


class Rules(msgspec.Struct, frozen=True):
    """What a graph is built with."""

    nofollow: bool = False
    """Links that their author does not vouch for count as well."""
    links: bool = True
    """Keep every link with its anchor."""


class Counts(msgspec.Struct):
    """What went into a graph, and what did not."""

    pages: int = 0
    """In their latest version."""
    nodes: int = 0
    edges: int = 0
    hosts: int = 0
    sites: int = 0
    links: int = 0
    """All links of these pages; those that are no edge:"""
    nofollow: int = 0
    listings: int = 0
    """To sitemaps and feeds, which are no pages."""
    to_itself: int = 0
    repeated: int = 0
    """A second link between two nodes, mostly after their aliases became one."""
    aliases: int = 0


class Ranking(msgspec.Struct):
    """How the ranks in the files were made."""

    engine: str
    rounds: int
    change: float
    floor: float
    """The rank of a node that nobody links to; of a site:"""
    site_floor: float


class GraphFile(msgspec.Struct, forbid_unknown_fields=True):
    """graph.json."""

    version: int
    source: str
    """Fingerprint of what the graph was built from, and with."""
    rules: Rules
    counts: Counts
    ranking: Ranking | None = None


class _Version(msgspec.Struct):
    version: int


class Folder:
    """The files of one graph."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.root = data / "graph"
        self._file = self.root / "graph.json"

    def path(self, name: str) -> Path:
        return self.root / f"{name}.parquet"

    @contextmanager
    def held(self) -> Iterator[None]:
        """One who writes at a time."""
        self.root.mkdir(exist_ok=True)
        with ExitStack() as stack:
            try:
                stack.enter_context(locked(self.root))
            except StateError:
                raise StateError(f"{self.root} is being written by another command: wait for it") from None
            yield

    def exists(self) -> bool:
        return self._file.exists()

    def read(self) -> GraphFile:
        """Raises StateError when there is no graph, or one of another version."""
        try:
            raw = self._file.read_bytes()
            version = msgspec.json.decode(raw, type=_Version).version
            if version != VERSION:
                raise StateError(
                    f"{self.root} was written by another version of Harvestman (format {version}): {_again(self.data)}"
                )
            return msgspec.json.decode(raw, type=GraphFile)
        except FileNotFoundError:
            raise StateError(f"{self.data} has no link graph: {_again(self.data)}") from None
        except (msgspec.MsgspecError, OSError) as error:
            raise StateError(f"{self._file} cannot be read ({error}): {_again(self.data)}") from None

    def write(self, graph: GraphFile) -> None:
        part = self._file.with_suffix(".part")
        part.write_bytes(msgspec.json.format(msgspec.json.encode(graph), indent=2) + b"\n")
        part.replace(self._file)

    @contextmanager
    def writer(self, name: str, source: str) -> Iterator[pq.ParquetWriter]:
        """A table that appears when it is whole."""
        said = {b"harvestman.graph": b"%d" % VERSION, b"harvestman.source": source.encode()}
        schema = SCHEMAS[name].with_metadata(said)
        with appearing(self.path(name)) as part, pq.ParquetWriter(part, schema, compression="zstd") as writer:
            yield writer

    def opened(self, name: str, source: str) -> pq.ParquetFile:
        """A table of the graph that was built from `source`. StateError when it is missing or of another."""
        try:
            file = pq.ParquetFile(self.path(name))
        except (OSError, pa.ArrowException) as error:
            raise StateError(f"{self.path(name)} cannot be read ({error}): {_again(self.data)}") from None
        if (file.schema_arrow.metadata or {}).get(b"harvestman.source") != source.encode():
            raise StateError(f"{self.path(name)} is from a build that was cut short: {_again(self.data)}")
        return file


def _again(data: Path) -> str:
    return f"run `harvestman graph build {data}`"


def source_of(layout: Layout, rules: Rules) -> str:
    """The fingerprint of a crawl's page logs, by names and sizes: they only ever grow."""
    found = xxhash.xxh3_64(f"{VERSION} {rules.nofollow} {rules.links}".encode())
    for directory in layout.page_logs():
        for path in sorted(directory.glob("*.pages")):
            found.update(f"\n{path.relative_to(layout.data)} {path.stat().st_size}".encode())
    return found.hexdigest()
