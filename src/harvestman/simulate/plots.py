"""Pictures of a simulation: SVG written by hand, so that a report is one file that needs nothing else.

`board` is a picture of its own; `page` is the HTML report around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import ceil, floor, log10

from harvestman.simulate.report import Report

WIDTH, HEIGHT = 460, 250
"""Of one plot."""
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 34, 38
NAMES = 92
"""Room for names beside their bars."""
COLUMNS = 2
BLUE, ORANGE, GREEN, RED, GREY = "#2f6fb3", "#d9822b", "#3c9a5f", "#c23b3b", "#8a8f98"

Point = tuple[float, float]
Ticks = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a plot."""

    name: str
    colour: str
    points: Sequence[Point]
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """From numbers to places in a plot."""

    x: tuple[float, float]
    y: tuple[float, float]

    def place(self, point: Point) -> Point:
        across = (point[0] - self.x[0]) / ((self.x[1] - self.x[0]) or 1.0)
        up = (point[1] - self.y[0]) / ((self.y[1] - self.y[0]) or 1.0)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)


def board(report: Report) -> str:
    """All plots in one picture."""
    plots = [
        _coverage(report), _freshness(report), _requests(report), _politeness(report), _sites(report), _waiting(report),
        _statuses(report),
        *([_memory(report)] if any(size for _, size in report.machine.memory) else []),
    ]  # fmt: skip
    rows = ceil(len(plots) / COLUMNS)
    placed = "".join(
        f'<g transform="translate({index % COLUMNS * WIDTH},{index // COLUMNS * HEIGHT})">{plot}</g>'
        for index, plot in enumerate(plots)
    )
    wide, high = COLUMNS * WIDTH, rows * HEIGHT
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" '
        f'font-family="system-ui, sans-serif" font-size="11"><rect width="{wide}" height="{high}" fill="#fff"/>'
        f"{placed}</svg>\n"
    )


def page(report: Report) -> str:
    """The report as one HTML file."""
    verdict = "every promise kept" if report.ok else "PROMISES BROKEN"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>harvestman simulate</title>'
        "<style>body{font:15px/1.5 system-ui,sans-serif;max-width:960px;margin:2em auto;padding:0 1em}"
        "pre{background:#f4f5f7;padding:1em;overflow-x:auto;font-size:13px}svg{max-width:100%;height:auto}</style>"
        f"<h1>{report.days:g} simulated days: {verdict}</h1>"
        f"<pre>{escape(report.render())}</pre>{board(report)}</html>\n"
    )


# -- the plots ---------------------------------------------------------------------------------------------------------


def _coverage(report: Report) -> str:
    points = [(0.0, 0.0), *((each.day, each.coverage) for each in report.samples)]
    return _lines("Coverage of the pages that robots.txt allows", [Series("fetched", BLUE, points)], _percent)


def _freshness(report: Report) -> str:
    samples = report.samples
    lines = [
        Series("average", GREY, [(each.day, each.fresh) for each in samples]),
        Series("by importance", BLUE, [(each.day, each.weighted) for each in samples]),
    ]
    best = report.freshness.best_weighted
    if best:
        lines.append(Series("best possible", GREEN, [(report.days / 2, best), (report.days, best)], dashed=True))
    return _lines("Freshness of what we have", lines, _percent)


def _requests(report: Report) -> str:
    points = [
        (after.day, (after.requests - before.requests) / ((after.day - before.day) * 24))
        for before, after in pairwise(report.samples)
        if after.day > before.day
    ]
    return _lines("Requests an hour", [Series("requests", BLUE, points)], _short)


def _waiting(report: Report) -> str:
    points = [(each.day, float(each.waiting)) for each in report.samples]
    return _lines("Queue: URLs that wait for a first answer", [Series("waiting", ORANGE, points)], _short)


def _memory(report: Report) -> str:
    points = [(float(pages), size / 1e6) for pages, size in report.machine.memory]
    lines = [Series("MB", RED, points)]
    return _lines("Memory of the process, MB", lines, _short, across="pages fetched", bottom=_short)


def _politeness(report: Report) -> str:
    """Every host a dot: what it was promised, and the smallest gap it saw. None may lie below the line."""
    dots = [(log10(max(promised, 0.01)), log10(max(gap, 0.01))) for promised, gap in report.politeness.shown]
    if not dots:
        return _lines("Politeness: smallest gap each host saw", [], _short)
    low = min(0.0, *(min(dot) for dot in dots))
    high = max(1.0, *(max(dot) for dot in dots))
    frame = Frame((low - 0.1, max(1.1, *(dot[0] + 0.1 for dot in dots))), (low - 0.1, high + 0.1))
    marks = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{BLUE if kept else RED}" fill-opacity="0.35"/>'
        for (x, y), kept in ((frame.place(dot), dot[1] >= dot[0] - 0.001) for dot in dots)
    )
    (x1, y1), (x2, y2) = frame.place((low, low)), frame.place((frame.x[1], frame.x[1]))
    line = f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{RED}" stroke-dasharray="4 3"/>'
    title = "Politeness: smallest gap each host saw, s; line: its promise"
    return _axes(title, frame, _power, _power, "promised gap, s") + marks + line


