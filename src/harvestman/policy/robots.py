"""What a robots.txt allows: RFC 9309, with the details on which Google's parser is the reference.

Parsing never fails: a line that cannot be understood is passed over. A `Rules` holds only what applies to our agent,
arranged so that a verdict costs a few dictionary look-ups. docs/robots.md says where we differ from others, and why.
"""

from __future__ import annotations

import enum
import re
import string
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from harvestman.model import Seconds

MAX_BODY: Final = 1024 * 1024
"""Bytes from here on, and the line they begin in, are not read, as RFC 9309 section 2.5 permits."""
MAX_LINE: Final = 2083 * 8 - 1
"""Characters of a line after this are not read: Google's bound."""

_BLANK = " \t\v\f"
_MARK = b"\xef\xbb\xbf"
_DELAY = re.compile(r"\d{1,9}(?:\.\d{0,9})?|\.\d{1,9}")
_TOKEN = re.compile(r"[A-Za-z_-]*")
_UNRESERVED = frozenset(string.ascii_letters + string.digits + "-._~")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}|[^\x00-\x7f]")


@dataclass(slots=True, frozen=True)
class Verdict:
    """Whether a path may be fetched, and the line that says so (rule '' and line 0: none does)."""

    allowed: bool
    rule: str = ""
    """The pattern as the file has it."""
    line: int = 0


_Directive = enum.Enum("_Directive", ["AGENT", "ALLOW", "DISALLOW", "DELAY", "SITEMAP", "UNKNOWN"])


_SPELLINGS: Final = (
    (_Directive.DISALLOW, ("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw")),
    (_Directive.ALLOW, ("allow",)),
    (_Directive.AGENT, ("user-agent", "useragent", "user agent")),
    (_Directive.DELAY, ("crawl-delay", "crawldelay", "crawl delay")),
    (_Directive.SITEMAP, ("sitemap", "site-map")),
)
"""Directive names with the misspellings Google accepts; what follows the name is ignored ('Disallowed:')."""

_Weighed = tuple[int, Verdict]
"""A rule that matched: twice the length of its pattern, plus one if it allows, so that the larger one wins."""


@dataclass(slots=True, frozen=True)
class _Wildcard:
    """A pattern with a '*' inside, cut at its stars."""

    weight: int
    verdict: Verdict
    probe: str
    """Its longest literal piece: a path without it is ruled out at once."""
    head: str
    middle: tuple[str, ...]
    tail: str | None
    """What the path must end with, for a pattern that ends in '$'."""

    def matches(self, path: str) -> bool:
        """Take the leftmost place for each piece: linear in the path, whatever the pattern."""
        if not path.startswith(self.head):
            return False
        at = len(self.head)
        for piece in self.middle:
            at = path.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        return self.tail is None or (len(path) - len(self.tail) >= at and path.endswith(self.tail))


