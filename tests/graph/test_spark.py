"""What is said where Spark is not installed. That it ranks as the embedded engine does is in tests/readers."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pytest
from graph.linked import graph, page

from harvestman.errors import UsageError
from harvestman.graph import ranking
from harvestman.graph.rank import Floats
from harvestman.graph.tables import Folder, GraphFile

HAVE = importlib.util.find_spec("pyspark") is not None


def ranks(folder: Folder, found: GraphFile) -> Floats:
    column: pa.ChunkedArray = folder.opened("nodes", found.source).read(["rank"]).column(0)
    return np.asarray(column.to_numpy())


@pytest.mark.skipif(HAVE, reason="pyspark is installed")
def test_without_spark_the_cure_is_named(tmp_path: Path) -> None:
    folder, found = graph(tmp_path, [page("https://a.example/", "https://b.example/")])
    with pytest.raises(UsageError, match=r"pip install 'harvestman\[spark\]'"):
        ranking.rank(folder, found, "spark")
    assert np.isnan(np.array(ranks(folder, found), float)).all()
