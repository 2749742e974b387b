"""What a supervisor and its workers say to each other: one JSON object a line, over the worker's stdin and stdout."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from harvestman.config import Config
from harvestman.model import Tally


class Start(msgspec.Struct, tag="start"):
    """The first line a worker reads."""

    config: Config
    index: int
    sockets: str


class Seeds(msgspec.Struct, tag="seeds"):
    """Take in your share of a job's seeds, up to this byte of its file; answered with `Accepted` when it is durable."""

    job: int
    until: int


class Grant(msgspec.Struct, tag="grant"):
    """More pages may be fetched; a negative number asks for unused ones back."""

    pages: int


class Poll(msgspec.Struct, tag="poll"):
    """Answered with `Report`."""

    round: int


class Drain(msgspec.Struct, tag="drain"):
    """Ask for nothing new, finish what is in flight, end."""


class Halt(msgspec.Struct, tag="halt"):
    """End now; what is in flight stays queued."""


Command: TypeAlias = Start | Seeds | Grant | Poll | Drain | Halt


class Accepted(msgspec.Struct, tag="accepted"):
    """What `Seeds` asked for is done."""

    job: int
    until: int


class Report(msgspec.Struct, tag="report"):
    """How a worker stands."""

    round: int
    tally: Tally
    counts: dict[str, int]
    idle: bool
    unused: int
    """Granted pages not yet fetched, those under way included; -1 when there is no limit."""
    granted: int
    """Sum of the grants this process has seen."""
    next_at: float
    """When its next host may be asked; 0 when unknown."""
    cpu: float
    sending: bool
    """Links are on their way to other workers."""

    @property
    def activity(self) -> int:
        """Grows whenever anything happens: equal in two rounds means nothing happened between them."""
        return self.tally.requests + self.tally.received + self.tally.discovered


Saying: TypeAlias = Accepted | Report

encode = msgspec.json.Encoder().encode
command = msgspec.json.Decoder(Command).decode
saying = msgspec.json.Decoder(Saying).decode
