"""What a crawl has stored, as far as it is committed: each worker's raw records, with the pages that were made of them.

A worker writes records and pages in the same order, so two files read side by side find each page's record without an
index. What lies beyond the committed positions is left alone: a crash may take it back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from harvestman.layout import Layout
from harvestman.model import RESOURCE, Page, RecordRef, Response
from harvestman.policy.urls import path_of
from harvestman.store.files import serial_of, warc_files
from harvestman.store.frames import frames
from harvestman.store.members import Member, members
from harvestman.store.pages import SUFFIX
from harvestman.store.records import DIGEST, KIND, instant, parse_record, response_of
from harvestman.views import View

LOOK_AHEAD = 512
"""Pages among which that of a record is looked for. Records and pages are in step, so the first is the one, unless raw
files were removed."""
LONGEST_FETCH = 3600.0
"""Seconds between the date of a record and that of its page, at most."""
ROUNDING = 0.001
_NEVER = ("", 0)


class Part(NamedTuple):
    """A file, and how much of it counts."""

    path: Path
    length: int

    @property
    def serial(self) -> int:
        if self.path.name.endswith(SUFFIX):
            return int(self.path.stem.rpartition("-")[2])
        return serial_of(self.path)


class Files(NamedTuple):
    """The files one worker wrote into one directory."""

    name: str
    """'w00'; with its directory before it where a region keeps its content apart: 'eu/w01_eu'."""
    warcs: list[Part]
    logs: list[Part]


class Place(msgspec.Struct, frozen=True):
    """How far a reader came in the files of one worker."""

    told: int = 0
    """Records and pages behind it: a number that only grows."""
    warc: int = 0
    offset: int = 0
    log: int = 0
    frame: int = 0
    inside: int = 0
    """Pages of the frame that are behind it."""
    checksum: int = 0
    """Of the frame."""


class Stored(NamedTuple):
    """A raw record, a page, or (as a rule, where there is a page) both."""

    place: Place
    """Behind it."""
    page: Page | None
    ref: RecordRef | None
    fields: Mapping[str, str]
    """Of the record's head, names in lower case."""
    response: Response | None


# -- which files, and how much of them -------------------------------------------------------------------------------


def committed(view: View) -> list[Files]:
    """The files of all workers, those of workers that are no more included."""
    found: list[Files] = []
    for content in view.facts.contents:
        raw, log = view.layout.warc_of(content), view.layout.pages_of(content)
        names = {path.name.partition("-")[0] for path in (*raw.glob("*.warc.gz"), *log.glob(f"*{SUFFIX}"))}
        for name in sorted(names):
            logs = sorted(log.glob(f"{name}-*{SUFFIX}"))
            found.append(
                Files(
                    f"{content}/{name}" if content else name,
                    _parts(warc_files(raw, name), _position(view, "warc", name)),
                    _parts(logs, _position(view, "pages", name)),
                )
            )
    return found


def everything(layout: Layout) -> list[Part]:
    """Every file of every page log, whole: for those who need not come back to the same place."""
    return [
        Part(path, path.stat().st_size)
        for directory in layout.page_logs()
        for path in sorted(directory.glob(f"*{SUFFIX}"))
    ]


def stamp(layout: Layout) -> str:
    """Differs from the last one when something was committed since."""
    seen = sha256()
    for index in layout.workers():
        for path in sorted(layout.state(index).glob("*")):
            if path.suffix in (".sst", ".log") or path.name.startswith("MANIFEST"):
                with suppress(FileNotFoundError):  # a running crawl tidies up behind itself
                    seen.update(f"{index} {path.name} {path.stat().st_size}\n".encode())
    return seen.hexdigest()[:16]


def _position(view: View, kind: str, name: str) -> tuple[str, int]:
    """The last file that a worker's commits name, and its length then; no file when it never committed."""
    best = _NEVER
    for _, state in view.workers():
        for mark in (kind, f"{kind}:{name}"):
            raw = state.read_mark(mark)
            place = msgspec.msgpack.decode(raw, type=tuple[str, int]) if raw else _NEVER
            if place[0].startswith(f"{name}-") and (_number(place[0]), place[1]) > (_number(best[0]), best[1]):
                best = place
    return best


def _number(name: str) -> int:
    return Part(Path(name), 0).serial if name else -1


def _parts(paths: list[Path], position: tuple[str, int]) -> list[Part]:
    last = _number(position[0])
    found = []
    for path in paths:
        serial, size = Part(path, 0).serial, path.stat().st_size
        if serial <= last:
            found.append(Part(path, min(size, position[1]) if path.name == position[0] else size))
    return found


