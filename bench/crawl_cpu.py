"""What does a page cost? CPU ms per page of a whole crawl, all of it on, and by stage.

The clean simulated web on loopback, plain HTTP: robots.txt, politeness clocks (the pause between requests set to 0; the
cap of 10 requests a second for a site stays), links, main text, language, SimHash, WARC, page log, durable state. CPU
time is user + system of the crawling processes, start-up and closing included; never the simulated web's.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
from _crawl import Crawled
from _run import ROOT, Report, Row, Spent, options, run_child
from _sim import SimulatedWeb, scratch, simulated_web
from _stages import STAGES, START, WAIT, count, stale

from harvestman.store.pages import read_pages
from harvestman.supervise import MALLOC

RATE = 200
"""Samples a second."""


def _arguments() -> argparse.Namespace:
    parser = options(__doc__ or "")
    parser.add_argument("--hosts", type=int, default=600)
    parser.add_argument("--pages", type=int, default=25, help="of each host")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2], help="worker counts to measure in turn")
    parser.add_argument("--rounds", type=int, default=1, help="how often each is measured")
    parser.add_argument("--profile", action="store_true", help="one more crawl under py-spy: the share of every stage")
    return parser.parse_args()


def crawl(web: SimulatedWeb, data: Path, workers: int, profile: Path | None = None) -> tuple[Crawled, Spent]:
    """One crawl of everything there is, in a process of its own."""
    seeds = data / "seeds-given.txt"
    seeds.write_text("\n".join(web.seeds))
    words = ["bench/_crawl.py", str(data / "crawl"), web.dns, str(workers), "0", str(seeds)]
    profilers: list[subprocess.Popen[bytes]] = []
    watch = (lambda pid: profilers.append(_attach(pid, profile))) if profile else (lambda _: None)
    spent = run_child(words, watch, MALLOC)
    for profiler in profilers:  # it ends with what it watches
        profiler.wait(60)
    crawled = msgspec.json.decode(spent.output, type=Crawled)
    if crawled.tally.pages != web.plan.hosts * web.plan.pages:
        print(f"not the whole web: {crawled.tally}", file=sys.stderr)
    return crawled, spent


def _attach(pid: int, output: Path | None) -> subprocess.Popen[bytes]:
    spy = shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")
    if spy is None:
        raise SystemExit("--profile needs py-spy: pip install py-spy")
    words = [spy, "record", "--pid", str(pid), "--rate", str(RATE), "--format", "raw", "--output", str(output)]
    return subprocess.Popen([*words, "--duration", "3600"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def figures(workers: int, crawled: Crawled, spent: Spent) -> Row:
    pages = max(1, crawled.tally.pages)
    name = "1 worker" if workers == 1 else f"{workers} workers, supervised"
    peaks = " + ".join(f"{peak / 1e6:.0f}" for peak in crawled.peaks)
    return (
        name, pages, spent.cpu / pages * 1e3, crawled.crawl_cpu / pages * 1e3, pages / spent.cpu,
        pages / crawled.crawl_wall, peaks, crawled.tally.bytes // pages,
    )  # fmt: skip


HEAD = (
    "crawl", "pages", "CPU ms/page", "without start-up", "pages/CPU s", "pages/s wall", "RSS MB", "wire bytes/page"
)  # fmt: skip


def links_per_page(data: Path) -> tuple[float, float]:
    """Links and characters of main text of the average page, from the crawl's page log."""
    pages = links = text = 0
    for page in read_pages(data / "crawl" / "pages"):
        pages, links, text = pages + 1, links + len(page.links), text + len(page.text)
    return links / max(1, pages), text / max(1, pages)


def by_stage(report: Report, crawled: Crawled, profiled: Crawled, profile: Path) -> None:
    """The point of it: shares by py-spy, times by the clock of the crawl that nobody watched."""
    with profile.open(encoding="utf-8", errors="replace") as lines:
        stages, others = count(lines)
    pages = crawled.tally.pages
    crawling = sum(samples for name, samples in stages.items() if name not in (START, WAIT))
    python = crawled.python_cpu / pages * 1e3
    rows: list[Row] = [
        (name, stages[name] / crawling * python, f"{stages[name] / crawling:.1%}", stages[name])
        for name in STAGES if name not in (START, WAIT) and stages[name]
    ]  # fmt: skip
    rows.append(("sum, the thread that runs Python", python, "100.0%", crawling))
    rows.append(("RocksDB's and the disk's threads", crawled.crawl_cpu / pages * 1e3 - python, "", ""))
    rows.append(("in all, without start-up", crawled.crawl_cpu / pages * 1e3, "", ""))
    report.table(("stage", "CPU ms/page", "share", "samples"), rows)
    watched = profiled.crawl_cpu / profiled.tally.pages * 1e3
    report.say(f"py-spy at {RATE} Hz; the crawl it watched took {watched:.3f} ms a page")
    if lost := stale(ROOT / "src" / "harvestman"):
        report.say(f"stages that name nothing any more: {', '.join(lost)}")
    report.say("other: " + ", ".join(f"{frame} {samples}" for frame, samples in others.most_common(4)))


def measure(report: Report, wanted: argparse.Namespace, web: SimulatedWeb) -> None:
    rows: list[Row] = []
    first: Crawled | None = None
    for workers in [workers for _ in range(wanted.rounds) for workers in wanted.workers]:
        with scratch() as data:
            crawled, spent = crawl(web, data, workers)
            rows.append(figures(workers, crawled, spent))
            if workers == 1 and (first is None or crawled.crawl_cpu < first.crawl_cpu):
                first, (links, text) = crawled, links_per_page(data)
    report.table(HEAD, rows)
    if first is None:
        return
    report.say(
        f"{links:.0f} links and {text:,.0f} characters of main text a page; 1 robots.txt per {web.plan.pages} pages"
    )
    report.say()
    if wanted.profile:
        with scratch() as data:
            profiled, _ = crawl(web, data, 1, data / "profile.txt")
            by_stage(report, first, profiled, data / "profile.txt")


def main() -> int:
    wanted = _arguments()
    report = Report(__doc__ or "")
    report.say(f"{wanted.hosts} hosts x {wanted.pages} pages, clean")
    with simulated_web(wanted.hosts, wanted.pages) as web:
        measure(report, wanted, web)
    report.keep(wanted.no_keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
