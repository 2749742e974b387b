"""From a name to a page: which of its addresses are used, over IPv4 and IPv6, and what is told of names."""

from __future__ import annotations

from pathlib import Path

import pytest
from stages.nameserver import NameServer, Zone, six_here
from stages.rawserver import RawServer, page, run

from harvestman.api import Crawl
from harvestman.config import Caches, Config, Limits, Politeness, Watch
from harvestman.embedded.state import RocksState
from harvestman.layout import Layout
from harvestman.model import Page, Seconds, Tally, UrlRecord

ROBOTS = page(b"", status="404 Not Found")
HERE = ("127.0.0.0/8", "::1/128")


def serving(*links: str) -> RawServer:
    body = "<title>t</title>" + "".join(f'<a href="{link}">x</a>' for link in links)
    pages = {link: page(f"<title>{link}</title>".encode()) for link in links}
    return RawServer({"/robots.txt": ROBOTS, "/sitemap.xml": ROBOTS, "/": page(body.encode()), **pages})


def settings(names: NameServer, data: Path, seed: str, watch: Watch | None = None, delay: float = 0.0) -> Config:
    return Config(
        seeds=(seed,), scope="host", data=str(data), dns=f"{names.address}:{names.port}", allow=HERE,
        politeness=Politeness(delay=Seconds(delay), ip_delay=Seconds(0.0)), limits=Limits(patience=Seconds(0.5)),
        caches=Caches(dns=Seconds(1.5)), watch=watch or Watch(),
    )  # fmt: skip


async def crawled(config: Config) -> tuple[list[str], Tally]:
    crawl = Crawl(config)
    return [page.url async for page in crawl], crawl.tally


def records(data: Path) -> list[UrlRecord]:
    state = RocksState(Layout(data).state(0), read_only=True)
    found = list(state.url_records())
    state.shut()
    return found


@pytest.mark.parametrize(
    ("kind", "poison", "good"),
    [
        ("A", ["10.0.0.1", "169.254.169.254", "192.168.1.1"], "127.0.0.1"),
        pytest.param(
            "AAAA", ["fd00::1", "fe80::1", "::ffff:10.0.0.1"], "::1",
            marks=pytest.mark.skipif(not six_here(), reason="this machine has no ::1"),
        ),
    ],
)  # fmt: skip
def test_private_addresses_among_others_are_never_used(tmp_path: Path, kind: str, poison: list[str], good: str) -> None:
    """The page comes over the one address that may be touched, of either family."""

    async def play() -> None:
        zone: Zone = {("mixed.test", kind): [("mixed.test", 60, kind, text) for text in [*poison, good]]}
        async with NameServer(zone).listening() as names, serving("/two").listening(good) as server:
            pages, tally = await crawled(settings(names, tmp_path, f"http://mixed.test:{server.port}/"))
            assert sorted(pages) == [f"http://mixed.test:{server.port}/", f"http://mixed.test:{server.port}/two"]
            assert tally.errors == {}
            assert tally.dns_hits + tally.dns_misses >= tally.requests >= 3

    run(play())


@pytest.mark.parametrize(("kind", "address"), [("A", "10.0.0.1"), ("AAAA", "fd00::1")])
def test_a_name_with_private_addresses_only_is_refused_and_says_why(tmp_path: Path, kind: str, address: str) -> None:
    async def play() -> None:
        zone: Zone = {("inside.test", kind): [("inside.test", 60, kind, address)]}
        async with NameServer(zone).listening() as names:
            pages, _ = await crawled(settings(names, tmp_path, "http://inside.test/"))
            assert pages == []

    run(play())
    (record,) = records(tmp_path)
    assert record.visit is not None
    assert f"{address} is private; --allow names networks" in record.visit.reason


@pytest.mark.slow
def test_a_host_that_moves_is_told_of_and_no_request_waits_for_its_new_address(tmp_path: Path) -> None:
    links = [f"/{n}" for n in range(6)]

    async def play() -> None:
        zone: Zone = {("big.test", "A"): [("big.test", 0, "A", "127.1.0.1")]}

        def move(page: Page) -> None:
            zone[("big.test", "A")] = [("big.test", 0, "A", "127.2.0.1")]

        first, second = serving(*links), serving(*links)
        async with NameServer(zone).listening() as names, first.listening("127.1.0.1"):
            second.port = first.port
            async with second.listening("127.2.0.1"):
                config = settings(names, tmp_path, f"http://big.test:{first.port}/", Watch(linkers=0), delay=0.4)
                crawl = Crawl(config, see=move)
                assert len([page async for page in crawl]) == 7
        assert first.heads
        assert second.heads
        assert [alert for alert in crawl.tally.alerts if "moved" in alert] == [
            "host big.test moved: its addresses were in 127.1.0.0/16 and all are in 127.2.0.0/16 now"
        ]
        assert crawl.tally.dns_misses == 1, "all look-ups but the first were ahead of their time"

    run(play())
