"""Are near-duplicates recognised, and what does it cost? Precision and recall on labelled pairs, us and bytes.

`_copies.py` says which pairs there are and why each has its label. Every page goes the way it goes in a crawl: parsed,
fingerprinted, looked up in the table of bands, held against the rule of `policy.copies`. Plain SimHash (no weights, 3
of 64 bits) is measured on the same texts, for comparison.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from _copies import SAME, Case, Labelled, real, simulated
from _run import SUITES, Report, Row, microseconds, options

from harvestman.embedded.near import BANDS, NearTable
from harvestman.embedded.state import RocksState
from harvestman.model import Instant, Parsed
from harvestman.pages.parse import parse
from harvestman.pages.simhash import fingerprint, simhash
from harvestman.policy.copies import FARTHEST, Print, alike
from harvestman.ports import Changes, Near

PLAIN = 3
"""Bits of 64 that may differ by the published rule."""
GROUP = 64


@dataclass(slots=True)
class Score:
    """How the pairs of each kind were judged: how many there are, and how many were called near-duplicates."""

    kinds: dict[str, tuple[int, int]] = field(default_factory=dict)

    def count(self, case: Case, called: bool) -> None:
        pairs, near = self.kinds.get(case.kind, (0, 0))
        self.kinds[case.kind] = pairs + 1, near + called

    def _called(self, same: bool) -> int:
        return sum(near for kind, (_, near) in self.kinds.items() if (kind in SAME) is same)

    @property
    def precision(self) -> float:
        return self._called(True) / max(1, self._called(True) + self._called(False))

    @property
    def recall(self) -> float:
        return self._called(True) / max(1, sum(pairs for kind, (pairs, _) in self.kinds.items() if kind in SAME))


def judged(labelled: Labelled) -> tuple[Score, Score]:
    """Plain SimHash, and ours."""
    pages = [parse(body, "text/html; charset=utf-8", "http://a.test/") for body in labelled.pages]
    plain = [simhash(page.text.replace("\n", " ")) for page in pages]  # in one long line all shingles weigh the same
    prints = [_print(page) for page in pages]
    table = NearTable(100_000)
    for original in {case.first for case in labelled.cases}:
        table.add(prints[original].simhash)
    hits: dict[int, set[int]] = {}
    before, after = Score(), Score()
    for case in labelled.cases:
        first, second = prints[case.first], prints[case.second]
        if case.second not in hits:
            hits[case.second] = {known for _, known in table.near(second.simhash, second.weak, FARTHEST)}
        before.count(case, (plain[case.first] ^ plain[case.second]).bit_count() <= PLAIN)
        after.count(case, first.simhash in hits[case.second] and alike(second, first.simhash, first.sample))
    return before, after


def _print(page: Parsed) -> Print:
    return Print(page.simhash, page.weak, page.sample)


def _rows(before: Score, after: Score) -> Iterator[Row]:
    for kind, (pairs, near) in after.kinds.items():
        label = "same" if kind in SAME else "other"
        yield f"{kind} ({label})", pairs, f"{before.kinds[kind][1] / pairs:.3f}", f"{near / pairs:.3f}"


# -- what it costs


def _random_prints(count: int, chance: random.Random) -> list[int]:
    return [chance.getrandbits(64) for _ in range(count)]


def _weak(chance: random.Random) -> int:
    return sum(1 << 16 * band + bit for band in range(BANDS) for bit in chance.sample(range(16), 5))


def look_up(count: int) -> tuple[float, float, float]:
    """us for a look-up and for an addition, bytes for each fingerprint, at so many."""
    chance = random.Random(1)
    table, known = NearTable(count), _random_prints(count, chance)
    started = time.process_time()
    for each in known:
        table.add(each)
    added = (time.process_time() - started) / count * 1e6
    asked = [(chance.choice(known) ^ 1 << chance.randrange(64), _weak(chance)) for _ in range(2_000)]
    for print, weak in asked:
        assert table.near(print, weak, FARTHEST)
    looked = microseconds(lambda: [table.near(print, weak, FARTHEST) for print, weak in asked]) / len(asked)
    return looked, added, table.bytes / count


async def in_state(count: int) -> tuple[float, float, float]:
    """us a page: looked up in groups of 64, committed with the group; seconds until a reopened State can answer."""
    chance = random.Random(2)
    with TemporaryDirectory() as name:
        state = RocksState(Path(name) / "state", fingerprints=count)
        prints = iter(_random_prints(count, chance))
        looked = committed = 0.0
        while group := list(islice(prints, GROUP)):
            asked = [(print, _weak(chance)) for print in group]
            started = time.process_time()
            await state.near(asked, FARTHEST)
            between = time.process_time()
            rows = {
                print: Near(f"http://h{print % 1000}.test/page/{print}", Instant(1.0), "", bytes(32)) for print in group
            }
            await state.commit(Changes(near=dict(rows)))
            looked, committed = looked + between - started, committed + time.process_time() - between
        await state.close()
        state = RocksState(Path(name) / "state", fingerprints=count)
        started = time.process_time()
        await state.near([(1, 0)], FARTHEST)
        opened = time.process_time() - started
        await state.close()
    return looked / count * 1e6, committed / count * 1e6, opened


def sets(seed: int) -> dict[str, Callable[[], Labelled]]:
    made: dict[str, Callable[[], Labelled]] = {"simulated": lambda: simulated(seed)}
    return made | {"real": lambda: real(SUITES, seed)} if SUITES.exists() else made


def main() -> int:
    parser = options(__doc__ or "")
    parser.add_argument("--json", action="store_true", help="precision and recall only, as JSON")
    parser.add_argument("--count", type=int, default=1_000_000, help="fingerprints in the table")
    parser.add_argument("--state", type=int, default=100_000, help="fingerprints in a State")
    parser.add_argument("--seed", type=int, default=7, help="of the pairs; the rule was chosen on those of 7")
    arguments = parser.parse_args()
    scores = {name: judged(make()) for name, make in sets(arguments.seed).items()}
    if arguments.json:
        found = {name: {"precision": after.precision, "recall": after.recall} for name, (_, after) in scores.items()}
        print(json.dumps(found))
        return 0
    report = Report(__doc__ or "")
    for name, (before, after) in scores.items():
        report.say(f"{name} pairs: the part of each kind that is called near-duplicates")
        report.table(("kind", "pairs", "plain k=3", "ours"), list(_rows(before, after)))
        for label, score in (("plain k=3", before), ("ours", after)):
            report.say(f"  {label:<10} precision {score.precision:.3f}  recall {score.recall:.3f}")
        report.say()
    looked, added, size = look_up(arguments.count)
    report.say(
        f"table of {arguments.count:,}: {looked:.1f} us a look-up, {added:.1f} us an addition, {size:.1f} bytes each"
    )
    asked, committed, opened = asyncio.run(in_state(arguments.state))
    report.say(
        f"State of {arguments.state:,}: {asked:.1f} us a look-up, {committed:.1f} us an addition (commit), "
        f"{opened:.2f} s to open"
    )
    text = "\n\n".join(" ".join(f"word{(line * word) % 997}" for word in range(80)) for line in range(40))
    report.say(f"fingerprint of {len(text):,} characters: {microseconds(lambda: fingerprint(text)):.0f} us")
    report.keep(unless=arguments.no_keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
