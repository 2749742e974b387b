"""Counts the connections a crawl had open at a time, host by host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from harvestman.sim.log import Asked, Closed, Header, Line, Opened
from harvestman.sim.report import Report


def _lives(lines: Iterable[Line]) -> dict[str, tuple[float, float]]:
    """When each connection was opened and closed; one still open ends with the run of its server."""
    lives: dict[str, tuple[float, float]] = {}
    still: dict[str, float] = {}
    now = 0.0
    for line in lines:
        match line:
            case Opened():
                still[line.connection] = now = line.time
            case Closed():
                now = line.time
                lives[line.connection] = (still.pop(line.connection, now), now)
            case Asked():
                now = max(now, line.end)
            case Header():
                lives.update({name: (start, now) for name, start in still.items()})
                still.clear()
    lives.update({name: (start, now) for name, start in still.items()})
    return lives


def _most_at_once(spans: Iterable[tuple[float, float]]) -> int:
    events = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
    now = most = 0
    for _, step in events:
        now += step
        most = max(most, now)
    return most


def judge_connections(report: Report, lines: list[Line]) -> None:
    """The most connections that were open at once to one host, and the hosts that had more than one."""
    lives = _lives(lines)
    used: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        if isinstance(line, Asked):
            used[line.host].add(line.connection)
    for host, names in used.items():
        most = _most_at_once([lives[name] for name in names if name in lives])
        report.most_connections = max(report.most_connections, most)
        if most > 1:
            report.crowded.add(f"{host}: {most}")
