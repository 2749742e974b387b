"""The front door: help, mistakes, exit codes. Nothing here crawls."""

from __future__ import annotations

import inspect
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from cli import crawled

from harvestman import __version__
from harvestman.cli import bench, status
from harvestman.cli import main as front
from harvestman.cli.main import main
from harvestman.errors import WorkerDied


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def _own_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """For who replaces what a verb does: the parser that all tests share holds the real deed."""
    monkeypatch.setattr(front, "parser", inspect.unwrap(front.parser))


@pytest.mark.parametrize("argv", [["--help"], *([verb.__name__.rpartition(".")[2], "--help"] for verb in front.VERBS)])
def test_help(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    assert "examples:" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"harvestman {__version__}\n"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "VERB"),
        (["crwal"], "crwal"),
        (["crawl", "--max-pages", "many"], "--max-pages"),
        (["crawl", "--nonsense"], "--nonsense"),
        (["crawl"], "name at least one URL"),
        (["crawl", "https://example.org"], "--contact"),
        (["crawl", "https://example.org", "--contact", "me"], "neither a URL"),
        (["crawl", "https://example.org", "--contact", "a@example.org", "--delay", "0.01"], "too fast"),
        (["crawl", "ftp://example.org"], "only http and https"),
        (["crawl", "http://127.0.0.1/"], "--allow 127.0.0.0/8"),
        (["crawl", "http://127.0.0.1/", "--allow", "nonsense"], "not a network"),
        (["crawl", "http://127.0.0.1/", "--allow", "127.0.0.0/8", "--dns", "x:y"], "IP address"),
        (["crawl", "http://127.0.0.1/", "--allow", "127.0.0.0/8", "--scope", "@none"], "cannot read"),
        (["crawl", "http://127.0.0.1/", "--allow", "127.0.0.0/8", "--scope", "near"], "no such scope"),
        (["crawl", "--seeds", "none.txt"], "none.txt"),
        (["crawl", "--config", "none.toml"], "no such file"),
        (["crawl", "--sim", "https://example.org"], "leave the URLs"),
        (["crawl", "--sim", "--dns", "127.0.0.1:53"], "leave --dns away"),
        (["crawl", "--sim", "--allow", "127.0.0.0/8"], "leave --allow away"),
        (["crawl", "--sim", "--scope", "host"], "leave --scope away"),
        (["crawl", "https://example.org", "--sim-hosts", "60"], "add --sim"),
        (["crawl", "https://example.org", "--sim-profile", "wild"], "add --sim"),
        (["crawl", "http://127.0.0.1/", "--allow", "127.0.0.0/8", "--scope", "patterns"], "@FILE"),
        (["crawl", "--sim", "--sim-hosts", "0"], "hosts must be"),
        (["audit", "none.log"], "no such log"),
        (["sim", "--pages", "0"], "pages must be"),
        (["bench", "none"], "benchmark"),
    ],
)
def test_mistakes_are_explained_without_a_traceback(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines()[-1 if "--seeds" in argv else 0].startswith("harvestman: ")
    assert words in captured.err
    assert "Traceback" not in captured.err


def test_a_refused_crawl_leaves_nothing_behind(tmp_path: Path) -> None:
    assert main(["crawl", "https://example.org"]) == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize(("output", "reason"), [("none/x", "No such file"), ("folder", "directory")])
def test_an_export_that_cannot_be_written(
    kind: str, output: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crawled.write(tmp_path / "d")
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.iterdir())
    assert main(["export", "d", "--format", kind, "--output", output]) == 2
    said = capsys.readouterr().err
    assert said.startswith("harvestman: " + output.split("/")[0])
    assert reason in said
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("more", [["--sim"], ["http://127.0.0.1:9009/", "--allow", "127.0.0.0/8"]])
def test_a_data_directory_that_cannot_be_made(
    more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["crawl", *more, "--data", "file/d"]) == 3
    said = capsys.readouterr().err
    assert said.startswith("harvestman: file/d")
    assert "Not a directory" in said


def test_a_taken_port(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["sim", "--hosts", "2", "--pages", "1", "--port", str(port), "--dns-port", "0"]) == 2
    assert f"port {port}" in capsys.readouterr().err


@pytest.mark.usefixtures("_own_parser")
def test_what_the_system_refuses_is_no_bug(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def full(options: object) -> int:
        raise OSError(28, "No space left on device", "crawl-data/warc/x")

    monkeypatch.setattr(status, "run", full)
    assert main(["status"]) == 3
    assert main(["status", "elsewhere"]) == 2
    assert capsys.readouterr().err == "harvestman: crawl-data/warc/x: No space left on device\n" * 2


def test_an_audit_needs_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.log").write_text("hello\n")
    assert main(["audit", "x.log"]) == 2
    assert "x.log:1" in capsys.readouterr().err


@pytest.mark.usefixtures("_own_parser")
def test_a_bug_says_where_to_report_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(options: object) -> int:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(status, "run", broken)
    assert main(["status"]) == 1
    captured = capsys.readouterr().err
    assert "Traceback" in captured
    assert "oops" in captured
    assert "report it with the traceback above" in captured


@pytest.mark.usefixtures("_own_parser")
@pytest.mark.parametrize(("error", "code"), [(WorkerDied("it died"), 4), (KeyboardInterrupt(), 130)])
def test_other_ends(error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(options: object) -> int:
        raise error

    monkeypatch.setattr(status, "run", ends)
    assert main(["status"]) == code


def test_bench_lists_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pages.py").write_text('"""How fast?\n\nMore."""\nimport sys\nprint(sys.argv[1:])\nsys.exit(7)\n')
    monkeypatch.setattr(bench, "FOLDER", tmp_path)
    assert main(["bench"]) == 0
    assert capfd.readouterr().out == "pages  How fast?\n"
    assert main(["bench", "pages", "--help"]) == 7
    assert capfd.readouterr().out == "['--help']\n"


def test_without_a_checkout_there_are_no_benchmarks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "FOLDER", tmp_path / "none")
    assert main(["bench"]) == 2
    assert "clone the repository" in capsys.readouterr().err


def test_help_does_not_load_the_crawler() -> None:
    code = (
        "import sys; from harvestman.cli.main import main; main(['--help']); print('harvestman.crawl' in sys.modules)"
    )
    path = os.pathsep.join(entry for entry in sys.path if entry)
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert found.stdout.splitlines()[-1] == "False"
