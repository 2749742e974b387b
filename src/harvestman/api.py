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
from harvestman.layout import Layout
from harvestman.lock import locked
from harvestman.model import Page, Tally
from harvestman.policy.consent import refuse_rudeness
from harvestman.policy.urls import from_seed
from harvestman.wiring import open_crawler, prepare


class Crawl:
    """A crawl to iterate over; resumes when `config.data` holds one already.

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
        seeds = [from_seed(seed) for seed in self.config.seeds]
        data = Path(self.config.data)
        refuse_rudeness(self.config, [*seeds, *Layout(data).seeds()])
        with locked(data):
            layout = prepare(self.config, seeds)
            pages: deque[Page] = deque()
            crawler = await open_crawler(self.config, accept=self._accept, see=pages.append)
            self.tally = crawler.tally
            try:
                await crawler.add_seeds(seeds or layout.seeds(), "seed")
                still = False
                while not still:
                    still = await crawler.step()
                    while pages:
                        page = pages.popleft()
                        if self._see is not None:
                            self._see(page)
                        yield page
            finally:
                await crawler.close()
