"""Can a page stall a worker? CPU ms of hostile pages (tests/stages/hostile.py), and of real pages spoilt by chance.

No page may cost more than 100 ms or raise. Each is the best of so many runs, in the CPU time of its own thread: others
on the machine still slow it down, by up to a half.
"""

from __future__ import annotations

import sys
import time

from _run import ROOT, Report, Row, options
from pages_cpu import URL, real_pages, simulated_pages

from harvestman.model import Parsed
from harvestman.pages.language import language
from harvestman.pages.parse import parse

sys.path.insert(0, str(ROOT / "tests"))
from stages.hostile import HOSTILE, HTML, PROSE, spoilt

MOST = 100.0


def cost(body: bytes, runs: int) -> tuple[float, Parsed]:
    """CPU ms of the best run, and what came of it."""
    best = float("inf")
    for _ in range(runs):
        began = time.thread_time()
        parsed = parse(body, HTML, URL)
        language(parsed.text)
        best = min(best, time.thread_time() - began)
    return best * 1000, parsed


def main() -> int:
    parser = options(__doc__ or "")
    parser.add_argument("--runs", type=int, default=3, help="of which the best counts")
    parser.add_argument("--spoilt", type=int, default=300, help="how many pages are spoilt by chance")
    parser.add_argument("--seed", type=int, default=1, help="of the first of them; each has the next")
    parser.add_argument("--top", type=int, default=25, help="how many are shown")
    wanted = parser.parse_args()
    report = Report(__doc__ or "")
    language(PROSE)  # the model is loaded
    rows: list[Row] = []
    for name, make in HOSTILE.items():
        body = make()
        spent, parsed = cost(body, wanted.runs)
        rows.append((name, len(body), spent, len(parsed.links), len(parsed.text), parsed.cut))
    pages = real_pages(40) or simulated_pages()
    for seed in range(wanted.seed, wanted.seed + wanted.spoilt):
        body = spoilt(pages, seed)
        spent, parsed = cost(body, 1)
        rows.append((f"spoilt, seed {seed}", len(body), spent, len(parsed.links), len(parsed.text), parsed.cut))
    rows.sort(key=lambda row: -float(str(row[2])))
    report.table(("page", "bytes", "CPU ms", "links", "text", "cut"), rows[: wanted.top])
    over = [row[0] for row in rows if float(str(row[2])) > MOST]
    said = "all" if not over else f"all but {len(over)} ({', '.join(map(str, over))})"
    report.say(f"{len(rows)} pages, none raised; {said} below {MOST:.0f} ms")
    report.keep(wanted.no_keep)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
