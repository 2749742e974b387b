"""Links between the workers of one machine: Unix sockets, with the outbox of State behind them.

Each worker listens on `directory`/wNN and connects to every other. A frame is length(4) + msgpack: parcels one way,
acknowledgements ((partition, seq) pairs) the other way on the same connection. Whatever is not acknowledged is sent
again on the next connection; the receiver's seen-set makes that harmless.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from struct import Struct

import msgspec

from harvestman.model import Partition
from harvestman.ports import Parcel

WINDOW = 256
"""Parcels under way to one worker before its senders hold back."""
_LENGTH = Struct(">I")
_encode = msgspec.msgpack.Encoder().encode
_parcels = msgspec.msgpack.Decoder(list[Parcel]).decode
_names = msgspec.msgpack.Decoder(list[tuple[int, int]]).decode


def _frame(body: bytes) -> bytes:
    return _LENGTH.pack(len(body)) + body


async def _read(reader: asyncio.StreamReader) -> bytes:
    (length,) = _LENGTH.unpack(await reader.readexactly(4))
    return await reader.readexactly(length)


class Peer:
    """The way to one other worker: connects, sends, reads acknowledgements, and starts again when it breaks."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: asyncio.StreamWriter | None = None
        self.under_way: dict[tuple[Partition, int], Parcel] = {}
        self.delivered: list[tuple[Partition, int]] = []
        self._task = asyncio.create_task(self._live(), name=f"bus to {path.name}")

    def send(self, parcels: Sequence[Parcel]) -> None:
        fresh = [p for p in parcels if (p.partition, p.seq) not in self.under_way]
        self.under_way.update({(p.partition, p.seq): p for p in fresh})
        if fresh and self._writer is not None and not self._writer.is_closing():
            self._writer.write(_frame(_encode(fresh)))

    async def _live(self) -> None:
        while True:
            try:
                reader, self._writer = await asyncio.open_unix_connection(self._path)
                if self.under_way:
                    self._writer.write(_frame(_encode(list(self.under_way.values()))))
                while True:
                    self._take(_names(await _read(reader)))
            except (OSError, asyncio.IncompleteReadError):
                self._hang_up()
                await asyncio.sleep(0.1)

    def _hang_up(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _take(self, names: list[tuple[int, int]]) -> None:
        for partition, seq in names:
            name = (Partition(partition), seq)
            if self.under_way.pop(name, None) is not None:
                self.delivered.append(name)

    def close(self) -> None:
        self._task.cancel()
        self._hang_up()


class SocketBus:
    """`ports.Bus` between `workers` processes; this one is number `index`."""

    def __init__(self, directory: Path, workers: int, index: int, owner: Callable[[Partition], int]) -> None:
        self._directory = directory
        self._workers = workers
        self._index = index
        self._owner = owner
        self._peers: dict[int, Peer] = {}
        self._server: asyncio.Server | None = None
        self._senders: set[asyncio.StreamWriter] = set()
        self._inbox: list[tuple[Parcel, asyncio.StreamWriter]] = []
        self._received: list[tuple[Parcel, asyncio.StreamWriter]] = []

    async def open(self) -> None:
        path = self._directory / f"w{self._index:02d}"
        path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._serve, path)
        others = (index for index in range(self._workers) if index != self._index)
        self._peers = {index: Peer(self._directory / f"w{index:02d}") for index in others}

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._senders.add(writer)
        try:
            while True:
                parcels = _parcels(await _read(reader))
                self._inbox.extend((parcel, writer) for parcel in parcels)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            self._senders.discard(writer)
            writer.close()

    def room(self) -> int:
        return min((WINDOW - len(peer.under_way) for peer in self._peers.values()), default=WINDOW)

    def under_way(self) -> int:
        return sum(len(peer.under_way) for peer in self._peers.values())

    async def publish(self, parcels: Sequence[Parcel]) -> None:
        for index, peer in self._peers.items():
            mine = [parcel for parcel in parcels if self._owner(parcel.partition) == index]
            if mine:
                peer.send(mine)

    def delivered(self) -> list[tuple[Partition, int]]:
        names: list[tuple[Partition, int]] = []
        for peer in self._peers.values():
            names += peer.delivered
            peer.delivered = []
        return names

    def receive(self, limit: int) -> list[Parcel]:
        taken, self._inbox = self._inbox[:limit], self._inbox[limit:]
        self._received += taken
        return [parcel for parcel, _ in taken]

    async def acknowledge(self) -> None:
        received, self._received = self._received, []
        by_sender: dict[asyncio.StreamWriter, list[tuple[int, int]]] = {}
        for parcel, writer in received:
            by_sender.setdefault(writer, []).append((parcel.partition, parcel.seq))
        for writer, names in by_sender.items():
            if not writer.is_closing():
                writer.write(_frame(_encode(names)))

    async def close(self) -> None:
        for peer in self._peers.values():
            peer.close()
        if self._server is not None:
            self._server.close()
        for writer in self._senders:  # closing the server leaves its connections open
            writer.close()


class NoBus:
    """The bus of a crawl with one worker: every partition is its own."""

    def room(self) -> int:
        return 1

    def under_way(self) -> int:
        return 0

    async def publish(self, parcels: Sequence[Parcel]) -> None:
        raise AssertionError("a single worker owns every partition")

    def delivered(self) -> list[tuple[Partition, int]]:
        return []

    def receive(self, limit: int) -> list[Parcel]:
        return []

    async def acknowledge(self) -> None:
        return None

    async def close(self) -> None:
        return None
