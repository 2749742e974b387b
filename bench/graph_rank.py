"""How much CPU and RAM does it take to rank a link graph of a million nodes and ten million edges?

Two questions: the ranks of a graph that lies in its tables (the edges are drawn at random, with hubs, dangling nodes
and repeated links, as the web has them), and a whole build from a page log, of as many pages as --pages says. Each is
a process of its own, so that the peak is its own; the bound is 4 GB.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
from _run import Report, options, run_child

from harvestman.graph import build as building
from harvestman.graph import ranking
from harvestman.graph.rank import Hashes, distinct, pairs, unpaired
from harvestman.graph.tables import HOST_EDGES, HOSTS, NODES, ROWS, VERSION, Counts, Folder, GraphFile, Rules
from harvestman.model import Instant, Link, Page

LIMIT = 4.0
"""GB."""
SITES = 1_000
LINKS = 50
"""Of a page."""


def main() -> None:
    question = __doc__ or ""
    parser = options(question.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=1_000_000, help="of the graph that is ranked")
    parser.add_argument("--edges", type=int, default=10_000_000, help="of it")
    parser.add_argument("--pages", type=int, default=20_000, help="of the log that is built from; 0 to leave that out")
    parser.add_argument("--step", default="", help="internal: draw, rank or build")
    parser.add_argument("--data", type=Path, help="internal: where")
    given = parser.parse_args()
    if given.step:
        print(_STEPS[given.step](given.data, given))
        return
    report, data = Report(question), Path(tempfile.mkdtemp(prefix="graph-"))
    try:
        rows = []
        for step in ("draw", "rank", *(["build"] if given.pages else [])):
            numbers = [f"--{name}={getattr(given, name)}" for name in ("nodes", "edges", "pages")]
            spent = run_child([sys.argv[0], f"--step={step}", f"--data={data}", *numbers])
            rows.append((step, spent.cpu, spent.wall, spent.peak / 1e9, spent.output.strip()))
        report.table(("step", "CPU s", "wall s", "peak GB", "what"), rows)
        peak = max(row[3] for row in rows[1:])
        report.say(f"peak {peak:.2f} GB of {LIMIT:.0f}: {'within' if peak < LIMIT else 'ABOVE'} the bound")
    finally:
        shutil.rmtree(data)
    report.keep(given.no_keep)


def draw(data: Path, given: object) -> str:
    """The tables of a random graph, as a build leaves them."""
    nodes, wanted = given.nodes, given.edges  # type: ignore[attr-defined]  # an argparse.Namespace
    folder = Folder(data)
    folder.root.mkdir()
    target, source = unpaired(_drawn(nodes, wanted))
    counts = Counts(nodes=nodes, edges=len(target), hosts=SITES, sites=SITES)
    keys = np.arange(nodes)
    host = [f"h{number}.example" for number in range(SITES)]
    hosts = [host[number % SITES] for number in range(nodes)]
    columns = [
        pa.array(keys.astype(np.uint64)), pa.array([f"https://{name}/{i}" for i, name in enumerate(hosts)]),
        pa.array(hosts), pa.array(hosts), pa.array(np.ones(nodes, np.bool_)),
        pa.array(np.bincount(target, minlength=nodes).astype(np.int32)),
        pa.array(np.bincount(source, minlength=nodes).astype(np.int32)), pa.nulls(nodes, pa.float64()),
    ]  # fmt: skip
    every = pa.array(host)
    zeros = pa.array(np.zeros(SITES, np.int32))
    tables = {
        "nodes": pa.Table.from_arrays(columns, schema=NODES),
        "edges": pa.table({"from": source, "to": target}),
        "hosts": pa.Table.from_arrays(
            [every, every, zeros, zeros.cast(pa.int64()), zeros, pa.nulls(SITES, pa.float64())], schema=HOSTS
        ),
        "host_edges": pa.Table.from_arrays(
            [every, pa.array([*host[1:], host[0]]), zeros.cast(pa.int64())], schema=HOST_EDGES
        ),
    }
    for name, table in tables.items():
        with folder.writer(name, "bench") as writer:
            writer.write_table(table, row_group_size=ROWS)
    folder.write(GraphFile(VERSION, "bench", Rules(), counts))
    return f"{nodes:,} nodes, {len(target):,} edges"


def _drawn(nodes: int, wanted: int) -> Hashes:
    """So many different links, sorted by target: half go to hubs, half to neighbours; a third of the nodes has none.

    Neighbours make it slow to settle, as the web is; a graph without them is ranked in ten rounds.
    """
    chance = np.random.default_rng(11)
    places = chance.permutation(nodes)
    found: Hashes = np.zeros(0, np.uint64)
    while len(found) < wanted:
        missing = (wanted - len(found)) * 21 // 20 + 1000
        source = chance.integers(0, nodes * 2 // 3, missing)
        far = places[(nodes * chance.random(missing) ** 3).astype(np.int64)]
        near = (source + chance.integers(1, 60, missing)) % nodes
        target = np.where(chance.random(missing) < 0.5, near, far)
        found = distinct(np.concatenate([found, pairs(target, source)]))
    while surplus := len(found) - wanted:
        found = np.delete(found, chance.integers(0, len(found), surplus))
    return found


def rank(data: Path, _: object) -> str:
    folder = Folder(data)
    done = ranking.rank(folder, folder.read(), "embedded").ranking
    assert done is not None
    return f"{done.rounds} rounds, the last changed {done.change:.1e}; nodes.parquet written again"


def build(data: Path, given: object) -> str:
    """A whole build, but for reading the log: pages come from memory."""
    number = given.pages  # type: ignore[attr-defined]  # an argparse.Namespace
    folder = Folder(data / "built")
    folder.data.mkdir()
    counts = building.build(folder, _pages(number), [], "bench", Rules(), lambda what, done: None).counts
    return f"{counts.pages:,} pages, {counts.links:,} links: {counts.nodes:,} nodes, {counts.edges:,} edges"


def _pages(number: int) -> Iterator[Page]:
    chance = np.random.default_rng(12)
    for index in range(number):
        targets = (number * 10 * chance.random(LINKS) ** 2).astype(int).tolist()
        links = [Link(f"https://h{to % SITES}.example/page/{to}", f"anchor of {to}") for to in targets]
        yield Page(
            f"https://h{index % SITES}.example/page/{index}", 200, Instant(index), "text/html", 0, "", links=links
        )


_STEPS = {"draw": draw, "rank": rank, "build": build}

if __name__ == "__main__":
    main()
