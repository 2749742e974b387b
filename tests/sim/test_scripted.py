"""Scripted hosts: shells, scripts and content are there in every variety, a browser makes pages of them, and the audit
knows what of it is a page.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from html import unescape
from pathlib import Path
from threading import Thread

import pytest
from browsers import a_browser
from hypothesis import given
from hypothesis import strategies as st

from harvestman.cli.main import main
from harvestman.errors import UsageError
from harvestman.sim.apps import FRAMES
from harvestman.sim.audit import audit
from harvestman.sim.hosts import Feature, Host, Robots, Variety
from harvestman.sim.log import Asked
from harvestman.sim.odd import Kind, Odd
from harvestman.sim.pages import Press
from harvestman.sim.plan import Plan
from harvestman.sim.reach import reach
from harvestman.sim.replies import Replies, Reply
from harvestman.sim.report import Report
from harvestman.sim.requests import Ask, Manners
from harvestman.sim.server import SimServer
from harvestman.sim.web import Web

CLEAN = Plan(hosts=30, pages=9, profile="clean", scripted=0.5)
MIXED = Plan(hosts=48, pages=9, seed=3, scripted=0.25)
WEB, MIXED_WEB = Web(CLEAN), Web(MIXED)
Visited = Callable[[Plan], list[Asked]]
Written = Callable[[Plan, list[Asked]], Path]


@cache
def printed() -> Press:
    return Press(WEB, 8800)


@cache
def replies() -> Replies:
    return Replies(WEB, printed(), 1_800_000_000.0)


def scripted(web: Web = WEB) -> list[Host]:
    return [host for host in web.hosts if host.app]


def of(variety: Variety, web: Web = WEB) -> Host:
    return next(host for host in scripted(web) if host.app and host.app.variety is variety and not host.walled)


PLAINLY = Manners()


def ask(host: Host, target: str, manners: Manners = PLAINLY) -> Reply:
    return replies().reply(Ask(host.name, target, manners=manners), 1_800_000_001.0)


# -- the model


def test_nothing_is_scripted_unless_asked_for() -> None:
    bare = Web(Plan(hosts=48, pages=9, seed=3))
    assert not scripted(bare)
    assert {host.feature for host in bare.hosts}.isdisjoint({Feature.SCRIPTED})
    other = Web(MIXED)
    kept = [host for host in other.hosts if not host.app]
    assert kept == [bare.hosts[host.index] for host in kept]


@pytest.mark.parametrize("profile", ["clean", "mixed", "wild"])
@pytest.mark.parametrize("share", [0.01, 0.25, 1.0])
def test_the_share_is_had_from_hosts_that_can_be_crawled(profile: str, share: float) -> None:
    web = Web(Plan(hosts=60, pages=3, profile=profile, scripted=share))
    able = [host for host in web.hosts[1:] if host.resolves and not host.shut]
    assert len(scripted(web)) == min(len(able), -(-60 * share // 1))
    assert web.hosts[0].app is None
    for host in scripted(web):
        assert host.feature is Feature.SCRIPTED
        assert host.app
        cdn = web.hosts[host.app.cdn]
        assert not cdn.app
        assert cdn.site != host.site
        assert cdn.resolves
        assert not cdn.shut


def test_a_web_of_six_scripted_hosts_has_every_variety_and_one_wall() -> None:
    web = Web(Plan(hosts=20, pages=3, profile="clean", scripted=0.35))
    open_ones = [host.app for host in scripted(web) if host.app and not host.walled]
    assert {app.variety for app in open_ones} == set(Variety)
    assert len({app.frame for app in open_ones}) == FRAMES
    assert {app.xhr for app in open_ones} == {app.keyed for app in open_ones} == {False, True}
    assert [host.robots for host in scripted(web) if host.walled] == [Robots.API]


def test_each_variety_comes_in_every_way() -> None:
    ways = Counter(
        (app.variety, app.xhr, app.keyed)
        for app in (host.app for host in Web(Plan(200, 1, profile="clean", scripted=0.9)).hosts)
        if app
    )
    assert len(ways) == 6 * 2 * 2


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_shares_beyond_reason_are_refused(share: float) -> None:
    with pytest.raises(UsageError, match="scripted"):
        Plan(scripted=share)
    assert main(["sim", "--scripted", str(share)]) == 2


@given(st.sampled_from(scripted()), st.integers(0, 8))
def test_the_content_of_every_page_has_one_address(host: Host, page: int) -> None:
    path = WEB.path(host, page)
    api = WEB.api(host, path)
    found = WEB.odd(host, api)
    assert found
    assert (found.path, found.kind, found.target) == (api, Kind.RESOURCE, page)
    assert WEB.page(host, api) is None


STARTS = ("/api/", "/api/pages/", "/api/content?path=", "/api/v2/pages/", "/static/", "/libs/")


@given(
    st.sampled_from(scripted(MIXED_WEB)), st.sampled_from(STARTS), st.text("0123456789./~%2Fjson?path=", max_size=20)
)
def test_whatever_is_asked_for_is_nothing_or_has_a_name_of_its_own(host: Host, start: str, rest: str) -> None:
    found = MIXED_WEB.look(host, start + rest)
    if found is not None:
        assert isinstance(found, Odd)
        assert found.kind is Kind.RESOURCE
        assert MIXED_WEB.look(host, found.path) == found


def test_made_up_addresses_are_nothing() -> None:
    host = of(Variety.OWN)
    for path in (
        "/api/pages/9.json",
        "/api/pages/x.json",
        "/api/pages/1",
        "/api/",
        "/libs/config.json",
        "/static/x.js",
    ):
        assert WEB.look(host, path) is None
    by_path = next(host for host in scripted() if host.app and not host.app.keyed)
    assert WEB.look(by_path, f"/api/content?path={WEB.api(by_path, '/')}") is None
    assert ask(host, "/api/pages/9.json").status == 404
    assert WEB.look(WEB.hosts[0], "/static/app.js") is None


# -- what is served


def text_of(body: bytes) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body.decode())).split())


@pytest.mark.parametrize("variety", list(Variety))
def test_shells_say_nothing_and_content_says_what_the_page_would_have(variety: Variety) -> None:
    host = of(variety)
    for page in (0, 5):
        path = WEB.path(host, page)
        shell = ask(host, path)
        assert shell.status == 200
        assert b"text/html" in shell.head
        assert len(shell.body) < 900
        assert len(re.findall(rb"<script[^>]* src=", shell.body)) == (2 if variety is Variety.CDN else 1)
        assert b"<a " not in shell.body
        html = printed().page(host, page)
        data = json.loads(ask(host, WEB.api(host, path)).body)
        assert f"<h1>{data['headline']}</h1>".encode() in html
        assert html.count(b"<a href") == len(data["links"]) > 50
        whole = text_of(html)
        assert all(" ".join(words.split()) in whole for _, words in data["parts"] if "," not in words)
        assert len(data["parts"]) >= 3


def test_shells_without_a_key_are_the_same_for_all_pages() -> None:
    for host in scripted():
        assert host.app
        bodies = {ask(host, WEB.path(host, page)).body for page in range(9)}
        assert len(bodies) == (9 if host.app.keyed else 1)


def test_what_scripts_need_is_served_with_leave_for_other_sites() -> None:
    for host in scripted():
        for where, path in WEB.scripts(host):
            reply = ask(where, path)
            assert reply.status == 200
            assert (b"Access-Control-Allow-Origin: *\r\n" in reply.head) == (where is not host)
            assert WEB.kind(where, path) is Kind.RESOURCE
            assert (b"text/javascript" if path.endswith(".js") else b"application/json") in reply.head


def test_resources_and_shells_are_validated_and_compressed() -> None:
    host = of(Variety.OWN)
    for target in ("/", "/static/app.js", WEB.api(host, "/")):
        plain, zipped = ask(host, target), ask(host, target, Manners(gzip=True))
        assert gzip.decompress(zipped.body) == plain.body
        found = re.search(rb"ETag: (\S+)", plain.head)
        assert found
        assert ask(host, target, Manners(etag=found[1].decode(), conditional=True)).status == 304
        assert ask(host, target, Manners(etag='"other"', conditional=True)).status == 200


def test_walled_hosts_forbid_their_content_and_nothing_else() -> None:
    host = next(host for host in scripted() if host.walled)
    assert ask(host, "/robots.txt").body == b"User-agent: *\nDisallow: /api/\n"
    assert host.disallows(WEB.api(host, "/"))
    assert not host.disallows("/")
    assert not host.disallows("/static/app.js")


def test_odd_pages_of_scripted_hosts_are_shells_too() -> None:
    web = MIXED_WEB
    answering = Replies(web, Press(web, 80), 0.0)
    ruled = next(host for host in scripted(web) if host.ruled)
    for path in ("/private/open", "/story.print.html"):
        shell = answering.reply(Ask(ruled.name, path), 1.0)
        assert b"<script" in shell.body
        data = json.loads(answering.reply(Ask(ruled.name, web.api(ruled, path)), 1.0).body)
        assert path in data["headline"]
        assert ["/", "On to /", ""] in data["links"]


# -- reach and audit


@pytest.mark.parametrize("profile", ["clean", "mixed", "wild"])
def test_every_page_of_every_open_host_is_within_reach_of_a_browser(profile: str) -> None:
    web = Web(Plan(60, 9, profile=profile, scripted=0.3))
    walked = reach(web)
    for host in web.hosts:
        reached = sum(walked.pages[host.index * 9 : host.index * 9 + 9])
        if host.resolves and not host.shut and not host.walled:
            assert reached == 9
    unseen = reach(web, browser=False)
    assert sum(unseen.pages) < sum(walked.pages)


@pytest.fixture
def judged(visited: Visited, written: Written) -> Callable[[Callable[[list[Asked]], None]], Report]:
    def judge(spoil: Callable[[list[Asked]], None]) -> Report:
        asked = visited(MIXED)
        spoil(asked)
        return audit(written(MIXED, asked))

    return judge


Judged = Callable[[Callable[[list[Asked]], None]], Report]


def late(asked: list[Asked], host: Host, target: str) -> Asked:
    when = max(each.end for each in asked) + 9.0
    return Asked(when, when + 0.01, "late", host.address, host.name, "GET", target, 200, 100)


@pytest.mark.slow
def test_a_crawl_with_a_browser_passes_whole(judged: Judged) -> None:
    report = judged(lambda _: None)
    assert report.ok, report.render()
    assert (report.coverage, report.outside.count, report.resources_again.count) == (1.0, 0, 0)
    assert report.scripted == report.scripted_found == report.scripted_filled > 9 * 9
    assert report.resources > report.scripted
    assert re.search(r"\nscripted pages +(\d+) of \1 fetched, the content of \1\n", report.render())
    assert re.search(r"\nresources +\d+ requests; 0 for one had before\n", report.render())


@pytest.mark.slow
def test_resources_are_judged_like_all_requests_and_are_no_pages(judged: Judged) -> None:
    web, before = MIXED_WEB, judged(lambda _: None)
    walled = next(host for host in scripted(web) if host.walled)
    assert judged(lambda asked: asked.append(late(asked, walled, web.api(walled, "/")))).broken == ["robots"]
    host = of(Variety.LATE, web)

    def again(asked: list[Asked]) -> None:
        asked.append(late(asked, host, web.api(host, "/")))

    report = judged(again)
    assert report.ok, report.render()
    assert (report.resources_again.count, report.page_requests) == (1, before.page_requests)

    def hasty(asked: list[Asked]) -> None:
        again(asked)
        asked.append(dataclasses.replace(asked[-1], arrival=asked[-1].arrival + 0.5, end=asked[-1].end + 0.5))

    assert judged(hasty).broken == ["gaps"]


def test_content_that_was_never_asked_for_is_told(judged: Judged) -> None:
    host = of(Variety.LATE, MIXED_WEB)

    def spoil(asked: list[Asked]) -> None:
        asked[:] = [each for each in asked if not (each.host == host.name and each.target.startswith("/api/"))]

    report = judged(spoil)
    assert report.scripted_found == report.scripted
    assert report.scripted - report.scripted_filled >= 9


def test_a_crawl_without_a_browser_is_not_expected_to_have_what_scripts_make(written: Written) -> None:
    plan = Plan(hosts=30, pages=9, profile="clean", scripted=1.0)
    log = written(plan, [])
    seen = audit(log, browser=False).expected
    assert 9 < seen < audit(log).expected
    asked = [Asked(9.0, 9.1, "a", "127.1.0.1", "h0001.test", "GET", "/robots.txt", 404, 9)]
    assert main(["audit", str(written(plan, asked)), "--no-browser", "--min-coverage", "0"]) == 0


# -- a real browser


@contextmanager
def serving(plan: Plan) -> Iterator[SimServer]:
    server = SimServer(plan)
    server.start()
    thread = Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(5)


def dumped(server: SimServer, host: Host, path: str, folder: Path) -> str:
    """The DOM that Chromium has of a page once it is quiet."""
    web = server.web
    names = {where.name: where.address for where, _ in [(host, ""), *web.scripts(host)]}
    rules = ", ".join([*(f"MAP {name} {address}" for name, address in names.items()), "MAP * ~NOTFOUND"])
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --disable-extensions --no-proxy-server --virtual-time-budget=5000"
    )
    command = [a_browser(), *flags.split(), f"--user-data-dir={folder}", f"--host-resolver-rules={rules}", "--dump-dom"]
    ended = subprocess.run(
        [*command, f"http://{host.name}:{server.port}{path}"], capture_output=True, timeout=60, check=True
    )
    return ended.stdout.decode()


@pytest.mark.slow
@pytest.mark.parametrize("variety", list(Variety))
def test_chromium_makes_the_page(variety: Variety, tmp_path: Path) -> None:
    with serving(CLEAN) as server:
        host = of(variety, server.web)
        path = server.web.path(host, 5)
        press = Press(server.web, server.port)
        dom, html = dumped(server, host, path, tmp_path), press.page(host, 5).decode()
    headline = re.search("<h1>(.*?)</h1>", html)
    assert headline
    assert f"<h1>{headline[1]}</h1>" in dom
    assert f"<title>{headline[1]} | {host.name}</title>" in dom
    assert "first edition 0." in dom
    assert len(re.findall("<p>[^<]{20,}</p>", dom)) >= 3
    links = re.compile('<a href="([^"]+)"')
    assert links.findall(dom) == links.findall(html)


@pytest.mark.slow
def test_chromium_makes_no_page_when_another_site_gives_no_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The varieties that need CORS really need it."""
    validated = Replies._validated
    monkeypatch.setattr(Replies, "_validated", lambda self, *words: validated(self, *words[:3]))
    with serving(CLEAN) as server:
        for variety, made in ((Variety.CDN, True), (Variety.MODULE, False), (Variety.CONFIG, False)):
            dom = dumped(server, of(variety, server.web), "/", tmp_path / variety)
            assert ("<h1>" in dom) == made
