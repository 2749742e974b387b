"""The audit passes a polite crawl, and finds each way of being impolite when one is planted in its log."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from harvestman.cli.main import main
from harvestman.errors import UsageError
from harvestman.sim.audit import audit
from harvestman.sim.hosts import Feature, Host, Robots, Sitemap
from harvestman.sim.log import Asked, header_line
from harvestman.sim.plan import Plan
from harvestman.sim.report import Report
from harvestman.sim.web import Web

PLAN = Plan(hosts=48, pages=9, seed=3)
web_of = cache(Web)
Visited = Callable[[Plan], list[Asked]]
Written = Callable[[Plan, list[Asked]], Path]


@pytest.fixture
def judged(visited: Visited, written: Written) -> Callable[[Callable[[list[Asked]], None]], Report]:
    """Crawls politely, lets the test spoil the log, judges it."""

    def judge(spoil: Callable[[list[Asked]], None]) -> Report:
        asked = visited(PLAN)
        spoil(asked)
        return audit(written(PLAN, asked))

    return judge


Judged = Callable[[Callable[[list[Asked]], None]], Report]


def some_host(robots: Robots | None = None, feature: Feature = Feature.PLAIN) -> Host:
    hosts = web_of(PLAN).hosts
    return next(
        host
        for host in hosts
        if (host.robots is robots if robots else not host.shut and not host.crawl_delay)
        and (robots or host.feature is feature)
    )


def after_all(asked: list[Asked], host: Host, target: str, status: int = 200, wait: float = 9.0) -> Asked:
    """One more request, long after the crawl."""
    when = max(each.end for each in asked) + wait
    return Asked(when, when + 0.01, "late", host.address, host.name, "GET", target, status, 100)


@pytest.mark.parametrize(
    "profile", ["clean", *(pytest.param(each, marks=pytest.mark.slow) for each in ("mixed", "wild"))]
)
def test_polite_crawl_passes_whole(profile: str, visited: Visited, written: Written) -> None:
    plan = dataclasses.replace(PLAN, profile=profile)
    report = audit(written(plan, visited(plan)))
    assert report.ok, report.render()
    assert (report.coverage, report.duplicates.count, report.outside.count) == (1.0, 0, 0)
    assert report.expected >= 29 * 9
    assert report.most_connections == 1


@pytest.mark.slow
def test_walk_and_pages_agree_on_every_url(visited: Visited, written: Written) -> None:
    """What the HTML links to is what the model says it links to: neither more nor less."""
    asked = visited(PLAN)
    web = web_of(PLAN)
    kinds = {web.kind(web.by_name[each.host], each.target) for each in asked if not each.target.startswith("/robots")}
    assert None not in kinds
    assert audit(written(PLAN, asked)).missing.examples == []


def test_missing_page(judged: Judged) -> None:
    def spoil(asked: list[Asked]) -> None:
        host = some_host()
        path = web_of(PLAN).path(host, 7)
        asked[:] = [each for each in asked if (each.host, each.target.split("#")[0]) != (host.name, path)]

    report = judged(spoil)
    assert report.missing.count == 1
    assert report.broken == ["coverage"]


def test_page_fetched_twice(judged: Judged) -> None:
    host = some_host()
    report = judged(lambda asked: asked.append(after_all(asked, host, "/?utm_source=x")))
    assert report.duplicates.count == 1
    assert report.broken == ["duplicates"]


@pytest.mark.parametrize("status", [304, 429, 503, 0])
def test_revisits_and_retries_are_no_duplicates(status: int, judged: Judged) -> None:
    report = judged(lambda asked: asked.append(after_all(asked, some_host(), "/", status)))
    assert report.ok, report.render()


@pytest.mark.parametrize(
    ("robots", "target", "words"),
    [
        (Robots.RULES, "/private/1", "is disallowed"),
        (Robots.HUGE, "/story.print", "is disallowed"),
        (Robots.CLOSED, "/", "forbids all"),
        (Robots.BROKEN, "/", "forbids all"),
        (Robots.SILENT, "/", "forbids all"),
    ],
)
def test_robots_broken(robots: Robots, target: str, words: str, judged: Judged) -> None:
    report = judged(lambda asked: asked.append(after_all(asked, some_host(robots), target)))
    assert report.robots.count == 1
    assert words in report.robots.examples[0]
    assert report.broken == ["robots"]


def test_page_before_robots_txt(judged: Judged) -> None:
    def spoil(asked: list[Asked]) -> None:
        host = some_host()
        asked[:] = [each for each in asked if (each.host, each.target) != (host.name, "/robots.txt")]

    report = judged(spoil)
    assert "before robots.txt" in report.robots.examples[0]


def test_redirected_robots_txt_counts_when_its_rules_came(judged: Judged) -> None:
    def spoil(asked: list[Asked]) -> None:
        host = some_host(Robots.MOVED)
        asked[:] = [each for each in asked if (each.host, each.target) != (host.name, "/robots-rules.txt")]

    assert judged(spoil).broken == ["robots"]


def test_gap_below_delay(judged: Judged) -> None:
    def spoil(asked: list[Asked]) -> None:
        asked.append(after_all(asked, some_host(), "/", 304))
        asked.append(dataclasses.replace(asked[-1], arrival=asked[-1].arrival + 0.9, end=asked[-1].end + 0.9))

    report = judged(spoil)
    assert report.broken == ["gaps"]
    assert report.smallest_gap == pytest.approx(0.9, abs=1e-5)


def test_gap_below_crawl_delay(judged: Judged) -> None:
    def spoil(asked: list[Asked]) -> None:
        asked.append(after_all(asked, some_host(Robots.DELAY), "/", 304))
        asked.append(dataclasses.replace(asked[-1], arrival=asked[-1].arrival + 1.5, end=asked[-1].end + 1.5))

    report = judged(spoil)
    assert report.broken == ["gaps"]
    assert report.smallest_margin == pytest.approx(-0.5, abs=1e-5)


def test_a_millisecond_is_forgiven(judged: Judged) -> None:
    def spoil(asked: list[Asked]) -> None:
        asked.append(after_all(asked, some_host(), "/", 304))
        asked.append(dataclasses.replace(asked[-1], arrival=asked[-1].arrival + 0.9995, end=asked[-1].end + 1))

    assert judged(spoil).ok


def test_retry_after_broken(judged: Judged) -> None:
    def spoil(asked: list[Asked]) -> None:
        asked.append(dataclasses.replace(after_all(asked, some_host(), "/", 429), note="retry=3"))
        asked.append(dataclasses.replace(asked[-1], arrival=asked[-1].end + 2, end=asked[-1].end + 2.1, note=""))

    report = judged(spoil)
    assert report.broken == ["retry_after"]
    assert report.retry_after.count == 1


def test_overlapping_requests(judged: Judged) -> None:
    def spoil(asked: list[Asked]) -> None:
        slow = after_all(asked, some_host(), "/", 304)
        asked.append(dataclasses.replace(slow, end=slow.arrival + 5))
        asked.append(dataclasses.replace(slow, arrival=slow.arrival + 2, end=slow.arrival + 2.1, connection="other"))

    report = judged(spoil)
    assert report.broken == ["overlaps"]


def test_nofollow_broken(judged: Judged) -> None:
    host = some_host(feature=Feature.TAGGED)
    report = judged(lambda asked: asked.append(after_all(asked, host, "/quiet/3")))
    assert report.broken == ["nofollow"]


def test_sixth_redirect_followed(judged: Judged) -> None:
    host = some_host(feature=Feature.REDIRECTS)
    report = judged(lambda asked: asked.append(after_all(asked, host, "/landing/6")))
    assert report.broken == ["nofollow"]


def test_traps_and_strays_are_counted(judged: Judged) -> None:
    host = some_host(feature=Feature.CALENDAR)
    before = judged(lambda _: None).trap_urls
    report = judged(lambda asked: asked.append(after_all(asked, host, "/calendar/2026/05", 304)))
    assert report.trap_urls == before + 1
    assert {"calendar", "sessions"} <= set(report.traps)
    assert report.traps["calendar"][host.name] == 25
    assert judged(lambda asked: asked.append(after_all(asked, host, "/favicon.ico", 404))).outside.count == 1


def test_trap_share_may_be_limited(visited: Visited, written: Written) -> None:
    log = written(PLAN, visited(PLAN))
    share = audit(log).trap_share
    assert 0.05 < share < 0.5
    assert audit(log, max_trap_share=share).ok
    assert audit(log, max_trap_share=share - 0.001).broken == ["traps"]
    assert main(["audit", str(log), "--max-trap-share", str(share)]) == 0
    assert main(["audit", str(log), "--max-trap-share", "0.02"]) == 5


def test_traps_and_farms_of_the_wild_web_are_told_apart(written: Written) -> None:
    plan = Plan(hosts=60, pages=9, profile="wild")
    asked: list[Asked] = []
    for feature, target in (
        (Feature.NESTED, "/guide/intro/intro/page.html"),
        (Feature.FACETS, "/catalog?sort=new&color=red"),
        (Feature.FARM, web_of(plan).entries(next(h for h in web_of(plan).hosts if h.feature is Feature.FARM))[-1].path),
    ):
        host = next(host for host in web_of(plan).hosts if host.feature is feature)
        asked.append(Asked(9.0, 9.1, "a", host.address, host.name, "GET", target, 200, 1))
    report = audit(written(plan, asked))
    assert {name: sum(hosts.values()) for name, hosts in report.traps.items()} == {"nested": 1, "facets": 1}
    assert list(report.farms) == [asked[-1].host]
    assert re.search(rf"\n  facets +1 on 1 host: {asked[1].host} 1\n", report.render())
    assert json.loads(report.to_json())["traps"]["nested"] == {asked[0].host: 1}


def test_sitemaps_are_counted_apart_and_may_be_read_again(judged: Judged) -> None:
    before = judged(lambda _: None)
    host = some_host()
    again = judged(lambda asked: asked.append(after_all(asked, host, "/sitemap.xml", 404)))
    assert again.ok, again.render()
    assert (again.listings, again.page_requests) == (before.listings + 1, before.page_requests)
    assert again.outside.count == 0
    assert before.orphans == before.orphans_found > 20


def test_unread_sitemap_costs_coverage(judged: Judged) -> None:
    report = judged(lambda asked: asked.__setitem__(slice(None), [a for a in asked if "/orphan/" not in a.target]))
    assert report.broken == ["coverage"]
    assert report.orphans - report.orphans_found == report.missing.count > 20


def test_sitemap_that_robots_forbids(judged: Judged) -> None:
    host = next(host for host in web_of(PLAN).hosts if host.sitemap is Sitemap.HIDDEN)
    assert judged(lambda asked: asked.append(after_all(asked, host, "/private/sitemap.xml"))).broken == ["robots"]
    assert judged(lambda asked: asked.append(after_all(asked, host, "/orphan/1"))).broken == ["nofollow"]


def test_connections_at_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    ask = Asked(2.0, 2.1, "a", "127.1.0.1", "h0001.test", "GET", "/robots.txt", 404, 9)
    other = dataclasses.replace(ask, arrival=4.0, end=4.1, connection="b")
    lines = ["O\t1.9\ta\t127.1.0.1\n", ask.line(), "O\t3.9\tb\t127.1.0.1\n", other.line(), "C\t5.0\ta\n", "C\t5.0\tb\n"]
    log.write_text(header_line(PLAN, 80, 0.0) + "".join(lines))
    report = audit(log)
    assert report.most_connections == 2
    assert report.crowded.examples == ["h0001.test: 2"]
    assert report.overlaps.count == 0


def test_hosts_of_one_address_are_reported_not_judged(judged: Judged) -> None:
    def spoil(asked: list[Asked]) -> None:
        hosts = [host for host in web_of(PLAN).hosts if host.address == web_of(PLAN).hosts[12].address]
        one = after_all(asked, hosts[0], "/robots.txt", 404)
        two = dataclasses.replace(one, host=hosts[1].name, arrival=one.arrival + 0.1, end=one.end + 0.2)
        asked += [one, two]

    before = judged(lambda _: None).shared_addresses.count
    report = judged(spoil)
    assert report.shared_addresses.count == before + 1
    assert report.ok


def test_log_over_restarts_and_several_logs_are_one_crawl(visited: Visited, written: Written, tmp_path: Path) -> None:
    asked = visited(PLAN)
    whole = written(PLAN, asked)
    half = len(asked) // 2
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text(header_line(PLAN, 80, 1.0) + "".join(each.line() for each in asked[:half]))
    two.write_text(header_line(PLAN, 81, 2.0) + "".join(each.line() for each in asked[half:]) + "R\t1.5\tcut sho")
    joined = audit([one, two])
    assert joined.ok, joined.render()
    assert joined.requests == audit(whole).requests


def test_other_logs_are_refused(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("127.0.0.1 - - GET / 200\n")
    with pytest.raises(UsageError, match="log:1"):
        audit(log)
    log.write_text(header_line(PLAN, 80, 0.0) + header_line(Plan(hosts=5), 80, 0.0))
    with pytest.raises(UsageError, match="one simulated web"):
        audit(log)


def test_report_reads_well(judged: Judged) -> None:
    report = judged(lambda asked: asked.append(after_all(asked, some_host(Robots.CLOSED), "/")))
    table = report.render()
    assert "Promises broken: robots." in table
    assert "100.00 %" in table
    facts = json.loads(report.to_json())
    assert (facts["ok"], facts["coverage"], facts["robots"]["count"]) == (False, 1.0, 1)


def test_bounds_of_the_crawl_bound_what_is_expected(written: Written) -> None:
    seeds = len(web_of(PLAN).seed_hosts())
    assert audit(written(PLAN, []), depth=0).expected == seeds
    near = audit(written(PLAN, []), seeds_only=True).expected
    assert seeds * 9 <= near < audit(written(PLAN, [])).expected
