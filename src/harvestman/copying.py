"""Each page of a group held against the ones before it: what it is a near-duplicate of, if anything.

Only pages that stand for themselves are remembered, by their SimHash, so a content farm takes one place however many
pages it has. A near-duplicate is stored, parsed and followed like any page; it only says what it duplicates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from harvestman.frontier.routing import Router
from harvestman.model import Page, SiteKey, SiteRecord, UrlRecord
from harvestman.policy import copies
from harvestman.policy.copies import Copy, Print
from harvestman.policy.urls import host_of
from harvestman.ports import Near, State

Read: TypeAlias = tuple[Page, Print, UrlRecord]
"""A page, its fingerprint, and what was known of it before."""
Found: TypeAlias = tuple[int, int, Near]
"""How far, the SimHash it is known by, and the page."""


class Copying:
    """Recognises near-duplicates, of pages committed before and of those not yet committed."""

    def __init__(self, state: State, router: Router) -> None:
        self._state = state
        self._router = router
        self._pending: dict[int, Near | None] = {}
        """What the next commit changes."""

    def take(self) -> dict[int, Near | None]:
        """What has changed since the last time: to be committed with the pages."""
        pending, self._pending = self._pending, {}
        return pending

    async def compare(self, group: Sequence[Read]) -> None:
        """Write into each page what it duplicates."""
        found = await self._state.near([(print.simhash, print.weak) for _, print, _ in group], copies.FARTHEST)
        await self._forget(group)
        for (page, print, record), held in zip(group, found, strict=True):
            await self._place(page, print, record.url, self._nearest(print, held))

    def _nearest(self, print: Print, held: Sequence[Found]) -> list[Found]:
        """Those that it is a near-duplicate of, the nearest first."""
        known = [each for each in held if each[1] not in self._pending]
        for far, simhash in copies.neighbours(print, self._pending):
            near = self._pending[simhash]
            if near is not None:
                known.append((far, simhash, near))
        alike = [each for each in known if copies.shared(print.sample, each[2].sample) >= copies.SHARED]
        return sorted(alike, key=lambda each: each[:2])

    async def _place(self, page: Page, print: Print, url: str, found: list[Found]) -> None:
        new = Near(url, page.fetched_at, page.canonical or "", print.sample)
        if any(near.url == url for _, _, near in found):  # a further visit
            return
        if found:
            far, simhash, known = found[0]
            if await self._stands(known, new):
                page.near_duplicate_of, page.distance = known.url, far
                return
            self._pending[simhash] = None
        self._pending[print.simhash] = new

    async def _stands(self, known: Near, new: Near) -> bool:
        one, other = self._copy(known), self._copy(new)
        return copies.stands(one, other, await self._sites(one, other) if one.site != other.site else {})

    def _copy(self, near: Near) -> Copy:
        return Copy(near.url, near.at, near.canonical, self._router.place(host_of(near.url))[1])

    async def _sites(self, *pages: Copy) -> dict[SiteKey, SiteRecord]:
        places = [self._router.place(host_of(page.url)) for page in pages]
        records = await self._state.sites([(partition, site) for _, site, partition in places])
        return {record.site: record for record in records if record is not None}

    async def _forget(self, group: Sequence[Read]) -> None:
        """A page that has changed no longer stands for what it said before."""
        changed = [
            (record.visit.simhash, record.url)
            for _, print, record in group
            if record.visit is not None and record.visit.simhash not in (0, print.simhash)
        ]
        if changed:
            before = await self._state.near([(simhash, 0) for simhash, _ in changed], 0)
            for (simhash, url), held in zip(changed, before, strict=True):
                if any(near.url == url for _, _, near in held):
                    self._pending.setdefault(simhash, None)