class Rules:
    """The rules of one robots.txt for one agent."""

    __slots__ = ("_exact", "_lengths", "_prefixes", "_wildcards", "crawl_delay", "sitemaps")

    def __init__(
        self, rules: list[tuple[str, Verdict]], crawl_delay: Seconds | None = None, sitemaps: tuple[str, ...] = ()
    ) -> None:
        """Arrange `rules`, given as escaped patterns with the verdicts they lead to."""
        self.crawl_delay = crawl_delay
        """Seconds asked for between two requests; the group that applies to us decides, '*' only if there is none."""
        self.sitemaps = sitemaps
        """Sitemap lines in order, each once, as written: they may be relative or nonsense."""
        self._prefixes: dict[str, _Weighed] = {}
        self._exact: dict[str, _Weighed] = {}
        wildcards: dict[str, _Wildcard] = {}
        for pattern, verdict in rules:
            self._arrange(pattern, verdict, wildcards)
        self._wildcards = sorted(wildcards.values(), key=lambda wildcard: -wildcard.weight)
        self._lengths = _by_weight(self._prefixes)

    def verdict(self, path: str) -> Verdict:
        """Judge path and query of a URL: the longest matching pattern wins, Allow wins a tie, nothing means allowed."""
        if "%" in path or not path.isascii():
            path = escaped(path)
        if path == "/robots.txt":
            return _ROBOTS_TXT
        best, verdict = self._exact.get(path, _NO_RULE)
        for limit, length in self._lengths:
            if limit <= best:
                break
            weight, found = self._prefixes.get(path[:length], _NO_RULE)
            if weight > best:
                best, verdict = weight, found
        for wildcard in self._wildcards:
            if wildcard.weight <= best:
                break
            if wildcard.probe in path and wildcard.matches(path):
                return wildcard.verdict
        return verdict

    def _arrange(self, pattern: str, verdict: Verdict, wildcards: dict[str, _Wildcard]) -> None:
        weight = 2 * len(pattern) + verdict.allowed
        anchored = pattern.endswith("$")
        literal = pattern[:-1] if anchored else pattern.rstrip("*")
        if "*" not in literal:
            _keep(self._exact if anchored else self._prefixes, literal, (weight, verdict))
        elif pattern not in wildcards or wildcards[pattern].weight < weight:
            wildcards[pattern] = _cut(literal, anchored, weight, verdict)


_ROBOTS_TXT: Final = Verdict(True, "/robots.txt")
_NO_RULE: Final = (0, Verdict(True))


def parse(body: bytes, agent: str = "harvestman", limit: int = MAX_BODY) -> Rules:
    """Read the first `limit` bytes of a robots.txt as `agent` ('name', 'name/1.0') must; never raises."""
    reader = _Reader(agent)
    for number, line in enumerate(_lines(_within(body, limit)), 1):
        if ":" in line or " " in line or "\t" in line:
            reader.take(line, number)
    return reader.rules()


def escaped(text: str) -> str:
    """Spell a path or pattern as they are compared (RFC 9309 section 2.2.2).

    Octets outside ASCII become %XX, %XX of unreserved characters are decoded, the others are in upper case.
    """
    return _ESCAPE.sub(_escape, text.encode("utf-8", "surrogatepass").decode("latin-1"))


def product_token(name: str) -> str:
    """Return the part of a User-agent line that names a crawler: letters, '-' and '_' up to anything else."""
    return "".join(_TOKEN.findall(name)[:1])


class _Reader:
    """Keeps, while lines go by, what matters to one agent."""

    def __init__(self, agent: str) -> None:
        self._agent = (agent.partition("/")[0].split() or [""])[0].lower()
        self._ours = _Group()
        self._everyones = _Group()
        self._sitemaps: dict[str, None] = {}
        self._known = False
        """Some group names us, so that '*' does not apply."""

    def take(self, line: str, number: int) -> None:
        directive, value = _directive(line)
        if directive is _Directive.AGENT:
            self._name(value)
        elif directive is _Directive.SITEMAP:
            if value:
                self._sitemaps[_text(value)] = None
        elif directive is not _Directive.UNKNOWN:
            self._ours.take(directive, value, number)
            self._everyones.take(directive, value, number)

    def _name(self, value: str) -> None:
        # '*' may be followed by a comment or another name, but not by letters ('*bot').
        everyone = value[:1] == "*" and value[1:2] in ("", *_BLANK)
        ours = not everyone and product_token(value).lower() == self._agent
        self._known = self._known or ours
        self._ours.name(ours)
        self._everyones.name(everyone)

    def rules(self) -> Rules:
        group = self._ours if self._known else self._everyones
        return Rules(group.rules, group.delay, tuple(self._sitemaps))


