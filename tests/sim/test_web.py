"""The model: the same plan gives the same web, every page can be found, and every oddity is there."""

from __future__ import annotations

import gzip
import re
import statistics
import struct
import zlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from isal import isal_zlib

from harvestman.errors import UsageError
from harvestman.sim import fragments
from harvestman.sim.fragments import Shelf, bomb, member, member_python, piece, sealed
from harvestman.sim.hosts import Feature, Feed, Host, Robots, Sitemap
from harvestman.sim.listings import NEWS, ORPHANS
from harvestman.sim.odd import Kind, Odd
from harvestman.sim.pages import Press
from harvestman.sim.paths import normal, spelling
from harvestman.sim.plan import Plan
from harvestman.sim.reach import reach
from harvestman.sim.robots_txt import LIMIT, rules
from harvestman.sim.web import Web
from harvestman.sim.words import english_vocabulary


def test_equal_plans_give_equal_webs() -> None:
    one, two = (Press(Web(Plan(hosts=30, pages=9)), 80) for _ in range(2))
    assert one.web.hosts == two.web.hosts
    assert one.web.seeds(80) == two.web.seeds(80)
    for host in one.web.hosts[:5]:
        assert [one.page(host, page) for page in range(9)] == [two.page(host, page) for page in range(9)]


def test_another_seed_gives_another_web() -> None:
    one, two = (Press(Web(Plan(hosts=30, pages=9, seed=seed)), 80) for seed in (1, 2))
    assert one.page(one.web.hosts[3], 4) != two.page(two.web.hosts[3], 4)
    assert [host.robots for host in one.web.hosts] != [host.robots for host in two.web.hosts]


@pytest.mark.parametrize("profile", ["clean", "mixed", "wild"])
@pytest.mark.parametrize(
    ("hosts", "pages"), [(1, 1), (3, 2), (40, 1), (50, 9), pytest.param(80, 30, marks=pytest.mark.slow)]
)
def test_every_page_of_every_open_host_is_within_reach(profile: str, hosts: int, pages: int) -> None:
    walked = reach(Web(Plan(hosts, pages, profile=profile)), depth=20)
    assert sum(walked.pages) == sum(walked.open) * pages
    assert sum(walked.open) >= 0.7 * hosts


def test_a_mixed_web_of_forty_hosts_has_everything() -> None:
    web = Web(Plan(hosts=42, pages=3))
    assert {host.feature for host in web.hosts} == set(Feature) - {
        Feature.NESTED, Feature.FACETS, Feature.FARM, Feature.HUB, Feature.SCRIPTED
    }  # fmt: skip
    assert {host.robots for host in web.hosts} == set(Robots) - {Robots.API}
    assert {"www.h0007.test", "blog.h0007.test"} <= set(web.by_name)
    assert web.by_name["www.h0007.test"].site == "h0007.test"
    assert web.by_name["www.h0007.test"].address == web.by_name["h0007.test"].address


def test_the_clean_web_has_no_oddities() -> None:
    web = Web(Plan(hosts=300, pages=3, profile="clean"))
    assert {host.feature for host in web.hosts} == {Feature.PLAIN}
    assert {host.robots for host in web.hosts} == {Robots.NONE, Robots.ALLOW}
    assert len({host.address for host in web.hosts}) == len({host.site for host in web.hosts}) == 300


def test_ordinary_pages_are_never_disallowed() -> None:
    web = Web(Plan(hosts=60, pages=40))
    open_hosts = [host for host in web.hosts if not host.shut]
    assert not any(host.disallows(web.path(host, page)) for host in open_hosts for page in range(40))


def test_every_spelling_is_the_same_page() -> None:
    web = Web(Plan(hosts=40, pages=30))
    for host in web.hosts:
        for page in range(30):
            path = web.path(host, page)
            assert normal(path) == path
            for turn in range(8):
                assert web.look(host, spelling(path, turn).removeprefix("../../../..")) == page


@pytest.mark.slow
def test_sizes_links_and_words_are_like_the_webs() -> None:
    press = Press(Web(Plan(hosts=100, pages=20, profile="clean")), 8800)
    bodies = [press.page(host, page) for host in press.web.hosts for page in range(20)]
    sizes = sorted(map(len, bodies))
    assert 27_000 < statistics.median(sizes) < 33_000
    assert sizes[0] < 15_000
    assert 200_000 < sizes[-1] < 330_000
    assert 50 < statistics.mean(body.count(b"<a href") for body in bodies) < 70
    assert len(english_vocabulary()) > 1_700


def test_popularity_is_uneven() -> None:
    counts = Counter(host for roll in Web(Plan(hosts=100, pages=5)).rolls for host, _ in roll)
    assert counts.most_common(1)[0][1] > 20 * min(counts.values())


def test_gzip_bodies_are_valid_for_every_decoder() -> None:
    press = Press(Web(Plan(hosts=42, pages=12)), 8800)
    for host in press.web.hosts:
        for page in (0, 5, 11):
            plain, zipped = (press.page(host, page, zipped=each) for each in (False, True))
            assert gzip.decompress(zipped) == isal_zlib.decompress(zipped, 31) == zlib.decompress(zipped, 31) == plain
            assert len(zipped) < 0.6 * len(plain)


