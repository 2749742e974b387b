"""`crawl` from command to summary, with a supervisor that only pretends; whole crawls are in tests/crawl."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from cli import crawled

from harvestman import lock
from harvestman.cli import running, simulated
from harvestman.cli.main import main
from harvestman.config import Config, Retention
from harvestman.errors import UsageError, WorkerDied
from harvestman.jobs import Jobs
from harvestman.layout import Layout
from harvestman.model import Seconds, Tally
from harvestman.sim.plan import Plan
from harvestman.supervise import Ending, Progress

HOME = ["crawl", "http://127.0.0.1:9009/", "--allow", "127.0.0.0/8"]


class Pretender:
    """Takes the place of the supervisor."""

    last: Pretender
    reason = "finished"
    interrupts = 0
    pages = 3
    failure: Exception | None = None

    def __init__(
        self, config: Config, layout: Layout, report: Callable[[Progress], None], say: Callable[[str], None],
        vetted: dict[int, int],
    ) -> None:  # fmt: skip
        self.config, self.layout, self.report, self.say, self.vetted = config, layout, report, say, vetted
        self.seeds = [seed for job in Jobs(layout).all() for seed in Jobs(layout).seeds(job.id)]
        self.told: list[str] = []
        type(self).last = self

    async def run(self) -> Ending:
        if self.failure:
            raise self.failure
        for number in range(self.interrupts):
            os.kill(os.getpid(), signal.SIGINT)
            await self._heard(number)
        progress = Progress(
            6.0, Tally(pages=self.pages), self.pages, {"ready": 1}, self.config.workers, 0, "done", 0.0, 0.01
        )
        self.report(progress)
        return Ending("interrupted" if self.told else self.reason, progress)

    async def _heard(self, number: int) -> None:
        for _ in range(1_000):
            if len(self.told) > number:
                return
            await asyncio.sleep(0.001)
        raise AssertionError("the signal did not arrive")

    def drain(self) -> None:
        self.told.append("drain")

    def halt(self) -> None:
        self.told.append("halt")


@pytest.fixture(autouse=True)
def supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Pretender]:
    class Fresh(Pretender):
        pass

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running, "Supervisor", Fresh)
    return Fresh


def test_a_crawl_ends_with_what_to_do_next(supervisor: type[Pretender], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(HOME) == 0
    captured = capsys.readouterr()
    assert "Finished." in captured.out
    for step in ("harvestman status crawl-data", "harvestman export crawl-data", "harvestman why URL"):
        assert step in captured.out
    assert "0:00:06 done" in captured.err
    assert supervisor.last.seeds == ["http://127.0.0.1:9009/"]


def test_it_says_first_what_it_will_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*HOME, "--contact", "me@example.org"]) == 0
    first = capsys.readouterr().err.splitlines()[0]
    assert first.startswith("Crawling 1 seed (scope site) into crawl-data, as Harvestman/")
    assert first.endswith(" (+me@example.org), 1 s between requests to a host")


def test_a_crawl_that_fetched_nothing_is_no_success(
    tmp_path: Path, supervisor: type[Pretender], capsys: pytest.CaptureFixture[str]
) -> None:
    supervisor.pages = 0
    crawled.write(tmp_path / "crawl-data")
    more = ["silent.example", "https://example.org/old", "--contact", "me@example.org"]
    assert main(["crawl", *more]) == 6
    said = capsys.readouterr().out
    assert said.startswith("Nothing could be fetched.")
    assert "robots.txt cannot be had (timeout: no first byte)" in said
    assert "https was assumed: try http://silent.example/" in said
    assert "redirected to https://example.org/new, which is never seen" in said
    assert main(["crawl", "--json"]) == 6
    assert len(json.loads(capsys.readouterr().out)["failed_seeds"]) == 3
    supervisor.reason = "max-pages"
    assert main(["crawl"]) == 0


def test_the_summary_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*HOME, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["reason"], found["run_pages"], found["waiting"]) == ("finished", 3, 0)


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*HOME, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_going_on_takes_the_settings_over(supervisor: type[Pretender], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*HOME, "--delay", "0.25", "--workers", "2", "--max-pages", "9"]) == 0
    capsys.readouterr()
    assert main(["crawl"]) == 0
    config = supervisor.last.config
    assert (config.politeness.delay, config.workers, config.limits.max_pages) == (0.25, 2, 0)
    assert config.allow == ("127.0.0.0/8",)
    assert supervisor.last.seeds == ["http://127.0.0.1:9009/"]
    assert "Going on with crawl-data as before" in capsys.readouterr().err


def test_the_scope_stays(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*HOME, "--scope", "host"]) == 0
    assert main(["crawl", "--scope", "host"]) == 0
    assert main(["crawl", "--scope", "site"]) == 2
    assert "began with scope 'host'" in capsys.readouterr().err


def test_going_on_with_a_public_crawl_needs_its_contact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    crawled.write(tmp_path / "crawl-data")
    assert main(["crawl"]) == 2
    assert "--contact" in capsys.readouterr().err
    assert main(["crawl", "--contact", "me@example.org"]) == 0
    assert main(["crawl"]) == 0
    assert "5 URLs on hosts" in capsys.readouterr().out


def test_seeds_from_everywhere(tmp_path: Path, supervisor: type[Pretender], capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("http://127.0.0.2/\nnot a url\n" + "::\n" * 20)
    (tmp_path / "b.csv").write_text("1,http://127.0.0.3/\n")
    (tmp_path / "c.toml").write_text('seeds = ["http://127.0.0.4/"]\n')
    assert main([*HOME, "--seeds", "a.txt", "b.csv", "--config", "c.toml"]) == 0
    ends = {seed.removeprefix("http://127.0.0.") for seed in supervisor.last.seeds}
    assert ends == {"1:9009/", "2/", "3/", "4/"}
    said = capsys.readouterr().err
    assert "a.txt:2: not a URL" in said
    assert "and 11 more lines" in said


def test_a_hurried_crawl_is_remarked_upon(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crawl", "https://example.org", "--contact", "me@example.org", "--delay", "0.5"]) == 0
    assert "owners agreed" in capsys.readouterr().err


def test_ctrl_c_drains_and_a_second_one_halts(supervisor: type[Pretender], capsys: pytest.CaptureFixture[str]) -> None:
    supervisor.interrupts = 1
    assert main(HOME) == 130
    assert supervisor.last.told == ["drain"]
    supervisor.interrupts = 2
    assert main(HOME) == 130
    assert supervisor.last.told == ["drain", "halt"]
    captured = capsys.readouterr()
    assert "Ctrl-C again" in captured.err
    assert "nothing is lost" in captured.out


def test_what_is_old_is_deleted_when_a_run_has_ended_by_itself(
    tmp_path: Path, supervisor: type[Pretender], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[tuple[Retention, ...], bool]] = []

    def deleted(config: Config, quiet: bool) -> None:
        asked.append((config.retention, lock.is_locked(Path(config.data))))

    monkeypatch.setattr(running, "by_itself", deleted)
    rules = tmp_path / "rules.toml"
    rules.write_text("[[retention]]\nolder_than = 86400\n")
    supervisor.interrupts = 1
    assert main([*HOME, "--config", str(rules)]) == 130
    assert asked == []
    supervisor.interrupts = 0
    assert main(HOME) == 0
    assert asked == [((Retention(Seconds(86_400.0)),), False)]  # remembered, and nobody holds the crawl


def test_ends(supervisor: type[Pretender], capsys: pytest.CaptureFixture[str]) -> None:
    supervisor.reason = "max-pages"
    assert main([*HOME, "--max-pages", "3"]) == 0
    assert "page limit" in capsys.readouterr().out
    supervisor.failure = WorkerDied("worker 0 died 5 times in a row")
    assert main(HOME) == 4
    assert "worker 0 died" in capsys.readouterr().err


def test_one_crawl_at_a_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with lock.locked(tmp_path / "crawl-data"):
        assert lock.is_locked(tmp_path / "crawl-data")
        assert main(HOME) == 3
        assert f"in use by another crawl (process {os.getpid()})" in capsys.readouterr().err
    assert not lock.is_locked(tmp_path / "crawl-data")
    assert main(HOME) == 0


# -- --sim -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_simulated_web_is_served_and_stopped(tmp_path: Path) -> None:
    with simulated.simulated(Plan(3, 2), tmp_path / "d") as web:
        assert web.seeds[0].startswith("http://h0001.test:")
        assert web.dns.startswith("127.0.0.1:")
        assert web.log.exists()


def test_the_simulated_web_spares_other_data(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="no simulated crawl made it"), simulated.simulated(Plan(3, 2), tmp_path / "d"):
        pass
    assert (tmp_path / "d" / "thesis.txt").exists()


@pytest.mark.slow
def test_an_incomplete_simulated_crawl_breaks_a_promise(
    supervisor: type[Pretender], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["crawl", "--sim", "--sim-hosts", "3", "--sim-pages", "2", "--json"]) == 5
    found = json.loads(capsys.readouterr().out)
    assert found["audit"]["broken"] == ["coverage"]
    assert supervisor.last.config.data == "sim-data"
    assert supervisor.last.config.scope == "all"
    supervisor.reason = "max-pages"
    assert main(["crawl", "--sim", "--sim-hosts", "3", "--sim-pages", "2", "--max-pages", "1"]) == 0
    assert "kept its promises" in capsys.readouterr().out
