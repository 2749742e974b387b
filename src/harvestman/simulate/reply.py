"""What a server that is not there says, and what is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from harvestman.model import FailureKind, Instant


@dataclass(slots=True)
class Reply:
    """A status with its headers, or a failure; for pages, the links on them and what tells their content apart."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    """Of a robots.txt; pages have none."""
    links: Sequence[str] = ()
    failure: FailureKind | None = None
    took: float = 0.05
    """Seconds from the request to the end of the answer."""
    digest: bytes = b""
    simhash: int = 0


Web: TypeAlias = Callable[[str, Instant], Reply]
"""A modelled web: what is answered to a GET of this URL at this moment."""
