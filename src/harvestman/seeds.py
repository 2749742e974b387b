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
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final, Literal, Protocol, cast
from xml.parsers import expat

import msgspec

from harvestman.errors import UrlError, UsageError
from harvestman.policy.urls import from_seed

BARE_KEPT: Final = 10
"""They are only told of when nothing could be fetched, and then the first few."""
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


def read_seeds(path: Path | Literal["-"]) -> Seeds:
    """Read a seed file ('-' is standard input). Raises UsageError when it cannot be read or holds no seed at all."""
    found: dict[str, None] = {}
    problems: list[Problem] = []
    bare: set[str] = set()
    try:
        with _opened(path) as file:
            for item in _items(file):
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


class _Refused(Exception):
    """Something in the XML that we do not read on purpose."""


class _Sitemap:
    """Collects <loc> of <url> and of <sitemap>. Nothing is ever expanded or fetched: a DOCTYPE is refused."""

    def __init__(self) -> None:
        self.found: list[_Seed | Problem] = []
        self._path: list[str] = []
        self._text: list[str] = []
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.StartDoctypeDeclHandler = self._doctype

    def _doctype(self, name: str, system: str | None, public: str | None, internal: bool) -> None:
        raise _Refused(f"has a DOCTYPE ({name}), which a sitemap never needs: it is not read")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._path.append(name.rpartition(" ")[2])
        if len(self._path) == 1 and self._path[0] not in ("urlset", "sitemapindex"):
            raise _Refused(f"is XML but no sitemap: its root is <{self._path[0]}>, not <urlset> or <sitemapindex>")
        self._text.clear()

    def _characters(self, data: str) -> None:
        if self._path[-1] == "loc":
            self._text.append(data)

    def _end(self, name: str) -> None:
        place = tuple(self._path[-2:])
        self._path.pop()
        text, line = "".join(self._text).strip(), self.parser.CurrentLineNumber
        if place == ("url", "loc"):
            self.found.append(_located(text, line))
        elif place == ("sitemap", "loc"):
            self.found.append(Problem(line, text, "a sitemap inside a sitemap index is not followed yet"))
        self._text.clear()


def _located(text: str, line: int) -> _Seed | Problem:
    try:
        return _seed(text)
    except UrlError as error:
        return Problem(line, text[:200], str(error))


def _skip_blanks(file: Stream) -> None:
    """A mark and blanks before '<?xml' are common and harmless, but no parser takes them."""
    if file.peek(3)[:3] == _MARK:
        file.read(3)
    while (start := file.peek(1)[:1]) and start.isspace():
        file.read(1)


def _sitemap(file: Stream) -> Iterator[_Seed | Problem]:
    sitemap = _Sitemap()
    parser = sitemap.parser
    _skip_blanks(file)
    while True:
        data = file.read(_CHUNK)
        try:
            parser.Parse(data, not data)
        except expat.ExpatError as error:
            words = expat.ErrorString(error.code)
            sitemap.found.append(Problem(error.lineno, "", f"not well-formed XML ({words}); the rest is not read"))
            data = b""
        except _Refused as refused:
            sitemap.found.append(Problem(parser.CurrentLineNumber, "", f"the file {refused}"))
            data = b""
        yield from sitemap.found
        sitemap.found.clear()
        if not data:
            return
