"""`python -m harvestman.sim`: the simulated web without the rest of Harvestman."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harvestman.sim.plan import PROFILES, Plan
from harvestman.sim.server import run
from harvestman.sim.web import Web


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m harvestman.sim", description=__doc__)
    parser.add_argument("--hosts", type=int, default=Plan.hosts)
    parser.add_argument("--pages", type=int, default=Plan.pages)
    parser.add_argument("--seed", type=int, default=Plan.seed)
    parser.add_argument("--profile", choices=PROFILES, default=Plan.profile)
    parser.add_argument("--scripted", type=float, default=Plan.scripted)
    parser.add_argument("--port", type=int, default=8800)
    parser.add_argument("--dns-port", type=int, default=8853)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--seeds-out", type=Path)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    options = _arguments(argv)
    plan = Plan(options.hosts, options.pages, options.seed, options.profile, options.scripted)

    def ready(port: int, dns_port: int) -> None:
        if options.seeds_out:
            options.seeds_out.write_text("\n".join(Web(plan).seeds(port)) + "\n")
        print(f"{plan.hosts} hosts x {plan.pages} pages on port {port}, DNS on {dns_port}", file=sys.stderr, flush=True)

    run(plan, options.port, options.dns_port, options.log, ready)
    return 0


if __name__ == "__main__":
    sys.exit(main())
