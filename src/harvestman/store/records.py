"""WARC 1.1 records as bytes: how a response is written down, and how it is read back."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache

from harvestman.headers import parse_fields
from harvestman.model import Instant, Response

IDENTICAL_PAYLOAD = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
CONVERTED = "text/html; charset=utf-8"
"""What a conversion record holds: a page as a browser showed it."""
TLS_ERROR = "Harvestman-TLS-Error"
KIND = "Harvestman-Kind"
"""What it was fetched as, if not as a page: a resource."""
DIGEST = "Harvestman-Digest"
"""The digest of the decoded body, by which duplicates are known; WARC-Payload-Digest is of the body as transferred."""

_FRAMING = re.compile(rb"^(Transfer-Encoding|Content-Length)(?=[ \t]*:)", re.IGNORECASE | re.MULTILINE)
_STATUS_LINE = re.compile(rb"HTTP/(\d(?:\.\d)?) +(\d{3})")
_VERSION = re.compile(rb"HTTP/[23](?:\.\d)?\b")
_SPACE = re.compile(r"[\x00-\x1f\x7f]+")
_END = b"\r\n\r\n"


def record(fields: Iterable[tuple[str, str]], block: bytes) -> bytes:
    """A whole record, uncompressed."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in fields])
    return b"WARC/1.1\r\n%bContent-Length: %d\r\n\r\n%b\r\n\r\n" % (lines.encode(), len(block), block)


def warc_date(at: Instant) -> str:
    """A moment as WARC 1.1 writes it, to the millisecond."""
    milliseconds = round(at * 1000)
    return f"{_second(milliseconds // 1000)}.{milliseconds % 1000:03d}Z"


@lru_cache(maxsize=64)
def _second(at: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))


def instant(date: str) -> Instant:
    """The moment a WARC-Date names."""
    return Instant(datetime.fromisoformat(date).timestamp())


def sha256(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def one_line(value: str) -> str:
    """A value that cannot break out of its header line."""
    return _SPACE.sub(" ", value).strip()


def stored_head(response: Response, length: int) -> bytes:
    """The response's head, true of the body we store: chunking is gone, so its header steps aside for Content-Length.

    HTTP/2 and 3 heads are written as HTTP/1.1, which is all that readers of WARC know.
    """
    head = response.head
    headers = response.headers
    if "transfer-encoding" not in headers and headers.get("content-length") == str(length) and head[:7] == b"HTTP/1.":
        return head if head.endswith(_END) else head.rstrip(b"\r\n") + _END
    kept = _FRAMING.sub(rb"X-Crawler-\1", head.rstrip(b"\r\n") or b"HTTP/1.1 %d" % response.status)
    return b"%b\r\nContent-Length: %d\r\n\r\n" % (as_http_1(kept), length)


def as_http_1(head: bytes) -> bytes:
    """A head with the version of its first line brought down to 1.1 when it is a later one."""
    line, newline, rest = head.partition(b"\n")
    return _VERSION.sub(b"HTTP/1.1", line, count=1) + newline + rest


def protocol(head: bytes) -> str | None:
    """The WARC-Protocol of a head that was not HTTP/1."""
    found = _STATUS_LINE.match(head)
    return {b"2": "h2", b"3": "h3"}.get(found[1][:1]) if found else None


def parse_record(data: bytes) -> tuple[dict[str, str], bytes]:
    """The header fields (lower-case names) and the block of an uncompressed record."""
    head, _, rest = data.partition(_END)
    fields = header_fields(head, "utf-8")
    return fields, rest[: int(fields.get("content-length", "0"))]


def header_fields(head: bytes, encoding: str = "latin-1") -> dict[str, str]:
    """The fields after the first line. HTTP heads are latin-1, those of WARC records UTF-8.

    A stored head gives the dict that the fetcher made of the live one, but for the framing `stored_head` changed.
    """
    return parse_fields(head.split(b"\n")[1:], encoding)


def response_of(fields: dict[str, str], block: bytes) -> Response:
    """The response a record was made of. Its three moments are all WARC-Date, the one that was written down.

    What a browser made of a page is read as if the server had sent it so.
    """
    at = instant(fields["warc-date"])
    if fields.get("warc-type") == "conversion":
        return Response(fields["warc-target-uri"], 200, b"", {"content-type": CONVERTED}, block, "", at, at, at)
    head, end, body = block.partition(_END)
    status = _STATUS_LINE.match(head)
    return Response(
        url=fields["warc-target-uri"],
        status=int(status[2]) if status else 0,
        head=head + end,
        headers=header_fields(head),
        body=body,
        address=fields.get("warc-ip-address", ""),
        started=at,
        first_byte=at,
        finished=at,
        tls_error=fields.get(TLS_ERROR.lower()),
    )
