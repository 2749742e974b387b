"""The one place where the parts are put together, by hand."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import msgspec
from msgspec.structs import replace as replaced

from harvestman import __version__, regions
from harvestman.asking import Asking
from harvestman.blocking import read_entries
from harvestman.clock import WallClock
from harvestman.config import Caches, Config
from harvestman.crawl import Crawler, SeePage
from harvestman.dispatch import Dispatch
from harvestman.embedded.bus import NoBus, SocketBus
from harvestman.embedded.objects import DirectoryObjects
from harvestman.embedded.opening import PATIENCE
from harvestman.embedded.reshard import position
from harvestman.embedded.roster import StaticRoster
from harvestman.embedded.state import RocksState
from harvestman.errors import ConfigError, UsageError
from harvestman.fetch.curl import Fetcher
from harvestman.fetch.dns import DEFAULT_FRESHNESS, Freshness, Resolver
from harvestman.fetch.limits import Limits as FetchLimits
from harvestman.fetch.nameservers import Upstream, read_upstream
from harvestman.frontier.book import RobotsBook
from harvestman.frontier.frontier import Frontier
from harvestman.frontier.seen import Keeper, Seen
from harvestman.harvest import AcceptUrl, Harvest
from harvestman.jobs import Jobs, Terms
from harvestman.layout import VERSION, CrawlFile, Layout
from harvestman.model import Bytes, Instant, Job, Tally
from harvestman.policy.blocklist import Which
from harvestman.policy.guard import Guard
from harvestman.policy.regions import Rules
from harvestman.ports import Changes
from harvestman.recover import replayed
from harvestman.render.browser import Browser, find_browser
from harvestman.rendering import Rendering
from harvestman.seeding import Seeding
from harvestman.store.pages import PageLog
from harvestman.store.warc import WarcWriter, replay


@dataclass(slots=True, frozen=True)
class Wired:
    """One worker, put together."""

    crawler: Crawler
    seeding: Seeding
    sending: Callable[[], bool]
    """Whether links are on their way to other workers."""


LINKS_OF_A_PAGE = 30
"""New ones: what a crawl of so many pages has to remember."""


def prepare(config: Config, seeds: list[str], terms: Terms | None = None) -> Layout:
    """Make or reopen the data directory: writes the seeds down as a job, moves sites when workers or regions changed.

    `terms`: what the seeds ask for; without them it is what the settings say.
    """
    layout = Layout(Path(config.data))
    if terms is None:
        terms = Terms(max_depth=config.limits.max_depth, scope=config.scope)
    if not layout.exists() and not seeds:
        raise UsageError(f"{layout.data} holds no crawl yet: name at least one URL, or --seeds FILE")
    Rules(config.regions)  # says if one is wrong
    facts = regions.settled(layout) if layout.exists() else None
    if facts is not None:
        regions.replan(layout, facts, replaced(facts, workers=config.workers, regions=config.regions))
    if seeds:
        Jobs(layout).take_up(seeds, terms, Job(0, "", WallClock().now(), max_depth=config.limits.max_depth))
    if facts is None:
        layout.write(CrawlFile(VERSION, config.partitions, config.workers, config.regions))
    return layout


def name_servers(config: Config) -> list[Upstream]:
    """Whom to ask for addresses; none for the system's own."""
    return [read_upstream(text) for text in config.name_servers]


def freshness(caches: Caches) -> Freshness:
    """How long addresses are kept."""
    ceiling = max(DEFAULT_FRESHNESS.ceiling, caches.dns)
    kept = {"floor": caches.dns, "ceiling": ceiling, "stale": caches.dns_stale, "last": caches.dns_last}
    return replace(DEFAULT_FRESHNESS, **kept)


def secrets(config: Config) -> dict[str, str]:
    """The passwords of proxies, from the environment and nowhere else."""
    names = {proxy.password_env for proxy in config.proxies if proxy.password_env}
    for name in sorted(names - os.environ.keys()):
        raise ConfigError(f"proxies: the environment variable {name}, named by password_env, is not set")
    return {name: os.environ[name] for name in names}


def refuse_foreign(addresses: Iterable[str]) -> None:
    """Raise ConfigError for an egress address that is not this machine's: every request from it would fail."""
    for address in addresses:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            try:
                probe.bind((address, 0))
            except OSError as error:
                raise ConfigError(f"egress.addresses: {address} is not an address of this machine: {error}") from None


def families(addresses: Sequence[str]) -> list[int]:
    """Those that can be reached from these addresses of ours; IPv4 first. No addresses: both."""
    ours = {6 if ":" in address else 4 for address in addresses}
    return sorted(ours or {4, 6})


def expected_urls(config: Config) -> int:
    """What a worker's first seen-filter is sized for: a small crawl needs a small one, a large one grows by itself."""
    pages = config.limits.max_pages // config.workers
    most = config.memory.seen_capacity
    return min(most, max(10_000, LINKS_OF_A_PAGE * pages)) if pages else most