# -- records and pages, side by side ---------------------------------------------------------------------------------


class _Logged(NamedTuple):
    """A page and its place in the log."""

    page: Page
    log: int
    frame: int
    inside: int
    """Its number in the frame, from 1."""
    checksum: int


def walk(files: Files, place: Place) -> Iterator[Stored]:
    """Everything behind a place: every response, revisit and rendered page as written, with its page if it is one.

    A page whose record is gone comes by itself. robots.txt files and what scripts asked for are left out.
    """
    ahead: deque[_Logged] = deque()
    coming = _logged(files.logs, place)
    for file, member in _raw(files.warcs, place):
        fields, block = parse_record(member.data)
        if fields.get("warc-type") not in ("response", "revisit", "conversion") or _is_none(fields):
            continue
        end = member.offset + member.length
        while len(ahead) < LOOK_AHEAD and (logged := next(coming, None)) is not None:
            ahead.append(logged)
        for orphan in _before(fields, ahead):
            place = _passed(place, orphan)
            yield _alone(place, orphan)
        mine = _matches(fields, ahead[0].page) if ahead else False
        place = msgspec.structs.replace(place, told=place.told + 1, warc=file.serial, offset=end)
        page = None
        if mine:
            logged = ahead.popleft()
            place, page = _passed(place, logged, told=0), logged.page
        ref = RecordRef(file.path.name, member.offset, member.length)
        yield Stored(place, page, ref, fields, response_of(fields, block))
    for logged in (*ahead, *coming):
        place = _passed(place, logged)
        yield _alone(place, logged)


def _alone(place: Place, logged: _Logged) -> Stored:
    return Stored(place, logged.page, None, {}, None)


def digest_of(fields: Mapping[str, str]) -> str:
    """The digest of the decoded body, by which a page is known."""
    return (fields.get(DIGEST.lower()) or fields.get("warc-payload-digest", "")).removeprefix("sha256:")


def _passed(place: Place, logged: _Logged, told: int = 1) -> Place:
    _, log, frame, inside, checksum = logged
    return Place(place.told + told, place.warc, place.offset, log, frame, inside, checksum)


def _before(fields: Mapping[str, str], ahead: deque[_Logged]) -> list[_Logged]:
    """The pages before that of a record, taken out: their own records are gone. None when it has no page."""
    for number, logged in enumerate(ahead):
        if _matches(fields, logged.page):
            return [ahead.popleft() for _ in range(number)]
    return []


def _matches(fields: Mapping[str, str], page: Page) -> bool:
    # What a browser showed has one date. After a crash it may be in the file twice, and only the second time count.
    longest = ROUNDING if page.rendered else LONGEST_FETCH
    return (
        fields["warc-target-uri"] == page.url
        and digest_of(fields) == page.digest
        and page.rendered == (fields["warc-type"] == "conversion")
        # A page is complete after it was asked for, but for the rounding of the record's date.
        and -ROUNDING <= page.fetched_at - instant(fields["warc-date"]) <= longest
    )


def _logged(logs: list[Part], place: Place) -> Iterator[_Logged]:
    for part in logs:
        if part.serial < place.log:
            continue
        here = part.serial == place.log and _still_there(part, place)
        for frame in frames(part.path, place.frame if here else 0, part.length):
            passed = place.inside if here and frame.start == place.frame else 0
            for number, page in enumerate(frame.pages()[passed:], passed + 1):
                yield _Logged(page, part.serial, frame.start, number, frame.checksum)


def _still_there(part: Part, place: Place) -> bool:
    """Whether the frame is what it was. A power cut may have taken it back: then all of the file may be news."""
    frame = next(frames(part.path, place.frame, part.length), None)
    return frame is not None and frame.checksum == place.checksum


def _raw(warcs: list[Part], place: Place) -> Iterator[tuple[Part, Member]]:
    for part in warcs:
        start = place.offset if part.serial == place.warc else 0
        if part.serial < place.warc or start >= part.length:
            continue
        for member in members(part.path, start):
            yield part, member
            # What follows is not committed: a worker that starts again may be cutting it off just now.
            if member.offset + member.length >= part.length:
                break


def _is_none(fields: Mapping[str, str]) -> bool:
    """No page: a robots.txt, or a resource. What its URL is by now in State does not matter: it may be a page, too."""
    return fields.get(KIND.lower()) == RESOURCE or path_of(fields.get("warc-target-uri", "")) == "/robots.txt"
