"""The name server of the simulated web: A records of the plan's hosts over UDP, the wire format by hand."""

from __future__ import annotations

import contextlib
import socket
import struct

from harvestman.sim.hosts import Feature
from harvestman.sim.web import Web

_HEADER = struct.Struct(">HHHHHH")
_ANSWER = struct.Struct(">HHHIH")
_RESPONSE = 0x8480
"""A response, authoritative, recursion available."""
_A, _IN, _TTL = 1, 1, 300
_AT_ONCE = 64
NOERROR, FORMERR, SERVFAIL, NXDOMAIN = 0, 1, 2, 3


def _question(packet: bytes) -> tuple[str, int, int]:
    """Name, type and end of the first question; IndexError or struct.error when it is broken."""
    labels, at = [], 12
    while size := packet[at]:
        if size > 63:
            raise IndexError("a compressed name in a question")
        labels.append(packet[at + 1 : at + 1 + size])
        at += 1 + size
    (kind,) = struct.unpack_from(">H", packet, at + 1)
    return b".".join(labels).decode("latin-1").lower(), kind, at + 5


class Names:
    """Answers DNS questions about one web."""

    def __init__(self, web: Web, spread: bool = True) -> None:
        self._records: dict[str, bytes | int] = {}
        for host in web.hosts:
            match host.feature:
                case Feature.NXDOMAIN:
                    self._records[host.name] = NXDOMAIN
                case Feature.SERVFAIL:
                    self._records[host.name] = SERVFAIL
                case _:
                    self._records[host.name] = socket.inet_aton(host.address if spread else "127.0.0.1")

    def answer(self, packet: bytes) -> bytes | None:
        """The reply to a packet; None when it is not even a question."""
        if len(packet) < 17 or packet[2] & 0x80:
            return None
        identity, flags, *_ = _HEADER.unpack_from(packet)
        try:
            name, kind, end = _question(packet)
        except (IndexError, struct.error):
            return _HEADER.pack(identity, _RESPONSE | FORMERR, 0, 0, 0, 0)
        record = self._records.get(name, NXDOMAIN)
        code = record if isinstance(record, int) else NOERROR
        answers = [record] if isinstance(record, bytes) and kind == _A else []
        head = _HEADER.pack(identity, _RESPONSE | (flags & 0x0100) | code, 1, len(answers), 0, 0)
        records = [_ANSWER.pack(0xC00C, _A, _IN, _TTL, 4) + address for address in answers]
        return b"".join((head, packet[12:end], *records))


class NameServer:
    """Puts `Names` on a UDP port of 127.0.0.1; `ready` answers what has come in."""

    def __init__(self, names: Names, port: int) -> None:
        self._names = names
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", port))
        self.sock.setblocking(False)

    def ready(self, _: int) -> None:
        with contextlib.suppress(OSError):
            for _ in range(_AT_ONCE):
                packet, peer = self.sock.recvfrom(4096)
                reply = self._names.answer(packet)
                if reply:
                    self.sock.sendto(reply, peer)
