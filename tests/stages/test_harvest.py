"""From leases to pages with the real frontier, harvest, dispatch and WARC, in virtual time: the web is a function."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest
from virtual import START, OneJob, config, in_a_loop
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]  # the package ships no types

from harvestman.config import Config, Recrawl
from harvestman.dispatch import Dispatch
from harvestman.embedded.bus import NoBus
from harvestman.embedded.roster import StaticRoster
from harvestman.embedded.state import RocksState
from harvestman.frontier.book import RobotsBook
from harvestman.frontier.frontier import Frontier
from harvestman.frontier.routing import Router
from harvestman.frontier.seen import Seen
from harvestman.harvest import Harvest
from harvestman.model import (
    Discovery,
    HostKey,
    Instant,
    Job,
    Lease,
    Page,
    Response,
    Seconds,
    SiteKey,
    Status,
    UrlRecord,
)
from harvestman.policy.budget import linker
from harvestman.policy.scope import Scope
from harvestman.policy.urls import origin_of
from harvestman.store.warc import WarcWriter

DAY = 86_400.0
PROSE = "The harvestman gathers what it finds on its way through the undergrowth and does not bite. "

Answered = tuple[int, dict[str, str], bytes]
Web = Callable[[Lease, Instant], Answered]


def page(text: str, head: str = "", **headers: str) -> Answered:
    fields = {"content-type": "text/html", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return 200, fields, f"<html><head>{head}</head><body>{text}</body></html>".encode()


def moved(location: str, status: int = 302) -> Answered:
    return status, {"location": location}, b""


class Jobs(OneJob):
    """Everything is wanted but what is on `outside.test`, and all of it again after `ttl`."""

    def __init__(self, ttl: float = 0.0, depth: int = 16) -> None:
        self.ttl = Seconds(ttl)
        self.depth = depth
        self.outside = "outside.test"

    def get(self, number: int) -> Job:
        return Job(number, "test", START, scope="all", ttl=self.ttl, max_depth=self.depth)

    def scope(self, number: int) -> Scope:
        return Scope.build("patterns", (), [f"-*://{self.outside}/*", "+*"])


class Small:
    """One worker, one request at a time."""

    def __init__(self, state: RocksState, directory: Path, web: Web, *, ttl: float = 0.0, depth: int = 16) -> None:
        settings: Config = config(recrawl=Recrawl(keep=True))
        self.now, self.state, self.web, self.directory = START, state, web, directory
        self.router = Router(settings.partitions)
        self.jobs = jobs = Jobs(ttl, depth)
        rng = Random(1)
        seen, book = Seen(state, 10_000), RobotsBook(state, "harvestman", capacity=50)
        self.frontier = Frontier(state, seen, book, self.router, jobs, settings, rng, Instant(0.0))
        self.warc = WarcWriter(directory, "w00", software="test", contact="", now=lambda: float(self.now))
        self.harvest = Harvest(settings, state, self.warc, self.router, jobs, rng, {})
        roster = StaticRoster(settings.partitions, 1, 0)
        self.dispatch = Dispatch(self.frontier, self.router, roster, NoBus(), state)
        self.asked: list[str] = []
        self.sent: list[tuple[str, str]] = []
        self.bytes = 0
        self.pages: list[Page] = []

    async def add(self, *urls: str, job: int = 1) -> None:
        await self.dispatch.route(self.harvest.seeds(urls, "seed", job), self.now)
        await self.commit()

    async def commit(self) -> None:
        changes = self.frontier.take()
        if changes:
            await self.state.commit(changes)
        await self.frontier.committed(self.now)

    async def run(self, until: float = 60.0) -> None:
        """Until nothing can be done within `until` seconds from now."""
        end = self.now + until
        for _ in range(10_000):
            await self.frontier.ripen(self.now)
            await self.commit()
            lease = await self.frontier.next(self.now)
            if lease is not None:
                address, until = f"address of {lease.host}", Instant(self.now + DAY)
                if lease.address or self.frontier.claim(lease, address, until, self.now):
                    await self.take(lease)
                continue
            following = max(await self.frontier.horizon(), Instant(self.now + 0.01))
            if following > end:
                self.now = Instant(end)
                return
            self.now = following
        raise AssertionError("the crawl does not end")

    async def take(self, lease: Lease) -> None:
        if lease.robots:
            answer = Response(lease.url, 404, b"", {}, b"", "", self.now, self.now, self.now)
            await self.frontier.settle_robots(lease, answer, b"", 0.5)
            await self.commit()
            return
        assert lease.record is not None
        self.asked.append(lease.url)
        self.sent.append((lease.etag, lease.last_modified))
        status, headers, body = self.web(lease, self.now)
        self.bytes += len(body)
        head = f"HTTP/1.1 {status} X\r\n".encode() + b"\r\n"
        answer = Response(lease.url, status, head, headers, body, "192.0.2.1", self.now, self.now, self.now)
        for taken in await self.harvest.gather([(lease, lease.record, answer, None)]):
            self.frontier.settle(lease, answer, taken.decision, taken.visit(), 0.5, taken.news)
            self.frontier.changes.contents.update(self.harvest.contents)
            self.pages += [taken.page] if taken.page else []
            await self.dispatch.route(taken.links, self.now)
        await self.commit()

    async def record(self, url: str) -> UrlRecord:
        found = (await self.state.records([self.router.id_of(url)]))[0]
        assert found is not None, url
        return found

    async def reason(self, url: str) -> str:
        record = await self.record(url)
        return record.visit.reason if record.visit else ""

    def stored(self) -> list[dict[str, str]]:
        """The headers of the WARC records."""
        found = []
        for path in sorted(self.directory.glob("*.warc.gz")):
            with path.open("rb") as stream:
                found += [dict(record.rec_headers.headers) for record in ArchiveIterator(stream)]
        return found


def table(pages: dict[str, Answered]) -> Web:
    return lambda lease, _: pages.get(lease.url, (404, {}, b""))


@pytest.fixture
def state(tmp_path: Path) -> Iterator[RocksState]:
    opened = RocksState(tmp_path / "state", cache_bytes=1 << 20, write_buffer=4 << 20)
    yield opened
    opened.shut()


# -- redirects ---------------------------------------------------------------------------------------------------------


@in_a_loop
async def test_a_loop_is_named_where_it_closes(state: RocksState, tmp_path: Path) -> None:
    pages = {"https://a.test/1": moved("/2"), "https://a.test/2": moved("/3", 301), "https://a.test/3": moved("/1")}
    crawl = Small(state, tmp_path, table(pages))
    await crawl.add("https://a.test/1")
    await crawl.run()
    assert crawl.asked == ["https://a.test/1", "https://a.test/2", "https://a.test/3"]
    loop = "redirect loop: https://a.test/1 -> https://a.test/2 -> https://a.test/3 -> https://a.test/1"
    assert await crawl.reason("https://a.test/3") == loop


@in_a_loop
async def test_a_loop_between_pages_that_are_linked_is_named(state: RocksState, tmp_path: Path) -> None:
    links = '<a href="/1">one</a> <a href="/2">two</a>'
    pages = {"https://a.test/": page(links), "https://a.test/1": moved("/2"), "https://a.test/2": moved("/1")}
    crawl = Small(state, tmp_path, table(pages))
    await crawl.add("https://a.test/")
    await crawl.run()
    reasons = {await crawl.reason("https://a.test/1"), await crawl.reason("https://a.test/2")}
    assert any(reason.startswith("redirect loop: ") for reason in reasons), reasons
    assert len(crawl.asked) == 3


@in_a_loop
async def test_a_loop_of_spellings_is_named(state: RocksState, tmp_path: Path) -> None:
    pages = {"https://a.test/d": moved("/d/"), "https://a.test/d/": moved("/d")}
    crawl = Small(state, tmp_path, table(pages))
    await crawl.add("https://a.test/d")
    await crawl.run()
    assert crawl.asked == ["https://a.test/d", "https://a.test/d/"]
    loop = "redirect loop: https://a.test/d -> https://a.test/d/ -> https://a.test/d"
    assert await crawl.reason("https://a.test/d") == loop


@in_a_loop
async def test_chains_end_after_five_hops_whatever_they_are_made_of(state: RocksState, tmp_path: Path) -> None:
    pages = {}
    for hop in range(8):
        meta = f'<meta http-equiv="refresh" content="{hop % 3};url=/{hop + 1}">'
        header = page("x", refresh=f"0;url=/{hop + 1}")
        pages[f"https://a.test/{hop}"] = (moved(f"/{hop + 1}"), page("x", meta), header)[hop % 3]
    crawl = Small(state, tmp_path, table(pages))
    await crawl.add("https://a.test/0")
    await crawl.run()
    assert crawl.asked == [f"https://a.test/{hop}" for hop in range(6)]
    assert await crawl.reason("https://a.test/5") == "more than 5 redirects"
    assert crawl.pages == []


REFRESHES = [
    ('<meta http-equiv="refresh" content="0;url=/next">', {}, "refresh at once"),
    ('<meta http-equiv="refresh" content="3;url=/next">', {}, "refresh after 3 s"),
    ("", {"refresh": "0; url=/next"}, "refresh at once"),
    ('<meta http-equiv="refresh" content="90;url=/other">', {"refresh": "1;url=/next"}, "refresh after 1 s"),
]


@pytest.mark.parametrize(("head", "headers", "reason"), REFRESHES)
@in_a_loop
async def test_a_page_that_leads_on_soon_is_a_redirect(
    state: RocksState, tmp_path: Path, head: str, headers: dict[str, str], reason: str
) -> None:
    pages = {"https://a.test/": page("wait", head, **headers), "https://a.test/next": page(PROSE)}
    crawl = Small(state, tmp_path, table(pages))
    await crawl.add("https://a.test/")
    await crawl.run()
    record = await crawl.record("https://a.test/")
    assert record.visit is not None
    assert (record.status, record.visit.reason) == (Status.REDIRECTED, reason)
    assert record.visit.target == "https://a.test/next"
    assert [each.url for each in crawl.pages] == ["https://a.test/next"]
    target = await crawl.record("https://a.test/next")
    assert (target.kind, target.hops, target.depth) == ("redirect", 0, 0)
    assert sum(fields["WARC-Type"] == "response" for fields in crawl.stored()) == 2


@pytest.mark.parametrize("head", ["6;url=/next", "600;url=/next"])
@in_a_loop
async def test_a_page_that_stays_a_while_is_a_page_with_a_link(state: RocksState, tmp_path: Path, head: str) -> None:
    meta = f'<meta http-equiv="refresh" content="{head}">'
    pages = {
        "https://a.test/": page("read me", meta), "https://a.test/h": page("me too", refresh=head),
        "https://a.test/next": page(PROSE),
    }  # fmt: skip
    crawl = Small(state, tmp_path, table(pages))
    await crawl.add("https://a.test/", "https://a.test/h")
    await crawl.run()
    assert {each.url for each in crawl.pages} == set(pages)
    assert (await crawl.record("https://a.test/next")).kind == "refresh"


@in_a_loop
async def test_a_page_that_leads_where_we_do_not_go_or_to_itself_is_kept(state: RocksState, tmp_path: Path) -> None:
    pages = {
        "https://a.test/out": page(PROSE, '<meta http-equiv="refresh" content="0;url=https://outside.test/">'),
        "https://a.test/self": page(f"{PROSE} 2", '<meta http-equiv="refresh" content="5;url=/self">'),
        "https://a.test/shy": page(
            f"{PROSE} 3", '<meta name="robots" content="nofollow"><meta http-equiv="refresh" content="0;url=/x">'
        ),
    }
    crawl = Small(state, tmp_path, table(pages))
    await crawl.add(*pages)
    await crawl.run()
    assert {each.url for each in crawl.pages} == set(pages)
    assert len(crawl.asked) == 3


@in_a_loop
async def test_a_canonical_is_followed_and_named(state: RocksState, tmp_path: Path) -> None:
    pages = {
        "https://a.test/?ref=1": page(PROSE, '<link rel="canonical" href="/">'),
        "https://a.test/": page(f"{PROSE} but more of it", '<link rel="canonical" href="/">'),
    }
    crawl = Small(state, tmp_path, table(pages))
    await crawl.add("https://a.test/?ref=1")
    await crawl.run()
    assert [(each.url, each.canonical) for each in crawl.pages] == [
        ("https://a.test/?ref=1", "https://a.test/"),
        ("https://a.test/", "https://a.test/"),
    ]


@in_a_loop
async def test_a_permanent_redirect_is_remembered_for_a_month(state: RocksState, tmp_path: Path) -> None:
    pages = {
        "https://a.test/old": moved("https://b.test/new", 301),
        "https://a.test/now": moved("https://b.test/then", 302),
        "https://b.test/new": page(PROSE),
        "https://b.test/then": page(f"{PROSE} and then"),
    }
    crawl = Small(state, tmp_path, table(pages))
    await crawl.add("https://a.test/old", "https://a.test/now")
    await crawl.run(29 * DAY)
    assert crawl.asked.count("https://a.test/old") == 1
    assert crawl.asked.count("https://a.test/now") == 5  # every week
    await crawl.run(3 * DAY)
    assert crawl.asked.count("https://a.test/old") == 2


@in_a_loop
async def test_a_redirect_that_ends_gives_a_page(state: RocksState, tmp_path: Path) -> None:
    pages = {"https://a.test/old": moved("/new", 301), "https://a.test/new": page(PROSE)}
    crawl = Small(state, tmp_path, table(pages))
    await crawl.add("https://a.test/old")
    await crawl.run()
    pages["https://a.test/old"] = page(f"{PROSE} is back")
    await crawl.run(31 * DAY)
    record = await crawl.record("https://a.test/old")
    assert record.status is Status.FETCHED
    assert record.change is not None
    pages["https://a.test/old"] = moved("/new", 301)
    await crawl.run(31 * DAY)
    record = await crawl.record("https://a.test/old")
    assert (record.status, record.change) == (Status.REDIRECTED, None)


@in_a_loop
async def test_a_link_to_a_permanent_redirect_counts_for_its_target(state: RocksState, tmp_path: Path) -> None:
    pages = {"https://a.test/old": moved("https://b.test/new", 301), "https://b.test/new": page(PROSE)}
    crawl = Small(state, tmp_path, table(pages))
    await crawl.add("https://a.test/old")
    await crawl.run()
    before = (await crawl.record("https://b.test/new")).cash
    link = Discovery("https://a.test/old", 1, "https://c.test/", cash=8.0)
    await crawl.dispatch.route([crawl.router.route(link)], crawl.now)
    await crawl.commit()
    after = await crawl.record("https://b.test/new")
    assert after.cash == 8.0 > before
    assert crawl.asked == ["https://a.test/old", "https://b.test/new"]


@in_a_loop
async def test_a_newer_job_goes_straight_to_the_target(state: RocksState, tmp_path: Path) -> None:
    pages = {
        "https://a.test/old": moved("https://b.test/new", 308),
        "https://b.test/new": page(PROSE),
        "https://a.test/out": moved("https://outside.test/", 301),
    }
    crawl = Small(state, tmp_path, table(pages))
    await crawl.add("https://a.test/old", "https://a.test/out")
    await crawl.run()
    crawl.asked.clear()
    await crawl.add("https://a.test/old", "https://a.test/out", job=2)
    await crawl.run()
    assert sorted(crawl.asked) == ["https://a.test/out", "https://b.test/new"]
    assert (await crawl.record("https://b.test/new")).job == 2
    assert (await crawl.record("https://a.test/old")).job == 2
    jobs = crawl.frontier.staging.jobs
    assert all(job.settled == job.discovered for job in jobs.values()), jobs


@in_a_loop
async def test_permanent_redirects_in_a_circle_end(state: RocksState, tmp_path: Path) -> None:
    pages = {"https://a.test/1": moved("/2", 301), "https://a.test/2": moved("/1", 301)}
    crawl = Small(state, tmp_path, table(pages))
    await crawl.add("https://a.test/1", "https://a.test/2")
    await crawl.run()
    await crawl.add("https://a.test/1", "https://a.test/2", job=2)
    await crawl.run()
    jobs = crawl.frontier.staging.jobs
    assert all(job.settled == job.discovered for job in jobs.values()), jobs


# -- asking again ------------------------------------------------------------------------------------------------------


def versions(period: float, lying: bool = False) -> Web:
    """A page with an ETag that changes every so often (0: never); one that lies says 304 to everything conditional."""

    def answer(lease: Lease, now: Instant) -> Answered:
        version = int((now - START) // period) if period else 0
        etag = '"forever"' if lying else f'"{version}"'
        if lease.etag and (lying or lease.etag == etag):
            return 304, {"etag": etag}, b""
        words = " ".join(f"{word}{version}" for word in PROSE.split() * 9)
        return page(words, etag=etag)

    return answer


@in_a_loop
async def test_a_304_leaves_a_small_record_and_nothing_else(state: RocksState, tmp_path: Path) -> None:
    crawl = Small(state, tmp_path, versions(0.0), ttl=DAY)
    await crawl.add("https://a.test/")
    await crawl.run()
    first = await crawl.record("https://a.test/")
    assert first.visit is not None
    length, before = crawl.warc.position[1], first.visit
    await crawl.run(10.5 * DAY)
    assert len(crawl.asked) == 11
    after = (await crawl.record("https://a.test/")).visit
    assert after is not None
    assert (after.code, after.reason, after.ref, after.digest) == (304, "unchanged", before.ref, before.digest)
    assert len(crawl.pages) == 1
    assert (crawl.warc.position[1] - length) / 10 < 500
    revisits = [fields for fields in crawl.stored() if fields["WARC-Type"] == "revisit"]
    original = next(fields for fields in crawl.stored() if fields["WARC-Type"] == "response")
    assert len(revisits) == 10
    assert {fields["WARC-Profile"].rpartition("/")[2] for fields in revisits} == {"server-not-modified"}
    assert {fields["WARC-Refers-To-Date"] for fields in revisits} == {original["WARC-Date"]}
    assert {fields["WARC-Payload-Digest"] for fields in revisits} == {original["WARC-Payload-Digest"]}
    assert "Content-Length" in revisits[0]


@in_a_loop
async def test_without_validators_the_digest_tells(state: RocksState, tmp_path: Path) -> None:
    crawl = Small(state, tmp_path, table({"https://a.test/": page(PROSE)}), ttl=DAY)
    await crawl.add("https://a.test/")
    await crawl.run(5.5 * DAY)
    record = await crawl.record("https://a.test/")
    assert record.visit is not None
    assert (record.visit.code, record.visit.reason, len(crawl.pages)) == (200, "unchanged", 1)
    revisits = [fields for fields in crawl.stored() if fields["WARC-Type"] == "revisit"]
    assert {fields["WARC-Profile"].rpartition("/")[2] for fields in revisits} == {"identical-payload-digest"}


@in_a_loop
async def test_a_new_name_of_the_same_page_is_sent_the_next_time(state: RocksState, tmp_path: Path) -> None:
    def answer(lease: Lease, now: Instant) -> Answered:
        etag = '"old"' if now < START + DAY / 2 else '"new"'
        return (304, {"etag": etag}, b"") if lease.etag == etag else page(PROSE, etag=etag)

    crawl = Small(state, tmp_path, answer, ttl=DAY)
    await crawl.add("https://a.test/")
    await crawl.run(3.5 * DAY)
    assert [etag for etag, _ in crawl.sent] == ["", '"old"', '"new"', '"new"']


@pytest.mark.parametrize("lying", [False, True])
@in_a_loop
async def test_a_server_that_lies_is_found_out(state: RocksState, tmp_path: Path, lying: bool) -> None:
    crawl = Small(state, tmp_path, versions(20 * DAY, lying), ttl=DAY)
    await crawl.add("https://a.test/")
    await crawl.run(40.5 * DAY)
    _, name, partition = crawl.router.place(HostKey("a.test"))
    (site,) = await state.sites([(partition, name)])
    assert site is not None
    assert site.validators is not None
    assert bool(site.validators.lied) is lying
    # The first visit, and a look after 32 times "not modified"; a liar is asked for the whole page from then on.
    assert crawl.sent.count(("", "")) == (9 if lying else 2)
    assert {each.text.split()[0] for each in crawl.pages} == {"The0", "The1", "The2"}


# -- what is kept ------------------------------------------------------------------------------------------------------


def typed(kind: str, body: bytes, **headers: str) -> Answered:
    return 200, {"content-type": kind, **{name.replace("_", "-"): value for name, value in headers.items()}}, body


KEPT: Sequence[tuple[Answered, Status, str]] = [
    (typed("text/plain; charset=utf-8", PROSE.encode()), Status.FETCHED, "The harvestman"),
    (typed("application/octet-stream", PROSE.encode()), Status.FETCHED, "The harvestman"),
    (typed("", f"<html><p>{PROSE}".encode()), Status.FETCHED, "The harvestman"),
    (typed("application/pdf", b"%PDF-1.7 ..."), Status.FETCHED, ""),
    (typed("text/html", b"%PDF-1.7 ..."), Status.FETCHED, ""),
]


@pytest.mark.parametrize(("answer", "status", "text"), KEPT)
@in_a_loop
async def test_texts_and_documents_are_kept(
    state: RocksState, tmp_path: Path, answer: Answered, status: Status, text: str
) -> None:
    crawl = Small(state, tmp_path, table({"https://a.test/x": answer}))
    await crawl.add("https://a.test/x")
    await crawl.run()
    assert (await crawl.record("https://a.test/x")).status is status
    assert [each.text.startswith(text) for each in crawl.pages] == [True]
    assert bool(crawl.pages[0].text) is bool(text)
    assert "response" in {fields["WARC-Type"] for fields in crawl.stored()}


@in_a_loop
async def test_a_binary_that_came_packed_is_unwanted(state: RocksState, tmp_path: Path) -> None:
    png = b"\x89PNG\r\n\x1a\n" + b"\x00" * 40
    pages = {"https://a.test/x": typed("text/html", gzip.compress(png), content_encoding="gzip")}
    crawl = Small(state, tmp_path, table(pages))
    await crawl.add("https://a.test/x")
    await crawl.run()
    record = await crawl.record("https://a.test/x")
    assert record.status is Status.REFUSED
    assert await crawl.reason("https://a.test/x") == "unwanted: image/png, though it says text/html"
    assert crawl.pages == []


# -- links -------------------------------------------------------------------------------------------------------------


@in_a_loop
async def test_that_a_site_links_to_another_is_told_when_the_link_itself_is_not(
    state: RocksState, tmp_path: Path
) -> None:
    """Shares of 1/40: the second and third pass a power of two, the fourth changes nothing but who links."""
    names = ["a.test", "b.test", "c.test", "d.test"]
    web = {f"https://{name}/": page(f'{name} <a href="https://x.test/p">p</a>') for name in names}
    crawl = Small(state, tmp_path, table(web))
    for name in names:
        await crawl.add(f"https://{name}/")
        await crawl.run()
    _, site, partition = crawl.router.place(HostKey("x.test"))
    (found,) = await crawl.state.sites([(partition, site)])
    assert found is not None
    assert found.linkers == sum(1 << linker(SiteKey(name)) for name in names)
    assert (await crawl.record("https://x.test/p")).cash == pytest.approx(3 / 40, rel=1e-3)


@in_a_loop
async def test_what_a_feed_lists_too_deep_is_found_by_a_link_that_is_not(state: RocksState, tmp_path: Path) -> None:
    feed = b"<rss><channel><item><link>https://a.test/item</link></item></channel></rss>"
    web = {
        "https://a.test/": page('<a href="/feed.xml">news</a>'),
        "https://a.test/feed.xml": typed("application/rss+xml", feed),
        "https://a.test/late": page('<a href="/item">item</a>'),
        "https://a.test/item": page("x"),
    }
    crawl = Small(state, tmp_path, table(web), depth=1)
    await crawl.add("https://a.test/")
    await crawl.run()
    assert crawl.asked == ["https://a.test/", "https://a.test/feed.xml"]
    assert "https://a.test/item" not in crawl.harvest._lately(1).met, "or a link to it would be no news"
    await crawl.add("https://a.test/late")
    await crawl.run()
    assert "https://a.test/item" in crawl.asked


@in_a_loop
async def test_a_link_that_was_refused_is_followed_once_the_scope_has_grown(state: RocksState, tmp_path: Path) -> None:
    """Met four times, it has nothing to tell at the last: shares of 1/40, see above."""
    names = ["a.test", "b.test", "c.test", "d.test"]
    web = {f"https://{name}/": page(f'{name} <a href="https://outside.test/p">p</a>') for name in names}
    crawl = Small(state, tmp_path, table(web))
    for name in names:
        if name == "d.test":
            crawl.jobs.outside = "nowhere.test"
        await crawl.add(f"https://{name}/")
        await crawl.run()
    assert crawl.asked == [
        "https://a.test/",
        "https://b.test/",
        "https://c.test/",
        "https://d.test/",
        "https://outside.test/p",
    ]


# -- a group -----------------------------------------------------------------------------------------------------------


@in_a_loop
async def test_copies_in_one_group_are_known_by_the_first(state: RocksState, tmp_path: Path) -> None:
    """Every step is done for the whole group, and still the second copy waits for what becomes of the first."""
    crawl = Small(state, tmp_path, table({}))
    prose = b"<p>" + b"The government presented a new bill to the parliament this morning. " * 10 + b"</p>"
    onward = b'<meta http-equiv="refresh" content="0; url=https://b.test/there">'
    bodies = {"a": prose, "b": onward, "c": prose, "d": onward, "e": prose + b"<p>And more.</p>"}
    handed = []
    for name, body in bodies.items():
        url = f"https://{name}.test/page"
        record = UrlRecord(url, Status.PENDING, 0, 4, 1, START)
        lease = Lease(HostKey(f"{name}.test"), "192.0.2.1", url, crawl.router.id_of(url), record, origin_of(url))
        head = b"HTTP/1.1 200 OK\r\n\r\n"
        answer = Response(url, 200, head, {"content-type": "text/html"}, body, "192.0.2.1", START, START, START)
        handed.append((lease, record, answer, None))
    group = await crawl.harvest.gather(handed)
    assert [taken.lease.host for taken in group] == [f"{name}.test" for name in bodies], "in the order they came"
    statuses = [taken.decision.status for taken in group]
    assert statuses == [Status.FETCHED, Status.REDIRECTED, Status.DUPLICATE, Status.REDIRECTED, Status.FETCHED]
    assert group[2].original is not None
    assert group[2].original.url == "https://a.test/page"
    assert [taken.page.language for taken in group if taken.page] == ["en", "en"]
    crawl.warc.close()
    kinds = [headers["WARC-Type"] for headers in crawl.stored() if headers["WARC-Type"] != "request"]
    assert sorted(kinds) == ["response"] * 4 + ["revisit", "warcinfo"]


@in_a_loop
async def test_a_page_that_cannot_be_read_is_kept_and_does_not_end_the_worker(
    state: RocksState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("not enough values to unpack")

    monkeypatch.setattr("harvestman.harvest.parse", broken)
    crawl = Small(state, tmp_path, table({"https://a.test/": page(PROSE, x_robots_tag="noindex")}))
    await crawl.add("https://a.test/")
    await crawl.run()
    assert (await crawl.record("https://a.test/")).status is Status.FETCHED
    [found] = crawl.pages
    assert (found.url, found.text, found.cut) == ("https://a.test/", "", "fault: ValueError")
    assert found.noindex, "what its head asked for is known all the same"
    assert "cannot read https://a.test/: ValueError('not enough values to unpack')" in capsys.readouterr().err
