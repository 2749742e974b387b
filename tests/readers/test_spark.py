"""Spark reads the dataset, and ranks pages as the embedded engine does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
import pytest
from formats.manual import examples
from graph.linked import graph, page
from readers.environment import need, need_java

from harvestman.cli.main import main
from harvestman.graph import ranking, spark
from harvestman.graph.tables import Folder, GraphFile
from harvestman.layout import Layout
from harvestman.store.pages import read_pages

pytestmark = [pytest.mark.readers, pytest.mark.slow]
SMALL = (
    "--master local[1] --conf spark.sql.shuffle.partitions=1 --conf spark.ui.showConsoleProgress=false "
    "--conf spark.sql.adaptive.enabled=false --conf spark.sql.codegen.wholeStage=false "
    "--driver-java-options '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' pyspark-shell"
)
"""One core, and nothing that makes large tables quick and small ones slow."""


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark on this machine alone."""
    need("pyspark")
    need_java()
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", SMALL)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")


def drawn(data: Path, nodes: int, edges: int) -> tuple[Folder, GraphFile]:
    """A graph drawn at random, with hubs, dangling nodes and repeated links, as pages."""
    chance = np.random.default_rng(3)
    targets = (nodes * chance.random((nodes // 2, edges * 2 // nodes)) ** 3).astype(int)
    url = "https://h{}.example/{}".format
    return graph(
        data, [page(url(i % 50, i), *(url(to % 50, to) for to in row)) for i, row in enumerate(targets.tolist())]
    )


def test_it_ranks_as_the_embedded_engine_does(tmp_path: Path) -> None:
    folder, found = drawn(tmp_path, 10_000, 60_000)
    here = ranking.embedded(folder, found)
    there = spark.ranked(folder, found, tolerance=1e-9)
    assert np.abs(here.rank - there.rank).max() < 1e-6
    assert there.rank.sum() == pytest.approx(1.0, abs=1e-6)
    assert there.floor == pytest.approx(here.floor, rel=1e-2)
    assert not (folder.root / "spark").exists()


def test_the_verb_ranks_a_crawl_the_same_with_both(crawled: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    ranks = {}
    for engine in ("embedded", "spark"):
        assert main(["graph", "rank", str(crawled.data), "--engine", engine]) == 0
        assert f"({engine})" in capsys.readouterr().out
        table = pq.read_table(crawled.data / "graph" / "nodes.parquet", columns=["url", "rank"])
        ranks[engine] = dict(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert ranks["embedded"].keys() == ranks["spark"].keys()
    assert sum(ranks["spark"].values()) == pytest.approx(1.0)
    for url, rank in ranks["embedded"].items():
        assert ranks["spark"][url] == pytest.approx(rank, abs=1e-9)


def test_it_reads_the_dataset(crawled: Layout, tmp_path: Path) -> None:
    """By the example of the manual; then all three tables, joined."""
    from pyspark.sql import SparkSession  # type: ignore[import-not-found,unused-ignore]  # only in this environment

    words = ["export", str(crawled.data), "--format", "dataset", "--include-noindex"]
    assert main([*words, "--output", str(tmp_path / "dataset")]) == 0
    pages = list(read_pages(crawled.pages))
    languages = [page.language for page in pages]
    names: dict[str, object] = {}
    exec(examples()["pyspark"].replace('"dataset/', f'"{tmp_path}/dataset/'), names)  # Java stays where it was started
    assert names["result"] == {each: languages.count(each) for each in languages}

    session = SparkSession.builder.config("spark.ui.enabled", False).getOrCreate()
    try:
        for table in ("pages", "text", "links"):
            session.read.parquet(str(tmp_path / "dataset" / table)).createOrReplaceTempView(table)
        texts = session.sql("select p.url, t.text from pages p join text t using (url_hash, fetched_at)").collect()
        (links,) = session.sql("select count(*) from links l join pages p on l.source_hash = p.url_hash").collect()
        (least,) = session.sql("select min(simhash), max(simhash) from pages").collect()
    finally:
        session.stop()
    assert {(row[0], row[1]) for row in texts} == {(page.url, page.text) for page in pages}
    assert links[0] >= sum(len(page.links) for page in pages)
    assert (int(least[0]), int(least[1])) == (min(page.simhash for page in pages), max(page.simhash for page in pages))
