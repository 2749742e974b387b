"""harvestman takedown, retain, hold: what goes leaves no byte, what stays is where it was, the blocked stay out."""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from random import Random

import msgspec
import pyarrow.parquet  # type: ignore[import-untyped]  # ships no types
import pytest
from cases import for_each
from formats.small import HOME, THEN, Small
from hypothesis import given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]  # the package ships no types

from harvestman.blocking import read_entries
from harvestman.cli.main import main
from harvestman.cli.retain import by_itself
from harvestman.cli.takedown import _meant
from harvestman.config import MEDIA, Config, Retention
from harvestman.embedded.state import RocksState
from harvestman.errors import HarvestmanError, StateError, UsageError
from harvestman.frontier.book import RobotsBook
from harvestman.frontier.frontier import Frontier
from harvestman.frontier.routing import Router
from harvestman.frontier.seen import Seen
from harvestman.jobs import Jobs
from harvestman.layout import Layout
from harvestman.lock import locked
from harvestman.model import (
    Discovery,
    Instant,
    JobTally,
    Page,
    RecordRef,
    Seconds,
    Status,
    Tally,
    UrlRecord,
    Visit,
)
from harvestman.policy.blocklist import Which, entry
from harvestman.policy.urls import key, url_hash
from harvestman.ports import Changes, Content, Near
from harvestman.removals import Removals
from harvestman.store.cdxj import build_index
from harvestman.store.erase import Cut, Redo, filler, frame_with
from harvestman.store.frames import frames
from harvestman.store.members import Member, members, opened
from harvestman.store.pages import PageLog, read_pages
from harvestman.store.records import parse_record, warc_date
from harvestman.store.replay import read
from harvestman.takedown import run as deeds
from harvestman.takedown.retention import Retained, Wanted, medium_of, retain
from harvestman.views import View

BIN = Path(sys.executable).parent
SECRET = "".join(Random(5).choices("abcdefghijklmnopqrstuvwxyz", k=60))
"""On the page that goes; it does not compress, so it would be seen in any file that has it."""
ETAG = "".join(Random(6).choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=40))
PRIVATE = f"{HOME}people/jane?a=1"
OTHER = f"{HOME}other"
ELSEWHERE = "https://example.net/"
NOW = Instant(THEN + 1_000_000)


def write(data: Path) -> Layout:
    """Pages of two sites. One says the secret: plain, then packed, then as a copy; everything refers to it."""
    with Small(data) as small:
        small.robots("https://example.org")
        small.page(HOME, "Welcome to all.", depth=0, links=(PRIVATE, OTHER))
        first = small.page(PRIVATE, f"Jane lives at {SECRET}", title=f"Jane {SECRET[:30]}", links=(HOME,))
        small.page(OTHER, "Something else altogether, and long enough.")
        small.commit()
        small.copy(f"{HOME}copy", first)
        small.unchanged(first)
        small.page(PRIVATE, f"Moved. {SECRET}", packed=True)
        small.page(ELSEWHERE, "Another site.")
        small.page(f"{HOME}people/joe", f"Joe knows {SECRET[::-1]}")
        small.commit()
    _add_to_state(data, first)
    for name in ("query", "export", "corpus", "graph"):
        (data / name).mkdir()
        (data / name / "made.jsonl").write_text(f"of it: {SECRET}")
    build_index(data / "warc")
    return Layout(data)


def _add_to_state(data: Path, first: Page) -> None:
    """What else a worker keeps of a page: validators, content, near-duplicates, a place in the schedule."""
    router, state = Router(8), RocksState(Layout(data).state(0))
    ids = [router.id_of(PRIVATE), router.id_of(f"{HOME}people/new"), router.id_of(OTHER)]
    private, _, other = asyncio.run(state.records(ids))
    assert private is not None
    assert private.visit is not None
    assert private.visit.ref is not None
    assert other is not None
    assert other.visit is not None
    private.visit.etag, private.due = ETAG, Instant(NOW + 5)
    other.visit.near, other.visit.distance = PRIVATE, 2
    waiting = UrlRecord(f"{HOME}people/new", Status.PENDING, 1, 4, 9, Instant(THEN), PRIVATE)
    host, _, partition = router.place("example.org")  # type: ignore[arg-type]
    asyncio.run(
        state.commit(
            Changes(
                records={ids[0]: private, ids[1]: waiting, ids[2]: other},
                revisit=[(private.due, ids[0])],
                queued=[(partition, host, 4, 9, ids[1])],
                contents={bytes.fromhex(first.digest): Content(PRIVATE, Instant(THEN), "", private.visit.ref)},
                near={77: Near(PRIVATE, Instant(THEN), "", SECRET.encode()), 78: Near(OTHER, Instant(THEN))},
            )
        )
    )
    state.compact()
    state.shut()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("takedown") / "crawl").data


@pytest.fixture(scope="module")
def grown_old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return aged(tmp_path_factory.mktemp("retain") / "crawl").data


