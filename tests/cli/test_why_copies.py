"""What `why` says of a page that says nearly what another says."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from cli import decided

from harvestman.cli import explain, reasons
from harvestman.config import Config
from harvestman.layout import Layout
from harvestman.model import Instant, Status, UrlRecord, Visit
from harvestman.views import View

ORIGIN = "https://plain.example"


def test_a_near_duplicate_is_told_with_its_distance(tmp_path: Path) -> None:
    visit = Visit(decided.THEN, 200, "ok", b"d" * 32, 5, near=f"{ORIGIN}/story", distance=2)
    record = UrlRecord(f"{ORIGIN}/print", Status.FETCHED, 1, 4, 2, decided.THEN, visit=visit)
    data = decided.write(tmp_path, [record], [], decided.tally())
    now = Instant(decided.THEN + 60)

    async def look() -> explain.Explanation:
        with View(Layout(data)) as view:
            return await explain.explain(record.url, view, Config(), now)

    found = asyncio.run(look())
    said = json.loads(explain.as_json(found))["visit"]
    assert (said["near_duplicate_of"], said["distance"]) == (f"{ORIGIN}/story", 2)
    assert f"near copy says nearly what {ORIGIN}/story says (2 bits apart)" in reasons.told(found, now)
