"""Takedown and retention of pages that a browser showed, and of what their scripts asked for."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import msgspec
import pytest
import shown
from cli import mending
from cli.mending import run
from formats.small import HOME, Small
from takedown.test_whole import needles_of, tool, where

from harvestman.frontier.routing import Router
from harvestman.layout import Layout
from harvestman.model import RESOURCE, Instant, Page, Status
from harvestman.store.cdxj import build_index
from harvestman.store.pages import read_pages
from harvestman.store.records import KIND, instant
from harvestman.takedown.retention import Wanted, retain
from harvestman.takedown.survey import survey

JSON = "application/json"


@pytest.fixture
def data(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shown.crawl(tmp_path_factory, tmp_path)


def taken_down(capsys: pytest.CaptureFixture[str], data: Path, url: str, *more: str) -> dict[str, object]:
    out, _ = run(capsys, "takedown", data, "--url", url, "--reason", "test", "--by", "me", "--json", *more)
    done: dict[str, object] = json.loads(out)
    return done


def kinds(data: Path) -> Counter[str]:
    """Raw records by type; those of resources apart."""
    return Counter(
        "resource" if fields.get(KIND.lower()) == RESOURCE else fields["warc-type"] for _, _, fields in shown.raw(data)
    )


def check(data: Path) -> None:
    """Tools of others are content with what is left."""
    files = sorted(Layout(data).warc.glob("*.warc.gz"))
    tool("warcio", "check", *files)
    for path in files:
        tool("fastwarc", "check", path)
    assert build_index(Layout(data).warc).read_text() == tool("cdxj-indexer", "--sort", *files)


# -- takedown ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_nothing_is_left_of_a_page_that_was_shown(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = max(shown.filled(data), key=lambda each: len(shown.resources(data, each, JSON)))
    other = next(each for each in shown.filled(data) if each != url)
    brought = shown.resources(data, url, JSON)
    assert brought, "its scripts asked for what it says"
    shown.queue(data, url, brought)
    shown.queue(data, other, [url, *brought])
    left_over = data / "browser" / "w00" / "cache"
    left_over.parent.mkdir(parents=True, exist_ok=True)
    left_over.write_bytes(b"what a browser that was killed had in its cache")
    run(capsys, "export", data, "--format", "wacz", "--text")
    texts = [page.text for page in shown.pages(data) if page.url == url]
    stays = [page.text for page in shown.pages(data) if page.url != url]
    needles = needles_of(texts, stays)
    assert {name.partition("/")[0] for name in where(data, needles)} == {"warc", "pages", "export"}
    before, unrendered = kinds(data), mending.tally(data).unrendered

    dry = taken_down(capsys, data, url, "--dry-run")
    assert kinds(data) == before
    done = taken_down(capsys, data, url)
    assert dry["records"] == done["records"]
    assert isinstance(done["proof"], dict)
    assert done["proof"]["left"] == done["proof"]["unsearched"] == []
    assert (done["pages"], done["records"]) == (
        2,
        {"response": 1 + len(brought), "request": 1 + len(brought), "conversion": 1},
    )
    assert not where(data, needles)
    assert not left_over.exists()
    assert url not in {page.url for page in shown.pages(data)}
    assert not {url, *brought} & {fields.get("warc-target-uri") for _, _, fields in shown.raw(data)}
    record = mending.record(data, url)
    assert (record.status, record.render) == (Status.REFUSED, None)
    waits = mending.record(data, other).render
    assert waits is not None
    assert (waits.wants, waits.due > 0) == (brought, True), "the page that waits still does, for all but that"
    assert mending.tally(data).unrendered == unrendered - 1
    name = Router(Layout(data).read().partitions).id_of(url)
    assert not [row for row in mending.waiting(data) if row[1].endswith(name)]
    assert mending.examined(data).whole
    for each in brought:
        again = mending.record(data, each)
        assert (again.status, again.kind) == (Status.FETCHED, RESOURCE), "it is not blocked"
        assert again.visit is not None
        assert again.visit.ref is None
    assert json.loads(run(capsys, "takedown", data, "--verify", "--json")[0])["clean"]
    check(data)


@pytest.mark.slow
def test_a_resource_is_taken_down_by_its_own_url(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = shown.filled(data)[0]
    url = shown.resources(data, page, JSON)[0]
    shown.queue(data, page, [url])
    pages = shown.pages(data)
    done = taken_down(capsys, data, url)
    assert (done["pages"], done["records"]) == (0, {"response": 1, "request": 1})
    assert isinstance(done["proof"], dict)
    assert done["proof"]["left"] == []
    assert mending.record(data, url).status is Status.REFUSED
    waits = mending.record(data, page).render
    assert waits is not None
    assert (waits.wants, waits.due > 0) == ([], True)
    assert shown.pages(data) == pages, "what a page shows of it is that page's"
    assert url not in {fields.get("warc-target-uri") for _, _, fields in shown.raw(data)}
    check(data)


@pytest.mark.slow
def test_a_resource_under_legal_hold_stays(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = shown.filled(data)[0]
    held = shown.resources(data, page, JSON)[0]
    run(capsys, "hold", "add", data, "--url", held, "--reason", "case 3")
    done = taken_down(capsys, data, page)
    assert done["records"] == {"response": 1, "request": 1, "conversion": 1}
    assert held in {fields.get("warc-target-uri") for _, _, fields in shown.raw(data)}


# -- retention ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_was_shown_goes_with_the_responses(data: Path) -> None:
    before, pages, now = kinds(data), shown.pages(data), Instant(2e9)
    assert before["conversion"] > 0
    done = retain(data, Wanted(now, ("response",)), "me", now, False, lambda _: None)
    assert done.records == {
        "response": before["response"] + before["resource"], "conversion": before["conversion"],
    }  # fmt: skip
    after = kinds(data)
    assert (after["response"], after["conversion"], after["resource"]) == (0, 0, 0)
    assert after["request"] == before["request"]
    assert shown.pages(data) == pages
    check(data)


@pytest.mark.slow
def test_media(data: Path) -> None:
    before, pages, now = kinds(data), shown.pages(data), Instant(2e9)
    data_of = len(shown.resources(data, kind=JSON))
    done = retain(data, Wanted(now, ("json",)), "me", now, False, lambda _: None)
    assert done.records == {"response": data_of, "request": data_of}
    assert shown.pages(data) == pages
    scripts = before["resource"] - data_of
    assert kinds(data)["resource"] == scripts > 0
    done = retain(data, Wanted(now, ("html",)), "me", now, False, lambda _: None)
    assert (done.records["conversion"], done.pages) == (before["conversion"], len(pages))
    after = kinds(data)
    assert (after["conversion"], after["resource"]) == (0, scripts)
    assert not shown.pages(data)
    check(data)


@pytest.mark.slow
def test_age(data: Path) -> None:
    """What was shown has an age of its own."""
    times = sorted(instant(fields["warc-date"]) for _, _, fields in shown.raw(data) if "warc-target-uri" in fields)
    limit = times[len(times) // 2]
    pages = shown.pages(data)
    retain(data, Wanted(limit), "me", Instant(2e9), False, lambda _: None)
    left = [fields for _, _, fields in shown.raw(data) if "warc-target-uri" in fields]
    assert min(instant(fields["warc-date"]) for fields in left) >= limit
    assert shown.pages(data) == [page for page in pages if page.fetched_at >= limit]
    check(data)


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [(), ("page",)])
def test_a_page_whose_versions_went_is_fetched_whole_again(data: Path, kinds: tuple[str, ...]) -> None:
    """Both go. Found unchanged, its shell would never be stored again."""
    now = Instant(2e9)
    assert all(record.visit.digest for record in shown.records(data) if record.visit and record.render)
    retain(data, Wanted(now, kinds), "me", now, False, lambda _: None)
    visits = [record.visit for record in shown.records(data) if record.render]
    assert visits
    assert not [visit for visit in visits if visit and (visit.digest or visit.etag)]


def test_of_two_versions_the_digest_of_what_was_sent_is_the_one_that_counts(tmp_path: Path) -> None:
    with Small(tmp_path / "crawl") as small:
        sent = small.page(f"{HOME}app", "Loading")
        seen = msgspec.structs.replace(sent, digest="ff" * 32, rendered=True, fetched_at=Instant(sent.fetched_at + 9))
        small._group.append(seen)
        small.commit()
    layout = Layout(tmp_path / "crawl")
    assert [page.rendered for page in read_pages(layout.pages)] == [False, True]

    def last(gone: bool) -> tuple[Instant, str]:
        def goes(page: Page) -> bool:
            return gone or page.rendered

        found = survey(layout, lambda *_: False, goes).pages[sent.url]
        return found.at, found.digest.hex()

    assert last(True) == (seen.fetched_at, sent.digest)
    assert last(False) == (seen.fetched_at, "")
