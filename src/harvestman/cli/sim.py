"""`harvestman sim`: a web to try crawlers on, served on loopback until Ctrl-C."""

from __future__ import annotations

import argparse
import errno
import sys
from pathlib import Path

from harvestman.cli.arguments import Verbs, add_verb
from harvestman.errors import UsageError
from harvestman.sim.plan import PROFILES, Plan

EPILOG = """\
examples:
  harvestman sim --hosts 2000 --log sim.log --seeds-out seeds.txt
  harvestman crawl --seeds seeds.txt --scope all --dns 127.0.0.1:8853 --allow 127.0.0.0/8
  harvestman audit sim.log

The same numbers give the same web on any machine and any day. Only loopback is listened on. Ctrl-C ends it."""


def add(verbs: Verbs) -> None:
    """Add the verb and its options."""
    verb = add_verb(
        verbs, "sim", EPILOG, run, help="serve a simulated web on loopback",
        description="Serve a simulated web on loopback until Ctrl-C.",
    )  # fmt: skip
    verb.add_argument("--hosts", metavar="N", type=int, default=Plan.hosts, help="hosts (default: %(default)s)")
    verb.add_argument(
        "--pages", metavar="N", type=int, default=Plan.pages, help="ordinary pages of each host (default: %(default)s)"
    )
    verb.add_argument("--seed", metavar="N", type=int, default=Plan.seed, help="which web (default: %(default)s)")
    verb.add_argument(
        "--profile", choices=PROFILES, default=Plan.profile,
        help="clean: pages only; mixed: errors, traps, robots.txt of all kinds; wild: endless traps too "
        "(default: %(default)s)",
    )  # fmt: skip
    verb.add_argument(
        "--scripted", metavar="SHARE", type=float, default=Plan.scripted,
        help="share of the hosts whose pages are made by JavaScript (default: %(default)s)",
    )  # fmt: skip
    verb.add_argument("--port", metavar="N", type=int, default=8800, help="HTTP port, 0 for any (default: %(default)s)")
    verb.add_argument(
        "--dns-port", metavar="N", type=int, default=8853, help="DNS port, 0 for any (default: %(default)s)"
    )
    verb.add_argument(
        "--log", metavar="FILE", type=Path, help="append every request to FILE, for audit (default: none)"
    )
    verb.add_argument("--seeds-out", metavar="FILE", type=Path, help="write the seeds to FILE (default: not written)")


def run(options: argparse.Namespace) -> int:
    from harvestman.sim.server import run as serve  # here, so that other verbs start without it
    from harvestman.sim.web import Web

    plan = Plan(options.hosts, options.pages, options.seed, options.profile, options.scripted)

    def ready(port: int, dns_port: int) -> None:
        seeds = Web(plan).seeds(port)
        if options.seeds_out:
            options.seeds_out.write_text("".join(f"{seed}\n" for seed in seeds))
        print(_told(options, plan, seeds, port, dns_port), file=sys.stderr, flush=True)

    try:
        serve(plan, options.port, options.dns_port, options.log, ready)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise UsageError(
            f"port {options.port} or {options.dns_port} is taken: name others with --port and --dns-port (0 is any)"
        ) from None
    return 0


def _told(options: argparse.Namespace, plan: Plan, seeds: list[str], port: int, dns_port: int) -> str:
    named = f"--seeds {options.seeds_out}" if options.seeds_out else seeds[0]
    judged = f"\nJudge the crawl afterwards:\n  harvestman audit {options.log}" if options.log else ""
    return (
        f"{plan.hosts:,} hosts x {plan.pages:,} pages ({plan.profile}) on port {port}, names on port {dns_port}.\n"
        f"Crawl it:\n"
        f"  harvestman crawl {named} --scope all --dns 127.0.0.1:{dns_port} --allow 127.0.0.0/8"
        f"{judged}\nCtrl-C ends it."
    )
