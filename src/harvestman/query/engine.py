"""DuckDB over the Parquet of a crawl. It may read these files and nothing else, and write nothing at all."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types

from harvestman.errors import UsageError

if TYPE_CHECKING:
    import duckdb

AT_ONCE = 1_000
MISSING = "querying needs DuckDB, which is not installed: pip install 'harvestman[query]'"
TABLES = 'The tables are pages, links, urls and hosts; "describe pages" names the columns of one.'
READING = ("SELECT", "EXPLAIN")
"""What a statement may be. DESCRIBE, SHOW and SUMMARIZE count as SELECT."""


class Answer(NamedTuple):
    """What a query gives, row by row."""

    columns: list[str]
    rows: Iterator[tuple[Any, ...]]


class Engine:
    """One query. Raises UsageError: no DuckDB, or SQL that is wrong or not only a question."""

    def __init__(self, sql: str) -> None:
        try:
            self._duckdb: Any = importlib.import_module("duckdb")
        except ImportError:
            raise UsageError(MISSING) from None
        self._sql = sql
        self._connection: duckdb.DuckDBPyConnection = self._duckdb.connect()
        self._check()

    def _check(self) -> None:
        statements = self._translated(lambda: self._connection.extract_statements(self._sql))
        if len(statements) != 1:
            raise UsageError(f"one SQL statement is needed, there are {len(statements)}")
        kind = statements[0].type.name
        if kind not in READING:
            raise UsageError(f"only questions can be asked (SELECT ...), not {kind}: a crawl is not changed by SQL")

    def answer(self, root: Path, tables: dict[str, list[Path]], schemas: dict[str, pa.Schema]) -> Answer:
        """Run it; `tables` are the files of each, `schemas` of what there may be no file."""
        connection = self._connection
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"SET allowed_directories = [{_quoted(str(root.resolve()) + '/')}]")
        for name, schema in schemas.items():
            files = tables.get(name)
            if files:
                listed = ", ".join(_quoted(str(path.resolve())) for path in files)
                connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet([{listed}])")
            else:
                connection.register(name, schema.empty_table())
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        self._translated(lambda: connection.execute(self._sql))
        return Answer([column[0] for column in connection.description or ()], self._rows())

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        while rows := self._translated(lambda: self._connection.fetchmany(AT_ONCE)):
            yield from rows

    def _translated(self, deed: Any) -> Any:
        try:
            return deed()
        except self._duckdb.CatalogException as error:
            raise UsageError(f"SQL: {str(error).strip()}\n\n{TABLES}") from None
        except self._duckdb.Error as error:
            raise UsageError(f"SQL: {str(error).strip()}") from None


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
