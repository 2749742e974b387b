"""Traps: URLs without end. On the `mixed` web they are short enough to be walked; on the `wild` web they are not.

A table at the end names them all. The text of a trap's pages is the same but for a number, as it is on the real web.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple
from zlib import crc32

from harvestman.sim.hosts import Feature
from harvestman.sim.odd import Kind, Odd
from harvestman.sim.plan import Plan
from harvestman.sim.words import ADJECTIVES, NOUNS

ITEMS = 5
_CALENDAR = re.compile(r"/calendar/(\d{4})/(\d{2})")
_LIST = re.compile(r"/list\?page=(\d{1,9})")
_SHOP = re.compile(r"/shop/item-(\d)\?sid=([0-9a-f]{8})|/s/([0-9a-f]{8})/item-(\d)")
_NEST = re.compile(r"/guide((?:/(?:intro|setup))+)/page\.html")
_SERVICE = re.compile(r"/service/[a-z]+-[a-z]+-(\d{1,9})")
FACETS = {
    "brand": ("acme", "globex", "hooli", "initech", "umbrella"),
    "color": ("black", "blue", "green", "red", "white"),
    "price": ("0-50", "50-100", "100-500"),
    "size": ("s", "m", "l", "xl"),
    "sort": ("name", "new", "price"),
    "view": ("grid", "list"),
}
"""Six filters: 17,279 choices on top of the catalogue itself."""


class TrapKind(NamedTuple):
    """How a trap is entered, and what is at a path of it in its normal form."""

    doors: tuple[str, ...]
    page: Callable[[str, Plan], Odd | None]


def trap(feature: Feature, path: str, plan: Plan) -> Odd | None:
    """The page of a trap or content farm at a normal path, or None when there is none."""
    kind = TRAPS.get(feature)
    return kind.page(path, plan) if kind else None


def doors(feature: Feature) -> tuple[str, ...]:
    """The paths that lead into the trap of a host with this feature."""
    return TRAPS[feature].doors if feature in TRAPS else ()


def _endless(plan: Plan) -> bool:
    return plan.profile == "wild"


def _trap(path: str, links: list[str], kind: Kind = Kind.TRAP) -> Odd:
    return Odd(path, kind, links=tuple(links))


def _month(path: str, plan: Plan) -> Odd | None:
    found = _CALENDAR.fullmatch(path)
    if found is None or not 1 <= int(found[2]) <= 12:
        return None
    first, last = (0, 9999) if _endless(plan) else (2026, 2027)
    if not first <= int(found[1]) <= last:
        return None
    month = int(found[1]) * 12 + int(found[2]) - 1
    links = [f"/calendar/{near // 12:04d}/{near % 12 + 1:02d}" for near in (month - 1, month + 1)]
    return _trap(path, [link for link in links if first <= int(link[10:14]) <= last])


def _listing(path: str, plan: Plan) -> Odd | None:
    found = _LIST.fullmatch(path)
    last = 10**9 - 2 if _endless(plan) else 30
    if found is None or not 1 <= int(found[1]) <= last:
        return None
    number = int(found[1])
    return _trap(path, [f"/list?page={near}" for near in (number - 1, number + 1) if 1 <= near <= last])


def _shop(path: str, plan: Plan) -> Odd | None:
    found = _SHOP.fullmatch(path)
    if found is None:
        return None
    session = found[2] or found[3]
    if not _endless(plan) and int(session, 16) > 3:
        return None
    return _trap(path, [_item(item, _next_session(session, item, _endless(plan))) for item in range(ITEMS)])


def _item(item: int, session: str) -> str:
    """Sessions hide in the query as well as in the path."""
    return f"/s/{session}/item-{item}" if item % 2 else f"/shop/item-{item}?sid={session}"


def _next_session(session: str, item: int, endless: bool) -> str:
    if not endless:
        return f"{(int(session, 16) + 1) % 4:08x}"
    return f"{crc32(f'{session}/{item}'.encode()):08x}"


def _nest(path: str, plan: Plan) -> Odd | None:
    """Links that were meant to be relative to something else: intro/setup/intro/... and every mixture of the two."""
    found = _NEST.fullmatch(path)
    return _trap(path, [f"/guide{found[1]}/{word}/page.html" for word in ("intro", "setup")]) if found else None


def _choice(path: str, plan: Plan) -> Odd | None:
    """A catalogue, and what is left of it with filters set: every page leads to all that are one filter away."""
    start, _, query = path.partition("?")
    chosen = dict(part.split("=", 1) for part in query.split("&") if "=" in part)
    if start != "/catalog" or any(value not in FACETS.get(name, ()) for name, value in chosen.items()):
        return None
    others = [{**chosen, name: value} for name, values in FACETS.items() for value in values]
    links = [_query(other, turn) for turn, other in enumerate(others) if other != chosen]
    return _trap(path, [f"/catalog?{link}" for link in links], Kind.TRAP if chosen else Kind.PAGE)


def _query(chosen: dict[str, str], turn: int) -> str:
    """The filters in any order."""
    parts = [f"{name}={value}" for name, value in chosen.items()]
    turn %= len(parts)
    return "&".join(parts[turn:] + parts[:turn])


def _service(path: str, plan: Plan) -> Odd | None:
    """A content farm: the same words for every town, 24 such pages for each ordinary one, all near its home."""
    found = _SERVICE.fullmatch(path)
    last = 24 * plan.pages
    if found is None or not 0 <= int(found[1]) < last or path != _offer(int(found[1])):
        return None
    number = int(found[1])
    return _trap(path, [_offer(other % last) for other in range(10 * number + 1, 10 * number + 11)], Kind.FARM)


def _offer(number: int) -> str:
    words = [kind[crc32(b"%d" % number) % len(kind)] for kind in (ADJECTIVES, NOUNS)]
    return f"/service/{'-'.join(words)}-{number}"


TRAPS = {
    Feature.CALENDAR: TrapKind(("/calendar/2026/01",), _month),
    Feature.PAGINATION: TrapKind(("/list?page=1",), _listing),
    Feature.SESSIONS: TrapKind(("/shop/item-0?sid=00000000", "/s/00000000/item-1"), _shop),
    Feature.NESTED: TrapKind(("/guide/intro/page.html",), _nest),
    Feature.FACETS: TrapKind(("/catalog",), _choice),
    Feature.FARM: TrapKind((_offer(0),), _service),
}
