"""What the processes of the crew tests do: in a module of its own, for they have to import it by name."""

from __future__ import annotations

import os
import time
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path


def work(task: tuple[str, str], done: Synchronized[int]) -> None:
    deed, where = task
    if deed == "die":
        os.abort()
    time.sleep({"linger": 0.3, "sleep": 30.0}.get(deed, 0.0))
    Path(where).write_text(deed)
    with done.get_lock():
        done.value += 1
