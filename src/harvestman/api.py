"""Harvestman from Python: `async for page in Crawl(config)`.

One worker, in this process and on this event loop. Iterating drives the crawl, so a slow consumer slows it down.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec

from harvestman.config import Config, check
from harvestman.harvest import AcceptUrl
from harvestman.jobs import Jobs
from harvestman.lock import locked
from harvestman.model import Page, Tally
from harvestman.policy.consent import refuse_rudeness
from harvestman.policy.urls import from_seed
from harvestman.wiring import open_crawler, prepare


class Crawl:
    """A crawl to iterate over; resumes when `config.data` holds one already.

    Seeds that ask for another scope or depth than its first job become a job of their own.

    accept: called with every new URL in scope; False leaves it out.
    see:    called with every page before it is handed out.
    """

    def __init__(
        self, config: Config, *, accept: AcceptUrl | None = None, see: Callable[[Page], None] | None = None
    ) -> None:
        self.config = check(msgspec.structs.replace(config, workers=1))
        self._accept = accept
        self._see = see
        self.tally = Tally()

    async def __aiter__(self) -> AsyncIterator[Page]:
        config = self.config
        seeds = [from_seed(seed) for seed in config.seeds]
        data = Path(config.data)
        if seeds:
            refuse_rudeness(config, seeds)
        with locked(data):
            layout = prepare(config, seeds)
            vetted = _vetted(config, Jobs(layout))
            pages: deque[Page] = deque()
            wired = await open_crawler(config, accept=self._accept, see=pages.append)
            crawler, seeding = wired.crawler, wired.seeding
            self.tally = crawler.tally
            for job, size in vetted.items():
                seeding.want(job, size)
            try:
                still = False
                while not still:
                    if seeding.wanting:
                        await seeding.step()
                    still = await crawler.step() and not seeding.wanting
                    while pages:
                        page = pages.popleft()
                        if self._see is not None:
                            self._see(page)
                        yield page
            finally:
                await crawler.close()


def _vetted(config: Config, jobs: Jobs) -> dict[int, int]:
    """The seeds that may be asked for: by job, up to which byte. Raises UsageError for what may not."""
    sizes = {job.id: jobs.size(job.id) for job in jobs.all()}
    for job in jobs.all():
        refuse_rudeness(msgspec.structs.replace(config, scope=job.scope), jobs.seeds(job.id))
    return sizes