def _opened_state(config: Config, layout: Layout, roster: StaticRoster, index: int) -> RocksState:
    memory = config.memory
    state = RocksState(
        layout.state(index), cache_bytes=memory.cache_bytes, write_buffer=memory.write_buffer,
        fingerprints=memory.fingerprints, patience=PATIENCE,
    )  # fmt: skip
    state.drop_foreign(roster.owns)
    return state


def _fetcher(config: Config, guard: Guard, now: Callable[[], Instant]) -> Fetcher:
    limits = config.limits
    return Fetcher(
        user_agent=config.user_agent(__version__),
        limits=FetchLimits(
            connect=limits.connect, first_byte=limits.first_byte, total_html=limits.total_html,
            total_large=limits.total_large, body=Bytes(limits.body_bytes), error_body=Bytes(limits.error_bytes),
            head=Bytes(limits.head_bytes), pieces=limits.pieces, held=Bytes(config.memory.bodies),
        ),
        guard=guard.refusal,
        max_secure=config.memory.tls_connections,
        now=now,
        record_invalid=config.fetch.invalid_certificates == "record",
        secrets=secrets(config),
    )  # fmt: skip


def _asking(config: Config, frontier: Frontier, clock: WallClock) -> Asking:
    """All that touches the network."""
    refuse_foreign(config.egress.addresses)
    guard = Guard(config.allow, config.ports)
    resolver = Resolver(
        upstreams=name_servers(config), now=clock.now, freshness=freshness(config.caches),
        families=families(config.egress.addresses),
    )  # fmt: skip
    return Asking(frontier, resolver, guard, _fetcher(config, guard, clock.now), clock, config.watch)


def _browser(config: Config, layout: Layout, index: int) -> Browser | None:
    """None when no page is to be rendered, or no browser is found."""
    render = config.render
    path = find_browser(render.browser) if render.share else None
    if path is None:
        return None
    return Browser(
        path, layout.browser(index), seconds=render.seconds, recycle=render.recycle,
        user_agent=config.user_agent(__version__),
    )  # fmt: skip


async def open_crawler(
    config: Config, *, index: int = 0, sockets: Path | None = None, accept: AcceptUrl | None = None,
    see: SeePage | None = None, seed: int | None = None,
) -> Wired:  # fmt: skip
    """Everything one worker needs, recovered from whatever an earlier run left behind."""
    layout = Layout(Path(config.data))
    facts = layout.read()
    if sockets is None and facts.workers > 1:
        raise UsageError("a crawl in one process has one worker: leave the regions away, or use `harvestman crawl`")
    jobs, clock, rng = Jobs(layout), WallClock(), Random(seed)
    region = facts.region(index)
    roster = StaticRoster(facts.partitions, facts.split, index)
    router = regions.router(layout, facts)
    state = _opened_state(config, layout, roster, index)
    resumed = await state.mark("opened") is not None
    await state.commit(Changes(marks={"opened": b"%d" % int(clock.now())}))
    tally = msgspec.msgpack.decode(await state.mark("tally") or msgspec.msgpack.encode(Tally()), type=Tally)
    seen = Seen(state, expected_urls(config), config.memory.seen_errors)
    keeper = Keeper(seen, DirectoryObjects(layout.data), layout.seen(index))
    await keeper.open()
    book = RobotsBook(state, config.agent, most_bytes=config.memory.rules)
    opened = clock.now() if resumed else Instant(0.0)
    frontier = Frontier(state, seen, book, router, jobs, config, rng, opened)
    frontier.region = region.name
    frontier.intake.blocked = Which(read_entries(layout.blocked)) or None
    await frontier.restore(tally)
    asking = _asking(config, frontier, clock)
    files, raw = facts.files(index), layout.warc_of(region.content)
    stored = replay(raw, files, position(state, "warc", files))
    log = PageLog(layout.pages_of(region.content), files, position(state, "pages", files))
    warc = WarcWriter(raw, files, software=f"Harvestman/{__version__}", contact=config.contact, now=clock.now)
    harvest = Harvest(config, state, warc, router, jobs, rng, tally.traps, accept)
    bus: SocketBus | NoBus = NoBus()
    if sockets is not None and facts.workers > 1:
        bus = SocketBus(sockets, facts.workers, index, roster.owner)
        await bus.open()
    dispatch = Dispatch(frontier, router, roster, bus, state)
    rendering = Rendering(
        config, state, frontier, harvest, router, _browser(config, layout, index),
        [layout.warc_of(content) for content in facts.contents], tally.unrendered, clock.now(),
    )  # fmt: skip
    crawler = Crawler(
        config=config, clock=clock, state=state, bus=bus, frontier=frontier, asking=asking, harvest=harvest,
        dispatch=dispatch, rendering=rendering, warc=warc, log=log, tally=tally, keeper=keeper, see=see,
    )  # fmt: skip
    await crawler.recovered(await replayed(stored, state, harvest, frontier, router))
    return Wired(crawler, Seeding(jobs, state, router, roster.owns, crawler.add_seeds), lambda: dispatch.under_way)
