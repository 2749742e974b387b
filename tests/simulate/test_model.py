"""The modelled web: the same for the same seed, of the size and shape it promises, made only where it is looked at."""

from __future__ import annotations

from collections import Counter
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvestman.errors import UsageError
from harvestman.model import FailureKind, Instant
from harvestman.policy.sites import site_of
from harvestman.policy.urls import host_of, request_form
from harvestman.simulate.chance import draw, last_event, next_event
from harvestman.simulate.hosts import STORM, Fate, Hosts, Oddity, Robots, site_number
from harvestman.simulate.model import BRANCHES, EVERY, ModelWeb
from harvestman.simulate.plan import DAY, PROFILES, START, Plan

seeds = st.integers(0, 1_000_000)


@given(seeds, st.floats(1e-7, 1e-3), st.floats(1e9, 2e9))
def test_changes_are_a_process_that_can_be_asked_at_any_moment(seed: int, rate: float, now: float) -> None:
    words = f"{seed} page"
    last, following = last_event(words, rate, now), next_event(words, rate, now)
    assert last <= now < following, seed
    assert last_event(words, rate, (now + following) / 2) == last, seed
    assert last_event(words, rate, following) == following, seed


def test_changes_come_as_often_as_their_rate_says() -> None:
    rate, at, count = 1 / 3_600, 1.7e9, 0
    end = at + 4_000 * 3_600
    while at < end:
        at = next_event("page", rate, at)
        count += 1
    assert 3_800 < count < 4_200


@given(st.text())
def test_a_draw_is_a_number_from_zero_to_one(words: str) -> None:
    assert 0.0 <= draw(words) < 1.0


@given(seeds, st.integers(1, 3_000))
def test_every_host_is_found_by_number_name_and_rank(seed: int, count: int) -> None:
    hosts = Hosts(Plan(count, count * 10, seed))
    number = seed % count
    host = hosts.at(number)
    assert hosts.named(host.name) == host, seed
    assert hosts.ranked(host.rank) == host, seed
    assert site_of(host.name) == site_of(hosts.at(site_number(number)).name), seed


def test_ranks_are_a_permutation() -> None:
    hosts = Hosts(Plan(999, 9_990))
    assert sorted(hosts.at(number).rank for number in range(999)) == list(range(1, 1_000))


def test_sizes_follow_zipf_and_add_up() -> None:
    hosts = Hosts(Plan(1_000, 100_000, profile="clean"))
    assert hosts.size(1) == pytest.approx(2 * hosts.size(2), rel=0.01)
    assert hosts.pages() == pytest.approx(100_000, rel=0.02)


def test_a_web_of_a_million_hosts_and_a_hundred_million_pages_is_there_at_once() -> None:
    web = ModelWeb(Plan(1_000_000, 100_000_000, seed=3))
    url = web.seeds(1)[0]
    for _ in range(30):
        reply = web(url, START)
        url = reply.links[-1] if reply.links else web.seeds(1)[0]
    assert web.hosts.size(1) > 6_000_000
    assert web.hosts.at.cache_info().currsize < 500


def reachable(web: ModelWeb) -> set[str]:
    """All that a crawler could find from the seeds, if every host was well."""
    found, rest = set(web.seeds()), web.seeds()
    while rest:
        url = rest.pop()
        host = web.hosts.named(host_of(url))
        assert host is not None
        if web.forbids(url):
            continue
        spot = web.spot(url)
        links = web._links(spot, url) if spot else ()
        new = {link for link in links if "?" not in link} - found
        found |= new
        rest += new
    return {url for url in found if web.spot(url) and not web.forbids(url)}


@pytest.mark.parametrize("profile", PROFILES)
def test_every_page_can_be_found(profile: str) -> None:
    web = ModelWeb(Plan(120, 1_500, seed=11, profile=profile))
    assert len(reachable(web)) == web.hosts.pages()


def test_links_are_in_the_form_we_request() -> None:
    web = ModelWeb(Plan(200, 4_000, profile="wild"))
    for seed in web.seeds():
        for link in web(seed, START).links:
            assert request_form(link) == link


def test_the_same_seed_is_the_same_web_and_another_is_another() -> None:
    one, same, other = (ModelWeb(Plan(100, 1_000, seed)) for seed in (1, 1, 2))
    now = Instant(START + 5 * DAY)
    answers = [[web(web.url(web.hosts.at(n), 0), now) for n in range(100)] for web in (one, same, other)]
    assert answers[0] == answers[1]
    assert answers[0] != answers[2]


def test_a_version_has_a_digest_and_an_etag_of_its_own() -> None:
    web = ModelWeb(Plan(10, 1_000, profile="clean"))
    url = next(
        link for link in web(web.seeds()[0], START).links if web.spot(link) and "etag" in web(link, START).headers
    )
    spot = web.spot(url)
    assert spot is not None
    truth = web.truth(spot)
    changes = Instant(truth.changes(START))
    before, at, after = (web(url, Instant(when)) for when in (START, changes - 0.01, changes + 0.01))
    assert (before.digest, before.headers["etag"]) == (at.digest, at.headers["etag"])
    assert after.digest != at.digest
    assert after.headers["etag"] != at.headers["etag"]


