"""Fetches pages: many at once, on one libcurl multi handle, driven by the event loop without a task per fetch.

The path of one fetch:

    start -> a pooled Transfer is set up and added -> Drive lets libcurl work -> Transfer's callbacks gate and collect
          -> _settle reads what has ended -> done(Response | Failure)
    meanwhile _sweep, every quarter of a second, ends what has run out of time
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import pycurl

from harvestman.errors import UsageError
from harvestman.fetch import faults, heads
from harvestman.fetch.certificates import KnownBad, default_ca_file
from harvestman.fetch.drive import Drive
from harvestman.fetch.limits import Limits
from harvestman.fetch.transfer import Guard, Surroundings, Transfer
from harvestman.model import Answer, Failure, FailureKind, Instant, Request, Response, Seconds

__all__ = ["Fetcher", "Limits"]

SWEEP = 0.25
"""Seconds between looks at the deadlines."""
_DISTRUST: Final = Seconds(600.0)
"""How long a certificate that was not valid is taken to be still not valid."""


def refuse_bad_libcurl(version: str) -> None:
    """libcurl 8.21.0 leaks sockets: a crawl would run out of them within the hour."""
    if version == "8.21.0":
        raise UsageError("libcurl 8.21.0 leaks sockets; install another pycurl: pip install --upgrade pycurl")


refuse_bad_libcurl(pycurl.version_info()[1])


class Fetcher:
    """GETs pages from vetted addresses.

    Promises:
    - `done` is called exactly once per `start`, from the event loop, never inside `start`;
    - nothing the web does raises: it comes back as a `Failure`;
    - a connection goes to `request.address` and to no other, and only if the guard has no objection at that moment;
    - redirects are not followed; content encodings are not removed.
    """

    def __init__(
        self,
        *,
        user_agent: str,
        limits: Limits | None = None,
        guard: Guard,
        max_connections: int = 4096,
        now: Callable[[], Instant],
        loop: asyncio.AbstractEventLoop | None = None,
        ca_file: str | None = None,
    ) -> None:
        self._loop = loop or asyncio.get_running_loop()
        self._user_agent = user_agent
        self._limits = limits or Limits()
        self._now = now
        self._surroundings = Surroundings(self._limits, guard, now, self._loop.time)
        self._ca_file = ca_file or default_ca_file()
        self._known_bad = KnownBad(_DISTRUST)
        self._fixed = heads.fixed_fields()
        self._pool: list[Transfer] = []
        self._running: dict[pycurl.Curl, Transfer] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, max_connections)
        self._drive = Drive(self._multi, self._loop, self._settle)

    @property
    def in_flight(self) -> int:
        """Fetches begun whose answer is not there yet."""
        return len(self._running)

    def start(self, request: Request, done: Callable[[Answer], None]) -> None:
        """Begin one fetch. Its answer comes through `done` in a later round of the loop."""
        transfer = self._pool.pop() if self._pool else self._new_transfer()
        conditional = heads.conditions(request.etag, request.last_modified)
        transfer.begin(request, done, (*self._fixed, *conditional) if conditional else self._fixed)
        if self._closed:
            self._answer(transfer, self._failure(transfer, FailureKind.TIMEOUT, "aborted"))
            return
        try:
            self._aim(transfer)
        except (pycurl.error, UnicodeError, ValueError, TypeError) as fault:
            self._answer(transfer, self._failure(transfer, FailureKind.PROTOCOL, f"not a URL we can ask for: {fault}"))
            return
        self._launch(transfer)

    def _aim(self, transfer: Transfer) -> None:
        """Set the options that differ from one request to the next: few, since each costs a microsecond."""
        request, curl = transfer.request, transfer.curl
        if not request.url.startswith(("http://", "https://")):
            raise ValueError("it is not http or https")
        if "@" in request.url and "@" in heads.split_url(request.url)[0]:
            raise ValueError("it carries credentials")
        ip = request.address
        if not ip:
            raise ValueError("it has no vetted address")  # libcurl would look one up itself
        curl.setopt(pycurl.URL, request.url)
        # An empty host and port match whatever the URL names; an empty target port keeps the URL's own.
        curl.setopt(pycurl.CONNECT_TO, [f"::[{ip}]:" if ":" in ip else f"::{ip}:"])
        plain = transfer.fields is self._fixed
        if not (plain and transfer.plain):
            curl.setopt(pycurl.HTTPHEADER, list(transfer.fields))
            transfer.plain = plain
        if request.url.startswith("https") and not request.robots:
            self._expect_certificate(transfer)

    def _launch(self, transfer: Transfer) -> None:
        self._running[transfer.curl] = transfer
        self._multi.add_handle(transfer.curl)
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(SWEEP, self._sweep)

    def _new_transfer(self) -> Transfer:
        curl = pycurl.Curl()
        for option, value in (
            (pycurl.NOSIGNAL, 1),
            (pycurl.USERAGENT, self._user_agent),
            (pycurl.PROXY, ""),
            (pycurl.DNS_CACHE_TIMEOUT, 0),
            (pycurl.FOLLOWLOCATION, 0),
            (pycurl.HTTP_CONTENT_DECODING, 0),
            (pycurl.HTTP_TRANSFER_DECODING, 1),
            (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS),
            (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
            (pycurl.PATH_AS_IS, 1),
            (pycurl.CONNECTTIMEOUT_MS, int(self._limits.connect * 1000)),
            (pycurl.MAXAGE_CONN, int(self._limits.idle)),
            (pycurl.BUFFERSIZE, 65536),
        ):
            curl.setopt(option, value)
        if self._ca_file:
            curl.setopt(pycurl.CAINFO, self._ca_file)
        return Transfer(curl, self._surroundings)

    def _settle(self) -> None:
        """Answer for every transfer libcurl has finished."""
        queued = 1
        while queued:
            queued, ended, failed = self._multi.info_read()
            for curl in ended:
                transfer = self._take(curl)
                self._answer(transfer, self._response(transfer))
            for curl, code, text in failed:
                self._fail(self._take(curl), code, text)

    def _take(self, curl: pycurl.Curl) -> Transfer:
        self._multi.remove_handle(curl)
        return self._running.pop(curl)

    def _fail(self, transfer: Transfer, code: int, text: str) -> None:
        if transfer.verdict is not None:
            self._answer(transfer, self._failure(transfer, *transfer.verdict))
        elif transfer.cut:
            self._answer(transfer, self._response(transfer))
        elif code in faults.CERTIFICATE and transfer.tls_error is None and not transfer.request.robots:
            self._retry_unverified(transfer, text)
        else:
            kind = faults.kind_of(code, head_complete=transfer.headers is not None)
            self._answer(transfer, self._failure(transfer, kind, text or f"libcurl error {code}"))

    def _expect_certificate(self, transfer: Transfer) -> None:
        reason = self._known_bad.reason(heads.split_url(transfer.request.url)[0], self._loop.time())
        if reason is not None:
            self._distrust(transfer, reason)

    def _retry_unverified(self, transfer: Transfer, reason: str) -> None:
        self._known_bad.note(heads.split_url(transfer.request.url)[0], reason, self._loop.time())
        transfer.rewind()
        self._distrust(transfer, reason)
        self._launch(transfer)

    def _distrust(self, transfer: Transfer, reason: str) -> None:
        """A page is read even when its certificate is bad, and says so; what it says was never a secret."""
        transfer.tls_error = reason
        transfer.verify(False)

    def _response(self, transfer: Transfer) -> Response:
        request = transfer.request
        finished = self._now()
        return Response(
            url=request.url,
            status=transfer.status,
            head=b"".join(transfer.lines),
            headers=transfer.headers or {},
            body=b"".join(transfer.chunks),
            address=request.address,
            started=transfer.started,
            first_byte=transfer.first_byte or finished,
            finished=finished,
            request_head=heads.request_head(request.url, self._user_agent, transfer.fields),
            tls_error=transfer.tls_error,
        )

    def _failure(self, transfer: Transfer, kind: FailureKind, detail: str) -> Failure:
        request = transfer.request
        return Failure(request.url, kind, detail, request.address, transfer.started, self._now())

    def _answer(self, transfer: Transfer, answer: Answer) -> None:
        """Hand the answer over in the next round of the loop and the handle back to the pool."""
        self._loop.call_soon(transfer.done, answer)
        if transfer.tls_error is not None:
            transfer.verify(True)
        transfer.release()
        self._pool.append(transfer)

    def _sweep(self) -> None:
        moment = self._loop.time()
        late = [transfer for transfer in self._running.values() if transfer.deadline <= moment]
        for transfer in late:
            self._take(transfer.curl)
            stage = "no first byte" if transfer.first_byte is None else "body too slow"
            self._answer(transfer, self._failure(transfer, FailureKind.TIMEOUT, stage))
        self._sweeper = self._loop.call_later(SWEEP, self._sweep) if self._running else None

    async def close(self) -> None:
        """End what is in flight with a `Failure`, then give every socket back. Idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for transfer in tuple(self._running.values()):
            self._take(transfer.curl)
            self._answer(transfer, self._failure(transfer, FailureKind.TIMEOUT, "aborted"))
        self._drive.close()
        # Explicitly: left to the garbage collector, connections would outlive the crawl.
        self._multi.close()
        for transfer in self._pool:
            transfer.curl.close()
        self._pool.clear()
        await asyncio.sleep(0)
