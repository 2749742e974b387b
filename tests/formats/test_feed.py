"""The page-event feed: every page at least once, whoever dies in between."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from formats.small import HOME, THEN, Small, write
from hypothesis import given, settings
from hypothesis import strategies as st

from harvestman.cli.main import main
from harvestman.feed import CHANGES, Event, events, parse, written
from harvestman.layout import VERSION, CrawlFile, Layout
from harvestman.model import Instant, RecordRef
from harvestman.policy.blocklist import entry
from harvestman.policy.urls import key, url_hash
from harvestman.removals import Removal, Removals
from harvestman.store.replay import read
from harvestman.takedown import run as deeds
from harvestman.takedown.retention import Wanted, retain
from harvestman.views import View


async def _read(layout: Layout, after: str, most: int) -> list[Event]:
    found: list[Event] = []
    with View(layout) as view:
        async for event in events(view, parse(after)):
            found.append(event)
            if len(found) == most:
                break
    return found


def told(layout: Layout, after: str = "0", most: int = -1) -> list[Event]:
    return asyncio.run(_read(layout, after, most))


def test_each_kind_of_visit_is_told_in_order(tmp_path: Path) -> None:
    layout = write(tmp_path / "crawl")
    found = [(event.change, event.url.removeprefix(HOME), event.target) for event in told(layout)]
    assert found == [
        ("new", "", ""),
        ("new", "a?b=2&x=1", ""),
        ("new", "https://www.example.com/B/?z=1&A=2", ""),
        ("duplicate", "copy", HOME),
        ("new", "hidden", ""),
        ("gone", "gone", ""),
        ("redirected", "old", f"{HOME}other"),
        ("unchanged", "", ""),
        ("changed", "", ""),
        ("new", "empty", ""),
    ]
    assert {change for change, _, _ in found} == set(CHANGES) - {"removed"}


def test_an_event_leads_to_its_record(tmp_path: Path) -> None:
    layout = write(tmp_path / "crawl")
    for event in told(layout):
        assert event.warc is not None
        response = read(layout.warc, RecordRef(event.warc.file, event.warc.offset, event.warc.length))
        assert (response.url, response.status) == (event.url, event.status)
    first, second = told(layout)[:2]
    assert (second.title, second.language, second.noindex) == ("Seite ü", "de", False)
    assert first.fetched_at == "2026-09-21T14:13:40.250Z"


def test_sequence_numbers_grow_and_a_cursor_goes_on_behind_its_event(tmp_path: Path) -> None:
    layout = write(tmp_path / "crawl")
    everything = told(layout)
    numbers = [event.seq for event in everything]
    assert numbers == sorted(set(numbers))
    for number, event in enumerate(everything, 1):
        assert told(layout, event.cursor) == everything[number:]
        assert written(parse(event.cursor)) == event.cursor


def test_what_is_not_committed_is_not_told(tmp_path: Path) -> None:
    with Small(tmp_path / "crawl") as small:
        small.page(f"{HOME}1")
        small.flush()
        assert told(small.layout) == []
        small.commit()
        assert [event.url for event in told(small.layout)] == [f"{HOME}1"]


def test_pages_whose_raw_records_were_removed_are_told_all_the_same(tmp_path: Path) -> None:
    with Small(tmp_path / "crawl", warc_bytes=600) as small:
        for number in range(4):
            small.page(f"{HOME}{number}")
            small.commit()
    first, second, *_ = sorted(small.layout.warc.glob("*.warc.gz"))
    first.unlink()
    second.unlink()
    found = told(small.layout)
    assert [event.url for event in found] == [f"{HOME}{number}" for number in range(4)]
    assert [event.warc is None for event in found] == [True, True, False, False]
    assert [event.url for event in told(small.layout, found[0].cursor)] == [f"{HOME}{n}" for n in range(1, 4)]


def test_content_that_lies_apart_is_told_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As of a region that keeps its content in a directory of its own."""
    layout = write(tmp_path / "crawl")
    before = [(event.url, event.change) for event in told(layout)]
    (layout.data / "eu").mkdir()
    layout.warc.rename(layout.data / "eu" / "warc")
    layout.pages.rename(layout.data / "eu" / "pages")
    layout.write(CrawlFile(VERSION, 8, 1, kept={"w00_eu": "eu"}))
    found = told(layout)
    assert [(event.url, event.change) for event in found] == before
    assert {event.worker for event in found} == {"eu/w00"}
    assert told(layout, found[-1].cursor) == []
    assert main(["query", str(layout.data), "select count(*) n from pages", "--csv"]) == 0
    assert capsys.readouterr().out == "n\n6\n"


