"""A crawl with pages that a browser showed, read through every verb."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import zipfile
from collections import Counter, defaultdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
import pytest
import shown
from cdxj_indexer.main import CDXJIndexer  # type: ignore[import-untyped]  # ships no types
from cli import mending
from cli.mending import run
from formats.small import HOME, Small
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]  # ships no types

from harvestman.cli.main import main
from harvestman.feed import Event, events, parse
from harvestman.frontier.routing import Router
from harvestman.layout import Layout
from harvestman.model import RESOURCE, Instant, Page, Status
from harvestman.ports import Changes
from harvestman.store.cdxj import build_index
from harvestman.store.records import KIND
from harvestman.views import View

BIN = Path(sys.executable).parent
JAVASCRIPT, JSON = "text/javascript", "application/json"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For tests that change nothing but what verbs make of a crawl."""
    return shown.crawl(tmp_path_factory, tmp_path_factory.mktemp("rendered"))


@pytest.fixture
def own(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shown.crawl(tmp_path_factory, tmp_path)


def tool(*words: str | Path) -> None:
    """A program of another package, which must be content."""
    done = subprocess.run([BIN / words[0], *words[1:]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def versions(data: Path) -> Counter[tuple[str, bool, str]]:
    """The page log: the truth that all others are measured by."""
    return Counter((page.url, page.rendered, page.digest) for page in shown.pages(data))


# -- tables ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_tables_have_both_versions_and_the_latest_is_the_rendered_one(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for form in ("parquet", "dataset"):
        run(capsys, "export", data, "--format", form)
    lines = [json.loads(line) for line in run(capsys, "export", data, "--format", "jsonl")[0].splitlines()]
    tables = {
        "jsonl": lines,
        "parquet": pq.read_table(data / "export" / "pages.parquet").to_pylist(),
        "dataset": pq.read_table(data / "export" / "dataset" / "pages").to_pylist(),
    }
    latest = {page.url: page.digest for page in shown.latest(data).values()}
    for name, rows in tables.items():
        assert Counter((row["url"], row["rendered"], row["digest"]) for row in rows) == versions(data), name
        last = {row["url"]: row for row in sorted(rows, key=lambda row: str(row["fetched_at"]))}
        assert {url: row["digest"] for url, row in last.items()} == latest, name
        assert all(last[url]["rendered"] for url in shown.filled(data)), name
    texts = pq.read_table(data / "export" / "dataset" / "text").to_pylist()
    assert Counter((row["url"], row["digest"]) for row in texts) == Counter(
        {(url, digest): count for (url, _, digest), count in versions(data).items()}
    )


@pytest.mark.slow
def test_queries_see_both_and_can_take_the_latest(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def asked(sql: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in run(capsys, "query", data, sql, "--json")[0].splitlines()]

    newest = "select distinct on (url_hash) url, rendered, text_chars from pages order by url_hash, fetched_at desc"
    found = {row["url"]: row for row in asked(newest)}
    assert {*found} == {page.url for page in shown.pages(data)}
    for url in shown.filled(data):
        assert found[url]["rendered"]
        assert found[url]["text_chars"] > shown.FULL
    (counts,) = asked("select count(*) n, count(*) filter (rendered) shown from pages")
    assert (counts["n"], counts["shown"]) == (sum(versions(data).values()), mending.tally(data).rendered)
    kinds = asked("select url from urls where kind = 'resource' and code = 200")
    assert sorted(row["url"] for row in kinds) == shown.resources(data)
    assert asked("select count(*) n from pages p join urls u using (url_hash) where u.kind = 'resource'") == [{"n": 0}]


@pytest.mark.slow
def test_the_graph_has_the_links_of_what_was_shown_once(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = json.loads(run(capsys, "graph", "rank", data, "--json")[0])["counts"]
    latest = shown.latest(data)
    assert (counts["pages"], counts["links"]) == (len(latest), sum(len(page.links) for page in latest.values()))
    nodes = {row["id"]: row["url"] for row in _numbered(data / "graph" / "nodes.parquet")}
    edges = pq.read_table(data / "graph" / "edges.parquet").to_pylist()
    out = defaultdict(set)
    for edge in edges:
        out[nodes[edge["from"]]].add(nodes[edge["to"]])
    assert len(edges) == len({(edge["from"], edge["to"]) for edge in edges})
    for url in shown.filled(data):
        assert out[url] == {link.url for link in latest[url].links} - {url}
    assert not {*shown.resources(data)} & {*nodes.values()}


def _numbered(path: Path) -> list[dict[str, Any]]:
    return [{"id": number, **row} for number, row in enumerate(pq.read_table(path).to_pylist())]


# -- the archive -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_tools_of_others_are_content_and_the_index_is_theirs(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(Layout(data).warc.glob("*.warc.gz"))
    kinds = Counter(fields["warc-type"] for _, _, fields in shown.raw(data))
    assert kinds["conversion"] == mending.tally(data).rendered
    tool("warcio", "check", *files)
    for path in files:
        tool("fastwarc", "check", path)
    theirs = io.StringIO()
    CDXJIndexer(theirs, [str(path) for path in files], sort=True).process_all()
    ours = build_index(Layout(data).warc).read_text()
    assert ours == theirs.getvalue()
    places = {(path.name, str(member.offset)): fields["warc-type"] for path, member, fields in shown.raw(data)}
    lines = [json.loads(line.split(" ", 2)[2]) for line in ours.splitlines()]
    assert {places[line["filename"], line["offset"]] for line in lines} == {"response"}
    assert {*shown.resources(data)} <= {line["url"] for line in lines}, "replay needs them"


@pytest.mark.slow
def test_a_package_for_replay(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "export", data, "--format", "wacz", "--text")
    package = data / "export" / "crawl.wacz"
    tool("wacz", "validate", "-f", package)
    with zipfile.ZipFile(package) as opened:
        lists = [opened.read(f"pages/{name}.jsonl").decode().splitlines()[1:] for name in ("pages", "extraPages")]
    listed = [json.loads(line) for lines in lists for line in lines]
    assert Counter(each["url"] for each in listed) == Counter(page.url for page in shown.pages(data))
    assert len({each["id"] for each in listed}) == len(listed)
    newest = {each["url"]: each for each in sorted(listed, key=lambda each: str(each["ts"]))}
    assert {url: each["text"] for url, each in newest.items()} == {
        url: page.text for url, page in shown.latest(data).items()
    }


@pytest.mark.slow
def test_the_text_files_have_what_was_shown_and_no_resources(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "export", data, "--format", "wet")
    files = sorted((data / "export" / "wet").iterdir())
    found = Counter[tuple[str, str]]()
    origins = {fields["warc-record-id"]: fields for _, _, fields in shown.raw(data)}
    for path in files:
        tool("warcio", "check", path)
        tool("fastwarc", "check", path)
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                if record.rec_type == "conversion":
                    head = record.rec_headers
                    origin = origins[head.get_header("WARC-Refers-To")]
                    assert origin["warc-target-uri"] == head.get_header("WARC-Target-URI")
                    assert KIND.lower() not in origin
                    found[head.get_header("WARC-Target-URI"), record.content_stream().read().decode()] += 1
    assert found == Counter((page.url, page.text) for page in shown.pages(data) if page.text)


# -- show --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_show(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for url in shown.filled(data)[:3]:
        page = shown.latest(data)[url]
        where = ("--data", data)
        assert run(capsys, "show", url, "--text", *where)[0] == f"{page.text}\n"
        told = run(capsys, "show", url, *where)[0]
        assert f"\n  title     {' '.join(page.title.split())}\n" in told
        assert "\n  rendered  2" in told
        assert "\nversions (1)\n" in told
        texts = told.partition("texts, for --diff (2)\n")[2].splitlines()[:2]
        assert texts[0].endswith(f"{len(page.text):,} characters, as a browser showed it")
        assert "browser" not in texts[1]
        found = json.loads(run(capsys, "show", url, "--json", *where)[0])
        assert [each["rendered"] for each in found["texts"]] == [False, True]
        assert found["page"]["digest"] == page.digest
        (raw,) = found["versions"]
        assert (raw["status"], raw["mime"]) == (200, "text/html")
        difference = run(capsys, "show", url, *where, "--diff")[0].splitlines()
        assert difference[0].startswith(f"--- {url} ")
        added = [line[1:] for line in difference[3:] if line.startswith("+")]
        assert {line for line in page.text.splitlines() if line} <= {*added, ""}


@pytest.mark.slow
def test_show_the_body_as_the_server_sent_it(data: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    url = shown.filled(data)[0]
    assert main(["show", url, "--raw", "--data", str(data)]) == 0
    body = capfdbinary.readouterr().out
    assert b"<script" in body
    assert len(body) < shown.FULL


@pytest.mark.slow
def test_show_a_resource(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = shown.resources(data, kind=JSON)[0]
    found = json.loads(run(capsys, "show", url, "--json", "--data", data)[0])
    assert (found["verdict"], found["page"], found["texts"], len(found["versions"])) == ("fetched", None, [], 1)
    assert "no page was made of it" in run(capsys, "show", url, "--text", "--data", data)[1]


# -- the feed ----------------------------------------------------------------------------------------------------------


def heard(data: Path, after: str = "0") -> list[Event]:
    async def hear() -> list[Event]:
        with View(Layout(data)) as view:
            return [event async for event in events(view, parse(after))]

    return asyncio.run(hear())


@pytest.mark.slow
def test_the_feed_tells_of_the_shell_and_then_of_what_was_shown(data: Path) -> None:
    told = heard(data)
    by_url = defaultdict(list)
    for event in told:
        by_url[event.url].append(event)
    assert Counter((event.url, event.digest) for event in told) == Counter(
        {(url, digest): count for (url, _, digest), count in versions(data).items()}
    )
    latest = shown.latest(data)
    for url, page in latest.items():
        changes = [event.change for event in by_url[url]]
        assert changes == (["new", "changed"] if page.rendered else ["new"])
        assert by_url[url][-1].digest == page.digest
        assert by_url[url][-1].title == page.title
    kinds = {(path.name, member.offset): fields["warc-type"] for path, member, fields in shown.raw(data)}
    for event in told:
        assert event.warc is not None
        rendered = (event.url, True, event.digest) in versions(data)
        assert kinds[event.warc.file, event.warc.offset] == ("conversion" if rendered else "response")
    assert not {*by_url} & {*shown.resources(data)}


@pytest.mark.slow
def test_a_reader_that_starts_again_anywhere_misses_nothing(data: Path) -> None:
    told = heard(data)
    whole = {(event.url, event.digest) for event in told}
    for number in range(0, len(told), 3):
        before = {(event.url, event.digest) for event in told[: number + 1]}
        rest = heard(data, told[number].cursor)
        assert before | {(event.url, event.digest) for event in rest} == whole
        assert len(rest) == len(told) - number - 1, "and, without a crash, nothing twice"


@pytest.mark.slow
def test_a_resource_that_is_a_page_by_now_is_not_told_of_as_one(own: Path) -> None:
    """A page linked to it later: its first record is that of a resource all the same."""
    before = heard(own)
    router = Router(Layout(own).read().partitions)
    with mending.opened(own) as states:
        for state in states:
            rows = [(url, record) for url, record in state.url_rows() if record.kind == RESOURCE]
            changed = {url: msgspec.structs.replace(record, kind="a") for url, record in rows}
            assert all(router.id_of(record.url) == url for url, record in changed.items())
            asyncio.run(state.commit(Changes(records=changed)))
    assert heard(own) == before


class Stage(Small):
    """A small crawl with a browser."""

    def __enter__(self) -> Stage:
        return self

    def show(self, page: Page, text: str) -> Page:
        self.now += 10.0
        body = f"<p>{text}</p>".encode()
        digest = sha256(body).hexdigest()
        self._warc.write_conversion(page.url, Instant(self.now), body, digest)
        found = msgspec.structs.replace(page, fetched_at=Instant(self.now), text=text, digest=digest, rendered=True)
        self._group.append(found)
        return found

    def resource(self, url: str) -> None:
        answer = self._answer(url, 200, b"{}", media=JSON)
        ref = self._warc.write(answer, digest=sha256(b"{}").hexdigest(), kind=RESOURCE)
        self._visited(url, Status.FETCHED, 200, sha256(b"{}").digest(), ref, media=JSON)


def test_a_reader_goes_on_through_a_crash_between_shell_and_browser(tmp_path: Path) -> None:
    def changes(after: str) -> tuple[list[tuple[str, str]], str]:
        told = heard(tmp_path, after)
        assert all(event.warc for event in told)
        return [(event.change, event.url) for event in told], told[-1].cursor if told else after

    app, other = f"{HOME}app", f"{HOME}other"
    with Stage(tmp_path) as stage:
        page = stage.page(app, "Loading")
        stage.resource(f"{HOME}data.json")
        stage.commit()
        told, cursor = changes("0")
        assert told == [("new", app)]
        stage.show(page, "All of it")
        stage.flush()  # and then it dies: a conversion that nobody committed stays in the file
        assert changes(cursor) == ([], cursor)
    with Stage(tmp_path) as stage:
        stage.page(other, "Another")
        stage.resource(f"{HOME}data.json")
        seen = stage.show(page, "All of it")
        stage.commit()
        told, end = changes(cursor)
        assert told == [("new", other), ("changed", app)]
        (last,) = [event for event in heard(tmp_path, cursor) if event.url == app]
        assert last.digest == seen.digest
        assert changes(end) == ([], end)
        stage.show(page, "All of it, later")
        stage.commit()
        assert changes(end)[0] == [("changed", app)]
    assert changes("0")[0] == [("new", app), ("new", other), ("changed", app), ("changed", app)]


# -- why, status, repair -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_why(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = shown.filled(own)[0]
    where = ("--data", own)
    told = run(capsys, "why", page, *where)[0]
    assert "\n  rendered  2" in told
    assert "waits for the browser" not in told
    resource = shown.resources(own, kind=JSON)[0]
    told = run(capsys, "why", resource, *where)[0]
    assert "fetched: HTTP 200" in told
    assert f"<- {mending.record(own, resource).via}" in told
    assert "\n  again " not in told, "pages ask for it, and nobody else"
    shown.queue(own, page, [resource])
    told = run(capsys, "why", page, *where)[0]
    assert "waits for the browser, 1 time so far" in told
    assert f"needs {resource}" in told
    found = json.loads(run(capsys, "why", page, "--json", *where)[0])["render"]
    assert (found["wants"], found["rounds"], found["outcome"]) == ([resource], 1, "ok")


@pytest.mark.slow
def test_status_and_the_verbs_that_do_not_know_of_browsers(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rendered = mending.tally(own).rendered
    assert f"{rendered} rendered, 0 waiting for a browser" in run(capsys, "status", own)[0]
    shown.queue(own, shown.filled(own)[0], [])
    told = run(capsys, "status", own)[0]
    assert f"{rendered} rendered, 1 waiting for a browser" in told
    assert f"{shown.HOSTS * shown.PAGES}  pages" in told
    assert len(shown.latest(own)) == shown.HOSTS * shown.PAGES
    assert json.loads(run(capsys, "status", own, "--json")[0])["tally"]["pages"] == shown.HOSTS * shown.PAGES
    assert json.loads(run(capsys, "traps", own, "--json")[0])["traps"] == []
    assert json.loads(run(capsys, "hosts", own, "--json")[0]) == []
    assert json.loads(run(capsys, "dead", "list", own, "--json")[0] or "[]") == []


@pytest.mark.slow
def test_the_queue_for_the_browser_is_repaired(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pages = shown.filled(own)[:3]
    for page in pages:
        shown.queue(own, page, shown.resources(own, page))
    before = mending.waiting(own)
    assert mending.examined(own).whole
    with mending.opened(own) as states:
        for state in states:
            state.renew("render")
    assert len(mending.waiting(own)) == len(before) - len(pages)
    assert not mending.examined(own).whole
    found = json.loads(run(capsys, "repair", own, "--json")[0])
    assert sum(worker["renders"] for worker in found["workers"]) == len(pages)
    assert sum(worker["missing"] for worker in found["workers"]) == len(pages)
    assert mending.waiting(own) == before
    assert mending.examined(own).whole
