"""The resolver against a tiny name server on loopback, with a clock the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import dns.message
import dns.rcode
import dns.rrset
import pytest
from cases import for_each
from stages.nameserver import Clock, NameServer, Zone
from stages.rawserver import run

from harvestman.fetch.dns import Resolver
from harvestman.fetch.nameservers import Plain, read_hosts, read_upstreams
from harvestman.model import Instant, Seconds


@dataclass
class Scene:
    server: NameServer
    resolver: Resolver
    clock: Clock


A_TEST: Zone = {("a.test", "A"): [("a.test", 3600, "A", "192.0.2.1"), ("a.test", 3600, "A", "192.0.2.2")]}


@asynccontextmanager
async def scene(zone: Zone, *, tries: int = 2, patience: float = 2.0, max_entries: int = 1000) -> AsyncIterator[Scene]:
    clock = Clock()
    async with NameServer(zone).listening() as server:
        resolver = Resolver(
            upstreams=[server.upstream],
            now=clock,
            hosts={"box.lan": ("10.0.0.7",)},
            patience=Seconds(patience),
            tries=tries,
            max_entries=max_entries,
        )
        try:
            yield Scene(server, resolver, clock)
        finally:
            await resolver.close()


def test_addresses_are_found_and_remembered() -> None:
    async def play() -> None:
        async with scene(A_TEST) as s:
            assert s.resolver.peek("a.test") is None
            found = await s.resolver.resolve("a.test")
            assert (found.addresses, found.error, found.stale) == (("192.0.2.1", "192.0.2.2"), None, False)
            assert found.expires == s.clock.time + 3600
            assert s.resolver.peek("a.test") is found
            assert await s.resolver.resolve("a.test") is found
            assert s.server.asked == [("a.test", "A")]
            assert (s.resolver.hits, s.resolver.misses) == (2, 1)

    run(play())


@pytest.mark.parametrize(("ttl", "fresh"), [(0, 300), (60, 300), (1000, 1000), (10**6, 86400)])
def test_ttls_are_kept_within_bounds(ttl: int, fresh: int) -> None:
    async def play() -> None:
        async with scene({("a.test", "A"): [("a.test", ttl, "A", "192.0.2.1")]}) as s:
            assert (await s.resolver.resolve("a.test")).expires == s.clock.time + fresh
            s.clock.time += fresh
            assert s.resolver.peek("a.test") is None
            await s.resolver.resolve("a.test")
            assert len(s.server.asked) == 2

    run(play())


def test_a_name_without_ipv4_is_asked_for_ipv6() -> None:
    async def play() -> None:
        async with scene({("six.test", "AAAA"): [("six.test", 60, "AAAA", "2001:db8::5")]}) as s:
            assert (await s.resolver.resolve("six.test")).addresses == ("2001:db8::5",)
            assert s.server.asked == [("six.test", "A"), ("six.test", "AAAA")]

    run(play())


def test_aliases_are_followed_and_the_shortest_ttl_counts() -> None:
    async def play() -> None:
        lines = [("www.test", 400, "CNAME", "cdn.test."), ("cdn.test", 9000, "A", "192.0.2.9")]
        async with scene({("www.test", "A"): lines}) as s:
            found = await s.resolver.resolve("www.test")
            assert found.addresses == ("192.0.2.9",)
            assert found.expires == s.clock.time + 400

    run(play())


def test_no_such_name_is_remembered_for_five_minutes() -> None:
    async def play() -> None:
        async with scene({}) as s:
            found = await s.resolver.resolve("no.test")
            assert (found.addresses, found.error) == ((), "no such name")
            s.clock.time += 299
            assert s.resolver.peek("no.test") is found
            s.clock.time += 1
            assert s.resolver.peek("no.test") is None

    run(play())


def test_a_name_without_any_address_says_so() -> None:
    async def play() -> None:
        async with scene({("txt.test", "TXT"): []}) as s:
            assert (await s.resolver.resolve("txt.test")).error == "the name has no address"

    run(play())


@pytest.mark.parametrize("fault", ["servfail", "refused", "timeout"])
def test_a_failing_server_is_retried_then_remembered_for_a_moment(fault: str) -> None:
    async def play() -> None:
        async with scene(A_TEST, patience=0.1) as s:
            break_server(s.server, fault)
            found = await s.resolver.resolve("a.test")
            assert (found.addresses, found.error, found.stale) == ((), fault, False)
            assert found.expires == s.clock.time + 1
            assert len(s.server.asked) == 2

    run(play())


def break_server(server: NameServer, fault: str) -> None:
    server.silent = fault == "timeout"
    server.rcode = {"servfail": dns.rcode.SERVFAIL, "refused": dns.rcode.REFUSED}.get(fault, dns.rcode.NOERROR)


@pytest.mark.parametrize("fault", ["servfail", "timeout"])
def test_old_addresses_serve_for_a_day_while_the_server_fails(fault: str) -> None:
    async def play() -> None:
        async with scene(A_TEST, tries=1, patience=0.2) as s:
            await s.resolver.resolve("a.test")
            break_server(s.server, fault)
            s.clock.time += 3600 + 100
            for _ in range(2):
                found = await s.resolver.resolve("a.test")
                assert (found.addresses, found.error, found.stale) == (("192.0.2.1", "192.0.2.2"), fault, True)
                assert found.expires == s.clock.time + 30
                s.clock.time += 31
            break_server(s.server, "")
            healed = await s.resolver.resolve("a.test")
            assert (healed.addresses, healed.stale) == (("192.0.2.1", "192.0.2.2"), False)

    run(play())


@pytest.mark.parametrize("fault", ["servfail", "timeout"])
def test_the_last_known_addresses_serve_for_a_week_while_the_server_goes_on_failing(fault: str) -> None:
    async def play() -> None:
        async with scene(A_TEST, tries=1, patience=0.2) as s:
            start = s.clock.time
            await s.resolver.resolve("a.test")
            break_server(s.server, fault)
            s.clock.time = start + 3600 + 2 * 86400
            once = await s.resolver.resolve("a.test")
            assert (once.addresses, once.error, once.expires) == ((), fault, s.clock.time + 1)
            s.clock.time += 10
            again = await s.resolver.resolve("a.test")
            assert (again.addresses, again.error, again.stale) == (("192.0.2.1", "192.0.2.2"), fault, True)
            s.clock.time = start + 3600 + 7 * 86400
            assert (await s.resolver.resolve("a.test")).addresses == ()
            break_server(s.server, "")
            s.clock.time += 2
            assert (await s.resolver.resolve("a.test")).addresses == ("192.0.2.1", "192.0.2.2")

    run(play())


@pytest.mark.parametrize("days", [0, 3])
def test_no_such_name_ends_the_life_of_old_addresses(days: int) -> None:
    async def play() -> None:
        async with scene(dict(A_TEST)) as s:
            await s.resolver.resolve("a.test")
            s.server.zone.clear()
            s.clock.time += 4000 + days * 86400
            assert (await s.resolver.resolve("a.test")).addresses == ()
            break_server(s.server, "servfail")
            for _ in range(2):
                s.clock.time += 301
                assert (await s.resolver.resolve("a.test")).addresses == ()

    run(play())


def test_one_question_serves_all_who_ask_at_once() -> None:
    async def play() -> None:
        async with scene(A_TEST) as s:
            impatient = asyncio.create_task(s.resolver.resolve("a.test"))
            others = [asyncio.create_task(s.resolver.resolve("a.test")) for _ in range(50)]
            await asyncio.sleep(0)
            impatient.cancel()
            found = await asyncio.gather(*others)
            assert {one.addresses for one in found} == {("192.0.2.1", "192.0.2.2")}
            assert len(s.server.asked) == 1
            assert s.resolver.misses == 1

    run(play())


def test_many_names_at_once_get_their_own_answers() -> None:
    async def play() -> None:
        zone: Zone = {(f"h{n}.test", "A"): [(f"h{n}.test", 60, "A", f"192.0.2.{n}")] for n in range(200)}
        async with scene(zone, patience=2.0) as s:
            found = await asyncio.gather(*(s.resolver.resolve(f"h{n}.test") for n in range(200)))
            assert [one.addresses for one in found] == [(f"192.0.2.{n}",) for n in range(200)]

    run(play())


def forged(wire: bytes) -> list[bytes]:
    """Wrong id, wrong question and noise before the true answer."""
    wrong_id = bytes([wire[0] ^ 0xFF, wire[1]]) + wire[2:]
    wrong_name = wire.replace(b"\x01a\x04test", b"\x01b\x04test")
    return [wrong_id, wrong_name, wire[:2] + b"\xff\xff", b"", wire[:2], wire]


def test_forged_answers_are_ignored() -> None:
    async def play() -> None:
        async with scene(A_TEST, tries=1, patience=0.2) as s:
            s.server.spoil = forged
            assert (await s.resolver.resolve("a.test")).addresses == ("192.0.2.1", "192.0.2.2")
            s.server.spoil = lambda wire: forged(wire)[:-1]
            s.clock.time += 90_001
            assert (await s.resolver.resolve("a.test")).error == "timeout"

    run(play())


def test_an_answer_from_another_port_is_ignored() -> None:
    async def play() -> None:
        async with scene(A_TEST) as s, NameServer({}).listening() as stranger:
            resolver_port: list[tuple[str, int]] = []
            honest = s.server.datagram_received

            def spy(data: bytes, addr: tuple[str, int]) -> None:
                resolver_port.append(addr)
                fake = dns.message.make_response(dns.message.from_wire(data))
                fake.answer.append(dns.rrset.from_text("a.test.", 60, "IN", "A", "203.0.113.66"))
                stranger.transport.sendto(fake.to_wire(), addr)
                asyncio.get_running_loop().call_later(0.03, honest, data, addr)

            s.server.datagram_received = spy  # type: ignore[method-assign]  # the test listens in
            assert (await s.resolver.resolve("a.test")).addresses == ("192.0.2.1", "192.0.2.2")
            assert resolver_port

    run(play())


def test_a_truncated_answer_is_asked_for_over_tcp() -> None:
    async def play() -> None:
        zone: Zone = {("big.test", "A"): [("big.test", 60, "A", f"192.0.2.{n}") for n in range(200)]}
        async with scene(zone, patience=2.0) as s:
            s.server.truncate = True
            assert len((await s.resolver.resolve("big.test")).addresses) == 16  # as many as are kept

    run(play())


@for_each(
    ("host", "addresses"),
    [
        ("192.0.2.7", ("192.0.2.7",)),
        ("2001:DB8::0:1", ("2001:db8::1",)),
        ("[::1]", ("::1",)),
        ("localhost", ("127.0.0.1", "::1")),
        ("dev.localhost", ("127.0.0.1", "::1")),
        ("box.lan", ("10.0.0.7",)),
    ],
)
def test_names_that_need_no_server(host: str, addresses: tuple[str, ...]) -> None:
    async def play() -> None:
        async with scene({}) as s:
            assert (await s.resolver.resolve(host)).addresses == addresses
            known = s.resolver.peek(host)
            assert known is not None
            assert known.addresses == addresses
            assert s.server.asked == []

    run(play())


@for_each("host", ["abc.onion", "ABC.Onion.", "onion", "printer.local", "a.alt", "x.invalid"])
def test_names_that_are_not_in_the_dns_never_reach_a_server(host: str) -> None:
    async def play() -> None:
        async with scene({(host.lower().rstrip("."), "A"): [("abc.onion", 60, "A", "192.0.2.1")]}) as s:
            s.resolver.prefetch([host], Instant(s.clock.time + 2))
            found = await s.resolver.resolve(host)
            assert found.addresses == ()
            assert found.error is not None
            assert f".{host.lower().rstrip('.').rpartition('.')[2]} names" in found.error
            assert s.server.asked == []

    run(play())


def test_the_hosts_file_may_name_what_is_not_in_the_dns() -> None:
    async def play() -> None:
        resolver = Resolver(upstreams=[Plain("127.0.0.1", 9)], now=Clock(), hosts={"nas.local": ("10.0.0.9",)})
        assert (await resolver.resolve("nas.local")).addresses == ("10.0.0.9",)
        await resolver.close()

    run(play())


def test_hosts_about_to_be_due_are_looked_up_ahead() -> None:
    async def play() -> None:
        async with scene(A_TEST) as s:
            soon = Instant(s.clock.time + 2)
            s.resolver.prefetch(["a.test", "a.test", "192.0.2.9", "box.lan"], soon)
            await settled(s.server, 1)
            assert s.resolver.peek("a.test") is not None
            assert (s.resolver.hits, s.resolver.misses, s.resolver.prefetched) == (1, 0, 1)
            s.resolver.prefetch(["a.test"], soon)
            assert s.resolver.prefetched == 1, "it is fresh for longer than that"
            s.clock.time += 3599
            assert s.resolver.peek("a.test") is not None
            s.resolver.prefetch(["a.test"], Instant(s.clock.time + 2))
            await settled(s.server, 2)
            s.clock.time += 10
            assert s.resolver.peek("a.test") is not None, "its successor came before it went"
            assert s.resolver.misses == 0

    run(play())


async def settled(server: NameServer, asked: int) -> None:
    """So many questions were put, and answered."""
    for _ in range(1_000):
        if len(server.asked) >= asked:
            break
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.05)


def test_looking_ahead_leaves_room_for_those_who_wait_and_lets_failures_rest() -> None:
    async def play() -> None:
        async with scene({}, patience=0.3, tries=1) as s:
            s.server.silent = True
            s.resolver.prefetch([f"h{n}.test" for n in range(1000)], Instant(s.clock.time + 2))
            assert s.resolver.prefetched == 32
            waited = await s.resolver.resolve("h999.test")
            assert waited.error == "timeout"
            before = len(s.server.asked)
            s.clock.time += 5
            s.resolver.prefetch([f"h{n}.test" for n in range(32)], Instant(s.clock.time + 2))
            assert (s.resolver.prefetched, len(s.server.asked)) == (32, before)

    run(play())


def test_a_change_of_all_addresses_is_told() -> None:
    async def play() -> None:
        async with scene(dict(A_TEST)) as s:
            told: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []
            s.resolver.changed = lambda *change: told.append(change)
            await s.resolver.resolve("a.test")
            for address in ("192.0.2.2", "198.51.100.1"):
                s.server.zone[("a.test", "A")] = [("a.test", 60, "A", address)]
                s.clock.time += 3600
                await s.resolver.resolve("a.test")
            assert told == [("a.test", ("192.0.2.2",), ("198.51.100.1",))]
            break_server(s.server, "servfail")
            s.clock.time += 3600
            await s.resolver.resolve("a.test")
            assert len(told) == 1, "an old address that serves is no change"

    run(play())


@for_each("host", ["", "..", "a..b", "x" * 64 + ".test", "a." * 140 + "test", "exa mple\0.test"])
def test_what_is_no_host_name_has_no_address(host: str) -> None:
    async def play() -> None:
        async with scene({}) as s:
            found = await s.resolver.resolve(host)
            assert found.addresses == ()
            assert found.error

    run(play())


def test_memory_is_bounded_and_keeps_what_is_used() -> None:
    async def play() -> None:
        async with scene({}, max_entries=100) as s:
            await s.resolver.resolve("10.9.9.9")
            for n in range(1000):
                await s.resolver.resolve(f"10.0.{n // 250}.{n % 250}")
                assert s.resolver.peek("10.9.9.9") is not None
            known = sum(s.resolver.peek(f"10.0.{n // 250}.{n % 250}") is not None for n in range(1000))
            assert 10 <= known <= 100

    run(play())


def test_closing_ends_what_is_being_asked() -> None:
    async def play() -> None:
        async with scene(A_TEST, patience=60) as s:
            s.server.silent = True
            asking = asyncio.create_task(s.resolver.resolve("a.test"))
            await asyncio.sleep(0.05)
            await s.resolver.close()
            assert (await asyncio.wait_for(asking, 1)).addresses == ()

    run(play())


def test_the_files_of_the_machine(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("# comment\n::1 Box box.lan\n10.0.0.1 box # more\nnonsense x\n10.0.0.1 box\n")
    assert read_hosts(hosts) == {"box": ("10.0.0.1", "::1"), "box.lan": ("::1",)}
    conf = tmp_path / "resolv.conf"
    conf.write_text("search lan\nnameserver 9.9.9.9\nnameserver\nnameserver fe80::1%eth0\nnameserver nine\n")
    assert read_upstreams(conf)[0] == ("9.9.9.9", 53)
    assert read_hosts(tmp_path / "none") == {}
    assert read_upstreams(tmp_path / "none") == []
