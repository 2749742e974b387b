"""The foreign conformance data, read in place: it is never copied into the project."""

from __future__ import annotations

import base64
import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(os.environ.get("SUITES") or Path(__file__).parents[2] / "shared" / "suites")

needed = pytest.mark.skipif(
    not (ROOT / "README.md").exists(), reason=f"no conformance data at {ROOT}; name its folder in SUITES"
)
"""Marks a test, or a module through `pytestmark`, that reads a suite."""


def rows(name: str) -> Iterator[dict[str, Any]]:
    """Yield the cases of one suite, by its path in the data folder."""
    path = ROOT / name
    with gzip.open(path) if name.endswith(".gz") else path.open("rb") as lines:
        for line in lines:
            yield json.loads(line)


def robots_body(case: dict[str, Any]) -> bytes:
    """Return the robots.txt of a case as bytes."""
    if "robots_b64" in case:
        return base64.b64decode(case["robots_b64"])
    return str(case["robots"]).encode()
