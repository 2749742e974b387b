"""Has a change made a page dearer? Crawls by this tree and by another commit in turn, the machine's mood taken out.

A shared machine is faster by half from one second to the next, so CPU times of two crawls cannot be compared to better
than a tenth. Here every crawl does a fixed piece of work 80 times a second, of the same kind as a crawl's own, and the
result is a page's CPU time in units of that: medians of three crawls tell 2 to 3 % apart.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import msgspec
from _paced import Paced
from _run import ROOT, Report, Row, options, run_child
from _sim import scratch, simulated_web

from harvestman.supervise import MALLOC


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """A commit's files, with its kernels built."""
    with TemporaryDirectory(prefix="hm-bench-commit-") as folder:
        tree = Path(folder) / "tree"
        _run("git", "worktree", "add", "--quiet", "--detach", str(tree), commit, where=ROOT)
        try:
            _run(sys.executable, "setup.py", "--quiet", "build_ext", "--inplace", where=tree)
            yield tree
        finally:
            _run("git", "worktree", "remove", "--force", str(tree), where=ROOT)


def _run(*words: str, where: Path) -> None:
    done = subprocess.run(words, cwd=where, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words[:4])} ... failed: {done.stderr[-500:]}")


def crawl(tree: Path, hosts: int, pages: int) -> Paced:
    """One crawl by the code of a tree, of a web that this tree serves."""
    with simulated_web(hosts, pages) as web, scratch() as data:
        seeds = data / "seeds-given.txt"
        seeds.write_text("\n".join(web.seeds))
        words = ["bench/_paced.py", str(tree), str(data / "crawl"), web.dns, str(seeds)]
        return msgspec.json.decode(run_child(words, environment=MALLOC).output, type=Paced)


def main() -> int:
    parser = options(__doc__ or "")
    parser.add_argument("commit", nargs="?", default="HEAD", help="to compare the files as they are with")
    parser.add_argument("--hosts", type=int, default=300)
    parser.add_argument("--pages", type=int, default=25, help="of each host")
    parser.add_argument("--rounds", type=int, default=3)
    wanted = parser.parse_args()
    if shutil.which("git") is None:
        raise SystemExit("git is needed to get the other commit's files")
    report = Report(__doc__ or "")
    rows: list[Row] = []
    units: dict[str, list[float]] = {wanted.commit: [], "this tree": []}
    with checkout(wanted.commit) as other:
        for turn in range(wanted.rounds):
            sides = [(wanted.commit, other), ("this tree", ROOT)]
            for name, tree in sides if turn % 2 == 0 else sides[::-1]:
                paced = crawl(tree, wanted.hosts, wanted.pages)
                units[name].append(paced.cpu / paced.pages / paced.unit)
                rows.append((name, paced.pages, paced.cpu / paced.pages * 1e3, paced.unit * 1e3, units[name][-1]))
    report.table(("code of", "pages", "CPU ms/page", "fixed work, ms", "page / fixed work"), rows)
    before, after = (median(units[name]) for name in (wanted.commit, "this tree"))
    report.say(f"a page costs {after / before - 1.0:+.1%}, by the medians {before:.3f} and {after:.3f}")
    report.keep(wanted.no_keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
