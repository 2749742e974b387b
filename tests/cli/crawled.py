"""A small crawl written by hand: one URL of each fate, for the verbs that look."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from harvestman.embedded.roster import StaticRoster
from harvestman.embedded.state import RocksState
from harvestman.frontier.routing import Router
from harvestman.jobs import Jobs
from harvestman.layout import VERSION, CrawlFile, Layout
from harvestman.model import (
    HostKey,
    HostRecord,
    Instant,
    Job,
    Link,
    Origin,
    Page,
    RecordRef,
    RobotsRecord,
    Seconds,
    SiteKey,
    Status,
    Tally,
    UrlRecord,
    Visit,
)  # fmt: skip
from harvestman.policy.urls import host_of
from harvestman.ports import Changes
from harvestman.store.pages import PageLog

THEN = Instant(1_790_000_000.0)
LATER = Instant(4_000_000_000.0)
ORIGIN = "https://example.org"
HOME = f"{ORIGIN}/"
ROBOTS = b"User-agent: *\nCrawl-delay: 3\nDisallow: /private/\n"
REF = RecordRef("w00-20260101000000-00000.warc.gz", 512, 2_000)


def fates() -> list[UrlRecord]:
    def met(path: str, status: Status, code: int, reason: str, target: str = "", attempts: int = 0) -> UrlRecord:
        body = b"\x01" * 32 if code == 200 else b""
        visit = Visit(THEN, code, reason, body, 7, "", "", "text/html", 900, REF if code else None, target)
        return UrlRecord(ORIGIN + path, status, 1, 4, 2, THEN, HOME, attempts=attempts, visit=visit)

    home = met("/", Status.FETCHED, 200, "ok")
    retry = met("/retry", Status.PENDING, 0, "connect: refused", attempts=2)
    return [
        msgspec.structs.replace(home, depth=0, via="seed"),
        met("/copy", Status.DUPLICATE, 200, "same content as another URL", HOME),
        met("/old", Status.REDIRECTED, 301, "HTTP 301", f"{ORIGIN}/new"),
        met("/out", Status.REDIRECTED, 302, "leads out of scope: https://x.org/"),
        met("/gone", Status.GONE, 404, "HTTP 404"),
        met("/private/a", Status.BLOCKED, 0, "robots.txt line 3: /private/"),
        met("/film.mp4", Status.REFUSED, 0, "unwanted: video/mp4"),
        met("/dead", Status.DEAD, 0, "timeout: slow (attempt 5 of 5)", attempts=5),
        msgspec.structs.replace(retry, due=LATER),
        UrlRecord(f"{ORIGIN}/first", Status.PENDING, 1, 4, 8, THEN, HOME),
        UrlRecord(f"{ORIGIN}/second", Status.PENDING, 2, 4, 9, THEN, f"{ORIGIN}/first"),
        UrlRecord("https://sick.example/", Status.PENDING, 1, 4, 11, THEN, HOME),
        UrlRecord("https://silent.example/", Status.PENDING, 1, 4, 12, THEN, HOME),
    ]


def hosts() -> list[HostRecord]:
    return [
        HostRecord(HostKey("example.org"), host_site("example.org"), LATER, Seconds(1.0), 0, Instant(0.0), 2, [0] * 8),
        HostRecord(HostKey("sick.example"), host_site("sick.example"), LATER, Seconds(1.0), 0, LATER),
    ]


def robots() -> list[RobotsRecord]:
    silent = Origin("https://silent.example")
    return [
        RobotsRecord(Origin(ORIGIN), ROBOTS, THEN, THEN, LATER, reason="200: rules"),
        RobotsRecord(silent, b"", Instant(0.0), THEN, LATER, True, "timeout: no first byte", THEN),
    ]


def pages() -> list[Page]:
    link = Link(f"{ORIGIN}/first", "First", "", "a")
    home = Page(
        HOME, 200, THEN, "text/html", 0, "ab" * 32, "utf-8", "Home", "About", "en", "Hello \u00e9", HOME, [link]
    )
    home.simhash = 2**63 + 1
    hidden = msgspec.structs.replace(home, url=f"{ORIGIN}/hidden", noindex=True)
    return [home, msgspec.structs.replace(home, url=f"{ORIGIN}/other", title="Other"), hidden]


def write(data: Path, workers: int = 2, job: Job | None = None) -> Layout:
    """Make the crawl's directory."""
    layout = Layout(data)
    Jobs(layout).add(job or Job(0, "", THEN), [HOME])
    layout.write(CrawlFile(VERSION, 64, workers))
    router, roster = Router(64), StaticRoster(64, workers, 0)
    for index in range(workers):
        asyncio.run(_write_state(layout.state(index), changes(router, roster, index, first=index == 0)))
    log = PageLog(layout.pages, layout.worker(0), None)
    log.append(pages())
    log.close()
    return layout


def changes(router: Router, roster: StaticRoster, index: int, first: bool) -> Changes:
    found = Changes()
    for record in fates():
        host, _, partition = router.place(host_of(record.url))
        if roster.owner(partition) != index:
            continue
        name = router.id_of(record.url)
        found.records[name] = record
        if record.status is Status.PENDING and not record.due:
            found.queued.append((partition, host, record.bucket, record.seq, name))
    for known in hosts():
        partition = router.place(known.host)[2]
        if roster.owner(partition) == index:
            found.hosts[known.host] = (partition, known)
    for copy in robots():
        partition = router.place(host_of(f"{copy.origin}/"))[2]
        if roster.owner(partition) == index:
            found.robots[copy.origin] = (partition, copy)
    tally = Tally(pages=2, duplicates=1, bytes=1_800, requests=9, discovered=12, blocked=1) if first else Tally()
    found.marks["tally"] = msgspec.msgpack.encode(tally)
    return found


async def _write_state(path: Path, found: Changes) -> None:
    state = RocksState(path)
    await state.commit(found)
    await state.close()


def host_site(host: str) -> SiteKey:
    return Router(64).place(HostKey(host))[1]
