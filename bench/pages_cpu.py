"""What does each step of a page cost? CPU us per call, from the wire to the stored record.

On the simulated web's page of median size, and on real pages (../shared/suites, when it is there) per 100 KB of HTML.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import time
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from _run import ROOT, SUITES, Report, Row, microseconds, options
from turbohtml import parse as parse_html

sys.path.insert(0, str(ROOT / "tests"))

from corpus.articles import articles, score

from harvestman.fetch.decode import decode as remove_coding
from harvestman.model import Instant, Page, Response
from harvestman.pages import charset
from harvestman.pages.language import language
from harvestman.pages.links import LinkSet, base_of, collect, places
from harvestman.pages.metadata import read_data, read_meta
from harvestman.pages.parse import parse
from harvestman.pages.simhash import simhash, simhash_python
from harvestman.pages.text import main_text
from harvestman.pages.tree import Tree, grow
from harvestman.policy.urls import Base
from harvestman.sim.pages import Press
from harvestman.sim.plan import Plan
from harvestman.sim.web import Web
from harvestman.store.pages import PageLog
from harvestman.store.warc import WarcWriter

KIND = "text/html; charset=utf-8"
URL = "http://h0001.test/section/article.html"
NOW = Instant(1_800_000_000.0)
WHOLE = "parse, the whole of it"
MOST = 1_700.0
"""CPU us of the whole page stage per 100 KB of real HTML: the promise."""


def simulated_pages() -> list[bytes]:
    """Bodies of a few hundred simulated pages, the shortest first."""
    web = Web(Plan(hosts=20, pages=25, profile="clean"))
    press = Press(web, 80)
    return sorted((press.page(host, page) for host in web.hosts for page in range(25)), key=len)


def real_pages(limit: int) -> list[bytes]:
    """HTML files people wrote, none larger than 1 MB; empty when the suites are not there."""
    files = sorted((SUITES / "extract" / "aeb_html").glob("*.gz"))[:limit]
    return [body for body in map(gzip.decompress, map(Path.read_bytes, files)) if len(body) <= 1_000_000]


def quality_of_text() -> str:
    """How good the main text is, on the article benchmark; bench/corpus_f1.py compares it with slower means."""
    pages = articles()
    found = score((page.text, parse(page.body, KIND, page.url).text) for page in pages)
    precise, recalled, f1 = (f"{figure:.3f}" for figure in found)
    return f"F1 {f1}, precision {precise}, recall {recalled} on {len(pages)} articles"


def response(body: bytes, coding: str) -> Response:
    encoding = f"Content-Encoding: {coding}\r\n" if coding else ""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {KIND}\r\n{encoding}Content-Length: {len(body)}\r\n\r\n".encode()
    headers = {"content-type": KIND, **({"content-encoding": coding} if coding else {})}
    asked = b"GET /section/article.html HTTP/1.1\r\nHost: h0001.test\r\nAccept: */*\r\n\r\n"
    return Response(URL, 200, head, headers, body, "127.0.0.1", NOW, NOW, NOW, asked)


Step = Callable[[bytes], Callable[[], object]]
"""From a decoded body to the call to be timed; what the call needs is prepared here, outside the clock."""


def _tree(body: bytes) -> Callable[[], Tree]:
    text = charset.decode(body, KIND)[0]
    return lambda: grow(text, body)


def read_cost(work: Callable[[Tree], object], body: bytes, budget: float) -> float:
    """CPU us of reading something from a tree, each time a new one: what was read once is quicker to read again.

    The best of many, each of which is short: so little of what others do to the machine is in it.
    """
    make, best = _tree(body), float("inf")
    ends = time.thread_time() + budget
    while best == float("inf") or time.thread_time() < ends:
        tree = make()
        began = time.thread_time_ns()
        work(tree)
        best = min(best, time.thread_time_ns() - began)
    return best / 1000


def _parsed_only(body: bytes) -> Callable[[], object]:
    text = charset.decode(body, KIND)[0]
    return lambda: parse_html(text, positions=False)


def _links(tree: Tree) -> object:
    links = LinkSet(base_of(tree.document, Base(URL)), anchor_text=4 * tree.size)
    return collect(tree.document, links, tree.size, tree.tags)


def _places(tree: Tree) -> object:
    return places(tree.document, tree.document.find_all("a"), tree.tags)


def _data(tree: Tree) -> object:
    return read_data(tree.document, read_meta(tree.document, "harvestman"), tree.size)


def _of_text(work: Callable[[str], object]) -> Step:
    def step(body: bytes) -> Callable[[], object]:
        text = parse(body, KIND, URL).text
        return lambda: work(text)

    return step


READ_FROM_TREE: dict[str, Callable[[Tree], object]] = {
    "of a tree: links": _links,
    "of a tree: places of links (part of them)": _places,
    "of a tree: meta elements": lambda tree: read_meta(tree.document, "harvestman"),
    "of a tree: meta elements, JSON-LD, microdata, dates": _data,
    "of a tree: main text": lambda tree: main_text(tree.document),
}


def _ungzip(body: bytes) -> Callable[[], object]:
    wire = gzip.compress(body, 6)
    return lambda: remove_coding(wire, "gzip")


def steps(warc: WarcWriter, slow: bool) -> dict[str, Step]:
    def write(coding: str) -> Step:
        def step(body: bytes) -> Callable[[], object]:
            answer = response(gzip.compress(body, 6) if coding else body, coding)
            digest = sha256(body).hexdigest()
            return lambda: warc.write(answer, digest=digest)

        return step

    table: dict[str, Step] = {
        "gzip removed": _ungzip,
        "SHA-256 of the decoded body": lambda body: lambda: sha256(body).digest(),
        "charset found, text decoded": lambda body: lambda: charset.decode(body, KIND),
        "tree, without limits": _parsed_only,
        "tree, within limits": _tree,
        "language": _of_text(language),
        "SimHash, C": _of_text(simhash),
        "SimHash, Python": _of_text(simhash_python),
        WHOLE: lambda body: lambda: parse(body, KIND, URL),
        "WARC record, gzip body": write("gzip"),
        "WARC record, identity body": write(""),
    }
    if not slow:
        del table["SimHash, Python"]
    return table


def costs(bodies: Iterable[bytes], table: dict[str, Step], budget: float) -> dict[str, float]:
    """CPU us of every step, summed over the bodies."""
    total = dict.fromkeys([*table, *READ_FROM_TREE], 0.0)
    for body in bodies:
        for name, step in table.items():
            total[name] += microseconds(step(body), budget)
        for name, work in READ_FROM_TREE.items():
            total[name] += read_cost(work, body, budget)
    return total


def page_log_cost(log: PageLog, bodies: list[bytes], budget: float) -> float:
    """CPU us per page of a group as a crawl appends it: different pages, for equal ones compress too well."""
    parsed = [parse(body, KIND, URL) for body in bodies]
    group = [Page(URL, 200, NOW, KIND, 1, "0" * 64, text=each.text, links=each.links) for each in parsed]
    return microseconds(lambda: log.append(group), budget) / len(group)


def _arguments() -> argparse.Namespace:
    parser = options(__doc__ or "")
    parser.add_argument("--real", type=int, default=40, help="how many real pages")
    parser.add_argument("--budget", type=float, default=0.5, help="CPU seconds for each figure on the simulated page")
    return parser.parse_args()


def main() -> int:
    wanted = _arguments()
    report = Report(__doc__ or "")
    pages, real = simulated_pages(), real_pages(wanted.real)
    page = pages[len(pages) // 2]
    parsed = parse(page, KIND, URL)
    size = sum(map(len, real))
    with TemporaryDirectory(prefix="hm-bench-") as folder:
        warc = WarcWriter(Path(folder), "w00", software="bench", contact="bench@localhost", now=lambda: NOW)
        log = PageLog(Path(folder), "w00", None)
        simulated = costs([page], steps(warc, slow=True), wanted.budget)
        simulated["page log, one of 64"] = page_log_cost(log, pages[len(pages) // 2 - 32 :][:64], wanted.budget)
        found = costs(real, steps(warc, slow=False), 0.02)
        warc.close()
        log.close()
    report.say(f"simulated page: {len(page):,} bytes, {len(parsed.links)} links, {len(parsed.text):,} characters")
    report.say(f"real pages: {len(real)}, {size / max(1, len(real)):,.0f} bytes on average")
    if real:
        report.say(f"main text: {quality_of_text()}")
    rows: list[Row] = [
        (name, us, found[name] / size * 1e5 if real and name in found else "") for name, us in simulated.items()
    ]
    report.table(("step", "us, simulated page", "us per 100 KB, real"), rows)
    whole = (found[WHOLE] + found["language"]) / size * 1e5 if real else 0.0
    if real:
        verdict = "kept" if whole <= MOST else "NOT KEPT"
        report.say("page stage (charset, tree, links, metadata, text, language, SimHash) per 100 KB of real HTML:")
        report.say(f"  {whole / 1000:.2f} ms, at most {MOST / 1000} ms is promised: {verdict}")
    report.keep(wanted.no_keep)
    return 0 if whole <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
