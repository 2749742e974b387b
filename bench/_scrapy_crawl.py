"""The child of versus_scrapy: one crawl of a simulated web by Scrapy, its figures as JSON.

    python bench/_scrapy_crawl.py HOSTS PAGES SEED MAX_PAGES UVLOOP SEED_FILE

A plain spider: every link of every page, robots.txt obeyed, nothing done with the pages.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import cast

import msgspec
from scrapy import Request, Spider
from scrapy.crawler import Crawler, CrawlerProcess
from scrapy.http import HtmlResponse, Response
from scrapy.linkextractors import LinkExtractor
from twisted.internet.base import ReactorBase, ThreadedResolver
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IResolverSimple

from harvestman.sim.plan import Plan
from harvestman.sim.web import Web


class Scraped(msgspec.Struct):
    pages: int
    """HTML answers with status 200, a URL fetched twice counted twice: to Scrapy's advantage."""
    links: int
    requests: int
    reason: str
    statuses: dict[str, int]


class SimulatedNames(ThreadedResolver):
    """Names of the simulated web from its model: no packet, no thread, so that Scrapy pays nothing for DNS."""

    addresses: dict[str, str]

    @classmethod
    def from_crawler(cls, crawler: Crawler, reactor: ReactorBase) -> SimulatedNames:
        names = cls(reactor)
        names.addresses = {host.name: host.address for host in Web(plan_of(crawler.settings["PLAN"])).hosts}
        return names

    def install_on_reactor(self) -> None:
        self.reactor.installResolver(cast(IResolverSimple, self))  # zope's interfaces are no types to mypy

    def getHostByName(self, name: str, timeout: object = ()) -> Deferred[str]:
        return succeed(self.addresses[name])


def plan_of(words: str) -> Plan:
    hosts, pages, seed = map(int, words.split("x"))
    return Plan(hosts, pages, seed, "clean")


class EveryLink(Spider):
    """What CrawlSpider with one rule does, without its overhead."""

    name = "every-link"

    def __init__(self, seeds: list[str]) -> None:
        super().__init__()
        self._seeds = seeds
        self._links_of = LinkExtractor().extract_links
        self.pages = 0
        self.links = 0

    async def start(self) -> AsyncIterator[Request]:
        for url in self._seeds:
            yield Request(url)

    def parse(self, response: Response) -> Iterator[Request]:
        if not isinstance(response, HtmlResponse):
            return
        self.pages += 1
        for link in self._links_of(response):
            self.links += 1
            yield Request(link.url)


def settings(plan: str, max_pages: int, uvloop: bool) -> dict[str, object]:
    """Fast and quiet: whatever a plain crawl does not need is off."""
    return {
        "PLAN": plan,
        "TWISTED_DNS_RESOLVER": SimulatedNames,
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS": 128,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
        "DOWNLOAD_DELAY": 0,
        "AUTOTHROTTLE_ENABLED": False,
        "COOKIES_ENABLED": False,
        "RETRY_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_ENABLED": False,
        "CLOSESPIDER_PAGECOUNT": max_pages,
        "ASYNCIO_EVENT_LOOP": "uvloop.Loop" if uvloop else None,
        "USER_AGENT": "Scrapy/bench",
    }


def main() -> None:
    hosts, pages, seed, max_pages, uvloop, seed_file = sys.argv[1:]
    process = CrawlerProcess(settings(f"{hosts}x{pages}x{seed}", int(max_pages), uvloop == "1"))
    crawler = process.create_crawler(EveryLink)
    process.crawl(crawler, seeds=Path(seed_file).read_text().split())
    process.start()
    spider, stats = crawler.spider, crawler.stats
    assert isinstance(spider, EveryLink)
    assert stats is not None
    found = stats.get_stats()
    marker = "downloader/response_status_count/"
    statuses = {key.removeprefix(marker): value for key, value in found.items() if key.startswith(marker)}
    scraped = Scraped(
        spider.pages, spider.links, found["downloader/request_count"], found.get("finish_reason", ""), statuses
    )
    sys.stdout.buffer.write(msgspec.json.encode(scraped))


if __name__ == "__main__":
    main()