class _Group:
    """The merged groups of one agent.

    Agent lines gather until a rule follows; the next agent line then begins a new group. Crawl-delay is not part of RFC
    9309 and must not end a group of rules, but it does end the list of agents it is itself meant for.
    """

    def __init__(self) -> None:
        self.rules: list[tuple[str, Verdict]] = []
        self.delay: Seconds | None = None
        self._open = self._closed = False
        self._open_delay = self._closed_delay = False

    def name(self, matches: bool) -> None:
        """An agent line went by."""
        self._open = matches or (self._open and not self._closed)
        self._open_delay = matches or (self._open_delay and not self._closed_delay)
        self._closed = self._closed_delay = False

    def take(self, directive: _Directive, value: str, number: int) -> None:
        """A rule or a delay went by; it is ours if the group is open."""
        self._closed_delay = True
        if directive is _Directive.DELAY:
            if self._open_delay:
                self.delay = _longer(self.delay, value)
            return
        self._closed = True
        if self._open and value:
            self.rules += _readings(value, Verdict(directive is _Directive.ALLOW, _text(value), number))


def _within(body: bytes, limit: int) -> bytes:
    """Cut a body after the last whole line: half a pattern ('/' of '/private/') is not what its author wrote."""
    end = max(body.rfind(b"\n", 0, limit), body.rfind(b"\r", 0, limit)) + 1
    return body if len(body) < limit else body[:end]


def _lines(body: bytes) -> list[str]:
    """Split at any line ending. Octets become characters one to one."""
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        body = body.decode("utf-16", "replace").encode("utf-8", "replace")
    skipped = next((n for n in (3, 2, 1) if body.startswith(_MARK[:n])), 0)
    return body[skipped:].decode("latin-1").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _directive(line: str) -> tuple[_Directive, str]:
    """Read 'name: value # comment'; the colon may be forgotten when just two words remain."""
    line = line[:MAX_LINE].partition("\0")[0].partition("#")[0].strip(_BLANK)
    name, colon, value = line.partition(":")
    if not colon:
        words = line.split()
        name, value = words if len(words) == 2 else ("", "")
    return _spelt(name.rstrip(_BLANK)), value.strip(_BLANK)


@lru_cache(maxsize=4096)
def _spelt(name: str) -> _Directive:
    found = (directive for directive, spellings in _SPELLINGS if name.lower().startswith(spellings))
    return next(found, _Directive.UNKNOWN)


def _readings(value: str, verdict: Verdict) -> list[tuple[str, Verdict]]:
    """Return the patterns a rule stands for: allowing a directory's index page allows the directory itself."""
    pattern = _ESCAPE.sub(_escape, value)
    directory, slash, page = pattern.rpartition("/")
    if verdict.allowed and slash and page.startswith("index.htm"):
        return [(pattern, verdict), (directory + "/$", verdict)]
    return [(pattern, verdict)]


def _escape(found: re.Match[str]) -> str:
    text = found[0]
    char = chr(int(text[1:], 16)) if len(text) == 3 else text
    return char if char in _UNRESERVED else f"%{ord(char):02X}"


def _text(value: str) -> str:
    """Undo the one-to-one decoding."""
    return value if value.isascii() else value.encode("latin-1").decode("utf-8", "replace")


def _longer(delay: Seconds | None, value: str) -> Seconds | None:
    """Return the longer of two delays; what is no number asks for nothing."""
    number = _DELAY.match(value)
    return Seconds(max(delay or 0.0, float(number[0]))) if number else delay


def _keep(table: dict[str, _Weighed], literal: str, rule: _Weighed) -> None:
    if rule[0] > table.get(literal, _NO_RULE)[0]:
        table[literal] = rule


def _by_weight(prefixes: dict[str, _Weighed]) -> list[tuple[int, int]]:
    """Return each length of a prefix with the most any such prefix weighs, heaviest first."""
    limits: dict[int, int] = {}
    for prefix, (weight, _) in prefixes.items():
        limits[len(prefix)] = max(weight, limits.get(len(prefix), 0))
    return sorted(((limit, length) for length, limit in limits.items()), reverse=True)


def _cut(literal: str, anchored: bool, weight: int, verdict: Verdict) -> _Wildcard:
    head, *pieces = literal.split("*")
    tail = pieces.pop() if anchored else None
    middle = tuple(piece for piece in pieces if piece)
    probe = max((head, *middle, tail or ""), key=len)
    return _Wildcard(weight, verdict, probe, head, middle, tail)
