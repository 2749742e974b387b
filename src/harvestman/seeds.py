"""Seed files: plain lines, ranked CSV, JSONL or a sitemap, recognised by their content; any of them may be gzipped.

In plain lines and CSV '#' after white space begins a comment, and a header that names a url, domain or host column
says which column is read. A line that is no seed is reported with its number and the rest goes on. Files are read as a
stream, so a list of a million sites costs the memory of its URLs and no more.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from typing import Final, Literal, Protocol, cast

import msgspec

from harvestman.errors import UrlError, UsageError
from harvestman.pages.feed import Reader, root_of
from harvestman.pages.sitemap import texts
from harvestman.policy.urls import from_seed

BARE_KEPT: Final = 10
"""They are only told of when nothing could be fetched, and then the first few."""
TOLD_EVERY: Final = 10_000
"""Lines, a tenth of a second."""
LONGEST_LINE: Final = 65_536
_CHUNK: Final = 65_536
_MARK = b"\xef\xbb\xbf"
_RANKED = re.compile(r'"?\d+"?\s*[,;\t]\s*(.+)')
_TITLE = re.compile(r'["\w -]+')
"""Column titles are words without a dot or a slash, as in 'rank,domain'."""
_COMMENT = re.compile(r"(?:^|\s)#.*")
_NAMES = ("url", "uri", "link", "page", "domain", "host", "hostname", "site", "website")
"""Titles of a column of seeds, the most telling first."""


class Problem(msgspec.Struct, frozen=True):
    """A place in a seed file that is no seed, and why."""

    line: int
    text: str
    reason: str


class Seeds(msgspec.Struct):
    """What a seed file holds: request forms, each once, in the order of the file."""

    urls: list[str]
    problems: list[Problem]
    bare: frozenset[str] = frozenset()
    """Those of the first BARE_KEPT that came without a scheme, so that https was assumed."""


class _Seed(msgspec.Struct, frozen=True):
    url: str
    bare: bool


class _Line(msgspec.Struct):
    url: str


_decode_line = msgspec.json.Decoder(_Line).decode


def read_seeds(path: Path | Literal["-"], tell: Callable[[int], None] = lambda count: None) -> Seeds:
    """Read a seed file ('-' is standard input). Raises UsageError when it cannot be read or holds no seed at all.

    `tell` is called again and again with the number of seeds found so far: a long list takes minutes.
    """
    found: dict[str, None] = {}
    problems: list[Problem] = []
    bare: set[str] = set()
    try:
        with _opened(path) as file:
            for number, item in enumerate(_items(file), 1):
                if not number % TOLD_EVERY:
                    tell(len(found))
                if isinstance(item, Problem):
                    problems.append(item)
                    continue
                found[item.url] = None
                if item.bare and len(found) <= BARE_KEPT:
                    bare.add(item.url)
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"seed file {path}: {error.strerror if isinstance(error, OSError) else error}") from None
    if not found:
        raise UsageError(f"seed file {path}: {_nothing(problems)}")
    return Seeds(list(found), problems, frozenset(bare))


def _nothing(problems: list[Problem]) -> str:
    if not problems:
        return "holds no seed: write one URL a line"
    first = problems[0]
    return f"holds no usable seed; line {first.line}: {first.reason}"


class Stream(Protocol):
    """Bytes that can be looked at before they are read."""

    def peek(self, size: int, /) -> bytes: ...
    def read(self, size: int, /) -> bytes: ...
    def readline(self, size: int, /) -> bytes: ...


@contextmanager
def _opened(path: Path | Literal["-"]) -> Iterator[Stream]:
    """The bytes of the file, unpacked when it is gzip."""
    with nullcontext(cast(io.BufferedReader, sys.stdin.buffer)) if path == "-" else path.open("rb") as file:
        if file.peek(2)[:2] == b"\x1f\x8b":
            with gzip.open(file) as unpacked:
                yield unpacked
        else:
            yield file


def _items(file: Stream) -> Iterator[_Seed | Problem]:
    start = file.peek(_CHUNK)[:_CHUNK].removeprefix(_MARK).lstrip()
    # A sitemap in UTF-16 begins with a byte order mark of its own.
    if start.startswith((b"<", b"\xff\xfe", b"\xfe\xff")):
        yield from _sitemap(file)
    else:
        yield from _lines(file)


# -- lines -----------------------------------------------------------------------------------------------------------


def _lines(file: Stream) -> Iterator[_Seed | Problem]:
    number = 0
    columns = _Columns()
    while raw := file.readline(LONGEST_LINE):
        number += 1
        if len(raw) == LONGEST_LINE and not raw.endswith(b"\n"):
            _skip_rest(file)
            yield Problem(number, _shown(raw), f"longer than {LONGEST_LINE:,} bytes")
            continue
        item = _line(raw.removeprefix(_MARK) if number == 1 else raw, number, columns)
        if item is not None:
            yield item


def _skip_rest(file: Stream) -> None:
    while (more := file.readline(LONGEST_LINE)) and not more.endswith(b"\n"):
        pass


class _Columns:
    """Which column of a table holds the seeds, as its first line says."""

    def __init__(self) -> None:
        self._begun = False
        self._delimiter = ","
        self._column: int | None = None

    def is_header(self, text: str) -> bool:
        """Whether this is the line of column titles; only the first line can be."""
        if self._begun:
            return False
        self._begun = True
        self._delimiter = max(",;\t", key=text.count)
        titles = [title.strip(' "').lower() for title in text.split(self._delimiter)]
        self._column = next((titles.index(name) for name in _NAMES if name in titles), None)
        titled = all(_TITLE.fullmatch(title) for title in titles)
        if not titled:
            self._column = None
        return titled and (len(titles) > 1 or self._column is not None)

    def pick(self, text: str) -> str | None:
        """The seed of a row; None when no header has named a column. Raises UrlError for a row without it."""
        if self._column is None:
            return None
        fields = next(csv.reader([text], delimiter=self._delimiter, skipinitialspace=True))
        if self._column >= len(fields) or not fields[self._column].strip():
            raise UrlError(f"nothing in column {self._column + 1}, where the header says the seeds are: {text[:80]!r}")
        return fields[self._column].strip()


def _line(raw: bytes, number: int, columns: _Columns) -> _Seed | Problem | None:
    """The seed on a line; None for a comment, a blank or a line of column titles."""
    try:
        text = raw.decode().strip()
        if text.startswith("{"):
            return _seed(_decode_line(text).url)
        text = _COMMENT.sub("", text).strip()
        if not text or columns.is_header(text):
            return None
        return _seed(_unbroken(columns.pick(text) or _written(text)))
    except UnicodeDecodeError:
        return Problem(number, _shown(raw), "not UTF-8")
    except msgspec.MsgspecError as error:
        return Problem(number, _shown(raw), f'not JSON with a "url" ({error})')
    except (UrlError, csv.Error) as error:
        return Problem(number, _shown(raw), str(error))


def _written(text: str) -> str:
    """The URL as a line without a header has it: the second column of a ranked list, or all of it."""
    ranked = _RANKED.fullmatch(text)
    return ranked[1].split(",", 1)[0].strip(' "') if ranked else text


def _unbroken(text: str) -> str:
    if len(text.split()) > 1:
        raise UrlError(f"not a URL, there is white space in it: {text[:80]!r}; write one URL a line")
    return text


def _seed(text: str) -> _Seed:
    url = from_seed(text)
    if "," in url.split("/", 3)[2]:
        raise UrlError(f"a host name has no comma: {text[:80]!r}; a ranked list is written 'RANK,HOST'")
    return _Seed(url, "://" not in text)


def _shown(raw: bytes) -> str:
    return raw[:200].decode("utf-8", "replace").strip()


# -- sitemaps --------------------------------------------------------------------------------------------------------


def _sitemap(file: Stream) -> Iterator[_Seed | Problem]:
    pieces = texts(iter(lambda: file.read(_CHUNK), b""), "")
    head = next(pieces, "")
    root = root_of(head)
    if root is None:
        yield Problem(1, "", "the file is XML but no sitemap: it has no <urlset> or <sitemapindex>")
        return
    kind, start = root
    reader = Reader(kind, head.count("\n", 0, start) + 1, most_tags=sys.maxsize)
    for piece in chain((head[start:],), pieces):
        reader.feed(piece)
        yield from _taken(reader, kind)
    reader.close()
    yield from _taken(reader, kind)
    if reader.fault:
        yield Problem(reader.fault_line, "", f"not well-formed XML ({reader.fault}); the rest is read as it is")
    elif reader.full:
        yield Problem(1, "", "the file is nested too deeply or has too long a tag; the rest is not read")


def _taken(reader: Reader, kind: str) -> Iterator[_Seed | Problem]:
    for href, _, alternate, line in reader.found:
        if kind == "index":
            yield Problem(line, href[:200], "a sitemap inside a sitemap index is not followed yet")
        elif not alternate:
            yield _located(href, line)
    reader.found.clear()


def _located(text: str, line: int) -> _Seed | Problem:
    try:
        return _seed(text)
    except UrlError as error:
        return Problem(line, text[:200], str(error))
