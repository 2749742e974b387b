"""Traps: what URLs look like, what is refused on sight, what is learned, what is forgiven."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from random import Random
from time import process_time

import pytest
import suites
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from harvestman.config import Budget, Traps
from harvestman.model import Instant, SiteKey, SiteRecord, Trap
from harvestman.policy.novelty import EVERY
from harvestman.policy.traps import (
    CREDIT,
    PARAMETERS,
    ROPE,
    SHAPES,
    TRAPS,
    Fan,
    caught,
    fan_out,
    learn,
    pardon,
    refusal,
    refused,
    shape_of,
    slipped,
    suspect,
    turned_away,
)

RULES = Traps()
NOW = Instant(1_700_000_000.0)
SAME = 0x0123456789ABCDEF


def a_site(fetched: int = 0) -> SiteRecord:
    return SiteRecord(SiteKey("a.test"), Instant(0.0), fetched=fetched)


def meet(site: SiteRecord, path: str, simhash: int = SAME, *links: str) -> Trap | None:
    return learn(site, "http://a.test" + path, simhash, False, ["http://a.test" + link for link in links], NOW, RULES)


def stopped(site: SiteRecord, url: str) -> Trap | None:
    key = caught(site, url)
    return site.traps[key] if key else None


def fresh(number: int) -> int:
    """A SimHash like no other."""
    return Random(number).getrandbits(64) | 1


def until_stopped(site: SiteRecord, paths: Iterator[str]) -> int:
    """How many pages of one text it takes, the first of them new."""
    for pages, path in enumerate(paths, start=1):
        if meet(site, path):
            return pages
    raise AssertionError("never stopped")


def months() -> Iterator[str]:
    return (f"/calendar/{month // 12:04d}/{month % 12 + 1:02d}" for month in range(24_000, 30_000))


# -- looks


@for_each(
    ("path", "shape"),
    [
        ("/", "/"),
        ("/about/us", "/about/us"),
        ("/item/123", "/item/{n}"),
        ("/calendar/2026/01", "/calendar/{date}"),
        ("/2026/01/15/dog", "/{date}/dog"),
        ("/day/2026-01-15", "/day/{date}"),
        ("/year/2026", "/year/{n}"),
        ("/news/a-fine-old-dog-17.html", "/news/{s}.html"),
        ("/news/fine-dog-17.html", "/news/fine-dog-{n}.html"),
        ("/wiki/%C3%A9t%C3%A9", "/wiki/{s}"),
        ("/s/0a1b2c3d/item-4", "/s/{x}/item-{n}"),
        ("/o/3f2504e0-4f89-11d3-9a0c-0305e82c3301", "/o/{x}"),
        ("/v/dQw4w9WgXcQ", "/v/{x}"),
        ("/list?page=3", "/list?page"),
        ("/list?b=1&a=2&b=3", "/list?a&b"),
        ("/list?f[0]=a&f[1]=b", "/list?f[{n}]"),
        ("/list?a=1&b=2&c=3&d=4&e=5", "/list?{many}"),
        ("/list?", "/list?"),
    ],
)
def test_shape(path: str, shape: str) -> None:
    assert shape_of("https://www.a.test:8080" + path) == shape


@for_each(
    ("path", "name"),
    [
        ("/", ""),
        ("/articles/2015/01/fine-dog-12", ""),
        ("/item?id=12", ""),
        ("/index.php?cat=news&id=12", ""),
        ("/p/12/fine-dog", ""),
        ("/article.php?sid=1234", ""),
        ("/s?q=wordpress&s=12345678", ""),
        ("/a/b/b/c", ""),
        ("/servo/servo/wiki/Roadmap", ""),
        ("/news/2020/10/10/dog", ""),
        ("/viewforum.php?f=2", ""),
        ("/index.php?view=news", ""),
        ("/find?resort=zermatt", ""),
        ("/index.php?option=content&view=article&id=12", ""),
        ("/calendar/2026/01", "calendar"),
        ("/Events/month/2026-01", "calendar"),
        ("/2019/05/", "calendar"),
        ("/show?year=2026&month=1", "calendar"),
        ("/shop/item-0?sid=00000000", "session id"),
        ("/shop/item-0?PHPSESSID=0a1b2c3d4e5f&page=2", "session id"),
        ("/shop;jsessionid=0A1B2C", "session id"),
        ("/(S(lit3py55t21z5v55vlm25s55))/orders.aspx", "session id"),
        ("/s/0a1b2c3d/item-4", "session id"),
        ("/list?page=3", "pagination"),
        ("/tag/dog/page/3/", "pagination"),
        ("/shoes?colour=red", "facets"),
        ("/shoes?sort_by=price", "facets"),
        ("/shoes?view=grid", "facets"),
        ("/shoes?colour=red&size=9", "facets"),
        ("/shoes?f%5B0%5D=red&f%5B1%5D=9", "facets"),
        ("/shoes?a=1&b=2&c=3&d=4&e=5", "facets"),
        ("/a/b/a/b", "repetition"),
        ("/img/img/img/", "repetition"),
        ("/guide/intro/intro/page.html", "repetition"),
        ("/guide/intro/setup/intro/page.html", "repetition"),
    ],
)
def test_suspect(path: str, name: str) -> None:
    assert suspect("http://a.test" + path) == name


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=300))
def test_any_url_has_a_shape_a_look_and_a_verdict(text: str) -> None:
    url = "http://a.test/" + text
    assert shape_of(url).startswith("/")
    assert suspect(url) in {"", *ROPE}
    assert refusal(url, RULES) in {None, "repetition", "parameters", "path depth"}


@for_each(
    ("path", "name"),
    [
        ("/a/b/c/d/e/f/g/h", None),
        ("/a/b/a/b/c", None),
        ("/x/x/x", None),
        ("/0/0/0/0", None),
        ("/2020/10/10/10/10-10", None),
        ("/x/x/x/x", "repetition"),
        ("/en/a/b/a/b/a/b/index.html?q=1", "repetition"),
        ("/a/b/c/a/b/c/a/b/c/", "repetition"),
        ("/" + "a/b" * 51, "path depth"),
        ("/?" + "&".join(f"p{n}" for n in range(PARAMETERS + 1)), "parameters"),
        ("/?" + "&".join(f"p{n}" for n in range(PARAMETERS)), None),
        ("/" + "a" * 2048, "url length"),
        ("/login?next=%252Flogin%253Fnext%253D%25252F", None),
        ("/login?next=%252Flogin%253Fnext%253D%25252Flogin%25253Fnext%25253D%2525252F", "repetition"),
    ],
)
def test_refusal(path: str, name: str | None) -> None:
    rules = Traps(site_depth=50)
    assert refusal("http://a.test" + path, rules) == name


@suites.needed
def test_real_links_are_not_refused_and_seldom_suspect() -> None:
    links = {
        link for row in suites.rows("html/links_realpages.jsonl.gz") for link in row["links"] if link.count("/") > 2
    }
    assert sum(refusal(link, RULES) is not None for link in links) <= 1
    assert sum(suspect(link) != "" for link in links) < 0.02 * len(links)


@pytest.mark.parametrize(
    "path",
    [
        "/" + "a/" * 1_000,
        "/" + "a/b/" * 500,
        "/" + "0" * 2_000,
        "/" + "0a/" * 600,
        "/" + "aB1-" * 500,
        "/?" + "sess" * 500,
        "/?" + "&sess" * 400,
        "/?" + "filter" * 300 + "&filter" * 29,
        "/?" + "&" * 2_000,
        "/" + "%25" * 600,
        "/" + "(s(" * 600,
    ],
)
def test_hostile_urls_cost_little_and_leave_little(path: str) -> None:
    url, calls = "http://a.test" + path, 20
    started = process_time()
    for _ in range(calls):
        suspect(url)
        refusal(url, Traps(site_depth=10_000))
        shape_of(url)
    assert (process_time() - started) / calls < 0.005
    assert len(shape_of(url)) <= 200


# -- learning


def test_a_known_trap_on_a_small_site_costs_two_pages() -> None:
    assert until_stopped(a_site(), months()) == 2
    assert until_stopped(a_site(), (f"/list?page={n}" for n in range(1, 99))) == 2
    assert until_stopped(a_site(), (f"/shop/item-1?sid={n:08x}" for n in range(0xABC0, 0xABFF))) == 2


def test_a_large_site_has_rope() -> None:
    # The first page is new, and outweighs half a dull one.
    assert until_stopped(a_site(1_000), months()) == 4
    assert until_stopped(a_site(10**6), months()) == 1 + ROPE["calendar"].most
    assert until_stopped(a_site(10**6), (f"/list?page={n}" for n in range(99))) == 1 + ROPE["pagination"].most


def test_any_shape_is_stopped_after_a_hundred_dull_pages() -> None:
    site = a_site()
    assert until_stopped(site, (f"/item/{n}" for n in range(999))) == 1 + RULES.shape_urls
    assert site.traps["/item/{n}"] == Trap("same content", NOW, "http://a.test/item/100")
    assert stopped(site, "http://a.test/item/7") is site.traps["/item/{n}"]
    assert stopped(site, "http://a.test/item/seven") is None, "the shape, not the site"


def test_a_hundred_pages_of_one_template_are_not_a_trap() -> None:
    site = a_site()
    assert not any(meet(site, f"/product/{n}") for n in range(100))
    assert not any(meet(site, f"/shop/{n}") for n in range(99))


def test_a_trap_with_something_new_now_and_then_is_stopped_all_the_same() -> None:
    site = a_site()
    for number in range(2_000):
        if meet(site, f"/item/{number}", fresh(number) if number % 40 == 0 else SAME):
            break
    assert stopped(site, "http://a.test/item/1")


def test_a_shape_with_one_new_page_in_ten_goes_on() -> None:
    site = a_site()
    assert not any(meet(site, f"/item/{n}", fresh(n) if n % 10 == 0 else SAME) for n in range(5_000))


def test_a_forum_with_sessions_in_its_urls_goes_on() -> None:
    """What a suspicious shape brought speaks for it: one copy in four topics is no trap."""
    site, token = a_site(), Random(1)
    paths = (f"/viewtopic.php?t={n}&sid={token.getrandbits(64):016x}" for n in range(2_000))
    assert not any(meet(site, path, SAME if n % 4 == 3 else fresh(n)) for n, path in enumerate(paths))


def test_credit_is_bounded() -> None:
    site = a_site()
    for number in range(500):
        meet(site, f"/list?page={number}", fresh(number))
    dull = until_stopped(site, (f"/list?page={n}" for n in range(500, 999)))
    assert dull <= CREDIT // 2 + 2


def test_a_list_that_leads_to_new_pages_is_no_trap_though_its_text_is_the_same() -> None:
    site = a_site()
    assert not any(meet(site, f"/list?page={n}", SAME, f"/item/{n}", f"/list?page={n + 1}") for n in range(300))
    assert not any(meet(site, f"/list?page={n}", SAME, f"/list?page={n + 1}") for n in range(300, 310))
    assert until_stopped(site, (f"/list?page={n}" for n in range(310, 400))) < 20


@pytest.mark.parametrize(
    "link", ["http://a.test/", "http://b.test/dog", "http://a.test/list?page=9", "http://a.test/x/1"]
)
def test_what_leads_home_elsewhere_or_into_a_trap_is_no_excuse(link: str) -> None:
    site = a_site()
    until_stopped(site, (f"/x/{n}" for n in range(200)))
    found = [learn(site, f"http://a.test/list?page={n}", SAME, False, [link], NOW, RULES) for n in range(2)]
    assert any(found)


def test_a_site_caught_once_gets_no_rope_for_the_same_trick() -> None:
    site = a_site(10**6)
    until_stopped(site, (f"/s/{n:08x}/item-1" for n in range(0xABC0, 0xABFF)))
    assert until_stopped(site, (f"/shop/item-1?sid={n:08x}" for n in range(0xABC0, 0xABFF))) == 1
    assert until_stopped(site, months()) > 1


# -- families


MIXTURES = [path for depth in range(1, 9) for path in product(("intro", "setup"), repeat=depth)]


def nested(words: Sequence[str]) -> str:
    return f"/guide/{'/'.join(words)}/page.html"


def test_links_that_nest_are_stopped_in_every_mixture_and_nothing_else_is() -> None:
    site = a_site()
    pages = until_stopped(site, map(nested, MIXTURES))
    assert pages <= 6
    assert list(site.traps) == ["/guide/**"]
    for words in MIXTURES:
        repeats = len(set(words)) < len(words)
        assert (caught(site, "http://a.test" + nested(words)) == "/guide/**") == repeats
    for honest in ("/guide/", "/guide/intro/setup/more/page.html", "/guide/2020/10/10/dog", "/help/intro/setup/intro/"):
        assert not caught(site, "http://a.test" + honest)


def test_one_word_that_comes_again_takes_two_dull_pages() -> None:
    site = a_site_that_knows(SAME)
    assert meet(site, "/news/sport/club/sport/") is None
    assert meet(site, "/news/music/club/music/")
    assert meet(a_site_that_knows(SAME), "/x/ab/cd/ab/cd")


def a_site_that_knows(simhash: int) -> SiteRecord:
    site = a_site()
    meet(site, "/known", simhash)
    return site


NAMES = ("brand", "color", "price", "size", "sort", "view_style")


def choices(path: str = "/catalog") -> Iterator[str]:
    sets = (names for count in range(1, 7) for names in combinations(NAMES, count))
    return (path + "?" + "&".join(f"{name}=a{len(names)}" for name in names) for names in sets)


def test_filters_are_stopped_whatever_their_names_and_the_catalogue_goes_on() -> None:
    site = a_site()
    assert until_stopped(site, choices()) == 2
    assert list(site.traps) == ["/catalog?**"]
    assert all(caught(site, "http://a.test" + path) == "/catalog?**" for path in choices())
    honest = ("", "?page=2", "?id=7", "?id=7&lang=en", "?page=2&sort=price", "/boots", "/boots?colour=red&size=9")
    assert not any(caught(site, "http://a.test/catalog" + end) for end in honest)


def farmed(number: int) -> str:
    """Pages of a content farm: a town or two, and each a shape of its own."""
    first, second = divmod(number, 26)
    return f"/service/plumber-{chr(97 + first)}{chr(97 + second)}ville"


def test_a_hundred_names_for_one_text_stop_their_directory() -> None:
    site = a_site()
    assert until_stopped(site, map(farmed, range(600))) == 1 + RULES.shape_urls
    assert list(site.traps) == ["/service/*"]
    assert site.traps["/service/*"].name == "same content"
    assert caught(site, "http://a.test" + farmed(599)) == "/service/*"
    for honest in ("/service/", "/service/12", "/service/plumber?id=1", "/service/area/north", "/plumber-aaville"):
        assert not caught(site, "http://a.test" + honest)
    assert len(site.shapes) <= SHAPES + 1


def test_names_with_something_new_now_and_then_go_on() -> None:
    site = a_site()
    assert not any(meet(site, farmed(n), fresh(n) if n % 10 == 0 else SAME) for n in range(600))


def test_a_page_that_differs_in_a_line_is_new_and_speaks_for_no_other() -> None:
    site, line = a_site(), 0b11111
    pages = [(farmed(n), SAME ^ line << n // 10 % 12 * 5 if n % 10 == 0 else SAME) for n in range(600)]
    stop = next(count for count, (path, simhash) in enumerate(pages, start=1) if meet(site, path, simhash))
    assert stop <= 1.2 * RULES.shape_urls
    site = a_site()
    pages = [(farmed(n), 0 if n % 10 == 0 else SAME) for n in range(600)]
    assert any(meet(site, path, simhash) for path, simhash in pages), "pages without text"


def test_a_directory_is_not_stopped_for_one_dull_shape_in_it() -> None:
    """Reply forms are all alike, and the topics beside them are not."""
    site = a_site()
    for number in range(300):
        meet(site, f"/forum/reply-{number}")
    assert list(site.traps) == ["/forum/reply-{n}"]
    assert not caught(site, "http://a.test/forum/topic-of-dogs")


def test_filters_of_a_very_long_path_are_a_family_too() -> None:
    site, path = a_site(), "/" + "/".join(f"{'abcdefghij'[n]}bcdefghij" * 3 for n in range(8))
    assert until_stopped(site, choices(path)) == 2
    assert all(caught(site, "http://a.test" + url) for url in choices(path))
    assert not caught(site, "http://a.test" + path)


def test_there_is_no_family_of_a_whole_site() -> None:
    site = a_site()
    assert not any(meet(site, farmed(n).removeprefix("/service")) for n in range(600))


def test_a_pardoned_family_goes_on_and_its_shapes_with_it() -> None:
    for key, paths in (
        ("/guide/**", [nested(words) for words in MIXTURES]),
        ("/catalog?**", list(choices())),
        ("/service/*", [farmed(n) for n in range(300)]),
    ):
        site = a_site()
        until_stopped(site, iter(paths))
        assert pardon(site, key)
        assert not any(meet(site, path) for path in paths * 2)
        assert not any(caught(site, "http://a.test" + path) for path in paths)


def test_a_pardoned_shape_is_not_stopped_with_its_family() -> None:
    site = a_site()
    until_stopped(site, (f"/service/offer-{n}" for n in range(200)))
    assert pardon(site, "/service/offer-{n}")
    until_stopped(site, map(farmed, range(300)))
    assert not caught(site, "http://a.test/service/offer-7")
    assert caught(site, "http://a.test" + farmed(1)) == "/service/*"


def test_what_a_trap_leads_to_is_part_of_it_when_it_looks_like_it() -> None:
    site, source = a_site(), "http://a.test/shop?sid=0000abcd"
    until_stopped(site, (f"/shop?sid={n:08x}" for n in range(0xABC0, 0xABFF)))
    link = "http://a.test/s/0a1b2c3d/item-4"
    assert caught(site, link, source) == "/shop?sid"
    assert not caught(site, link)
    assert not caught(site, link, "http://a.test/")
    assert not caught(site, link, "http://b.test/shop?sid=0000abcd"), "another host's pages may look the same"
    assert not caught(site, "http://a.test/item-4", source), "it looks honest"
    assert not caught(site, "http://a.test/calendar/2026/01", source), "it looks like something else"
    pardon(site, "/shop?sid")
    assert not caught(site, link, source)


def test_lists_do_not_spread() -> None:
    site = a_site()
    until_stopped(site, (f"/list?page={n}" for n in range(1, 99)))
    assert not caught(site, "http://a.test/tag/dogs?page=2", "http://a.test/list?page=3")


def test_a_farm_that_was_stopped_early_is_flagged_for_what_it_was_spared() -> None:
    site, rules = a_site(), Budget()
    for number in range(20):
        meet(site, f"/about/{number}", fresh(number))
    until_stopped(site, map(farmed, range(300)))
    for _ in range(1_000):
        turned_away(site, "/service/*", rules)
        if site.flagged:
            break
    trap = site.traps["/service/*"]
    assert site.flagged.startswith("content farm: 100 of 121 pages say what others of the site say, and ")
    assert site.flagged.endswith(f" {trap.refused} like them were not asked for")
    assert 290 <= trap.refused <= 300
    assert not turned_away(site, "/service/*", rules).pardoned


def test_a_calendar_makes_no_farm_of_a_site() -> None:
    site = a_site()
    until_stopped(site, months())
    for _ in range(1_000):
        turned_away(site, "/calendar/{date}", Budget())
    assert not site.flagged


words = st.sampled_from(["dog", "cat", "owl", "elk", "10", "a"])


@given(st.lists(words, min_size=1, max_size=7), st.sampled_from(["", "?colour=red", "?id=7", "?a=1&size=2&sort=up"]))
def test_a_url_stopped_by_a_family_looks_like_it(segments: list[str], query: str) -> None:
    url = f"http://a.test/guide/{'/'.join(segments)}{query}"
    site, shape = a_site(), f"/guide/{'/'.join(segments)}"
    for key in ("/guide/**", f"{shape_of('http://a.test' + shape)}?**"):
        site.traps[key] = Trap("", NOW, "")
    key = caught(site, url)
    assert key != "/guide/**" or suspect(url.partition("?")[0]) == "repetition"
    assert not key.endswith("?**") or suspect(url) == "facets"
    assert key or suspect(url) in ("", "calendar")


# -- pardons and bounds


def test_home_pages_are_never_stopped() -> None:
    site = a_site()
    assert not any(learn(site, f"http://h{n}.a.test/", SAME, False, [], NOW, RULES) for n in range(500))


def test_a_pardon_is_for_good() -> None:
    site = a_site()
    until_stopped(site, months())
    assert pardon(site, "/calendar/{date}")
    assert not pardon(site, "/no/such")
    assert stopped(site, "http://a.test/calendar/2026/01") is None
    assert not any(meet(site, month) for month in months())
    assert stopped(site, "http://a.test/calendar/2026/01") is None


paths = st.builds(
    "/{}{}/{}{}".format,
    st.sampled_from("abcdefghijklmnopqrstuvwxyz"),
    st.sampled_from(["", "b", "c"]),
    st.integers(0, 9),
    st.sampled_from(["", "?page=1", "?sid=0123abcd"]),
)


@given(st.lists(st.tuples(paths, st.sampled_from([SAME, 0, 1 << 40])), max_size=150))
def test_the_record_is_bounded_and_stopped_shapes_stay_stopped(pages: list[tuple[str, int]]) -> None:
    site = a_site()
    for path, simhash in pages:
        trap = meet(site, path, simhash)
        assert len(site.shapes) <= SHAPES + 1
        assert not set(site.shapes) & set(site.traps)
        if trap:
            assert stopped(site, "http://a.test" + path) is trap


def test_many_shapes_are_bounded_and_the_most_suspicious_stays() -> None:
    site = a_site()
    for number in range(60):
        meet(site, f"/item/{number}")
    for number in range(500):
        meet(site, f"/{fresh(number):x}-word".translate(str.maketrans("0123456789", "ghijklmnop")))
    assert len(site.shapes) <= SHAPES + 1
    assert site.shapes["/item/{n}"] == 59
    assert site.shapes[EVERY] == 559


def test_traps_are_bounded_and_pardons_are_kept() -> None:
    site = a_site()
    words = ["".join(chr(97 + (number // 26**place) % 26) for place in range(3)) for number in range(2 * TRAPS)]
    for number, word in enumerate(words):
        until_stopped(site, (f"/{word}/{n}?page={n}" for n in range(5)))
        if number == 3:
            pardon(site, f"/{word}/{{n}}?page")
    assert len(site.traps) <= TRAPS
    assert sum(trap.pardoned for trap in site.traps.values()) == 1


def test_a_refusal_is_recorded_with_name_and_shape_and_stops_nothing_else() -> None:
    site = a_site()
    url = "http://a.test/find?q=" + "a" * 2048
    trap = refused(site, "url length", url, NOW)
    assert refused(site, "url length", url, NOW) is trap
    assert (trap.name, trap.refused, trap.example) == ("url length", 2, url[:300])
    assert list(site.traps) == ["url length /find?q"]
    assert stopped(site, "http://a.test/find?q=a") is None
    for number in range(1_000):
        refused(site, "repetition", "http://a.test" + f"/{fresh(number):x}"[:3] + "/x" * (4 + number), NOW)
    assert len(site.traps) <= TRAPS
    assert sum(trap.refused for trap in site.traps.values()) == 1_002


# -- a small web to walk


class Walk:
    """A crawl of one site, breadth first, suspicious URLs last: what it fetched, and what of it was a trap."""

    def __init__(self, links: Callable[[str], list[str]], text: Callable[[str], int]) -> None:
        self.site, self.fetched = a_site(), list[str]()
        urgent, late, seen = deque(["http://a.test/"]), deque[str](), {"http://a.test/"}
        while (urgent or late) and len(self.fetched) < 5_000:
            url = (urgent or late).popleft()
            if caught(self.site, url):
                continue
            self.fetched.append(url.removeprefix("http://a.test"))
            self.site.fetched += 1
            new = [link for link in map("http://a.test".__add__, links(self.fetched[-1])) if link not in seen]
            seen.update(new)
            new = [link for link in new if not refusal(link, RULES) and not caught(self.site, link)]
            for link in new:
                (late if suspect(link) else urgent).append(link)
            learn(self.site, url, text(self.fetched[-1]), False, new, NOW, RULES)

    def trapped(self, start: str) -> int:
        return sum(path.startswith(start) for path in self.fetched)


def ordinary(path: str) -> list[str]:
    """A tree of a hundred pages, and the doors to traps."""
    if path == "/":
        return [
            "/page/1",
            "/calendar/2026/01",
            "/shop?colour=1&size=1",
            "/here/",
            "/s/0000000a/x",
            "/event?day=2026-01-01",
            "/guide/intro/",
            "/town/aa",
        ]
    number = int(path.split("/")[2])
    return [f"/page/{child}" for child in (2 * number, 2 * number + 1) if child <= 100]


def endless(path: str) -> list[str]:
    match path.split("/")[1:]:
        case ["calendar", year, month]:
            then = int(year) * 12 + int(month)
            return [f"/calendar/{at // 12:04d}/{at % 12 + 1:02d}" for at in (then, then - 2)]
        case ["here", *_]:
            return [path + "here/"]
        case ["guide", *_]:
            return [path + "intro/", path + "setup/"]
        case ["town", name]:
            return [f"/town/{name[-1]}{chr(97 + n)}" for n in range(26)]
        case ["s", token, "x"]:
            return [f"/s/{fresh(int(token, 16) + n) & 0xFFFFFFFF:08x}/x" for n in range(5)]
        case [name] if name.startswith("shop?"):
            most = name.count("&") + 2
            return [f"{path}&f{n}={n}" for n in range(most)] + [f"/shop?colour={n}&size={most}" for n in range(9)]
        case [name] if name.startswith("event?"):
            return [f"/event?day=2026-{month:02d}-01" for month in range(1, 13)] + ["/page/1"]
    return ordinary(path)


def test_a_walk_loses_no_page_and_is_held_by_no_trap() -> None:
    walk = Walk(endless, lambda path: fresh(int(path[6:])) if path.startswith("/page") else fresh(hash_of(path)))
    assert walk.trapped("/page/") == 100
    assert walk.trapped("/calendar/") == 2
    assert walk.trapped("/shop") <= 6
    assert walk.trapped("/here/") <= 3
    assert walk.trapped("/guide/") <= 5
    assert walk.trapped("/town/") <= 1 + RULES.shape_urls
    assert walk.trapped("/s/") <= 3
    assert {trap.name for trap in walk.site.traps.values()} >= {"calendar", "facets", "session id"}
    assert len(walk.fetched) < 130 + RULES.shape_urls


def hash_of(path: str) -> int:
    """One text for each trap."""
    return 1_000 + ord(path[1]) if len(path) > 1 else 999


# -- fans and logs


@for_each(
    ("foreign", "total", "fan"),
    [
        (24, 65, None),
        (500, 501, None),
        (501, 502, Fan("link farm", 5_000, important=False)),
        (501, 1_000, None),
        (1_000, 5_001, Fan("fan-out", 5_000, important=True)),
        (9_000, 9_500, Fan("link farm", 5_000, important=False)),
    ],
)
def test_fan_out(foreign: int, total: int, fan: Fan | None) -> None:
    assert fan_out(foreign, total, RULES) == fan


def test_a_log_tells_what_slipped_through() -> None:
    log = [(f"http://a.test/item/{n}", b"%08d" % n, fresh(n)) for n in range(300)]
    log += [(f"http://a.test/list?page={n}", b"%08d" % n, SAME ^ 1 << n % 64) for n in range(90)]
    log += [(f"http://b.test/x/{n}", b"the same body", 0) for n in range(30)]
    log += [(f"http://c.test/x/{n}", b"%08d" % n, SAME) for n in range(19)]
    Random(1).shuffle(log)
    first, second = slipped(log)
    assert (first.site, first.shape, first.name, first.pages) == ("a.test", "/list?page", "pagination", 90)
    assert first.contents < 9
    assert (second.site, second.shape, second.name, second.pages, second.contents) == (
        "b.test", "/x/{n}", "same content", 30, 1,
    )  # fmt: skip
    assert second.example.startswith("http://b.test/x/")


def test_a_log_tells_of_families_and_of_each_waste_once() -> None:
    log = [(f"http://a.test{nested(words)}", b"", SAME) for words in MIXTURES]
    log += [(f"http://b.test{path}", b"", SAME) for path in choices()]
    log += [(f"http://c.test{farmed(n)}", b"", SAME) for n in range(300)]
    log += [(f"http://d.test/forum/reply-{n}", b"", SAME) for n in range(200)]
    log += [(f"http://d.test/forum/topic-{n}x{n}", b"", SAME) for n in range(50)]
    log += [(f"http://e.test/forum/{n}", b"", fresh(n)) for n in range(200)]
    Random(1).shuffle(log)
    assert {(each.site, each.shape, each.name) for each in slipped(log)} == {
        ("a.test", "/guide/**", "repetition"),
        ("b.test", "/catalog?**", "facets"),
        ("c.test", "/service/*", "same content"),
        ("d.test", "/forum/reply-{n}", "same content"),
        ("d.test", "/forum/topic-{n}x{n}", "same content"),
    }


def test_a_pass_over_a_log_forgets_what_wasted_least() -> None:
    honest = [(f"http://h{n}.test/x", b"%08d" % n, fresh(n)) for n in range(2_000)]
    trap = [(f"http://a.test/list?page={n}", b"", SAME) for n in range(200)]
    log = [record for n in range(200) for record in (*honest[10 * n : 10 * n + 10], trap[n])]
    (found,) = slipped(log, room=20)
    assert (found.shape, found.pages, found.contents) == ("/list?page", 200, 1)
