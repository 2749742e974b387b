"""The patterns of one robots.txt, arranged so that they take few bytes and the one that decides is found quickly.

The '$' at the end of a pattern is spelt NUL here, and every path gets a NUL at its end: then all patterns without a '*'
are prefixes. They lie in order. The last one that is not behind a path is the one to begin at: whatever else is a
prefix of the path is one of it too, and each knows the longest other one that it begins with, its parent. Patterns with
a '*' inside are tried one by one, the longest first.

The patterns of a long file lie in packed blocks, of which a search opens one or two. docs/robots.md has the figures,
bench/robots_cpu.py measures them.
"""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_right
from typing import Final, TypeAlias

import msgspec

Match: TypeAlias = tuple[int, int, str]
"""What decides: its weight (twice the length of the pattern, plus one if it allows), its line, and its text."""

NOTHING: Final[Match] = (0, 0, "")
END: Final = "\0"
"""Neither a line of robots.txt nor a URL can have it."""
OPEN: Final = 256
"""So many patterns lie open; more are packed."""
BLOCK: Final = 64
"""Patterns in a packed block."""

_LINE: Final = 32
_LINES: Final = (1 << _LINE) - 1
"""While patterns are gathered, a number (mark) stands for each: its line, and above that minus its weight. The smallest
wins: it is the longest, or allows, or came first."""

_STRING: Final = 64
"""Bytes that a string takes besides its characters."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[list[str], bytes, bytes, bytes, dict[int, str]]).decode


class Gathered:
    """Patterns on their way into an arrangement."""

    def __init__(self) -> None:
        self._literals: dict[str, int] = {}
        self._wildcards: dict[str, int] = {}
        self._written: dict[int, str] = {}

    def add(self, pattern: str, text: str, allows: bool, line: int) -> None:
        """A pattern as it is compared, and its text as the file has it."""
        spelt = pattern[:-1] + END if pattern[-1] == "$" else pattern.rstrip("*")
        mark = -(2 * len(pattern) + allows) << _LINE | line
        same = self._wildcards if "*" in spelt else self._literals
        if mark < same.get(spelt, 0):
            same[spelt] = mark
        if text != pattern:
            self._written[line] = text

    def literals(self) -> Literals:
        return _in_order(self._literals, self._written)

    def wildcards(self) -> Wildcards | None:
        return Wildcards(self._wildcards, self._written) if self._wildcards else None


class _Table:
    """Patterns without a '*', open."""

    __slots__ = ("_lines", "_literals", "_parents", "_weights", "_written")

    def __init__(
        self, literals: list[str], weights: array[int], lines: array[int], parents: array[int], written: dict[int, str]
    ) -> None:
        self._literals = literals
        self._weights = weights
        self._lines = lines
        self._parents = parents
        """The place of each one's parent, counted from 1; 0 for none."""
        self._written = written
        """By line, the texts that are spelt otherwise than the pattern."""

    @property
    def size(self) -> int:
        return (_STRING + 10) * len(self._literals) + sum(map(len, self._literals)) + _size_of(self._written)

    def find(self, path: str, place: int | None = None) -> Match:
        """Begin at a place, or at the last pattern that is not behind the path."""
        literals = self._literals
        if place is None:
            place = bisect_right(literals, path)
        while place:
            literal = literals[place - 1]
            if path.startswith(literal):
                weight = self._weights[place - 1]
                line = self._lines[place - 1]
                return weight, line, _text(literal, weight, line, self._written)
            place = self._parents[place - 1]
        return NOTHING

    def packed(self) -> bytes:
        numbers = (self._weights.tobytes(), self._lines.tobytes(), self._parents.tobytes())
        return zlib.compress(_encode((self._literals, *numbers, self._written)), 1)

    @classmethod
    def unpacked(cls, block: bytes) -> _Table:
        literals, weights, lines, parents, written = _decode(zlib.decompress(block))
        return cls(literals, array("I", weights), array("I", lines), array("H", parents), written)


