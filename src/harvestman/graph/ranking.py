"""From the tables of a graph to ranks, and the ranks into the tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # ships no types

from harvestman.graph.hosts import sites_linked
from harvestman.graph.rank import Floats, Ints, Links, Ranked, pagerank, starts_of
from harvestman.graph.tables import ROWS, Folder, GraphFile, Ranking

ENGINES: Final = ("embedded", "spark")
Engine: TypeAlias = Callable[[Folder, GraphFile], Ranked]


def engine(name: str) -> Engine:
    """What ranks the pages. UsageError when Spark is wanted and not here."""
    if name == "spark":
        from harvestman.graph import spark  # an extra

        return spark.ranked
    return embedded


def embedded(folder: Folder, graph: GraphFile) -> Ranked:
    """In this process."""
    return pagerank(read_links(folder, graph))


def rank(folder: Folder, graph: GraphFile, how: str) -> GraphFile:
    """Rank pages and sites, and write the ranks beside them."""
    ranker = engine(how)
    with folder.held():
        pages = ranker(folder, graph)
        host_rank, site_floor = _sites(folder, graph)
        _fill(folder, "nodes", graph.source, pages.rank)
        _fill(folder, "hosts", graph.source, host_rank)
        graph.ranking = Ranking(how, pages.rounds, pages.change, pages.floor, site_floor)
        folder.write(graph)
    return graph


def read_links(folder: Folder, graph: GraphFile) -> Links:
    """The edges as arrays: they lie on disk in the order of their targets."""
    nodes = folder.opened("nodes", graph.source)
    in_degree = _ints(nodes.read(["in_degree"]).column(0))
    out_degree = _ints(nodes.read(["out_degree"]).column(0))
    sources = np.empty(graph.counts.edges, np.int32)
    first = 0
    for batch in folder.opened("edges", graph.source).iter_batches(ROWS, columns=["from"]):
        sources[first : first + len(batch)] = batch.column(0).to_numpy()
        first += len(batch)
    return Links(starts_of(in_degree), sources, out_degree)


def _ints(column: pa.ChunkedArray) -> Ints:
    return np.asarray(column.to_numpy(), np.int32)


def _sites(folder: Folder, graph: GraphFile) -> tuple[Floats, float]:
    """For each host the rank of its site; the least that a site has."""
    hosts = folder.opened("hosts", graph.source).read(["host", "site"])
    edges = folder.opened("host_edges", graph.source).read(["from", "to"])
    names = hosts.column("host").combine_chunks()
    site = _ints(hosts.column("site").combine_chunks().dictionary_encode().indices)
    source, target = (_ints(pc.index_in(edges.column(end), value_set=names)) for end in ("from", "to"))
    found = pagerank(sites_linked(target, source, site, graph.counts.sites))
    return found.rank[site], found.floor


def _fill(folder: Folder, name: str, source: str, ranks: Floats) -> None:
    """The table again, with its ranks."""
    file = folder.opened(name, source)
    first = 0
    with folder.writer(name, source) as writer:
        for batch in file.iter_batches(ROWS):
            column = pa.array(ranks[first : first + len(batch)])
            place = batch.schema.get_field_index("rank")
            writer.write_batch(batch.set_column(place, batch.schema.field(place), column))
            first += len(batch)
