"""What a robots.txt allows: RFC 9309, with the details on which Google's parser is the reference.

Parsing never fails: a line that cannot be understood is passed over. A `Rules` holds only what applies to our agent,
arranged by `patterns`. docs/robots.md says where we differ from others, and why.
"""

from __future__ import annotations

import enum
import re
import string
from functools import lru_cache
from sys import getsizeof
from typing import Final

import msgspec

from harvestman.model import Seconds
from harvestman.policy.patterns import END, NOTHING, Gathered

MAX_BODY: Final = 1024 * 1024
"""Bytes from here on, and the line they begin in, are not read, as RFC 9309 section 2.5 permits."""
MAX_LINE: Final = 2083 * 8 - 1
"""Characters of a line after this are not read: Google's bound."""

_BLANK = " \t\v\f"
_MARK = b"\xef\xbb\xbf"
_DELAY = re.compile(r"\d{1,9}(?:\.\d{0,9})?|\.\d{1,9}")
_TOKEN = re.compile(r"[A-Za-z_-]*")
_UNRESERVED = frozenset(string.ascii_letters + string.digits + "-._~")
_COMMENTS = (re.compile(r"#[^\n]*"), re.compile(r"\0[^\n]*"))
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}|[^\x00-\x7f]")


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """Whether a path may be fetched, and the line that says so (rule '' and line 0: none does)."""

    allowed: bool
    rule: str = ""
    """The pattern as the file has it."""
    line: int = 0


_Directive = enum.Enum("_Directive", ["AGENT", "ALLOW", "DISALLOW", "DELAY", "SITEMAP", "UNKNOWN"])
_ALLOW, _DISALLOW, _UNKNOWN = _Directive.ALLOW, _Directive.DISALLOW, _Directive.UNKNOWN


_SPELLINGS: Final = (
    (_Directive.DISALLOW, ("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw")),
    (_Directive.ALLOW, ("allow",)),
    (_Directive.AGENT, ("user-agent", "useragent", "user agent")),
    (_Directive.DELAY, ("crawl-delay", "crawldelay", "crawl delay")),
    (_Directive.SITEMAP, ("sitemap", "site-map")),
)
"""Directive names with the misspellings Google accepts; what follows the name is ignored ('Disallowed:')."""


class Rules:
    """The rules of one robots.txt for one agent."""

    __slots__ = ("_literals", "_wildcards", "crawl_delay", "sitemaps", "size")

    def __init__(self, patterns: Gathered, crawl_delay: Seconds | None, sitemaps: tuple[str, ...]) -> None:
        self.crawl_delay = crawl_delay
        """Seconds asked for between two requests; the group that applies to us decides, '*' only if there is none."""
        self.sitemaps = sitemaps
        """Sitemap lines in order, each once, as written: they may be relative or nonsense."""
        self._literals = patterns.literals()
        self._wildcards = patterns.wildcards()
        self.size = _ALONE + self._literals.size + sum(map(getsizeof, sitemaps))
        """About the bytes it takes."""
        if self._wildcards is not None:
            self.size += self._wildcards.size

    def verdict(self, path: str) -> Verdict:
        """Judge path and query of a URL: the longest matching pattern wins, Allow wins a tie, nothing means allowed."""
        if "%" in path or not path.isascii():
            path = escaped(path)
        if path == "/robots.txt":
            return _ROBOTS_TXT
        path += END
        found = self._literals.find(path)
        if self._wildcards is not None:
            found = self._wildcards.find(path, found)
        if found is NOTHING:
            return _NO_RULE
        weight, line, text = found
        return Verdict(weight & 1 == 1, text, line)


_ALONE: Final = 600
"""Bytes that rules take besides their patterns."""
_NO_RULE: Final = Verdict(True)
_ROBOTS_TXT: Final = Verdict(True, "/robots.txt")


def parse(body: bytes, agent: str = "harvestman", limit: int = MAX_BODY) -> Rules:
    """Read the first `limit` bytes of a robots.txt as `agent` ('name', 'name/1.0') must; never raises."""
    reader = _Reader(agent)
    for number, line in enumerate(_lines(_within(body, limit)), 1):
        if ":" in line or " " in line or "\t" in line:
            directive, value = _directive(line)
            if directive is _DISALLOW or directive is _ALLOW:
                reader.rule(value, directive is _ALLOW, number)
            elif directive is not _UNKNOWN:
                reader.take(directive, value)
    return reader.rules()


def escaped(text: str) -> str:
    """Spell a path or pattern as they are compared (RFC 9309 section 2.2.2).

    Octets outside ASCII become %XX, %XX of unreserved characters are decoded, the others are in upper case.
    """
    return _ESCAPE.sub(_escape, text.encode("utf-8", "surrogatepass").decode("latin-1"))


