"""An HTTP/2 server on the `h2` package, which counts the streams that are open at once."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived


@dataclass
class H2Server:
    """Answers each request with a page after `pause` seconds."""

    body: bytes = b"<p>two"
    pause: float = 0.0
    port: int = 0
    connections: int = 0
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Authority and path."""
    open: Counter[str] = field(default_factory=Counter)
    most: Counter[str] = field(default_factory=Counter)
    """Streams at once, at most, by authority."""
    crowded: int = 0
    """Connections that had two streams at once."""

    @asynccontextmanager
    async def listening(self, tls: ssl.SSLContext) -> AsyncIterator[H2Server]:
        tls.set_alpn_protocols(["h2"])
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", 0, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            await asyncio.sleep(0)


class _Connection(asyncio.Protocol):
    def __init__(self, server: H2Server) -> None:
        self._server = server
        self._talk = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self._streams = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._server.connections += 1
        self._talk.initiate_connection()
        self._transport.write(self._talk.data_to_send())

    def data_received(self, data: bytes) -> None:
        for event in self._talk.receive_data(data):
            if isinstance(event, RequestReceived):
                fields = {str(name): str(value) for name, value in event.headers or ()}
                self._asked(event.stream_id or 0, fields[":authority"], fields[":path"])
        self._transport.write(self._talk.data_to_send())

    def _asked(self, stream: int, authority: str, path: str) -> None:
        server = self._server
        server.asked.append((authority, path))
        server.open[authority] += 1
        server.most[authority] = max(server.most[authority], server.open[authority])
        self._streams += 1
        server.crowded += self._streams > 1
        asyncio.get_running_loop().call_later(server.pause, self._answer, stream, authority)

    def _answer(self, stream: int, authority: str) -> None:
        body = self._server.body
        self._server.open[authority] -= 1
        self._streams -= 1
        if self._transport.is_closing():
            return
        self._talk.send_headers(
            stream, [(":status", "200"), ("content-type", "text/html"), ("content-length", str(len(body)))]
        )
        self._talk.send_data(stream, body, end_stream=True)
        self._transport.write(self._talk.data_to_send())
