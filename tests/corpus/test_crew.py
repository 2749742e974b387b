"""Processes: what is done is counted, what dies is named, what is stopped is finished."""

from __future__ import annotations

from pathlib import Path

from corpus.deeds import work

from harvestman.corpus.crew import Crew


def test_a_crew(tmp_path: Path) -> None:
    crew: Crew[tuple[str, str]] = Crew(2, [])
    told: list[int] = []
    tasks = [("go", str(tmp_path / f"{n}")) for n in range(4)]
    dying = ("die", "")
    assert crew.run([*tasks[:2], dying, *tasks[2:]], work, lambda done, running: told.append(done)) == [dying]
    assert told[-1] == 4
    assert len(list(tmp_path.iterdir())) == 4


def test_stopping_finishes_what_is_under_way(tmp_path: Path) -> None:
    crew: Crew[tuple[str, str]] = Crew(1, [])
    tasks = [("linger", str(tmp_path / f"{n}")) for n in range(5)]
    assert crew.run(tasks, work, lambda done, running: crew.stop()) == []
    assert 1 <= len(list(tmp_path.iterdir())) < 5


def test_abandoning_does_not(tmp_path: Path) -> None:
    crew: Crew[tuple[str, str]] = Crew(1, [])
    tasks = [("sleep", str(tmp_path / f"{n}")) for n in range(3)]
    assert crew.run(tasks, work, lambda done, running: crew.abandon()) == tasks[:1]
    assert list(tmp_path.iterdir()) == []
