"""What `feed` does: one look at a crawl after another, each telling what came since the last."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from harvestman.errors import UsageError
from harvestman.feed import Event, events, parse, strangers
from harvestman.layout import Layout
from harvestman.removals import Removals
from harvestman.stored import stamp
from harvestman.views import View


class Teller:
    """Prints events, and remembers how far it came."""

    def __init__(self, data: Path, after: str, *, unchanged: bool, json: bool) -> None:
        self._layout = Layout(data)
        self._layout.read()
        self._cursor = parse(after)
        self._unchanged = unchanged
        self._json = json
        self._seen = ("", 0)

    async def tell(self) -> int:
        """Print what is new; returns how many events that were."""
        seen = (stamp(self._layout), Removals(self._layout).size)
        if seen == self._seen:
            return 0
        told = 0
        with View(self._layout) as view:
            if unknown := strangers(view, self._cursor):
                raise UsageError(f"the cursor is of another crawl: this one has no {', '.join(unknown)}")
            async for event in events(view, self._cursor):
                if event.change != "unchanged" or self._unchanged:
                    self._print(event)
                    told += 1
        self._seen = seen
        return told

    def _print(self, event: Event) -> None:
        if self._json:
            sys.stdout.buffer.write(msgspec.json.encode(event) + b"\n")
        else:
            aim = f" -> {event.target}" if event.target else ""
            near = f" (nearly {event.near_duplicate_of})" if event.near_duplicate_of else ""
            who = event.url or event.url_hash  # of what was removed, the address is not kept
            print(f"{event.worker} {event.seq:>8} {event.fetched_at} {event.change:<10} {who}{aim}{near}")
