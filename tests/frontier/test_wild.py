"""A wild web, made by chance: whatever it does, the promises hold and in the end nothing is left over."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from virtual import HOUR, Drive, Reply, config, in_a_loop, rules
from xxhash import xxh3_64_intdigest

from harvestman.config import Memory
from harvestman.embedded.state import RocksState
from harvestman.model import FailureKind, Instant, Status
from harvestman.policy.urls import host_of, path_of

HOSTS = 40
ROBOTS = ("none", "none", "rules", "delay", "www", "central", "ring", "flaky", "dead")


def dice(*words: object) -> int:
    """The same words, the same number."""
    return xxh3_64_intdigest(repr(words).encode())


class WildWeb:
    """Hosts h0 .. h39, on both schemes, some of one site, some of one address."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._asked: dict[str, int] = {}

    def kind(self, number: int) -> str:
        return ROBOTS[dice(self._seed, "kind", number) % len(ROBOTS)]

    def hopeless(self) -> set[str]:
        """Hosts whose robots.txt is never had: their own is dead, or lies, by redirects, on a host where it is."""
        found = set()
        for number in range(HOSTS):
            end, hops = number, 0
            while self.kind(end) == "ring" and hops < 5:
                end, hops = (end + 1) % HOSTS, hops + 1
            if self.kind(end) == "dead":
                found.add(self.name(number))
        return found

    @staticmethod
    def name(number: int) -> str:
        return f"h{number}.big.test" if number % 4 == 0 else f"h{number}.test"

    def address(self, host: str) -> str:
        return f"10.0.0.{dice(self._seed, 'address', host) % 30}"

    def __call__(self, url: str, now: Instant) -> Reply:
        count = self._asked[url] = self._asked.get(url, 0) + 1
        host, path = host_of(url), path_of(url)
        number = int(host.split(".")[0].removeprefix("h")) if host[0] == "h" else -1
        reply = self._robots(url, number, count) if path == "/robots.txt" else self._page(url, number, path, count)
        reply.took = dice(self._seed, url, count) % 40 / 20
        return reply

    def _robots(self, url: str, number: int, count: int) -> Reply:
        kind = self.kind(number) if number >= 0 else "rules"
        scheme = url.partition(":")[0]
        match kind:
            case "rules":
                return rules("User-agent: *\nDisallow: /hidden")
            case "delay":
                return rules("User-agent: *\nCrawl-delay: 4\nDisallow: /hidden")
            case "www" | "central":
                return Reply(
                    301, {"location": f"https://{'central.test' if kind == 'central' else 'www.test'}/robots.txt"}
                )
            case "ring":
                return Reply(302, {"location": f"{scheme}://{self.name((number + 1) % HOSTS)}/robots.txt"})
            case "flaky" if count < 3:
                return Reply(failure=FailureKind.TIMEOUT) if count == 1 else Reply(503, {"retry-after": "30"})
            case "dead":
                return Reply(failure=FailureKind.CONNECT)
        return Reply(404)

    def _page(self, url: str, number: int, path: str, count: int) -> Reply:
        fate = dice(self._seed, url) % 20
        if fate == 0 and count < 3:
            return Reply(failure=FailureKind.TIMEOUT)
        if fate == 1 and count < 4:
            return Reply(429 if count % 2 else 503, {"retry-after": "20"} if count == 1 else {})
        if fate == 2:
            return Reply(301, {"location": url + "/"} if not url.endswith("/") else {})
        if fate == 3:
            return Reply(302, {"location": f"https://{self.name(dice(url) % HOSTS)}/p1"})
        depth = int(path[2:].rstrip("/")) if path.startswith("/p") else 9
        if depth > 3:
            return Reply()
        return Reply(links=[*self._links(url, number, depth), f"https://{self.name(number)}/hidden/{depth}"])

    def _links(self, url: str, number: int, depth: int) -> list[str]:
        schemes = ("https", "http")
        near = f"{schemes[dice(url, 'near') % 2]}://{self.name(number)}/p{depth + 1}"
        far = [f"https://{self.name(dice(url, n) % HOSTS)}/p{dice(url, n, 'depth') % 5}" for n in range(4)]
        return [near, *far]


def judge(drive: Drive, web: WildWeb) -> None:
    """The servers' side: gaps, and what robots.txt forbids."""
    for lines in drive.by_host().values():
        assert min((b.started - a.finished for a, b in pairwise(lines)), default=9.0) >= 1.0 - 1e-6
    ruled = {web.name(n) for n in range(HOSTS) if web.kind(n) in ("rules", "delay", "www", "central")}
    hopeless = web.hopeless()
    assert [line.url for line in drive.pages() if line.host in ruled and "/hidden" in line.url] == []
    assert [line.url for line in drive.pages() if line.host in hopeless] == []
    slow = {web.name(n) for n in range(HOSTS) if web.kind(n) == "delay"}
    for host, lines in drive.by_host().items():
        if host in slow:
            assert min((b.started - a.finished for a, b in pairwise(lines) if not b.robots), default=9) >= 4.0 - 1e-6
    assert drive.busiest_second("big.test") <= 12


@pytest.mark.slow
@pytest.mark.parametrize("seed", [200, 201, 202, 203])
@in_a_loop
async def test_a_wild_web(seed: int, state: RocksState) -> None:
    chance = Random(seed)
    memory = Memory(resident_hosts=chance.choice([5, 15, 1_000]), window=chance.choice([20, 1_000]), seen_capacity=500)
    web = WildWeb(seed)
    drive = Drive(state, web, settings=config(memory=memory), addresses=web.address, seed=seed)
    await drive.add([f"https://{web.name(n)}/p0" for n in range(0, HOSTS, 5)])
    for _ in range(chance.choice([0, 6])):
        await drive.run(requests=len(drive.journal) + chance.randrange(1, 60))
        drive = await drive.crash(pause=chance.choice([0.0, 5.0]))
    await drive.run(patience=7 * HOUR, until=Instant(drive.now + 20 * HOUR))
    judge(drive, web)
    hopeless = web.hopeless()
    left = [r.url for r in state.url_records() if r.status is Status.PENDING and host_of(r.url) not in hopeless]
    assert left == []
    assert {host for _, host in await state.waiting_hosts(None, 1_000)} <= hopeless
    assert len(drive.pages()) > 30
