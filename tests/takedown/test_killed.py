"""kill -9 at random moments of a takedown, then once to the end: what goes is gone, what stays is whole."""

from __future__ import annotations

import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest
from formats.small import Small

from harvestman.layout import Layout
from harvestman.store.frames import frames
from harvestman.store.members import members
from harvestman.store.pages import read_pages
from harvestman.store.replay import read
from harvestman.views import View

PAGES = 400
KILLS = 8


def token(number: int) -> str:
    """Words that only one page has."""
    return sha256(b"page %d" % number).hexdigest()


def address(number: int) -> str:
    return f"https://h{number % 7}.example/{'gone' if number % 3 == 0 else 'kept'}/{number}"


def standing(data: Path) -> str:
    """Everything that can be read of a crawl, unpacked, and every file as it is."""
    parts = [path.read_bytes() for path in data.rglob("*") if path.is_file()]
    parts += [member.data for path in data.rglob("*.warc.gz") for member in members(path)]
    parts += [frame.packed for path in data.rglob("*.pages") for frame in frames(path)]
    with View(Layout(data)) as view:
        parts += [value for _, state in view.workers() for _, _, value in state.rows()]
    return b"\0".join(parts).decode("latin-1")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_killed_again_and_again(tmp_path: Path, seed: int) -> None:
    data, rng = tmp_path / "crawl", Random(seed)
    with Small(data, warc_bytes=60_000, log_bytes=20_000) as small:
        for number in range(PAGES):
            small.page(address(number), f"{token(number)} and more of it {token(-number)}", packed=False)
            if rng.random() < 0.1:
                small.commit()
        small.commit()
    command = [sys.executable, "-m", "harvestman", "takedown", str(data)]
    command += ["--pattern", "/gone/", "--reason", "test", "--by", "tester"]
    began = time.monotonic()
    subprocess.run([*command, "--dry-run"], check=True, capture_output=True)
    usual = 2 * (time.monotonic() - began)
    for _ in range(KILLS):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.2, 1.0) * usual)
        process.kill()
        process.wait(10)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (seed, done.stdout, done.stderr)
    assert "nothing is left" in done.stdout
    text = standing(data)
    for number in range(PAGES):
        assert (token(number) in text) == (number % 3 != 0), (seed, number)
    assert sorted(page.url for page in read_pages(data / "pages")) == sorted(
        address(number) for number in range(PAGES) if number % 3
    )
    with View(Layout(data)) as view:
        held = {record.url: record.visit.ref for record in view.records() if record.visit and record.visit.ref}
    assert len(held) == sum(number % 3 != 0 for number in range(PAGES))
    assert all(read(data / "warc", ref).url == url for url, ref in held.items())
