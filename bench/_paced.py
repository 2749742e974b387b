"""The child of versus_commit: one whole crawl by the code of some tree, with a fixed piece of work done in between.

    python bench/_paced.py TREE DATA DNS SEED_FILE

Only the standard library and packages that do not change with the commit have a part in that work.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec

EVERY = 0.012
_PAGE = "<!doctype html><title>t</title>" + "".join(
    f'<p class="c{n % 7}">The quick brown fox number {n} jumps over <a href="/a/{n}">the lazy dog</a> once more.</p>\n'
    for n in range(300)
)
_URLS = [f"http://h{n % 700:04d}.test/section/{n}/page?x={n}" for n in range(20_000)]
_STRIDE = 600


class Paced(msgspec.Struct):
    """What a crawl took, and what the fixed work took beside it."""

    pages: int
    cpu: float
    """CPU seconds of the crawl, start-up and the fixed work left out."""
    unit: float
    """CPU seconds of one piece of fixed work, on average."""


class Pace:
    """The fixed work: inflating and parsing a page, and a dictionary of URLs that no cache holds."""

    def __init__(self) -> None:
        from isal import isal_zlib
        from turbohtml import parse

        self._packed = isal_zlib.compress(_PAGE.encode())
        self._inflate, self._parse = isal_zlib.decompress, parse
        self._met = dict.fromkeys(_URLS, 1)
        self._next = 0.0
        self.times = 0
        self.spent = 0.0

    def step(self) -> None:
        if time.monotonic() < self._next:
            return
        began = time.thread_time()
        self._parse(self._inflate(self._packed).decode(), positions=False)
        start = self.times * _STRIDE % (len(_URLS) - _STRIDE)
        for url in _URLS[start : start + _STRIDE]:
            if url.startswith("http://") and url.split("/", 3)[2]:
                self._met[url] = self._met.get(url, 0) + 1
        self.times += 1
        self.spent += time.thread_time() - began
        self._next = time.monotonic() + EVERY


def main() -> None:
    tree, data, dns, seed_file = sys.argv[1:]
    sys.path[:0] = [f"{tree}/src", f"{tree}/bench"]  # before this file's own: everything that is measured is the tree's
    import _crawl
    import uvloop

    from harvestman.crawl import Crawler
    from harvestman.wiring import prepare
    from harvestman.worker import collect_rarely

    pace, step = Pace(), Crawler.step

    async def paced(crawler: Crawler) -> bool:
        pace.step()
        return await step(crawler)

    setattr(Crawler, "step", paced)  # noqa: B010  # the one place where a crawl can be interrupted
    seeds = Path(seed_file).read_text().split()
    settings = _crawl.config(data, dns, 1, 0)
    prepare(settings, seeds)
    collect_rarely()
    crawled = uvloop.run(_crawl.alone(settings, seeds))
    result = Paced(crawled.tally.pages, crawled.crawl_cpu - pace.spent, pace.spent / max(1, pace.times))
    sys.stdout.buffer.write(msgspec.json.encode(result))


if __name__ == "__main__":
    main()
