"""Several jobs share one crawl of the simulated web: each with its own scope, depth, progress and end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import pytest
from simweb import SimWeb, sim_web
from stages.rawserver import RawServer, page

from harvestman.cli import jobstand
from harvestman.config import Config, Limits, Politeness
from harvestman.jobs import Jobs, Terms
from harvestman.layout import Layout
from harvestman.model import Instant, Job, Seconds
from harvestman.policy.urls import host_of
from harvestman.store.pages import read_pages
from harvestman.supervise import Ending, Supervisor
from harvestman.views import View
from harvestman.wiring import prepare

PAGES = 10


class Watched:
    """A crawl under way, and what its supervisor said."""

    def __init__(self, config: Config, layout: Layout) -> None:
        self.said: list[str] = []
        self.layout = layout
        self.supervisor = Supervisor(config, layout, lambda _: None, self.said.append)

    async def run(self) -> Ending:
        return await asyncio.wait_for(self.supervisor.run(), 120)


def add(layout: Layout, terms: Terms, *seeds: str) -> Job:
    return Jobs(layout).add(terms.over(Job(0, "", Instant(1.0))), seeds)


def on(web: SimWeb, number: int) -> str:
    """The seed on a host of the web."""
    origin = web.seeds[0].replace("h0001", f"h{number:04d}")
    return origin if origin.endswith("/") else f"{origin}/"


def owners(layout: Layout) -> dict[str, int]:
    """Every URL known, with its job."""
    with View(layout) as view:
        return {record.url: record.job for record in view.records()}


def check_progress(layout: Layout) -> list[jobstand.JobStanding]:
    """What `job list` says agrees with what is in the databases."""
    found = jobstand.look(layout)
    known = owners(layout)
    for job in found:
        assert job.state == "finished", job
        assert job.settled == job.discovered
        assert job.pages <= job.discovered
        assert list(known.values()).count(job.id) <= job.discovered
    return found


@pytest.mark.slow
def test_two_jobs_share_a_crawl(tmp_path: Path) -> None:
    with sim_web(tmp_path, hosts=12, pages=PAGES, profile="clean") as web:
        config = web.config(tmp_path / "data", workers=1, delay=0.1)
        layout = prepare(config, [on(web, 1)], Terms(scope="host", max_depth=9))
        add(layout, Terms("shallow", "high", 0, "host"), on(web, 2), on(web, 3))
        watched = Watched(config, layout)
        ending = asyncio.run(watched.run())
    assert ending.reason == "finished"
    first, second = check_progress(layout)
    known = owners(layout)
    assert {host_of(url) for url, job in known.items() if job == 1} == {"h0001.test"}
    assert {host_of(url) for url, job in known.items() if job == 2} == {"h0002.test", "h0003.test"}
    depths = {page.url: page.depth for page in read_pages(layout.pages)}
    assert max(depth for url, depth in depths.items() if host_of(url) == "h0001.test") > 0
    assert {depth for url, depth in depths.items() if host_of(url) != "h0001.test"} == {0}
    assert first.pages + second.pages == ending.progress.tally.pages
    ends = [line for line in watched.said if "finished" in line]
    assert sorted(line.split(":")[0] for line in ends) == [
        "Job 1 (h0001.test) is finished",
        "Job 2 (shallow) is finished",
    ]
    assert f"Job 2 (shallow) is finished: {second.pages} pages of {second.discovered} URLs." in ends


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_job_is_added_while_the_crawl_runs_and_workers_are_killed(tmp_path: Path, workers: int) -> None:
    async def crawl(watched: Watched, web: SimWeb) -> Ending:
        running = asyncio.create_task(watched.run())
        for number in range(2, 6):
            await asyncio.sleep(0.9)
            add(watched.layout, Terms(f"number {number}", scope="host", max_depth=2), on(web, number))
            for pid in watched.supervisor.pids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        return await running

    with sim_web(tmp_path, hosts=12, pages=PAGES, profile="clean") as web:
        config = web.config(tmp_path / "data", workers=workers, delay=0.3)
        layout = prepare(config, [on(web, 1)], Terms(scope="host"))
        watched = Watched(config, layout)
        ending = asyncio.run(crawl(watched, web))
    assert ending.reason == "finished"
    assert ending.progress.restarts >= 4
    assert len(check_progress(layout)) == 5
    known = owners(layout)
    for number in range(1, 6):
        assert {job for url, job in known.items() if host_of(url) == f"h{number:04d}.test"} == {number}
    assert watched.said.count("Job 3 (number 3) is taken up.") == 1
    assert sum("Job 3 (number 3) is finished" in line for line in watched.said) == 1


@pytest.mark.slow
def test_a_finished_crawl_takes_up_a_new_job_and_says_nothing_of_old_ends(tmp_path: Path) -> None:
    with sim_web(tmp_path, hosts=6, pages=PAGES, profile="clean") as web:
        config = web.config(tmp_path / "data", workers=2, delay=0.1)
        layout = prepare(config, [on(web, 1)], Terms(scope="host"))
        asyncio.run(Watched(config, layout).run())
        before = check_progress(layout)[0]
        # All that it asks for is known already: it is asked for again, in the name of the new job.
        add(layout, Terms("again", max_depth=0, scope="host"), on(web, 1))
        watched = Watched(config, layout)
        ending = asyncio.run(watched.run())
    assert ending.progress.run_pages <= 1
    old, new = check_progress(layout)
    assert old.pages == before.pages
    assert (new.name, new.discovered) == ("again", 1)
    assert next(line for line in watched.said if "finished" in line).startswith("Job 2 (again) is finished")
    assert not [line for line in watched.said if line.startswith("Job 1")]


@pytest.mark.slow
def test_a_job_that_the_crawl_may_not_do_is_left_out(tmp_path: Path) -> None:
    """Nobody may put it there; but if somebody does, nothing is asked of strangers."""

    async def crawl(watched: Watched) -> Ending:
        running = asyncio.create_task(watched.run())
        await asyncio.sleep(1.0)
        add(watched.layout, Terms("rude", scope="host"), "https://example.org/")
        return await running

    with sim_web(tmp_path, hosts=6, pages=PAGES, profile="clean") as web:
        config = web.config(tmp_path / "data", workers=1, delay=0.3)
        layout = prepare(config, [on(web, 1)], Terms(scope="host"))
        watched = Watched(config, layout)
        assert asyncio.run(crawl(watched)).reason == "finished"
    assert [line for line in watched.said if line.startswith("Job 2 (rude) is left out: a crawl outside")]
    assert not [url for url in owners(layout) if "example.org" in url]
    assert jobstand.look(layout)[1].state == "waiting"


@pytest.mark.slow
def test_pages_come_while_seeds_are_still_being_read(tmp_path: Path) -> None:
    """Many more seeds do not keep the first page waiting."""
    with sim_web(tmp_path, hosts=3, pages=PAGES, profile="clean") as web:
        config = web.config(tmp_path / "data", workers=1, delay=0.1, pages=1)
        seeds = [on(web, 1), *(f"{on(web, 2)}?n={number}" for number in range(200_000))]
        layout = prepare(config, seeds, Terms(scope="host"))
        ending = asyncio.run(Watched(config, layout).run())
    assert (ending.reason, ending.progress.run_pages) == ("max-pages", 1)
    assert 0 < jobstand.look(layout)[0].seeds_taken < 1


@pytest.mark.slow
def test_a_new_job_reads_the_sitemaps_of_a_site_whose_robots_txt_is_known(tmp_path: Path) -> None:
    async def scene() -> set[str]:
        async with RawServer({"*": page(status="404 Not Found")}).listening() as server:
            home = f"http://127.0.0.1:{server.port}"
            listing = f"<urlset><url><loc>{home}/orphan</loc></url></urlset>"
            server.replies |= {
                "/": page(b"<p>home"), "/orphan": page(b"<p>orphan"), "/list.xml": page(listing.encode(), "text/xml"),
                "/robots.txt": page(f"Sitemap: {home}/list.xml\n".encode(), "text/plain"),
            }  # fmt: skip
            config = Config(
                seeds=(f"{home}/",), data=str(tmp_path / "data"), allow=("127.0.0.0/8",),
                politeness=Politeness(delay=Seconds(0.1)), limits=Limits(patience=Seconds(2.0)),
            )  # fmt: skip
            layout = prepare(config, [f"{home}/"], Terms(max_depth=0, scope="host"))
            await Watched(config, layout).run()
            assert not any(b"/orphan" in head for head in server.heads)
            add(layout, Terms("deeper", max_depth=2, scope="host"), f"{home}/")
            await Watched(config, layout).run()
            assert sum(b"/robots.txt" in head for head in server.heads) == 1
        return {each.url.removeprefix(home) for each in read_pages(tmp_path / "data" / "pages")}

    assert "/orphan" in asyncio.run(scene())
