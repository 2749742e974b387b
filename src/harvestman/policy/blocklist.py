"""Which URLs are never to be asked for again, or must not be deleted: one URL, a prefix, a site or a pattern.

The block list and the legal holds are both lists of these. A URL is kept by its hash alone, so that a list of what was
taken down does not itself tell where it was; a prefix, a site and a pattern have to stay readable to be compared with.
http and https are one: what is taken down at one of them is not to come back by the other.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

import msgspec

from harvestman.errors import UsageError
from harvestman.model import Instant, SiteKey
from harvestman.policy.sites import site_of
from harvestman.policy.urls import from_seed, host_of, key

KINDS = ("url", "prefix", "site", "pattern")
BLOCKED = "blocked: "
"""How the reason begins that is kept with a URL which a block list refuses."""


class Entry(msgspec.Struct, frozen=True):
    """A line of a list."""

    kind: str
    """One of KINDS."""
    value: str
    """The hash of a URL; the others as they are, a prefix without its scheme."""
    reason: str = ""
    at: Instant = Instant(0.0)
    by: str = ""

    @property
    def same(self) -> tuple[str, str]:
        """By which two entries are one."""
        return self.kind, self.value


def entry(kind: str, text: str, reason: str = "", at: Instant = Instant(0.0), by: str = "") -> Entry:
    """What a person asked for. Raises UsageError or UrlError when it cannot be meant."""
    return Entry(kind, _READ[kind](text), reason, at, by)


def _url(text: str) -> str:
    return _hash(from_seed(text))


def _prefix(text: str) -> str:
    return _bare(from_seed(text))


def _site(text: str) -> str:
    host = host_of(from_seed(text))
    site: str = site_of(host)
    if site != host:
        raise UsageError(f"{host} is not a site but a part of {site}; for it alone: --prefix https://{host}/")
    return site


def _pattern(text: str) -> str:
    try:
        matches_all = re.compile(text).search("") is not None
    except re.error as error:
        raise UsageError(f"{text!r} is not a regular expression: {error}") from None
    if matches_all:
        raise UsageError(f"the pattern {text!r} matches everything: say more of the URLs that are meant")
    return text


_READ = {"url": _url, "prefix": _prefix, "site": _site, "pattern": _pattern}


def _bare(url: str) -> str:
    return url.partition("//")[2]


def _hash(url: str) -> str:
    return hashlib.sha256(_bare(key(url)).encode()).hexdigest()


class Which:
    """The URLs that a list means. False when it means none, so that asking costs nothing."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = tuple(entries)
        self._urls = {each.value: each for each in self.entries if each.kind == "url"}
        self._sites = {each.value: each for each in self.entries if each.kind == "site"}
        self._prefixes = {each.value: each for each in self.entries if each.kind == "prefix"}
        self._begins = tuple(self._prefixes)
        self._patterns = [(re.compile(each.value), each) for each in self.entries if each.kind == "pattern"]

    def __bool__(self) -> bool:
        return bool(self.entries)

    def of(self, url: str) -> Entry | None:
        """The entry that means a URL (in request form), or None."""
        if not url.startswith(("http://", "https://")):
            return None
        return (
            (self._sites.get(site_of(host_of(url))) if self._sites else None)
            or (self._urls.get(_hash(url)) if self._urls else None)
            or (self._prefixed(_bare(url)) if self._begins else None)
            or next((each for pattern, each in self._patterns if pattern.search(url)), None)
        )

    def _prefixed(self, url: str) -> Entry | None:
        if not url.startswith(self._begins):
            return None
        return next(each for begin, each in self._prefixes.items() if url.startswith(begin))

    def whole(self, site: SiteKey) -> bool:
        """Whether all of a site is meant."""
        return site in self._sites

    def refusal(self, url: str) -> str | None:
        """Why a URL is never asked for; None when it may be."""
        found = self.of(url)
        return None if found is None else BLOCKED + found.reason
