"""harvestman graph: what it prints, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.mending import run
from graph.linked import page, write

from harvestman.model import Link

A, B, C = "https://a.example/", "https://b.example/", "https://c.example/page"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pages = [page(A, Link(B, "the b", "nofollow", place="footer"), C), page(B, C)]
    return write(tmp_path_factory.mktemp("graph") / "crawl", pages).data


def test_build_and_rank(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = run(capsys, "graph", "build", data)
    assert out.splitlines()[0] == "3 nodes, 2 edges, from 2 pages on 3 hosts of 3 sites"
    assert "1 nofollow" in out
    assert "ranked" not in out
    assert "is not ranked" in run(capsys, "graph", "top", data, code=3)[1]
    assert "ranked in " in run(capsys, "graph", "rank", data)[0]
    found = json.loads(run(capsys, "graph", "rank", data, "--nofollow", "--json")[0])
    assert (found["counts"]["edges"], found["ranking"]["engine"], found["applied"]) == (3, "embedded", None)


def test_top(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "graph", "rank", data)
    head, first, *rest = run(capsys, "graph", "top", data)[0].splitlines()
    assert head.split() == ["rank", "linked", "by", "fetched", "url"]
    assert first.split()[1:] == ["2", "no", C]
    assert len(rest) == 2
    (host,) = json.loads(run(capsys, "graph", "top", data, "--hosts", "-n", "1", "--json")[0])
    assert (host["host"], host["linking_sites"], host["in_links"]) == ("c.example", 2, 2)
    pages = json.loads(run(capsys, "graph", "top", data, "--json")[0])
    assert sum(each["rank"] for each in pages) == pytest.approx(1.0)
    assert "c.example" in run(capsys, "graph", "top", data, "--hosts")[0]


def test_a_graph_of_another_version_is_refused_and_ranking_builds_it_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write(tmp_path / "crawl", [page(A, Link(B, place="nav"))]).data
    run(capsys, "graph", "rank", data)
    made = data / "graph" / "graph.json"
    made.write_text(made.read_text().replace('"version": 2', '"version": 1'))
    for verb in (("top", data), ("links", B, "--data", data)):
        assert f"(format 1): run `harvestman graph build {data}`" in run(capsys, "graph", *verb, code=3)[1]
    run(capsys, "graph", "rank", data)
    (link,) = json.loads(run(capsys, "graph", "links", B, "--data", data, "--json")[0])["links_in"]
    assert (link["url"], link["place"]) == (A, "nav")


def test_links(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "graph", "rank", data)
    out, _ = run(capsys, "graph", "links", "b.example", "--data", data)
    assert out.splitlines()[0] == B
    assert f"  {A}  'the b'  (footer, nofollow)" in out
    found = json.loads(run(capsys, "graph", "links", C, "--data", data, "--json")[0])
    assert {each["url"] for each in found["links_in"]} == {A, B}
    assert found["links_out"] == []
    _, said = run(capsys, "graph", "links", C, "--data", data, "-n", "1")
    assert "--limit 0 lists all" in said


def test_what_makes_no_sense_is_refused(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "graph", "rank", data)
    assert "is not in the graph" in run(capsys, "graph", "links", "https://x.example/", "--data", data, code=2)[1]
    assert "must be 1 or more" in run(capsys, "graph", "top", data, "-n", "0", code=2)[1]
    assert "holds no crawl" in run(capsys, "graph", "build", tmp_path, code=3)[1]
    assert "has no link graph" in run(capsys, "graph", "top", tmp_path, code=3)[1]
    assert not (tmp_path / "graph").exists()


def test_without_numpy_the_cure_is_named(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install 'harvestman[graph]'" in run(capsys, "graph", "top", data, code=2)[1]
