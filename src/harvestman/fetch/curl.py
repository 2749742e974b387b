"""Fetches pages: many at once, on one libcurl multi handle, driven by the event loop without a task per fetch.

The path of one fetch:

    start -> a pooled Transfer is set up and added -> Drive lets libcurl work -> Transfer's callbacks gate and collect
          -> _settle reads what has ended -> done(Response | Failure)
    meanwhile _sweep, every quarter of a second, ends what has run out of time
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import pycurl

from harvestman.errors import UsageError
from harvestman.fetch import faults, heads
from harvestman.fetch.certificates import KnownBad, default_ca_file
from harvestman.fetch.drive import Drive
from harvestman.fetch.limits import Limits
from harvestman.fetch.sessions import Sessions
from harvestman.fetch.transfer import Guard, Surroundings, Transfer
from harvestman.fetch.ways import Ways
from harvestman.model import Answer, Failure, FailureKind, Instant, Request, Response, Seconds

__all__ = ["Fetcher", "Limits"]

SWEEP = 0.25
"""Seconds between looks at the deadlines."""
PROXY_AUTHENTICATION: Final = 407
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
    - a connection goes to `request.address` and to no other, and only if the guard has no objection at that moment
      (a proxy, which the operator named, needs no vetting);
    - no name is looked up here;
    - a certificate is verified; a page may be fetched in spite of an invalid one and says so, a robots.txt never;
    - redirects are not followed; content encodings are not removed.
    """

    def __init__(
        self,
        *,
        user_agent: str,
        limits: Limits | None = None,
        guard: Guard,
        max_connections: int = 4096,
        max_secure: int = 256,
        now: Callable[[], Instant],
        ca_file: str | None = None,
        record_invalid: bool = True,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        """`max_connections`, `max_secure`: plain and TLS connections kept open, of 4 and 110 KB.

        `record_invalid`: fetch pages whose certificate is not valid; `secrets`: passwords of proxies.
        """
        self._loop = asyncio.get_running_loop()
        self._user_agent = user_agent
        self._limits = limits or Limits()
        self._now = now
        self._surroundings = Surroundings(self._limits, guard, now, self._loop.time)
        self._ca_file = ca_file or default_ca_file()
        self._known_bad = KnownBad(_DISTRUST)
        self._record_invalid = record_invalid
        self._sessions = Sessions()
        self._ways = Ways(secrets or {}, self._limits.connect)
        self._fixed = heads.fixed_fields()
        self._pool: list[Transfer] = []
        self._running: dict[pycurl.Curl, Transfer] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False
        self._drives: list[Drive] = []
        # Two, since libcurl's limit knows no difference, and kept TLS connections take twenty times the memory.
        self._plain = self._multi(max_connections)
        self._secure = self._multi(max_secure)

    def _multi(self, most: int) -> pycurl.CurlMulti:
        multi = pycurl.CurlMulti()
        multi.setopt(pycurl.M_MAXCONNECTS, most)
        # One request at a time on a connection, in HTTP/2 as well: what a server sees is what the frontier leases.
        multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_NOTHING)
        self._drives.append(Drive(multi, self._loop, partial(self._settle, multi)))
        return multi

    def _multi_of(self, transfer: Transfer) -> pycurl.CurlMulti:
        return self._secure if transfer.request.url.startswith("https") else self._plain

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
        if not request.address:
            raise ValueError("it has no vetted address")  # libcurl would look one up itself
        curl.setopt(pycurl.URL, request.url)
        self._ways.aim(curl, request, transfer.route)
        transfer.route = request.route
        plain = transfer.fields is self._fixed
        if not (plain and transfer.plain):
            curl.setopt(pycurl.HTTPHEADER, list(transfer.fields))
            transfer.plain = plain
        if request.url.startswith("https"):
            self._expect_tls(transfer)

    def _launch(self, transfer: Transfer) -> None:
        self._running[transfer.curl] = transfer
        self._multi_of(transfer).add_handle(transfer.curl)
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(SWEEP, self._sweep)

    def _new_transfer(self) -> Transfer:
        curl = pycurl.Curl()
        for option, value in (
            (pycurl.NOSIGNAL, 1),
            (pycurl.USERAGENT, self._user_agent),
            (pycurl.PROXY, ""),
            (pycurl.NOPROXY, ""),  # else libcurl obeys the environment's no_proxy
            (pycurl.DNS_CACHE_TIMEOUT, 0),
            (pycurl.FOLLOWLOCATION, 0),
            (pycurl.HTTP_CONTENT_DECODING, 0),
            (pycurl.HTTP_TRANSFER_DECODING, 1),
            (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS),
            (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
            (pycurl.PATH_AS_IS, 1),
            (pycurl.CONNECTTIMEOUT_MS, int(self._limits.connect * 1000)),  # `Ways` gives a proxy more
            (pycurl.MAXAGE_CONN, int(self._limits.idle)),
            (pycurl.BUFFERSIZE, 65536),
            # No post-quantum shares: what is read here is public, and they cost a sixth of a handshake.
            (pycurl.SSL_EC_CURVES, "X25519:P-256:P-384:P-521"),
        ):
            curl.setopt(option, value)
        if self._ca_file:
            curl.setopt(pycurl.CAINFO, self._ca_file)
            curl.setopt(pycurl.PROXY_CAINFO, self._ca_file)
        return Transfer(curl, self._surroundings)

    def _settle(self, multi: pycurl.CurlMulti) -> None:
        """Answer for every transfer libcurl has finished."""
        queued = 1
        while queued:
            queued, ended, failed = multi.info_read()
            for curl in ended:
                transfer = self._take(curl)
                if transfer.headers is None:  # libcurl takes the end of the connection for the end of the head
                    self._answer(transfer, self._failure(transfer, FailureKind.TRUNCATED, "the head breaks off"))
                elif transfer.status == PROXY_AUTHENTICATION and _through_http(transfer.request):
                    self._answer(transfer, self._failure(transfer, FailureKind.PROXY, "it does not know us (HTTP 407)"))
                else:
                    self._answer(transfer, self._response(transfer))
            for curl, code, text in failed:
                self._fail(self._take(curl), code, text)

    def _take(self, curl: pycurl.Curl) -> Transfer:
        transfer = self._running.pop(curl)
        self._multi_of(transfer).remove_handle(curl)
        return transfer

    def _fail(self, transfer: Transfer, code: int, text: str) -> None:
        if transfer.verdict is not None:
            self._answer(transfer, self._failure(transfer, *transfer.verdict))
        elif transfer.cut:
            self._answer(transfer, self._response(transfer))
        elif (proxy := transfer.route.proxy) and faults.of_proxy(code, transfer.curl, proxy, transfer.request.url):
            self._answer(transfer, self._failure(transfer, FailureKind.PROXY, text or f"libcurl error {code}"))
        elif code in faults.CERTIFICATE and self._tolerates(transfer):
            self._retry_unverified(transfer, text)
        elif code == pycurl.E_OPERATION_TIMEDOUT:
            self._answer(transfer, self._late(transfer))
        else:
            kind = faults.kind_of(code, head_complete=transfer.headers is not None)
            self._answer(transfer, self._failure(transfer, kind, text or f"libcurl error {code}"))

    def _expect_tls(self, transfer: Transfer) -> None:
        authority = heads.split_url(transfer.request.url)[0]
        share = self._sessions.of(authority)
        if share is not transfer.share:
            if transfer.share is not None:
                transfer.curl.unsetopt(pycurl.SHARE)
            transfer.curl.setopt(pycurl.SHARE, share)
            transfer.share = share
        reason = None if transfer.request.robots else self._known_bad.reason(authority, self._loop.time())
        if reason is not None:
            self._distrust(transfer, reason)

    def _tolerates(self, transfer: Transfer) -> bool:
        """Whether the page is fetched all the same. A robots.txt never is: who speaks there speaks for the site."""
        return self._record_invalid and transfer.tls_error is None and not transfer.request.robots

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
            address="" if request.route.proxy else request.address,
            started=transfer.started,
            first_byte=transfer.first_byte or finished,
            finished=finished,
            request_head=heads.request_head(request.url, self._user_agent, transfer.fields),
            tls_error=transfer.tls_error,
        )

    def _failure(self, transfer: Transfer, kind: FailureKind, detail: str) -> Failure:
        request = transfer.request
        address = "" if request.route.proxy else request.address
        return Failure(request.url, kind, detail, address, transfer.started, self._now())

    def _late(self, transfer: Transfer) -> Failure:
        stage = transfer.stage()
        kind = FailureKind.PROXY if transfer.route.proxy and stage == "no connection" else FailureKind.TIMEOUT
        return self._failure(transfer, kind, stage)

    def hold(self, size: int) -> None:
        """So many bytes of answers are kept elsewhere (less than 0: no longer), and count as bodies under way."""
        self._surroundings.held.bytes += size

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
            self._answer(transfer, self._late(transfer))
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
        for drive in self._drives:
            drive.close()
        # Explicitly: left to the garbage collector, connections would outlive the crawl.
        self._plain.close()
        self._secure.close()
        for transfer in self._pool:
            transfer.curl.close()
        self._pool.clear()
        await asyncio.sleep(0)


def _through_http(request: Request) -> bool:
    """Whether a proxy reads the answer on its way: it may be the proxy's own."""
    return request.route.proxy.startswith("http") and request.url.startswith("http:")
