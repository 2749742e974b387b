"""PageRank: what networkx says, for every shape of graph."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvestman.graph import rank as ranking
from harvestman.graph.rank import Floats, links_of, pagerank

EXACT = 1e-12


def judged(nodes: int, edges: list[tuple[int, int]], tolerance: float = EXACT) -> Floats:
    """The same by networkx, which takes long to import."""
    import networkx as nx  # type: ignore[import-untyped]  # ships no types

    graph = nx.DiGraph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(edges)
    found = nx.pagerank(graph, tol=tolerance, max_iter=1_000)
    return np.array([found[node] for node in range(nodes)])


def ranks(nodes: int, edges: list[tuple[int, int]], tolerance: float = EXACT) -> Floats:
    ends = np.array(edges, np.int32).reshape(-1, 2)
    return pagerank(links_of(nodes, ends[:, 1], ends[:, 0]), tolerance=tolerance).rank


def web(nodes: int, edges: int, seed: int) -> list[tuple[int, int]]:
    """Links as the web has them: a few nodes get most, some link to themselves, many to nobody; some repeat."""
    chance = np.random.default_rng(seed)
    target = (nodes * chance.random(edges) ** 3).astype(np.int32)
    source = chance.integers(0, nodes * 2 // 3, edges)
    return [*zip(source.tolist(), chance.permutation(nodes)[target].tolist(), strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("tolerance", [EXACT, 1e-6])
def test_ten_thousand_nodes_agree_with_networkx(tolerance: float) -> None:
    edges = web(10_000, 100_000, seed=5)
    found = ranks(10_000, edges, tolerance)
    assert np.abs(found - judged(10_000, edges, tolerance)).max() < 1e-9  # the issue asks for 1e-6; ranks are near 1e-4
    assert found.sum() == pytest.approx(1.0, abs=1e-9)
    assert found.max() > 50 * found.min()


@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2)))))
def test_any_small_graph_agrees_with_networkx(graph: tuple[int, list[tuple[int, int]]]) -> None:
    assert ranks(*graph) == pytest.approx(judged(*graph), abs=1e-9)


@given(st.lists(st.tuples(*[st.integers(0, 19)] * 2), max_size=80), st.integers(1, 9))
def test_blocks_do_not_show(edges: list[tuple[int, int]], block: int) -> None:
    whole = ranks(20, edges)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "BLOCK", block)
        assert ranks(20, edges) == pytest.approx(whole, abs=1e-15)


def test_nobody() -> None:
    found = pagerank(links_of(0, np.zeros(0, np.int32), np.zeros(0, np.int32)))
    assert (len(found.rank), found.rounds) == (0, 0)


def test_nobody_links() -> None:
    assert ranks(4, []).tolist() == [0.25] * 4


def test_a_link_that_is_repeated_counts_once() -> None:
    assert ranks(3, [(0, 1), (0, 1), (0, 2)]) == pytest.approx(ranks(3, [(0, 1), (0, 2)]))


def test_what_is_above_the_floor_was_brought_by_links() -> None:
    found = pagerank(links_of(3, np.array([1, 2]), np.array([0, 0])))
    assert found.rank[0] == pytest.approx(found.floor, abs=1e-9)
    assert found.rank[1] - found.floor == pytest.approx(0.85 * found.rank[0] / 2, abs=1e-9)


def test_it_says_when_it_was_cut_short() -> None:
    ends = np.array(web(50, 300, seed=1))
    found = pagerank(links_of(50, ends[:, 1], ends[:, 0]), most_rounds=2)
    assert found.rounds == 2
    assert found.change > 50 * ranking.TOLERANCE
