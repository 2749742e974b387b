"""A small crawl with links, for the tests of the graph."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from harvestman.embedded.state import RocksState
from harvestman.frontier.routing import Router
from harvestman.graph.build import build
from harvestman.graph.tables import Folder, GraphFile, Rules
from harvestman.jobs import Jobs
from harvestman.layout import VERSION, CrawlFile, Layout
from harvestman.model import HostKey, Instant, Job, Link, Page, SiteRecord, UrlRecord
from harvestman.policy.urls import host_of
from harvestman.ports import Changes
from harvestman.store.pages import PageLog

THEN = Instant(1_790_000_000.0)


def page(url: str, *links: str | Link, at: float = 0.0, canonical: str | None = None, nofollow: bool = False) -> Page:
    found = [Link(link, f"to {link}") if isinstance(link, str) else link for link in links]
    return Page(url, 200, Instant(THEN + at), "text/html", 0, "", canonical=canonical, links=found, nofollow=nofollow)


def quiet(what: str, number: int) -> None:
    pass


def graph(
    data: Path,
    pages: Iterable[Page],
    aliases: Iterable[tuple[str, str]] = (),
    rules: Rules = Rules(),  # noqa: B008
) -> tuple[Folder, GraphFile]:
    folder = Folder(data)
    return folder, build(folder, pages, aliases, "source", rules, quiet)


def named_edges(folder: Folder, found: GraphFile) -> set[tuple[str, str]]:
    urls = folder.opened("nodes", found.source).read(["url"]).column(0).to_pylist()
    edges = folder.opened("edges", found.source).read().to_pylist()
    assert len({(edge["from"], edge["to"]) for edge in edges}) == len(edges) == found.counts.edges
    return {(urls[edge["from"]], urls[edge["to"]]) for edge in edges}


def write(data: Path, pages: list[Page], records: Iterable[UrlRecord] = (), sites: Iterable[SiteRecord] = ()) -> Layout:
    """A crawl on disk, of one worker."""
    layout, router = Layout(data), Router(64)
    Jobs(layout).add(Job(0, "", THEN, scope="all"), ["https://seed.example/"])
    layout.write(CrawlFile(VERSION, 64, 1))
    changes = Changes()
    for record in records:
        host, _, partition = router.place(host_of(record.url))
        changes.records[router.id_of(record.url)] = record
        changes.queued.append((partition, host, record.bucket, record.seq, router.id_of(record.url)))
    for site in sites:
        changes.sites[site.site] = (router.place(HostKey(site.site))[2], site)
    state = RocksState(layout.state(0))
    asyncio.run(state.commit(changes))
    state.shut()
    add_pages(layout, pages)
    return layout


def add_pages(layout: Layout, pages: list[Page], position: tuple[str, int] | None = None) -> tuple[str, int]:
    log = PageLog(layout.pages, layout.worker(0), position)
    log.append(pages)
    log.close()
    return log.position
