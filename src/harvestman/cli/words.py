"""Numbers and moments as people read them."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

from harvestman.model import Instant

_SIZES = ("kB", "MB", "GB", "TB", "PB")


def program() -> str:
    """What to type for this program: its name if the shell would find it, else the way it was called."""
    called = Path(sys.argv[0])
    if called.name != "harvestman" or not called.exists():
        return "harvestman"
    return "harvestman" if shutil.which("harvestman") else os.path.relpath(called)


def plural(number: int, noun: str) -> str:
    """'1 page', '2,000 pages'."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def size(number: float) -> str:
    """Bytes in powers of 1,000."""
    if number < 1000:
        return f"{number:.0f} B"
    for unit in _SIZES:
        number /= 1000
        if number < 999.95 or unit == _SIZES[-1]:
            break
    return f"{number:.1f} {unit}"


def span(seconds: float) -> str:
    """A length of time: '0.4 s', '12 s', '3 min 5 s', '6 h 2 min', '2 d 4 h'."""
    if seconds < 9.95:
        return f"{seconds:.1f} s" if seconds % 1 else f"{seconds:.0f} s"
    whole = round(seconds)
    for large, small, unit, part in ((86_400, 3600, "d", "h"), (3600, 60, "h", "min"), (60, 1, "min", "s")):
        if whole >= large:
            rest = whole % large // small
            return f"{whole // large} {unit}" + (f" {rest} {part}" if rest else "")
    return f"{whole} s"


def watch(seconds: float) -> str:
    """A running time: '0:01:05'."""
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def moment(when: Instant) -> str:
    """A date in UTC: '2026-11-15 20:41:50 UTC'."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(when))


def iso(when: Instant) -> str:
    """A date for machines: '2026-11-15T20:41:50Z'; '' for none."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when)) if when else ""


def ahead(when: Instant, now: Instant) -> str:
    """A moment to come: 'now' or '2026-11-15 20:41:50 UTC (in 3 min 5 s)'."""
    return "now" if when <= now else f"{moment(when)} (in {span(when - now)})"


def listed(counts: dict[str, int], limit: int = 6) -> str:
    """Counts by kind, the largest first: 'timeout 6, http_404 5, 2 other kinds'."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{word} {count:,}" for word, count in ranked[:limit]]
    rest = len(ranked) - limit
    return ", ".join([*shown, plural(rest, "other kind")] if rest > 0 else shown)


def rendered(pages: int, waiting: int) -> str:
    """What the browsers have done and have to do."""
    return f"{pages:,} rendered, {waiting:,} waiting for a browser"
