"""Traps: URLs without end. On the `mixed` web they are short enough to be walked; on the `wild` web they are not."""

from __future__ import annotations

import re
from zlib import crc32

from harvestman.sim.hosts import Feature
from harvestman.sim.odd import Kind, Odd

ITEMS = 5
_CALENDAR = re.compile(r"/calendar/(\d{4})/(\d{2})")
_LIST = re.compile(r"/list\?page=(\d{1,9})")
_SHOP = re.compile(r"/shop/item-(\d)\?sid=([0-9a-f]{8})|/s/([0-9a-f]{8})/item-(\d)")


def trap(feature: Feature, path: str, endless: bool) -> Odd | None:
    """The trap page at a normal path, or None when there is none."""
    match feature:
        case Feature.CALENDAR:
            return _month(path, endless)
        case Feature.PAGINATION:
            return _listing(path, endless)
        case Feature.SESSIONS:
            return _shop(path, endless)
        case _:
            return None


def _trap(path: str, links: list[str]) -> Odd:
    return Odd(path, Kind.TRAP, links=tuple(links))


def _month(path: str, endless: bool) -> Odd | None:
    found = _CALENDAR.fullmatch(path)
    if found is None or not 1 <= int(found[2]) <= 12:
        return None
    first, last = (0, 9999) if endless else (2026, 2027)
    if not first <= int(found[1]) <= last:
        return None
    month = int(found[1]) * 12 + int(found[2]) - 1
    links = [f"/calendar/{near // 12:04d}/{near % 12 + 1:02d}" for near in (month - 1, month + 1)]
    return _trap(path, [link for link in links if first <= int(link[10:14]) <= last])


def _listing(path: str, endless: bool) -> Odd | None:
    found = _LIST.fullmatch(path)
    last = 10**9 - 2 if endless else 30
    if found is None or not 1 <= int(found[1]) <= last:
        return None
    number = int(found[1])
    return _trap(path, [f"/list?page={near}" for near in (number - 1, number + 1) if 1 <= near <= last])


def _shop(path: str, endless: bool) -> Odd | None:
    found = _SHOP.fullmatch(path)
    if found is None:
        return None
    session = found[2] or found[3]
    if not endless and int(session, 16) > 3:
        return None
    return _trap(path, [_item(item, _next_session(session, item, endless)) for item in range(ITEMS)])


def _item(item: int, session: str) -> str:
    """Sessions hide in the query as well as in the path."""
    return f"/s/{session}/item-{item}" if item % 2 else f"/shop/item-{item}?sid={session}"


def _next_session(session: str, item: int, endless: bool) -> str:
    if not endless:
        return f"{(int(session, 16) + 1) % 4:08x}"
    return f"{crc32(f'{session}/{item}'.encode()):08x}"
