"""Asks name servers: over UDP, over TCP when an answer is truncated, or over HTTPS; when one fails, the next."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdataclass
import dns.rdatatype

from harvestman.fetch.doh import Doh
from harvestman.fetch.nameservers import LARGEST, Failover, Https, Plain, Upstream
from harvestman.model import Seconds

_MALFORMED: Final = (dns.exception.DNSException, ValueError, IndexError, struct.error)
AT_ONCE = 64
"""Questions under way: a thousand new hosts at once would only overflow the resolver's socket."""
ENOUGH: Final = 16
"""Addresses of a host that are kept: a hostile zone names thousands."""
_PAYLOAD: Final = 1232
"""The largest UDP answer that passes every network unfragmented (DNS flag day 2020)."""


@dataclass(frozen=True, slots=True)
class Found:
    addresses: tuple[str, ...]
    """Empty when the name exists but has none of the kind asked for."""
    ttl: Seconds


@dataclass(frozen=True, slots=True)
class NoSuchName:
    reason: str


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The servers did not say: a timeout, SERVFAIL, REFUSED."""

    reason: str


Lookup: TypeAlias = Found | NoSuchName | NoAnswer


class _Question:
    """A query on its way: only the server asked may answer it, and only with its own question."""

    __slots__ = ("answer", "query", "server")

    def __init__(self, query: dns.message.Message, server: Plain, loop: asyncio.AbstractEventLoop) -> None:
        self.query = query
        self.server = server
        self.answer: asyncio.Future[dns.message.Message] = loop.create_future()

    def take(self, wire: bytes, source: tuple[str, int]) -> None:
        """Accept a datagram if it is the answer; ignore anything else, it may be a forgery."""
        if source != self.server or self.answer.done():
            return
        message = _read(wire)
        if message is not None and self.query.is_response(message):
            self.answer.set_result(message)


class _Endpoint(asyncio.DatagramProtocol):
    """One UDP socket for every question of one address family."""

    def __init__(self) -> None:
        self.waiting: dict[int, _Question] = {}

    def datagram_received(self, data: bytes, addr: tuple[str, int] | tuple[str, int, int, int]) -> None:
        question = self.waiting.get(int.from_bytes(data[:2], "big"))
        if question is not None:
            question.take(data, (addr[0], addr[1]))

    def error_received(self, exc: Exception) -> None:
        """An unreachable server shows as silence; the tries go on to the next one."""


_KINDS: Final = {4: dns.rdatatype.A, 6: dns.rdatatype.AAAA}


class Wire:
    """Looks names up at the given servers. The second family is asked for only where a name has none of the first."""

    def __init__(
        self, upstreams: Sequence[Upstream], *, patience: Seconds, tries: int, ca_file: str | None = None,
        families: Sequence[int] = (4, 6),
    ) -> None:  # fmt: skip
        """`tries`: questions a look-up may cost; each upstream is tried at least once. `ca_file`: for HTTPS."""
        self._kinds = [_KINDS[family] for family in families]
        self._failover = Failover(upstreams)
        self._patience = patience
        self._tries = max(tries, len(upstreams))
        self._ca_file = ca_file
        self._endpoints: dict[bool, tuple[asyncio.DatagramTransport, _Endpoint]] = {}
        self._doh: Doh | None = None
        self._opening = asyncio.Lock()
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._closed = False

    async def lookup(self, host: str) -> Lookup:
        """The addresses of `host`, or why there are none."""
        try:
            name = dns.name.from_text(host)
        except _MALFORMED:
            return NoSuchName("not a host name")
        if not self._failover:
            return NoAnswer("no name server is configured")
        for kind in self._kinds:
            found = await self._ask(name, kind)
            if not isinstance(found, Found) or found.addresses:
                return found
        return NoSuchName(
            "the name has no address" if len(self._kinds) > 1 else "no address that we can reach from here"
        )

    async def _ask(self, name: dns.name.Name, kind: dns.rdatatype.RdataType) -> Lookup:
        result: Lookup = NoAnswer("no answer")
        tried: list[Upstream] = []
        while len(tried) < self._tries and not self._closed:
            async with self._turn:  # and only then chosen: what was known of the servers while it waited is old
                result = await self._try(name, kind, tried)
            if not isinstance(result, NoAnswer):
                break
        return result

    async def _try(self, name: dns.name.Name, kind: dns.rdatatype.RdataType, tried: list[Upstream]) -> Lookup:
        """One question to the server whose turn it is."""
        if self._closed:
            return NoAnswer("closed")
        clock = asyncio.get_running_loop().time
        server = self._failover.choose(tried, clock())
        tried.append(server)
        try:
            async with asyncio.timeout(self._patience):
                found = _judge(await self._exchange(name, kind, server))
        except OSError as fault:  # a TimeoutError is one
            self._failover.failed(server, clock())
            if isinstance(fault, TimeoutError):
                return NoAnswer("timeout")
            return NoAnswer(f"name server unreachable: {fault.strerror or fault}")
        self._failover.answered(server)
        return found

    async def _exchange(
        self, name: dns.name.Name, kind: dns.rdatatype.RdataType, server: Upstream
    ) -> dns.message.Message:
        """One question, one answer; raises TimeoutError or OSError when none comes."""
        query = dns.message.make_query(name, kind, use_edns=0, payload=_PAYLOAD)
        if isinstance(server, Https):
            return await self._over_https(query, server)
        answer = await self._over_udp(query, server)
        return await _over_tcp(query, server) if answer.flags & dns.flags.TC else answer

    async def _over_https(self, query: dns.message.Message, server: Https) -> dns.message.Message:
        if self._doh is None:
            self._doh = Doh(patience=self._patience, ca_file=self._ca_file)
        wire, age = await self._doh.ask(query, server)
        message = _answer(query, wire)
        for records in message.answer:
            records.ttl = max(0, records.ttl - age)
        return message

    async def _over_udp(self, query: dns.message.Message, server: Plain) -> dns.message.Message:
        transport, endpoint = await self._endpoint(":" in server[0])
        while query.id in endpoint.waiting:
            query.id = (query.id + 1) & 0xFFFF
        question = _Question(query, server, asyncio.get_running_loop())
        endpoint.waiting[query.id] = question
        try:
            transport.sendto(query.to_wire(), tuple(server))
            return await question.answer
        finally:
            del endpoint.waiting[query.id]

    async def _endpoint(self, six: bool) -> tuple[asyncio.DatagramTransport, _Endpoint]:
        async with self._opening:
            if six not in self._endpoints:
                any_address = ("::", 0) if six else ("0.0.0.0", 0)
                loop = asyncio.get_running_loop()
                self._endpoints[six] = await loop.create_datagram_endpoint(_Endpoint, local_addr=any_address)
            return self._endpoints[six]

    def close(self) -> None:
        """Give up every question (its answer is an OSError) and close the sockets."""
        self._closed = True
        for transport, endpoint in self._endpoints.values():
            for question in endpoint.waiting.values():
                if not question.answer.done():
                    question.answer.set_exception(OSError("closed"))
            transport.close()
        if self._doh is not None:
            self._doh.close()


async def _over_tcp(query: dns.message.Message, server: Plain) -> dns.message.Message:
    reader, writer = await asyncio.open_connection(*server)
    try:
        wire = query.to_wire()
        writer.write(len(wire).to_bytes(2, "big") + wire)
        size = int.from_bytes(await reader.readexactly(2), "big")
        if size > LARGEST:
            raise OSError("answer too long")
        return _answer(query, await reader.readexactly(size))
    except asyncio.IncompleteReadError as fault:
        raise OSError("TCP answer cut short") from fault
    finally:
        writer.close()


def _answer(query: dns.message.Message, wire: bytes) -> dns.message.Message:
    """The answer to this very question; OSError for anything else."""
    message = _read(wire)
    if message is None or not query.is_response(message):
        raise OSError("malformed answer")
    return message


def _read(wire: bytes) -> dns.message.Message | None:
    try:
        return dns.message.from_wire(wire)
    except _MALFORMED:
        return None


def _judge(message: dns.message.Message) -> Lookup:
    """What an answer says, following aliases inside it."""
    code = message.rcode()
    if code == dns.rcode.NXDOMAIN:
        return NoSuchName("no such name")
    if code != dns.rcode.NOERROR:
        return NoAnswer(dns.rcode.to_text(code).lower())
    if not isinstance(message, dns.message.QueryMessage):
        return NoAnswer("not an answer")
    try:
        chain = message.resolve_chaining()
    except _MALFORMED:
        return NoAnswer("malformed answer")
    if chain.answer is None:
        return Found((), Seconds(0))
    return Found(tuple(record.to_text() for record in islice(chain.answer, ENOUGH)), Seconds(chain.minimum_ttl))
