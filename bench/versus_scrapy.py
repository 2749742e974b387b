"""How many pages does a CPU second fetch, ours against Scrapy's, on the same web in the same run?

The two crawl the same clean simulated web in turn, each in a process of its own; CPU time is user + system of that
process from its birth to its end, imports included.

Ours does the whole work: robots.txt, politeness clocks, DNS over the wire, links with anchors, main text, language,
SimHash, SHA-256, exact duplicates, WARC, page log, durable state, and asks a site at most ten times a second.
Scrapy fetches, obeys robots.txt, extracts the links and filters those it has seen; it keeps no state on disk, stores
nothing, extracts no text, asks a host up to eight times at once without a pause, and is given every address for free.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from statistics import median

import msgspec
import scrapy
from _crawl import Crawled
from _run import Report, Row, Spent, options, run_child
from _scrapy_crawl import Scraped
from _sim import SimulatedWeb, scratch, simulated_web

from harvestman.supervise import MALLOC


def _arguments() -> argparse.Namespace:
    parser = options(__doc__ or "")
    parser.add_argument("--hosts", type=int, default=300)
    parser.add_argument("--pages", type=int, default=20, help="of each host")
    parser.add_argument("--rounds", type=int, default=2, help="how often each of them crawls")
    parser.add_argument("--no-uvloop", action="store_true", help="give Scrapy the event loop it comes with")
    return parser.parse_args()


def ours(web: SimulatedWeb) -> tuple[int, Spent]:
    with scratch() as data:
        seeds = data / "seeds-given.txt"
        seeds.write_text("\n".join(web.seeds))
        spent = run_child(["bench/_crawl.py", str(data / "crawl"), web.dns, "1", "0", str(seeds)], environment=MALLOC)
    return msgspec.json.decode(spent.output, type=Crawled).tally.pages, spent


def theirs(web: SimulatedWeb, max_pages: int, uvloop: bool) -> tuple[int, Spent]:
    plan = web.plan
    with scratch() as data:
        seeds = data / "seeds-given.txt"
        seeds.write_text("\n".join(web.seeds))
        words = [str(plan.hosts), str(plan.pages), str(plan.seed), str(max_pages), str(int(uvloop)), str(seeds)]
        spent = run_child(["bench/_scrapy_crawl.py", *words])
    scraped = msgspec.json.decode(spent.output, type=Scraped)
    print(scraped, file=sys.stderr)
    return scraped.pages, spent


def _row(name: str, pages: int, spent: Spent) -> Row:
    return name, pages, spent.cpu / pages * 1e3, pages / spent.cpu, pages / spent.wall, f"{spent.peak / 1e6:.0f}"


def compare(report: Report, web: SimulatedWeb, rounds: int, uvloop: bool) -> float:
    """Alternating, so that a busy neighbour disturbs both; returns the ratio of the medians."""
    name = f"Scrapy {scrapy.__version__}" + (" on uvloop" if uvloop else "")
    everything = web.plan.hosts * web.plan.pages + web.plan.hosts  # Scrapy's limit counts robots.txt as a page
    rows: list[Row] = []
    rates: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(rounds):
        pages, spent = ours(web)
        rows.append(_row("Harvestman", pages, spent))
        rates["ours"].append(pages / spent.cpu)
        pages, spent = theirs(web, everything, uvloop)
        rows.append(_row(name, pages, spent))
        rates["theirs"].append(pages / spent.cpu)
    report.table(("crawler", "pages", "CPU ms/page", "pages/CPU s", "pages/s wall", "RSS MB"), rows)
    report.say(f"spread over the rounds: ours {_spread(rates['ours'])}, Scrapy {_spread(rates['theirs'])}")
    return median(rates["ours"]) / median(rates["theirs"])


def _spread(rates: Sequence[float]) -> str:
    return f"{min(rates):.0f} to {max(rates):.0f} pages per CPU second"


def main() -> int:
    wanted = _arguments()
    report = Report(__doc__ or "")
    report.say(f"{wanted.hosts} hosts x {wanted.pages} pages, clean")
    with simulated_web(wanted.hosts, wanted.pages) as web:
        ratio = compare(report, web, wanted.rounds, not wanted.no_uvloop)
    report.say(f"ours fetches {ratio:.1f} times as many pages per CPU second, doing more with each")
    report.say()
    for line in (__doc__ or "").strip().splitlines()[5:]:
        report.say(line)
    report.keep(wanted.no_keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
