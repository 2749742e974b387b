"""Sites to other regions: every row follows its site, once and whole, crash or no crash; files stay where they are."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from virtual import in_a_loop

from harvestman.config import Config, Region, check
from harvestman.embedded.reshard import position
from harvestman.embedded.roster import StaticRoster
from harvestman.embedded.rows import PARTITIONED, rekeyed
from harvestman.embedded.state import RocksState
from harvestman.errors import ConfigError, UsageError
from harvestman.jobs import Jobs
from harvestman.layout import VERSION, CrawlFile, Layout
from harvestman.mend import still
from harvestman.model import (
    Discovery,
    HostKey,
    HostRecord,
    Instant,
    Job,
    Origin,
    Partition,
    RecordRef,
    RobotsRecord,
    Seconds,
    SiteKey,
    SiteRecord,
    Status,
    Tally,
    UrlRecord,
)  # fmt: skip
from harvestman.policy.sites import site_of
from harvestman.policy.urls import host_of
from harvestman.ports import Changes, Content, Parcel
from harvestman.regions import learned, replan, router, settled, survey
from harvestman.views import View
from harvestman.wiring import open_crawler, prepare

PARTITIONS = 4
HOSTS = [HostKey(f"{prefix}h{number}.{tld}") for number in range(4) for tld in ("de", "com") for prefix in ("", "www.")]
EU, US = Region("eu", tlds=("de",)), Region("us", 2)
PLANS: list[tuple[Region, ...]] = [
    (EU, US), (US, EU), (EU,), (), (Region("asia"), US, EU), (Region("eu", 3), Region("us", tlds=("h1.com", "de"))),
]  # fmt: skip


class PowerCut(Exception):
    pass


def facts(regions: tuple[Region, ...], workers: int = 1, table: int = 0) -> CrawlFile:
    return CrawlFile(VERSION, PARTITIONS, sum(each.workers for each in regions) or workers, regions, table)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path)
    made.write(facts(()))
    return made


def rows_of(number: int, host: HostKey, partition: Partition, layout: Layout) -> Changes:
    """All that is known of one host: a queue, a retry, a further visit, a clock, rules, its site."""
    way = router(layout, layout.read())
    changes = Changes()
    for page in range(5):
        url = f"https://{host}/{page}"
        name, when = way.id_of(url), Instant(100.0 + number)
        status = Status.FETCHED if page > 3 else Status.PENDING
        changes.records[name] = UrlRecord(url, status, 1, 4, page, Instant(1.0), due=when if page > 2 else Instant(0.0))
        changes.new.append(name)
        if page < 3:
            changes.queued.append((partition, host, 4, page, name))
        elif page == 3:
            changes.due.append((when, name))
        else:
            changes.revisit.append((when, name))
    site, origin = site_of(host), Origin(f"https://{host}:8443")
    clock = HostRecord(host, site, Instant(1e9 + number), Seconds(7.5), 2, cursors=[number] * 8)
    changes.hosts[host] = (partition, clock)
    changes.robots[origin] = (partition, RobotsRecord(origin, b"rules", Instant(5.0), Instant(5.0), Instant(5.0)))
    changes.sites[site] = (partition, SiteRecord(site, Instant(1.0), fetched=number))
    return changes


async def filled(layout: Layout) -> None:
    state, way = RocksState(layout.state(0)), router(layout, layout.read())
    for number, host in enumerate(HOSTS):
        await state.commit(rows_of(number, host, way.place(host)[2], layout))
    await state.commit(Changes(marks={"tally": msgspec.msgpack.encode(Tally(pages=10)), "seq": b"99"}))
    await state.close()


def everything(layout: Layout) -> set[tuple[str, bytes, bytes]]:
    """All rows as if they were in one partition: each is asserted to be in that of its host, with its owner alone."""
    now = settled(layout)
    way = router(layout, now)
    found: set[tuple[str, bytes, bytes]] = set()
    for index in range(now.workers):
        state = RocksState(layout.state(index))
        roster = StaticRoster(now.partitions, now.split, index)
        state.drop_foreign(roster.owns)
        assert list(state.strays(lambda host: way.place(host)[2])) == []
        for family in PARTITIONED[:-1]:
            for row in state.waiting_rows(family):
                assert roster.owns(Partition(int.from_bytes(row[1][:2])))
                plain = rekeyed(row, Partition(0))
                assert plain not in found
                found.add(plain)
        state.shut()
    return found


def expected(host: HostKey, regions: tuple[Region, ...]) -> str:
    named = (region.name for region in regions if site_of(host).endswith(region.tlds))
    return next(named, regions[0].name if regions else "")


@pytest.mark.parametrize("plans", [PLANS[:2], pytest.param([*PLANS, *reversed(PLANS)], marks=pytest.mark.slow)])
@in_a_loop
async def test_every_row_follows_its_site_through_all_plans(layout: Layout, plans: list[tuple[Region, ...]]) -> None:
    await filled(layout)
    before = everything(layout)
    assert len(before) == len(HOSTS) * 12 + len(HOSTS) // 2
    for regions in plans:
        replan(layout, settled(layout), facts(regions))
        assert (layout.read().regions, layout.read().moving) == (regions, False)
        assert everything(layout) == before
        with View(layout) as view:
            assert {host: view.region_of(host) for host in HOSTS} == {host: expected(host, regions) for host in HOSTS}
            assert view.tally().pages == 10


@in_a_loop
async def test_without_regions_all_is_as_it_was(layout: Layout) -> None:
    assert (layout.data / "crawl.json").read_text() == '{\n  "version": 2,\n  "partitions": 4,\n  "workers": 1\n}\n'
    named = router(layout, facts((Region("eu", tlds=("de",)), US)))
    plain = router(layout, facts(()))
    assert {named.place(host)[2] for host in HOSTS} == {plain.place(host)[2] for host in HOSTS}, "the first block"
    assert (facts(()).files(1), facts(()).contents, facts(()).split) == ("w01", ("",), (1,))


@pytest.mark.parametrize("step", [pytest.param(step, marks=pytest.mark.slow) for step in (3, 24, *range(0, 90, 5))])
@in_a_loop
async def test_a_crash_at_any_write_leaves_each_site_with_one_owner(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    await filled(layout)
    replan(layout, layout.read(), facts((EU, US)))
    whole = everything(layout)
    left = [step]

    def dying(name: str, owner: type) -> None:
        real = getattr(owner, name)

        def called(*args: object, **kwargs: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise PowerCut
            return real(*args, **kwargs)

        monkeypatch.setattr(owner, name, called)

    for name in ("copy_partition", "put_mark", "absorb", "write_rows"):
        dying(name, RocksState)
    dying("write", Layout)
    monkeypatch.setattr("harvestman.embedded.reshard.BATCH", 7)
    wanted = facts((Region("us", 3), Region("eu", tlds=("de", "h1.com"))))
    try:
        replan(layout, layout.read(), wanted)
    except PowerCut:
        pass
    else:
        assert step > 40
    monkeypatch.undo()
    assert everything(layout) == whole, "with whatever regions crawl.json names"
    replan(layout, settled(layout), wanted)
    assert everything(layout) == whole


@pytest.mark.slow
@in_a_loop
async def test_what_is_learned_is_written_down_and_survives_other_rules(layout: Layout) -> None:
    await filled(layout)
    rules = (EU, Region("us", networks=("10.0.0.0/8",)))
    replan(layout, layout.read(), facts(rules))
    sites = [
        SiteRecord(SiteKey("h1.com"), Instant(0.0), address="10.1.1.1"),
        SiteRecord(SiteKey("h2.com"), Instant(0.0)),
    ]
    for _ in range(2):
        before = layout.read()
        found = list(survey(before, rules, router(layout, before), sites))
        replan(layout, before, learned(layout, before, rules, found))
    assert [(each.region, each.goes, each.why) for each in found] == [("us", "us", "address"), ("eu", "eu", "default")]
    assert [path.read_text() for path in (layout.data / "regions").iterdir()] == ["h1.com\tus\n"]
    assert len(everything(layout)) == len(HOSTS) * 12 + len(HOSTS) // 2
    now = layout.read()
    replan(layout, now, msgspec.structs.replace(now, regions=(EU, Region("asia"), US), workers=4))
    assert router(layout, layout.read()).place(HostKey("www.h1.com"))[2] // PARTITIONS == 2, "by name, not by number"
    now = layout.read()
    replan(layout, now, msgspec.structs.replace(now, regions=(EU, Region("asia")), workers=2))
    assert router(layout, layout.read()).place(HostKey("h1.com"))[2] // PARTITIONS == 0, "its region is no more"


@pytest.mark.slow
@in_a_loop
async def test_the_files_of_a_region_go_on_where_they_ended(layout: Layout) -> None:
    await filled(layout)
    replan(layout, layout.read(), facts((EU, Region("us"))))
    content = Content("https://h1.com/", Instant(1.0), "sha256:x", RecordRef("f", 1, 2))
    for index, name in enumerate(("w00_eu", "w01_us")):
        state = RocksState(layout.state(index))
        marks = {"pages": msgspec.msgpack.encode((f"{name}-00004.pages", 17))}
        await state.commit(Changes(marks=marks, contents={bytes([index]) * 32: content}))
        await state.close()
    ends = {name: (f"{name}-00004.pages", 17) for name in ("w00_eu", "w01_us")}
    there, back = (EU, Region("us")), (Region("us"), EU)
    for regions in (back, there, back, (Region("us"),), back, (), there):
        replan(layout, layout.read(), facts(regions))
        now = layout.read()
        for index in range(now.workers):
            state = RocksState(layout.state(index))
            files = now.files(index)
            assert position(state, "pages", files) == ends.get(files)
            assert await state.contents([bytes([n]) * 32 for n in range(2)]) == [None, None], "of the other region"
            state.shut()


@in_a_loop
async def test_links_to_a_region_that_is_no_more_find_their_way(layout: Layout) -> None:
    Jobs(layout).add(Job(0, "one", Instant(1.0), scope="all"), ["https://h9.de/"])
    replan(layout, layout.read(), facts((EU, US)))
    state = RocksState(layout.state(0))
    found = [Discovery(f"https://h{number}.com/", 1, "") for number in range(3)]
    body = msgspec.msgpack.encode(found)
    await state.commit(Changes(outbox=[Parcel(Partition(number), number, body) for number in (5, 7)]))
    await state.close()
    config = Config(data=str(layout.data), partitions=PARTITIONS, contact="a@b.org")
    prepare(config, [])
    await (await open_crawler(config)).crawler.close()
    with View(layout) as view:
        assert {record.url for record in view.records()} == {each.url for each in found}


def test_where_content_was_is_not_forgotten(layout: Layout) -> None:
    replan(layout, layout.read(), facts((Region("eu", content="europe"), Region("us", content="europe"))))
    assert [path.relative_to(layout.data).as_posix() for path in layout.warcs()] == ["europe/warc", "warc"]
    replan(layout, layout.read(), facts((Region("asia", content="east"),)))
    assert [path.parent.name for path in layout.page_logs()][:2] == ["east", "europe"]
    replan(layout, layout.read(), facts(()))
    assert layout.read().contents == ("", "east", "europe")
    for content in ("", "elsewhere"):
        with pytest.raises(ConfigError, match="the content of eu is in 'europe'"):
            replan(layout, layout.read(), facts((Region("eu", content=content),)))
    replan(layout, layout.read(), facts((Region("eu", content="europe"),)))
    assert layout.read().contents == ("europe", "", "east")
    assert layout.read().kept == {"": "", "asia": "east", "us": "europe"}


@in_a_loop
async def test_a_crawl_that_stands_still_is_mended_where_its_sites_are(layout: Layout) -> None:
    await filled(layout)
    replan(layout, layout.read(), facts((EU, US)))
    with still(layout.data) as crawl:
        found = await crawl.look_up([f"https://{host}/0" for host in HOSTS])
        assert all(found.values())
        assert {host_of(url) for url in found} == set(HOSTS)


@in_a_loop
async def test_a_crawl_in_one_process_has_no_regions(tmp_path: Path) -> None:
    config = check(Config(data=str(tmp_path), regions=(EU, US), contact="a@b.org"))
    prepare(config, ["https://h1.com/"])
    with pytest.raises(UsageError, match="one worker"):
        await open_crawler(config)


def test_an_ending_within_a_site_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="part of the site"):
        prepare(Config(data=str(tmp_path / "d"), regions=(Region("eu", tlds=("www.a.org",)),)), ["https://a.org/"])
    assert not (tmp_path / "d").exists()