def _sites(report: Report) -> str:
    rows = [(each.site, each.busiest_day, f"{each.busiest_day:,}") for each in report.sites]
    return _bars(f"Requests on the busiest day, of {report.budget_a_day:,} a site may get", rows)


def _statuses(report: Report) -> str:
    rows = sorted(((name, count, f"{count:,}") for name, count in report.statuses.items()), key=lambda row: -row[1])
    return _bars("What became of the URLs", rows)


# -- what they are made of ---------------------------------------------------------------------------------------------


def _lines(
    title: str, lines: Sequence[Series], left: Ticks, *, across: str = "days", bottom: Ticks | None = None
) -> str:
    points = [point for series in lines for point in series.points] or [(0.0, 0.0)]
    highest = max(point[1] for point in points)
    top = 1.0 if left is _percent else _round_up(highest)
    frame = Frame((min(0.0, *(point[0] for point in points), 0.0), max(point[0] for point in points)), (0.0, top))
    drawn = "".join(_line(frame, series) for series in lines)
    return _axes(title, frame, left, bottom or _short, across) + drawn + (_legend(lines) if len(lines) > 1 else "")


def _bars(title: str, rows: Sequence[tuple[str, int, str]]) -> str:
    most = max([1, *(value for _, value, _ in rows)])
    step = min(24.0, (HEIGHT - TOP - 10) / max(1, len(rows)))
    bars = []
    for index, (name, value, label) in enumerate(rows):
        top, length = TOP + index * step, (WIDTH - NAMES - 80) * value / most
        bars.append(
            f'<text x="{NAMES - 6}" y="{top + step * 0.65:.1f}" text-anchor="end" fill="#444">{escape(name)}</text>'
            f'<rect x="{NAMES}" y="{top + 2:.1f}" width="{length:.1f}" height="{step - 4:.1f}" fill="{BLUE}"/>'
            f'<text x="{NAMES + length + 4:.1f}" y="{top + step * 0.65:.1f}" fill="#444">{label}</text>'
        )
    return _title(title) + "".join(bars)


def _line(frame: Frame, series: Series) -> str:
    if not series.points:
        return ""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(frame.place, series.points))
    dashes = ' stroke-dasharray="5 4"' if series.dashed else ""
    return f'<polyline points="{path}" fill="none" stroke="{series.colour}" stroke-width="1.8"{dashes}/>'


def _legend(lines: Sequence[Series]) -> str:
    entries = []
    for index, series in enumerate(lines):
        x, y = WIDTH - RIGHT - 100, HEIGHT - BOTTOM - 14 * (len(lines) - index) + 4
        entries.append(
            f'<rect x="{x - 14}" y="{y - 8}" width="10" height="8" fill="{series.colour}"/>'
            f'<text x="{x}" y="{y}" fill="#444">{escape(series.name)}</text>'
        )
    return "".join(entries)


def _title(text: str) -> str:
    return f'<text x="12" y="20" font-size="13" font-weight="600" fill="#222">{escape(text)}</text>'


def _axes(title: str, frame: Frame, left: Ticks, bottom: Ticks, across: str) -> str:
    parts = [_title(title)]
    for value in _steps(*frame.y, 4):
        (x, y), (end, _) = frame.place((frame.x[0], value)), frame.place((frame.x[1], value))
        parts.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{end:.1f}" y2="{y:.1f}" stroke="#e3e5e8"/>')
        parts.append(f'<text x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end" fill="#666">{left(value)}</text>')
    for value in _steps(*frame.x, 6):
        x, y = frame.place((value, frame.y[0]))
        parts.append(f'<text x="{x:.1f}" y="{y + 15:.1f}" text-anchor="middle" fill="#666">{bottom(value)}</text>')
    middle = LEFT + (WIDTH - LEFT - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle" fill="#666">{escape(across)}</text>')
    return "".join(parts)


def _steps(low: float, high: float, about: int) -> list[float]:
    """Round numbers between two, about so many."""
    if high <= low:
        return [low]
    raw = (high - low) / about
    size = 10.0 ** floor(log10(raw))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw)
    return [index * step for index in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def _round_up(value: float) -> float:
    if value <= 0:
        return 1.0
    size = 10.0 ** floor(log10(value))
    return next(size * factor for factor in (1, 1.5, 2, 3, 5, 7.5, 10) if size * factor >= value)


def _percent(value: float) -> str:
    return f"{value:.0%}"


def _power(value: float) -> str:
    return _short(10 ** round(value)) if abs(value - round(value)) < 1e-6 else ""


def _short(value: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
