"""What a page says of itself, and where its links stand, in every table."""

from __future__ import annotations

import io
import json
from pathlib import Path

import msgspec
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
import pytest
from formats.small import HOME, Small

from harvestman import export
from harvestman.cli.main import main
from harvestman.export.dataset import write_dataset
from harvestman.export.said import said
from harvestman.export.tables import SCHEMA_VERSION
from harvestman.model import Data, Instant, Page
from harvestman.pages.parse import parse

MARKUP = """<meta property=og:type content=article><meta name=robots content=noarchive>
<script type=application/ld+json>{"author": "Ann",
 "datePublished": "2026-01-02", "odd": "\\ud800"}</script><p itemscope><b itemprop=name>x</b>
<nav><a href=/a>a</a></nav><link rel=alternate hreflang=de href=/de>"""
SAID = {
    "meta": {"og:type": "article"},
    "json_ld": [{"author": "Ann", "datePublished": "2026-01-02", "odd": "?"}],
    "microdata": [{"name": ["x"]}],
    "asks": ["noarchive"],
}


@pytest.fixture
def page() -> Page:
    parsed = parse(MARKUP.encode(), "text/html", HOME)
    return Page(
        HOME, 200, Instant(1_790_000_000.0), "text/html", 0, "", links=parsed.links, data=parsed.data, cut="size"
    )


def test_one_table(page: Page, tmp_path: Path) -> None:
    rows = list(export.rows([page], export.Exported(), noindex=False, links=True))
    lines = io.BytesIO()
    export.write_jsonl(rows, lines, links=True)
    (line,) = lines.getvalue().splitlines()
    row = json.loads(line)
    assert next(iter(row.items())) == ("schema_version", SCHEMA_VERSION)
    assert (row["author"], row["published"], row["modified"], row["cut"]) == ("Ann", "2026-01-02", "", "size")
    assert row["data"] == SAID
    assert [(link["place"], link["language"]) for link in row["links"]] == [("nav", ""), ("", "de")]
    export.write_parquet(rows, tmp_path / "out.parquet", links=True)
    (found,) = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert json.loads(found["data"]) == SAID
    assert found["links"][0]["place"] == "nav"


def test_three_tables(page: Page, tmp_path: Path) -> None:
    write_dataset([page], tmp_path / "d", export.Exported(), buckets=1, noindex=False)
    (row,) = pq.read_table(tmp_path / "d" / "pages").to_pylist()
    assert (row["author"], row["published"], row["cut"], json.loads(row["data"])) == ("Ann", "2026-01-02", "size", SAID)
    links = pq.read_table(tmp_path / "d" / "links").to_pylist()
    assert [(link["kind"], link["place"], link["language"]) for link in links] == [
        ("a", "nav", ""),
        ("alternate", "", "de"),
    ]


def test_a_page_that_says_nothing() -> None:
    assert said(Data()) is None
    assert said(Data(author="Ann", published="2026-01-02")) is None


def test_a_block_that_is_too_deep_to_be_read_here_stays_a_string() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    text = said(Data(json_ld=[deep, "[1]"]))
    assert text is not None
    assert "\n" not in text
    assert text.endswith("[1]]}")


def test_sql_and_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb")
    data = tmp_path / "crawl"
    with Small(data) as small:
        small.page(HOME)
        last = small._group[-1]
        parsed = parse(MARKUP.encode(), "text/html", HOME)
        small._group[-1] = msgspec.structs.replace(last, data=parsed.data, links=parsed.links, cut="links")
        small.commit()
    sql = """select author, json_extract_string(data, '$.meta."og:type"') as type from pages"""
    assert main(["query", str(data), sql, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"author": "Ann", "type": "article"}
    assert main(["show", HOME, "--data", str(data)]) == 0
    text = capsys.readouterr().out
    for part in (
        "author    Ann",
        "published 2026-01-02",
        "asks      noarchive",
        "read in part only, for its links",
        "[nav]",
    ):
        assert part in text, part
