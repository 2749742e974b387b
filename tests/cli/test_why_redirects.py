"""What `why` says of redirects that lead on, go in a circle or are for good, and of servers whose word is doubtful."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from cli import decided
from cli.crawled import host_site

from harvestman.cli import explain, reasons
from harvestman.config import Config
from harvestman.layout import Layout
from harvestman.model import Instant, SiteRecord, Status, UrlRecord, Validators, Visit
from harvestman.policy.validators import BARREN, DISTRUST
from harvestman.views import View

THEN, DAY = decided.THEN, 86_400.0
NOW = Instant(THEN + 60)
ORIGIN = "https://plain.example"


def redirect(path: str, target: str, code: int, due: float = THEN + 30 * DAY) -> UrlRecord:
    visit = Visit(THEN, code, f"HTTP {code}", target=f"{ORIGIN}{target}")
    return UrlRecord(f"{ORIGIN}{path}", Status.REDIRECTED, 1, 4, 2, THEN, due=Instant(due), visit=visit)


RECORDS = [
    redirect("/old", "/older", 301),
    redirect("/older", "/new", 302),
    decided.page(f"{ORIGIN}/new", None, 0.0),
    redirect("/a", "/b", 302),
    redirect("/b", "/a", 302),
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    liar = SiteRecord(host_site("plain.example"), THEN, validators=Validators(lied=THEN, barren=BARREN))
    return decided.write(tmp_path_factory.mktemp("redirects"), RECORDS, [liar], decided.tally())


def why(data: Path, path: str, now: Instant = NOW) -> tuple[dict[str, Any], str]:
    async def look() -> explain.Explanation:
        with View(Layout(data)) as view:
            return await explain.explain(f"{ORIGIN}{path}", view, Config(), now)

    found = asyncio.run(look())
    return json.loads(explain.as_json(found)), reasons.told(found, now)


def test_where_a_redirect_ends_and_for_how_long(data: Path) -> None:
    found, text = why(data, "/old")
    assert found["onward"] == [f"{ORIGIN}/older", f"{ORIGIN}/new"]
    assert found["believed_until"] == THEN + 30 * DAY
    assert f"leads     {ORIGIN}/older -> {ORIGIN}/new" in text
    assert "for good  asked again " in text
    found, text = why(data, "/older")
    assert (found["onward"], found["believed_until"]) == ([f"{ORIGIN}/new"], 0.0)
    assert "for good" not in text


def test_a_circle_is_named(data: Path) -> None:
    _, text = why(data, "/a")
    assert f"loop      {ORIGIN}/a -> {ORIGIN}/b -> {ORIGIN}/a" in text
    _, text = why(data, "/b")
    assert f"loop      {ORIGIN}/b -> {ORIGIN}/a -> {ORIGIN}/b" in text


def test_a_server_whose_validators_lie(data: Path) -> None:
    found, text = why(data, "/new")
    assert (found["site"]["lied"], found["site"]["barren"]) == (THEN, True)
    assert 'it said "not modified" of pages that were' in text
    assert "its ETags are new with every answer" in text
    found, text = why(data, "/new", Instant(THEN + DISTRUST))
    assert found["site"]["lied"] == 0.0
    assert "not modified" not in text