@pytest.fixture
def layout(written: Path, tmp_path: Path) -> Layout:
    """A copy, to be hurt."""
    return Layout(Path(shutil.copytree(written, tmp_path / "crawl")))


@pytest.fixture
def old(grown_old: Path, tmp_path: Path) -> Layout:
    return Layout(Path(shutil.copytree(grown_old, tmp_path / "crawl")))


def order(kind: str = "url", text: str = PRIVATE, *, dry_run: bool = False, keep_pattern: bool = False) -> deeds.Order:
    return deeds.Order(entry(kind, text, "request 17", NOW, "tester"), text, dry_run, False, keep_pattern)


def quiet(_: str) -> None:
    """Hears the steps."""


def everywhere(data: Path, needle: str) -> list[str]:
    """Where it stands, whatever it takes to see it: every file as it is, every record, frame and row unpacked."""
    sought = needle.encode()
    hits = [str(path) for path in data.rglob("*") if path.is_file() and sought in path.read_bytes()]
    for path in data.rglob("*.warc.gz"):
        for member in members(path):
            body = parse_record(member.data)[1].partition(b"\r\n\r\n")[2]
            unpacked = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else b""
            hits += [f"{path}:{member.offset}"] if sought in member.data + unpacked else []
    for path in data.rglob("*.pages"):
        hits += [f"{path}:{frame.start}" for frame in frames(path) if sought in frame.packed]
    with View(Layout(data)) as view:
        for _, state in view.workers():
            hits += [f"{family} {key.hex()}" for family, key, value in state.rows() if sought in key + value]
    return hits


def known(data: Path, url: str) -> UrlRecord:
    with View(Layout(data)) as view:
        found = asyncio.run(view.record(url))
    assert found is not None
    return found


def refs(data: Path) -> dict[str, RecordRef]:
    with View(Layout(data)) as view:
        return {record.url: record.visit.ref for record in view.records() if record.visit and record.visit.ref}


def readable(data: Path) -> None:
    """Every place that State names holds the record of its URL, and strangers' tools find nothing wrong."""
    for url, ref in refs(data).items():
        assert read(data / "warc", ref).url == url
    for path in (data / "warc").glob("*.warc.gz"):
        with path.open("rb") as file:
            for each in ArchiveIterator(file, check_digests="raise"):
                each.content_stream().read()


