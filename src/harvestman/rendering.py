"""Pages that are built by scripts, read as a browser shows them: from the archive, never from the network.

A page that needs a browser waits in State (`renders`) until it is its turn. The browser is given the page as it was
stored, and whatever its scripts ask for as that was stored. What is not there yet is asked of the frontier like any
URL, so politeness, robots.txt and the address guard hold for it, whichever worker owns its site; then the page is
looked at again. What is known of resources is kept in RAM alone: who forgets it asks again, and is told at once.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harvestman.config import Config
from harvestman.errors import StateError
from harvestman.fetch.decode import decode
from harvestman.frontier.frontier import Frontier
from harvestman.frontier.routing import Routed, Router
from harvestman.frontier.schedule import NEVER
from harvestman.harvest import Harvest, Sent, Taken
from harvestman.model import (
    RESOURCE,
    Discovery,
    Instant,
    Learned,
    Lease,
    RecordRef,
    Render,
    Seconds,
    Status,
    UrlId,
    UrlRecord,
)  # fmt: skip
from harvestman.policy.politeness import ONION
from harvestman.policy.rendering import ROUNDS, Share, next_try, worth_it
from harvestman.policy.urls import Base, host_of, origin_of
from harvestman.ports import State
from harvestman.render.browser import Archived, Browser, Rendered, Wanted
from harvestman.render.cdp import BrowserGone
from harvestman.store.replay import read

SAME = 0.01
"""Seconds: State keeps dates to the millisecond."""
AT_ONCE = 32
"""Pages looked at in one go."""
KNOWN = 10_000
"""Resources remembered."""
SCRIPTS_LAST = Seconds(86_400.0)
"""A script that is no older than this will do; what scripts ask for may be ..."""
DATA_LASTS = Seconds(3_600.0)
"""... this old when the page itself is fetched."""
LARGEST = 8_000_000
"""Bytes of what is given to the browser, by way of base64 and JSON."""
NO_BROWSER = (
    "some pages are built by scripts, and there is no browser to read them with: they wait for a run that has one "
    "(install Chromium, or name it in render.browser; render.share = 0 does without)"
)
MOST_WANTS = 64
"""Resources of one page."""


@dataclass(slots=True, frozen=True)
class Waiting:
    """A page in the queue."""

    id: UrlId
    record: UrlRecord
    render: Render


@dataclass(slots=True)
class Shown:
    """A page that was in the browser."""

    id: UrlId
    url: str
    since: Instant
    result: Rendered
    sent: Sent = field(default_factory=lambda: ({}, b""))
    """What the server sent."""
    before: frozenset[str] = frozenset()
    """What was asked for in earlier rounds."""
    wants: dict[str, Instant] = field(default_factory=dict)
    """What was not there, and how old it may be."""


class Rendering:
    """One worker's queue for its browser: one page at a time, within its share of the time."""

    def __init__(
        self, config: Config, state: State, frontier: Frontier, harvest: Harvest, router: Router,
        browser: Browser | None, warcs: Sequence[Path], waiting: int, now: Instant,
    ) -> None:  # fmt: skip
        self._state = state
        self._frontier = frontier
        self._harvest = harvest
        self._router = router
        self._browser = browser
        self._warcs = warcs
        self._share = Share(config.render.share, config.render.seconds, now, saved=config.render.seconds)
        self._known: dict[str, tuple[Instant, RecordRef | None]] = {}
        self._task: asyncio.Task[Shown] | None = None
        self._busy = UrlId(b"")
        """The page that is in the browser."""
        self.waiting = waiting
        """Pages in the queue."""
        self.alerts: list[str] = []
        self._alone = browser is None
        """It is still to be said that there is no browser."""

    # -- pages in ----------------------------------------------------------------------------------------------

    def want(self, taken: Taken) -> None:
        """A page came that needs a browser, or needed one before: it is queued with the group's commit."""
        if not self._share.share:
            return
        record, page = taken.record, taken.page
        again = record.render is not None and record.render.done > 0
        if not (taken.scripted or again) or record.status is not Status.FETCHED:
            return
        site = self._frontier.site_at_hand(taken.lease.host)
        reason = taken.scripted or "it did before"
        if not worth_it(site.render if site else Learned(), reason, self._harvest.chance()):
            return
        if self._alone:
            self._alone = False
            self.alerts.append(NO_BROWSER)
        before, now = record.render, taken.answer.finished
        if before is None or not before.due:
            self._count(record, 1)
        render = record.render = Render(now, before.due if before else Instant(0.0))
        if before is not None:
            render.done, render.outcome = before.done, before.outcome
            render.text, render.links = before.text, before.links
        if page is not None:
            render.text, render.links = len(page.text), len(page.links)
        self._put_off(Waiting(taken.lease.id, record, render), now)

    def _put_off(self, page: Waiting, due: Instant) -> None:
        """`due` 0: it is done."""
        changes = self._frontier.changes
        if page.render.due:
            changes.unrender.append((page.render.due, page.id))
        page.render.due = due
        if due:
            changes.render.append((due, page.id))
        changes.records[page.id] = page.record

    def told(self, answers: list[Discovery]) -> None:
        """What became of resources."""
        for answer in answers:
            self._known.pop(answer.via, None)
            self._known[answer.via] = answer.modified, answer.ref
            if len(self._known) > KNOWN:
                del self._known[next(iter(self._known))]

    # -- the queue ---------------------------------------------------------------------------------------------

    async def look(self, now: Instant, idle: bool) -> list[Routed]:
        """Go on with what is due; returns the resources that are to be asked for."""
        asks: list[Routed] = []
        if self._browser is None:
            return asks
        for when, url in await self._state.renders(now, AT_ONCE):
            if url == self._busy:
                continue
            page = await self._page(url)
            if page is None or abs(page.render.due - when) > SAME:
                self._frontier.changes.unrender.append((when, url))
                continue
            render = page.render
            if page.record.status not in (Status.FETCHED, Status.PENDING) or render.rounds >= ROUNDS:
                # It is gone by now; or this worker died with it in the browser, the last time that it may be there.
                self._done(page, now, "gone" if render.rounds < ROUNDS else "given up")
                continue
            missing = [want for want in render.wants if want not in self._known]
            # By when it was to be looked at, not by when its turn came: behind a long queue nobody asks meanwhile.
            later = next_try(render.rounds, len(missing), render.asked, when) if missing else None
            if later is not None:
                asks += self._asks(page, dict.fromkeys(missing, Instant(render.since - DATA_LASTS)))
                self._put_off(page, Instant(max(later, now)))
            elif self._task is None and self._share.may(now, idle):
                self._busy = url
                render.rounds += 1  # written down before it can bring us down
                self._frontier.changes.records[url] = page.record
                self._task = asyncio.create_task(self._show(page, now))
        return asks

    async def _page(self, url: UrlId) -> Waiting | None:
        """A page with its record as it is now; None when it is not to be rendered any more."""
        stored = (await self._state.records([url]))[0]
        record = await self._frontier.intake.at_hand(url, host_of(stored.url)) if stored is not None else None
        return Waiting(url, record, record.render) if record is not None and record.render is not None else None

    def _asks(self, page: Waiting, wants: dict[str, Instant]) -> list[Routed]:
        record = page.record
        return [
            self._router.route(Discovery(url, record.depth, record.url, RESOURCE, job=record.job, modified=oldest))
            for url, oldest in wants.items()
        ]

    async def horizon(self) -> Instant:
        """When there is something to do; `NEVER` when all is done."""
        due = await self._state.renders(NEVER, 1) if self._browser is not None else []
        return Instant(0.0) if self._task is not None or due else NEVER

    # -- in the browser ----------------------------------------------------------------------------------------

    async def _show(self, page: Waiting, now: Instant) -> Shown:
        assert self._browser is not None
        url, visit = page.record.url, page.record.visit
        shown = Shown(page.id, url, page.render.since, Rendered("", url), before=frozenset(page.render.wants))
        raw = self._read(visit.ref if visit else None)
        if raw is None:
            shown.result.cut = "its raw record is gone"
            return shown
        shown.sent = raw.headers, raw.body
        base, before = Base(url), self._browser.cpu

        async def provide(wanted: Wanted) -> Archived | None:
            target = base.resolve(wanted.url)
            if target is None or host_of(target).endswith(ONION) != host_of(url).endswith(ONION):
                return None  # a hidden service must not learn who we are, nor a page of the open web send us there
            return await asyncio.to_thread(self._read, self._known_place(target, wanted.kind, shown))

        try:
            shown.result = await self._browser.render(url, raw, provide, now)
        except BrowserGone:
            raise
        except Exception as fault:
            print(f"cannot render {url}: {fault!r}", file=sys.stderr, flush=True)
            shown.result.cut = f"fault: {type(fault).__name__}"
        self._share.spend(Seconds(self._browser.cpu - before))
        return shown

    def _known_place(self, url: str, kind: str, shown: Shown) -> RecordRef | None:
        """Where a resource is stored; None when it cannot be had, or is not there yet: then it is wanted."""
        oldest = Instant(shown.since - (SCRIPTS_LAST if kind == "script" else DATA_LASTS))
        at, ref = self._known.get(url, (Instant(0.0), None))
        if at >= oldest:
            return ref
        self._known.pop(url, None)
        if url in shown.before or len(shown.before) + len(shown.wants) < MOST_WANTS:
            shown.wants[url] = oldest
        return None

    def _read(self, ref: RecordRef | None) -> Archived | None:
        if ref is None:
            return None
        here = [directory for directory in self._warcs if (directory / ref.file).exists()]
        return _opened(here[0], ref) if here else None

    # -- out of the browser ------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """The browser is done with a page."""
        return self._task is not None and self._task.done()

    async def take(self, now: Instant) -> tuple[list[Taken], list[Routed]]:
        """The page that the browser is done with, read; or the resources that it is to be shown with once more."""
        assert self._task is not None
        task, self._task, self._busy = self._task, None, UrlId(b"")
        try:
            shown = task.result()
        except BrowserGone as fault:
            self.alerts.append(f"pages that need a browser wait for another run: {fault}")
            self._browser = None
            return [], []
        page = await self._page(shown.id)
        if page is None or page.render.since != shown.since:
            return [], []  # it was fetched again in the meantime: its turn comes once more
        render = page.render
        news = shown.wants.keys() - shown.before  # the others were asked for, and did not come
        later = next_try(render.rounds, len(news), now, now) if news else None
        if later is not None:
            render.wants, render.asked = list(dict.fromkeys([*render.wants, *shown.wants])), now
            self._put_off(page, later)
            return [], self._asks(page, shown.wants)
        taken = await self._made(page, shown, now)
        self._done(page, now, shown.result.cut or "ok")
        return taken, []

    def _done(self, page: Waiting, now: Instant, outcome: str) -> None:
        page.render.wants, page.render.done, page.render.outcome = [], now, outcome
        self._put_off(page, Instant(0.0))
        self._count(page.record, -1)

    def _count(self, record: UrlRecord, one: int) -> None:
        """One more that waits, or one less: of all, and of its job."""
        self.waiting += one
        self._frontier.staging.job(record.job).unrendered += one

    async def _made(self, page: Waiting, shown: Shown, now: Instant) -> list[Taken]:
        """What came of a page: none when the browser had nothing to show."""
        url, result = shown.url, shown.result
        lease = Lease(host_of(url), "", url, page.id, page.record, origin_of(url), taken=now)
        if not result.html:
            await self._frontier.shown(lease, page.record, None, (), now)
            return []
        taken = await self._harvest.rendered(lease, page.record, shown.sent, result.html, result.leads_to, now)
        await self._frontier.shown(lease, page.record, taken.page, taken.news, now)
        return [taken]

    async def close(self) -> None:
        """What is in the browser stays queued."""
        if self._task is not None:
            self._task.cancel()
        if self._browser is not None:
            await self._browser.close()


def _opened(directory: Path, ref: RecordRef) -> Archived | None:
    try:
        response = read(directory, ref)
    except StateError:
        return None
    body = decode(response.body, response.headers.get("content-encoding", ""))
    if not isinstance(body, bytes) or len(body) > LARGEST:
        return None
    return Archived(response.status, response.headers, body)
