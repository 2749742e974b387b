"""What is shown of a crawl while it runs, all of it on stderr: a live table on a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from harvestman.cli import words
from harvestman.model import Instant, Tally
from harvestman.supervise import Progress

LINE_EVERY = 5.0
STEADY_AFTER = 100
"""Pages of a run from which on CPU per page is shown: before, it is that of starting up."""
RATE_OVER = 5.0
"""Seconds the current pace is measured over."""
WORTH_SAYING = 2.0
"""Seconds that every host must be waited for before it is said: a crawl of few hosts rests after every request."""


class Display(Protocol):
    """Where a crawl reports to."""

    def show(self, progress: Progress) -> None: ...
    def say(self, text: str) -> None:
        """Something a person should know now."""
        ...

    def close(self) -> None: ...


def display(title: str, quiet: bool) -> Display:
    """The display that fits: none, live, or lines."""
    if quiet:
        return Silence()
    return Screen(title) if sys.stderr.isatty() else Lines()


class Pace:
    """Pages and bytes a second, lately."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, int, int]] = deque()

    def add(self, progress: Progress) -> None:
        self._points.append((progress.elapsed, progress.run_pages, progress.tally.bytes))
        while progress.elapsed - self._points[0][0] > RATE_OVER and len(self._points) > 2:
            self._points.popleft()

    def rates(self) -> tuple[float, float]:
        (start, pages, volume), (end, more, larger) = self._points[0], self._points[-1]
        took = max(0.001, end - start)
        return (more - pages) / took, (larger - volume) / took


def queued(tally: Tally) -> int:
    """URLs found and not done with."""
    return max(0, tally.discovered - tally.settled - tally.blocked)


def cpu_per_page(progress: Progress) -> str:
    """CPU of the workers for each page of this run; a dash while start-up dominates."""
    return f"{progress.cpu / progress.run_pages * 1000:.1f} ms" if progress.run_pages >= STEADY_AFTER else "-"


def waiting_words(progress: Progress, now: Instant) -> str:
    """What a crawl that asks nobody waits for."""
    if progress.state != "waiting":
        return ""
    if progress.next_at > now + WORTH_SAYING:
        until = words.moment(Instant(progress.next_at))
        return f"every host is resting; the next may be asked in {words.span(progress.next_at - now)} ({until})"
    return ""


def deaths(progress: Progress) -> str:
    """Workers that did not live."""
    if not progress.restarts:
        return ""
    again = "was started again" if progress.restarts == 1 else "were started again"
    return f"{words.plural(progress.restarts, 'worker')} died and {again}"


class Silence:
    """--quiet."""

    def show(self, progress: Progress) -> None:
        return None

    def say(self, text: str) -> None:
        return None

    def close(self) -> None:
        return None


class Lines:
    """One plain line every five seconds: for logs and pipes."""

    def __init__(self) -> None:
        self._pace = Pace()
        self._next = LINE_EVERY

    def show(self, progress: Progress) -> None:
        self._pace.add(progress)
        if progress.elapsed < self._next:
            return
        self._next = progress.elapsed + LINE_EVERY
        self.say(line(progress, self._pace.rates()[0], Instant(time.time())))

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        return None


def line(progress: Progress, pages_a_second: float, now: Instant) -> str:
    """How a crawl stands, in one line."""
    tally, counts = progress.tally, progress.counts
    parts = [
        f"{words.watch(progress.elapsed)} {progress.state}",
        f"{words.plural(tally.pages, 'page')} ({pages_a_second:.1f}/s)",
        f"{queued(tally):,} queued",
        f"hosts {counts.get('ready', 0):,} ready {counts.get('waiting', 0):,} waiting",
        f"{counts.get('leased', 0):,} in flight",
        f"{words.plural(sum(tally.errors.values()), 'error')}",
        *([words.rendered(tally.rendered, tally.unrendered)] if tally.rendered or tally.unrendered else []),
        words.size(tally.bytes),
        f"{cpu_per_page(progress)} CPU/page",
    ]
    return ", ".join([*parts, *(note for note in (deaths(progress), waiting_words(progress, now)) if note)])


class Screen:
    """A few lines that are drawn again and again, and vanish when the crawl is over."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._pace = Pace()
        self._console = Console(stderr=True, highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._live.start()

    def show(self, progress: Progress) -> None:
        self._pace.add(progress)
        self._live.update(drawn(self._title, progress, self._pace.rates(), Instant(time.time())), refresh=True)

    def say(self, text: str) -> None:
        self._console.print(text, markup=False)

    def close(self) -> None:
        self._live.stop()


_COLOURS = {"crawling": "green", "waiting": "yellow", "draining": "yellow", "starting": "cyan", "done": "green"}


def drawn(title: str, progress: Progress, rates: tuple[float, float], now: Instant) -> Group:
    """The live display."""
    head = Text.assemble(
        (" harvestman ", "bold reverse"), f"  {title}  ", (words.watch(progress.elapsed), "bold"), "  ",
        (progress.state, f"bold {_COLOURS.get(progress.state, 'white')}"),
    )  # fmt: skip
    table = Table(show_header=False, box=None, padding=(0, 1), pad_edge=True)
    table.add_column(style="dim", justify="right", min_width=9)
    table.add_column(justify="right", style="bold", min_width=10)
    table.add_column(overflow="fold")
    for row in _rows(progress, rates):
        table.add_row(*row)
    note = _note(progress, now)
    return Group(head, table, Text(f"  {note}", style="yellow")) if note else Group(head, table)


def _rows(progress: Progress, rates: tuple[float, float]) -> list[tuple[str, str, str]]:
    tally, counts = progress.tally, progress.counts
    mean = progress.run_pages / progress.elapsed if progress.elapsed else 0.0
    ready, waiting = counts.get("ready", 0), counts.get("waiting", 0)
    errors = tally.errors
    browser = [("browser", f"{tally.rendered:,}", f"rendered, {tally.unrendered:,} waiting")]
    return [
        ("pages", f"{tally.pages:,}", f"{rates[0]:.1f}/s now, {mean:.1f}/s mean, {tally.duplicates:,} duplicates"),
        ("queue", f"{queued(tally):,}", f"of {tally.discovered:,} URLs; robots.txt forbids {tally.blocked:,}"),
        ("hosts", f"{counts.get('leased', 0):,}", f"in flight, {ready:,} ready, {waiting:,} waiting for their turn"),
        *(browser if tally.rendered or tally.unrendered else []),
        ("errors", f"{sum(errors.values()):,}", words.listed(errors, 5)),
        ("bytes", words.size(tally.bytes), f"{words.size(rates[1])}/s now"),
        ("cpu", cpu_per_page(progress), f"a page, {words.plural(progress.workers, 'worker')}"),
    ]  # fmt: skip


def _note(progress: Progress, now: Instant) -> str:
    if progress.state == "draining":
        return "finishing what is in flight; Ctrl-C again stops at once, nothing is lost"
    if progress.restarts and progress.state == "crawling":
        return f"{deaths(progress)}; see the logs in the data directory"
    return waiting_words(progress, now)
