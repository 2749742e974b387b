"""State on RocksDB: one database per worker, every key prefixed by its partition so that ownership can move.

What lies in it is drawn in `rows`.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import msgspec
from rocksdict import (
    BottommostLevelCompaction,
    Cache,
    ColumnFamily,
    CompactOptions,
    Rdict,
    RdictIter,
    ReadOptions,
    WriteBatch,
)

from harvestman.embedded.near import NearTable
from harvestman.embedded.opening import OPEN_FILES, explained, families_of, opened, options
from harvestman.embedded.rows import (
    DATED,
    END,
    FAMILIES,
    PARTITIONED,
    WAITING,
    Row,
    decode_content,
    decode_host,
    decode_near,
    decode_robots,
    decode_site,
    decode_url,
    due_key,
    encode,
    host_key,
    id_in,
    queue_key,
    read_u16,
    read_u64,
    u16,
    u64,
)
from harvestman.model import (
    HostKey,
    HostRecord,
    Instant,
    Origin,
    Partition,
    RobotsRecord,
    SiteKey,
    SiteRecord,
    Tally,
    UrlId,
    UrlRecord,
)  # fmt: skip
from harvestman.policy.urls import host_of
from harvestman.ports import Changes, Content, Near, Parcel, Pending


class RocksState:
    """`ports.State` in one directory. With `read_only`, a view that may be taken while a worker has it open."""

    def __init__(
        self, directory: Path, *, cache_bytes: int = 32 << 20, write_buffer: int = 64 << 20, read_only: bool = False,
        fingerprints: int = 50_000, patience: float = 0.0,
    ) -> None:  # fmt: skip
        """`patience`: seconds to wait for one who has it open, such as a worker whose supervisor was killed, or who
        was just putting files together while we looked.
        """
        directory.parent.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        names = families_of(directory, patience) if read_only else FAMILIES
        # A view holds every file open: its owner removes files as it goes.
        self._options = partial(options, Cache(cache_bytes), write_buffer, -1 if read_only else OPEN_FILES)
        self._db = opened(directory, names, self._options, read_only, patience)
        self._family: dict[str, Rdict] = {name: self._db.get_column_family(name) for name in names}
        self._handle: dict[str, ColumnFamily] = {name: self._db.get_column_family_handle(name) for name in names}
        self._commits = self._last_fresh()
        self._heads: dict[str, dict[bytes, bytes]] = {}
        self._fingerprints = fingerprints
        self._table: NearTable | None = None

    # -- reading -----------------------------------------------------------------------------------------------

    async def records(self, ids: Sequence[UrlId]) -> list[UrlRecord | None]:
        return [None if raw is None else decode_url(raw) for raw in self._values("url", ids)]

    async def window(self, partition: Partition, host: HostKey, bucket: int, start: int, limit: int) -> list[Pending]:
        prefix = b"%b%b\0%c" % (u16(partition), host.encode(), bucket)
        found: list[tuple[int, UrlId]] = []
        for key, value in self._scan("queue", prefix + u64(start), prefix + b"\xff" * 8, limit):
            found.append((read_u64(key, len(key) - 8)[0], UrlId(value)))
        records = await self.records([url for _, url in found])
        return [
            Pending(bucket, seq, url, record)
            for (seq, url), record in zip(found, records, strict=True)
            if record is not None
        ]

    async def due(self, until: Instant, limit: int) -> list[tuple[Instant, UrlId]]:
        return self._dated("due", until, limit)

    async def revisits(self, until: Instant, limit: int) -> list[tuple[Instant, UrlId]]:
        return self._dated("revisit", until, limit)

    async def renders(self, until: Instant, limit: int) -> list[tuple[Instant, UrlId]]:
        return self._dated("render", until, limit)

    def _dated(self, family: str, until: Instant, limit: int) -> list[tuple[Instant, UrlId]]:
        if limit <= 0:
            return []
        ends = u64(int(until * 1000) + 1)
        parts = (
            self._dated_of(family, partition, partition + ends, limit) for partition in list(self._schedule(family))
        )
        merged = heapq.merge(*parts)  # lazily: of most partitions one entry is read
        return [(Instant(read_u64(when)[0] / 1000), url) for when, url in islice(merged, limit)]

    def _dated_of(self, family: str, partition: bytes, end: bytes, limit: int) -> Iterator[tuple[bytes, UrlId]]:
        """The entries of one partition; the first is its head from now on."""
        heads = self._schedule(family)
        head, first = heads[partition], True
        for key, _ in self._scan(family, head, end, limit) if head < end else ():
            if first:
                heads[partition], first = key, False
            yield key[2:10], UrlId(key[10:])
        if first:
            heads[partition] = max(head, end)

    def _schedule(self, family: str) -> dict[bytes, bytes]:
        """Of each partition a key that no entry is below: what was removed before it is not walked over again."""
        heads = self._heads.get(family)
        if heads is None:
            heads = self._heads[family] = {
                u16(partition): u16(partition) for partition in self._partitions_with(family)
            }
        return heads

    def _schedule_entry(self, family: str, key: bytes) -> None:
        heads = self._schedule(family)
        head = heads.get(key[:2])
        if head is None or key < head:
            heads[key[:2]] = key

    async def hosts(self, names: Sequence[tuple[Partition, HostKey]]) -> list[HostRecord | None]:
        keys = [host_key(partition, host) for partition, host in names]
        return [None if raw is None else decode_host(raw) for raw in self._values("host", keys)]

    async def sites(self, names: Sequence[tuple[Partition, SiteKey]]) -> list[SiteRecord | None]:
        keys = [host_key(partition, site) for partition, site in names]
        return [None if raw is None else decode_site(raw) for raw in self._values("site", keys)]

    async def waiting_hosts(
        self, after: tuple[Partition, HostKey] | None, limit: int
    ) -> list[tuple[Partition, HostKey]]:
        # One seek per host: '\x01' sorts behind every key of the host, whose name is followed by '\x00'.
        found: list[tuple[Partition, HostKey]] = []
        cursor = b"" if after is None else host_key(*after) + b"\x01"
        rows = self._family["queue"].iter()
        while len(found) < limit:
            rows.seek(cursor)
            if not rows.valid():
                self._check(rows)
                break
            key: bytes = rows.key()
            end = key.index(b"\0", 2)
            found.append((Partition(read_u16(key)[0]), HostKey(key[2:end].decode())))
            cursor = key[:end] + b"\x01"
        return found

    async def robots(self, partition: Partition, origin: Origin) -> RobotsRecord | None:
        raw = self._family["robots"].get(host_key(partition, origin))
        return None if raw is None else decode_robots(raw)

    async def contents(self, digests: Sequence[bytes]) -> list[Content | None]:
        return [None if raw is None else decode_content(raw) for raw in self._values("content", digests)]

    async def near(self, prints: Sequence[tuple[int, int]], most: int) -> list[list[tuple[int, int, Near]]]:
        table = self._near_table()
        hits = [table.near(simhash, weak, most) for simhash, weak in prints]
        keys = [u64(simhash) for found in hits for _, simhash in found]
        rows = dict(zip(keys, self._values("near", keys), strict=True))
        # The table keeps what was removed until it is overwritten; the rows are the truth.
        return [
            [(far, simhash, decode_near(row)) for far, simhash in found if (row := rows[u64(simhash)]) is not None]
            for found in hits
        ]

    def _near_table(self) -> NearTable:
        """Filled when it is first needed: 1.5 s for a million."""
        if self._table is None:
            self._table = NearTable(self._fingerprints)
            for key in self._family["near"].keys():  # noqa: SIM118 - not a dict: an iterator over the keys alone
                assert isinstance(key, bytes)
                self._table.add(read_u64(key)[0])
        return self._table

    async def outbox(self, limit: int) -> list[Parcel]:
        rows = self._scan("outbox", b"", b"\xff" * 11, limit)
        return [Parcel(Partition(read_u16(key)[0]), read_u64(key, 2)[0], value) for key, value in rows]

    async def mark(self, name: str) -> bytes | None:
        return self.read_mark(name)

    # -- writing -----------------------------------------------------------------------------------------------

    async def commit(self, changes: Changes) -> None:
        batch = WriteBatch(raw_mode=True)
        handle = self._handle
        put, delete = batch.put, batch.delete
        for url, record in changes.records.items():
            put(url, encode(record), handle["url"])
        for partition, host, bucket, seq, url in changes.queued:
            put(queue_key(partition, host, bucket, seq), url, handle["queue"])
        for partition, host, bucket, seq in changes.unqueued:
            delete(queue_key(partition, host, bucket, seq), handle["queue"])
        gone = changes.undue, changes.unrevisit, changes.unrender
        come = changes.due, changes.revisit, changes.render
        for family, removed in zip(DATED, gone, strict=True):
            for when, url in removed:
                delete(due_key(when, url), handle[family])
        for family, entries in zip(DATED, come, strict=True):
            for when, url in entries:
                key = due_key(when, url)
                put(key, b"", handle[family])
                self._schedule_entry(family, key)
        for site, (partition, site_record) in changes.sites.items():
            put(host_key(partition, site), encode(site_record), handle["site"])
        for host, (partition, host_record) in changes.hosts.items():
            put(host_key(partition, host), encode(host_record), handle["host"])
        for origin, (partition, robots) in changes.robots.items():
            put(host_key(partition, origin), encode(robots), handle["robots"])
        for digest, content in changes.contents.items():
            put(digest, encode(content), handle["content"])
        for simhash, near in changes.near.items():
            if near is None:
                delete(u64(simhash), handle["near"])
                continue
            put(u64(simhash), encode(near), handle["near"])
            replaced = self._near_table().add(simhash)
            if replaced is not None:
                delete(u64(replaced), handle["near"])
        for partition, seq in changes.delivered:
            delete(u16(partition) + u64(seq), handle["outbox"])
        for parcel in changes.outbox:
            put(u16(parcel.partition) + u64(parcel.seq), parcel.body, handle["outbox"])
        for name, value in changes.marks.items():
            put(name.encode(), value, handle["mark"])
        if changes.new:
            self._commits += 1
            put(u64(self._commits), b"".join(changes.new), handle["fresh"])
        self._db.write(batch)

    async def sync(self) -> None:
        await asyncio.to_thread(self._db.flush_wal, True)

    async def close(self) -> None:
        self.shut()

    def shut(self) -> None:
        for family in self._family.values():
            family.close()
        # A handle keeps the database open, and locked: it could not be opened again in this process.
        self._family, self._handle = {}, {}
        self._db.close()

    # -- the seen-filter's sources -----------------------------------------------------------------------------

    async def fresh(self) -> list[UrlId]:
        rows = self._scan("fresh", b"", b"\xff" * 9, None)
        return [UrlId(value[i : i + 18]) for _, value in rows for i in range(0, len(value), 18)]

    def last_fresh(self) -> int:
        return self._commits

    async def forget_fresh(self, until: int) -> None:
        batch = WriteBatch(raw_mode=True)
        batch.delete_range(u64(0), u64(until + 1), self._handle["fresh"])
        self._db.write(batch)

    async def ids(self) -> AsyncIterator[list[UrlId]]:
        batch: list[UrlId] = []
        for key in self._family["url"].keys():  # noqa: SIM118 - not a dict: an iterator over the keys alone
            assert isinstance(key, bytes)
            batch.append(UrlId(key))
            if len(batch) == 10_000:
                yield batch
                batch = []
        yield batch

    # -- moving partitions -------------------------------------------------------------------------------------

    def copy_partition(self, source: RocksState, partition: Partition) -> None:
        """Take over every row of a partition from another database; what is here of it is older and goes."""
        self._heads.clear()
        for family in PARTITIONED[:-1]:
            batch = WriteBatch(raw_mode=True)
            batch.delete_range(u16(partition), u16(partition + 1), self._handle[family])
            for key, value in source._scan(family, u16(partition), u16(partition + 1), None):
                batch.put(key, value, self._handle[family])
                if len(batch) >= 10_000:
                    self._db.write(batch)
                    batch = WriteBatch(raw_mode=True)
            self._db.write(batch)
        self._db.flush_wal(True)

    def absorb(self, source: RocksState, contents: bool = True) -> None:
        """Take over what belongs to no partition of its own: parcels not yet delivered, known contents if wanted."""
        batch = WriteBatch(raw_mode=True)
        for key, value in source._scan("outbox", b"", b"\xff" * 11, None):
            while self._family["outbox"].get(key) not in (None, value):
                key = key[:2] + u64(read_u64(key, 2)[0] + 1)  # two senders, one number
            batch.put(key, value, self._handle["outbox"])
        for key, value in source._scan("content", b"", b"\xff" * 33, None) if contents else ():
            batch.put(key, value, self._handle["content"])
        for key, value in source._scan("near", b"", b"\xff" * 9, None) if contents else ():
            batch.put(key, value, self._handle["near"])
        self._table = None
        self._db.write(batch)
        self._db.flush_wal(True)

    def drop_foreign(self, owns: Callable[[Partition], bool]) -> None:
        """Remove what is left of partitions that moved away; the outbox stays, it is about others by nature."""
        self._heads.clear()
        batch = WriteBatch(raw_mode=True)
        for family in PARTITIONED[:-1]:
            for partition in self._partitions_with(family):
                if not owns(partition):
                    batch.delete_range(u16(partition), u16(partition + 1), self._handle[family])
        self._db.write(batch)

    def strays(self, place: Callable[[HostKey], Partition]) -> Iterator[tuple[Partition, Row]]:
        """Every row that is not in the partition of its host, with the one that it belongs in.

        Through the URL records the schedules know their hosts: so these records come last, and may be removed as told.
        """
        for family in (*WAITING, "host", "site", "robots", "url"):
            rows = self.waiting_rows(family)
            while batch := list(islice(rows, 10_000)):
                for row, host in zip(batch, self._hosts_of(family, batch), strict=True):
                    if host is not None and (partition := place(host)) != read_u16(row[1])[0]:
                        yield partition, row

    def _hosts_of(self, family: str, rows: Sequence[Row]) -> list[HostKey | None]:
        """None for an entry of a schedule whose URL is not known."""
        match family:
            case "url":
                return [host_of(decode_url(value).url) for _, _, value in rows]
            case "due" | "revisit" | "render":
                found = self._values("url", [id_in(row) for row in rows])
                return [None if raw is None else host_of(decode_url(raw).url) for raw in found]
            case "robots":
                return [host_of(f"{key[2:].decode()}/") for _, key, _ in rows]
        return [HostKey(key[2:].partition(b"\0")[0].decode()) for _, key, _ in rows]

    def put_mark(self, name: str, value: bytes) -> None:
        batch = WriteBatch(raw_mode=True)
        batch.put(name.encode(), value, self._handle["mark"])
        self._db.write(batch)
        self._db.flush_wal(True)

    def read_mark(self, name: str) -> bytes | None:
        value: bytes | None = self._family["mark"].get(name.encode())
        return value

    # -- for those who look (status, why, export) --------------------------------------------------------------

    def tally(self) -> Tally:
        raw = self._family["mark"].get(b"tally")
        return Tally() if raw is None else msgspec.msgpack.decode(raw, type=Tally)

    def url_records(self) -> Iterator[UrlRecord]:
        for _, value in self._scan("url", b"", END, None):
            yield decode_url(value)

    # -- mending (harvestman repair, dead, traps, hosts): no worker has it open --------------------------------

    def url_rows(self) -> Iterator[tuple[UrlId, UrlRecord]]:
        for key, value in self._scan("url", b"", END, None):
            yield UrlId(key), decode_url(value)

    def host_rows(self) -> Iterator[tuple[Partition, HostRecord]]:
        for key, value in self._scan("host", b"", END, None):
            yield Partition(read_u16(key)[0]), decode_host(value)

    def site_rows(self) -> Iterator[tuple[Partition, SiteRecord]]:
        for key, value in self._scan("site", b"", END, None):
            yield Partition(read_u16(key)[0]), decode_site(value)

    def waiting_rows(self, family: str) -> Iterator[Row]:
        """Every entry of a family, those of WAITING above all."""
        for key, value in self._scan(family, b"", END, None):
            yield family, key, value

    def holding(self, rows: Sequence[Row]) -> list[bool]:
        """Which of these rows are here, values and all."""
        keys = {family: [key for name, key, _ in rows if name == family] for family in WAITING}
        found = {
            (family, key): value
            for family in WAITING
            for key, value in zip(keys[family], self._values(family, keys[family]), strict=True)
        }
        return [found[family, key] == value for family, key, value in rows]

    def write_rows(self, put: Sequence[Row], delete: Sequence[Row] = ()) -> None:
        """In one atomic commit."""
        self._heads.clear()
        batch = WriteBatch(raw_mode=True)
        for family, key, value in put:
            batch.put(key, value, self._handle[family])
        for family, key, _ in delete:
            batch.delete(key, self._handle[family])
        self._db.write(batch)

    def flush(self) -> None:
        """`sync`, for those who need not wait in a loop."""
        self._db.flush_wal(True)

    def compact(self) -> None:
        """Make every file anew: what was deleted or overwritten is in none of them afterwards, nor in the log."""
        for family in self._family.values():
            family.flush()
        every = CompactOptions()
        every.set_bottommost_level_compaction(BottommostLevelCompaction.force())
        for family in self._family.values():
            family.compact_range(None, None, every)
        self._db.flush_wal(True)

    def rows(self) -> Iterator[Row]:
        """All there is."""
        for family, held in self._family.items():
            for key, value in held.items():
                assert isinstance(key, bytes)
                yield family, key, value

    def renew(self, family: str) -> None:
        """An empty family in place of one that cannot be read: its files are given up, whatever is in them."""
        self._heads.clear()
        self._table = None
        self._handle.pop(family)
        self._family.pop(family).close()
        self._db.drop_column_family(family)
        self._family[family] = self._db.create_column_family(family, self._options())
        self._handle[family] = self._db.get_column_family_handle(family)

    def _values(self, family: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """What lies under each key, in one call."""
        try:
            found: list[bytes | None] | None = self._family[family].get([*keys]) if keys else []
        except Exception as error:  # rocksdict raises bare Exceptions, with RocksDB's words in them
            raise explained(self._directory, str(error)) from error
        return found or []

    def _scan(self, family: str, start: bytes, end: bytes, limit: int | None) -> Iterator[tuple[bytes, bytes]]:
        if family not in self._family:
            return  # a view of a database that is older than the family
        bound = ReadOptions()
        bound.set_iterate_upper_bound(end)
        rows = self._family[family].iter(bound)
        rows.seek(start)
        while rows.valid() and (limit is None or limit > 0):
            yield rows.key(), rows.value()
            rows.next()
            limit = None if limit is None else limit - 1
        self._check(rows)

    def _check(self, rows: RdictIter) -> None:
        """At the end of rows: a block that cannot be read looks like their end."""
        try:
            rows.status()
        except Exception as error:  # as above
            raise explained(self._directory, str(error)) from error

    def _partitions_with(self, family: str) -> list[Partition]:
        found: list[Partition] = []
        if family not in self._family:
            return found
        rows = self._family[family].iter()
        rows.seek(b"")
        while rows.valid():
            partition = read_u16(rows.key())[0]
            found.append(Partition(partition))
            rows.seek(u16(partition + 1))
        self._check(rows)
        return found

    def _last_fresh(self) -> int:
        rows = self._family["fresh"].iter()
        rows.seek_to_last()
        return int(read_u64(rows.key())[0]) if rows.valid() else 0
