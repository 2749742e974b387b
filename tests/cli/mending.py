"""What the tests of the verbs that mend share: a crawl, a command, a look into the databases it has changed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli import crawled

from harvestman.cli.main import main
from harvestman.embedded.roster import StaticRoster
from harvestman.embedded.rows import WAITING, Row
from harvestman.embedded.state import RocksState
from harvestman.frontier.routing import Router
from harvestman.layout import VERSION, CrawlFile, Layout
from harvestman.mend import Repaired, examine
from harvestman.model import HostRecord, Tally, UrlRecord
from harvestman.views import View


def write(data: Path) -> Layout:
    """The URLs, hosts and robots.txt of `crawled`, over two workers."""
    layout, router = Layout(data), Router(64)
    layout.write(CrawlFile(VERSION, 64, 2))
    for index in range(2):
        state = RocksState(layout.state(index))
        changes = crawled.changes(router, StaticRoster(64, 2, index), index, first=index == 0)
        changes.due = [(record.due, url) for url, record in changes.records.items() if record.due]
        asyncio.run(state.commit(changes))
        state.shut()
    return layout


def run(capsys: pytest.CaptureFixture[str], *argv: str | Path, code: int = 0) -> tuple[str, str]:
    """(stdout, stderr) of a command that ends with `code`."""
    assert main([str(word) for word in argv]) == code
    captured = capsys.readouterr()
    return captured.out, captured.err


def record(data: Path, url: str) -> UrlRecord:
    with View(Layout(data)) as view:
        found = asyncio.run(view.record(url))
    assert found is not None, url
    return found


def host(data: Path, url: str) -> HostRecord:
    with View(Layout(data)) as view:
        found = asyncio.run(view.host(url))
    assert found is not None, url
    return found


def tally(data: Path) -> Tally:
    with View(Layout(data)) as view:
        return view.tally()


def examined(data: Path) -> Repaired:
    return asyncio.run(examine(data, print))


@contextmanager
def opened(data: Path) -> Iterator[list[RocksState]]:
    """The workers' databases, to be hurt."""
    layout = Layout(data)
    states = [RocksState(layout.state(index)) for index in layout.workers()]
    try:
        yield states
    finally:
        for state in states:
            state.shut()


def waiting(data: Path) -> set[Row]:
    """Every entry of every queue and schedule."""
    with View(Layout(data)) as view:
        return {row for _, state in view.workers() for family in WAITING for row in state.waiting_rows(family)}
