"""What `graph` does: builds the tables where they are out of date, ranks, and shows what is in them."""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import sys
import time
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from harvestman.cli import words
from harvestman.errors import StateError, UsageError
from harvestman.layout import Layout
from harvestman.lock import is_locked
from harvestman.model import Instant, Page
from harvestman.policy.urls import from_seed
from harvestman.store.pages import read_pages

if TYPE_CHECKING:
    from harvestman.graph.apply import Applied
    from harvestman.graph.look import Linked, Neighbours, TopHost, TopPage
    from harvestman.graph.tables import Folder, GraphFile

SHOWN_ANCHOR = 60
"""Characters."""


def build(options: argparse.Namespace) -> int:
    _needs_numpy()
    graph = _built(options)
    _quiet()
    print(_json(graph) if options.json else _told(options, graph))
    return 0


def rank(options: argparse.Namespace) -> int:
    _needs_numpy()
    from harvestman.graph import ranking

    layout = Layout(options.data)
    layout.read()
    if options.apply and is_locked(options.data):
        raise StateError(f"{options.data} is being crawled: --apply changes its queues, so stop it or wait for its end")
    graph = _current(options, layout) or _built(options)
    _tell("edges to rank", graph.counts.edges)
    graph = ranking.rank(_folder(options), graph, options.engine)
    applied = _applied(options, layout, graph) if options.apply else None
    _quiet()
    if options.json:
        print(msgspec.json.encode({**msgspec.to_builtins(graph), "applied": applied}).decode())
    else:
        print(_told(options, graph) + (f"\n{_told_applied(applied)}" if applied else ""))
    return 0


def top(options: argparse.Namespace) -> int:
    _needs_numpy()
    from harvestman.graph import look

    if options.limit < 1:
        raise UsageError("--limit must be 1 or more")
    folder = _folder(options)
    graph = folder.read()
    if graph.ranking is None:
        raise StateError(f"{folder.root} is not ranked: run `harvestman graph rank {options.data}`")
    _tell_if_old(options, graph)
    if options.hosts:
        hosts = look.top_hosts(folder, graph, options.limit)
        print(_json(hosts) if options.json else _host_table(hosts))
    else:
        pages = look.top_pages(folder, graph, options.limit)
        print(_json(pages) if options.json else _page_table(pages))
    return 0


def links(options: argparse.Namespace) -> int:
    _needs_numpy()
    from harvestman.graph import look

    folder = _folder(options)
    graph = folder.read()
    _tell_if_old(options, graph)
    url = from_seed(options.url)
    found = look.neighbours(folder, graph, url, max(0, options.limit))
    if found is None:
        raise UsageError(f"{url} is not in the graph: no page of {options.data} links to it, and it was not fetched")
    print(_json(found) if options.json else _neighbourhood(found))
    if found.more:
        print(f"There are more than {options.limit:,} links: --limit 0 lists all.", file=sys.stderr)
    return 0


def _needs_numpy() -> None:
    if importlib.util.find_spec("numpy") is None:
        raise UsageError("the link graph needs numpy: pip install 'harvestman[graph]'")


def _folder(options: argparse.Namespace) -> Folder:
    from harvestman.graph.tables import Folder

    return Folder(options.data)


# -- making ----------------------------------------------------------------------------------------------------------


def _built(options: argparse.Namespace) -> GraphFile:
    from harvestman.graph import build as building
    from harvestman.graph.tables import Rules, source_of
    from harvestman.views import View

    layout = Layout(options.data)
    layout.read()
    rules = Rules(options.nofollow, not options.no_links)
    source = source_of(layout, rules)
    with View(layout) as view:
        return building.build(_folder(options), _pages(layout), building.aliases(view.records()), source, rules, _tell)


def _pages(layout: Layout) -> Iterator[Page]:
    return chain.from_iterable(map(read_pages, layout.page_logs()))


def _current(options: argparse.Namespace, layout: Layout) -> GraphFile | None:
    """The graph that is there, if nothing has changed since."""
    from harvestman.graph.tables import Rules, source_of

    try:
        graph = _folder(options).read()
    except StateError:
        return None
    wanted = Rules(options.nofollow, not options.no_links)
    return graph if graph.source == source_of(layout, wanted) else None


