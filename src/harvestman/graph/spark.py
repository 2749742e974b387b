"""PageRank by Spark, for graphs that one machine does not hold: the same arithmetic as `rank`, over the same edges.

Which cluster: as Spark is told (`PYSPARK_SUBMIT_ARGS="--master spark://... pyspark-shell"`, or spark-defaults.conf);
without that, the cores of this machine. The tables must lie where the executors can read them.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types

from harvestman.errors import UsageError
from harvestman.graph.rank import DAMPING, MOST_ROUNDS, TOLERANCE, Ranked
from harvestman.graph.tables import Folder, GraphFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession  # type: ignore[import-not-found,unused-ignore]  # an extra

APP: Final = "harvestman graph rank"


def session() -> SparkSession:
    """Spark, as it is set up here. UsageError when it is not."""
    try:
        from pyspark.errors import PySparkException  # type: ignore[import-not-found,unused-ignore]  # an extra
        from pyspark.sql import SparkSession as Spark  # type: ignore[import-not-found,unused-ignore]  # an extra
    except ImportError:
        raise UsageError("Spark is not installed: pip install 'harvestman[spark]', and Java 17") from None
    try:
        return Spark.builder.appName(APP).config("spark.ui.enabled", "false").getOrCreate()
    except (PySparkException, OSError, RuntimeError) as error:
        raise UsageError(f"Spark does not start (is Java 17 installed?): {error}") from None


def ranked(folder: Folder, graph: GraphFile, tolerance: float = TOLERANCE) -> Ranked:
    """Rank every node; stops Spark afterwards."""
    for name in ("nodes", "edges"):
        folder.opened(name, graph.source)  # says what is wrong with it
    nodes = graph.counts.nodes
    if not nodes:
        return Ranked(np.zeros(0), 0, 0.0, 0.0)
    spark = session()
    try:
        edges = spark.read.parquet(str(folder.path("edges").resolve()))
        ranks, rounds, change, floor = pagerank(spark, edges, nodes, tolerance)
        where = folder.root / "spark"
        ranks.select("node", "rank").write.mode("overwrite").parquet(str(where.resolve()))
        try:
            table = pq.read_table(where)
        finally:
            shutil.rmtree(where)
    finally:
        spark.stop()
    rank = np.empty(nodes)
    rank[table.column("node").to_numpy()] = table.column("rank").to_numpy()
    return Ranked(rank, rounds, change, floor)


def pagerank(
    spark: SparkSession, edges: DataFrame, nodes: int, tolerance: float
) -> tuple[DataFrame, int, float, float]:
    """(node, rank), the rounds, the change in the last, and the rank of a node that nobody links to."""
    from pyspark.sql import functions as f  # type: ignore[import-not-found,unused-ignore]  # an extra
    from pyspark.storagelevel import StorageLevel  # type: ignore[import-not-found,unused-ignore]  # an extra

    degrees = edges.groupBy(f.col("from").alias("node")).agg(f.count("*").alias("links"))
    every = spark.range(nodes).select(f.col("id").cast("int").alias("node"))
    ranks = every.join(degrees, "node", "left").withColumn("rank", f.lit(1.0 / nodes)).localCheckpoint()
    # Laid out once as each round joins them: then only ranks are sent about.
    edges = edges.repartition("from").persist(StorageLevel.MEMORY_AND_DISK)
    dangling = f.sum(f.when(f.col("links").isNull(), f.col("rank")).otherwise(0.0))
    change, lost, floor, rounds = float("inf"), _numbers(ranks.agg(dangling))[0], 0.0, 0
    while change >= nodes * tolerance and rounds < MOST_ROUNDS:
        floor = (1.0 - DAMPING + DAMPING * lost) / nodes
        giving = ranks.where(f.col("links").isNotNull()).select(
            f.col("node").alias("from"), (f.lit(DAMPING) * f.col("rank") / f.col("links")).alias("share")
        )
        brought = edges.join(giving, "from").groupBy(f.col("to").alias("node")).agg(f.sum("share").alias("brought"))
        fresh = ranks.join(brought, "node", "left").select(
            "node", "links", (f.coalesce(f.col("brought"), f.lit(0.0)) + f.lit(floor)).alias("rank"),
            f.col("rank").alias("before"),
        )  # fmt: skip
        # Cut off from how it came to be: else each round would plan all those before it again.
        fresh = fresh.localCheckpoint(eager=False)
        change, lost = _numbers(fresh.agg(f.sum(f.abs(f.col("rank") - f.col("before"))), dangling))
        ranks = fresh.drop("before")
        rounds += 1
    return ranks, rounds, change, floor


def _numbers(sums: DataFrame) -> list[float]:
    """The one row of a table of sums."""
    return [float(value) for value in sums.collect()[0]]
