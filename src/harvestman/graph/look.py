"""A look at a ranked graph: who stands highest, and who links to a page with which words."""

from __future__ import annotations

import heapq
from typing import Any

import msgspec
import pyarrow.compute as pc  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types

from harvestman.errors import StateError
from harvestman.graph.spill import WORDS, hash_of
from harvestman.graph.tables import ROWS, Folder, GraphFile


class TopPage(msgspec.Struct):
    """One line of `graph top`."""

    rank: float
    in_degree: int
    out_degree: int
    fetched: bool
    url: str


class TopHost(msgspec.Struct):
    """One line of `graph top --hosts`."""

    rank: float
    """Of its site among sites."""
    linking_sites: int
    in_links: int
    nodes: int
    host: str
    site: str


class Linked(msgspec.Struct):
    """A link, as seen from one of its ends."""

    url: str
    """The other end."""
    anchor: str
    rel: str
    kind: str
    place: str
    """As `Link.place`."""
    counts: bool
    """Whether it takes part in ranking."""


class Neighbours(msgspec.Struct):
    """A page and its links."""

    url: str
    rank: float | None
    in_degree: int
    out_degree: int
    links_in: list[Linked]
    links_out: list[Linked]
    more: bool = False
    """There are more links than were asked for."""


def top_pages(folder: Folder, graph: GraphFile, number: int) -> list[TopPage]:
    """The pages of the highest rank."""
    return [msgspec.convert(row, TopPage) for row in _highest(folder, graph, "nodes", TopPage, number)]


def top_hosts(folder: Folder, graph: GraphFile, number: int) -> list[TopHost]:
    """The hosts of the sites of the highest rank; in a site, those that more sites link to first."""
    return [msgspec.convert(row, TopHost) for row in _highest(folder, graph, "hosts", TopHost, number)]


def _highest(
    folder: Folder, graph: GraphFile, name: str, kind: type[msgspec.Struct], number: int
) -> list[dict[str, Any]]:
    """The rows that are highest by the columns of `kind`, in their order: a batch and the best so far in memory."""
    columns = list(kind.__struct_fields__)
    best: list[dict[str, Any]] = []
    for batch in folder.opened(name, graph.source).iter_batches(ROWS, columns=columns):
        keys = [(column, "descending") for column in columns[:2]]
        candidates = batch.take(pc.select_k_unstable(batch, min(number, len(batch)), keys)).to_pylist()
        best = heapq.nlargest(number, best + candidates, key=lambda row: [row[column] for column in columns[:3]])
    return best


def neighbours(folder: Folder, graph: GraphFile, url: str, limit: int) -> Neighbours | None:
    """A page, given in request form by any of its URLs, and at most `limit` links in and out; None when not met."""
    if not graph.rules.links:
        raise StateError(
            f"{folder.root} was built without its links: run `harvestman graph build {folder.data}` without --no-links"
        )
    node = _number(folder, graph, url)
    if node is None:
        return None
    links = folder.opened("links", graph.source)
    into, more_in = _ends(links, "to", node, "from", limit)
    out, more_out = _ends(links, "from", node, "to", limit)
    rows = _rows(folder, graph, {node, *(row["from"] for row in into), *(row["to"] for row in out)})
    own = rows[node]
    return Neighbours(
        own["url"], own["rank"], own["in_degree"], own["out_degree"],
        [_linked(rows[row["from"]]["url"], row) for row in into],
        [_linked(rows[row["to"]]["url"], row) for row in out], more_in or more_out,
    )  # fmt: skip


def _linked(url: str, row: dict[str, Any]) -> Linked:
    return Linked(url, row["anchor"], row["rel"], row["kind"], row["place"], row["counts"])


def _number(folder: Folder, graph: GraphFile, url: str) -> int | None:
    """The node of a URL: its own, or that which it stands for."""
    name = hash_of(url)
    first = 0
    for batch in folder.opened("nodes", graph.source).iter_batches(ROWS, columns=["key"]):
        place: int = pc.index(batch.column(0), name).as_py()
        if place >= 0:
            return first + place
        first += len(batch)
    for batch in folder.opened("aliases", graph.source).iter_batches(ROWS, columns=["key", "node"]):
        place = pc.index(batch.column(0), name).as_py()
        if place >= 0:
            node: int = batch.column(1)[place].as_py()
            return node
    return None


def _ends(links: pq.ParquetFile, here: str, node: int, there: str, limit: int) -> tuple[list[dict[str, Any]], bool]:
    """The links with one end at a node; whether there are more than `limit`."""
    found: list[dict[str, Any]] = []
    for batch in links.iter_batches(ROWS, columns=[here, there, *WORDS, "counts"]):
        found += batch.filter(pc.equal(batch.column(0), node)).to_pylist()
        if limit and len(found) > limit:
            return found[:limit], True
    return found, False


def _rows(folder: Folder, graph: GraphFile, wanted: set[int]) -> dict[int, dict[str, Any]]:
    """Some nodes by their numbers, which are their places in the table."""
    found: dict[int, dict[str, Any]] = {}
    first = 0
    for batch in folder.opened("nodes", graph.source).iter_batches(
        ROWS, columns=["url", "rank", "in_degree", "out_degree"]
    ):
        here = [node for node in wanted if first <= node < first + len(batch)]
        rows = batch.take([node - first for node in here]).to_pylist() if here else []
        found.update(zip(here, rows, strict=True))
        first += len(batch)
    return found
