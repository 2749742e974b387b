"""The page-event feed: what an indexer downstream must know, in order, at least once.

Nothing is written for it while crawling. The raw records and the page log are append-only and committed with State, so
the feed is read from them, and a reader's cursor is its place in these files. A reader that stores the cursor of an
event after it has dealt with it, and dies, sees every event behind that cursor again, and none is left out.

What was deleted since (`removals`) is told first, as events of a stream of its own. Each says up to which moment
versions are gone, so that it does not matter what else a reader has heard by then.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from itertools import islice

import msgspec

from harvestman.config import Limits, Retry
from harvestman.errors import UsageError
from harvestman.model import LISTING, Page, RecordRef, Status, UrlRecord
from harvestman.policy.outcomes import decide
from harvestman.policy.urls import key, url_hash
from harvestman.removals import Removals
from harvestman.store.records import warc_date
from harvestman.stored import Files, Place, Stored, committed, digest_of, walk
from harvestman.views import View

SCHEMA_VERSION = 2
CHANGES = ("new", "changed", "unchanged", "duplicate", "redirected", "gone", "removed")
REMOVED = "removed"
"""The stream of removals, beside those of the workers."""
AT_ONCE = 64
"""Events of one worker before it is the turn of the next."""
_PLACE = re.compile(r"([\w./-]+)=" + r"\.".join([r"(\d+)"] * len(Place.__struct_fields__)))

Cursor = dict[str, Place]
"""How far a reader came with each worker, and with what was removed."""


class Warc(msgspec.Struct, frozen=True):
    """Where the raw record lies."""

    file: str
    offset: int
    length: int


class Event(msgspec.Struct, frozen=True):
    """What became of a page at one visit. The order of the fields is that of the JSON."""

    version: int
    worker: str
    seq: int
    """Grows with every event of the worker; numbers are left out where there was nothing to tell."""
    change: str
    """One of CHANGES."""
    url: str
    url_hash: str
    fetched_at: str
    status: int
    digest: str
    content_type: str
    language: str
    title: str
    noindex: bool
    target: str
    """Where it leads, if it is redirected; whose content it has, if it is a duplicate."""
    near_duplicate_of: str | None
    distance: int | None
    warc: Warc | None
    cursor: str
    """To go on behind this event."""


def parse(text: str) -> Cursor:
    """A cursor that an event carried; '0' is the beginning. Raises UsageError."""
    if text.strip() in ("", "0"):
        return {}
    found: Cursor = {}
    for part in text.strip().split(","):
        place = _PLACE.fullmatch(part)
        if place is None:
            raise UsageError(f"{part!r} is no cursor: give one that an event carried, or 0 for the beginning")
        found[place[1]] = Place(*map(int, place.groups()[1:]))
    return found


def written(cursor: Cursor) -> str:
    """A cursor as text."""
    return ",".join(
        f"{name}={'.'.join(map(str, msgspec.structs.astuple(place)))}" for name, place in sorted(cursor.items())
    )


async def events(view: View, cursor: Cursor) -> AsyncIterator[Event]:
    """Every event behind a cursor, as far as the view sees; `cursor` moves on with them."""
    for removed in _removed(view, cursor):
        yield removed
    walks = [(files, walk(files, cursor.get(files.name, Place()))) for files in committed(view)]
    while walks:
        for files, stored in list(walks):
            batch = list(islice(stored, AT_ONCE))
            for each in batch:
                cursor[files.name] = each.place
                event = await _event(view, files, each, cursor)
                if event is not None:
                    yield event
            if len(batch) < AT_ONCE:
                walks.remove((files, stored))


def _removed(view: View, cursor: Cursor) -> Iterator[Event]:
    place = cursor.get(REMOVED, Place())
    for offset, removal in Removals(view.layout).behind(place.offset):
        place = cursor[REMOVED] = Place(place.told + 1, offset=offset)
        yield Event(
            SCHEMA_VERSION, REMOVED, place.told, "removed", "", removal.url_hash, warc_date(removal.before), 0, "", "",
            "", "", False, "", None, None, None, written(cursor),
        )  # fmt: skip


async def _event(view: View, files: Files, stored: Stored, cursor: Cursor) -> Event | None:
    page, response = stored.page, stored.response
    url = page.url if page else response.url if response else ""
    record = await view.record(url)
    if record is not None and record.kind == LISTING:
        return None
    if page is not None:
        if stored.ref is None:
            stored = stored._replace(ref=_remembered(files, page, record))
        return _told(files, stored, cursor, _page_change(page, record), page)
    if record is None or response is None:
        return None
    change, target = _record_change(stored, record)
    if not change:
        return None
    kind = response.headers.get("content-type", "")
    bare = Page(url, response.status, response.finished, kind, record.depth, digest_of(stored.fields))
    return _told(files, stored, cursor, change, bare, target)


def _remembered(files: Files, page: Page, record: UrlRecord | None) -> RecordRef | None:
    """The raw record of a page that is told again, when the reader is past it: as State has it, if it is there."""
    visit = record.visit if record else None
    if visit is None or visit.ref is None or visit.digest.hex() != page.digest:
        return None
    return visit.ref if visit.ref.file in {part.path.name for part in files.warcs} else None


def _page_change(page: Page, record: UrlRecord | None) -> str:
    """Of a page that changed more than once, versions before the last two cannot be told apart: 'changed'."""
    if page.rendered:
        return "changed"  # it was told as its server sent it before
    changes = record.change.changes if record and record.change else 0
    latest = record is not None and record.visit is not None and record.visit.digest.hex() == page.digest
    return "changed" if changes > 1 or (changes and latest) else "new"


def _record_change(stored: Stored, record: UrlRecord) -> tuple[str, str]:
    """What a record without a page of its own says, and about whom; '' when nothing an indexer would act on."""
    fields, response = stored.fields, stored.response
    assert response is not None
    if fields.get("warc-type") == "revisit":
        first = fields.get("warc-refers-to-target-uri", response.url)
        same = first == response.url or response.status == 304
        return ("unchanged", "") if same else ("duplicate", first)
    decision = decide(response.url, response, 1, 0, Retry(), Limits(), 0.0)
    match decision.status:
        case Status.GONE:
            return "gone", ""
        case Status.REDIRECTED:
            return "redirected", decision.target or ""
        case Status.FETCHED:
            return _copied(stored, record)
    return "", ""


def _copied(stored: Stored, record: UrlRecord) -> tuple[str, str]:
    """A body that was stored and not parsed: it was known already, if State still says so."""
    visit = record.visit
    if visit is None or visit.digest.hex() != digest_of(stored.fields):
        return "", ""
    if record.status is Status.DUPLICATE:
        return "duplicate", visit.target
    if record.status is Status.REDIRECTED:
        return "redirected", visit.target
    return ("unchanged", "") if record.status is Status.FETCHED else ("", "")


def _told(files: Files, stored: Stored, cursor: Cursor, change: str, page: Page, target: str = "") -> Event:
    return Event(
        SCHEMA_VERSION, files.name, stored.place.told, change, page.url, url_hash(key(page.url)),
        warc_date(page.fetched_at), page.status, page.digest, page.content_type, page.language, page.title,
        page.noindex, target, page.near_duplicate_of, page.distance, _where(stored.ref), written(cursor),
    )  # fmt: skip


def _where(ref: RecordRef | None) -> Warc | None:
    return Warc(ref.file, ref.offset, ref.length) if ref else None


def strangers(view: View, cursor: Cursor) -> list[str]:
    """The workers a cursor names that the crawl does not have: it is of another crawl."""
    known = {REMOVED, *(files.name for files in committed(view))}
    return sorted(cursor.keys() - known)