class _Shelf:
    """Patterns without a '*', in packed blocks."""

    __slots__ = ("_blocks", "_firsts", "_outer", "size")

    def __init__(self, literals: list[str], marks: list[int], parents: list[int], written: dict[int, str]) -> None:
        starts = range(0, len(literals), BLOCK)
        self._firsts = [literals[start] for start in starts]
        self._outer = array("I", (parents[start] for start in starts))
        """The place of the parent of each block's first one. Parents before the block are this one, or its own."""
        self._blocks = [_table(literals, marks, parents, written, start, start + BLOCK).packed() for start in starts]
        self.size = 2 * _STRING * len(starts) + sum(map(len, self._firsts)) + sum(map(len, self._blocks))

    def find(self, path: str) -> Match:
        block = bisect_right(self._firsts, path) - 1
        if block < 0:
            return NOTHING
        found = _Table.unpacked(self._blocks[block]).find(path)
        while found is NOTHING and self._outer[block]:
            block, place = divmod(self._outer[block] - 1, BLOCK)
            found = _Table.unpacked(self._blocks[block]).find(path, place + 1)
        return found


Literals: TypeAlias = _Table | _Shelf


class Wildcards:
    """Patterns with a '*' inside, the heaviest first."""

    __slots__ = ("_heaviest", "_lines", "_patterns", "_probes", "_weights", "_written", "size")

    def __init__(self, marks: dict[str, int], written: dict[int, str]) -> None:
        patterns = sorted(marks, key=marks.__getitem__)
        self._weights, self._lines, self._written = _split([marks[pattern] for pattern in patterns], written)
        self._heaviest = self._weights[0]
        self._probes = [max(pattern.split("*"), key=len) for pattern in patterns]
        """The longest piece of each: a path without it is ruled out at once."""
        self._patterns = patterns
        self.size = (2 * _STRING + 8) * len(patterns) + sum(map(len, self._probes)) + sum(map(len, patterns))
        self.size += _size_of(self._written)

    def find(self, path: str, other: Match) -> Match:
        """Return the heaviest that matches, if it weighs more than the other."""
        if other[0] >= self._heaviest:
            return other
        for place, probe in enumerate(self._probes):
            if probe in path:
                weight = self._weights[place]
                if weight <= other[0]:
                    break
                pattern = self._patterns[place]
                if _matches(pattern, path):
                    line = self._lines[place]
                    return weight, line, _text(pattern, weight, line, self._written)
        return other


def _in_order(marks: dict[str, int], written: dict[int, str]) -> Literals:
    """Arrange what can win: a pattern that weighs less than its parent ('/ab' below '/a**') cannot."""
    literals: list[str] = []
    kept: list[int] = []
    parents: list[int] = []
    parent = 0
    for literal in sorted(marks):
        while parent and not literal.startswith(literals[parent - 1]):
            parent = parents[parent - 1]
        mark = marks[literal]
        if not parent or mark <= kept[parent - 1] | _LINES:
            literals.append(literal)
            kept.append(mark)
            parents.append(parent)
            parent = len(literals)
    if len(literals) > OPEN:
        return _Shelf(literals, kept, parents, written)
    return _table(literals, kept, parents, written, 0, OPEN)


def _table(
    literals: list[str], marks: list[int], parents: list[int], written: dict[int, str], start: int, end: int
) -> _Table:
    weights, lines, spelt = _split(marks[start:end], written)
    inside = array("H", [max(parent - start, 0) for parent in parents[start:end]])
    return _Table(literals[start:end], weights, lines, inside, spelt)


def _split(marks: list[int], written: dict[int, str]) -> tuple[array[int], array[int], dict[int, str]]:
    """Return their weights, their lines, and the texts of those that are spelt otherwise."""
    weights = array("I", [-(mark >> _LINE) for mark in marks])
    lines = array("I", [mark & _LINES for mark in marks])
    return weights, lines, {line: written[line] for line in lines if line in written} if written else {}


def _text(pattern: str, weight: int, line: int, written: dict[int, str]) -> str:
    """Return a pattern as the file has it."""
    if written and line in written:
        return written[line]
    if len(pattern) < weight >> 1:
        return pattern.ljust(weight >> 1, "*")
    return pattern[:-1] + "$" if pattern[-1] == END else pattern


def _matches(pattern: str, path: str) -> bool:
    """Take the leftmost place for each piece between stars: linear in the path, whatever the pattern."""
    head, *pieces = pattern.split("*")
    if not path.startswith(head):
        return False
    at = len(head)
    for piece in pieces:
        at = path.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return True


def _size_of(written: dict[int, str]) -> int:
    return sum(2 * _STRING + len(text.encode()) for text in written.values())
