"""`harvestman job`: what a crawl was asked to do. A job can be added while the crawl runs."""

from __future__ import annotations

import argparse

from harvestman.cli import terms
from harvestman.cli.arguments import Verbs, add_data, add_json, add_verb

EPILOG = """\
examples:
  harvestman job add crawl-data https://news.example/ --priority high --max-depth 1 --ttl 1h --name news
      prints the id of the new job; a running crawl takes it up within seconds, else the next one does
  harvestman job list crawl-data
  harvestman job show crawl-data 2 --json | jq .pages

A job is seeds with what they ask for: a scope, a depth limit, a priority, a time after which pages are visited again.
Jobs share one crawl: its workers, its politeness, its data. A page that two jobs meet belongs to the newer one."""


def add(verbs: Verbs) -> None:
    """Add the verb, what can be done, and the options of each."""
    verb = add_verb(
        verbs, "job", EPILOG, help="add a job to a crawl, also while it runs; list and show jobs",
        description="Add a job to a crawl, also while it runs; see how its jobs stand.",
    )  # fmt: skip
    deeds = verb.add_subparsers(dest="deed", metavar="add|list|show", required=True)
    new = deeds.add_parser("add", help="add a job", description="Add a job to a crawl, also while it runs.")
    new.set_defaults(run=run_add)
    add_data(new)
    terms.add_seeds(new, "its seeds")
    terms.add_terms(new)
    all_jobs = deeds.add_parser("list", help="how all jobs stand", description="How the jobs of a crawl stand.")
    all_jobs.set_defaults(run=run_list)
    add_data(all_jobs)
    one = deeds.add_parser("show", help="all about one job", description="What a job asked for, and how far it is.")
    one.set_defaults(run=run_show)
    add_data(one)
    one.add_argument("id", metavar="ID", type=int, help="which one")
    for deed in (new, all_jobs, one):
        add_json(deed, "in words", "print JSON")


def run_add(options: argparse.Namespace) -> int:
    from harvestman.cli import jobadd  # here, so that other verbs start without it

    return jobadd.run(options)


def run_list(options: argparse.Namespace) -> int:
    from harvestman.cli import jobstand
    from harvestman.layout import Layout

    jobs = jobstand.look(Layout(options.data))
    print(jobstand.as_json(jobs) if options.json else jobstand.told(jobs))
    return 0


def run_show(options: argparse.Namespace) -> int:
    from harvestman.cli import jobstand
    from harvestman.errors import UsageError
    from harvestman.layout import Layout

    jobs = jobstand.look(Layout(options.data))
    found = next((job for job in jobs if job.id == options.id), None)
    if found is None:
        raise UsageError(f"{options.data} has no job {options.id}; the last is {len(jobs)}")
    print(jobstand.as_json(found) if options.json else jobstand.told_whole(found))
    return 0
