"""The frontier of a half-done crawl is lost: `repair` brings it back, and the servers see no difference."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from cli import mending
from cli.mending import run
from simweb import SimWeb, sim_web

from harvestman.embedded.rows import WAITING
from harvestman.embedded.state import RocksState
from harvestman.frontier.routing import Router
from harvestman.layout import VERSION, CrawlFile, Layout
from harvestman.mend import rows_of
from harvestman.model import Instant, Status, UrlRecord
from harvestman.ports import Changes
from harvestman.sim.audit import audit

DELAY = 0.2
WORKERS = 2


def crawl(web: SimWeb, data: Path, pages: int) -> None:
    """One run of the crawl, up to so many pages."""
    command = [sys.executable, "-m", "harvestman", "crawl", *web.seeds, "--scope", "all", "--data", str(data)]
    command += ["--dns", web.dns, "--allow", "127.0.0.0/8", "--delay", str(DELAY), "--workers", str(WORKERS)]
    command += ["--patience", "5", "--max-pages", str(pages), "--quiet"]
    assert subprocess.run(command, timeout=300, check=False).returncode == 0


def delete_everything(data: Path, _: Random) -> None:
    """Queues, schedules and filter are gone."""
    with mending.opened(data) as states:
        for state in states:
            for family in WAITING:
                state.renew(family)
    for snapshot in data.glob("seen/*"):
        snapshot.unlink()
    assert not mending.waiting(data)


def truncate_everything(data: Path, rng: Random) -> None:
    """Half of the queues and schedules is gone, and half of the filter."""
    with mending.opened(data) as states:
        for state in states:
            here = [row for family in WAITING for row in state.waiting_rows(family)]
            state.write_rows([], rng.sample(here, len(here) // 2))
    for snapshot in data.glob("seen/*"):
        content = snapshot.read_bytes()
        snapshot.write_bytes(content[: len(content) // 2])


def truncate_files(data: Path, rng: Random) -> None:
    """The files that hold the queues are cut in half."""
    with mending.opened(data) as states:
        for state in states:
            queue = [*state.waiting_rows("queue")]
            state.renew("queue")
            before = set(data.glob("state/*/*.sst"))
            state.write_rows(queue)
            state._family["queue"].flush(True)
            for file in set(data.glob("state/*/*.sst")) - before:
                content = file.read_bytes()
                file.write_bytes(content[: rng.randrange(len(content))])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hurt", "profile"), [(delete_everything, "mixed"), (truncate_everything, "clean"), (truncate_files, "clean")]
)
def test_a_crawl_that_lost_its_frontier_finishes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], hurt: Callable[[Path, Random], None], profile: str
) -> None:
    data = tmp_path / "data"
    with sim_web(tmp_path, hosts=60, pages=5, profile=profile) as web:
        crawl(web, data, 120)
        before = mending.waiting(data)
        assert len(before) > 60, "there is too little left to lose"
        assert mending.examined(data).whole, "a crawl that was stopped in good order is whole"
        hurt(data, Random(5))
        said, _ = run(capsys, "repair", data)
        assert "mended" in said
        assert mending.waiting(data) == before
        crawl(web, data, 0)
    report = audit(web.log, DELAY, max_duplicates=0.001)
    assert report.ok, report.render()
    assert report.coverage == 1.0


# -- the repair itself is killed -------------------------------------------------------------------------------------

URLS = 60_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl of one worker with many URLs in every state, whole."""
    layout = Layout(tmp_path_factory.mktemp("large") / "crawl")
    layout.write(CrawlFile(VERSION, 16, 1))
    state, router, rng = RocksState(layout.state(0)), Router(16), Random(11)
    for start in range(0, URLS, 2_000):
        changes = Changes()
        for number in range(start, start + 2_000):
            url = f"https://h{number % 300}.example/{number}"
            due = Instant(rng.choice([0.0, 1.8e9 + rng.random() * 1e6]))
            record = UrlRecord(url, rng.choice([*Status]), 2, rng.randrange(8), number + 1, Instant(1.7e9), due=due)
            changes.records[router.id_of(url)] = record
        asyncio.run(state.commit(changes))
    for url_id, record in state.url_rows():
        state.write_rows(rows_of(url_id, record)[:1])
    state.shut()
    return layout.data


@pytest.mark.slow
def test_a_repair_that_is_killed_is_run_again(large: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = Random(23)
    before = mending.waiting(large)
    assert len(before) > URLS // 10
    command = [sys.executable, "-m", "harvestman", "repair", str(large)]
    delete_everything(large, rng)
    began = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    whole = time.monotonic() - began
    delete_everything(large, rng)
    held, halfway = 0, 0
    for step in range(12):
        repair = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        time.sleep(whole * (0.3 + 0.05 * step))
        repair.kill()
        repair.wait()
        now = len(mending.waiting(large))
        assert now >= held, "what was mended stays mended"
        halfway += 0 < now < len(before)
        held = now
        if held == len(before):
            delete_everything(large, rng)
            held = 0
    run(capsys, "repair", large)
    assert mending.waiting(large) == before
    assert mending.examined(large).whole
    assert halfway, "never killed in the middle"
