"""What every benchmark shares: who ran it, on what, and a file of results that nobody overwrites."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
SUITES = Path(os.environ.get("SUITES", ROOT.parent / "shared" / "suites"))
Row: TypeAlias = Sequence[object]


def options(question: str) -> argparse.ArgumentParser:
    """A parser with what every benchmark understands."""
    parser = argparse.ArgumentParser(description=question, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--no-keep", action="store_true", help="print only, leave nothing in bench/results")
    return parser


class Report:
    """Prints as it goes, and keeps what it printed: bench/results/YYYY-MM-DD-HHMM-<name>.txt."""

    def __init__(self, question: str) -> None:
        self._name = Path(sys.argv[0]).stem
        self._started = time.localtime()
        self._lines: list[str] = []
        self.say(question.partition("\n")[0])
        for label, value in machine().items():
            self.say(f"  {label:<8} {value}")
        self.say()

    def say(self, line: str = "") -> None:
        self._lines.append(line)
        print(line, flush=True)

    def table(self, head: Row, rows: Sequence[Row]) -> None:
        """Columns aligned, the first to the left, the others to the right."""
        cells = [[_cell(value) for value in row] for row in (head, *rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for row in cells:
            padded = [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
            self.say("  " + "  ".join(padded).rstrip())
        self.say()

    def keep(self, unless: bool = False) -> None:
        """Write the file, under a name nobody has taken."""
        if unless:
            return
        RESULTS.mkdir(parents=True, exist_ok=True)
        stem = f"{time.strftime('%Y-%m-%d-%H%M', self._started)}-{self._name}"
        names = [stem, *(f"{stem}-{again}" for again in range(2, 100))]
        path = next(path for name in names if not (path := RESULTS / f"{name}.txt").exists())
        with path.open("x", encoding="utf-8") as file:
            file.write("\n".join(self._lines) + "\n")
        print(f"kept: {path.relative_to(ROOT)}", file=sys.stderr)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) < 10 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def machine() -> dict[str, str]:
    """The facts without which a figure means nothing."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return {
        "date": time.strftime("%Y-%m-%d %H:%M %Z"),
        "machine": f"{_cpu()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "commit": _commit(),
        "command": " ".join(["python", os.path.relpath(sys.argv[0], ROOT), *sys.argv[1:]]),
        "load": f"{load} before the run (1, 5, 15 min)",
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown CPU")


def _commit() -> str:
    head = _git("rev-parse", "--short", "HEAD")
    changed = [line for line in _git("status", "--porcelain", "--", "src").splitlines() if line]
    return f"{head} and {len(changed)} files of src changed since" if changed else head


def _git(*words: str) -> str:
    try:
        return subprocess.run(
            ["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


@dataclass(slots=True, frozen=True)
class Spent:
    """What a child process used, its own waited-for children included; it must not start anything else."""

    cpu: float
    wall: float
    peak: int
    """Largest resident size of any one process of it, bytes."""
    output: str


def run_child(
    arguments: Sequence[str],
    started: Callable[[int], None] = lambda _: None,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Spent:
    """Run Python with these arguments to its end; its stdout is its result. Exits when the child fails.

    `started` is told the child's process id: a profiler may want it.
    """
    began, env = time.monotonic(), {**environment, **os.environ}
    child = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT, env=env)
    assert child.stdout is not None
    started(child.pid)
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{arguments[0]} ended with {child.returncode}: {output[-500:]}")
    return Spent(usage.ru_utime + usage.ru_stime, time.monotonic() - began, usage.ru_maxrss * 1024, output)


def microseconds(call: Callable[[], object], budget: float = 0.3) -> float:
    """CPU microseconds per call: the best of five rounds, which is the one least disturbed by others."""
    call()
    calls, spent = 1, 0.0
    while spent < budget / 25:
        calls *= 2
        spent = _round(call, calls)
    rounds = max(1, int(calls * budget / 5 / spent))
    return min(_round(call, rounds) / rounds for _ in range(5)) * 1e6


def _round(call: Callable[[], object], calls: int) -> float:
    began = time.process_time()
    for _ in range(calls):
        call()
    return time.process_time() - began
