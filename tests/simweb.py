"""A simulated web in a process of its own, for tests that judge a crawl from the server's log."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harvestman.config import Config, Limits, Politeness
from harvestman.model import Seconds


@dataclass(frozen=True)
class SimWeb:
    log: Path
    dns: str
    seeds: list[str]

    def config(
        self, data: Path, *, workers: int = 1, delay: float = 1.0, patience: float = 5.0, pages: int = 0
    ) -> Config:
        return Config(
            seeds=tuple(self.seeds),
            scope="all",
            data=str(data),
            workers=workers,
            dns=self.dns,
            allow=("127.0.0.0/8",),
            politeness=Politeness(delay=Seconds(delay)),
            limits=Limits(patience=Seconds(patience), max_pages=pages),
        )


@contextmanager
def sim_web(
    directory: Path, *, hosts: int, pages: int, profile: str = "mixed", seed: int = 7, scripted: float = 0.0
) -> Iterator[SimWeb]:
    """Starts it on free ports, stops it by its pid; the log is complete afterwards."""
    log, seeds, words = directory / "sim.log", directory / "seeds.txt", directory / "sim.out"
    command = [
        sys.executable,
        "-m",
        "harvestman.sim",
        "--hosts",
        str(hosts),
        "--pages",
        str(pages),
        "--seed",
        str(seed),
    ]
    command += [
        "--scripted",
        str(scripted),
        "--profile",
        profile,
        "--port",
        "0",
        "--dns-port",
        "0",
        "--log",
        str(log),
        "--seeds-out",
        str(seeds),
    ]
    with words.open("wb") as out:
        process = subprocess.Popen(command, stderr=out)
    try:
        yield SimWeb(log, f"127.0.0.1:{_dns_port(words, process)}", seeds.read_text().split())
    finally:
        process.terminate()
        process.wait(10)


def _dns_port(words: Path, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        said = words.read_text().strip()
        if said:
            return said.rpartition(" ")[2]
        time.sleep(0.05)
    raise RuntimeError(f"the simulated web did not start: {words.read_text()}")
