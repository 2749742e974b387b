"""The examples of docs/export.md, which the tests run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

MANUAL = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")


def examples() -> dict[str, str]:
    """The Python of the manual, by the package it is about."""
    found = re.findall(r"^```python\n(.*?)^```", MANUAL, re.MULTILINE | re.DOTALL)
    return {re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE)[0]: code for code in found}
