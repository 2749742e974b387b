"""Which URLs belong to a crawl.

| mode | admits |
|---|---|
| site | the registrable domains of the seeds |
| host | the hosts of the seeds |
| path | what lies in the directory of a seed, on its host and port |
| all | everything |
| patterns | what a pattern file says |

A pattern file has one pattern a line, tried from the top; the first that matches the whole URL decides, and a URL that
none matches is left out:

    # the manual, but not its old versions
    - https://docs.example.org/*/old/*
    + https://docs.example.org/*
    + re:https://example\\.org/news/\\d{4}/.*

'*' stands for any characters, '?' and all others for themselves. After `re:` stands a Python regular expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from harvestman.errors import UrlError, UsageError
from harvestman.model import HostKey, SiteKey
from harvestman.policy.sites import site_of
from harvestman.policy.urls import from_seed, host_of


@dataclass(slots=True, frozen=True)
class Pattern:
    """One line of a pattern file."""

    admit: bool
    expression: re.Pattern[str]


@dataclass(slots=True, frozen=True)
class Scope:
    """The URLs of one crawl."""

    mode: str
    names: frozenset[str] = frozenset()
    """Sites or hosts."""
    directories: tuple[str, ...] = ()
    patterns: tuple[Pattern, ...] = ()

    @classmethod
    def build(cls, mode: str, seeds: Iterable[str], patterns: Iterable[str] = ()) -> Scope:
        """Return the scope of a crawl from these seeds; raise UsageError when it makes no sense."""
        if mode == "all":
            return cls(mode)
        if mode == "patterns":
            return cls(mode, patterns=_read(patterns))
        # One pass, nothing kept but names: a crawl may have millions of seeds.
        urls = (_seed(seed) for seed in seeds)
        if mode == "site":
            return cls(mode, names=frozenset(site_of(host_of(url)) for url in urls))
        if mode == "host":
            return cls(mode, names=frozenset(host_of(url) for url in urls))
        if mode == "path":
            directories = tuple(sorted({_directory(url) for url in urls}))
            return cls(mode, frozenset(host_of(directory) for directory in directories), directories)
        raise UsageError(f"no such scope: {mode!r}; choose site, host, path, all or @FILE")

    def admits(self, url: str, host: HostKey, site: SiteKey) -> bool:
        """Say whether a request form, with its host and site, belongs to the crawl."""
        if self.mode == "site":
            return site in self.names
        if self.mode == "host":
            return host in self.names
        if self.mode == "path":
            return host in self.names and url.startswith(self.directories)
        return self.mode == "all" or self._first_match(url)

    def _first_match(self, url: str) -> bool:
        for pattern in self.patterns:
            if pattern.expression.fullmatch(url):
                return pattern.admit
        return False


def _seed(text: str) -> str:
    try:
        return from_seed(text)
    except UrlError as failure:
        raise UsageError(f"the scope cannot be built from seed {text!r}: {failure}") from failure


def _directory(url: str) -> str:
    path = url.partition("?")[0]
    return path[: path.rindex("/") + 1]


def _read(lines: Iterable[str]) -> tuple[Pattern, ...]:
    numbered = ((number, line.strip()) for number, line in enumerate(lines, 1))
    patterns = tuple(_pattern(line, number) for number, line in numbered if line and not line.startswith("#"))
    if not any(pattern.admit for pattern in patterns):
        raise UsageError("the patterns admit nothing: at least one line must begin with '+'")
    return patterns


def _pattern(line: str, number: int) -> Pattern:
    sign, text = line[0], line[1:].strip()
    if sign not in "+-" or not text:
        raise UsageError(f"pattern line {number}: write '+ PATTERN' or '- PATTERN', not {line!r}")
    try:
        return Pattern(sign == "+", _expression(text))
    except re.error as failure:
        raise UsageError(f"pattern line {number}: not a regular expression ({failure}): {text!r}") from failure


def _expression(text: str) -> re.Pattern[str]:
    if text.startswith("re:"):
        return re.compile(text[3:], re.DOTALL)
    head, *pieces = [re.escape(piece) for piece in re.split(r"\*+", text)]
    if not pieces:
        return re.compile(head)
    # Each piece takes its leftmost place for good (atomic), so that no URL can make the search explode.
    middle = "".join(f"(?>.*?{piece})" for piece in pieces[:-1])
    return re.compile(f"{head}{middle}.*{pieces[-1]}", re.DOTALL)
