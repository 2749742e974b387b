"""A SOCKS5 server by the letter of RFC 1928 and 1929, which notes what it is asked.

It stands in for Tor: it knows where each name leads and asks no resolver. That our side speaks SOCKS as others do is
shown with pproxy, an independent implementation.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

SUCCEEDED, GENERAL, NOT_ALLOWED, HOST_UNREACHABLE, REFUSED, BAD_COMMAND, BAD_ADDRESS = 0, 1, 2, 4, 5, 7, 8
_NO_AUTH, _PASSWORD, _NONE_FITS = 0, 2, 255
_NAME = 3


@dataclass
class SocksServer:
    """Leads names to (address, port); a number instead is the reply that is given for the name."""

    names: dict[str, tuple[str, int] | int]
    accounts: dict[str, str] | None = None
    """User names and passwords it insists on; None takes anybody."""
    asked: list[tuple[str, int, str]] = field(default_factory=list)
    """Name, port and user of each request."""
    kinds: set[int] = field(default_factory=set)
    """ATYP of each request: 3 is a name."""
    open: int = 0
    most: int = 0
    """Connections at once, at most."""
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        self.most = max(self.most, self.open)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            user = await self._greet(reader, writer)
            if user is not None:
                await self._connect(reader, writer, user)
        self.open -= 1
        writer.close()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str | None:
        version, count = await reader.readexactly(2)
        assert version == 5
        methods = await reader.readexactly(count)
        if _PASSWORD not in methods:
            method = _NONE_FITS if self.accounts is not None or _NO_AUTH not in methods else _NO_AUTH
            writer.write(bytes((5, method)))
            return "" if method == _NO_AUTH else None
        writer.write(bytes((5, _PASSWORD)))
        _, size = await reader.readexactly(2)
        user = (await reader.readexactly(size)).decode()
        (size,) = await reader.readexactly(1)
        password = (await reader.readexactly(size)).decode()
        known = self.accounts is None or self.accounts.get(user) == password
        writer.write(bytes((1, 0 if known else 1)))
        return user if known else None

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, user: str) -> None:
        _, command, _, kind = await reader.readexactly(4)
        self.kinds.add(kind)
        if kind != _NAME or command != 1:
            self._reply(writer, BAD_ADDRESS if command == 1 else BAD_COMMAND)
            return
        (size,) = await reader.readexactly(1)
        name = (await reader.readexactly(size)).decode()
        (port,) = struct.unpack(">H", await reader.readexactly(2))
        self.asked.append((name, port, user))
        target = self.names.get(name, HOST_UNREACHABLE)
        if isinstance(target, int):
            self._reply(writer, target)
            return
        try:
            theirs, there = await asyncio.open_connection(*target)
        except OSError:
            self._reply(writer, REFUSED)
            return
        self._reply(writer, SUCCEEDED)
        await asyncio.gather(_pass_on(reader, there), _pass_on(theirs, writer))

    @staticmethod
    def _reply(writer: asyncio.StreamWriter, code: int) -> None:
        writer.write(bytes((5, code, 0, 1)) + bytes(6))

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[SocksServer]:
        server = await asyncio.start_server(self.serve, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            await asyncio.sleep(0)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with suppress(ConnectionError, OSError):
        writer.write_eof() if writer.can_write_eof() else writer.close()
