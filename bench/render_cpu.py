"""What does a page in the browser cost? CPU ms of all its processes, and their memory.

A page whose script asks for its data and waits half a second, in a browser that is warm.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

import psutil
from _run import Report, Row, options

from harvestman.model import Instant
from harvestman.render.browser import Archived, Browser, Wanted, find_browser

SHELL = b'<!doctype html><title>Shop</title><div id="root"></div><script src="/app.js"></script>'
SCRIPT = b"""
fetch('/api/page.json').then(answer => answer.json()).then(page => setTimeout(() => {
    const add = (tag, text) => document.getElementById('root').appendChild(
        Object.assign(document.createElement(tag), {textContent: text}));
    page.paragraphs.forEach(text => add('p', text));
    page.links.forEach(url => add('a', url).setAttribute('href', url));
}, 500));
"""
PARAGRAPH = "A sentence that a script has put into the page. " * 8


def answers() -> dict[str, Archived]:
    paragraphs = ",".join(f'"{PARAGRAPH}"' for _ in range(40))
    links = ",".join(f'"/page{number}.html"' for number in range(60))
    data = f'{{"paragraphs": [{paragraphs}], "links": [{links}]}}'
    return {
        "/app.js": Archived(200, {"content-type": "text/javascript"}, SCRIPT),
        "/api/page.json": Archived(200, {"content-type": "application/json"}, data.encode()),
    }


async def rendered(path: str, pages: int) -> tuple[list[Row], int]:
    there = answers()

    async def provide(wanted: Wanted) -> Archived | None:
        return there.get(wanted.url.removeprefix("http://shop.test"))

    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(path, Path(profile), seconds=10.0, recycle=1_000_000, user_agent="Harvestman/bench")
        shell, at = Archived(200, {"content-type": "text/html"}, SHELL), Instant(1_700_000_000.0)
        wall, ours = time.perf_counter(), time.process_time()
        await browser.render("http://shop.test/", shell, provide, at)
        rows: list[Row] = [("the first, with the start", *_took(wall, ours, 0.0, browser.cpu, 1))]
        wall, ours, before, size = time.perf_counter(), time.process_time(), browser.cpu, 0
        for number in range(pages):
            result = await browser.render(f"http://shop.test/{number}", shell, provide, at)
            assert result.html.count("<a href") == 60, result
            size = len(result.html)
        rows.append((f"{pages} more, each", *_took(wall, ours, before, browser.cpu, pages)))
        held = sum(each.memory_info().rss for each in psutil.Process().children(recursive=True))
        await browser.close()
    return [(*row, size) for row in rows], held


def _took(wall: float, ours: float, before: float, after: float, pages: int) -> tuple[float, float, float]:
    spent = (after - before, time.process_time() - ours, time.perf_counter() - wall)
    return spent[0] / pages * 1e3, spent[1] / pages * 1e3, spent[2] / pages * 1e3


def _arguments() -> argparse.Namespace:
    parser = options(__doc__ or "")
    parser.add_argument("--pages", type=int, default=50)
    parser.add_argument("--browser", default="", help="the program; empty for the one that is found")
    return parser.parse_args()


def main() -> int:
    wanted = _arguments()
    path = find_browser(wanted.browser)
    if path is None:
        print("no browser here: apt install chromium-headless-shell", file=sys.stderr)
        return 1
    report = Report(__doc__ or "")
    report.say(f"{Path(path).name}")
    rows, held = asyncio.run(rendered(path, wanted.pages))
    report.table(("renders", "CPU ms", "CPU ms of ours", "wall ms", "characters"), rows)
    report.say(f"memory of all its processes: {held / 1e6:.0f} MB (what they share counted in each)")
    report.keep(wanted.no_keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
