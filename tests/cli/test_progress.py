"""What is shown while a crawl runs, and the words it is shown in."""

from __future__ import annotations

import io

import pytest
from cases import for_each
from rich.console import Console

from harvestman.cli import progress, words
from harvestman.cli.progress import Lines, Pace, Screen, Silence, display
from harvestman.model import Instant, Tally
from harvestman.supervise import Progress

NOW = Instant(1_800_000_000.0)
COUNTS = {"ready": 3, "waiting": 40, "leased": 5, "resident": 48}


def at(elapsed: float, pages: int = 100, state: str = "crawling", next_at: float = 0.0, restarts: int = 0) -> Progress:
    tally = Tally(pages=pages, bytes=pages * 30_000, discovered=1_000, blocked=7, duplicates=2, settled=pages + 4)
    tally.errors = {"http_404": 4, "timeout": 6}
    return Progress(elapsed, tally, pages, COUNTS, 2, restarts, state, next_at, 0.15)


def drawn(shown: Progress) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(progress.drawn("into crawl-data", shown, (12.5, 1_000_000.0), NOW))
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_the_table_has_all_there_is_to_know() -> None:
    text = drawn(at(65.0))
    for part in (
        "0:01:05", "crawling", "100", "12.5/s", "889", "5", "3 ready", "40 waiting", "timeout 6", "http_404 4",
        "3.0 MB", "1.5 ms", "2 workers", "forbids 7",
    ):  # fmt: skip
        assert part in text, part


def test_the_table_says_what_it_waits_for() -> None:
    text = " ".join(drawn(at(65.0, state="waiting", next_at=NOW + 90)).split())
    assert "the next may be asked in 1 min 30 s" in text


def test_the_table_tells_of_draining_and_of_deaths() -> None:
    assert "Ctrl-C again" in drawn(at(1.0, state="draining"))
    assert "1 worker died and was started again" in drawn(at(1.0, restarts=1))
    assert "2 workers died and were started again" in progress.line(at(1.0, restarts=2), 1.0, NOW)


def test_cpu_is_shown_when_start_up_no_longer_dominates() -> None:
    assert "- CPU/page" in progress.line(at(1.0, pages=99), 1.0, NOW)


def test_one_line() -> None:
    assert progress.line(at(65.0), 12.5, NOW) == (
        "0:01:05 crawling, 100 pages (12.5/s), 889 queued, hosts 3 ready 40 waiting, 5 in flight, 10 errors, "
        "3.0 MB, 1.5 ms CPU/page"
    )


def test_lines_come_every_five_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()
    for half in range(1, 41):
        lines.show(at(half / 2))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 4


def test_silence(capsys: pytest.CaptureFixture[str]) -> None:
    silence = display("x", quiet=True)
    silence.show(at(100.0))
    silence.say("hello")
    silence.close()
    assert isinstance(silence, Silence)
    assert capsys.readouterr() == ("", "")


def test_without_a_terminal_there_are_lines() -> None:
    assert isinstance(display("x", quiet=False), Lines)


def test_the_screen_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen("into crawl-data")
    screen.show(at(1.0))
    screen.say("[bold] is no markup")
    screen.close()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "[bold] is no markup" in captured.err


def test_pace_is_of_late() -> None:
    pace = Pace()
    for second in range(20):
        pace.add(at(float(second), pages=0 if second < 10 else (second - 10) * 50))
    assert pace.rates()[0] == pytest.approx(50.0)


@for_each(
    ("seconds", "text"),
    [(0.44, "0.4 s"), (0, "0 s"), (2, "2 s"), (59.6, "1 min"), (65, "1 min 5 s"), (3600, "1 h"), (7320, "2 h 2 min"),
     (200_000, "2 d 7 h")],
)  # fmt: skip
def test_spans(seconds: float, text: str) -> None:
    assert words.span(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (999_999, "1.0 MB"), (3e13, "30.0 TB")]
)
def test_sizes(number: float, text: str) -> None:
    assert words.size(number) == text


def test_lists() -> None:
    assert words.listed({"a": 1, "b": 3, "c": 2}, 2) == "b 3, c 2, 1 other kind"
    assert words.listed({}) == ""
    assert words.plural(1, "page") == "1 page"
    assert words.ahead(Instant(NOW - 1), NOW) == "now"
    assert words.ahead(Instant(NOW + 5), NOW) == "2027-01-15 08:00:05 UTC (in 5 s)"
