"""Scripted hosts: their pages are empty shells, and JavaScript asks for what should be on them.

Which hosts, and where what they need is. The shells and scripts themselves are in `scripts`.

    /                        any page: a shell, with one or two script elements
    /static/app.js           the script, on the host itself; /static/loader.js loads it where it is loaded by another
    /libs/...                on the host of another site: libraries, modules, a configuration, shared by many hosts
    /api/pages/17.json       the content of page 17, on hosts whose shell says which page it is
    /api/content?path=...    the same by its address, on hosts with one shell for all pages

A few scripted hosts forbid /api/ in their robots.txt. Their shells may be had, and what is behind them may not.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from urllib.parse import quote, unquote

from harvestman.sim.hosts import App, Feature, Host, Robots, Variety
from harvestman.sim.paths import normal
from harvestman.sim.plan import Plan

FRAMES = 4
API = "/api/"
SCRIPT, LOADER, CONFIG = "/static/app.js", "/static/loader.js", "/libs/config.json"
_VARIETIES = tuple(Variety)
_HOSTS_PER_CDN = 10
_LAX = frozenset({Robots.NONE, Robots.ALLOW})
_WALLED = slice(2, None, 6)
"""Of the scripted hosts whose robots.txt has no rules, those that get one against /api/."""


# -- who


def equip(hosts: list[Host], plan: Plan) -> list[Host]:
    """The hosts, a share of them scripted: plain ones first, and only such as can be crawled. The first never is."""
    if not plan.scripted:
        return hosts
    able = [host for host in hosts[1:] if host.resolves and not host.shut]
    random.Random(f"scripted/{plan.seed}/{plan.profile}").shuffle(able)
    able.sort(key=lambda host: host.feature is not Feature.PLAIN)
    count = math.ceil(plan.scripted * plan.hosts)
    chosen, rest = able[:count], able[count:]
    cdns = _cdns(hosts, rest, len(chosen))
    walled = {host.index for host in [each for each in chosen if each.robots in _LAX][_WALLED]}
    equipped = list(hosts)
    for wall in (False, True):
        for turn, host in enumerate(host for host in chosen if (host.index in walled) == wall):
            robots = Robots.API if wall else host.robots
            equipped[host.index] = replace(host, feature=Feature.SCRIPTED, app=_app(turn, cdns), robots=robots)
    return equipped


def _cdns(hosts: Sequence[Host], rest: Sequence[Host], scripted: int) -> list[int]:
    """Hosts that keep files for others: each alone on its site, so that it is a site of its own to all of them."""
    sites = Counter(host.site for host in hosts)
    alone = [host.index for host in rest if sites[host.site] == 1]
    return alone[: max(1, scripted // _HOSTS_PER_CDN)] or [0]


def _app(turn: int, cdns: Sequence[int]) -> App:
    """All varieties in turn, each in every way."""
    rounds = turn // len(_VARIETIES)
    return App(
        variety=_VARIETIES[turn % len(_VARIETIES)],
        xhr=(turn + rounds) % 2 == 1,
        keyed=(turn // 2 + rounds // 2) % 2 == 0,
        frame=(turn + rounds) % FRAMES,
        cdn=cdns[turn % len(cdns)],
    )


# -- what is where


def library(app: App) -> str:
    """The part of the script that is the same for all who ask in the same way."""
    return f"/libs/sim-{_way(app.xhr)}.js"


def module(app: App) -> str:
    return f"/libs/app-{_way(app.xhr)}-{_by(app.keyed)}.js"


def _way(xhr: bool) -> str:
    return "xhr" if xhr else "fetch"


def _by(keyed: bool) -> str:
    return "key" if keyed else "path"


LIBRARY = {
    path: App(Variety.MODULE, xhr, keyed, 0, 0)
    for xhr, keyed in product((False, True), repeat=2)
    for path in (f"/libs/sim-{_way(xhr)}.js", f"/libs/app-{_way(xhr)}-{_by(keyed)}.js", CONFIG)
}
"""What a host that keeps files for others has, and for what kind of app."""


@cache
def needed(app: App) -> tuple[tuple[bool, str], ...]:
    """What a browser needs to fill a shell, beside the content: whether it is on the other site's host, and where."""
    match app.variety:
        case Variety.CDN:
            return (True, library(app)), (False, SCRIPT)
        case Variety.MODULE:
            return ((True, module(app)),)
        case Variety.CHAIN:
            return (False, LOADER), (False, SCRIPT)
        case Variety.CONFIG:
            return (False, SCRIPT), (True, CONFIG)
        case _:
            return ((False, SCRIPT),)


def tags(app: App) -> int:
    """How many of them the shell itself names; the rest comes through those."""
    return 2 if app.variety is Variety.CDN else 1


def own_files(app: App) -> frozenset[str]:
    return frozenset(path for away, path in needed(app) if not away)


def base(app: App) -> str:
    """Where the content is; a configuration says otherwise."""
    return "/api/v2" if app.variety is Variety.CONFIG else "/api"


def key(page: int | str) -> str:
    """What a shell calls its page: an ordinary one by its number, an odd one by its path."""
    return str(page) if isinstance(page, int) else page.replace("/", "~")


def api(app: App, page: int | str, path: str) -> str:
    """Where the content of a page is; `path` is its address."""
    if app.keyed:
        return f"{base(app)}/pages/{key(page)}.json"
    return f"{base(app)}/content?path={quote(path, safe='')}"


def asked(app: App, path: str) -> int | str | None:
    """Whose content is asked for: a page by its number or normal path; None when it cannot be any."""
    start = f"{base(app)}/pages/" if app.keyed else f"{base(app)}/content?path="
    if not path.startswith(start):
        return None
    rest = path.removeprefix(start)
    if not app.keyed:
        return normal(unquote(rest))
    name = rest.removesuffix(".json")
    if name == rest:
        return None
    return int(name) if name.isdecimal() and name.isascii() and len(name) < 8 else name.replace("~", "/")


def type_of(path: str) -> str:
    return "text/javascript; charset=utf-8" if path.endswith(".js") else "application/json"
