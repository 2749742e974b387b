"""The child of crawl_cpu and versus_scrapy: one whole crawl of a simulated web by Harvestman, its figures as JSON.

    python bench/_crawl.py DATA DNS WORKERS MAX_PAGES SEED_FILE

One worker runs in this very process, so it is to be started as a supervisor starts one: with `supervise.MALLOC` in its
environment. It starts nothing but what a crawl is made of, so the CPU time of this process and its children is the
crawl's.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import threading
import time
from pathlib import Path

import msgspec
import psutil
import uvloop

from harvestman.config import Config, Limits, Politeness
from harvestman.model import Seconds, Tally
from harvestman.supervise import Supervisor
from harvestman.wiring import open_crawler, prepare
from harvestman.worker import collect_rarely


class Crawled(msgspec.Struct):
    """What one crawl did and what it took."""

    tally: Tally
    crawl_wall: float
    """Seconds from the first lease to the last commit."""
    crawl_cpu: float
    """CPU seconds of the crawling processes, from when everything was imported and opened."""
    python_cpu: float = 0.0
    """Of these, the thread that runs Python; the rest are RocksDB's and the disk's. 0 when not known."""
    peaks: list[int] = []
    """Largest resident size of each crawling process, bytes."""


def config(data: str, dns: str, workers: int, max_pages: int) -> Config:
    """No pause between two requests to a host; the cap of ten a second for a site cannot be set off."""
    return Config(
        scope="all",
        data=data,
        workers=workers,
        dns=dns,
        allow=("127.0.0.0/8",),
        politeness=Politeness(delay=Seconds(0.0), ip_delay=Seconds(0.0)),
        limits=Limits(max_pages=max_pages, patience=Seconds(2.0)),
    )


async def alone(settings: Config, seeds: list[str]) -> Crawled:
    """One worker in this very process."""
    crawler = (await open_crawler(settings)).crawler
    await crawler.add_seeds(seeds, "seeds")
    wall, cpu, thread = time.monotonic(), _cpu(), time.thread_time()
    await crawler.run(lambda: True)
    spent = time.monotonic() - wall, _cpu() - cpu, time.thread_time() - thread
    await crawler.close()
    return Crawled(crawler.tally, *spent, [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024])


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class Scales(threading.Thread):
    """Weighs the worker processes twice a second; what this costs is counted as the supervisor's."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peaks: dict[int, int] = {}
        self.done = threading.Event()

    def run(self) -> None:
        me = psutil.Process(os.getpid())
        while not self.done.wait(0.5):
            for child in me.children():
                try:
                    self.peaks[child.pid] = max(self.peaks.get(child.pid, 0), child.memory_info().rss)
                except psutil.Error:
                    continue


async def together(settings: Config, seeds: list[str]) -> Crawled:
    """Several workers under a supervisor. Their CPU time is all of it, start-up included."""
    scales = Scales()
    scales.start()
    wall = time.monotonic()
    layout = prepare(settings, seeds)
    ending = await Supervisor(settings, layout, lambda _: None).run()
    scales.done.set()
    progress = ending.progress
    return Crawled(progress.tally, time.monotonic() - wall, progress.cpu, 0.0, list(scales.peaks.values()))


def main() -> None:
    data, dns, workers, max_pages, seed_file = sys.argv[1:]
    seeds = Path(seed_file).read_text().split()
    settings = config(data, dns, int(workers), int(max_pages))
    if settings.workers == 1:
        prepare(settings, seeds)
        collect_rarely()
        crawled = uvloop.run(alone(settings, seeds))
    else:
        crawled = asyncio.run(together(settings, seeds))
    sys.stdout.buffer.write(msgspec.json.encode(crawled))


if __name__ == "__main__":
    main()
