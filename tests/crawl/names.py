"""A name server that notes every question it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import dns.flags
import dns.message
import dns.rcode
import dns.rrset


class Names(asyncio.DatagramProtocol):
    """Answers A questions from a table; a name that is not in it does not exist."""

    def __init__(self, addresses: dict[str, str]) -> None:
        self._addresses = addresses
        self.asked: list[str] = []
        self.server = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)
        host, port = transport.get_extra_info("sockname")
        self.server = f"{host}:{port}"

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        query = dns.message.from_wire(data)
        question = query.question[0]
        name = question.name.to_text(omit_final_dot=True)
        self.asked.append(name)
        reply = dns.message.make_response(query)
        address = self._addresses.get(name)
        if address is None:
            reply.set_rcode(dns.rcode.NXDOMAIN)
        elif question.rdtype == dns.rdatatype.A:
            reply.answer.append(dns.rrset.from_text(question.name, 300, "IN", "A", address))
        self._transport.sendto(reply.to_wire(), addr)


@asynccontextmanager
async def naming(addresses: dict[str, str]) -> AsyncIterator[Names]:
    loop = asyncio.get_running_loop()
    transport, names = await loop.create_datagram_endpoint(lambda: Names(addresses), local_addr=("127.0.0.1", 0))
    try:
        yield names
    finally:
        transport.close()
