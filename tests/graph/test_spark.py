"""Spark ranks as the embedded engine does. Needs pyspark and a Java that it runs on."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pytest
from graph.linked import graph, page

from harvestman.errors import UsageError
from harvestman.graph import ranking, spark
from harvestman.graph.rank import Floats
from harvestman.graph.tables import Folder, GraphFile

HAVE = importlib.util.find_spec("pyspark") is not None
JAVA = shutil.which("java") is not None


def drawn(data: Path, nodes: int, edges: int) -> tuple[Folder, GraphFile]:
    """A graph drawn at random, with hubs, dangling nodes and repeated links, as pages."""
    chance = np.random.default_rng(3)
    targets = (nodes * chance.random((nodes // 2, edges * 2 // nodes)) ** 3).astype(int)
    url = "https://h{}.example/{}".format
    return graph(
        data, [page(url(i % 50, i), *(url(to % 50, to) for to in row)) for i, row in enumerate(targets.tolist())]
    )


def ranks(folder: Folder, found: GraphFile) -> Floats:
    column: pa.ChunkedArray = folder.opened("nodes", found.source).read(["rank"]).column(0)
    return np.asarray(column.to_numpy())


@pytest.mark.slow
@pytest.mark.skipif(not HAVE, reason="pyspark is not installed: pip install 'harvestman[spark]'")
@pytest.mark.skipif(not JAVA, reason="Spark needs Java 17, and there is none")
def test_spark_and_the_embedded_engine_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master local[2] --conf spark.sql.shuffle.partitions=2 pyspark-shell")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    folder, found = drawn(tmp_path, 10_000, 60_000)
    here = ranking.embedded(folder, found)
    there = spark.ranked(folder, found, tolerance=1e-9)
    assert np.abs(here.rank - there.rank).max() < 1e-6
    assert there.rank.sum() == pytest.approx(1.0, abs=1e-6)
    assert there.floor == pytest.approx(here.floor, rel=1e-2)
    assert not (folder.root / "spark").exists()


@pytest.mark.skipif(HAVE, reason="pyspark is installed")
def test_without_spark_the_cure_is_named(tmp_path: Path) -> None:
    folder, found = graph(tmp_path, [page("https://a.example/", "https://b.example/")])
    with pytest.raises(UsageError, match=r"pip install 'harvestman\[spark\]'"):
        ranking.rank(folder, found, "spark")
    assert np.isnan(np.array(ranks(folder, found), float)).all()