@pytest.mark.slow
def test_popular_pages_are_important() -> None:
    web = ModelWeb(Plan(100, 10_000, profile="clean"))
    counted = Counter(link for rank in range(1, 101) for page in _pages(web, rank) for link in page)
    best = web.hosts.ranked(1)
    expected = [web.truth(spot).weight for page in (0, 1, 5, 50) if (spot := web.spot(web.url(best, page)))]
    real = [counted[web.url(best, page)] for page in (0, 1, 5, 50)]
    assert real == sorted(real, reverse=True)
    # The home page also has a link from every page of its host, which is navigation and says nothing of importance.
    for measured, weight in list(zip(real, expected, strict=True))[1:]:
        assert abs(log(measured / weight)) < log(2), (measured, weight)


def _pages(web: ModelWeb, rank: int) -> list[list[str]]:
    host = web.hosts.ranked(rank)
    urls = [web.url(host, page) for page in range(host.size)]
    return [list(web._links(spot, url)) for url in urls if (spot := web.spot(url))]


def test_kinds_change_at_their_pace() -> None:
    web = ModelWeb(Plan(50, 20_000, profile="clean"))
    rates: dict[str, list[float]] = {}
    for rank in range(1, 6):
        host = web.hosts.ranked(rank)
        for page in range(0, host.size, 7):
            spot = web.spot(web.url(host, page))
            assert spot is not None
            rates.setdefault(spot.kind, []).append(1 / web.truth(spot).rate)
    for kind in ("news", "blog", "docs"):
        middle = sorted(rates[kind])[len(rates[kind]) // 2]
        assert middle == pytest.approx(EVERY[kind], rel=0.5), kind


def test_what_is_not_there_is_not_found() -> None:
    web = ModelWeb(Plan(10, 100))
    host = web.hosts.ranked(1)
    assert web(f"https://{host.name}/news/{host.size + BRANCHES}", START).status == 404
    assert web("https://elsewhere.test/", START).failure is FailureKind.DNS
    assert web("https://s999.test/", START).failure is FailureKind.DNS


def test_a_storm_ends() -> None:
    web = ModelWeb(Plan(60, 600, seed=5, profile="storm"))
    fates = Counter(web.hosts.at(n).fate for n in range(60))
    assert set(fates) == {Fate.SLOW, Fate.DOWN, Fate.FLAPPING, Fate.LIMITING}
    for number in range(60):
        host = web.hosts.at(number)
        during = [web(web.url(host, 0), Instant(STORM[0] + hour * 1_800)) for hour in range(48)]
        after = web(web.url(host, 0), STORM[1])
        assert after.status == 200, host
        assert after.failure is None, host
        if host.fate is Fate.DOWN:
            assert all(reply.failure is FailureKind.CONNECT for reply in during), host
        elif host.fate is Fate.LIMITING:
            assert {reply.status for reply in during} & {429, 503}, host


def test_robots_of_every_kind() -> None:
    web = ModelWeb(Plan(2_000, 20_000, profile="wild"))
    kinds = {web.hosts.at(n).robots: web.hosts.at(n) for n in range(2_000) if web.hosts.at(n).fate is Fate.WELL}
    assert set(kinds) == set(Robots)
    said = {kind: web(f"https://{host.name}/robots.txt", START) for kind, host in kinds.items()}
    assert said[Robots.NONE].status == 404
    assert said[Robots.LATE].status == 503
    assert b"Crawl-delay: %d" % kinds[Robots.DELAY].crawl_delay in said[Robots.DELAY].body
    assert web.forbids(f"https://{kinds[Robots.CLOSED].name}/")
    assert web.forbids(f"https://{kinds[Robots.RULES].name}/private/1")
    assert not web.forbids(f"https://{kinds[Robots.RULES].name}/")


def test_traps_have_no_end_and_farms_no_variety() -> None:
    web = ModelWeb(Plan(500, 50_000, profile="wild"))
    odd = {web.hosts.at(n).oddity: web.hosts.at(n) for n in range(500) if web.hosts.at(n).size > 20}
    url = f"https://{odd[Oddity.CALENDAR].name}/calendar/2026/12"
    reply = web._page(odd[Oddity.CALENDAR], url, "/calendar/2026/12", START)
    assert reply.links[1].endswith("/calendar/2027/1")
    farm = odd[Oddity.FARM]
    hashes = [web._page(farm, "", f"/{web._kind(farm, page)}/{page}", START).simhash for page in range(1, 20)]
    assert max((a ^ b).bit_count() for a in hashes for b in hashes) <= 2


@pytest.mark.parametrize("wrong", [{"hosts": 0}, {"hosts": 10, "pages": 9}, {"profile": "mild"}])
def test_a_plan_that_makes_no_sense(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="--"):
        Plan(**wrong)  # type: ignore[arg-type]  # on purpose
