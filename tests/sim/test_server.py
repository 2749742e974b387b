"""The server over real sockets: what it answers, how it holds a connection, what it writes down."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from subprocess import PIPE, Popen
from threading import Thread

import dns.message
import dns.query
import pytest

from harvestman.sim.hosts import Feature, Feed, Host, Robots, Sitemap
from harvestman.sim.listings import FEEDS
from harvestman.sim.log import Agent, Asked, Closed, Header, Line, Opened, read
from harvestman.sim.pages import Press
from harvestman.sim.plan import Plan
from harvestman.sim.replies import OVERSIZED, Replies
from harvestman.sim.requests import Ask
from harvestman.sim.server import SimServer
from harvestman.sim.web import Web

PLAN = Plan(hosts=60, pages=12)


@dataclass
class Got:
    """An answer, read."""

    status: int
    fields: dict[str, str]
    body: bytes


async def read_answer(reader: asyncio.StreamReader, head_only: bool = False) -> Got:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    length = 0 if head_only or head[0].split()[1] == "304" else int(fields.get("content-length", "0"))
    return Got(int(head[0].split()[1]), fields, await reader.readexactly(length))


class Client:
    """One connection."""

    def __init__(self, server: SimServer) -> None:
        self.server = server

    async def open(self, host: Host) -> None:
        self.host = host
        self.reader, self.writer = await asyncio.open_connection(host.address, self.server.port)

    def request(self, target: str, *fields: str, method: str = "GET") -> bytes:
        lines = [
            f"{method} {target} HTTP/1.1",
            f"Host: {self.host.name}:{self.server.port}",
            "User-Agent: t/1",
            *fields,
        ]
        return "\r\n".join([*lines, "", ""]).encode()

    def send(self, target: str, *fields: str, method: str = "GET") -> None:
        self.writer.write(self.request(target, *fields, method=method))

    async def get(self, target: str, *fields: str, method: str = "GET") -> Got:
        self.send(target, *fields, method=method)
        return await read_answer(self.reader, method == "HEAD")

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


Visit = Callable[[SimServer, Client], Awaitable[None]]


@contextlib.contextmanager
def serving(log: Path) -> Iterator[SimServer]:
    """A server, running in a thread of its own."""
    server = SimServer(PLAN, log=log)
    server.start()
    thread = Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(5)
    assert not thread.is_alive()


def visit(log: Path, steps: Visit) -> list[Line]:
    """Runs a server, the steps of a test against it, and reads the log it left."""

    async def run() -> None:
        with serving(log) as server:
            await asyncio.wait_for(steps(server, Client(server)), 10)

    asyncio.run(run())
    return list(read(log))


def find(server: SimServer, *, robots: Robots | None = None, feature: Feature | None = None) -> Host:
    return next(
        host
        for host in server.web.hosts
        if (robots is None or host.robots is robots) and (feature is None or host.feature is feature)
    )


def test_pages_and_conditional_requests(tmp_path: Path) -> None:
    async def steps(server: SimServer, client: Client) -> None:
        host = server.web.hosts[0]
        await client.open(host)
        path = server.web.path(host, 3)
        plain = await client.get(path)
        zipped = await client.get(path, "Accept-Encoding: br, gzip")
        assert plain.status == zipped.status == 200
        assert "content-encoding" not in plain.fields
        assert gzip.decompress(zipped.body) == plain.body
        head = await client.get(path, method="HEAD")
        assert (head.status, head.fields["content-length"]) == (200, str(len(plain.body)))
        for field in (f"If-None-Match: {plain.fields['etag']}", f"If-Modified-Since: {plain.fields['last-modified']}"):
            assert (await client.get(path, field)).status == 304
        assert (await client.get(path, 'If-None-Match: W/"other"')).status == 200
        assert (await client.get(path, "If-Modified-Since: Mon, 01 Jan 2001 00:00:00 GMT")).status == 200
        assert (await client.get(path, method="POST")).status == 405
        assert (await client.get("/no/such/page")).status == 404
        client.host = Host(0, "nobody.test", "", 0, "en", Robots.NONE, Feature.PLAIN)
        assert (await client.get("/")).status == 421

    visit(tmp_path / "log", steps)


def test_robots_variants(tmp_path: Path) -> None:
    expected = {
        Robots.NONE: 404, Robots.ALLOW: 200, Robots.RULES: 200, Robots.DELAY: 200, Robots.HUGE: 200,
        Robots.MOVED: 302, Robots.FORBIDDEN: 403, Robots.CLOSED: 200, Robots.BROKEN: 503,
    }  # fmt: skip

    async def steps(server: SimServer, client: Client) -> None:
        got: dict[Robots, Got] = {}
        for robots in expected:
            await client.open(find(server, robots=robots))
            got[robots] = await client.get("/robots.txt")
            if robots is Robots.MOVED:
                assert b"/private/" in (await client.get(got[robots].fields["location"])).body
            await client.close()
        assert {robots: answer.status for robots, answer in got.items()} == expected
        assert b"Crawl-delay: 2" in got[Robots.DELAY].body
        assert len(got[Robots.HUGE].body) > 500 * 1024
        assert got[Robots.CLOSED].body.endswith(b"Disallow: /\n")

    visit(tmp_path / "log", steps)


def test_silent_robots_is_logged_when_the_client_gives_up(tmp_path: Path) -> None:
    async def steps(server: SimServer, client: Client) -> None:
        await client.open(find(server, robots=Robots.SILENT))
        client.send("/robots.txt")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.reader.read(1), 0.1)
        await client.close()

    asked = [line for line in visit(tmp_path / "log", steps) if isinstance(line, Asked)]
    assert [(each.target, each.status, each.note) for each in asked] == [("/robots.txt", 0, "aborted")]
    assert 0.1 <= asked[0].end - asked[0].arrival < 5


def test_tempers_heal(tmp_path: Path) -> None:
    async def statuses(client: Client, count: int) -> list[int]:
        return [(await client.get("/")).status for _ in range(count)]

    async def steps(server: SimServer, client: Client) -> None:
        await client.open(find(server, feature=Feature.BURST))
        assert await statuses(client, 8) == [200] * 4 + [503] * 2 + [200] * 2
        await client.open(find(server, feature=Feature.THROTTLED))
        assert await statuses(client, 5) == [200] * 3 + [429] * 2

    lines = visit(tmp_path / "log", steps)
    throttled = [line for line in lines if isinstance(line, Asked) and line.status == 429]
    assert [each.retry_after for each in throttled] == [3.0, 3.0]


def test_odd_answers(tmp_path: Path) -> None:
    async def steps(server: SimServer, client: Client) -> None:
        await client.open(find(server, feature=Feature.REDIRECTS))
        chain = [await client.get(f"/chain/{hop}") for hop in (5, 1)]
        assert [each.fields["location"] for each in chain] == ["/chain/4", "/landing/5"]
        assert (await client.get("/away")).fields["location"].startswith("http://")
        await client.open(find(server, feature=Feature.GONE))
        assert [(await client.get(path)).status for path in ("/missing/1", "/gone/1")] == [404, 410]
        await client.open(find(server, feature=Feature.DUPLICATES))
        copy, near = await client.get("/copy/0"), await client.get("/near/0")
        home = await client.get("/")
        assert copy.body == home.body
        assert near.body != home.body
        assert abs(len(near.body) - len(home.body)) < 20
        await client.open(find(server, feature=Feature.TAGGED))
        assert b'content="nofollow"' in (await client.get("/tagged/nofollow")).body
        assert (await client.get("/tagged/nofollow-header")).fields["x-robots-tag"] == "nofollow"
        await client.open(find(server, feature=Feature.BINARIES))
        assert (await client.get("/media/film.mp4")).fields["content-type"] == "video/mp4"
        await client.open(find(server, feature=Feature.CHARSETS))
        host = client.host
        assert (await client.get(server.web.path(host, 3))).body.startswith(b"\xff\xfe")
        assert b"windows-1252" in (await client.get(server.web.path(host, 1))).body

    visit(tmp_path / "log", steps)


def test_sitemaps_and_feeds(tmp_path: Path) -> None:
    async def body(client: Client, where: tuple[Host, str]) -> bytes:
        await client.open(where[0])
        got = await client.get(where[1])
        assert got.status == 200
        return gzip.decompress(got.body) if got.fields["content-type"] == "application/gzip" else got.body

    async def steps(server: SimServer, client: Client) -> None:
        roots = {Sitemap.INDEX: b"<sitemapindex ", Sitemap.TEXT: b"http://"}
        for sitemap in set(Sitemap) - {Sitemap.NONE}:
            host = next(host for host in server.web.hosts if host.sitemap is sitemap and not host.shut)
            where = server.web.sitemap(host)
            assert where
            await client.open(host)
            robots = await client.get("/robots-rules.txt" if host.robots is Robots.MOVED else "/robots.txt")
            line = f"Sitemap: http://{where[0].name}:{server.port}{where[1]}\n".encode()
            assert robots.body.startswith(line) == (sitemap is not Sitemap.KNOWN)
            listed = await body(client, where)
            assert roots.get(sitemap, b"<urlset ") in listed
            if sitemap is Sitemap.INDEX:
                listed = b"".join([await body(client, (host, f"/sitemaps/{part}")) for part in ("1.xml", "2.xml.gz")])
            assert all(f"{host.name}:{server.port}/orphan/{number}".encode() in listed for number in (1, 2, 3))
        for feed in (Feed.RSS, Feed.ATOM):
            host = next(host for host in server.web.hosts if host.feed is feed)
            link = f'type="application/{feed}+xml" href="{FEEDS[feed]}"'.encode()
            assert link in await body(client, (host, "/"))
            assert b"/news-flash/2<" in await body(client, (host, FEEDS[feed]))
        bare = next(host for host in server.web.hosts if host.sitemap is Sitemap.NONE)
        await client.open(bare)
        assert (await client.get("/sitemap.xml")).status == 404

    visit(tmp_path / "log", steps)


def test_sitemap_dates_are_those_of_the_pages_or_lies() -> None:
    web = Web(Plan(hosts=120, pages=12))
    replies = Replies(web, Press(web, 80), 1_800_000_000.0)
    now = 1_800_005_000.0
    changing = (
        host for host in web.hosts if host.feature is Feature.CHANGING and host.sitemap in (Sitemap.XML, Sitemap.KNOWN)
    )
    for host in changing:
        where = web.sitemap(host)
        assert where
        text = replies.reply(Ask(where[0].name, where[1]), now).body.decode()
        dates = [datetime.fromisoformat(each).timestamp() for each in re.findall("<lastmod>([^<]+)", text)]
        head = replies.reply(Ask(host.name, "/"), now).head.decode()
        modified = parsedate_to_datetime(head.partition("Last-Modified: ")[2].partition("\r")[0]).timestamp()
        assert abs(dates[0] - (now if host.lying else modified)) <= 1
        assert (len(set(dates)) == 1) == host.lying


def test_oversized_bodies_are_streamed_and_can_be_left(tmp_path: Path) -> None:
    async def steps(server: SimServer, client: Client) -> None:
        await client.open(find(server, feature=Feature.OVERSIZED))
        assert len((await client.get("/big/announced")).body) > 0.99 * OVERSIZED
        client.send("/big/stream")
        await client.reader.readexactly(100_000)
        client.writer.transport.abort()
        await asyncio.sleep(0.05)

    asked = [line for line in visit(tmp_path / "log", steps) if isinstance(line, Asked)]
    assert [each.note for each in asked] == ["", "aborted"]
    assert asked[1].bytes < OVERSIZED


def test_slow_hosts_are_slow_and_pipelined_requests_wait_their_turn(tmp_path: Path) -> None:
    async def steps(server: SimServer, client: Client) -> None:
        await client.open(find(server, feature=Feature.SLOW))
        loop = asyncio.get_running_loop()
        start = loop.time()
        await client.get("/")
        assert loop.time() - start > 0.45
        await client.open(server.web.hosts[0])
        client.writer.write(client.request("/") + client.request("/robots.txt"))
        assert [(await read_answer(client.reader)).status for _ in range(2)] == [200, 404]

    *_, one, two = [line for line in visit(tmp_path / "log", steps) if isinstance(line, Asked)]
    assert two.arrival < one.end


def test_log_tells_who_when_and_over_what(tmp_path: Path) -> None:
    async def steps(server: SimServer, client: Client) -> None:
        await client.open(server.web.hosts[1])
        await client.get("/robots.txt")
        await asyncio.sleep(0.05)
        await client.get("/", "Connection: close")
        assert await client.reader.read() == b""

    lines = visit(tmp_path / "log", steps)
    header, opened, agent, *asked, closed = lines
    assert isinstance(header, Header)
    assert header.plan == PLAN
    assert isinstance(opened, Opened)
    assert opened.address == "127.1.0.2"
    assert isinstance(agent, Agent)
    assert agent.name == "t/1"
    assert isinstance(closed, Closed)
    one, two = (line for line in asked if isinstance(line, Asked))
    assert (one.target, two.target, one.connection) == ("/robots.txt", "/", two.connection)
    assert 0.05 <= two.arrival - one.arrival < 1
    assert one.arrival <= one.end <= two.arrival


def test_names_are_answered_beside_pages(tmp_path: Path) -> None:
    with serving(tmp_path / "log") as server:
        host = server.web.hosts[4]
        query = dns.message.make_query(host.name, "A")
        answer = dns.query.udp(query, "127.0.0.1", timeout=5, port=server.dns_port)
    assert [str(record) for section in answer.answer for record in section] == [host.address]


def test_many_pipelined_requests_and_one_in_pieces(tmp_path: Path) -> None:
    async def steps(server: SimServer, client: Client) -> None:
        await client.open(server.web.hosts[0])
        client.writer.write(400 * client.request("/robots.txt"))
        assert {(await read_answer(client.reader)).status for _ in range(400)} == {404}
        whole = f"GET http://{client.host.name}/ HTTP/1.0\r\nAccept: */*\r\nhost: {client.host.name.upper()}\r\n\r\n"
        for at in range(0, len(whole), 20):
            client.writer.write(whole[at : at + 20].encode())
            await asyncio.sleep(0.005)
        assert (await read_answer(client.reader)).status == 200
        assert await client.reader.read() == b""

    assert len([line for line in visit(tmp_path / "log", steps) if isinstance(line, Asked)]) == 401


def test_no_request_no_answer(tmp_path: Path) -> None:
    async def steps(server: SimServer, client: Client) -> None:
        for rubbish in (b"hello\r\n\r\n", b"x" * 100_000):
            await client.open(server.web.hosts[0])
            client.writer.write(rubbish)
            with contextlib.suppress(ConnectionError):
                assert await client.reader.read() == b""

    assert not [line for line in visit(tmp_path / "log", steps) if isinstance(line, Asked)]


@pytest.mark.slow
def test_run_says_when_it_is_ready_and_ends_by_signal(tmp_path: Path) -> None:
    words = ["--hosts", "3", "--port", "0", "--dns-port", "0", "--log", str(tmp_path / "log")]
    with Popen([sys.executable, "-m", "harvestman.sim", *words], stderr=PIPE, text=True) as server:
        assert server.stderr
        assert "on port" in server.stderr.readline()
        server.terminate()
        assert server.wait(5) == 0
    assert len(list(read(tmp_path / "log"))) == 1
