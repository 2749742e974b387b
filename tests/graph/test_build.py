"""From pages to tables: who is a node, what is an edge, what is folded, what is left out."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from graph.linked import graph, named_edges, page, quiet
from hypothesis import given
from hypothesis import strategies as st

from harvestman.errors import StateError
from harvestman.graph import build as building
from harvestman.graph import hosts, look, ranking, spill
from harvestman.graph.build import aliases, fold, latest
from harvestman.graph.tables import SCHEMAS, Folder, Rules
from harvestman.lock import locked
from harvestman.model import LISTING, Instant, Link, Status, UrlRecord, Visit

A, B, C = "https://a.example/", "https://b.example/", "https://c.example/page"


def test_pages_and_their_targets_are_nodes(tmp_path: Path) -> None:
    folder, found = graph(tmp_path, [page(A, B, C), page(B, C)])
    assert named_edges(folder, found) == {(A, B), (A, C), (B, C)}
    nodes = {row["url"]: row for row in folder.opened("nodes", found.source).read().to_pylist()}
    assert {url: (row["in_degree"], row["out_degree"], row["fetched"]) for url, row in nodes.items()} == {
        A: (0, 2, True), B: (1, 1, True), C: (2, 0, False),
    }  # fmt: skip
    assert (nodes[C]["host"], nodes[C]["site"], nodes[C]["rank"]) == ("c.example", "c.example", None)
    assert [found.counts.pages, found.counts.nodes, found.counts.links] == [2, 3, 3]


def test_every_table_has_its_schema_and_its_source(tmp_path: Path) -> None:
    folder, found = graph(tmp_path, [page(A, B)])
    for name, schema in SCHEMAS.items():
        file = folder.opened(name, found.source)
        assert file.schema_arrow.equals(schema, check_metadata=False), name
        assert file.schema_arrow.metadata[b"harvestman.graph"] == b"2"
    keys = folder.opened("nodes", found.source).read(["key"]).column(0).to_pylist()
    assert keys == sorted(keys)
    assert not (folder.root / "part").exists()


def test_spellings_of_a_page_are_one_node(tmp_path: Path) -> None:
    folder, found = graph(tmp_path, [page(A, "https://c.example/page/", "https://c.example/p%61ge"), page(C)])
    assert named_edges(folder, found) == {(A, C)}
    assert found.counts.repeated == 1


def test_what_is_no_vote_is_counted(tmp_path: Path) -> None:
    links = [Link(B, "b", "nofollow noopener"), Link(C, rel="UGC".lower()), Link(f"{A}feed", kind=LISTING), Link(A)]
    folder, found = graph(tmp_path, [page(A, *links), page(B, C, nofollow=True)])
    assert named_edges(folder, found) == set()
    assert [found.counts.nofollow, found.counts.listings, found.counts.to_itself] == [3, 1, 1]
    with_all, counted = graph(tmp_path, [page(A, *links), page(B, C, nofollow=True)], rules=Rules(nofollow=True))
    assert named_edges(with_all, counted) == {(A, B), (A, C), (B, C)}
    assert counted.counts.nofollow == 0


def test_the_latest_version_of_a_page_counts(tmp_path: Path) -> None:
    folder, found = graph(tmp_path, [page(A, B, at=2.0), page(A, C, at=9.0), page(A, f"{B}old", at=1.0)])
    assert named_edges(folder, found) == {(A, C)}
    assert [found.counts.pages, found.counts.links] == [1, 1]


def test_redirects_and_duplicates_are_their_targets(tmp_path: Path) -> None:
    old, older = f"{B}old", f"{B}older"
    folder, found = graph(tmp_path, [page(A, older, B), page(B, old)], [(older, old), (old, B)])
    assert named_edges(folder, found) == {(A, B)}
    assert [found.counts.aliases, found.counts.nodes, found.counts.repeated, found.counts.to_itself] == [2, 2, 1, 1]
    rows = folder.opened("aliases", found.source).read().to_pylist()
    urls = folder.opened("nodes", found.source).read(["url"]).column(0).to_pylist()
    assert {(row["url"], urls[row["node"]]) for row in rows} == {(old, B), (older, B)}


def test_whom_the_crawl_calls_an_alias() -> None:
    def record(status: Status, target: str) -> UrlRecord:
        return UrlRecord(A, status, 0, 0, 0, Instant(0.0), visit=Visit(Instant(0.0), 200, target=target))

    records = [record(Status.REDIRECTED, B), record(Status.DUPLICATE, C), record(Status.REDIRECTED, "")]
    records += [record(Status.FETCHED, B), UrlRecord(A, Status.REDIRECTED, 0, 0, 0, Instant(0.0))]
    assert list(aliases(records)) == [(A, B), (A, C)]


@pytest.mark.parametrize(
    ("canonical", "believed"),
    [("https://www.c.example/main", True), ("https://c.example/", False), ("https://other.example/main", False)],
)
def test_a_canonical_url_is_believed_within_its_site(tmp_path: Path, canonical: str, believed: bool) -> None:
    folder, found = graph(tmp_path, [page(A, C), page(C, B, canonical=canonical), page(canonical)])
    assert named_edges(folder, found) == ({(A, canonical), (canonical, B)} if believed else {(A, C), (C, B)})


def test_a_crawl_without_pages(tmp_path: Path) -> None:
    folder, found = graph(tmp_path, [])
    assert [found.counts.nodes, found.counts.edges, found.counts.hosts] == [0, 0, 0]
    ranked = ranking.rank(folder, found, "embedded")
    assert ranked.ranking is not None
    assert look.top_pages(folder, ranked, 5) == []


def test_a_page_without_links(tmp_path: Path) -> None:
    folder, found = graph(tmp_path, [page(A)], rules=Rules(links=False))
    assert ranking.rank(folder, found, "embedded").counts.nodes == 1
    assert [each.rank for each in look.top_pages(folder, found, 5)] == [1.0]


def test_hosts_and_sites(tmp_path: Path) -> None:
    shop, blog = "https://shop.b.example/", "https://blog.b.example/"
    folder, found = graph(
        tmp_path, [page(A, shop, f"{shop}x"), page(f"{A}2", shop), page(blog, shop), page(C, shop, blog)]
    )
    rows = {row["host"]: row for row in folder.opened("hosts", found.source).read().to_pylist()}
    assert rows["shop.b.example"] == {
        "host": "shop.b.example", "site": "b.example", "nodes": 2, "in_links": 4, "linking_sites": 2, "rank": None,
    }  # fmt: skip
    assert (rows["blog.b.example"]["in_links"], rows["blog.b.example"]["linking_sites"]) == (1, 1)
    assert (rows["a.example"]["in_links"], rows["a.example"]["nodes"]) == (0, 2)
    between = {
        (row["from"], row["to"]): row["links"] for row in folder.opened("host_edges", "source").read().to_pylist()
    }
    assert between == {
        ("a.example", "shop.b.example"): 3, ("blog.b.example", "shop.b.example"): 1,
        ("c.example", "shop.b.example"): 1, ("c.example", "blog.b.example"): 1,
    }  # fmt: skip
    assert found.counts.sites == 3
    first, second, *_ = look.top_hosts(folder, ranking.rank(folder, found, "embedded"), 9)
    assert [first.host, second.host] == ["shop.b.example", "blog.b.example"]
    assert first.rank == second.rank > 1 / 3


def test_links_with_their_words(tmp_path: Path) -> None:
    odd = Link(B, "caf\u00e9 \ud800", "nofollow", "area", place="nav")
    folder, found = graph(tmp_path, [page(A, odd, C), page(C, B)], [(f"{B}alias", B)])
    shown = look.neighbours(folder, found, f"{B}alias", 0)
    assert shown is not None
    assert (shown.url, shown.in_degree, shown.rank, shown.links_out) == (B, 1, None, [])
    by = {each.url: each for each in shown.links_in}
    assert by[A] == look.Linked(A, "caf\u00e9 ?", "nofollow", "area", "nav", False)
    assert by[C] == look.Linked(C, f"to {B}", "", "a", "", True)
    cut = look.neighbours(folder, found, B, 1)
    assert cut is not None
    assert (len(cut.links_in), cut.more) == (1, True)
    assert look.neighbours(folder, found, "https://unknown.example/", 0) is None


def test_a_graph_that_was_built_without_links_says_so(tmp_path: Path) -> None:
    graph(tmp_path, [page(A, B)])
    folder, found = graph(tmp_path, [page(A, B)], rules=Rules(links=False))
    assert not folder.path("links").exists()
    assert named_edges(folder, found) == {(A, B)}
    with pytest.raises(StateError, match="without --no-links"):
        look.neighbours(folder, found, A, 0)


def test_many_files_of_edges_are_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [
        page(f"https://h{i}.example/", *(f"https://h{(i * j) % 40}.example/" for j in range(12))) for i in range(40)
    ]
    folder, found = graph(tmp_path, pages)
    once, hosts_once = named_edges(folder, found), folder.opened("hosts", found.source).read()
    monkeypatch.setattr(building, "EDGES_AT_ONCE", 20)
    monkeypatch.setattr(spill, "BATCH", 7)
    monkeypatch.setattr(spill, "RECENT", 5)
    monkeypatch.setattr(hosts, "TOGETHER", 3)
    folder, found = graph(tmp_path, pages)
    assert named_edges(folder, found) == once
    assert folder.opened("hosts", found.source).read() == hosts_once
    targets = folder.opened("edges", found.source).read(["to"]).column(0).to_pylist()
    assert targets == sorted(targets)


def test_a_build_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    folder, found = graph(tmp_path, [page(A, B)])

    def torn() -> object:
        yield page(A, C)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        building.build(folder, torn(), [], "other", Rules(), quiet)  # type: ignore[arg-type]
    assert not (folder.root / "part").exists()
    assert named_edges(folder, folder.read()) == {(A, B)}  # nothing was replaced yet
    folder.write(msgspec.structs.replace(found, source="other"))
    with pytest.raises(StateError, match="cut short: run `harvestman graph build"):
        ranking.rank(folder, folder.read(), "embedded")


def test_graphs_that_cannot_be_read(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    with pytest.raises(StateError, match="has no link graph: run `harvestman graph build"):
        folder.read()
    _, found = graph(tmp_path, [page(A, B)])
    for other in (1, 99):  # before links had a place; of a day to come
        folder.write(msgspec.structs.replace(found, version=other))
        with pytest.raises(StateError, match=rf"format {other}\): run `harvestman graph build"):
            folder.read()
    with locked(folder.root), pytest.raises(StateError, match="being written by another command"):
        graph(tmp_path, [])


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_fold_ends_where_the_steps_end(steps: list[tuple[int, int]]) -> None:
    step = dict(steps)  # the last word on each counts
    found = fold(10, np.array([a for a, _ in steps], np.int64), np.array([b for _, b in steps], np.int64))
    for node in range(10):
        end, met = node, set[int]()
        while step.get(end, end) != end and end not in met:
            met.add(end)
            end = step[end]
        assert found[node] == (node if step.get(end, end) != end else end)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=20))
def test_one_version_of_each_page_is_the_latest(versions: list[tuple[int, int]]) -> None:
    found = latest(np.array([p for p, _ in versions], np.uint64), np.array([d for _, d in versions], np.float64))
    best = {name: max((d, i) for i, (p, d) in enumerate(versions) if p == name)[1] for name in {p for p, _ in versions}}
    assert set(np.flatnonzero(found)) == set(best.values())