def _applied(options: argparse.Namespace, layout: Layout, graph: GraphFile) -> Applied:
    from harvestman.cli.settings import remembered_config
    from harvestman.graph.apply import apply
    from harvestman.jobs import Jobs
    from harvestman.mend import still

    config = remembered_config(options.data)
    with still(options.data) as crawl:
        return asyncio.run(apply(crawl, _folder(options), graph, Jobs(layout), config, Instant(time.time())))


def _tell(what: str, number: int) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{number:,} {what}", end="", file=sys.stderr, flush=True)


def _quiet() -> None:
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _tell_if_old(options: argparse.Namespace, graph: GraphFile) -> None:
    from harvestman.graph.tables import source_of

    if graph.source != source_of(Layout(options.data), graph.rules):
        print(f"Pages have come since: `harvestman graph rank {options.data}` takes them in.", file=sys.stderr)


# -- showing ---------------------------------------------------------------------------------------------------------


def _json(found: object) -> str:
    return msgspec.json.encode(found).decode()


def _told(options: argparse.Namespace, graph: GraphFile) -> str:
    counts = graph.counts
    unvouched = f"{counts.nofollow:,} nofollow, " if not graph.rules.nofollow else ""
    lines = [
        f"{words.plural(counts.nodes, 'node')}, {words.plural(counts.edges, 'edge')}, from "
        f"{words.plural(counts.pages, 'page')} on {words.plural(counts.hosts, 'host')} of "
        f"{words.plural(counts.sites, 'site')}",
        f"{words.plural(counts.links, 'link')}; no edges: {unvouched}{counts.to_itself:,} to the page itself, "
        f"{counts.repeated:,} repeated, {counts.listings:,} to sitemaps and feeds",
        f"{words.plural(counts.aliases, 'URL')} folded onto another: redirects, duplicates, canonical URLs",
    ]
    if graph.ranking is not None:
        made = graph.ranking
        lines.append(
            f"ranked in {words.plural(made.rounds, 'round')} ({made.engine}); the last changed {made.change:.1e}"
        )
    return "\n".join([*lines, f"The tables are in {_folder(options).root}."])


def _told_applied(done: Applied) -> str:
    return (
        f"Applied to {words.plural(done.sites, 'site')} and {words.plural(done.pages, 'queued page')}: "
        f"{done.sooner:,} more urgent than before, {done.later:,} less."
    )


def _page_table(found: list[TopPage]) -> str:
    rows = (
        f"{each.rank:>10.3e} {each.in_degree:>9,} {'yes' if each.fetched else 'no':<7} {each.url}" for each in found
    )
    return "\n".join([f"{'rank':>10} {'linked by':>9} {'fetched':<7} url", *rows])


def _host_table(found: list[TopHost]) -> str:
    rows = (
        f"{each.rank:>10.3e} {each.linking_sites:>8,} {each.in_links:>9,} {each.nodes:>9,} {each.host}"
        for each in found
    )
    return "\n".join([f"{'rank':>10} {'by sites':>8} {'links in':>9} {'pages':>9} host", *rows])


def _neighbourhood(found: Neighbours) -> str:
    rank = "not ranked" if found.rank is None else f"rank {found.rank:.3e}"
    head = f"{found.url}\n  {rank}, linked by {found.in_degree:,}, links to {found.out_degree:,}"
    ways = (("in", found.links_in), ("out", found.links_out))
    return "\n".join([head, *(line for way, ends in ways for line in _way(way, ends))])


def _way(name: str, ends: list[Linked]) -> Iterator[str]:
    yield f"{name}:" if ends else f"{name}: none"
    for each in ends:
        marks = ", ".join(mark for mark in (each.kind if each.kind != "a" else "", each.place, each.rel) if mark)
        yield f"  {each.url}  {each.anchor[:SHOWN_ANCHOR]!r}" + (f"  ({marks})" if marks else "")
