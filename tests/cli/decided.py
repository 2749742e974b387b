"""A crawl in which there was something to decide: scores, budgets, traps, revisits, dead letters, alerts, two jobs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
from cli import crawled
from cli.crawled import HOME, host_site

from harvestman.embedded.roster import StaticRoster
from harvestman.embedded.state import RocksState
from harvestman.frontier.routing import Router
from harvestman.jobs import Jobs
from harvestman.layout import VERSION, CrawlFile, Layout
from harvestman.model import (
    Attempt,
    Change,
    HostKey,
    Instant,
    Job,
    JobTally,
    Seconds,
    SiteRecord,
    Status,
    Tally,
    Trap,
    UrlRecord,
    Visit,
)  # fmt: skip
from harvestman.policy.budget import DAY, linked
from harvestman.policy.novelty import EVERY
from harvestman.policy.urls import host_of
from harvestman.ports import Changes

THEN = crawled.THEN
HOUR = 3600.0
NEWS_TTL = Seconds(HOUR)
CALENDAR = "/cal/{n}"
LONG = "repetition /a/a/a/{n}"
ALERT = "site big.example got 40% of the last 2000 requests, to 61 of them"
WORKERS = 2


def page(url: str, change: Change | None, due: float, **more: object) -> UrlRecord:
    visit = Visit(THEN, 200, "ok", b"\1" * 32, 7)
    record = UrlRecord(url, Status.FETCHED, 1, 4, 2, THEN, HOME, due=Instant(due), visit=visit, change=change)
    return msgspec.structs.replace(record, **more)


def waiting(url: str, seq: int, **more: object) -> UrlRecord:
    return msgspec.structs.replace(UrlRecord(url, Status.PENDING, 1, 4, seq, THEN, HOME), **more)


def refused(url: str, reason: str) -> UrlRecord:
    return UrlRecord(url, Status.REFUSED, 3, 0, 0, THEN, HOME, visit=Visit(THEN, 0, reason))


def known(gap: float, visits: int = 0, changes: int = 0, every: float = 3 * DAY) -> Change:
    return Change(2.0, Seconds(2.0 * every), Instant(THEN - gap), visits, changes)


def records() -> list[UrlRecord]:
    dead = UrlRecord("https://plain.example/dead", Status.DEAD, 1, 4, 2, THEN, HOME, attempts=2)
    dead.visit = Visit(Instant(THEN + 9), 0, "timeout: slow (attempt 2 of 2)")
    dead.trail = [Attempt(THEN, "connect: refused"), Attempt(Instant(THEN + 9), "timeout: slow (attempt 2 of 2)")]
    return [
        waiting("https://plain.example/2026/news/x", 10, cash=0.8, depth=3),
        waiting("https://plain.example/list?page=7", 11, bucket=7),
        waiting("https://plain.example/cal/99", 12),
        waiting("https://spent.example/x", 13),
        waiting("https://spent.example/retry", 14, due=Instant(THEN + 9 * DAY), attempts=1),
        waiting("https://dull.example/x", 15),
        page("https://plain.example/learned", known(DAY, 7, 2), THEN + DAY),
        page("https://plain.example/dated", known(DAY, 1, 1), THEN + 2 * DAY, modified=Instant(THEN - 60)),
        page("https://plain.example/new", known(0, every=7 * DAY), THEN + 5 * DAY),
        page("https://plain.example/ttl", known(0, 1, 0), THEN + HOUR, job=2),
        page("https://plain.example/due", known(DAY, 3, 1), THEN - HOUR, status=Status.DUPLICATE),
        page("https://plain.example/sitemap.xml", known(0, 1, 0), THEN - HOUR, kind="sitemaps"),
        refused("https://plain.example/cal/7", f"trap: calendar {CALENDAR}"),
        refused("https://plain.example/a/a/a/7", f"trap: {LONG}"),
        refused("https://plain.example/old/7", "trap: session id /old/{n}"),
        refused("https://plain.example/many", "budget: the site has had its 40 pages"),
        dead,
    ]


def sites() -> list[SiteRecord]:
    today = int(THEN // DAY)
    plain = SiteRecord(host_site("plain.example"), THEN, fetched=40, day=today, today=30, novel=30, dull=10, cash=2.0)
    plain.dated, plain.truthful = 16, 16
    for other in range(12):
        plain.linkers = linked(plain.linkers, other)
    plain.traps = {
        CALENDAR: Trap("calendar", THEN, "https://plain.example/cal/1", 100),
        LONG: Trap("repetition", THEN, "https://plain.example/a/a/a/1", 23),
        "/pardoned": Trap("calendar", THEN, "https://plain.example/pardoned", 1, pardoned=True),
    }
    spent = SiteRecord(
        host_site("spent.example"), THEN, fetched=10_000, day=today, today=10_000, novel=1, flagged="odd"
    )
    dull = SiteRecord(host_site("dull.example"), THEN, fetched=90, dull=60, shapes={EVERY: 60})
    return [plain, spent, dull]


def write(data: Path, records: list[UrlRecord], sites: list[SiteRecord], tally: Tally) -> Path:
    """Make the crawl's directory; the tally is that of the first worker."""
    layout, router = Layout(data), Router(64)
    jobs = Jobs(layout)
    jobs.add(Job(0, "first", THEN), [HOME])
    jobs.add(Job(0, "news", THEN, "high", 3, ttl=NEWS_TTL), ["https://plain.example/"])
    layout.write(CrawlFile(VERSION, 64, WORKERS))
    for index in range(WORKERS):
        roster, changes = StaticRoster(64, WORKERS, index), Changes()
        for record in records:
            host, _, partition = router.place(host_of(record.url))
            if roster.owner(partition) == index:
                name = router.id_of(record.url)
                changes.records[name] = record
                if record.status is Status.PENDING and not record.due:
                    changes.queued.append((partition, host, record.bucket, record.seq, name))
        for site in sites:
            partition = router.place(HostKey(site.site))[2]
            if roster.owner(partition) == index:
                changes.sites[site.site] = (partition, site)
        changes.marks["tally"] = msgspec.msgpack.encode(tally if index == 0 else Tally())
        state = RocksState(layout.state(index))
        asyncio.run(state.commit(changes))
        state.shut()
    return layout.data


def tally() -> Tally:
    traps = {"calendar": 100, "session id": 23, "pagination": 0}
    jobs = {1: JobTally(15, 9, 5), 2: JobTally(1, 1, 1)}
    return Tally(pages=5, requests=9, discovered=16, traps=traps, alerts=[f"{n} {ALERT}" for n in range(7)], jobs=jobs)
