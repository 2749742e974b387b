"""The request log of the simulated web: one line per fact, fields separated by tabs, appended and never rewritten.

    #  JSON      the plan, the port and the start: once per start of the server
    O  time  connection  address                                     a connection was opened to an address
    R  arrival  end  connection  address  host  method  target  status  bytes  note
    U  connection  user-agent                                        it differs from the last one written
    C  time  connection                                              a connection was closed

Times are Unix seconds. `arrival` is when the kernel got the request, where the kernel tells, so a busy server does
not blur the gaps; `end` is just before the last byte of the answer left. Status 0 is a request that never got its
answer. `note` is empty, `retry=SECONDS` (a Retry-After was sent) or `aborted` (the client left before the end).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import TypeAlias

import msgspec

from harvestman.errors import UsageError
from harvestman.sim.plan import Plan


class Header(msgspec.Struct):
    """The first line: enough to rebuild the web that was served."""

    plan: Plan
    port: int
    started: float
    version: int = 1


@dataclass(slots=True, frozen=True)
class Opened:
    time: float
    connection: str
    address: str


@dataclass(slots=True, frozen=True)
class Closed:
    time: float
    connection: str


@dataclass(slots=True, frozen=True)
class Agent:
    connection: str
    name: str


@dataclass(slots=True, frozen=True)
class Asked:
    """One request and what became of it."""

    arrival: float
    end: float
    connection: str
    address: str
    host: str
    method: str
    target: str
    status: int
    bytes: int
    note: str = ""

    @property
    def retry_after(self) -> float:
        """The seconds its answer asked to be left alone for."""
        return float(self.note[6:]) if self.note.startswith("retry=") else 0.0

    def line(self) -> str:
        return ASKED % astuple(self)


Line: TypeAlias = Header | Opened | Closed | Agent | Asked
AskedFields: TypeAlias = tuple[float, float, str, str, str, str, str, int, int, str]
ASKED = "R\t%.6f\t%.6f\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\n"


def header_line(plan: Plan, port: int, started: float) -> str:
    fields = {"version": 1, "plan": asdict(plan), "port": port, "started": started}
    return f"#\t{msgspec.json.encode(fields).decode()}\n"


def read(path: Path) -> Iterator[Line]:
    """The facts of a log in the order written. A last line cut short (the server was killed) is left out."""
    with path.open(encoding="latin-1", newline="\n") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith("\n"):
                return
            try:
                yield parse(line)
            except (ValueError, IndexError, msgspec.MsgspecError) as error:
                raise UsageError(f"{path}:{number}: not a line of a simulated web's log: {line[:80]!r}") from error


def parse(line: str) -> Line:
    """One line; ValueError or IndexError when it is none."""
    field = line.rstrip("\n").split("\t")
    match field[0]:
        case "R":
            return Asked(
                float(field[1]), float(field[2]), field[3], field[4], field[5], field[6], field[7],
                int(field[8]), int(field[9]), field[10],
            )  # fmt: skip
        case "O":
            return Opened(float(field[1]), field[2], field[3])
        case "C":
            return Closed(float(field[1]), field[2])
        case "U":
            return Agent(field[1], field[2])
        case "#":
            return msgspec.json.decode(field[1], type=Header)
    raise ValueError(field[0])


class Writer:
    """Appends lines to a log; `flush` puts them on disk. Without a file it keeps nothing.

    A request may be given as its fields: its line is then written with many others, which is cheaper than one by one.
    """

    def __init__(self, path: Path | None) -> None:
        self._file = path.open("ab", buffering=0) if path else None
        self._lines: list[str | AskedFields] = []
        self.add = self._lines.append if path else _forget

    def flush(self) -> None:
        if self._file and self._lines:
            lines = "".join([line if isinstance(line, str) else ASKED % line for line in self._lines])
            self._lines.clear()
            self._file.write(lines.encode("latin-1"))

    def close(self) -> None:
        self.flush()
        if self._file:
            self._file.close()


def _forget(line: str | AskedFields) -> None:
    """Where lines go when there is no log."""
