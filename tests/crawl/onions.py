"""Crawls an onion site through a SOCKS5 server that plays Tor, and prints what everybody saw, as JSON.

A program of its own, so that a test can run it in a network namespace and read from the kernel how many UDP packets
left, whoever sent them: libc and libcurl included.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec
from crawl.names import naming
from stages.rawserver import RawServer, Reply, page
from stages.socksserver import SocksServer

from harvestman.api import Crawl
from harvestman.config import Config, Limits, Politeness, Proxy
from harvestman.model import Seconds

SITE = "duckduckgogg42xjoc72x3sjasowoarfbgcmvfimaftt6twagswzczad.onion"
HOME = "127.0.0.1"


def _page(*links: str) -> bytes:
    return page("".join(f'<p>words <a href="{link}">{link}</a>' for link in links).encode())


REPLIES: dict[str, Reply] = {
    "/robots.txt": page(b"User-agent: *\nDisallow: /private/\n", "text/plain"),
    "/": _page("/a", "/private/x", "https://clear.test/", f"http://www.{SITE}/b", "http://stranger.onion/"),
    "/a": _page("/", "/c"),
    "/b": _page("/b2"),
    "/b2": _page("/b"),
    "/c": _page("/a"),
    "*": page(b"", status="404 Not Found"),
}


def udp_sent() -> int:
    """Packets that left this network namespace so far."""
    fields, values = (
        line.split() for line in Path("/proc/net/snmp").read_text().splitlines() if line.startswith("Udp:")
    )
    return int(values[fields.index("OutDatagrams")])


class Seen(msgspec.Struct):
    """What everybody saw."""

    pages: list[str]
    heads: list[str]
    proxied: list[tuple[str, int, str]]
    """Name, port and user, as the proxy was told them."""
    kinds: list[int]
    names: list[str]
    """What the name server was asked for."""
    udp: int = 0
    """Packets that left."""
    getaddrinfo: list[str] = []
    """What Python asked libc for."""


async def crawl(data: str) -> Seen:
    server = RawServer(REPLIES)
    async with server.listening(), naming({}) as names:
        tor = SocksServer({SITE: (HOME, server.port), f"www.{SITE}": (HOME, server.port)})
        async with tor.listening():
            config = Config(
                seeds=(f"http://{SITE}/",),
                contact="test@example.org",
                data=data,
                dns=names.server,
                proxies=(Proxy(("*.onion",), f"socks5h://{HOME}:{tor.port}"),),
                politeness=Politeness(delay=Seconds(0.1), onion_delay=Seconds(0.3)),
                limits=Limits(patience=Seconds(2.0), max_depth=3),
            )
            pages = [page.url async for page in Crawl(config)]
    return Seen(pages, [head.decode() for head in server.heads], tor.asked, sorted(tor.kinds), names.asked)


def main() -> None:
    looked_up: list[str] = []
    sys.addaudithook(lambda event, args: looked_up.append(str(args[0])) if event == "socket.getaddrinfo" else None)
    before = udp_sent()
    seen = asyncio.run(crawl(sys.argv[1]))
    seen.udp, seen.getaddrinfo = udp_sent() - before, looked_up
    print(msgspec.json.encode(seen).decode())


if __name__ == "__main__":
    main()
