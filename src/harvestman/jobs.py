"""The jobs of a crawl: what was asked for, kept in files that are complete as soon as they are visible.

jobs/0001.json    the `Job`, written last: a job that can be seen has its seeds
jobs/0001.seeds   its seeds in request form, one a line; it only ever grows at its end, so a place in it stays good
jobs/0001.sites   the registrable domains of the seeds, one a line, when the scope is `site`: they take far longer to
                  work out than to read
jobs/lock         held for the moment of a change

The directory is the inbox of a running crawl, too: its supervisor looks here for what is new. So nothing that was
accepted can be lost, whoever is killed when.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from harvestman.errors import StateError, UsageError
from harvestman.layout import Layout, scope_of
from harvestman.model import Job, Seconds
from harvestman.policy.scope import Scope
from harvestman.policy.sites import site_of
from harvestman.policy.urls import host_of

SCOPES = ("site", "host", "path", "all")
PORTION = 16 << 10
"""Bytes of seeds a worker takes in at a time: some hundred URLs, so that the crawl beside it hardly waits."""


class Terms(msgspec.Struct, frozen=True):
    """What is asked of a job; None where nothing is said."""

    name: str | None = None
    priority: str | None = None
    max_depth: int | None = None
    scope: str | None = None
    """As --scope has it: a mode, or @FILE."""
    ttl: Seconds | None = None

    def over(self, job: Job) -> Job:
        """The job, with what is asked for in place of what it had. Raises UsageError for what makes no sense."""
        names = ("name", "priority", "max_depth", "ttl")
        said = {name: value for name in names if (value := getattr(self, name)) is not None}
        if self.scope is not None:
            said["scope"], lines = scope_of(_known(self.scope))
            said["patterns"] = tuple(lines)
        wanted = msgspec.structs.replace(job, **said)
        if wanted.max_depth < 0:
            raise UsageError("--max-depth must not be negative")
        Scope.build(wanted.scope, (), wanted.patterns)  # says what is wrong with the patterns
        return wanted


def _known(scope: str) -> str:
    if scope not in SCOPES and not scope.startswith("@"):
        raise UsageError(f"no such scope: {scope!r}; choose site, host, path, all, or @FILE for a file of patterns")
    return scope


class Jobs:
    """The jobs of one crawl, read from disk and remembered. Whoever changes them holds the lock; reading needs none."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._known: dict[int, Job] = {}
        self._scopes: dict[int, tuple[int, Scope]] = {}
        """With the size of the seeds it was built from."""
        self.reload()

    # -- reading -----------------------------------------------------------------------------------------------

    def reload(self) -> None:
        """Look for new jobs on disk, and for new seeds of the known ones."""
        for number in self._layout.job_ids():
            if number not in self._known:
                self._known[number] = self._read(number)
        self._scopes = {number: built for number, built in self._scopes.items() if built[0] == self.size(number)}

    def all(self) -> list[Job]:
        """In the order they came."""
        return [self._known[number] for number in sorted(self._known)]

    def get(self, number: int) -> Job:
        """Raises StateError when there is none, not even on disk."""
        job = self._known.get(number)
        if job is None:
            self.reload()
            job = self._known.get(number)
        if job is None:
            raise StateError(f"{self._layout.data} has no job {number}")
        return job

    def scope(self, number: int) -> Scope:
        """Which URLs belong to a job: its mode is fixed, its seeds may have grown by the last `reload`."""
        built = self._scopes.get(number)
        if built is None:
            job = self.get(number)
            built = self._scopes[number] = self.size(number), self._build(job)
        return built[1]

    def _build(self, job: Job) -> Scope:
        if job.scope == "site":
            return Scope("site", frozenset(_lines(self._file(job.id, "sites"), 0)))
        return Scope.build(job.scope, self.seeds(job.id), job.patterns)

    def size(self, number: int) -> int:
        """Bytes of seeds."""
        try:
            return self._file(number, "seeds").stat().st_size
        except FileNotFoundError:
            return 0

    def count(self, number: int) -> int:
        """How many seeds a job has."""
        with self._file(number, "seeds").open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))

    def seeds(self, number: int, start: int = 0) -> Iterator[str]:
        """The seeds of a job from a byte on, as a stream: there may be millions."""
        return _lines(self._file(number, "seeds"), start)

    def portion(self, number: int, start: int, until: int) -> tuple[list[str], int]:
        """Some of the seeds between two places, and the place behind them."""
        with self._file(number, "seeds").open("rb") as file:
            file.seek(start)
            lines = file.readlines(min(PORTION, until - start))
        return [line[:-1].decode() for line in lines], start + sum(map(len, lines))

    def _file(self, number: int, kind: str) -> Path:
        return self._layout.jobs / f"{number:04d}.{kind}"

    def _read(self, number: int) -> Job:
        path = self._file(number, "json")
        try:
            return msgspec.json.decode(path.read_bytes(), type=Job)
        except (OSError, msgspec.MsgspecError) as error:
            raise StateError(f"{path} cannot be read: {error}") from None

    # -- writing -----------------------------------------------------------------------------------------------

    def add(self, job: Job, seeds: Iterable[str]) -> Job:
        """Write a job down under the next free number. When this returns, nothing can lose it."""
        urls = list(dict.fromkeys(seeds))
        with self._changing():
            number = max(self._layout.job_ids(), default=0) + 1
            job = msgspec.structs.replace(job, id=number, name=job.name or host_of(urls[0]))
            if job.scope == "site":
                _put(self._file(number, "sites"), _sites(urls))
            _put(self._file(number, "seeds"), urls)
            _put(self._file(number, "json"), [msgspec.json.format(msgspec.json.encode(job), indent=2).decode()])
        self._known[number] = job
        return job

    def grow(self, number: int, seeds: Iterable[str]) -> int:
        """Add seeds to a job; returns how many were new to it."""
        job = self.get(number)
        with self._changing():
            new = dict.fromkeys(seeds)
            for known in self.seeds(number):
                new.pop(known, None)
            if not new:
                return 0
            if job.scope == "site":
                # First: a seed whose site is out of scope would lead nowhere.
                _put(self._file(number, "sites"), _sites(new), keep=True)
            _put(self._file(number, "seeds"), new, keep=True)
        self.reload()
        return len(new)

    def take_up(self, seeds: list[str], terms: Terms, first: Job) -> Job:
        """Seeds for a crawl: the first job's if they ask for nothing else than it did, else a job of their own.

        `first` is what the first job is made from when there is none yet; its `created` is that of any new one.
        """
        known = self.all()[:1]
        wanted = terms.over(known[0] if known else first)
        if known and wanted == known[0]:
            self.grow(wanted.id, seeds)
            return wanted
        return self.add(msgspec.structs.replace(wanted, name=terms.name or "", created=first.created), seeds)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """One change at a time; the lock falls with the process that holds it."""
        self._layout.jobs.mkdir(parents=True, exist_ok=True)
        lock = os.open(self._layout.jobs / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def _lines(path: Path, start: int) -> Iterator[str]:
    try:
        with path.open("rb") as file:
            file.seek(start)
            for line in file:
                yield line[:-1].decode()
    except FileNotFoundError:
        return


def _sites(urls: Iterable[str]) -> Iterator[str]:
    last = ""
    for url in urls:
        site = site_of(host_of(url))
        if site != last:  # lists often go site by site; the rest is sorted out when they are read
            yield site
        last = site


def _put(path: Path, lines: Iterable[str], keep: bool = False) -> None:
    """Write a file whole, behind what it has if that is to be kept: on disk before it can be seen."""
    part = path.with_name(f"{path.name}.part")
    if keep and path.exists():
        shutil.copyfile(path, part)
    with part.open("ab" if keep and path.exists() else "wb") as file:
        file.writelines(f"{line}\n".encode() for line in lines)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
