"""What the tests of this folder need, and what becomes of them where it is missing."""

from __future__ import annotations

import importlib.util
import os
import shutil

import pytest


def need(package: str) -> None:
    """Skip, with the cure, where a package is missing: `make readers` has it."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed here: `make readers` runs this")


def need_java() -> None:
    """Skip where there is no Java, but not in CI: there it must be, or Spark would never be tried."""
    if shutil.which("java") is None:
        missing = "Spark needs Java 17, and there is none"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
