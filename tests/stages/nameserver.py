"""A name server on loopback that answers over UDP and TCP from a zone of the test's making, and a clock to move."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import dns.flags
import dns.message
import dns.rcode
import dns.rdtypes.ANY.OPT  # dnspython imports these when first met, which takes longer than a test waits
import dns.rdtypes.IN.A
import dns.rdtypes.IN.AAAA
import dns.rrset

from harvestman.fetch.nameservers import Plain
from harvestman.model import Instant

Zone = dict[tuple[str, str], list[tuple[str, int, str, str]]]
"""(name, type) -> answer lines: owner, TTL, type, data."""


@dataclass
class NameServer(asyncio.DatagramProtocol):
    """Answers from a zone; `rcode`, `silent` and `spoil` make it misbehave."""

    zone: Zone
    asked: list[tuple[str, str]] = field(default_factory=list)
    rcode: dns.rcode.Rcode = dns.rcode.NOERROR
    silent: bool = False
    truncate: bool = False
    spoil: Callable[[bytes], list[bytes]] = lambda wire: [wire]
    address: str = "127.0.0.1"
    port: int = 0

    @property
    def upstream(self) -> Plain:
        return Plain(self.address, self.port)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        answer = self.answer(data)
        if self.truncate:
            answer.answer.clear()
            answer.flags |= dns.flags.TC
        if not self.silent:
            for wire in self.spoil(answer.to_wire()):
                self.transport.sendto(wire, addr)

    def answer(self, wire: bytes) -> dns.message.Message:
        query = dns.message.from_wire(wire)
        question = query.question[0]
        name, kind = question.name.to_text(omit_final_dot=True), dns.rdatatype.to_text(question.rdtype)
        self.asked.append((name, kind))
        response = dns.message.make_response(query)
        lines = self.zone.get((name, kind), [])
        known = any(key[0] == name for key in self.zone)
        response.set_rcode(self.rcode if self.rcode or known else dns.rcode.NXDOMAIN)
        if not self.rcode:
            response.answer.extend(dns.rrset.from_text(f"{o}.", ttl, "IN", t, data) for o, ttl, t, data in lines)
        return response

    async def serve_tcp(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = int.from_bytes(await reader.readexactly(2), "big")
        wire = self.answer(await reader.readexactly(size)).to_wire(max_size=65535)
        writer.write(len(wire).to_bytes(2, "big") + wire)
        await writer.drain()
        writer.close()

    async def _on_one_port(self) -> tuple[asyncio.Server, asyncio.DatagramTransport]:
        """A port that is free for both; somebody else may have it for datagrams alone."""
        loop = asyncio.get_running_loop()
        for _ in range(20):
            tcp = await asyncio.start_server(self.serve_tcp, self.address, 0)
            self.port = tcp.sockets[0].getsockname()[1]
            try:
                udp, _protocol = await loop.create_datagram_endpoint(lambda: self, local_addr=(self.address, self.port))
            except OSError:
                tcp.close()
                continue
            return tcp, udp
        raise OSError("no port is free for TCP and UDP")

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[NameServer]:
        tcp, transport = await self._on_one_port()
        try:
            yield self
        finally:
            transport.close()
            tcp.close()


class Clock:
    def __init__(self) -> None:
        self.time = 1_000_000.0

    def __call__(self) -> Instant:
        return Instant(self.time)


def six_here() -> bool:
    """Whether this machine speaks IPv6 with itself."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False