@given(st.lists(st.binary(max_size=300), max_size=6), st.binary(max_size=300))
def test_pieces_and_bytes_of_a_pages_own_join_to_one_gzip_member(texts: list[bytes], last: bytes) -> None:
    shelf = Shelf()
    parts = [shelf.add(piece(sealed(text))) if number % 2 else text for number, text in enumerate(texts)]
    assert shelf.plain(parts, last) == b"".join(map(sealed, texts)) + last
    assert zlib.decompress(shelf.zipped(parts, last), 31) == shelf.plain(parts, last)


ENTRY = struct.Struct("=III")


@given(st.lists(st.binary(max_size=70) | st.integers(0, 3)), st.binary(max_size=9), st.integers(0, 2**32 - 1))
def test_the_compiled_member_is_the_same(parts: list[bytes | int], end: bytes, size: int) -> None:
    shelf, table = bytearray(range(100)), bytearray()
    for at in range(4):
        table += ENTRY.pack(10 * at, 7 * at, 2**30 * at)
    seals = fragments._SEALS
    assert member(seals, shelf, table, parts, end, size) == member_python(seals, shelf, table, parts, end, size)


def test_the_compiled_member_is_used_and_checks_what_it_is_given() -> None:
    if member is member_python:
        pytest.skip("no compiler was at hand")
    assert member.__module__.endswith("_member")
    for part, error in ((4, IndexError), (-1, IndexError), (2**70, OverflowError), ("", TypeError)):
        with pytest.raises(error):
            member(fragments._SEALS, bytearray(9), bytearray(4 * ENTRY.size), [part], b"", 0)  # type: ignore[list-item]  # the point
    with pytest.raises(ValueError, match="too long"):
        member(fragments._SEALS, bytearray(), bytearray(), [bytes(65_516)], b"", 0)


@given(st.binary(max_size=300))
def test_a_seal_is_a_comment_that_brings_the_crc_to_naught(part: bytes) -> None:
    whole = sealed(part)
    assert zlib.crc32(whole) == 0
    assert re.fullmatch(rb"<!--[`a-o]{12}-->\n", whole[len(part) :])


def test_bomb_is_valid_and_small() -> None:
    packed = bomb(8)
    assert len(packed) < 100_000
    assert len(gzip.decompress(packed)) == 8 << 20


def test_pages_change_at_their_rate() -> None:
    web = Web(Plan(hosts=60, pages=10))
    host = next(host for host in web.hosts if host.feature is Feature.CHANGING)
    period = web.period(host, 1)
    versions = [web.version(host, 1, moment * period / 20) for moment in range(2000)]
    assert versions == sorted(versions)
    assert versions[-1] in (99, 100)
    assert web.version(host, 1, web.changed_at(host, 1, 7) + 1e-6) == 7
    assert web.version(host, 1, web.changed_at(host, 1, 7) - 1e-3) == 6
    press = Press(web, 80)
    assert press.page(host, 1, version=1) != press.page(host, 1, version=2)


def test_huge_robots_txt_has_its_rules_within_the_limit() -> None:
    body = rules(Robots.HUGE)
    assert body.find(b"Disallow: /private/") < LIMIT < body.find(b"\nDisallow: /\n") < len(body)


def test_traps_end_on_the_mixed_web_and_not_on_the_wild() -> None:
    for profile, ended in (("mixed", True), ("wild", False)):
        web = Web(Plan(hosts=60, pages=3, profile=profile))
        for feature in (Feature.CALENDAR, Feature.PAGINATION, Feature.SESSIONS):
            host = next(host for host in web.hosts if host.feature is feature)
            assert (len(entered(web, host, Kind.TRAP)) < 100) == ended


def entered(web: Web, host: Host, kind: Kind, most: int = 200) -> set[str]:
    """The URLs of a kind that lie behind the last odd link of a host, as far as `most`."""
    odd = web.look(host, web.entries(host)[-1].path)
    assert isinstance(odd, Odd)
    found, ahead = set[str](), [odd.path] if odd.kind is kind else list(odd.links)
    while ahead and len(found) < most:
        path = normal(ahead.pop())
        odd = web.look(host, path)
        assert isinstance(odd, Odd)
        assert odd.kind is kind
        found.add(path)
        ahead += [link for link in odd.links if normal(link) not in found]
    return found


WILD = Web(Plan(hosts=120, pages=9, profile="wild"))


def wild(feature: Feature) -> Host:
    return next(host for host in WILD.hosts if host.feature is feature and not host.shut)


@pytest.mark.parametrize("feature", [Feature.NESTED, Feature.FACETS])
def test_wild_traps_have_no_end(feature: Feature) -> None:
    assert len(entered(WILD, wild(feature), Kind.TRAP, 2_000)) == 2_000


def test_nested_links_are_relative() -> None:
    body = Press(WILD, 80).odd_page(wild(Feature.NESTED), odd_at(Feature.NESTED, "/guide/intro/setup/page.html"))
    assert b'href="intro/page.html"' in body
    assert b'href="setup/page.html"' in body


