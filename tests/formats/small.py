"""A small crawl with all its files, written as a worker writes them: raw record, page, commit."""

from __future__ import annotations

import asyncio
import gzip
from hashlib import sha256
from pathlib import Path
from types import TracebackType

import msgspec

from harvestman.embedded.state import RocksState
from harvestman.frontier.routing import Router
from harvestman.jobs import Jobs
from harvestman.layout import VERSION, CrawlFile, Layout
from harvestman.model import (
    Change,
    HostKey,
    HostRecord,
    Instant,
    Job,
    Link,
    Page,
    RecordRef,
    Response,
    Seconds,
    SiteKey,
    Status,
    Tally,
    UrlRecord,
    Visit,
)
from harvestman.ports import Changes
from harvestman.store.pages import PageLog
from harvestman.store.records import sha256 as payload_digest
from harvestman.store.replay import replay
from harvestman.store.warc import WarcWriter

THEN = 1_790_000_000.0
HOME = "https://example.org/"
HTML = "text/html"


class Small:
    """One worker's files. Nothing counts before `commit`. Use it in a `with` block, also to go on with one."""

    def __init__(self, data: Path, *, warc_bytes: int = 1 << 30, log_bytes: int = 1 << 30) -> None:
        self.layout = Layout(data)
        if not self.layout.exists():
            Jobs(self.layout).add(Job(0, "", Instant(THEN), scope="all"), [HOME])
            self.layout.write(CrawlFile(VERSION, 8, 1))
        self._router = Router(8)
        self._state = RocksState(self.layout.state(0))
        marks = {name: self._position(name) for name in ("warc", "pages")}
        self.now = float(self._state.read_mark("small") or THEN)
        replay(self.layout.warc, "w00", marks["warc"])
        self._warc = WarcWriter(
            self.layout.warc, "w00", max_bytes=warc_bytes, software="test", contact="test@example.org",
            now=lambda: self.now,
        )  # fmt: skip
        self._log = PageLog(self.layout.pages, "w00", marks["pages"], log_bytes)
        self._group: list[Page] = []
        self._changes = Changes()
        self._bodies: dict[bytes, tuple[str, Instant, str]] = {}
        self._known: dict[str, UrlRecord] = {}

    def __enter__(self) -> Small:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._state.shut()
        self._warc.close()
        self._log.close()

    # -- visits ------------------------------------------------------------------------------------------------------

    def page(
        self, url: str, text: str = "Some text.", *, depth: int = 1, links: tuple[str, ...] = (), packed: bool = False,
        noindex: bool = False, title: str = "A title", language: str = "en", media: str = HTML,
    ) -> Page:  # fmt: skip
        """A page that is new or changed."""
        body = (f"<title>{title}</title><p>{text}</p>" if media == HTML else text).encode()
        title = title if media == HTML else ""
        answer = self._answer(url, 200, gzip.compress(body) if packed else body, packed, media=media)
        digest = sha256(body).digest()
        ref = self._warc.write(answer, digest=digest.hex())
        self._bodies[digest] = (url, answer.started, payload_digest(answer.body))
        found = Page(
            url, 200, answer.finished, media, depth, digest.hex(), "utf-8", title, "About it", language, text,
            None, [Link(link, "to it") for link in links], noindex, simhash=2**64 - 1,
        )  # fmt: skip
        self._group.append(found)
        self._visited(url, Status.FETCHED, 200, digest, ref, changed=True, media=media)
        return found

    def copy(self, url: str, page: Page) -> None:
        """A URL with the content of another, byte for byte."""
        first, at, payload = self._bodies[bytes.fromhex(page.digest)]
        media = page.content_type
        body = (f"<title>{page.title}</title><p>{page.text}</p>" if media == HTML else page.text).encode()
        answer = self._answer(url, 200, body, media=media)
        ref = self._warc.write_revisit(answer, refers_to_uri=first, refers_to_date=at, payload_digest=page.digest)
        assert payload == payload_digest(body)
        self._visited(url, Status.DUPLICATE, 200, bytes.fromhex(page.digest), ref, target=first, media=media)

    def unchanged(self, page: Page, media: str = HTML) -> None:
        """A 304."""
        first, at, payload = self._bodies[bytes.fromhex(page.digest)]
        self._warc.write_unmodified(self._answer(page.url, 304, b"", media=media), first, at, payload)

    def gone(self, url: str) -> None:
        ref = self._warc.write(self._answer(url, 404, b"no"), digest=sha256(b"no").hexdigest())
        self._visited(url, Status.GONE, 404, b"", ref)

    def redirected(self, url: str, target: str) -> None:
        answer = self._answer(url, 301, b"", location=target)
        ref = self._warc.write(answer, digest=sha256(b"").hexdigest())
        self._visited(url, Status.REDIRECTED, 301, b"", ref, target=target)

    def robots(self, origin: str) -> None:
        self._warc.write(self._answer(f"{origin}/robots.txt", 200, b"User-agent: *\n"), digest="")

    def flush(self) -> None:
        """The group to the log, as before a commit."""
        self._log.append(self._group)
        self._group = []

    def commit(self) -> None:
        self.flush()
        self._changes.marks |= {
            "warc": msgspec.msgpack.encode(self._warc.position),
            "pages": msgspec.msgpack.encode(self._log.position),
            "tally": msgspec.msgpack.encode(Tally(pages=len(self._known))),
            "small": b"%r" % self.now,
        }
        host = HostRecord(HostKey("example.org"), SiteKey("example.org"), Instant(self.now), Seconds(1.0))
        self._changes.hosts[host.host] = (self._router.place(host.host)[2], host)
        asyncio.run(self._state.commit(self._changes))
        self._changes = Changes()

    # -- inside ------------------------------------------------------------------------------------------------------

    def _position(self, name: str) -> tuple[str, int] | None:
        raw = self._state.read_mark(name)
        return msgspec.msgpack.decode(raw, type=tuple[str, int]) if raw else None

    def _answer(
        self, url: str, status: int, body: bytes, packed: bool = False, location: str = "", media: str = HTML
    ) -> Response:
        self.now += 10.0
        headers = {"content-type": "text/html; charset=utf-8" if media == HTML else media} if media else {}
        headers |= {"content-encoding": "gzip"} if packed else {}
        headers |= {"location": location} if location else {}
        head = f"HTTP/1.1 {status} X\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n"
        at = Instant(self.now)
        request = f"GET {url[url.find('/', 8) :]} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        return Response(
            url, status, head.encode(), headers, body, "127.0.0.1", at, at, Instant(at + 0.25), request_head=request
        )

    def _visited(
        self,
        url: str,
        status: Status,
        code: int,
        digest: bytes,
        ref: RecordRef,
        target: str = "",
        changed: bool = False,
        media: str = HTML,
    ) -> None:
        at = Instant(self.now)
        visit = Visit(at, code, "ok", digest, 7, content_type=media, size=9, ref=ref, target=target)
        record = self._known.get(url) or UrlRecord(url, status, 1, 4, 1, at, HOME)
        before = record.change
        change = Change(1.0, Seconds(1.0), at, before.visits + 1, before.changes + changed) if before else None
        record = msgspec.structs.replace(
            record, status=status, visit=visit, change=change or Change(1.0, Seconds(1.0), at)
        )
        self._known[url] = record
        self._changes.records[self._router.id_of(url)] = record


def write(data: Path) -> Layout:
    """A crawl with one visit of each kind."""
    with Small(data) as small:
        small.robots("https://example.org")
        home = small.page(HOME, "Welcome.\nFirst version.", depth=0, links=(f"{HOME}a?x=1&b=2", f"{HOME}other"))
        small.page(f"{HOME}a?b=2&x=1", "Page a. é", links=(HOME,), packed=True, language="de", title="Seite ü")
        small.page("https://www.Example.com/B/?z=1&A=2".replace("E", "e"), "Page b.", links=(HOME,))
        small.commit()
        small.copy(f"{HOME}copy", home)
        small.page(f"{HOME}hidden", "Hidden.", noindex=True)
        small.gone(f"{HOME}gone")
        small.redirected(f"{HOME}old", f"{HOME}other")
        small.commit()
        small.unchanged(home)
        small.page(HOME, "Welcome.\nSecond version.", depth=0, links=(f"{HOME}a?b=2&x=1",))
        small.page(f"{HOME}empty", "")
        small.commit()
    return Layout(data)
