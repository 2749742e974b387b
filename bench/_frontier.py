"""A crawl of a modelled web (`_graph.py`) by the real frontier over a real State, in virtual time.

What the pages lead to is chosen by `Harvest._follow` itself, dictionaries of importance and pairs of sites included. No
page changes or resembles another, robots.txt allows everything, and every host has an address of its own: what is left
is the order.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import cast

from _graph import Graph

from harvestman.config import Config, Politeness
from harvestman.embedded.state import RocksState
from harvestman.frontier.book import RobotsBook
from harvestman.frontier.frontier import Frontier
from harvestman.frontier.routing import Routed, Router
from harvestman.frontier.seen import Seen
from harvestman.harvest import Harvest, Taken
from harvestman.model import Instant, Lease, Link, Response, Seconds, Status, UrlId, UrlRecord
from harvestman.policy import urls
from harvestman.policy.outcomes import Decision
from harvestman.simulate.drive import Asked, Capacity, Drive
from harvestman.simulate.reply import Reply
from harvestman.simulate.world import OneJob
from harvestman.store.warc import WarcWriter

START = Instant(1e9)
IN_FLIGHT = 1_000
PATIENCE = 3_600.0
"""Virtual seconds: what comes later are further visits."""
TOOK = 0.05
"""Seconds from a request to the end of its answer."""
_FOUND = Decision(Status.FETCHED, "ok")


@dataclass(slots=True)
class Cost:
    """What the order cost its owner."""

    cpu: float = 0.0
    told: int = 0
    """Links that the owner was told of ..."""
    found: int = 0
    """... and those of them that were new to it."""


class Crawl(Drive):
    """`Drive` with the links that `Harvest` would follow."""

    harvest: Harvest
    cost: Cost

    async def fetch(self, order: list[int], count: int) -> None:
        """Go on until `count` pages have come, or nothing is left."""
        while len(order) < count and await self._frontier.horizon() < self.now + PATIENCE:
            await self.run(Instant(self.now + 1.0))

    def _follow(self, record: UrlRecord, reply: Reply) -> tuple[list[Routed], float]:
        host, origin = urls.host_of(record.url), urls.origin_of(record.url)
        lease = Lease(host, "", record.url, UrlId(b""), record, origin)
        answer = Response(record.url, reply.status, b"", reply.headers, b"", "", self.now, self.now, self.now)
        taken = Taken(lease, record, answer, _FOUND)
        self.harvest._follow(taken, [Link(url) for url in reply.links])
        self.cost.told += len(taken.links)
        return taken.links, taken.share


def crawl(
    graph: Graph, seeds: Sequence[int], seed: int, delay: float, rate: float, count: int
) -> tuple[list[int], Cost]:
    """The first `count` pages in the order of the real frontier; without a delay they come one by one."""
    with TemporaryDirectory() as directory:
        return asyncio.run(_crawl(graph, seeds, seed, delay, rate, count, Path(directory)))


async def _crawl(
    graph: Graph, seeds: Sequence[int], seed: int, delay: float, rate: float, count: int, directory: Path
) -> tuple[list[int], Cost]:
    manners = Politeness() if delay else Politeness(Seconds(0.0), Seconds(0.0), site_rate=1e9)
    config = Config(scope="all", politeness=manners, partitions=1)
    numbers = {url: page for page, url in enumerate(graph.urls)}
    looks = Random(seed)
    simhashes = [looks.getrandbits(64) for _ in graph.urls]
    took = TOOK if delay else 0.0
    order: list[int] = []

    def answer(url: str, now: Instant) -> Reply:
        page = numbers.get(url)
        if page is None:
            return Reply(404, took=took)
        links = [graph.urls[target] for target in graph.links[page]]
        return Reply(links=links, took=took, digest=b"%d" % page, simhash=simhashes[page])

    def settled(asked: Asked, before: UrlRecord, decision: Decision) -> None:
        assert decision.status is Status.FETCHED, decision
        order.append(numbers[asked.url])

    state, rng = RocksState(directory), Random(seed)
    router, jobs = Router(1), OneJob(config.limits.max_depth)
    frontier = Frontier(
        state, Seen(state, len(graph.urls)), RobotsBook(state, config.agent), router, jobs, config, rng, Instant(0.0)
    )
    capacity = Capacity(IN_FLIGHT, rate, 5 / rate if delay else 1 / rate)
    drive = Crawl(
        state, frontier, router, config, answer, rng=rng, now=START, addresses=lambda host: host, capacity=capacity,
        watch=lambda asked: None, settled=settled,
    )  # fmt: skip
    drive.harvest = Harvest(config, state, cast(WarcWriter, None), router, jobs, rng, {})
    drive.cost = cost = Cost()
    try:
        began = time.process_time()
        await drive.seed(graph.urls[page] for page in seeds)
        await drive.fetch(order, count)
        cost.cpu = time.process_time() - began
        cost.found = drive.tally.discovered
        return order[:count], cost
    finally:
        state.shut()
