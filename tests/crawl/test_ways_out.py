"""Whole crawls by other ways than the straight one, and past certificates that are not valid."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import ssl
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import msgspec
import pytest
from crawl.names import naming
from crawl.onions import SITE, Seen
from stages.certificates import self_signed
from stages.rawserver import RawServer, Reply, page

from harvestman.api import Crawl
from harvestman.cli import explain, reasons
from harvestman.config import Config, Egress, Fetch, Limits, Politeness, Proxy
from harvestman.embedded.state import RocksState
from harvestman.errors import ConfigError
from harvestman.layout import Layout
from harvestman.model import HostKey, HostRecord, Instant, Seconds, Status, UrlRecord
from harvestman.policy.sites import site_of

pytestmark = pytest.mark.slow
HOME = "127.0.0.1"
TESTS = Path(__file__).parents[1]
PRIVATE_NETWORK = ("unshare", "-rn", "sh", "-c", 'ip link set lo up && ip route add default dev lo && exec "$@"', "sh")
"""A network of its own, where every packet to anywhere leaves by the loopback and is counted."""


def settings(data: Path, seeds: list[str], dns: str, **changes: object) -> Config:
    config = Config(
        seeds=tuple(seeds),
        contact="test@example.org",
        data=str(data),
        dns=dns,
        allow=("127.0.0.0/8",),
        politeness=Politeness(delay=Seconds(0.1), onion_delay=Seconds(0.1)),
        limits=Limits(patience=Seconds(1.5)),
    )
    return msgspec.structs.replace(config, **changes)


async def crawled(config: Config) -> list[str]:
    return [page.url async for page in Crawl(config)]


def known(data: Path) -> tuple[dict[str, UrlRecord], dict[str, HostRecord]]:
    state = RocksState(Layout(data).state(0), read_only=True)
    try:
        return (
            {record.url: record for record in state.url_records()},
            {record.host: record for _, record in state.host_rows()},
        )
    finally:
        state.shut()


async def why(url: str, data: Path) -> str:
    now = Instant(2e9)
    return reasons.told(await explain.look(url, data, now), now)


# -- onions ----------------------------------------------------------------------------------------------------------


def onion_crawl(data: Path, *prefix: str) -> Seen:
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    command = [*prefix, sys.executable, "-m", "crawl.onions", str(data)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return msgspec.json.decode(done.stdout, type=Seen)


def judge_onions(seen: Seen) -> None:
    home = f"http://{SITE}"
    assert sorted(seen.pages) == sorted(
        [f"{home}/", f"{home}/a", f"{home}/c", f"http://www.{SITE}/b", f"http://www.{SITE}/b2"]
    )
    assert seen.heads[0].split()[1] == "/robots.txt", "by the same way, and first"
    assert not any("/private" in head for head in seen.heads)
    assert {(name, user) for name, _, user in seen.proxied} == {(SITE, SITE), (f"www.{SITE}", SITE)}
    assert seen.kinds == [3], "names alone reach the proxy"
    assert seen.names == [], "no name server heard of it"
    assert seen.getaddrinfo == []


def test_an_onion_site_is_crawled_through_the_proxy_and_no_name_server_hears_of_it(tmp_path: Path) -> None:
    judge_onions(onion_crawl(tmp_path / "data"))


def test_and_no_packet_that_could_be_a_question_leaves_the_machine(tmp_path: Path) -> None:
    """The kernel's own count of UDP packets: not even libc or libcurl asked anybody."""
    allowed = shutil.which("unshare") and shutil.which("ip")
    if not allowed or subprocess.run([*PRIVATE_NETWORK, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network namespace may be made here")
    asks = "import socket\ntry: socket.getaddrinfo('a.test', 80)\nexcept OSError: pass"
    counts = "from crawl.onions import udp_sent; print(udp_sent())"
    control = subprocess.run(
        [*PRIVATE_NETWORK, sys.executable, "-c", f"{asks}\n{counts}"],
        env={**os.environ, "PYTHONPATH": str(TESTS), "RES_OPTIONS": "timeout:1 attempts:1"},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    if int(control.stdout) == 0:
        pytest.skip("this machine has no name server that a question could have gone to")
    seen = onion_crawl(tmp_path / "data", *PRIVATE_NETWORK)
    judge_onions(seen)
    assert seen.udp == 0


def test_an_onion_site_without_a_proxy_is_refused_with_the_cure_and_never_looked_up(tmp_path: Path) -> None:
    async def scene() -> list[str]:
        async with naming({}) as names:
            assert await crawled(settings(tmp_path / "data", ["http://abc.onion/"], names.server)) == []
            return names.asked

    assert asyncio.run(scene()) == []
    record = known(tmp_path / "data")[0]["http://abc.onion/"]
    assert record.status is Status.REFUSED
    assert record.visit is not None
    assert "[[proxies]]" in record.visit.reason


# -- proxies ---------------------------------------------------------------------------------------------------------


def test_a_crawl_whose_proxy_is_away_ends_and_blames_no_host(tmp_path: Path) -> None:
    with socket.create_server((HOME, 0)) as listener:
        port = listener.getsockname()[1]

    async def scene() -> list[str]:
        async with naming({}) as names:
            proxies = (Proxy(("*",), f"http://{HOME}:{port}"),)
            seeds = [f"http://h{n}.example/" for n in range(5)]
            assert await crawled(settings(tmp_path / "data", seeds, names.server, proxies=proxies)) == []
            return names.asked

    assert asyncio.run(scene()) == []
    records, hosts = known(tmp_path / "data")
    assert {record.status for record in records.values()} == {Status.PENDING}
    assert all(host.failures == 0 and host.sick_until == 0.0 for host in hosts.values())
    told = asyncio.run(why("http://h0.example/robots.txt", tmp_path / "data"))
    told += asyncio.run(why("http://h1.example/robots.txt", tmp_path / "data"))
    assert "proxy: Failed to connect" in told


def test_a_private_address_is_refused_behind_a_proxy_too(tmp_path: Path) -> None:
    async def scene() -> None:
        async with RawServer().listening() as proxy, naming({}) as names:
            config = settings(
                tmp_path / "data", ["http://a.example/"], names.server, allow=(), scope="all",
                proxies=(Proxy(("*",), f"http://{HOME}:{proxy.port}"),),
            )  # fmt: skip
            links = b'<a href="http://10.0.0.1/">x</a><a href="http://localhost/">y</a>'
            proxy.replies = {"http://a.example/": page(links), "*": page(b"", status="404 Not Found")}
            await crawled(config)
            assert {head.split()[1].decode() for head in proxy.heads} == {
                "http://a.example/robots.txt", "http://a.example/", "http://a.example/sitemap.xml",
            }  # fmt: skip

    asyncio.run(scene())
    records, _ = known(tmp_path / "data")
    for url, word in (("http://10.0.0.1/", "private"), ("http://localhost/", "loopback")):
        visit = records[url].visit
        assert records[url].status is Status.REFUSED
        assert visit is not None
        assert word in visit.reason


def test_a_password_that_is_not_in_the_environment_stops_the_start(tmp_path: Path) -> None:
    proxy = Proxy(("*",), f"http://{HOME}:1", user="anna", password_env="HARVESTMAN_NO_SUCH_VARIABLE")
    with pytest.raises(ConfigError, match="HARVESTMAN_NO_SUCH_VARIABLE"):
        asyncio.run(crawled(settings(tmp_path / "data", ["http://a.example/"], "", proxies=(proxy,))))


# -- egress addresses ------------------------------------------------------------------------------------------------


def test_every_site_is_always_asked_from_the_same_address(tmp_path: Path) -> None:
    hosts = {f"{name}.s{n}.test": f"127.0.1.{n + 1}" for n in range(8) for name in ("a", "b")}
    peers: dict[str, set[str]] = defaultdict(set)

    def noting(path: str, host: str) -> Reply:
        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            peers[site_of(HostKey(host))].add(writer.get_extra_info("peername")[0])
            writer.write(page(path.encode(), extra="Connection: close\r\n"))

        return answer

    async def scene() -> list[str]:
        places = [(f"/{host}/{n}", host) for host in hosts for n in (1, 2)]
        replies = {path: noting(path, host) for path, host in places}
        missing = page(b"", status="404 Not Found")
        async with RawServer({**replies, "*": missing}).listening("0.0.0.0") as server, naming(hosts) as names:
            seeds = [f"http://{host}:{server.port}{path}" for path, host in places]
            ours = Egress(("127.0.0.3", "127.0.0.4"), per_address=2)
            return await crawled(settings(tmp_path / "data", seeds, names.server, egress=ours))

    assert len(asyncio.run(scene())) == 32
    assert len(peers) == 8
    assert all(len(of) == 1 for of in peers.values())
    assert set.union(*peers.values()) == {"127.0.0.3", "127.0.0.4"}


def test_an_address_that_is_not_ours_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"192\.0\.2\.10 is not an address of this machine"):
        asyncio.run(crawled(settings(tmp_path / "data", ["http://a.test/"], "", egress=Egress(("192.0.2.10",)))))


# -- certificates ----------------------------------------------------------------------------------------------------


def test_a_host_whose_certificate_is_not_valid_has_no_robots_txt_so_nothing_is_fetched(tmp_path: Path) -> None:
    async def scene() -> str:
        tls, _ = self_signed(tmp_path, "bad.test")
        async with RawServer().listening(tls=tls) as server, naming({"bad.test": HOME}) as names:
            url = f"https://bad.test:{server.port}/"
            assert await crawled(settings(tmp_path / "data", [url], names.server)) == []
            assert server.heads == []
            return url

    url = asyncio.run(scene())
    records, _ = known(tmp_path / "data")
    assert records[url].status is Status.PENDING
    told = asyncio.run(why(f"{url}robots.txt", tmp_path / "data"))
    assert "unreachable, which forbids everything" in told
    assert "tls: SSL certificate" in told
    assert "self-signed" in told


def turning_bad(folder: Path) -> tuple[ssl.SSLContext, str]:
    """A server whose certificate is good for the first handshake and for another name from then on."""

    (folder / "good").mkdir()
    (folder / "bad").mkdir()
    good, trusted = self_signed(folder / "good", "turns.test")
    bad, _ = self_signed(folder / "bad", "other.test")
    good.num_tickets = bad.num_tickets = 0
    shaken = 0

    def choose(talk: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext) -> None:
        nonlocal shaken
        shaken += 1
        if shaken > 1:
            talk.context = bad

    good.sni_callback = choose
    return good, trusted


@pytest.mark.parametrize("policy", ["record", "refuse"])
def test_a_certificate_that_goes_bad_after_robots_txt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    async def scene() -> tuple[str, list[str]]:
        tls, trusted = turning_bad(tmp_path)
        monkeypatch.setenv("SSL_CERT_FILE", trusted)
        replies = {
            "/robots.txt": page(b"", "text/plain", extra="Connection: close\r\n"),
            "*": page(b"<p>words", extra="Connection: close\r\n"),
        }
        async with RawServer({**replies}).listening(tls=tls) as server, naming({"turns.test": HOME}) as names:
            url = f"https://turns.test:{server.port}/"
            config = settings(tmp_path / "data", [url], names.server, fetch=Fetch(policy))
            return url, await crawled(config)

    url, pages = asyncio.run(scene())
    record = known(tmp_path / "data")[0][url]
    assert record.visit is not None
    told = asyncio.run(why(url, tmp_path / "data"))
    if policy == "record":
        assert pages == [url]
        assert record.status is Status.FETCHED
        assert "certificate" in record.visit.tls_error
        assert f"fetched all the same: {record.visit.tls_error}" in told
    else:
        assert pages == []
        assert record.status is Status.PENDING
        assert record.visit.reason.startswith("tls: ")
        assert "certificate" in told
