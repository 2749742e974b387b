"""Several name servers: how they are written, whose turn it is, and that a dead one costs its patience once."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from time import perf_counter

import dns.rcode
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from stages.nameserver import Clock, NameServer, Zone, six_here
from stages.rawserver import run

from harvestman.errors import UsageError
from harvestman.fetch.dns import Resolver
from harvestman.fetch.nameservers import REST, Failover, Https, Plain, Upstream, read_upstream
from harvestman.model import Seconds

A, B, C = Plain("192.0.2.1", 53), Plain("192.0.2.2", 53), Https("https://192.0.2.3/dns-query", "192.0.2.3")


@for_each(
    ("text", "upstream"),
    [
        ("9.9.9.9", Plain("9.9.9.9", 53)),
        ("9.9.9.9:5353", Plain("9.9.9.9", 5353)),
        ("localhost:8853", Plain("127.0.0.1", 8853)),
        ("2620:fe::9", Plain("2620:fe::9", 53)),
        ("[2620:FE::9]", Plain("2620:fe::9", 53)),
        ("[::1]:8853", Plain("::1", 8853)),
        ("https://9.9.9.9/dns-query", Https("https://9.9.9.9/dns-query", "9.9.9.9")),
        ("https://[2620:fe::9]:8443/q", Https("https://[2620:fe::9]:8443/q", "2620:fe::9")),
        ("https://dns.quad9.net/dns-query#9.9.9.9", Https("https://dns.quad9.net/dns-query", "9.9.9.9")),
        ("HTTPS://dns.test:444/q?x=1#::1", Https("https://dns.test:444/q?x=1", "::1")),
    ],
)
def test_what_names_a_name_server(text: str, upstream: Upstream) -> None:
    assert read_upstream(text) == upstream


@for_each(
    "text",
    [
        "",
        ":53",
        "dns.example",
        "dns.example:53",
        "9.9.9.9:",
        "9.9.9.9:0",
        "9.9.9.9:65536",
        "9.9.9.9:dns",
        "9.9.9.9:²",
        "[::1]:x",
        "https://",
        "https:9.9.9.9",
        "https://dns.quad9.net/dns-query",
        "https://dns.quad9.net/dns-query#ns.quad9.net",
        "https://user:word@9.9.9.9/dns-query",
        "https://9.9.9.9:99999/",
        "https://[::1/",
        "https://9.9.9.9/a b",
        "https://9.9.9.9/a\r\nb",
        "https://9.9.9.9/ä",
        "http://9.9.9.9/dns-query",
        "tls://9.9.9.9",
    ],
)
def test_what_does_not_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="dns"):
        read_upstream(text)


def test_the_first_that_is_well_is_asked_and_the_next_when_it_fails() -> None:
    turns = Failover([A, B, C])
    assert turns.choose([], 0.0) == A
    assert turns.choose([A], 0.0) == B
    assert turns.choose([A, B, C], 0.0) == A
    turns.failed(A, 1.0)
    assert [turns.choose([], moment) for moment in (1.0, 2.0, REST)] == [B, B, B]
    assert turns.choose([B], 2.0) == C


def test_after_its_rest_one_look_up_tries_it_again() -> None:
    turns = Failover([A, B])
    turns.failed(A, 0.0)
    assert [turns.choose([], REST) for _ in range(3)] == [A, B, B]
    turns.answered(A)
    assert turns.choose([], REST) == A


def test_when_all_rest_they_are_asked_all_the_same() -> None:
    turns = Failover([A, B])
    turns.failed(A, 0.0)
    turns.failed(B, 0.0)
    assert (turns.choose([], 1.0), turns.choose([A], 1.0)) == (A, B)


@given(st.lists(st.tuples(st.sampled_from("cfa"), st.integers(0, 2), st.floats(0.0, 20.0)), max_size=60))
def test_nobody_is_left_out_for_longer_than_the_rest(events: list[tuple[str, int, float]]) -> None:
    servers: list[Upstream] = [A, B, C]
    turns, moment, failed_at = Failover(servers), 0.0, dict.fromkeys(servers, -REST)
    for what, which, pause in events:
        moment += pause
        server = servers[which]
        if what == "f":
            turns.failed(server, moment)
            failed_at[server] = moment
        elif what == "a":
            turns.answered(server)
            failed_at[server] = -REST
        else:
            chosen = turns.choose([], moment)
            rested = [one for one in servers if moment - failed_at[one] >= REST]
            assert moment - failed_at[chosen] >= REST or not [one for one in rested if failed_at[one] == -REST]
            failed_at[chosen] = moment if failed_at[chosen] > -REST else -REST


# -- on the wire -----------------------------------------------------------------------------------------------------

ZONE: Zone = {(f"h{n}.test", "A"): [(f"h{n}.test", 60, "A", f"192.0.2.{n}")] for n in range(100)}


def test_a_dead_first_server_costs_its_patience_once() -> None:
    async def play() -> None:
        dead, alive = NameServer(ZONE, silent=True), NameServer(ZONE)
        async with AsyncExitStack() as stack:
            for server in (dead, alive):
                await stack.enter_async_context(server.listening())
            resolver = Resolver(upstreams=[dead.upstream, alive.upstream], now=Clock(), hosts={}, patience=Seconds(0.5))
            begun = perf_counter()
            assert (await resolver.resolve("h0.test")).addresses == ("192.0.2.0",)
            first = perf_counter() - begun
            for n in range(1, 50):
                assert (await resolver.resolve(f"h{n}.test")).addresses == (f"192.0.2.{n}",)
            assert first >= 0.5
            assert len(dead.asked) == 1
            assert len(alive.asked) == 50
            await resolver.close()

    run(play())


def test_a_crowd_does_not_queue_up_before_a_dead_server() -> None:
    async def play() -> None:
        dead, alive = NameServer({}, silent=True), NameServer(ZONE)
        async with dead.listening(), alive.listening():
            servers = [dead.upstream, alive.upstream]
            resolver = Resolver(upstreams=servers, now=Clock(), hosts={}, patience=Seconds(0.4))
            found = await asyncio.gather(*(resolver.resolve(f"h{n}.test") for n in range(100)))
            assert all(one.addresses for one in found)
            assert len(dead.asked) == 64, "those that came before anybody knew; the others were told"
            await resolver.close()

    run(play())


def test_a_server_that_cannot_be_reached_and_one_that_fails_are_passed_over() -> None:
    async def play() -> None:
        broken, alive = NameServer(ZONE, rcode=dns.rcode.SERVFAIL), NameServer(ZONE)
        async with broken.listening(), alive.listening():
            nobody = Https("https://127.0.0.1:1/dns-query", "127.0.0.1")
            resolver = Resolver(
                upstreams=[nobody, broken.upstream, alive.upstream], now=Clock(), hosts={}, patience=Seconds(0.3)
            )
            assert (await resolver.resolve("h1.test")).addresses == ("192.0.2.1",)
            assert (await resolver.resolve("h2.test")).addresses == ("192.0.2.2",)
            assert len(broken.asked) == 2, "what it said was about a name, so it is asked about others"
            await resolver.close()

    run(play())


@pytest.mark.skipif(not six_here(), reason="this machine has no ::1")
def test_a_name_server_reached_over_ipv6() -> None:
    async def play() -> None:
        server = NameServer(ZONE, address="::1", truncate=True)  # so TCP as well
        async with server.listening():
            resolver = Resolver(upstreams=[server.upstream], now=Clock(), hosts={})
            assert (await resolver.resolve("h1.test")).addresses == ("192.0.2.1",)
            await resolver.close()

    run(play())
