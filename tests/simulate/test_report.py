"""The report in words, as JSON and in pictures."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from simulate.playing import Play

from harvestman.cli.main import main
from harvestman.simulate import plots
from harvestman.simulate.judge import Broken
from harvestman.simulate.plan import Plan
from harvestman.simulate.report import Freshness, Machine, Politeness, Report

EMPTY = Report(
    Plan(10, 100, 3), 0.0, 0.0, 0, 0, 0, 0, 0, 100, {}, {}, 0, {}, 0, 0, 500_000,
    Politeness(0.0, 0.0, 0, 0, {"gap": Broken()}, []), Freshness(0.0, 0.0, 0.0, 0.0, 0.0), [], [], {},
)  # fmt: skip


def test_it_survives_json(play: Play) -> None:
    report = play(Plan(20, 200, 3), 0.05)
    again = msgspec.json.decode(report.to_json(), type=Report)
    assert again.render() == report.render()
    assert "--seed 3" in report.render()


@pytest.mark.parametrize("empty", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_pictures_are_well_formed(play: Play, empty: bool) -> None:
    report = EMPTY if empty else play(Plan(30, 300, 3, "wild"), 0.2)
    report.machine = Machine(1.0, 1.0, [(10, 50_000_000), (20, 60_000_000)])
    picture = ElementTree.fromstring(plots.board(report))
    titles = " ".join(text.text or "" for text in picture.iter("{http://www.w3.org/2000/svg}text"))
    for word in ("Coverage", "Freshness", "Requests an hour", "Politeness", "busiest day", "Queue", "Memory"):
        assert word in titles
    assert "nan" not in plots.page(report)


def test_broken_promises_are_shown() -> None:
    broken = Broken()
    broken.add("1.0 https://s0.test/ (200): <too soon>")
    report = msgspec.structs.replace(EMPTY, politeness=Politeness(0.0, 0.0, 0, 0, {"gap": broken}, []))
    assert not report.ok
    assert "gap: 1\n  1.0 https://s0.test/" in report.render()
    assert "&lt;too soon&gt;" in plots.page(report)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    html, svg = tmp_path / "r.html", tmp_path / "r.svg"
    (tmp_path / "c.toml").write_text("[politeness]\ndelay = 3.0\n")
    arguments = [
        "--hosts",
        "20",
        "--pages",
        "100",
        "--days",
        "0.05",
        "--rate",
        "0",
        "--config",
        str(tmp_path / "c.toml"),
    ]
    assert main(["simulate", *arguments, "--html", str(html), "--svg", str(svg), "--json"]) == 0
    report = msgspec.json.decode(capsys.readouterr().out, type=Report)
    assert report.politeness.smallest_gap >= 3.0 - 0.001
    assert report.machine.memory[-1][1] > 1_000_000
    assert html.read_text().startswith("<!doctype html>")
    assert svg.read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--days", "0"], "--days"),
        (["--rate", "-1"], "--rate"),
        (["--hosts", "0"], "--hosts"),
        (["--config", "none.toml"], "no such file"),
        (["--profile", "mild"], "mild"),
    ],
)
def test_mistakes(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", *arguments]) == 2
    assert words in capsys.readouterr().err
