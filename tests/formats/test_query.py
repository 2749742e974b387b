"""SQL over a crawl: what the tables hold, that the second query reads only what is new, and what is refused."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from formats.small import HOME, Small, write

from harvestman.cli.main import main
from harvestman.layout import Layout
from harvestman.query import cache
from harvestman.query.cache import TABLES, Cache
from harvestman.store.frames import frames
from harvestman.stored import Part
from harvestman.views import View

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("query") / "crawl").data


def asked(capsys: pytest.CaptureFixture[str], data: Path, sql: str) -> list[dict[str, object]]:
    assert main(["query", str(data), sql, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_pages_and_their_text(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = asked(capsys, data, "select url, title, text, fetched_at from pages where language = 'de'")
    assert rows == [
        {
            "url": f"{HOME}a?b=2&x=1",
            "title": "Seite ü",
            "text": "Page a. é",
            "fetched_at": "2026-09-21T14:13:50.250000Z",
        }
    ]
    assert asked(capsys, data, "select count(*) n, count(distinct url) u from pages") == [{"n": 6, "u": 5}]


def test_links_join_pages_by_hash_whatever_the_spelling(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "select distinct p.url from links l join pages p on p.url_hash = l.target_hash where l.source = '{}'"
    assert asked(capsys, data, sql.format(HOME)) == [{"url": f"{HOME}a?b=2&x=1"}]


def test_urls_and_hosts_come_from_state(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = asked(capsys, data, "select status, count(*) n from urls group by 1 order by 1")
    assert rows == [
        {"status": "duplicate", "n": 1}, {"status": "fetched", "n": 5}, {"status": "gone", "n": 1},
        {"status": "redirected", "n": 1},
    ]  # fmt: skip
    assert asked(capsys, data, "select host, delay from hosts") == [{"host": "example.org", "delay": 1.0}]
    assert [row["name"] for row in asked(capsys, data, "show tables")] == sorted(TABLES)


def test_a_table_and_csv(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "select depth, max(title) as title, count(*) n from pages group by 1 order by 1"
    assert main(["query", str(data), sql]) == 0
    assert capsys.readouterr().out == "depth  title    n\n    0  A title  2\n    1  Seite ü  4\n"
    assert main(["query", str(data), sql, "--csv"]) == 0
    assert capsys.readouterr().out == "depth,title,n\n0,A title,2\n1,Seite ü,4\n"


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("selec 1", "syntax error"),
        ("select * from nix", "nix does not exist"),
        ("drop view pages", "only questions can be asked"),
        ("copy pages to 'x.csv'", "only questions can be asked"),
        ("select 1; select 2", "one SQL statement"),
        ("", "one SQL statement"),
        ("select * from read_csv('/etc/hostname')", "disabled by configuration"),
        ("select 'a'::int from pages", "Could not convert"),
    ],
)
def test_what_is_no_question_is_refused(data: Path, capsys: pytest.CaptureFixture[str], sql: str, words: str) -> None:
    assert main(["query", str(data), sql]) == 2
    assert words in capsys.readouterr().err


def test_without_duckdb_the_cure_is_named(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert main(["query", str(data), "select 1"]) == 2
    assert "pip install 'harvestman[query]'" in capsys.readouterr().err


def test_columns_are_in_the_manual() -> None:
    text = (ROOT / "docs" / "query.md").read_text(encoding="utf-8")
    for table, schema in TABLES.items():
        section = text.partition(f"\n## {table}\n")[2].partition("\n## ")[0]
        assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == schema.names, table


# -- the cache -------------------------------------------------------------------------------------------------------


def refreshed(data: Path) -> dict[str, list[str]]:
    with View(Layout(data)) as view:
        found = Cache(view, lambda _: None).refreshed(TABLES)
    assert all(path.is_file() for paths in found.values() for path in paths)
    return {name: [path.name for path in paths] for name, paths in found.items()}


def test_only_what_is_new_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[int] = []

    def watched(path: Path, start: int = 0, end: int | None = None) -> object:
        starts.append(start)
        return frames(path, start, end)

    monkeypatch.setattr(cache, "frames", watched)
    with Small(tmp_path / "crawl") as small:
        small.page(f"{HOME}1")
        small.commit()
        first = refreshed(small.layout.data)
        assert refreshed(small.layout.data) == first
        assert starts == [0]
        small.page(f"{HOME}2")
        small.flush()
        assert refreshed(small.layout.data) == first
        small.commit()
        second = refreshed(small.layout.data)
    assert len(starts) == 2
    assert starts[1] > 0
    assert second["pages"][:1] == first["pages"]
    assert len(second["pages"]) == len(second["links"]) == 2
    assert second["urls"] != first["urls"]


@pytest.mark.slow
def test_many_stretches_become_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Small(tmp_path / "crawl") as small:
        most = 0
        for number in range(2 * cache.MOST_STRETCHES + 1):
            small.page(f"{HOME}{number}")
            small.commit()
            most = max(most, len(refreshed(small.layout.data)["pages"]))
        assert most == cache.MOST_STRETCHES
        rows = asked(capsys, small.layout.data, "select count(distinct url) n from pages")
    assert rows == [{"n": 2 * cache.MOST_STRETCHES + 1}]
    assert len(list((tmp_path / "crawl" / "query").rglob("*.part"))) == 0


def test_a_log_that_was_written_anew_is_read_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As after a takedown: shorter, or with other frames where it went on."""
    with Small(tmp_path / "crawl") as small:
        for number in range(3):
            small.page(f"{HOME}{number}")
            small.commit()
        refreshed(small.layout.data)
    (path,) = small.layout.pages.glob("*.pages")
    first = next(iter(frames(path))).end
    path.write_bytes(path.read_bytes()[first:])
    assert asked(capsys, tmp_path / "crawl", "select url from pages order by 1") == [
        {"url": f"{HOME}1"}, {"url": f"{HOME}2"}
    ]  # fmt: skip
    path.unlink()
    assert asked(capsys, tmp_path / "crawl", "select url from pages") == []


def test_a_part_knows_its_number() -> None:
    assert Part(Path("w00-00012.pages"), 0).serial == 12
    assert Part(Path("w01_eu-20260101000000-00007.warc.gz"), 0).serial == 7