@pytest.mark.slow
def test_the_tools_of_others_find_nothing_wrong(layout: Layout) -> None:
    deeds.take_down(layout.data, order(), quiet)
    (path,) = (layout.data / "warc").glob("*.warc.gz")
    for tool in ("warcio", "fastwarc"):
        done = subprocess.run([BIN / tool, "check", path], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


# -- a takedown ------------------------------------------------------------------------------------------------------


def test_no_byte_of_the_page_is_left(layout: Layout) -> None:
    data = layout.data
    assert len(everywhere(data, SECRET)) >= 6
    assert everywhere(data, ETAG)
    before = refs(data)
    done = deeds.take_down(data, order(), quiet)
    assert done.proof is not None
    assert done.proof.clean, done.proof
    assert done.proof.phrases >= 3
    assert everywhere(data, SECRET) == []
    assert everywhere(data, SECRET[:30]) == []
    assert everywhere(data, ETAG) == []
    assert done.records == {"response": 2, "revisit": 1, "request": 2}
    assert done.pages == 2
    after = refs(data)
    assert {url: ref for url, ref in before.items() if url != PRIVATE} == after
    readable(data)
    assert [page.url for page in read_pages(data / "pages")] == [HOME, OTHER, ELSEWHERE, f"{HOME}people/joe"]
    assert set(done.removed) >= {"query", "export", "corpus", "graph", "warc/index.cdxj"}


def test_the_record_says_that_it_is_blocked_and_nothing_else(layout: Layout) -> None:
    deeds.take_down(layout.data, order(), quiet)
    record = known(layout.data, PRIVATE)
    assert (record.status, record.visit, record.due) == (Status.REFUSED, Visit(NOW, 0, "blocked: request 17"), 0.0)
    copy = known(layout.data, f"{HOME}copy").visit
    assert copy is not None
    assert (copy.target, copy.digest, copy.etag) == ("", b"", "")
    other = known(layout.data, OTHER).visit
    assert other is not None
    assert (other.near, other.distance) == ("", 0)
    with View(layout) as view:
        rows = [row for _, state in view.workers() for row in state.rows()]
    assert [key for family, key, _ in rows if family == "near"] == [(78).to_bytes(8)]
    assert {family for family, _, _ in rows} & {"revisit", "content"} == set()


def test_the_record_of_the_deed_does_not_tell_where_it_was(layout: Layout) -> None:
    deeds.take_down(layout.data, order(), quiet)
    begun, told = [json.loads(line) for line in layout.takedowns.read_text().splitlines()]
    assert (begun["proof"], begun["pages"], begun["urls"]) == (None, 2, told["urls"])
    assert told["what"] == sha256(PRIVATE.encode()).hexdigest()
    assert (told["by"], told["reason"], told["pattern"]) == ("tester", "request 17", "")
    assert told["proof"]["left"] == []
    for path in (layout.takedowns, layout.blocked):
        assert "jane" not in path.read_text()
    deeds.take_down(layout.data, order(keep_pattern=True), quiet)
    assert json.loads(layout.takedowns.read_text().splitlines()[-1])["pattern"] == PRIVATE


@pytest.mark.parametrize(
    ("kind", "text", "gone"),
    [
        ("url", "http://example.org/people/jane?a=1", {PRIVATE}),
        ("prefix", f"{HOME}people/", {PRIVATE, f"{HOME}people/joe", f"{HOME}people/new"}),
        ("pattern", r"/people/j\w+", {PRIVATE, f"{HOME}people/joe"}),
        ("site", "example.net", {ELSEWHERE}),
    ],
)
def test_what_is_meant(layout: Layout, kind: str, text: str, gone: set[str]) -> None:
    done = deeds.take_down(layout.data, order(kind, text), quiet)
    assert done.proof is not None
    assert done.proof.clean, done.proof
    with View(layout) as view:
        assert {record.url for record in view.records() if record.status is Status.REFUSED} == gone
        queued = [row for _, state in view.workers() for row in state.waiting_rows("queue")]
        assert len(queued) == (f"{HOME}people/new" not in gone)
    readable(layout.data)
    assert not {page.url for page in read_pages(layout.pages)} & gone


def test_a_whole_site_goes_with_its_robots_txt(layout: Layout) -> None:
    done = deeds.take_down(layout.data, order("site", "example.org"), quiet)
    assert done.proof is not None
    assert done.proof.clean, done.proof
    assert [page.url for page in read_pages(layout.pages)] == [ELSEWHERE]
    assert set(refs(layout.data)) == {ELSEWHERE}
    readable(layout.data)


def test_a_dry_run_changes_nothing(layout: Layout) -> None:
    def state() -> dict[str, bytes]:
        kept = [
            path
            for path in layout.data.rglob("*")
            if path.is_file() and "state" not in path.parts and path.name != "lock"
        ]
        return {str(path): path.read_bytes() for path in kept}

    before = state()
    done = deeds.take_down(layout.data, order(dry_run=True), quiet)
    assert (done.pages, done.proof) == (2, None)
    assert state() == before
    assert known(layout.data, PRIVATE).status is Status.FETCHED


class Killed(Exception):
    pass


def steps(*names: str, quick: set[str]) -> list[object]:
    """All of them are tried, some of them every time."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize(
    "fatal",
    steps("block", "state", "records", "pages", "derived", "compact", "proof", "record", quick={"records", "proof"}),
)
def test_cut_short_and_run_again(layout: Layout, fatal: str) -> None:
    def tell(step: str) -> None:
        if step == fatal:
            raise Killed

    with pytest.raises(Killed):
        deeds.take_down(layout.data, order(), tell)
    readable(layout.data)
    done = deeds.take_down(layout.data, order(), quiet)
    assert done.proof is not None
    assert done.proof.clean, done.proof
    assert everywhere(layout.data, SECRET) == []
    assert known(layout.data, PRIVATE).status is Status.REFUSED
    assert len(read_entries(layout.blocked)) == 1


def removed(layout: Layout) -> dict[str, Instant]:
    """What readers of the feed hear."""
    return {each.url_hash: each.before for _, each in Removals(layout).behind(0)}


@pytest.mark.parametrize("place", ["append", "add_entries"])
def test_nobody_hears_of_one_that_was_cut_short_before_it_blocked_anything(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(deeds, place, killed)
        with pytest.raises(Killed):
            deeds.take_down(layout.data, order(), quiet)
    deeds.take_down(layout.data, order(text=OTHER), quiet)
    assert {*removed(layout)} == {url_hash(key(OTHER))}
    assert PRIVATE in {page.url for page in read_pages(layout.pages)}
    deeds.take_down(layout.data, order(), quiet)
    assert {*removed(layout)} == {url_hash(key(OTHER)), url_hash(key(PRIVATE))}


def test_the_tally_knows_what_became_of_urls(layout: Layout) -> None:
    """One that waited, one that robots.txt forbade, and one of those that stays."""
    router, state = Router(8), RocksState(layout.state(0))
    forbidden = {
        router.id_of(url): UrlRecord(url, Status.BLOCKED, 1, 4, 9, Instant(THEN), HOME, job=2)
        for url in (f"{HOME}people/private", f"{HOME}private")
    }
    tally = Tally(discovered=9, settled=6, blocked=2, jobs={1: JobTally(5, 4), 2: JobTally(4, 4)})
    asyncio.run(state.commit(Changes(records=forbidden, marks={"tally": msgspec.msgpack.encode(tally)})))
    state.shut()
    for _ in range(2):  # again: it is counted once
        deeds.take_down(layout.data, order("prefix", f"{HOME}people/"), quiet)
        with View(layout) as view:
            tally = view.tally()
        assert (tally.discovered, tally.settled, tally.blocked) == (9, 8, 1)
        assert tally.jobs == {1: JobTally(5, 5), 2: JobTally(4, 4)}


def test_a_power_cut_in_the_middle_of_a_record_is_made_good(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    def torn(file: int, offset: int, data: bytes) -> None:
        import os

        os.pwrite(file, data[: len(data) // 2], offset)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("harvestman.store.erase.write_over", torn)
        with pytest.raises(Killed):
            deeds.take_down(layout.data, order(), quiet)
    assert (layout.data / "erasing").exists()
    done = deeds.take_down(layout.data, order(), quiet)
    assert done.proof is not None
    assert done.proof.clean, done.proof
    assert everywhere(layout.data, SECRET) == []
    readable(layout.data)


def test_what_a_crash_left_half_written_goes_as_well(layout: Layout) -> None:
    newest = max((layout.data / "warc").glob("*.warc.gz"))
    with newest.open("ab") as file:
        file.write(f"half a record: {SECRET}".encode())
    log = max(layout.pages.glob("*.pages"))
    with log.open("ab") as file:
        file.write(b"\0\0\1\0\0\0\0\0" + SECRET.encode())
    done = deeds.take_down(layout.data, order(), quiet)
    assert done.proof is not None
    assert done.proof.clean, done.proof
    assert everywhere(layout.data, SECRET) == []


def test_a_crawl_that_runs_is_left_alone(layout: Layout) -> None:
    with locked(layout.data), pytest.raises(StateError, match="in use"):
        deeds.take_down(layout.data, order(), quiet)


# -- the proof -------------------------------------------------------------------------------------------------------


def test_the_proof_finds_what_is_left(layout: Layout) -> None:
    which = Which([entry("url", PRIVATE)])
    proof = deeds.verify(layout.data, which, [SECRET.encode()], [PRIVATE])
    left = "\n".join(proof.left)
    for word in ("response record", "a page of it", "State, url", "State, content", "State, near", "query/made.jsonl"):
        assert word in left, word
    deeds.take_down(layout.data, order(), quiet)
    assert deeds.verify(layout.data, which, [SECRET.encode()], ()).clean
    (layout.data / "note.txt.gz").write_bytes(gzip.compress(SECRET.encode()))
    assert deeds.verify(layout.data, which, [SECRET.encode()], ()).left == ["note.txt.gz: a stretch of it"]
    (layout.data / "copy.parquet").write_bytes(b"not one")
    assert deeds.verify(layout.data, which, (), ()).unsearched == ["copy.parquet"]


@pytest.mark.slow
def test_the_proof_looks_into_what_was_made_of_pages(layout: Layout) -> None:
    for form in ("parquet", "wacz"):
        assert main(["export", str(layout.data), "--format", form]) == 0
    which = Which([entry("url", PRIVATE)])
    left = deeds.verify(layout.data, which, [SECRET.encode()], ()).left
    assert {"export/pages.parquet: a stretch of it", "export/crawl.wacz: a stretch of it"} <= {*left}
    deeds.take_down(layout.data, order(), quiet)
    assert main(["export", str(layout.data), "--format", "parquet"]) == 0
    assert main(["export", str(layout.data), "--format", "wacz"]) == 0
    assert deeds.verify(layout.data, which, [SECRET.encode()], ()).clean
    pyarrow.parquet.write_table(pyarrow.table({"text": ["x", f"and {SECRET}"]}), layout.data / "leak.parquet")
    assert deeds.verify(layout.data, which, [SECRET.encode()], ()).left == ["leak.parquet: a stretch of it"]


def test_words_of_other_pages_are_no_trace(layout: Layout) -> None:
    proof = deeds.verify(layout.data, Which(()), [b"Something else altogether"], ())
    assert (proof.left, proof.shared) == ([], 1)


def test_the_verb(layout: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(layout.data)
    assert main(["takedown", data, "--url", PRIVATE]) == 2
    assert main(["takedown", data, "--reason", "x"]) == 2
    assert main(["takedown", data, "--url", PRIVATE, "--reason", "x", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["proof"]["left"] == []
    assert main(["takedown", data, "--verify", "--phrase", SECRET]) == 0
    assert "nothing is left" in capsys.readouterr().out
    assert main(["takedown", data, "--verify", "--phrase", "Another site."]) == 0
    (layout.data / "leak").write_text(SECRET)
    assert main(["takedown", data, "--verify", "--phrase", SECRET]) == 3
    assert "left: leak" in capsys.readouterr().out
    capsys.readouterr()
    assert main(["show", OTHER, "--data", data]) == 0
    assert "Something else altogether" in capsys.readouterr().out
    assert main(["export", data, "--format", "jsonl"]) == 0
    exported = [json.loads(line)["url"] for line in capsys.readouterr().out.splitlines()]
    assert OTHER in exported
    assert PRIVATE not in exported


def test_a_list_of_urls_goes_at_once(layout: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    """Found by what they say, as one would look for a person."""
    data, listed = str(layout.data), layout.data.parent / "jane.csv"
    sql = f"select distinct url from pages where text like '%{SECRET}%' or text like '%{SECRET[::-1]}%' order by url"
    shutil.rmtree(layout.data / "query")
    assert main(["query", data, sql, "--csv"]) == 0
    listed.write_text(capsys.readouterr().out)
    assert main(["takedown", data, "--urls", str(listed), "--reason", "request 18", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["kind"], done["pages"], done["proof"]["left"]) == ("url", 3, [])
    assert len(read_entries(layout.blocked)) == 2
    assert everywhere(layout.data, SECRET) == everywhere(layout.data, SECRET[::-1]) == []
    assert known(layout.data, PRIVATE).status is known(layout.data, f"{HOME}people/joe").status is Status.REFUSED
    listed.write_text("url\n")
    assert main(["takedown", data, "--urls", str(listed), "--reason", "x"]) == 2
    assert main(["takedown", data, "--urls", str(listed.with_suffix(".no")), "--reason", "x"]) == 2
    said = capsys.readouterr().err
    assert "there is no URL in it" in said
    assert "No such file" in said


LISTED = ("https://e.org/a,b", 'https://e.org/?q="x', "http://e.org/2")


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(LISTED),
        "\r\n".join(("", *LISTED, "", "")),
        "\ufeff" + "\n".join(LISTED),
        'url,title\n"https://e.org/a,b","x\ny"\n"https://e.org/?q=""x",\n\nhttp://e.org/2,a,b\n',
        '\ufeff"URL"\r\n"https://e.org/a,b"\r\n"https://e.org/?q=""x"\r\nhttp://e.org/2\r\n',
    ],
)
def test_a_list_is_plain_unless_it_has_a_header(tmp_path: Path, text: str) -> None:
    """A URL cut off at its comma would be another page, deleted and blocked for ever."""
    (tmp_path / "list").write_bytes(text.encode())
    assert [url for _, url in _meant("urls", str(tmp_path / "list"))] == [*LISTED]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("https://e.org/\n\ne.org/a\n", 3), ("address\nhttps://e.org/\n", 1), ('"https://e.org/",x\n', 1),
        ("\nurl,title\nhttps://e.org/,\"a\nb\"\n,nameless\n", 5), ("url;title\nhttps://e.org/;x", 1),
    ],
)  # fmt: skip
def test_what_is_no_url_stops_the_whole_list(tmp_path: Path, text: str, line: int) -> None:
    (tmp_path / "list").write_text(text)
    with pytest.raises(UsageError, match=f"list, line {line}: "):
        _meant("urls", str(tmp_path / "list"))


# -- what is blocked stays out ---------------------------------------------------------------------------------------


def test_neither_a_link_nor_a_seed_brings_it_back(layout: Layout) -> None:
    deeds.take_down(layout.data, order("prefix", f"{HOME}people/"), quiet)
    fresh = f"{HOME}people/never-seen"
    state, router = RocksState(layout.state(0)), Router(8)
    config = Config()

    async def meet() -> tuple[int, list[UrlRecord | None]]:
        seen = Seen(state, 1000, 0.01)
        frontier = Frontier(state, seen, RobotsBook(state, "x"), router, Jobs(layout), config, Random(1), NOW)
        frontier.intake.blocked = Which(read_entries(layout.blocked))
        found = [
            Discovery(PRIVATE, 0, "seed", "seed", job=1),
            Discovery(fresh, 1, HOME),
            Discovery(f"{HOME}allowed", 1, HOME),
        ]
        await frontier.add([router.route(each) for each in found], NOW)
        changes = frontier.take()
        await state.commit(changes)
        records = await state.records([router.id_of(each.url) for each in found])
        return len(changes.queued), records

    queued, (private, new, allowed) = asyncio.run(meet())
    state.shut()
    assert queued == 1
    assert private is not None
    assert new is not None
    assert allowed is not None
    assert (private.status, new.status, allowed.status) == (Status.REFUSED, Status.REFUSED, Status.PENDING)
    assert new.visit is not None
    assert new.visit.reason == "blocked: request 17"


def test_which_urls_an_entry_means() -> None:
    which = Which([entry("url", "https://Example.org/a?b=1&a=2"), entry("site", "example.net")])
    assert which.of("http://example.org/a?a=2&b=1")
    assert not which.of("https://example.org/a?a=2")
    assert which.of("https://deep.down.example.net/x")
    assert not which.of("https://example.net.evil.org/")
    assert not which.of("")
    assert not Which(())


@pytest.mark.parametrize(("kind", "text"), [("site", "www.example.org"), ("pattern", "("), ("pattern", ".*")])
def test_what_cannot_be_meant_is_refused(kind: str, text: str) -> None:
    with pytest.raises(UsageError):
        entry(kind, text)


# -- fillers ---------------------------------------------------------------------------------------------------------


@given(st.integers(200, 200_000), st.integers(0, 2**40))
def test_a_filler_has_the_very_length(length: int, offset: int) -> None:
    member = filler("w00-20260101000000-00000.warc.gz", Cut(offset, length), NOW)
    assert len(member) == length
    fields, block = parse_record(opened(member))
    assert (fields["warc-type"], block) == ("erased", b"")


def test_a_frame_keeps_its_length_and_those_behind_it(tmp_path: Path) -> None:
    pages = [Page(f"{HOME}{n}", 200, NOW, "text/html", 1, "", text=f"Text {n} " * n) for n in range(20)]
    log = PageLog(tmp_path, "w00", None)
    log.append(pages[:10])
    log.append(pages[10:])
    log.close()
    (path,) = tmp_path.glob("*.pages")
    size = path.stat().st_size
    first = next(frames(path))
    redo = Redo(tmp_path)
    redo.put(path, first.start, frame_with(pages[3:5], first.end))
    redo.flush()
    assert path.stat().st_size == size
    assert list(read_pages(tmp_path)) == pages[3:5] + pages[10:]
    assert [path.name for path in tmp_path.iterdir()] == [path.name]


# -- retention and holds ---------------------------------------------------------------------------------------------


def aged(data: Path) -> Layout:
    """Three files of raw records and pages each; the first two are old."""
    for number in range(3):
        with Small(data, warc_bytes=1, log_bytes=1) as small:
            if number == 2:
                small.now += 100_000
            small.page(f"{HOME}{number}", f"Page number {number} says {SECRET[number * 5 :]}")
            small.commit()
            small.page(f"https://held.example/{number}", f"Held number {number}.")
            small.commit()
    return Layout(data)


def keep(layout: Layout, *kinds: str, dry_run: bool = False, tell: Callable[[str], None] = quiet) -> Retained:
    until = Instant(THEN + 50_000)
    return retain(layout.data, Wanted(until, kinds), "tester", NOW, dry_run, tell)


def test_what_is_old_goes_and_what_is_new_stays(old: Layout) -> None:
    layout = old
    before = len(list(layout.warc.glob("*.warc.gz")))
    assert keep(layout, dry_run=True).pages == 4
    done = keep(layout)
    assert (done.records, done.pages, done.held) == ({"response": 4, "request": 4}, 4, 0)
    assert {page.url for page in read_pages(layout.pages)} == {f"{HOME}2", "https://held.example/2"}
    assert set(refs(layout.data)) == {f"{HOME}2", "https://held.example/2"}
    assert known(layout.data, f"{HOME}0").status is Status.FETCHED
    assert len(list(layout.warc.glob("*.warc.gz"))) < before
    readable(layout.data)
    assert json.loads(layout.takedowns.read_text())["kind"] == "retention"


def test_raw_content_may_go_when_it_was_extracted(old: Layout) -> None:
    layout = old
    keep(layout, "response", "request")
    assert len(list(read_pages(layout.pages))) == 6
    assert set(refs(layout.data)) == {f"{HOME}2", "https://held.example/2"}


def validators(layout: Layout, url: str) -> tuple[bytes, str, str]:
    visit = known(layout.data, url).visit
    assert visit is not None
    return visit.digest, visit.etag, visit.last_modified


@pytest.fixture
def known_well(tmp_path: Path) -> Layout:
    """Pages whose servers gave validators: an old one, one that changed since, one that went back to what it was."""
    with Small(tmp_path / "crawl") as small:
        for name in ("old", "changed", "back"):
            small.page(f"{HOME}{name}", "Once.")
            small.commit()
        small.page(f"{HOME}back", "Twice.")
        small.now += 100_000
        small.page(f"{HOME}changed", "Twice.")
        small.page(f"{HOME}back", "Once.")
        small.commit()
    router, state = Router(8), RocksState(small.layout.state(0))
    ids = [router.id_of(f"{HOME}{name}") for name in ("old", "changed", "back")]
    records = {url: record for url, record in zip(ids, asyncio.run(state.records(ids)), strict=True) if record}
    for record in records.values():
        assert record.visit is not None
        record.visit.etag, record.visit.last_modified = ETAG, "yesterday"
    asyncio.run(state.commit(Changes(records=records)))
    state.shut()
    return small.layout


@pytest.mark.parametrize("kinds", [(), ("page",), ("html",)])
def test_a_url_whose_page_went_is_asked_for_whole(known_well: Layout, kinds: tuple[str, ...]) -> None:
    before = {name: validators(known_well, f"{HOME}{name}") for name in ("changed", "back")}
    assert keep(known_well, *kinds).pages == 4
    assert validators(known_well, f"{HOME}old") == (b"", "", "")
    assert {name: validators(known_well, f"{HOME}{name}") for name in before} == before


def test_a_url_whose_page_stays_keeps_its_validators(known_well: Layout) -> None:
    before = validators(known_well, f"{HOME}old")
    keep(known_well, "response", "request", "revisit")
    assert validators(known_well, f"{HOME}old") == before == (before[0], ETAG, "yesterday")


def test_what_was_not_yet_taken_in_is_kept(tmp_path: Path) -> None:
    with Small(tmp_path / "crawl") as small:
        small.page(HOME, "Committed.")
        small.commit()
        small.page(OTHER, "Written, and then it crashed.")
    layout = Layout(tmp_path / "crawl")
    assert keep(layout).records == {"response": 1, "request": 1}
    left = [parse_record(member.data)[0] for path in layout.warc.glob("*.gz") for member in members(path)]
    assert {fields["warc-target-uri"] for fields in left if "warc-target-uri" in fields} == {OTHER}


def test_a_hold_is_respected(old: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    layout = old
    data, site = str(layout.data), ["--site", "held.example"]
    assert main(["hold", "add", data, *site]) == 2
    assert main(["hold", "add", data, *site, "--reason", "case 12"]) == 0
    assert main(["hold", "list", data]) == 0
    assert "held.example" in capsys.readouterr().out
    done = keep(layout)
    assert done.held > 0
    assert {page.url for page in read_pages(layout.pages)} == {
        f"{HOME}2", *(f"https://held.example/{number}" for number in range(3)),
    }  # fmt: skip
    readable(layout.data)
    take = ["takedown", data, *site, "--reason", "x"]
    assert main(take) == 3
    assert "legal hold (case 12)" in capsys.readouterr().err
    assert known(layout.data, "https://held.example/0").status is Status.FETCHED
    assert main([*take, "--despite-hold"]) == 0
    assert main(["hold", "drop", data, *site, "--reason", "closed"]) == 0
    assert main(["hold", "drop", data, *site]) == 2
    kinds = [json.loads(line)["kind"] for line in layout.takedowns.read_text().splitlines()]
    assert kinds == ["hold add", "retention", "site", "site", "hold drop"]


@pytest.mark.parametrize("fatal", steps("state", "records", "pages", "files", "derived", quick={"pages"}))
def test_retention_cut_short_and_run_again(old: Layout, fatal: str) -> None:
    layout = old

    def tell(step: str) -> None:
        if step == fatal:
            raise Killed

    with pytest.raises(Killed):
        keep(layout, tell=tell)
    readable(layout.data)
    keep(layout)
    assert {page.url for page in read_pages(layout.pages)} == {f"{HOME}2", "https://held.example/2"}
    readable(layout.data)


# -- retention by medium ---------------------------------------------------------------------------------------------

PAPER, WITHHELD, BARE, SCAN = f"{HOME}paper", "https://held.example/paper", f"{HOME}bare", f"{HOME}scan"


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """HTML and PDF, old and new; a PDF that says nothing of itself, one that came again, unchanged and as a copy."""
    with Small(tmp_path_factory.mktemp("media") / "crawl") as small:
        small.page(HOME, "Old words.")
        paper = small.page(PAPER, f"%PDF-1.7 {SECRET}", media="application/pdf; version=1.7")
        small.page(WITHHELD, "%PDF-1.7 evidence", media="application/pdf")
        small.page(BARE, "%PDF-1.7 nameless", media="")
        small.commit()
        small.unchanged(paper, media="")
        small.copy(f"{HOME}copy", paper)
        small.page(SCAN, "\x89PNG scan", media="image/png")
        small.commit()
        small.now += 100_000
        small.page(f"{HOME}new", "%PDF-1.7 of today", media="application/pdf")
        small.commit()
    return small.layout.data


@pytest.fixture
def of_media(mixed: Path, tmp_path: Path) -> Layout:
    return Layout(Path(shutil.copytree(mixed, tmp_path / "crawl")))


def left(layout: Layout) -> dict[str, list[str]]:
    """By kind of record, whose there are."""
    found: dict[str, list[str]] = {"page": sorted(page.url for page in read_pages(layout.pages))}
    for path in sorted(layout.warc.glob("*.warc.gz")):
        for member in members(path):
            fields = parse_record(member.data)[0]
            if url := fields.get("warc-target-uri"):
                found.setdefault(fields["warc-type"], []).append(url)
    return {kind: sorted(urls) for kind, urls in found.items()}


def test_a_medium_goes_and_the_others_stay(of_media: Layout) -> None:
    assert main(["hold", "add", str(of_media.data), "--site", "held.example", "--reason", "case 12"]) == 0
    done = keep(of_media, "pdf")
    # A 304 that says no type is of the one its URL has; the copy says it; each request goes with its answer.
    assert done.records == {"response": 2, "revisit": 2, "request": 3}
    assert (done.pages, done.held, done.kinds) == (2, 3, ["pdf"])
    stay = [HOME, f"{HOME}new", SCAN, WITHHELD]
    assert left(of_media) == {"response": stay, "request": stay, "page": stay}
    assert everywhere(of_media.data, SECRET) == []
    assert known(of_media.data, PAPER).status is Status.FETCHED
    readable(of_media.data)
    again = keep(of_media, "pdf")
    assert (again.records, again.pages, again.held) == ({}, 0, 3)


def test_readers_hear_of_no_version_behind_the_newest_that_went(tmp_path: Path) -> None:
    with Small(tmp_path / "crawl") as small:
        small.page(PAPER, "%PDF-1.7 first", media="application/pdf")
        gone = small.page(PAPER, "%PDF-1.7 second", media="application/pdf")
        stays = small.page(PAPER, "Words of today.")
        small.commit()
    assert keep(small.layout, "pdf").pages == 2
    assert [page.digest for page in read_pages(small.layout.pages)] == [stays.digest]
    ((name, before),) = removed(small.layout).items()
    assert name == url_hash(key(PAPER))
    assert gone.fetched_at < before < stays.fetched_at
    assert warc_date(gone.fetched_at) < warc_date(before)


def test_media_and_what_is_stored_are_both_asked_for(of_media: Layout) -> None:
    before = left(of_media)
    assert keep(of_media, "pdf", "image", "response").records == {"response": 4}
    assert left(of_media) == before | {"response": [HOME, f"{HOME}new"]}
    # The answers are gone: whose the requests are is known from State; of a bare one nothing is.
    assert keep(of_media, "pdf", "request").records == {"request": 3}
    assert keep(of_media, "image", "page").pages == 1
    assert left(of_media)["page"] == sorted({*before["page"]} - {SCAN})


@for_each(
    ("said", "made", "medium"),
    [
        ("text/html; charset=utf-8", {}, "html"), ("APPLICATION/PDF", {}, "pdf"), ("image/svg+xml", {}, "image"),
        ("application/rss+xml", {}, "xml"), ("application/ld+json", {}, "json"), ("text/csv", {}, "text"),
        ("application/zip", {}, "other"), ("", {"title": "T"}, "html"), ("", {"text": "t"}, "text"), ("", {}, "other"),
    ],
)  # fmt: skip
def test_the_medium_of_a_page(said: str, made: dict[str, str], medium: str) -> None:
    page = msgspec.structs.replace(Page(HOME, 200, NOW, said, 1, ""), **made)
    assert medium_of(page) == medium
    assert medium in MEDIA


def test_files_that_were_begun_later_are_not_read(old: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    read_ones: list[str] = []

    def noted(path: Path) -> Iterator[Member]:
        read_ones.append(path.name)
        return members(path)

    monkeypatch.setattr("harvestman.takedown.survey.members", noted)
    keep(old, dry_run=True)
    assert 0 < len(read_ones) < len(list(old.warc.glob("*.warc.gz")))


def test_a_run_that_has_ended_deletes_by_itself(of_media: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(of_media.data)
    by_itself(Config(data=data), quiet=False)
    by_itself(Config(data=data, retention=(Retention(Seconds(3_650 * 86_400.0)),)), quiet=False)
    assert (capsys.readouterr().err, of_media.takedowns.exists()) == ("", False)
    build_index(of_media.warc)
    rules = (Retention(Seconds(1.0), ("image",)), Retention(Seconds(1.0), ("pdf", "response")))
    with locked(of_media.data):
        by_itself(Config(data=data, retention=rules), quiet=True)
    assert "Nothing was deleted for its age" in capsys.readouterr().err
    by_itself(Config(data=data, retention=rules), quiet=False)
    assert capsys.readouterr().err.count("Retention, older than") == 2
    lines = [json.loads(line) for line in of_media.takedowns.read_text().splitlines()]
    assert [(line["kinds"], line["by"]) for line in lines] == [
        (["image"], "harvestman crawl"), (["pdf", "response"], "harvestman crawl"),
    ]  # fmt: skip
    assert left(of_media)["response"] == [HOME]
    assert "scan" not in (of_media.warc / "index.cdxj").read_text()  # it was made anew


def test_the_index_is_there_when_pages_alone_went(of_media: Layout) -> None:
    build_index(of_media.warc)
    before = (of_media.warc / "index.cdxj").read_text()
    rules = (Retention(Seconds(1.0), ("page",)),)
    by_itself(Config(data=str(of_media.data), retention=rules), quiet=True)
    assert left(of_media)["page"] == []
    assert (of_media.warc / "index.cdxj").read_text() == before


def test_the_index_is_there_when_a_later_rule_failed(
    of_media: Layout, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(data: Path, wanted: Wanted, *rest: object) -> Retained:
        if "pdf" in wanted.kinds:
            raise StateError("in use")
        return retain(data, wanted, *rest)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr("harvestman.takedown.retention.retain", failing)
    rules = (Retention(Seconds(1.0), ("image",)), Retention(Seconds(1.0), ("pdf",)))
    by_itself(Config(data=str(of_media.data), retention=rules), quiet=True)
    assert "Nothing more was deleted for its age: in use" in capsys.readouterr().err
    index = (of_media.warc / "index.cdxj").read_text()
    assert "paper" in index
    assert "scan" not in index


def test_retain_the_verb(old: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    layout = old
    assert main(["retain", str(layout.data), "--older-than", "3650d", "--json"]) == 0
    done = msgspec.json.decode(capsys.readouterr().out, type=Retained)
    assert (done.records, done.pages) == ({}, 0)


def test_a_broken_list_stops_everything(layout: Layout) -> None:
    layout.blocked.write_text("{")
    with pytest.raises(HarvestmanError, match=r"blocked\.jsonl"):
        read_entries(layout.blocked)
