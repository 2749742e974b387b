"""The robots.txt files of the simulated web. What they mean is said, independently, by `Host.disallows`."""

from __future__ import annotations

from functools import cache

from harvestman.sim.hosts import Robots

MOVED_TO = "/robots-rules.txt"
PATHS = frozenset({"/robots.txt", MOVED_TO})
LIMIT = 1024 * 1024
"""What of a robots.txt must be read; what comes after may be ignored, and here must be."""

_ALLOW = b"User-agent: *\nDisallow:\n"
_RULES = b"""# Rules of the simulated web
User-agent: BadBot
User-agent: WorseBot
Disallow: /

User-agent: *
Disallow: /private/
Allow: /private/open
Disallow: /*.print$
"""
_DELAY = _RULES + b"Crawl-delay: 2\n"
_API = b"User-agent: *\nDisallow: /api/\n"
_CLOSED = b"User-agent: *\nDisallow: /\n"


def _huge() -> bytes:
    """Real rules in the middle of a flood of others, and a prohibition of everything after the limit."""
    flood = b"".join(b"Disallow: /flood/%06d/\n" % number for number in range(12_000))
    body = b"User-agent: *\n" + flood + _RULES.partition(b"User-agent: *\n")[2]
    # Comments around the limit: where exactly a reader cuts is its own affair.
    filler = b"# nothing to be learnt from this line\n" * ((LIMIT + 40_000 - len(body)) // 38)
    return body + filler + b"Disallow: /\n"


@cache
def rules(robots: Robots) -> bytes:
    """The file a host of this sort has; b'' for those that answer with an error."""
    match robots:
        case Robots.ALLOW:
            return _ALLOW
        case Robots.RULES | Robots.MOVED:
            return _RULES
        case Robots.DELAY:
            return _DELAY
        case Robots.CLOSED:
            return _CLOSED
        case Robots.API:
            return _API
        case Robots.HUGE:
            return _huge()
        case _:
            return b""
