"""Asks a name server over HTTPS (RFC 8484): one POST a question, many at once on one HTTP/2 connection.

The certificate is always verified, and there is no way to turn that off: an answer from somebody else is worse than
none. The address of the server is given, so nothing is looked up to reach it, and no proxy is used.
"""

from __future__ import annotations

import asyncio
from typing import Final

import dns.message
import pycurl

from harvestman.fetch.certificates import default_ca_file
from harvestman.fetch.drive import Drive
from harvestman.fetch.nameservers import LARGEST, Https
from harvestman.model import Seconds

_KIND: Final = "application/dns-message"
_CONNECTIONS: Final = 8
"""To one server, which are as many questions at once where it does not speak HTTP/2."""
_LIFE: Final = 60
"""Seconds that a connection is used: one that died without a word is found out by nothing else."""


class Doh:
    """Questions under way over HTTPS. Made and used inside a running event loop, which it never blocks."""

    def __init__(self, *, patience: Seconds, ca_file: str | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._patience = patience
        self._ca_file = ca_file or default_ca_file()
        self._pool: list[pycurl.Curl] = []
        self._asking: dict[pycurl.Curl, asyncio.Future[None]] = {}
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAX_HOST_CONNECTIONS, _CONNECTIONS)
        self._drive = Drive(self._multi, self._loop, self._settle)

    async def ask(self, query: dns.message.Message, server: Https) -> tuple[bytes, int]:
        """The answer as it came over the wire, and its age in seconds. Raises OSError or TimeoutError for none."""
        curl = self._pool.pop() if self._pool else self._new_handle()
        body, head = _Body(), _Head()
        _aim(curl, query, server)
        curl.setopt(pycurl.WRITEFUNCTION, body.take)
        curl.setopt(pycurl.HEADERFUNCTION, head.take)
        self._asking[curl] = done = self._loop.create_future()
        self._multi.add_handle(curl)
        try:
            await done
            status = curl.getinfo(pycurl.RESPONSE_CODE)
            kind = str(curl.getinfo(pycurl.CONTENT_TYPE) or "").partition(";")[0].strip().lower()
        finally:
            if self._asking.pop(curl, None) is not None:  # given up: libcurl has it still
                self._multi.remove_handle(curl)
            self._pool.append(curl)
        if status != 200 or kind != _KIND:
            raise OSError(f"HTTP {status}, {kind or 'of no kind'}")
        return bytes(body.bytes), head.age

    def _new_handle(self) -> pycurl.Curl:
        curl = pycurl.Curl()
        for option, value in (
            (pycurl.NOSIGNAL, 1),
            (pycurl.PROXY, ""),
            (pycurl.DNS_CACHE_TIMEOUT, 0),
            (pycurl.FOLLOWLOCATION, 0),
            (pycurl.PROTOCOLS, pycurl.PROTO_HTTPS),
            (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS),
            (pycurl.PIPEWAIT, 1),  # rather wait for the connection that is being made than make another
            (pycurl.SSL_VERIFYPEER, 1),
            (pycurl.SSL_VERIFYHOST, 2),
            (pycurl.TIMEOUT_MS, int(self._patience * 1000)),
            (pycurl.MAXLIFETIME_CONN, _LIFE),
            (pycurl.USERAGENT, ""),  # RFC 8484: tell a resolver no more than it needs
            (pycurl.HTTPHEADER, [f"Content-Type: {_KIND}", f"Accept: {_KIND}"]),
        ):
            curl.setopt(option, value)
        if self._ca_file:
            curl.setopt(pycurl.CAINFO, self._ca_file)
        return curl

    def _settle(self) -> None:
        queued = 1
        while queued:
            queued, ended, failed = self._multi.info_read()
            for curl in ended:
                self._end(curl, None)
            for curl, code, text in failed:
                late = code == pycurl.E_OPERATION_TIMEDOUT
                self._end(curl, TimeoutError(text) if late else OSError(text or f"libcurl error {code}"))

    def _end(self, curl: pycurl.Curl, fault: OSError | None) -> None:
        self._multi.remove_handle(curl)
        done = self._asking.pop(curl)
        if done.done():
            return
        if fault is None:
            done.set_result(None)
        else:
            done.set_exception(fault)

    def close(self) -> None:
        """Give up every question (its answer is an OSError) and close the connections."""
        for curl in tuple(self._asking):
            self._end(curl, OSError("closed"))
        self._drive.close()
        self._multi.close()


def _aim(curl: pycurl.Curl, query: dns.message.Message, server: Https) -> None:
    query.id = 0  # RFC 8484: the exchange itself says what answers what
    ip = server.address
    curl.setopt(pycurl.URL, server.url)
    curl.setopt(pycurl.CONNECT_TO, [f"::[{ip}]:" if ":" in ip else f"::{ip}:"])
    curl.setopt(pycurl.POSTFIELDS, query.to_wire())


class _Body:
    """What a server sends, as far as it can be a DNS message."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = bytearray()

    def take(self, part: bytes) -> int | None:
        if len(self.bytes) + len(part) > LARGEST:
            return -1  # ends the transfer
        self.bytes += part
        return None


class _Head:
    """The one field that matters: how long a cache on the way has kept the answer."""

    __slots__ = ("age",)

    def __init__(self) -> None:
        self.age = 0

    def take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"age" and value.strip().isdigit():
            self.age = int(value)