def product_token(name: str) -> str:
    """Return the part of a User-agent line that names a crawler: letters, '-' and '_' up to anything else."""
    return "".join(_TOKEN.findall(name)[:1])


class _Group:
    """What the merged groups of one agent say."""

    def __init__(self) -> None:
        self.forbidden: dict[str, int] = {}
        """Patterns as they are written, with the first line of each."""
        self.allowed: dict[str, int] = {}
        self.delay: Seconds | None = None

    def patterns(self) -> Gathered:
        gathered = Gathered()
        for allowing, rules in ((False, self.forbidden), (True, self.allowed)):
            for value, line in rules.items():
                pattern, text = _read(value)
                gathered.add(pattern, text, allowing, line)
                directory, slash, page = pattern.rpartition("/") if allowing else ("", "", "")
                if slash and page.startswith("index.htm"):
                    # Allowing a directory's index page allows the directory itself.
                    gathered.add(directory + "/$", text, allowing, line)
        return gathered


class _Reader:
    """Keeps, while lines go by, what matters to one agent.

    Agent lines gather until a rule follows; the next agent line then begins a new group. Crawl-delay is not part of RFC
    9309 and must not end a group of rules, but it does end the list of agents it is itself meant for.
    """

    def __init__(self, agent: str) -> None:
        self._agent = (agent.partition("/")[0].split() or [""])[0].lower()
        self._ours = _Group()
        self._everyones = _Group()
        self._sitemaps: dict[str, None] = {}
        self._known = False
        """Some group names us, so that '*' does not apply."""
        self._open: list[_Group] = []
        """Those that the next rule belongs to."""
        self._open_delay: list[_Group] = []
        self._closed = self._closed_delay = False

    def rule(self, value: str, allowing: bool, number: int) -> None:
        self._closed = self._closed_delay = True
        if value:
            for group in self._open:
                (group.allowed if allowing else group.forbidden).setdefault(value, number)

    def take(self, directive: _Directive, value: str) -> None:
        """Any other line."""
        if directive is _Directive.AGENT:
            self._name(value)
        elif directive is _Directive.SITEMAP:
            if value:
                self._sitemaps[_text(value)] = None
        elif directive is _Directive.DELAY:
            self._closed_delay = True
            for group in self._open_delay:
                group.delay = _longer(group.delay, value)

    def _name(self, value: str) -> None:
        # '*' may be followed by a comment or another name, but not by letters ('*bot').
        everyone = value[:1] == "*" and value[1:2] in ("", *_BLANK)
        ours = not everyone and product_token(value).lower() == self._agent
        self._known = self._known or ours
        named = [self._everyones] if everyone else [self._ours] if ours else []
        self._open = named + [group for group in self._open if not self._closed and group not in named]
        self._open_delay = named + [g for g in self._open_delay if not self._closed_delay and g not in named]
        self._closed = self._closed_delay = False

    def rules(self) -> Rules:
        group = self._ours if self._known else self._everyones
        return Rules(group.patterns(), group.delay, tuple(self._sitemaps))


def _within(body: bytes, limit: int) -> bytes:
    """Cut a body after the last whole line: half a pattern ('/' of '/private/') is not what its author wrote."""
    end = max(body.rfind(b"\n", 0, limit), body.rfind(b"\r", 0, limit)) + 1
    return body if len(body) < limit else body[:end]


def _lines(body: bytes) -> list[str]:
    """Split at any line ending, and leave out comments. Octets become characters one to one."""
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        body = body.decode("utf-16", "replace").encode("utf-8", "replace")
    skipped = next((n for n in (3, 2, 1) if body.startswith(_MARK[:n])), 0)
    text = body[skipped:].decode("latin-1").replace("\r\n", "\n").replace("\r", "\n")
    for comment in _COMMENTS:
        text = comment.sub("", text)
    return text.split("\n")


def _directive(line: str) -> tuple[_Directive, str]:
    """Read 'name: value'; the colon may be forgotten when just two words remain."""
    if len(line) > MAX_LINE:
        line = line[:MAX_LINE]
    name, colon, value = line.partition(":")
    if not colon:
        words = line.split()
        name, value = words if len(words) == 2 else ("", "")
    return _spelt(name), value.strip(_BLANK)


@lru_cache(maxsize=4096)
def _spelt(name: str) -> _Directive:
    name = name.strip(_BLANK).lower()
    found = (directive for directive, spellings in _SPELLINGS if name.startswith(spellings))
    return next(found, _Directive.UNKNOWN)


def _read(value: str) -> tuple[str, str]:
    """Return a pattern as it is compared, and as its author wrote it."""
    return (_ESCAPE.sub(_escape, value), _text(value)) if "%" in value or not value.isascii() else (value, value)


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
