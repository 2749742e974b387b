"""What a page asks of robots: <meta name=robots> and X-Robots-Tag.

Directives for all robots and those for us add up: the stricter wins, as search engines read them.
"""

from __future__ import annotations

from typing import NamedTuple

_VALUED = ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")
"""Directives written `name: value`; any other name before a colon is a robot's."""


_RECORDED = frozenset({"noarchive", "nosnippet", "noimageindex", "notranslate", "noai", "noimageai"})


class Directives(NamedTuple):
    """Whether a page may be indexed and its links followed."""

    noindex: bool = False
    nofollow: bool = False
    others: frozenset[str] = frozenset()
    """What else is asked, for whoever uses the page."""

    def __or__(self, other: object) -> Directives:
        if not isinstance(other, Directives):
            return NotImplemented
        return Directives(self.noindex or other.noindex, self.nofollow or other.nofollow, self.others | other.others)


def from_words(content: str) -> Directives:
    """The directives of a meta element's content, or of the part of a header that is meant for us."""
    words = content.lower().replace(",", " ").split()
    nothing = "none" in words
    return Directives(nothing or "noindex" in words, nothing or "nofollow" in words, _RECORDED.intersection(words))


def from_header(value: str, agent: str) -> Directives:
    """The directives of an X-Robots-Tag header that are for all robots or for `agent`.

    Repeated headers come joined by commas, so `name: a, b` may have been two: `a` is for that robot alone, `b` perhaps
    for everybody. In doubt we obey.
    """
    if not value:
        return Directives()
    ours = [words for words, robot in _by_robot(value) if robot in ("", "*", agent.strip().lower())]
    return from_words(",".join(ours))


def _by_robot(value: str) -> list[tuple[str, str]]:
    """The directives with the robot each is surely meant for alone; '' for those that may be everybody's."""
    parts: list[tuple[str, str]] = []
    for part in value.lower().split(","):
        name, colon, rest = part.strip().partition(":")
        if not colon or " " in name:  # a colon after several words is one of a date
            parts.append((part, ""))
        elif name not in _VALUED:
            parts.append((rest, name.strip()))
    return parts
