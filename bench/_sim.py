"""The simulated web in a process of its own, whose CPU time is nobody's but its own."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from harvestman.sim.plan import Plan
from harvestman.sim.web import Web

_READY = re.compile(r"on port (\d+), DNS on (\d+)")


@dataclass(slots=True, frozen=True)
class SimulatedWeb:
    plan: Plan
    port: int
    dns: str
    seeds: list[str]
    pid: int


@contextlib.contextmanager
def simulated_web(hosts: int, pages: int, seed: int = 7) -> Iterator[SimulatedWeb]:
    """A clean web on free loopback ports, until the block is left."""
    plan = Plan(hosts, pages, seed, "clean")
    words = ["--hosts", str(hosts), "--pages", str(pages), "--seed", str(seed), "--profile", "clean"]
    server = subprocess.Popen(
        [sys.executable, "-m", "harvestman.sim", *words, "--port", "0", "--dns-port", "0"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert server.stderr is not None
        line = server.stderr.readline()
        found = _READY.search(line)
        if found is None:
            raise SystemExit(f"the simulated web did not start: {line}{server.stderr.read()}")
        port, dns_port = map(int, found.groups())
        yield SimulatedWeb(plan, port, f"127.0.0.1:{dns_port}", Web(plan).seeds(port), server.pid)
    finally:
        server.terminate()
        server.wait(10)


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A directory for one crawl."""
    with TemporaryDirectory(prefix="hm-bench-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
