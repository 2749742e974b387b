"""Judges a crawl from the servers' side: the request log of a simulated web against the model of that web.

Nothing the crawler says about itself is used, and nothing of the crawler's code.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from harvestman.errors import UsageError
from harvestman.sim.connections import judge_connections
from harvestman.sim.hosts import Host, Robots
from harvestman.sim.log import Agent, Asked, Header, Line, read
from harvestman.sim.odd import LISTINGS, Kind, Odd
from harvestman.sim.paths import normal
from harvestman.sim.plan import Plan
from harvestman.sim.reach import Reach, reach
from harvestman.sim.report import Report
from harvestman.sim.robots_txt import MOVED_TO, PATHS
from harvestman.sim.web import Web

TOLERANCE = 0.001


def audit(
    log: Path | Sequence[Path],
    delay: float = 1.0,
    *,
    depth: int = 20,
    seeds_only: bool = False,
    min_coverage: float = 1.0,
    max_duplicates: float = 0.0001,
    max_trap_share: float = 1.0,
    browser: bool = True,
) -> Report:
    """Judges one log, or several of the same web (a log may also hold several runs of the server).

    `delay` is the promised gap between requests to a host; `depth` and `seeds_only` are the bounds the crawl was given.
    Without a `browser` it is not expected to find what only scripts make.
    """
    lines = [line for path in ([log] if isinstance(log, Path) else log) for line in read(path)]
    web = Web(_plan(lines))
    asked = sorted((line for line in lines if isinstance(line, Asked)), key=lambda each: each.arrival)
    report = Report(delay, min_coverage, max_duplicates, max_trap_share)
    _count(report, lines, asked)
    _judge_pages(report, web, asked, reach(web, depth, seeds_only=seeds_only, browser=browser))
    for name, requests in _by_host(asked).items():
        host = web.by_name.get(name)
        if host is not None:
            _judge_host(report, host, requests)
    _judge_addresses(report, asked)
    judge_connections(report, lines)
    return report


def _plan(lines: Iterable[Line]) -> Plan:
    plans = {line.plan for line in lines if isinstance(line, Header)}
    if len(plans) != 1:
        raise UsageError(f"an audit needs the log of one simulated web, these lines are of {len(plans)}")
    return plans.pop()


def _by_host(asked: Iterable[Asked]) -> dict[str, list[Asked]]:
    hosts: dict[str, list[Asked]] = defaultdict(list)
    for each in asked:
        hosts[each.host].append(each)
    return hosts


def _count(report: Report, lines: Iterable[Line], asked: list[Asked]) -> None:
    report.requests, report.hosts = len(asked), len({each.host for each in asked})
    report.bytes = sum(each.bytes for each in asked)
    report.seconds = max((each.end for each in asked), default=0.0) - asked[0].arrival if asked else 0.0
    report.agents = list(dict.fromkeys(line.name for line in lines if isinstance(line, Agent)))
    report.statuses = {str(status) if status else "none": n for status, n in Counter(a.status for a in asked).items()}


def _judge_pages(report: Report, web: Web, asked: Iterable[Asked], reached: Reach) -> None:
    """Coverage, pages fetched twice, traps entered, sitemaps and resources read, URLs that no link may lead to."""
    fetched: Counter[tuple[str, str]] = Counter()
    resources: Counter[tuple[str, str]] = Counter()
    traps: dict[str, Counter[str]] = defaultdict(Counter)
    farms: Counter[str] = Counter()
    for each in asked:
        if each.target in PATHS:
            continue
        path, host = normal(each.target), web.by_name.get(each.host)
        found = web.look(host, path) if host else None
        kind = found.kind if isinstance(found, Odd) else None if found is None else Kind.PAGE
        if kind in LISTINGS:
            report.listings += 1
            continue
        if isinstance(found, Odd) and kind is Kind.RESOURCE:
            _count_resource(report, each, found, resources)
            continue
        report.page_requests += 1
        if host is None or kind is None:
            report.outside.add(_case(each))
        elif kind is Kind.TRAP:
            traps[host.feature][host.name] += 1
        elif kind is Kind.FARM:
            farms[host.name] += 1
        elif kind is Kind.QUIET:
            report.nofollow.add(_case(each))
        if each.status == 304 or (each.status == 200 and each.note != "aborted"):
            fetched[each.host, path] += each.status == 200
            if fetched[each.host, path] > 1:
                report.duplicates.add(_case(each))
    report.traps, report.farms = {str(name): dict(hosts) for name, hosts in traps.items()}, dict(farms)
    for host, path in reached.good():
        report.expected += 1
        if (host.name, path) not in fetched:
            report.missing.add(f"http://{host.name}{path}")
        if host.app and not host.walled:
            report.scripted += 1
            report.scripted_found += (host.name, path) in fetched
            report.scripted_filled += (host.name, web.api(host, path)) in resources
    orphans = reached.orphans()
    report.orphans, report.orphans_found = len(orphans), len(orphans & fetched.keys())


def _count_resource(report: Report, each: Asked, odd: Odd, resources: Counter[tuple[str, str]]) -> None:
    """Resources are no pages; that many pages need the same one is no reason to fetch it for each."""
    report.resources += 1
    if each.status == 200 and each.note != "aborted":
        resources[each.host, odd.path] += 1
        if resources[each.host, odd.path] > 1:
            report.resources_again.add(_case(each))


def _judge_host(report: Report, host: Host, requests: list[Asked]) -> None:
    """Everything that is a matter between a crawler and one host; `requests` in the order they came."""
    answered = _robots_answered(host, requests)
    busy_until, quiet_until = 0.0, 0.0
    last: Asked | None = None
    for each in requests:
        if each.target not in PATHS:
            _judge_robots(report, host, each, answered)
        if last is not None:
            _judge_gap(report, host, last, each)
        if each.arrival < busy_until - TOLERANCE:
            report.overlaps.add(f"{_case(each)} {busy_until - each.arrival:.3f} s before the last answer was out")
        if each.arrival < quiet_until - TOLERANCE:
            report.retry_after.add(f"{_case(each)} {quiet_until - each.arrival:.3f} s too soon")
        busy_until = max(busy_until, each.end)
        quiet_until = max(quiet_until, each.end + each.retry_after if each.retry_after else 0.0)
        last = each


def _robots_answered(host: Host, requests: Iterable[Asked]) -> float:
    """When the host had first made its rules known; infinity when it never did."""
    path = MOVED_TO if host.robots is Robots.MOVED else "/robots.txt"
    ends = (each.end for each in requests if each.target == path and 200 <= each.status < 500 and each.status != 429)
    return min(ends, default=float("inf"))


def _judge_robots(report: Report, host: Host, each: Asked, answered: float) -> None:
    if host.shut:
        report.robots.add(f"{_case(each)} of a host whose robots.txt ({host.robots}) forbids all")
    elif host.disallows(normal(each.target)):
        report.robots.add(f"{_case(each)} is disallowed")
    elif each.arrival < answered:
        report.robots.add(f"{_case(each)} before robots.txt was answered")


def _judge_gap(report: Report, host: Host, last: Asked, each: Asked) -> None:
    gap = each.arrival - last.arrival
    # A crawler cannot know the Crawl-delay while it is still asking for robots.txt.
    promised = report.delay if each.target in PATHS else max(report.delay, host.crawl_delay)
    if report.smallest_gap is None or gap < report.smallest_gap:
        report.smallest_gap = gap
    if report.smallest_margin is None or gap - promised < report.smallest_margin:
        report.smallest_margin = gap - promised
    if gap < promised - TOLERANCE:
        report.gaps.add(f"{_case(each)} {gap:.3f} s after {last.target}, promised {promised:g} s")


def _judge_addresses(report: Report, asked: Iterable[Asked]) -> None:
    last: dict[str, Asked] = {}
    for each in asked:
        before = last.get(each.address)
        if before and before.host != each.host and each.arrival - before.arrival < report.delay - TOLERANCE:
            report.shared_addresses.add(f"{_case(each)} after {before.host} on {each.address}")
        last[each.address] = each


def _case(each: Asked) -> str:
    return f"{each.arrival:.3f} http://{each.host}{each.target} ({each.status or 'no answer'})"
