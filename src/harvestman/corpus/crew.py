"""Tasks in processes of their own, a few at a time: one that dies takes nothing with it, and is known by its task.

Each task has a fresh process (forked from a clean server that has everything imported, 10 ms), so that neither a leak
nor a crash in a C library outlives it.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from multiprocessing.sharedctypes import Synchronized
from typing import Generic, TypeVar

Task = TypeVar("Task")
Work = Callable[[Task, "Synchronized[int]"], None]
"""Does a task and counts, as it goes, what it has done. It must be a function of a module."""
_LOOK_EVERY = 0.5
"""Seconds between looks at the counter."""


class Crew(Generic[Task]):
    """Runs tasks. `stop` ends it when those under way are done, `abandon` at once."""

    def __init__(self, workers: int, preload: list[str]) -> None:
        self._workers = workers
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload(preload)
        self._stopping = False
        self._running: dict[int, tuple[BaseProcess, Task]] = {}

    def stop(self) -> None:
        self._stopping = True

    def abandon(self) -> None:
        self._stopping = True
        for process, _ in self._running.values():
            process.terminate()

    def run(self, tasks: Iterable[Task], work: Work[Task], tell: Callable[[int, int], None]) -> list[Task]:
        """Do the tasks; `tell` hears how much has been counted, and how many processes run. Returns those that died."""
        done: Synchronized[int] = self._context.Value("q", 0)
        waiting = iter(tasks)
        died: list[Task] = []
        try:
            while self._fill(waiting, work, done):
                wait([process.sentinel for process, _ in self._running.values()], timeout=_LOOK_EVERY)
                died += self._gathered()
                tell(done.value, len(self._running))
        finally:
            self._end()
        return died

    @property
    def stopping(self) -> bool:
        return self._stopping

    def _fill(self, waiting: Iterable[Task], work: Work[Task], done: Synchronized[int]) -> bool:
        """Start what there is room for; False when nothing runs and nothing is left."""
        while len(self._running) < self._workers and not self._stopping:
            task = next(iter(waiting), None)
            if task is None:
                break
            process = self._context.Process(target=_do, args=(work, task, done), daemon=True)
            process.start()
            self._running[process.pid or 0] = (process, task)
        return bool(self._running)

    def _gathered(self) -> list[Task]:
        over = [(pid, process, task) for pid, (process, task) in self._running.items() if process.exitcode is not None]
        for pid, process, _ in over:
            process.join()
            del self._running[pid]
        return [task for _, process, task in over if process.exitcode]

    def _end(self) -> None:
        for process, _ in self._running.values():
            process.terminate()
            process.join()
        self._running.clear()


def _do(work: Work[Task], task: Task, done: Synchronized[int]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who leads
    threading.Thread(target=_follow, daemon=True).start()
    work(task, done)


def _follow() -> None:
    """End with the one who leads: after kill -9 the next build must not meet the processes of this one."""
    leader = parent_process()
    if leader is not None:
        leader.join()
        os._exit(1)
