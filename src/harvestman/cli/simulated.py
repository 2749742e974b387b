"""The simulated web in a process of its own, for `crawl --sim`."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from harvestman.errors import HarvestmanError, StateError, UsageError
from harvestman.sim.plan import Plan
from harvestman.sim.server import run
from harvestman.sim.web import Web

LOG = "sim.log"
START_WITHIN = 60.0


@dataclass(slots=True, frozen=True)
class Running:
    """A simulated web that answers."""

    seeds: list[str]
    dns: str
    log: Path


@contextlib.contextmanager
def simulated(plan: Plan, data: Path) -> Iterator[Running]:
    """Serve `plan` on free loopback ports, logging into the (emptied) data directory, until the block is left."""
    _clear(data)
    log = data / LOG
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    child = spawn.Process(target=_serve, args=(plan, log, theirs), daemon=True, name="simulated web")
    child.start()
    theirs.close()
    try:
        port, dns_port = _ports(ours)
        yield Running(Web(plan).seeds(port), f"127.0.0.1:{dns_port}", log)
    finally:
        ours.close()  # the end of the pipe tells it to stop
        child.join(5)
        if child.is_alive():
            child.kill()


def _ports(pipe: Connection) -> tuple[int, int]:
    try:
        if pipe.poll(START_WITHIN):
            port, dns_port = pipe.recv()
            return int(port), int(dns_port)
    except EOFError:
        pass
    raise HarvestmanError("the simulated web did not start; `harvestman sim` may say why")


def _clear(data: Path) -> None:
    """Each simulated crawl begins anew. A directory that no simulated crawl made is left alone."""
    if (data / LOG).exists():
        shutil.rmtree(data)
    elif data.is_dir() and any(data.iterdir()):
        raise UsageError(f"{data} is not empty and no simulated crawl made it: name another directory with --data")
    try:
        data.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StateError(f"{data}: {error.strerror}: name another --data") from None


def _serve(plan: Plan, log: Path, pipe: Connection) -> None:
    """The child: out of the terminal's reach, so that Ctrl-C drains the crawler while its web still answers."""
    os.setsid()
    threading.Thread(target=_stop_with_parent, args=(pipe,), daemon=True).start()
    run(plan, 0, 0, log, lambda port, dns_port: pipe.send((port, dns_port)))


def _stop_with_parent(pipe: Connection) -> None:
    """The pipe ends when the parent closes it or dies, however it dies."""
    with contextlib.suppress(EOFError, OSError):
        pipe.recv()
    os.kill(os.getpid(), signal.SIGTERM)
