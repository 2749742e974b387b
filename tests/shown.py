"""A crawl of a web whose pages are built by scripts, with a real browser: made once, copied for each test."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest
from browsers import a_browser
from cli import mending
from simweb import sim_web

from harvestman.config import Render
from harvestman.frontier.routing import Router
from harvestman.layout import Layout
from harvestman.model import RESOURCE, Instant, Page, UrlRecord
from harvestman.model import Render as Rendering
from harvestman.ports import Changes
from harvestman.store.members import Member, members
from harvestman.store.pages import read_pages
from harvestman.store.records import parse_record
from harvestman.supervise import Supervisor
from harvestman.views import View
from harvestman.wiring import prepare

HOSTS, PAGES = 8, 4
FULL = 1000
"""Characters: a page that was rendered with its content has more, a shell has fewer."""


def crawl(factory: pytest.TempPathFactory, here: Path) -> Path:
    """A copy, below `here`."""
    a_browser()
    return Path(shutil.copytree(_crawled(factory.getbasetemp()), here / "data"))


@cache
def _crawled(base: Path) -> Path:
    here = base / "shown"
    here.mkdir()
    with sim_web(here, hosts=HOSTS, pages=PAGES, profile="clean", scripted=0.6) as web:
        config = web.config(here / "data", workers=2, delay=0.1)
        config = msgspec.structs.replace(config, render=Render(share=1.0))
        supervisor = Supervisor(config, prepare(config, list(config.seeds)), lambda _: None)
        ending = asyncio.run(asyncio.wait_for(supervisor.run(), 240))
    assert (ending.reason, ending.progress.tally.unrendered) == ("finished", 0)
    assert ending.progress.tally.rendered > HOSTS
    return here / "data"


def pages(data: Path) -> list[Page]:
    return list(read_pages(Layout(data).pages))


def latest(data: Path) -> dict[str, Page]:
    """Of each URL the version that counts."""
    return {page.url: page for page in sorted(pages(data), key=lambda page: page.fetched_at)}


def filled(data: Path) -> list[str]:
    """Pages that have their content from scripts."""
    return sorted(page.url for page in pages(data) if page.rendered and len(page.text) > FULL)


def records(data: Path) -> list[UrlRecord]:
    with View(Layout(data)) as view:
        return list(view.records())


def resources(data: Path, via: str = "", kind: str = "") -> list[str]:
    """What scripts asked for and got: of one page, of one media type."""
    return sorted(
        record.url
        for record in records(data)
        if record.kind == RESOURCE
        and record.visit
        and record.visit.code == 200
        and via in ("", record.via)
        and kind in record.visit.content_type
    )


def raw(data: Path) -> Iterator[tuple[Path, Member, dict[str, str]]]:
    """Every raw record, with its fields."""
    for path in sorted(Layout(data).warc.glob("*.warc.gz")):
        for member in members(path):
            yield path, member, parse_record(member.data)[0]


def queue(data: Path, url: str, wants: list[str]) -> None:
    """As if a page waited for its browser, and for these."""
    router = Router(Layout(data).read().partitions)
    name = router.id_of(url)
    with mending.opened(data) as states:
        for state in states:
            (record,) = asyncio.run(state.records([name]))
            if record is None:
                continue
            due = Instant(record.found + 100)
            before = record.render or Rendering(record.found)
            record.render = msgspec.structs.replace(before, due=due, rounds=1, wants=wants)
            tally = state.tally()
            tally.unrendered += 1
            marks = {"tally": msgspec.msgpack.encode(tally)}
            asyncio.run(state.commit(Changes(records={name: record}, render=[(due, name)], marks=marks)))
            return
    raise AssertionError(url)
