"""Where the samples of a profile belong: from stacks to the stages of a crawl."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

START = "start-up and end"
WAIT = "sync threads"
OTHER = "other"
STAGES = (
    "net + loop", "dns", "decode", "digest + WARC write", "parse tree", "links", "metadata", "main text", "language",
    "SimHash", "page log", "frontier + seen", "robots + policy", "state reads", "state commit", "bus", OTHER, WAIT,
    START,
)  # fmt: skip
"""In the order a page passes them."""


class Rule(NamedTuple):
    """A frame of this function (any, when empty) in a file whose path ends so belongs to this stage."""

    file: str
    function: str
    stage: str


RULES = (
    # From the leaf of a stack towards its root the first frame that a rule names decides; shared modules
    # (policy/urls) have no rule, so their time goes to whoever called them.
    Rule("fetch/dns.py", "", "dns"),
    Rule("fetch/dnswire.py", "", "dns"),
    Rule("fetch/doh.py", "", "dns"),
    Rule("fetch/nameservers.py", "", "dns"),
    Rule("fetch/decode.py", "", "decode"),
    Rule("harvestman/fetch/", "", "net + loop"),
    Rule("pages/charset.py", "", "decode"),
    Rule("pages/sniff.py", "", "decode"),
    Rule("pages/links.py", "", "links"),
    Rule("pages/metadata.py", "", "metadata"),
    Rule("pages/dates.py", "", "metadata"),
    Rule("pages/parse.py", "_title", "metadata"),
    Rule("pages/tree.py", "", "parse tree"),
    Rule("pages/text.py", "", "main text"),
    Rule("pages/parse.py", "_printed", "SimHash"),  # the kernel is C, its caller is the leaf
    Rule("pages/parse.py", "", "parse tree"),
    Rule("pages/language.py", "", "language"),
    Rule("pages/simhash.py", "", "SimHash"),
    Rule("store/pages.py", "", "page log"),
    Rule("harvestman/store/", "", "digest + WARC write"),
    Rule("harvestman/harvest.py", "_decode", "digest + WARC write"),  # SHA-256 is C, its caller is the leaf
    Rule("harvestman/harvest.py", "_store", "digest + WARC write"),
    Rule("harvestman/harvest.py", "_follow", "frontier + seen"),
    Rule("policy/robots.py", "", "robots + policy"),
    Rule("policy/ladder.py", "", "robots + policy"),
    Rule("policy/outcomes.py", "", "robots + policy"),
    Rule("policy/politeness.py", "", "robots + policy"),
    Rule("frontier/book.py", "", "robots + policy"),
    Rule("embedded/state.py", "commit", "state commit"),
    Rule("embedded/state.py", "", "state reads"),
    Rule("harvestman/frontier/", "", "frontier + seen"),
    Rule("embedded/bus.py", "", "bus"),
    Rule("harvestman/crawl.py", "_commit", "state commit"),
    Rule("harvestman/crawl.py", "_mark", "state commit"),
    Rule("harvestman/asking.py", "", "net + loop"),
    Rule("harvestman/dispatch.py", "route", "frontier + seen"),
    Rule("harvestman/dispatch.py", "", "bus"),
    Rule("harvestman/harvest.py", "", OTHER),
    Rule("harvestman/crawl.py", "", OTHER),
    Rule("harvestman/wiring.py", "", START),
    Rule("asyncio/base_events.py", "", "net + loop"),
    Rule("asyncio/events.py", "", "net + loop"),
    Rule("uvloop/__init__.py", "run", "net + loop"),
)
_OUTSIDE = re.compile(r"(open_crawler|Crawler\.close|Crawler\.add_seeds) ")
"""Before the first lease and after the last commit."""
_FRAME = re.compile(r"(?P<function>.*) \((?P<file>[^()]*?)(:\d+)?\)$")


@cache
def _stage_of_frame(frame: str) -> str | None:
    found = _FRAME.match(frame)
    if found is None:
        return None
    function, file = found["function"].rpartition(".")[2], found["file"]
    for rule in RULES:
        named = rule.file in file if rule.file.endswith("/") else file.endswith(rule.file)
        if named and rule.function in ("", function):
            return rule.stage
    return None


def stage(stack: str) -> str:
    """The stage of one stack, frames from the root to the leaf separated by ';'."""
    frames = stack.split(";")
    if any("threading.py" in frame for frame in frames):
        return WAIT
    if not any("uvloop" in frame for frame in frames) or any(map(_OUTSIDE.match, frames)):
        return START
    for frame in reversed(frames):
        found = _stage_of_frame(frame)
        if found is not None:
            return found
    return OTHER


def stale(source: Path) -> list[str]:
    """Rules that name nothing in the source any more: their time would silently go elsewhere."""
    ours = [rule for rule in RULES if not rule.file.startswith(("asyncio", "uvloop"))]
    paths = {rule: source / rule.file.removeprefix("harvestman/") for rule in ours}
    lost = [rule for rule, path in paths.items() if not path.exists()]
    lost += [
        rule for rule, path in paths.items()
        if rule.function and path.is_file() and f"def {rule.function}(" not in path.read_text(encoding="utf-8")
    ]  # fmt: skip
    return [f"{rule.file} {rule.function}".strip() for rule in lost]


def count(lines: Iterable[str]) -> tuple[Counter[str], Counter[str]]:
    """Samples by stage, and the stacks behind `OTHER`, from py-spy's raw format."""
    stages: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for line in lines:
        stack, _, samples = line.strip().rpartition(" ")
        if not samples.isdigit():
            continue
        where = stage(stack)
        stages[where] += int(samples)
        if where == OTHER:
            others[stack.rpartition(";")[2]] += int(samples)
    return stages, others
