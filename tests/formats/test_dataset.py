"""Pages, text and links as partitioned Parquet: what lies where, that it appears whole, and who can read it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
import pytest
from formats.manual import MANUAL, examples
from formats.small import HOME, write
from hypothesis import given
from hypothesis import strategies as st

from harvestman.cli.main import main
from harvestman.errors import UsageError
from harvestman.export import Exported, dataset
from harvestman.export.dataset import MOST_BUCKETS, PAGES_A_BUCKET, bucket_of, buckets_for, write_dataset
from harvestman.export.tables import SCHEMA_VERSION as VERSION
from harvestman.export.tables import SCHEMAS
from harvestman.model import Instant, Link, Page

DAY = 86_400


def page(number: int, day: int = 0, host: str = "example.org") -> Page:
    links = [Link(f"https://{host}/{n}", "words", "nofollow") for n in range(3)]
    at = Instant(1_790_000_000.0 + day * DAY)
    return Page(
        f"https://{host}/{number}", 200, at, "text/html", 1, f"{number:064x}", text=f"text {number}", links=links
    )


def write_all(pages: list[Page] | Iterator[Page], target: Path, buckets: int = 1) -> Exported:
    counted = Exported()
    write_dataset(pages, target, counted, buckets=buckets, noindex=False)
    return counted


def files(target: Path) -> list[str]:
    return sorted(str(path.relative_to(target)) for path in target.rglob("*.parquet"))


def test_a_small_crawl_is_three_files(tmp_path: Path) -> None:
    data = write(tmp_path / "crawl").data
    assert main(["export", str(data), "--format", "dataset"]) == 0
    target = data / "export" / "dataset"
    place = "day=2026-09-21/bucket=000/part-00000.parquet"
    assert files(target) == [f"{table}/{place}" for table in ("links", "pages", "text")]
    for table, schema in SCHEMAS.items():
        found = pq.ParquetFile(target / table / place)
        assert found.schema_arrow.equals(schema, check_metadata=True)
        assert found.schema_arrow.metadata[b"harvestman.schema_version"] == b"3"
        assert found.metadata.row_group(0).column(0).compression == "ZSTD"
    urls = pq.read_table(target / "pages" / place, partitioning=None)["url"].to_pylist()
    assert f"{HOME}hidden" not in urls
    assert len(urls) == 5


def test_one_table_says_its_version_too(tmp_path: Path) -> None:
    data = write(tmp_path / "crawl").data
    assert main(["export", str(data), "--format", "parquet"]) == 0
    assert pq.read_schema(data / "export" / "pages.parquet").metadata[b"harvestman.schema_version"] == b"%d" % VERSION


def test_days_and_buckets_are_partitions_and_every_row_is_in_its_own(tmp_path: Path) -> None:
    pages = [page(n, day=n % 3, host=f"site{n % 7}.org") for n in range(60)]
    write_all(pages, tmp_path / "d", buckets=4)
    found = pq.read_table(tmp_path / "d" / "pages").to_pylist()
    assert sorted(row["url"] for row in found) == sorted(each.url for each in pages)
    for row in found:
        assert row["day"] == row["fetched_at"].strftime("%Y-%m-%d")
        assert row["bucket"] == bucket_of(row["site"], 4)
    assert len({row["bucket"] for row in found}) > 1
    assert len(pq.read_table(tmp_path / "d" / "links")) == 180


@given(st.integers(0, 10**12))
def test_buckets_hold_a_million_pages_each(pages: int) -> None:
    buckets = buckets_for(pages)
    assert buckets & (buckets - 1) == 0
    assert buckets == MOST_BUCKETS or pages <= buckets * PAGES_A_BUCKET
    assert buckets == 1 or pages > buckets // 2 * PAGES_A_BUCKET


@pytest.mark.slow
def test_few_files_are_open_and_few_rows_wait_and_none_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "FILES_OPEN", 3)
    monkeypatch.setattr(dataset, "ROWS_BYTES", 4_000)
    pages = [page(n, day=n % 9) for n in range(200)]
    write_all(pages, tmp_path / "d")
    assert sorted(pq.read_table(tmp_path / "d" / "text")["text"].to_pylist()) == sorted(each.text for each in pages)
    assert len(files(tmp_path / "d")) > 27


def broken() -> Iterator[Page]:
    yield page(1)
    raise OSError("the disk is full")


def test_it_appears_when_it_is_whole_and_the_old_one_stays_till_then(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        write_all(broken(), tmp_path / "d")
    assert list(tmp_path.iterdir()) == []
    write_all([page(1)], tmp_path / "d")
    with pytest.raises(OSError):
        write_all(broken(), tmp_path / "d")
    assert pq.read_table(tmp_path / "d" / "pages")["url"].to_pylist() == [page(1).url]
    write_all([page(2)], tmp_path / "d")
    assert pq.read_table(tmp_path / "d" / "pages")["url"].to_pylist() == [page(2).url]
    assert [path.name for path in tmp_path.iterdir()] == ["d"]


def test_nothing_that_is_not_a_dataset_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("years of work")
    with pytest.raises(UsageError, match="no dataset"):
        write_all([page(1)], tmp_path / "thesis")
    assert (tmp_path / "thesis" / "chapter1.tex").read_text() == "years of work"


def test_columns_are_in_the_manual() -> None:
    for table, schema in SCHEMAS.items():
        (columns,) = re.findall(rf"^\| {table} \| (.*) \|$", MANUAL, re.MULTILINE)
        assert re.findall(r"`(\w+)`", columns) == schema.names


# -- readers ---------------------------------------------------------------------------------------------------------


def test_there_is_an_example_for_each_reader() -> None:
    assert set(examples()) == {"duckdb", "pandas", "polars", "pyspark", "warcio"}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory as the examples expect it. That of Spark is run in tests/readers."""
    here = tmp_path_factory.mktemp("readers")
    data = str(write(here / "crawl-data").data)
    assert main(["export", data, "--format", "dataset", "--output", str(here / "dataset")]) == 0
    assert main(["export", data, "--format", "wet"]) == 0
    return here


@pytest.mark.parametrize("package", sorted(examples().keys() - {"pyspark"}))
def test_the_example_works(package: str, exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(exported)
    names: dict[str, object] = {}
    exec(examples()[package], names)
    assert names["result"] == ({"eng": 3, "deu": 1} if package == "warcio" else {"en": 4, "de": 1})
