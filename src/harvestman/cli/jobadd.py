"""What `job add` does: everything that could be wrong is said before anything is written."""

from __future__ import annotations

import argparse
import sys
import time

import msgspec

from harvestman.cli import words
from harvestman.cli.giving import given_seeds
from harvestman.cli.settings import remembered_config
from harvestman.errors import UsageError
from harvestman.jobs import Jobs, Terms
from harvestman.layout import Layout
from harvestman.lock import is_locked
from harvestman.model import Instant, Job
from harvestman.policy.consent import refuse_rudeness


def run(options: argparse.Namespace) -> int:
    layout = Layout(options.data)
    layout.read()  # StateError when there is no crawl
    seeds = given_seeds(options).urls
    if not seeds:
        raise UsageError("a job needs seeds: name at least one URL, or --seeds FILE")
    terms = Terms(options.name, options.priority, options.max_depth, options.scope, options.ttl)
    wanted = terms.over(Job(0, "", Instant(time.time())))
    _refuse_rudeness(layout, wanted, seeds)
    job = Jobs(layout).add(wanted, seeds)
    print(msgspec.json.encode(job).decode() if options.json else job.id)
    print(f"Job {job.id} ({job.name}): {words.plural(len(seeds), 'seed')}. {_when(layout)}", file=sys.stderr)
    return 0


def _refuse_rudeness(layout: Layout, job: Job, seeds: list[str]) -> None:
    """By the settings that the crawl runs with, or ran with last."""
    config = msgspec.structs.replace(remembered_config(layout.data), scope=job.scope)
    try:
        refuse_rudeness(config, seeds)
    except UsageError as error:
        raise UsageError(f"the crawl in {layout.data}, as it was started, may not do that: {error}") from None


def _when(layout: Layout) -> str:
    if is_locked(layout.data):
        return "The running crawl takes it up within seconds."
    return f"`{words.program()} crawl --data {layout.data}` takes it up."
