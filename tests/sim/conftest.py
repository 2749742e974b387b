"""A crawler of fifty lines, with a clock of its own, that visits a simulated web without a socket."""

from __future__ import annotations

import gzip
import re
from collections import deque
from collections.abc import Callable
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit

import msgspec
import pytest

from harvestman.sim.hosts import Host
from harvestman.sim.log import Asked, header_line
from harvestman.sim.odd import Kind
from harvestman.sim.pages import Press
from harvestman.sim.paths import normal
from harvestman.sim.plan import Plan
from harvestman.sim.replies import Replies, Reply
from harvestman.sim.requests import Ask, Manners
from harvestman.sim.robots_txt import PATHS
from harvestman.sim.web import Web

PORT = 8800
START = 1_800_000_000.0
_LINK = re.compile(r'<a href ?= ?"?([^">\s]+)"?([^>]*)>', re.I)
_FEED = re.compile(r'<link rel="alternate" type="application/\w+\+xml" href="([^"]+)">')
_LISTED = re.compile(r'<loc>([^<]+)</loc>|<item>.*?<link>([^<]+)</link>|<entry>.*?href="([^"]+)"|^(http\S+)$', re.M)


class Visitor:
    """Walks a web as a well-behaved crawler would; every request moves the clock of its host on."""

    def __init__(self, plan: Plan) -> None:
        self.web = Web(plan)
        self._replies = Replies(self.web, Press(self.web, PORT), START)
        self._clocks: dict[str, float] = {}
        self._seen: set[tuple[str, str]] = set()
        self._queue: deque[tuple[str, str, int]] = deque()
        self.asked: list[Asked] = []

    def _fill(self, name: str, target: str) -> None:
        """What a browser would do: the scripts, each once, then the content, whose links are followed."""
        host = self.web.by_name[name]
        api = self.web.api(host, normal(target))
        if host.disallows(api):
            return
        for where, path in self.web.scripts(host):
            if (where.name, path) not in self._seen:
                self._seen.add((where.name, path))
                assert self._fetch(where.name, path).status == 200
        filled = self._fetch(name, api)
        for href, _, rel in msgspec.json.decode(_text(filled))["links"]:
            if "nofollow" not in rel:
                self._found(urljoin(f"http://{name}:{PORT}{target}", href), 0)

    def crawl(self) -> list[Asked]:
        for url in self.web.seeds(PORT):
            self._found(url, 0)
        while self._queue:
            name, target, hops = self._queue.popleft()
            host = self.web.by_name.get(name)
            if host is None or not host.resolves or host.disallows(normal(target)) or self._endless(host, target):
                continue
            self._visit(name, target, hops)
        return self.asked

    def _endless(self, host: Host, target: str) -> bool:
        return self.web.plan.profile == "wild" and self.web.kind(host, target) in (Kind.TRAP, Kind.FARM)

    def _found(self, url: str, hops: int) -> None:
        parts = urlsplit(urldefrag(url).url)
        name, target = parts.hostname or "", parts.path + (f"?{parts.query}" if parts.query else "")
        if (name, normal(target)) not in self._seen:
            self._seen.add((name, normal(target)))
            self._queue.append((name, target or "/", hops))

    def _visit(self, name: str, target: str, hops: int) -> None:
        reply = self._fetch(name, target)
        self._read(f"http://{name}:{PORT}{target}", reply, hops)
        if self.web.by_name[name].app and reply.status == 200 and b"text/html" in reply.head:
            self._fill(name, target)

    def _fetch(self, name: str, target: str) -> Reply:
        if name not in self._clocks:
            self._clocks[name] = START
            robots = self._ask(name, "/robots.txt")
            if robots.status == 302:
                robots = self._ask(name, "/robots-rules.txt")
            named = re.findall(r"^Sitemap: (\S+)", _text(robots), re.M)
            for url in named or [f"http://{name}:{PORT}/sitemap.xml"]:
                self._found(url, 0)
        reply = self._ask(name, target)
        while reply.status in (429, 503):
            reply = self._ask(name, target)
        return reply

    def _ask(self, name: str, target: str) -> Reply:
        host = self.web.by_name[name]
        now = self._clocks[name] = self._clocks[name] + max(1.0, 0.0 if target in PATHS else host.crawl_delay)
        reply = self._replies.reply(Ask(name, target, manners=Manners(gzip=True)), now)
        end = now + reply.delay + 0.01
        size = len(reply.head) + len(reply.body)
        self.asked.append(
            Asked(now, end, f"c-{name}", host.address, name, "GET", target, reply.status, size, reply.note)
        )
        self._clocks[name] = max(now, end + self.asked[-1].retry_after, end - 1.0)
        return reply

    def _read(self, url: str, reply: Reply, hops: int) -> None:
        location = re.search(rb"\r\nLocation: (\S+)", reply.head)
        if location and hops < 5:
            self._found(urljoin(url, location[1].decode()), hops + 1)
        if reply.status != 200 or len(reply.body) > 2_000_000 or "bomb" in url:
            return
        text = _text(reply)
        if b"text/html" not in reply.head:
            for found in _LISTED.findall(text):
                self._found(unescape("".join(found)), 0)
            return
        if b"Tag: nofollow" in reply.head or 'content="nofollow"' in text:
            return
        for href in _FEED.findall(text):
            self._found(urljoin(url, href), 0)
        for href, rest in _LINK.findall(text):
            if "nofollow" not in rest:
                self._found(urljoin(url, unescape(href)), 0)


def _text(reply: Reply) -> str:
    body = gzip.decompress(reply.body) if reply.body.startswith(b"\x1f\x8b") else reply.body
    return body.decode("utf-16") if body.startswith((b"\xff\xfe", b"\xfe\xff")) else body.decode("latin-1")


@cache
def _crawled(plan: Plan) -> tuple[Asked, ...]:
    return tuple(Visitor(plan).crawl())


@pytest.fixture
def visited() -> Callable[[Plan], list[Asked]]:
    """The requests of a polite and complete crawl of a plan's web."""
    return lambda plan: list(_crawled(plan))


@pytest.fixture
def written(tmp_path: Path) -> Callable[[Plan, list[Asked]], Path]:
    """Puts requests into a log file."""

    def write(plan: Plan, asked: list[Asked]) -> Path:
        log = tmp_path / "requests.log"
        opened = "".join(
            f"O\t{START:.6f}\t{name}\t127.0.0.1\n" for name in dict.fromkeys(each.connection for each in asked)
        )
        log.write_text(header_line(plan, PORT, START) + opened + "".join(each.line() for each in asked))
        return log

    return write