STEPS = st.lists(st.sampled_from(["page", "again", "gone", "flush", "commit", "crash", "read", "kill"]), max_size=30)


@settings(deadline=None, max_examples=12)
@given(STEPS, st.integers(0, 3))
def test_every_committed_page_is_told_at_least_once(steps: list[str], lag: int) -> None:
    """A reader that is killed before it stores its cursor; a crawl that crashes and takes back the uncommitted."""
    with TemporaryDirectory() as directory:
        kept, pending, seen, cursor = _played(Path(directory) / "crawl", [*steps, "commit", "read"], lag)
    assert kept <= seen
    assert not pending
    assert cursor


def _played(data: Path, steps: list[str], lag: int) -> tuple[set[str], set[str], set[str], str]:
    kept: set[str] = set()
    pending: set[str] = set()
    seen: set[str] = set()
    cursor = "0"
    small = Small(data, warc_bytes=1_500, log_bytes=400)
    for number, step in enumerate(steps):
        match step:
            case "page" | "again":
                url = f"{HOME}{number if step == 'page' else 'again'}"
                pending.add(small.page(url, f"text {number}").digest)
            case "gone":
                small.gone(f"{HOME}{number}")
            case "flush":
                small.flush()
            case "commit":
                small.commit()
                kept |= pending
                pending = set()
            case "crash":
                small.__exit__(None, None, None)
                small, pending = Small(data, warc_bytes=1_500, log_bytes=400), set()
            case _:
                found = told(small.layout, cursor)
                heard = found if step == "read" else found[: len(found) // 2]
                seen |= {event.digest for event in heard}
                stored = heard[: max(0, len(heard) - lag)] if step == "kill" else heard
                cursor = stored[-1].cursor if stored else cursor
    small.__exit__(None, None, None)
    return kept, pending, seen, cursor


def test_a_page_log_that_a_power_cut_took_back_is_read_from_its_beginning(tmp_path: Path) -> None:
    with Small(tmp_path / "crawl") as small:
        small.page(f"{HOME}1")
        small.commit()
        small.page(f"{HOME}2")
        small.commit()
        (*_, last) = told(small.layout)
        place = parse(last.cursor)["w00"]
        assert place.frame > 0
        (path,) = small.layout.pages.glob("*.pages")
        raw = path.read_bytes()
        path.write_bytes(raw[place.frame :] + raw[: place.frame])
        assert {event.url for event in told(small.layout, last.cursor)} == {f"{HOME}1", f"{HOME}2"}


# -- what was removed -------------------------------------------------------------------------------------------------


class Indexer:
    """A reader that keeps the latest version of each page, and its cursor, as docs/export.md asks for."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.index: dict[str, Event] = {}
        self.cursor = "0"
        self.heard: list[str] = []

    def read(self, most: int = -1, lose: int = 0) -> None:
        """Deal with events; the cursor of the last `lose` of them is not stored, as if it were killed."""
        found = told(self._layout, self.cursor, most)
        for event in found:
            self.heard.append(event.change)
            mine = self.index.get(event.url_hash)
            if event.change in ("new", "changed"):
                self.index[event.url_hash] = event
            elif event.change != "unchanged" and (mine is None or mine.fetched_at < event.fetched_at):
                self.index.pop(event.url_hash, None)
        if len(found) > lose:
            self.cursor = found[-1 - lose].cursor

    @property
    def urls(self) -> set[str]:
        return {event.url.removeprefix(HOME) for event in self.index.values()}


def take_down(layout: Layout, kind: str, text: str) -> None:
    assert main(["takedown", str(layout.data), f"--{kind}", text, "--reason", "test", "--json"]) == 0


def test_a_takedown_is_told_and_told_again_to_one_who_died(tmp_path: Path) -> None:
    layout = write(tmp_path / "crawl")
    early, late = Indexer(layout), Indexer(layout)
    early.read()
    late.read(most=2)
    assert early.urls == {"", "a?b=2&x=1", "https://www.example.com/B/?z=1&A=2", "hidden", "empty"}
    take_down(layout, "url", f"{HOME}a?x=1&b=2")
    for reader in (early, late):
        reader.heard.clear()
        reader.read(lose=99)
        assert reader.heard.count("removed") == 1
        assert "a?b=2&x=1" not in reader.urls
        reader.read()
        assert reader.heard.count("removed") == 2
        reader.read()
        assert reader.heard.count("removed") == 2
        assert reader.urls == {"", "https://www.example.com/B/?z=1&A=2", "hidden", "empty"}
    fresh = Indexer(layout)
    fresh.read()
    assert fresh.urls == early.urls
    take_down(layout, "site", "example.org")
    early.read()
    assert early.urls == {"https://www.example.com/B/?z=1&A=2"}


def test_pages_that_are_told_again_still_lead_to_their_records(tmp_path: Path) -> None:
    """Taking a page out of the frame that a cursor stands in makes the others of that file news."""
    layout = write(tmp_path / "crawl")
    last = told(layout)[-1]
    take_down(layout, "url", f"{HOME}empty")
    again = {event.url: event.warc for event in told(layout, last.cursor) if event.url}
    assert HOME in again
    assert again[f"{HOME}a?b=2&x=1"] is not None
    assert again[f"{HOME}hidden"] is not None


def test_removals_have_numbers_of_their_own_and_no_address(tmp_path: Path) -> None:
    layout = write(tmp_path / "crawl")
    take_down(layout, "prefix", f"{HOME}h")
    take_down(layout, "url", f"{HOME}empty")
    gone = [event for event in told(layout) if event.change == "removed"]
    assert [(event.worker, event.seq, event.url) for event in gone] == [("removed", 1, ""), ("removed", 2, "")]
    assert [event.url_hash for event in gone] == [url_hash(key(f"{HOME}{name}")) for name in ("hidden", "empty")]
    assert told(layout, gone[0].cursor)[0] == gone[1]
    assert "removed" not in [event.change for event in told(layout, gone[1].cursor)]
    assert "hidden" not in (layout.data / "removed.jsonl").read_text()


def test_retention_tells_up_to_when_and_newer_versions_stay(tmp_path: Path) -> None:
    with Small(tmp_path / "crawl") as small:
        small.page(f"{HOME}old", "Old.")
        small.page(f"{HOME}both", "Once.")
        small.commit()
        between = Instant(small.now + 5)
        small.page(f"{HOME}both", "Again.")
        small.commit()
    indexer = Indexer(small.layout)
    indexer.read()
    raw = ("response", "request", "revisit")
    retain(small.layout.data, Wanted(between, raw), "tester", between, False, lambda _: None)
    indexer.read()
    assert "removed" not in indexer.heard
    retain(small.layout.data, Wanted(between), "tester", between, False, lambda _: None)
    indexer.read()
    assert indexer.heard.count("removed") == 2
    assert indexer.urls == {"both"}


@pytest.mark.parametrize(
    "fatal",
    [
        "block",
        "records",
        "proof",
        *(pytest.param(step, marks=pytest.mark.slow) for step in ("state", "pages", "derived")),
    ],
)
def test_a_takedown_that_is_cut_short_is_told_when_it_is_done(tmp_path: Path, fatal: str) -> None:
    layout = write(tmp_path / "crawl")
    indexer = Indexer(layout)
    indexer.read()
    order = deeds.Order(entry("url", f"{HOME}empty", "test", Instant(THEN + 9_999), "tester"), "x")

    def cut(step: str) -> None:
        if step == fatal:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        deeds.take_down(layout.data, order, cut)
    indexer.read()
    deeds.take_down(layout.data, order, lambda _: None)
    indexer.read()
    assert "removed" in indexer.heard
    assert "empty" not in indexer.urls
    assert not (layout.data / "removing.jsonl").exists()


@given(st.lists(st.lists(st.integers(0, 50), max_size=5), min_size=1, max_size=5), st.binary(max_size=9))
def test_removals_survive_a_torn_line(groups: list[list[int]], torn: bytes) -> None:
    with TemporaryDirectory() as directory:
        removals = Removals(Layout(Path(directory)))
        wanted: list[Removal] = []
        for group in groups:
            mine = [Removal(f"{number:064x}", Instant(number), "url") for number in group]
            removals.begin(mine)
            removals.finish()
            wanted += mine
            with (Path(directory) / "removed.jsonl").open("ab") as file:
                file.write(torn.replace(b"\n", b""))
            found = list(removals.behind(0))
            assert [each for _, each in found] == wanted
            for number, (place, _) in enumerate(found, 1):
                assert [each for _, each in removals.behind(place)] == wanted[number:]


def test_near_duplicates_say_of_whom(tmp_path: Path) -> None:
    with Small(tmp_path / "crawl") as small:
        page = small.page(f"{HOME}1")
        page.near_duplicate_of, page.distance = HOME, 2
        small.commit()
    (event,) = told(small.layout)
    assert (event.near_duplicate_of, event.distance) == (HOME, 2)


def test_fields_are_in_the_manual() -> None:
    text = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")
    section = text.partition("\n## The feed\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| event `(\w+)` \|", section, re.MULTILINE) == list(Event.__struct_fields__)


# -- the verb --------------------------------------------------------------------------------------------------------


def test_the_verb_tells_in_words_and_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(write(tmp_path / "crawl").data)
    assert main(["feed", data]) == 0
    assert capsys.readouterr().out.splitlines()[3].endswith(f"duplicate  {HOME}copy -> {HOME}")
    assert main(["feed", data, "--json", "--unchanged"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["change"] for line in lines].count("unchanged") == 1
    assert main(["feed", data, "--after", lines[-2]["cursor"]]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith(f"{HOME}empty")


@pytest.mark.parametrize("cursor", ["nonsense", "w00=1.2.3", "w00=1.0.0.0.0.0.0,w00"])
def test_nonsense_is_no_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str], cursor: str) -> None:
    assert main(["feed", str(write(tmp_path / "crawl").data), "--after", cursor]) == 2
    assert "is no cursor" in capsys.readouterr().err


def test_a_cursor_of_another_crawl_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["feed", str(write(tmp_path / "crawl").data), "--after", "w07=1.0.0.0.0.0.0"]) == 2
    assert "of another crawl: this one has no w07" in capsys.readouterr().err


CONSUMER = """
import json, os, pathlib, sys
stored, index, left = pathlib.Path(sys.argv[1]), open(sys.argv[2], "a"), int(sys.argv[3])
for line in sys.stdin:
    event = json.loads(line)
    print(event["url"], file=index, flush=True)
    if not left:
        os.kill(os.getpid(), 9)
    left -= 1
    part = stored.with_suffix(".part")
    part.write_text(event["cursor"])
    part.replace(stored)
"""


@pytest.mark.slow
def test_an_indexer_that_is_killed_again_and_again_misses_nothing(tmp_path: Path) -> None:
    """The real command, piped into a real process that dies by kill -9 between an event and its cursor."""
    wanted, kills, rng = set(), 0, random.Random(5)
    cursor, index = tmp_path / "cursor", tmp_path / "index"
    cursor.write_text("0")
    with Small(tmp_path / "crawl", warc_bytes=4_000, log_bytes=1_000) as small:
        for turn in range(12):
            for number in range(5):
                wanted.add(small.page(f"{HOME}{turn}/{number}", f"text {turn} {number}").url)
            small.commit()
            left = 999 if turn == 11 else rng.randrange(4)
            command = [sys.executable, "-m", "harvestman", "feed", str(small.layout.data), "--json", "--after"]
            feed = subprocess.Popen([*command, cursor.read_text()], stdout=subprocess.PIPE)
            consumer = [sys.executable, "-c", CONSUMER, str(cursor), str(index), str(left)]
            kills += subprocess.run(consumer, stdin=feed.stdout, check=False).returncode == -9
            assert feed.stdout is not None
            feed.stdout.close()
            assert feed.wait(60) == 0
    lines = index.read_text().split()
    assert kills == 11
    assert set(lines) == wanted
    assert len(lines) == len(wanted) + kills


@pytest.mark.slow
def test_follow_tells_what_comes_later(tmp_path: Path) -> None:
    with Small(tmp_path / "crawl") as small:
        small.page(f"{HOME}1")
        small.commit()
        command = [sys.executable, "-m", "harvestman", "feed", str(small.layout.data), "--follow", "--json"]
        feed = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": "1"})
        try:
            assert feed.stdout is not None
            assert json.loads(feed.stdout.readline())["url"] == f"{HOME}1"
            small.page(f"{HOME}2")
            small.commit()
            assert json.loads(feed.stdout.readline())["url"] == f"{HOME}2"
        finally:
            feed.kill()
            feed.wait(10)
