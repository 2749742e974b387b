"""What does robots.txt cost? CPU us to parse a file and to judge a URL by it.

On real files (../shared/suites, when it is there) and on one of the size most sites have.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec
from _run import SUITES, Report, Row, microseconds, options

from harvestman.policy.robots import Rules, parse

COMMON = b"User-agent: *\nDisallow: /private/\nDisallow: /*?sort=\nAllow: /private/open\nCrawl-delay: 1\n" * 3
PATHS = ("/", "/private/x", "/private/open/1", "/articles/2026/some-title.html?sort=up", "/a/b/c/d/e.html")


class Case(msgspec.Struct):
    """One line of the suite; keys not named here are left out."""

    robots: str = ""
    probes: list[dict[str, object]] = []


def cases(limit: int) -> list[tuple[bytes, list[str]]]:
    path = SUITES / "robots" / "realworld.jsonl.gz"
    if not path.exists():
        return []
    decode = msgspec.json.Decoder(Case).decode
    with gzip.open(path) as lines:
        found = [decode(line) for line in lines][:limit]
    return [(case.robots.encode(), [_path(str(probe.get("url", "/"))) for probe in case.probes]) for case in found]


def _path(url: str) -> str:
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def parsed_all(bodies: Sequence[bytes]) -> tuple[list[Rules], float]:
    began = time.process_time()
    rules = [parse(body, "harvestman") for body in bodies]
    return rules, time.process_time() - began


def judged_all(rules: Sequence[Rules], paths: Sequence[list[str]]) -> tuple[int, float]:
    began = time.process_time()
    for each, asked in zip(rules, paths, strict=True):
        for path in asked:
            each.verdict(path)
    return sum(map(len, paths)), time.process_time() - began


def _arguments() -> argparse.Namespace:
    parser = options(__doc__ or "")
    parser.add_argument("--files", type=int, default=4_195, help="how many real files")
    return parser.parse_args()


def main() -> int:
    wanted = _arguments()
    report = Report(__doc__ or "")
    rules = parse(COMMON, "harvestman")
    judge = microseconds(lambda: [rules.verdict(path) for path in PATHS]) / len(PATHS)
    rows: list[Row] = [("a common file", len(COMMON), microseconds(lambda: parse(COMMON, "harvestman")), judge)]
    real = cases(wanted.files)
    if real:
        bodies, paths = [body for body, _ in real], [asked for _, asked in real]
        parsed, parsing = parsed_all(bodies)
        probes, judging = judged_all(parsed, paths)
        size = sum(map(len, bodies)) // len(bodies)
        rows.append((f"{len(real):,} real files", size, parsing / len(real) * 1e6, judging / probes * 1e6))
    report.table(("robots.txt", "bytes", "us to parse", "us per verdict"), rows)
    report.keep(wanted.no_keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
