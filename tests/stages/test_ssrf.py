"""A page cannot lead the crawl into a network it must not touch: the corpus, judged by listeners on those addresses.

Traps (`ssrf_ground`) listen where a crawl must never come. The crawl may ask one address, on which the whole web of
these tests is served. Every case of the corpus is met as a link and as a redirect, and one of each family in all the
other ways a page has of naming a URL.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from html import escape
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pycurl
import pytest
from cases import for_each
from stages.rawserver import fetching, get, page, run
from stages.ssrf_corpus import CASES, NAMES, NO_NAME, NO_URL, PUBLIC, THE_WEB, Case
from stages.ssrf_ground import Ground, standing
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]  # the package ships no types

from harvestman.config import Caches, Config, Limits, Politeness, Traps
from harvestman.embedded.state import RocksState
from harvestman.errors import UrlError, UsageError
from harvestman.fetch.nameservers import as_address
from harvestman.fetch.transfer import Transfer
from harvestman.frontier.routing import Router
from harvestman.jobs import Jobs
from harvestman.layout import Layout
from harvestman.model import Failure, FailureKind, Request, Seconds, Status, UrlRecord
from harvestman.policy.consent import refuse_rudeness
from harvestman.policy.guard import Guard
from harvestman.policy.urls import Base, from_seed, host_of, key, origin_of
from harvestman.store.pages import read_pages
from harvestman.wiring import open_crawler, prepare

CODES = ("301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent")
LINKS_A_PAGE = 50
LISTED = "<?xml version='1.0'?><urlset>{}</urlset>"
FEED = "<?xml version='1.0'?><rss version='2.0'><channel>{}</channel></rss>"


class Met(NamedTuple):
    """A case as one page names it."""

    number: int
    way: str
    case: Case

    def text(self, port: int) -> str:
        return self.case.text.replace("{web}", str(port)).replace("{n}", f"n{self.number}")

    def url(self, port: int) -> str | None:
        """What it means where it stands."""
        return Base(f"http://hub.web.test:{port}/{self.way}/{self.number}").resolve(self.text(port))


def samples() -> list[Case]:
    """One case of each family and end."""
    return list({(case.family, case.ends): case for case in CASES if case.family != "ports"}.values())


def met() -> Iterator[Met]:
    numbers = count(1)
    for case in CASES:
        yield Met(next(numbers), "links", case)
    for case in CASES:
        if not set(case.text) & set("\r\n"):  # a header cannot hold them
            yield Met(next(numbers), "go", case)
    for way in ("meta", "refresh", "frame", "area", "canonical", "base", "feed", "item", "named", "listed", "robots"):
        for case in samples():
            if not set(case.text) & set("\r\n\t") and (case.text.isascii() or way != "refresh"):
                yield Met(next(numbers), way, case)


MET = tuple(met())
SEEDS = (
    "http://hub.web.test:{web}/",
    "http://maps.test:{web}/",
    "http://to-loopback.web.test:{web}/seed",
    "http://127.0.0.1:{web}/seed",
    "http://[::ffff:7f00:1]:{web}/seed",
    "http://rebind.web.test:{web}/seed",
    "http://ports.web.test:6379/seed",
)


class Web:
    """The pages of the public web, by host and path."""

    def __init__(self) -> None:
        self.port = 0
        self._by_path = {f"/{one.way}/{one.number}": one for one in MET}

    def of(self, way: str) -> list[str]:
        return [one.text(self.port) for one in MET if one.way == way]

    def answer(self, host: str, path: str) -> bytes:
        if path == "/robots.txt":
            return self._robots(host)
        if host == "maps.test" and path.startswith("/sitemap"):
            return page(self._sitemap(path).encode(), "application/xml")
        if host == "hub.web.test" and path == "/items":
            items = "".join(f"<item><link>{escape(text)}</link></item>" for text in self.of("item"))
            return page(FEED.format(items).encode(), "application/rss+xml")
        if host == "feeds.test":
            return page(self._foreign_sitemap().encode(), "application/xml")
        one = self._by_path.get(path) if host == "hub.web.test" else None
        if one is not None and one.way != "links":
            return self._naming(one)
        if host == "hub.web.test" and path.startswith("/links/") and path[7:].isdigit():
            return _html(path, "".join(f'<a href="{escape(text)}">x</a>' for text in self._block(path)))
        if host == "hub.web.test" and path == "/":
            return _html(path, self._contents())
        return _html(host + path, "")

    def _block(self, path: str) -> list[str]:
        at = int(path[7:]) * LINKS_A_PAGE
        return self.of("links")[at : at + LINKS_A_PAGE]

    def _contents(self) -> str:
        ways = ("go", "meta", "refresh", "frame", "area", "canonical", "base", "feed")
        paths = [path for path, one in self._by_path.items() if one.way in ways]
        paths += [f"/links/{n}" for n in range(-(-len(self.of("links")) // LINKS_A_PAGE))]
        paths += [f"http://r{one.number}.robots.test:{self.port}/page" for one in MET if one.way == "robots"]
        return "".join(f'<a href="{path}">x</a>' for path in [*paths, "/items"])

    def _naming(self, one: Met) -> bytes:
        text, path = one.text(self.port), f"/{one.way}/{one.number}"
        quoted = escape(text)
        if one.way == "go":
            location = f"Location: {text.strip()}\r\n"
            head = f"HTTP/1.1 {CODES[one.number % len(CODES)]}\r\n{location}Content-Length: 0\r\n\r\n"
            return head.encode()
        if one.way == "refresh":
            return page(path.encode(), extra=f"Refresh: 0; url={text}\r\n")
        elements = {
            "meta": f'<meta http-equiv="refresh" content="0; url={quoted}">',
            "frame": f'<iframe src="{quoted}"></iframe>',
            "area": f'<area href="{quoted}">',
            "canonical": f'<link rel="canonical" href="{quoted}">',
            "base": f'<base href="{quoted}"><a href="below">x</a>',
            "feed": f'<link rel="alternate" type="application/rss+xml" href="{quoted}">',
        }
        return _html(path, elements[one.way])

    def _robots(self, host: str) -> bytes:
        if host.endswith(".robots.test"):
            one = next(one for one in MET if host == f"r{one.number}.robots.test")
            location = f"Location: {one.text(self.port)}\r\n"
            return f"HTTP/1.1 302 Found\r\n{location}Content-Length: 0\r\n\r\n".encode()
        named = [f"http://maps.test:{self.port}/sitemap.xml", f"http://feeds.test:{self.port}/of-maps.xml"]
        lines = [f"Sitemap: {text}" for text in [*named, *self.of("named")]] if host == "maps.test" else []
        return page("\n".join(["User-agent: *", "Allow: /", *lines]).encode(), "text/plain")

    def _sitemap(self, path: str) -> str:
        own = [f"http://www.maps.test:{self.port}/own", f"http://good.test:{self.port}/not-its-own"]
        return LISTED.format("".join(f"<url><loc>{escape(text)}</loc></url>" for text in [*own, *self.of("listed")]))

    def _foreign_sitemap(self) -> str:
        texts = [f"http://maps.test:{self.port}/by-proxy", f"http://good.test:{self.port}/not-by-proxy"]
        return LISTED.format("".join(f"<url><loc>{text}</loc></url>" for text in texts))


def _html(title: str, body: str) -> bytes:
    return page(f"<!doctype html><title>{escape(title)}</title>{body}".encode(), "text/html; charset=utf-8")


class Crawled(NamedTuple):
    """What is left when the crawl is over."""

    ground: Ground
    records: dict[str, UrlRecord]
    robots: dict[str, str]
    """Why the rules of an origin could not be had."""
    sockets: list[tuple[str, int]]
    """What libcurl was given a socket for."""
    caught: list[tuple[str, int]]
    seeds: int
    jobs: int
    stored: bytes
    """All that the crawl wrote down, but for what servers said."""

    def why(self, url: str) -> str:
        record = self.records[key(url)]
        return record.visit.reason if record.visit else self.robots.get(origin_of(url), "nothing is known")


@pytest.fixture(scope="module", autouse=True)
def sockets() -> Iterator[list[tuple[str, int]]]:
    """The sockets that libcurl is given. None leaves this machine, should the guard ever fail."""
    given: list[tuple[str, int]] = []
    opened = Transfer.on_socket

    def watched(self: Transfer, purpose: int, address: tuple[int, int, int, tuple[str, int]]) -> object:
        lent = opened(self, purpose, address)
        if lent == pycurl.SOCKET_BAD:
            return lent
        ip, port = address[3][0], address[3][1]
        given.append((ip, port))
        return lent if ip.startswith(("127.", "::ffff:127.")) or ip == "::1" else pycurl.SOCKET_BAD

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Transfer, "on_socket", watched)
        yield given


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory, sockets: list[tuple[str, int]]) -> Crawled:
    before = len(sockets)
    crawled = run(_crawl(tmp_path_factory.mktemp("ssrf")))
    return crawled._replace(sockets=sockets[before:])


async def _crawl(directory: Path) -> Crawled:
    web = Web()
    async with standing(web.answer) as ground:
        web.port = ground.port
        seeds = [seed.replace("{web}", str(ground.port)) for seed in SEEDS]
        config = Config(
            scope="all", contact="test@example.org", data=str(directory / "data"), dns=ground.dns,
            allow=(f"{PUBLIC}/32",), politeness=Politeness(Seconds(0.0), Seconds(0.0), 1e9),
            limits=Limits(patience=Seconds(0.5)), caches=Caches(dns=Seconds(0.0), dns_stale=Seconds(0.0)),
            traps=Traps(fan_out=1_000_000, shape_urls=10_000),
        )  # fmt: skip
        layout = prepare(config, [from_seed(seed) for seed in seeds])
        await asyncio.wait_for(_to_its_end(config, layout), 60)
        caught = await ground.spring()
    state = RocksState(layout.state(0), read_only=True)
    records = {key(record.url): record for record in state.url_records()}
    place = Router(layout.read().partitions).place
    robots: dict[str, str] = {}
    for origin in {origin_of(record.url) for record in records.values()}:
        known = await state.robots(place(host_of(origin + "/"))[2], origin)
        robots[origin] = known.reason if known else ""
    state.shut()
    jobs = Jobs(layout)
    stored = b"".join(repr(record).encode() for record in records.values())
    stored += b"".join(repr(shown).encode() for shown in read_pages(layout.pages)) + _requests(layout.warc)
    return Crawled(ground, records, robots, [], caught, jobs.count(1), len(jobs.all()), stored)


def _requests(directory: Path) -> bytes:
    """The head of every raw record, and all of those that hold a request of ours."""
    said = []
    for path in directory.glob("*.warc.gz"):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, no_record_parse=True):
                said.append(str(record.rec_headers).encode())
                if record.rec_type == "request":
                    said.append(record.content_stream().read())
    return b"".join(said)


async def _to_its_end(config: Config, layout: Layout) -> None:
    wired = await open_crawler(config, seed=1)
    jobs = Jobs(layout)
    wired.seeding.want(1, jobs.size(1))
    try:
        while True:
            if wired.seeding.wanting:
                await wired.seeding.step()
            if await wired.crawler.step() and not wired.seeding.wanting:
                return
    finally:
        await wired.crawler.close()


# -- the crawl, from the other side of the wire ------------------------------------------------------------------------


def test_the_corpus_is_large() -> None:
    assert len({case.text for case in CASES}) >= 400
    assert len(MET) >= 1_000


@pytest.mark.slow
def test_no_connection_reaches_a_guarded_address(crawled: Crawled) -> None:
    ground = crawled.ground
    assert len(ground.traps) >= 10
    assert sorted(crawled.caught) == sorted(ground.traps), (
        "each trap caught us, when we walked into it, and nobody else"
    )
    assert {(as_address(ip), port) for ip, port in crawled.sockets} <= {
        (PUBLIC, ground.port),
        ("::ffff:7f00:2", ground.port),
    }
    assert len(crawled.sockets) == ground.connections, "every socket of the crawl ended at the public web"
    assert len(ground.heads) > len([one for one in MET if one.way == "go"]), "and it was a crawl"


@pytest.mark.slow
@pytest.mark.parametrize("way", ["links", "go", "meta", "refresh", "frame", "area", "canonical", "feed", "item"])
def test_each_case_has_an_outcome(crawled: Crawled, way: str) -> None:
    port = crawled.ground.port
    wrong = [
        (one.case, ended) for one in MET if one.way == way and not _fits(one.case, ended := _end(crawled, one, port))
    ]
    assert wrong == []


def _end(crawled: Crawled, one: Met, port: int) -> str:
    url = one.url(port)
    if url is None:
        if one.way != "go":
            return NO_URL
        reason = crawled.why(f"http://hub.web.test:{port}/go/{one.number}")
        return NO_URL if reason.startswith("bad redirect: cannot fetch") else reason
    record, reason = crawled.records[key(url)], crawled.why(url)
    if record.status in (Status.FETCHED, Status.DUPLICATE):
        return THE_WEB
    if record.status is Status.REFUSED and reason.startswith("guard: ") and "--allow" in reason:
        return reason
    return NO_NAME if reason.startswith("dns: ") else f"not refused: {reason}"


def _fits(case: Case, ended: str) -> bool:
    return case.ends in ended


@pytest.mark.slow
def test_a_base_element_moves_links_no_further_than_they_may_go(crawled: Crawled) -> None:
    below = {host_of(record.url): record for url, record in crawled.records.items() if url.endswith("/below")}
    assert {"localhost", "0.0.0.0", "192.168.0.1", "::ffff:ffff:ffff"} <= set(below)
    for record in below.values():
        reason = crawled.why(record.url)
        assert record.status is Status.FETCHED or reason.startswith(("guard: ", "dns: ")), record


@pytest.mark.slow
def test_rules_behind_a_redirect_to_a_guarded_address_cannot_be_had(crawled: Crawled) -> None:
    port, refused = crawled.ground.port, 0
    for one in MET:
        if one.way != "robots" or one.case.ends in (NO_URL, NO_NAME, THE_WEB) or "rebind" in one.case.text:
            continue
        reason = crawled.robots[f"http://r{one.number}.robots.test:{port}"]
        assert one.case.ends in reason, one
        assert reason.startswith("connect: robots.txt leads to "), one
        assert crawled.records[f"http://r{one.number}.robots.test:{port}/page"].status is Status.PENDING
        refused += 1
    assert refused > 15


@pytest.mark.slow
def test_sitemaps_named_by_robots_txt_are_guarded_too(crawled: Crawled) -> None:
    port = crawled.ground.port
    urls = [(one, url) for one in MET if one.way == "named" and (url := _resolved(one, f"http://maps.test:{port}/"))]
    assert len(urls) > 15
    for one, url in urls:
        if one.case.ends not in (NO_URL, NO_NAME, THE_WEB):
            assert one.case.ends in crawled.why(url), one


def _resolved(one: Met, base: str) -> str | None:
    return Base(base).resolve(one.text(int(base.split(":")[2].strip("/"))))


# -- who may say what is crawled ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_sitemap_speaks_for_its_own_site_and_for_that_which_named_it(crawled: Crawled) -> None:
    port = crawled.ground.port
    assert f"http://www.maps.test:{port}/own" in crawled.records
    assert f"http://maps.test:{port}/by-proxy" in crawled.records
    assert f"http://good.test:{port}/not-its-own" not in crawled.records
    assert f"http://good.test:{port}/not-by-proxy" not in crawled.records
    listed = [one.text(port) for one in MET if one.way == "listed"]
    assert not {key(url) for text in listed if (url := Base(f"http://maps.test:{port}/").resolve(text))} & {
        url for url in crawled.records if not url.startswith(f"http://maps.test:{port}/")
    }


@pytest.mark.slow
def test_no_page_makes_a_seed_or_a_job(crawled: Crawled) -> None:
    port = crawled.ground.port
    assert (crawled.jobs, crawled.seeds) == (1, len(SEEDS))
    seeds = {key(record.url) for record in crawled.records.values() if record.kind == "seed"}
    assert seeds == {key(from_seed(seed.replace("{web}", str(port)))) for seed in SEEDS}
    for seed in SEEDS[2:]:
        assert crawled.why(from_seed(seed.replace("{web}", str(port)))).startswith("guard: "), seed


@pytest.mark.slow
def test_passwords_in_urls_are_neither_sent_nor_kept(crawled: Crawled) -> None:
    assert not [head for head in crawled.ground.heads if b"secret" in head or b"uthorization" in head]
    assert b"cannot fetch" in crawled.stored
    assert b"GET /go/" in crawled.stored
    assert b"user:" not in crawled.stored
    assert b"secret@" not in crawled.stored


# -- each wall by itself -----------------------------------------------------------------------------------------------


def _leads_to(url: str) -> list[str]:
    """The guarded addresses behind a URL, by whatever a name server may say."""
    host = host_of(url)
    if host in NAMES:
        answers = NAMES[host][0]
        return [address for address in (*answers.first, *answers.later) if address != PUBLIC]
    literal = as_address(host) or ("127.0.0.1" if f".{host}".endswith(".localhost") else PUBLIC)
    return [literal]


def test_the_socket_is_refused_though_nothing_before_it_objected() -> None:
    """The second wall alone: requests with a guarded address, as if the look-up had been fooled."""

    async def scene() -> None:
        guard = Guard([f"{PUBLIC}/32"])
        async with standing(lambda host, path: page()) as ground, fetching(guard=guard.refusal) as fetcher:
            asked = 0
            for one in MET:
                url = one.url(ground.port) if one.way == "links" and one.case.ends not in (THE_WEB, NO_NAME) else None
                for address in _leads_to(url) if url else ():
                    answer = await get(fetcher, Request(url or "", address))
                    assert isinstance(answer, Failure), one
                    assert answer.kind is FailureKind.GUARD, (one, answer)
                    asked += 1
            assert asked > 250
            assert ground.connections == 0
            assert sorted(await ground.spring()) == sorted(ground.traps)

    run(scene())


def test_a_name_that_changes_its_mind_is_still_asked_at_the_vetted_address() -> None:
    async def scene() -> None:
        guard = Guard([f"{PUBLIC}/32"])
        async with standing(lambda host, path: page()) as ground, fetching(guard=guard.refusal) as fetcher:
            for host in ("rebind.web.test", "127.0.0.1", "localhost", "[::1]"):
                answer = await get(fetcher, Request(f"http://{host}:{ground.port}/", PUBLIC))
                assert not isinstance(answer, Failure), answer
            assert sorted(await ground.spring()) == sorted(ground.traps)

    run(scene())


@for_each("case", [case for case in CASES if case.ends == NO_URL and "{n}" in case.text])
def test_what_is_no_url_is_no_seed_and_the_reason_is_told(case: Case) -> None:
    text = case.text.replace("{web}", "8080").replace("{n}", "x")
    if text.startswith(("//", "\\")):
        return  # a seed without a scheme is taken for a host name
    with pytest.raises(UrlError) as refused:
        from_seed(text)
    assert len(str(refused.value)) > 10
    assert "secret" not in str(refused.value)


@for_each(
    "case",
    [
        case
        for case in CASES
        if case.ends not in (NO_URL, NO_NAME, THE_WEB) and case.text.startswith("http://") and case.family != "ports"
    ],
)
def test_seeds_on_guarded_addresses_are_refused_at_once(case: Case) -> None:
    seed = from_seed(case.text.replace("{web}", "8080").replace("{n}", "x"))
    host = host_of(seed)
    if as_address(host) is None and not f".{host}".endswith(".localhost"):
        return  # a name: known when it is looked up
    with pytest.raises(UsageError, match="add --allow"):
        refuse_rudeness(Config(contact="test@example.org", allow=(f"{PUBLIC}/32",)), [seed])
