"""`job add`, `list` and `show`, and the jobs that `crawl` makes, with a supervisor that only pretends."""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

import msgspec
import pytest
from cases import for_each
from cli import crawled
from cli.test_running import HOME, Pretender

from harvestman import lock
from harvestman.cli import running, settings
from harvestman.cli.main import main
from harvestman.cli.terms import ttl
from harvestman.embedded.state import RocksState
from harvestman.jobs import Jobs
from harvestman.layout import Layout
from harvestman.model import JobTally, Partition, Tally
from harvestman.ports import Changes, Parcel

NEWS = "https://news.example/"


@pytest.fixture(autouse=True)
def _pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running, "Supervisor", type("Fresh", (Pretender,), {}))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A crawl of the world that was run with a contact."""
    path = tmp_path / "d"
    crawled.write(path)
    settings.remember(path, {"contact": "me@example.org"})
    return path


def jobs_in(path: Path | str) -> Jobs:
    return Jobs(Layout(Path(path)))


# -- add -------------------------------------------------------------------------------------------------------------


def test_add_prints_the_id(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "more.txt").write_text("https://more.example/\nno url at all\n")
    asked = ["--priority", "critical", "--max-depth", "1", "--scope", "host", "--ttl", "15m", "--name", "news"]
    assert main(["job", "add", str(data), NEWS, "--seeds", "more.txt", *asked]) == 0
    captured = capsys.readouterr()
    assert captured.out == "2\n"
    assert "more.txt:2: not a URL" in captured.err
    assert "Job 2 (news): 2 seeds. `harvestman crawl --data" in captured.err
    job = jobs_in(data).get(2)
    assert (job.name, job.priority, job.max_depth, job.scope, job.ttl) == ("news", "critical", 1, "host", 900.0)
    assert list(jobs_in(data).seeds(2)) == [NEWS, "https://more.example/"]


def test_add_while_the_crawl_runs(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with lock.locked(data):
        assert main(["job", "add", str(data), NEWS, "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["id"] == 2
    assert "within seconds" in captured.err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "needs seeds"),
        (["ftp://x.example"], "only http and https"),
        ([NEWS, "--scope", "near"], "no such scope"),
        ([NEWS, "--max-depth", "-1"], "negative"),
        ([NEWS, "--priority", "urgent"], "--priority"),
        ([NEWS, "--ttl", "soon"], "15m, 1h, 7d"),
        (["http://127.0.0.1/"], "may not do that: seed http://127.0.0.1/"),
    ],
)
def test_add_refuses(data: Path, capsys: pytest.CaptureFixture[str], argv: list[str], words: str) -> None:
    assert main(["job", "add", str(data), *argv]) == 2
    assert words in capsys.readouterr().err
    assert len(jobs_in(data).all()) == 1


def test_add_refuses_what_the_crawl_may_not_do(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings.remember(data, {"allow": ["127.0.0.0/8"], "politeness": {"delay": 0.0}})
    assert main(["job", "add", str(data), NEWS]) == 2
    assert "as it was started, may not do that: a crawl outside this machine needs" in capsys.readouterr().err
    assert main(["job", "add", str(data), "http://127.0.0.1:9009/"]) == 0
    assert main(["job", "add", str(data), "http://127.0.0.1:9009/", "--scope", "all"]) == 2


def test_a_job_needs_a_crawl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["add", str(tmp_path), NEWS], ["list", str(tmp_path)], ["show", str(tmp_path), "1"]):
        assert main(["job", *argv]) == 3
        assert "holds no crawl" in capsys.readouterr().err


@for_each(
    ("text", "seconds"), [("90s", 90), ("15m", 900), ("1h", 3600), ("7d", 604_800), ("2W", 1_209_600), ("1.5h", 5400)]
)
def test_lengths_of_time(text: str, seconds: float) -> None:
    assert ttl(text) == seconds


@for_each("text", ["", "7", "d", "-1d", "1 day", "0m", "1e9d", "9999d", "1h30m"])
def test_no_lengths_of_time(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        ttl(text)


# -- list and show ---------------------------------------------------------------------------------------------------


def write_tally(data: Path, index: int, jobs: dict[int, JobTally], taken: dict[int, int]) -> None:
    async def write() -> None:
        state = RocksState(Layout(data).state(index))
        marks = {Layout.seeds_mark(job): b"%d" % until for job, until in taken.items()}
        await state.commit(Changes(marks={**marks, "tally": msgspec.msgpack.encode(Tally(jobs=jobs))}))
        await state.close()

    asyncio.run(write())


def states(data: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    assert main(["job", "list", str(data), "--json"]) == 0
    return [job["state"] for job in json.loads(capsys.readouterr().out)]


@pytest.mark.slow
def test_progress_is_summed_over_the_workers(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["job", "add", str(data), NEWS, "--ttl", "1h"])
    jobs = jobs_in(data)
    sizes = {job.id: jobs.size(job.id) for job in jobs.all()}
    assert states(data, capsys) == ["waiting", "waiting"]
    write_tally(data, 0, {1: JobTally(5, 3, 2), 2: JobTally(1, 1, 1)}, sizes)
    write_tally(data, 1, {1: JobTally(2, 1, 1)}, {1: sizes[1]})
    assert states(data, capsys) == ["waiting", "waiting"], "the crawl does not run"
    with lock.locked(data):
        assert states(data, capsys) == ["running", "running"], "one worker has not looked at the seeds of job 2 yet"
    write_tally(data, 1, {1: JobTally(2, 1, 1)}, sizes)
    assert states(data, capsys) == ["waiting", "finished"]
    write_tally(data, 1, {1: JobTally(2, 4, 1)}, sizes)
    assert states(data, capsys) == ["finished", "finished"]
    assert main(["job", "list", str(data)]) == 0
    assert [line.split()[:3] for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["1", "example.org", "finished"], ["2", "news.example", "finished"]
    ]  # fmt: skip
    assert main(["job", "show", str(data), "2"]) == 0
    said = capsys.readouterr().out
    assert "Job 2 (news.example)" in said
    assert "after 1 h" in said
    assert "1, 1 of them done with" in said
    assert main(["job", "show", str(data), "3"]) == 2


def test_a_link_on_its_way_to_another_worker_keeps_a_job_open(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = {1: jobs_in(data).size(1)}
    for index in range(2):
        write_tally(data, index, {1: JobTally(1, 1, 1)}, sizes)
    assert states(data, capsys) == ["finished"]

    async def send() -> None:
        state = RocksState(Layout(data).state(0))
        await state.commit(Changes(outbox=[Parcel(Partition(1), 1, b"links")]))
        await state.close()

    asyncio.run(send())
    assert states(data, capsys) == ["waiting"]


# -- crawl -----------------------------------------------------------------------------------------------------------


def test_crawl_makes_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*HOME, "--scope", "host", "--max-depth", "3", "--name", "mine"]) == 0
    assert main([*HOME, "--scope", "host", "--max-depth", "3"]) == 0
    assert main(["crawl", "http://127.0.0.2/"]) == 0
    assert [job.name for job in jobs_in("crawl-data").all()] == ["mine"]
    assert jobs_in("crawl-data").count(1) == 2
    capsys.readouterr()
    assert main(["crawl", "http://127.0.0.3/", "--priority", "high", "--ttl", "1d"]) == 0
    captured = capsys.readouterr()
    assert "Crawling 3 seeds (2 jobs) into crawl-data" in captured.err
    assert "   2  127.0.0.3  waiting   high" in captured.out
    job = jobs_in("crawl-data").get(2)
    assert (job.scope, job.max_depth, job.priority, job.ttl) == ("host", 3, "high", 86_400.0)


def test_terms_without_seeds_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(HOME) == 0
    for option in (["--max-depth", "3"], ["--ttl", "1d"], ["--priority", "low"], ["--name", "x"]):
        assert main(["crawl", *option]) == 2
        assert "which stays" in capsys.readouterr().err
    assert main(["crawl", "--max-depth", "20", "--priority", "normal"]) == 0


def test_every_job_is_looked_at_before_anything_is_asked(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The contact was enough when the job came; then somebody took it away."""
    assert main(["job", "add", str(data), NEWS, "--scope", "all"]) == 0
    settings.remember(data, {})
    assert main(["crawl", "--data", str(data)]) == 2
    assert "--contact" in capsys.readouterr().err
    assert main(["crawl", "--data", str(data), "--contact", "me@example.org", "--delay", "0"]) == 2


def test_the_supervisor_is_told_what_was_looked_at(data: Path) -> None:
    assert main(["crawl", "https://later.example/", "--data", str(data)]) == 0
    vetted = running.Supervisor.last.vetted  # type: ignore[attr-defined]  # the pretender
    assert list(vetted) == [1]
    assert jobs_in(data).size(1) > vetted[1], "what came after is looked at again"
