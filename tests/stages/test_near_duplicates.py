"""The gate on labelled pairs (bench/_copies.py says what they are): precision and recall of what a crawl would say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import suites

BENCH = Path(__file__).parents[2] / "bench"
FLOOR = 0.9


@pytest.mark.slow
@suites.needed
def test_precision_and_recall_on_simulated_and_real_pairs() -> None:
    command = [sys.executable, "near_duplicates.py", "--json"]
    done = subprocess.run(command, cwd=BENCH, capture_output=True, text=True, timeout=300, check=True)
    scores = json.loads(done.stdout)
    assert set(scores) == {"simulated", "real"}
    for name, score in scores.items():
        assert score["precision"] >= FLOOR, (name, score)
        assert score["recall"] >= FLOOR, (name, score)
