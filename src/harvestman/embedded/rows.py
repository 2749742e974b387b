"""What a State's rows look like on RocksDB: keys, values, and how a row moves. Pure.

Column families (key -> value; every integer big endian, so that byte order is numeric order):

    url      id(18)                                   -> UrlRecord
    queue    partition(2) host 00 bucket(1) seq(8)    -> id(18)
    due      partition(2) millis(8) id(18)            -> '', retries
    revisit  partition(2) millis(8) id(18)            -> '', next visits of pages that we have
    render   partition(2) millis(8) id(18)            -> '', pages that wait for a browser
    host     partition(2) host                        -> HostRecord
    site     partition(2) site                        -> SiteRecord
    robots   partition(2) origin                      -> RobotsRecord
    content  sha256(32)                               -> Content
    near     simhash(8)                               -> Near; found through a table in RAM (`near`)
    outbox   partition(2) seq(8)                      -> msgpack of list[Discovery]
    fresh    commit number(8)                         -> ids of the URLs new in that commit
    mark     name                                     -> small values
"""

from __future__ import annotations

from struct import Struct
from typing import TypeAlias

import msgspec

from harvestman.model import HostKey, HostRecord, Instant, Partition, RobotsRecord, SiteRecord, UrlId, UrlRecord
from harvestman.ports import Content, Near

DATED = ("due", "revisit", "render")
"""Families in order of time."""
PARTITIONED = ("url", "queue", *DATED, "host", "site", "robots", "outbox")
"""Families whose keys begin with the partition."""
FAMILIES = (*PARTITIONED, "content", "near", "fresh", "mark")
WAITING = ("queue", *DATED)
"""Families that say what waits where: all of them follow from the URL records."""

Row: TypeAlias = tuple[str, bytes, bytes]
"""Family, key, value."""

encode = msgspec.msgpack.Encoder().encode
decode_url = msgspec.msgpack.Decoder(UrlRecord).decode
decode_host = msgspec.msgpack.Decoder(HostRecord).decode
decode_site = msgspec.msgpack.Decoder(SiteRecord).decode
decode_robots = msgspec.msgpack.Decoder(RobotsRecord).decode
decode_content = msgspec.msgpack.Decoder(Content).decode
decode_near = msgspec.msgpack.Decoder(Near).decode

u16 = Struct(">H").pack
u64 = Struct(">Q").pack
read_u64 = Struct(">Q").unpack_from
read_u16 = Struct(">H").unpack_from
END = b"\xff" * 19
"""Behind every key that begins with a partition."""


def host_key(partition: Partition, host: str) -> bytes:
    return u16(partition) + host.encode()


def queue_key(partition: Partition, host: HostKey, bucket: int, seq: int) -> bytes:
    return b"%b%b\0%c%b" % (u16(partition), host.encode(), bucket, u64(seq))


def due_key(when: Instant, url: UrlId) -> bytes:
    # Rounded, so that the float made of it (`due`) leads back to the same key.
    return url[:2] + u64(round(when * 1000)) + url


def rekeyed(row: Row, partition: Partition) -> Row:
    """A row as it is in another partition."""
    family, key, value = row
    place = u16(partition)
    if family in DATED:
        return family, place + key[2:10] + place + key[12:], value
    return family, place + key[2:], place + value[2:] if family == "queue" else value


def queue_row(host: HostKey, url: UrlId, record: UrlRecord) -> Row:
    """The entry of a URL in its host's queue."""
    return "queue", queue_key(Partition(read_u16(url)[0]), host, record.bucket, record.seq), url


def dated_row(family: str, when: Instant, url: UrlId) -> Row:
    """The entry of a URL in one of the DATED families."""
    return family, due_key(when, url), b""


def id_in(row: Row) -> UrlId:
    """Whose entry a row of one of the WAITING families is."""
    family, key, value = row
    return UrlId(value if family == "queue" else key[10:])
