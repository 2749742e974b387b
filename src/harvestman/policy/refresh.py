"""`Refresh: 5; url=next.html`, as a header and as a meta element: after how long it leads where.

Search engines take a refresh at once for a permanent redirect and a later one for a temporary; one that leaves time to
read the page is a link.
"""

from __future__ import annotations

import re

from harvestman.model import Seconds

SOON = Seconds(5.0)
"""A page that stays no longer than this is a redirect."""
_LONGEST = 8_192
_REFRESH = re.compile(
    r"""\s*([0-9]++(?:\.[0-9]*+)?|\.[0-9]++)[0-9.]*+[\s;,]+(?:url\s*=\s*)?(?:'([^']*)|"([^"]*)|(.+))""",
    re.IGNORECASE | re.DOTALL,
)


def read(content: str) -> tuple[Seconds, str] | None:
    """The delay and the URL as it is written; None when it only reloads the page."""
    found = _REFRESH.match(content[:_LONGEST])
    if not found:
        return None
    delay, *targets = found.groups()
    target = next((group for group in targets if group is not None), "").strip()
    return (Seconds(float(delay[:20])), target) if target else None
