"""A whole crawl with workers that die, read through every format: all of them tell of the same pages."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from random import Random

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
import pytest
from cdxj_indexer.main import CDXJIndexer  # type: ignore[import-untyped]  # ships no types
from simweb import sim_web

from harvestman.cli.main import main
from harvestman.config import Config
from harvestman.feed import Cursor, Event, events, parse, written
from harvestman.layout import Layout
from harvestman.store.cdxj import build_index
from harvestman.store.pages import read_pages
from harvestman.supervise import Supervisor
from harvestman.views import View
from harvestman.wiring import prepare

KILLS = 3
BIN = Path(sys.executable).parent


async def _crawl(config: Config, rng: Random) -> list[Event]:
    """Crawl while workers are killed; what a reader heard that looked now and then, and at the end."""
    layout = prepare(config, list(config.seeds))
    supervisor = Supervisor(config, layout, lambda _: None)
    running = asyncio.create_task(supervisor.run())
    heard: list[Event] = []
    cursor: Cursor = {}
    killed = 0
    while not running.done():
        await asyncio.sleep(rng.uniform(0.5, 1.5))
        pids = [pid for pid in supervisor.pids() if pid]
        if pids and killed < KILLS:
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(pids), signal.SIGKILL)
                killed += 1
        heard += await _hear(layout, cursor)
        cursor = parse(written(cursor))
    await running
    assert killed == KILLS
    return heard + await _hear(layout, cursor)


async def _hear(layout: Layout, cursor: Cursor) -> list[Event]:
    with View(layout) as view:
        return [event async for event in events(view, cursor)]


@pytest.mark.slow
def test_all_formats_tell_of_the_same_pages(tmp_path: Path) -> None:
    with sim_web(tmp_path, hosts=40, pages=10) as web:
        config = web.config(tmp_path / "data", workers=2, delay=0.2, patience=3.0)
        heard = asyncio.run(_crawl(config, Random(4)))
    layout = Layout(tmp_path / "data")
    pages = list(read_pages(layout.pages))
    wanted = {(page.url, page.digest) for page in pages}
    assert len(wanted) > 300

    told = [(event.url, event.digest) for event in heard if event.change in ("new", "changed")]
    assert set(told) == wanted
    print(f"{len(wanted)} pages, {len(told)} events of them")
    assert all(event.warc is not None for event in heard)

    raw = sorted(layout.warc.glob("*.warc.gz"))
    theirs = io.StringIO()
    CDXJIndexer(theirs, [str(path) for path in raw], sort=True).process_all()
    assert build_index(layout.warc).read_text() == theirs.getvalue()

    for name in ("dataset", "wet", "wacz"):
        assert main(["export", str(layout.data), "--format", name, "--include-noindex"]) == 0
    table = pq.read_table(layout.data / "export" / "dataset" / "pages")
    assert set(zip(table["url"].to_pylist(), table["digest"].to_pylist(), strict=True)) == wanted
    with zipfile.ZipFile(layout.data / "export" / "crawl.wacz") as package:
        assert {f"archive/{path.name}" for path in raw} <= set(package.namelist())
    wets = sorted((layout.data / "export" / "wet").iterdir())
    _content("wacz", "validate", "-f", layout.data / "export" / "crawl.wacz")
    _content("warcio", "check", *raw, *wets)
    for path in (*raw, *wets):
        _content("fastwarc", "check", path)


def _content(tool: str, *words: str | Path) -> None:
    done = subprocess.run([BIN / tool, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
