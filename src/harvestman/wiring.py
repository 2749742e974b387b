"""The one place where the parts are put together, by hand."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from random import Random

import msgspec

from harvestman import __version__
from harvestman.asking import Asking
from harvestman.clock import WallClock
from harvestman.config import Config
from harvestman.crawl import Crawler, SeePage
from harvestman.dispatch import Dispatch
from harvestman.embedded.bus import NoBus, SocketBus
from harvestman.embedded.objects import DirectoryObjects
from harvestman.embedded.reshard import reshard
from harvestman.embedded.roster import StaticRoster
from harvestman.embedded.state import RocksState
from harvestman.errors import ConfigError, UsageError
from harvestman.fetch.curl import Fetcher
from harvestman.fetch.dns import Resolver
from harvestman.fetch.limits import Limits as FetchLimits
from harvestman.frontier.book import RobotsBook
from harvestman.frontier.frontier import Frontier
from harvestman.frontier.routing import Router
from harvestman.frontier.seen import Seen
from harvestman.harvest import AcceptUrl, Harvest
from harvestman.layout import VERSION, CrawlFile, Layout, scope_of
from harvestman.model import Bytes, Instant, Tally
from harvestman.policy.guard import Guard
from harvestman.policy.scope import Scope
from harvestman.ports import Changes
from harvestman.recover import replayed
from harvestman.store.pages import PageLog
from harvestman.store.warc import WarcWriter, replay


def prepare(config: Config, seeds: list[str]) -> Layout:
    """Make or reopen the data directory: checks what is fixed, moves partitions when the workers changed."""
    layout = Layout(Path(config.data))
    mode, patterns = scope_of(config.scope)
    if not layout.exists():
        if not seeds:
            raise UsageError(f"{layout.data} holds no crawl yet: name at least one URL, or --seeds FILE")
        Scope.build(mode, seeds, patterns)
        layout.add_seeds(seeds)
        layout.write(CrawlFile(VERSION, config.partitions, config.workers, mode, patterns))
        return layout
    facts = layout.read()
    layout.add_seeds(seeds)
    if facts.workers != config.workers:
        reshard(layout, facts, config.workers)
    return layout


def resolver_address(dns: str) -> tuple[str, int] | None:
    """'HOST:PORT' or 'HOST' or '' -> the upstream to ask."""
    if not dns:
        return None
    host, _, port = dns.rpartition(":") if dns.count(":") == 1 else (dns, "", "53")
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigError(f"dns: {dns!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


async def open_crawler(
    config: Config, *, index: int = 0, sockets: Path | None = None, accept: AcceptUrl | None = None,
    see: SeePage | None = None, seed: int | None = None,
) -> Crawler:  # fmt: skip
    """Everything one worker needs, recovered from whatever an earlier run left behind."""
    layout = Layout(Path(config.data))
    facts = layout.read()
    clock = WallClock()
    now = clock.now
    rng = Random(seed)
    roster = StaticRoster(facts.partitions, facts.workers, index)
    router = Router(facts.partitions)
    objects = DirectoryObjects(layout.data)
    state = RocksState(
        layout.state(index), cache_bytes=config.memory.cache_bytes, write_buffer=config.memory.write_buffer
    )
    state.drop_foreign(roster.owns)
    resumed = await state.mark("opened") is not None
    await state.commit(Changes(marks={"opened": b"%d" % int(now())}))
    tally = msgspec.msgpack.decode(await state.mark("tally") or msgspec.msgpack.encode(Tally()), type=Tally)
    seen = Seen(state, config.memory.seen_capacity)
    await seen.restore(objects, layout.seen(index))
    book = RobotsBook(state, config.agent)
    frontier = Frontier(state, seen, book, router, config, rng, now() if resumed else Instant(0.0))
    frontier.blocked = tally.blocked
    frontier.seq = int(await state.mark("seq") or 0)
    guard = Guard(config.allow)
    limits = config.limits
    fetcher = Fetcher(
        user_agent=config.user_agent(__version__),
        limits=FetchLimits(
            connect=limits.connect, first_byte=limits.first_byte, total_html=limits.total_html,
            total_large=limits.total_large, body=Bytes(limits.body_bytes),
        ),
        guard=guard.refusal,
        now=now,
    )  # fmt: skip
    resolver = Resolver(upstream=resolver_address(config.dns), now=now)
    name = layout.worker(index)
    position = await state.mark("warc")
    stored = replay(layout.warc, name, msgspec.msgpack.decode(position, type=tuple[str, int]) if position else None)
    written = await state.mark("pages")
    log = PageLog(layout.pages, name, msgspec.msgpack.decode(written, type=tuple[str, int]) if written else None)
    warc = WarcWriter(layout.warc, name, software=f"Harvestman/{__version__}", contact=config.contact, now=now)
    harvest = Harvest(config, state, warc, router, layout.scope(), rng, accept)
    bus: SocketBus | NoBus = NoBus()
    if sockets is not None and facts.workers > 1:
        bus = SocketBus(sockets, facts.workers, index, roster.owner)
        await bus.open()
    crawler = Crawler(
        config=config, clock=clock, state=state, bus=bus, frontier=frontier,
        asking=Asking(frontier, resolver, guard, fetcher, clock), harvest=harvest,
        dispatch=Dispatch(frontier, router, roster, bus, state), warc=warc, log=log, tally=tally,
        snapshot=partial(seen.snapshot, objects, layout.seen(index)), see=see,
    )  # fmt: skip
    await crawler.recovered(await replayed(stored, state, harvest, frontier, router))
    return crawler
