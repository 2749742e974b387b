"""The ground of the SSRF tests: a web on the one address that may be asked, traps on others, and a lying name server.

Everything is on loopback. A trap is a listener that notes who connects and says nothing.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import cast

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset
from stages.ssrf_corpus import GOOD_NAMES, NAMES, OTHER_SERVICES, PUBLIC, Answers

Site = Callable[[str, str], bytes]
"""(host, path) -> the answer, head and all."""
GUARDED = ("127.0.0.1", "127.0.0.3", "127.0.0.77", "127.255.255.254", "::1")


class Ground:
    """What stands where, and who came."""

    def __init__(self) -> None:
        self.port = 0
        self.dns = ""
        self.traps: list[tuple[str, int]] = []
        self.caught: list[tuple[str, int]] = []
        """Connections to a trap."""
        self.connections = 0
        """To the web."""
        self.heads: list[bytes] = []
        """The requests that it saw."""
        self.talks: set[asyncio.Task[object]] = set()

    async def set_traps(self, servers: list[asyncio.Server]) -> None:
        """On every guarded address at the web's own port and the usual ones; at the allowed one at other services'."""
        for address in GUARDED:
            for port in (self.port, 80, 443):
                await self._set_trap(address, port, servers)
        for text in OTHER_SERVICES.split():
            await self._set_trap(PUBLIC, int(text), servers)

    async def _set_trap(self, address: str, port: int, servers: list[asyncio.Server]) -> None:
        def sprung(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.caught.append((address, port))
            writer.close()

        with suppress(PermissionError, OSError):  # a low port, or one that is in use
            servers.append(await asyncio.start_server(sprung, address, port))
            self.traps.append((address, port))

    async def spring(self) -> list[tuple[str, int]]:
        """Walk into every trap on purpose, and return what they caught: whoever came before is there as well.

        A listener accepts in the order of arrival, so nobody who came before us is still unseen when we are seen.
        """
        for address, port in self.traps:
            _, writer = await asyncio.open_connection(address, port)
            writer.close()
        for _ in range(200):
            if set(self.caught) >= set(self.traps):
                break
            await asyncio.sleep(0.01)
        return self.caught


@asynccontextmanager
async def standing(site: Site) -> AsyncIterator[Ground]:
    """The web, the traps and the name server, all ready."""
    ground = Ground()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ground.connections += 1
        talk = asyncio.current_task()
        assert talk is not None
        ground.talks.add(talk)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                ground.heads.append(head)
                line, *fields = head.decode("latin-1").split("\r\n")
                host = next(field[6:] for field in fields if field.lower().startswith("host: "))
                writer.write(site(host.rpartition(":")[0] if host[-1] != "]" else host, line.split(" ")[1]))
        ground.talks.discard(talk)
        writer.close()

    servers = [await asyncio.start_server(serve, PUBLIC, 0)]
    ground.port = servers[0].sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(NameServer, ("127.0.0.1", 0))
    ground.dns = f"127.0.0.1:{transport.get_extra_info('sockname')[1]}"
    await ground.set_traps(servers)
    try:
        yield ground
    finally:
        transport.close()
        for server in servers:
            server.close()
        for talk in ground.talks:
            talk.cancel()
        await asyncio.gather(*ground.talks, return_exceptions=True)


class NameServer(asyncio.DatagramProtocol):
    """Answers from NAMES; for good names, and all below robots.test, with the address that may be asked."""

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)  # uvloop's is no subclass

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        query = dns.message.from_wire(data)
        question = query.question[0]
        name = question.name.to_text(omit_final_dot=True).lower()
        reply = dns.message.make_response(query)
        if name in GOOD_NAMES or name.endswith(".robots.test"):
            told = Answers((PUBLIC,))
        elif name in NAMES:
            told = NAMES[name][0]
        else:
            reply.set_rcode(dns.rcode.NXDOMAIN)
            self._transport.sendto(reply.to_wire(), addr)
            return
        self._asked[name] += question.rdtype == dns.rdatatype.A
        addresses = told.later if told.later and self._asked[name] > 1 else told.first
        owner = told.alias or name
        if told.alias:
            reply.answer.append(dns.rrset.from_text(f"{name}.", 0, "IN", "CNAME", f"{told.alias}."))
        kind = "A" if question.rdtype == dns.rdatatype.A else "AAAA"
        fitting = _of_family(addresses, socket.AF_INET if kind == "A" else socket.AF_INET6)
        if fitting:
            reply.answer.append(dns.rrset.from_text(f"{owner}.", 0 if told.later else 300, "IN", kind, *fitting))
        self._transport.sendto(reply.to_wire(), addr)


def _of_family(addresses: Iterable[str], family: int) -> list[str]:
    return [address for address in addresses if (":" in address) == (family == socket.AF_INET6)]