def odd_at(feature: Feature, path: str) -> Odd:
    odd = WILD.look(wild(feature), path)
    assert isinstance(odd, Odd)
    return odd


def test_filters_lead_to_one_more_filter_in_any_order() -> None:
    assert odd_at(Feature.FACETS, "/catalog").kind is Kind.PAGE
    odd = odd_at(Feature.FACETS, "/catalog?sort=new&color=red")
    assert odd.kind is Kind.TRAP
    orders = {tuple(part.split("=")[0] for part in link.partition("?")[2].split("&")) for link in odd.links}
    assert {("color", "sort", "size"), ("size", "color", "sort")} <= orders
    assert WILD.look(wild(Feature.FACETS), "/catalog?color=plaid") is None


def test_a_content_farm_is_near_duplicates_to_96_percent() -> None:
    host = wild(Feature.FARM)
    found = entered(WILD, host, Kind.FARM, 1_000)
    assert len(found) / (len(found) + WILD.plan.pages) == 0.96
    press = Press(WILD, 80)
    bodies = [press.odd_page(host, odd_at(Feature.FARM, path)) for path in sorted(found)[:2]]
    assert bodies[0] != bodies[1]
    assert len(set(words(bodies[0])) ^ set(words(bodies[1]))) < 0.1 * len(set(words(bodies[0])))


def words(body: bytes) -> list[str]:
    """Of the text, in threes."""
    text = re.sub(r"<[^>]*>", " ", body.decode().partition("<main>")[2].partition("</main>")[0]).split()
    return [" ".join(text[at : at + 3]) for at in range(len(text))]


@pytest.mark.parametrize(
    ("feature", "one", "other"),
    [
        (Feature.CALENDAR, "/calendar/2026/01", "/calendar/2150/11"),
        (Feature.PAGINATION, "/list?page=3", "/list?page=400"),
        (Feature.SESSIONS, "/s/00000000/item-1", "/s/12345678/item-3"),
        (Feature.NESTED, "/guide/intro/page.html", "/guide/intro/setup/page.html"),
        (Feature.FACETS, "/catalog?color=red", "/catalog?color=blue&sort=new"),
    ],
)
def test_trap_pages_look_like_pages_and_like_one_another(feature: Feature, one: str, other: str) -> None:
    press = Press(WILD, 80)
    first, second = (words(press.odd_page(wild(feature), odd_at(feature, path))) for path in (one, other))
    assert len(first) > 150
    assert first != second
    assert len(set(first) ^ set(second)) <= 12


def test_a_hub_links_to_thousands_of_pages() -> None:
    host, press = wild(Feature.HUB), Press(WILD, 80)
    body = press.odd_page(host, odd_at(Feature.HUB, "/links"))
    assert body.count(b"<a href") > 3_000


# -- sitemaps and feeds


@pytest.mark.parametrize("profile", ["mixed", "wild"])
def test_a_third_of_the_hosts_have_a_sitemap_of_every_sort(profile: str) -> None:
    web = Web(Plan(hosts=120, pages=3, profile=profile))
    assert {host.sitemap for host in web.hosts} == set(Sitemap)
    assert {host.feed for host in web.hosts} == set(Feed)
    assert 0.3 < sum(host.sitemap is not Sitemap.NONE for host in web.hosts) / 120 < 0.5
    changing = [host for host in web.hosts if host.feature is Feature.CHANGING]
    assert {host.lying for host in changing if host.sitemap is not Sitemap.NONE} == {True, False}


def test_the_clean_web_has_neither_sitemap_nor_feed() -> None:
    web = Web(Plan(hosts=120, pages=3, profile="clean"))
    assert {(host.sitemap, host.feed) for host in web.hosts} == {(Sitemap.NONE, Feed.NONE)}


def test_orphans_count_only_where_their_sitemap_may_be_read() -> None:
    web = Web(Plan(hosts=120, pages=9))
    walked = reach(web)
    orphans = walked.orphans()
    for host in web.hosts:
        at, _ = web.sitemap(host) or (host, "")
        lists = host.sitemap is not Sitemap.NONE and all(each.resolves and not each.shut for each in (host, at))
        assert ((host.name, "/orphan/1") in orphans) == (lists and host.sitemap is not Sitemap.HIDDEN)
        if lists and host.sitemap is Sitemap.HIDDEN:
            assert web.kind(host, "/orphan/1") is Kind.QUIET
    assert {path for _, path in orphans} == {*ORPHANS, *NEWS}
    assert orphans <= {(host.name, path) for host, path in walked.good()}


def test_orphans_are_linked_from_no_page() -> None:
    press = Press(Web(Plan(hosts=40, pages=9)), 80)
    assert not any(b"orphan" in press.page(host, page) for host in press.web.hosts for page in range(9))


def test_a_senseless_plan_is_refused() -> None:
    with pytest.raises(UsageError, match="clean, mixed, wild"):
        Plan(profile="tidy")
    with pytest.raises(UsageError, match="hosts"):
        Plan(hosts=0)
