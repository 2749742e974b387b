"""The verdict of an audit, for people and for programs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias

import msgspec

EXAMPLES = 20
LARGEST = 5
"""Hosts that are named in a row of the table; the JSON names all."""
Verdict: TypeAlias = Literal["ok", "FAIL", ""]


@dataclass(slots=True)
class Finding:
    """Something counted, with its first cases."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, example: str) -> None:
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(example)


@dataclass(slots=True)
class Report:
    """What a crawl did, as the servers saw it."""

    delay: float
    min_coverage: float
    max_duplicates: float
    max_trap_share: float = 1.0
    requests: int = 0
    page_requests: int = 0
    """Requests for anything but robots.txt, sitemaps, feeds and resources."""
    listings: int = 0
    """Requests for sitemaps and feeds."""
    orphans: int = 0
    """Of the expected pages, those that only a sitemap or feed leads to."""
    orphans_found: int = 0
    resources: int = 0
    """Requests for what scripts are, load or ask for."""
    resources_again: Finding = field(default_factory=Finding)
    """Those that got what had been got before."""
    scripted: int = 0
    """Of the expected pages, those that scripts fill."""
    scripted_found: int = 0
    scripted_filled: int = 0
    """Those whose content was got, too."""
    hosts: int = 0
    bytes: int = 0
    seconds: float = 0.0
    """From the first request to the last answer."""
    agents: list[str] = field(default_factory=list)
    statuses: dict[str, int] = field(default_factory=dict)
    expected: int = 0
    missing: Finding = field(default_factory=Finding)
    duplicates: Finding = field(default_factory=Finding)
    robots: Finding = field(default_factory=Finding)
    nofollow: Finding = field(default_factory=Finding)
    gaps: Finding = field(default_factory=Finding)
    smallest_gap: float | None = None
    smallest_margin: float | None = None
    """The least that any gap was longer than what its host was promised; negative when one was shorter."""
    retry_after: Finding = field(default_factory=Finding)
    overlaps: Finding = field(default_factory=Finding)
    most_connections: int = 0
    crowded: Finding = field(default_factory=Finding)
    """Hosts with more than one connection open at a time."""
    shared_addresses: Finding = field(default_factory=Finding)
    """Requests to an address shared by hosts that came sooner than the delay after one to another of its hosts."""
    traps: dict[str, dict[str, int]] = field(default_factory=dict)
    """Trap URLs asked for, by the name of the trap and by host."""
    farms: dict[str, int] = field(default_factory=dict)
    """Pages of content farms asked for, by host."""
    outside: Finding = field(default_factory=Finding)

    @property
    def coverage(self) -> float:
        return 1 - self.missing.count / self.expected if self.expected else 1.0

    @property
    def duplicate_share(self) -> float:
        return self.duplicates.count / max(1, self.page_requests)

    @property
    def trap_share(self) -> float:
        return self.trap_urls / max(1, self.page_requests)

    @property
    def trap_urls(self) -> int:
        return sum(sum(hosts.values()) for hosts in self.traps.values())

    @property
    def broken(self) -> list[str]:
        """The promises that were not kept, by name."""
        rules = (self.robots, self.nofollow, self.gaps, self.retry_after, self.overlaps)
        names = ("robots", "nofollow", "gaps", "retry_after", "overlaps")
        broken = [name for name, rule in zip(names, rules, strict=True) if rule.count]
        broken += ["coverage"] if self.coverage < self.min_coverage else []
        broken += ["duplicates"] if self.duplicate_share > self.max_duplicates else []
        return broken + (["traps"] if self.trap_share > self.max_trap_share else [])

    @property
    def ok(self) -> bool:
        return not self.broken

    def to_json(self) -> str:
        shares = {
            "coverage": self.coverage,
            "duplicate_share": self.duplicate_share,
            "trap_share": self.trap_share,
        }
        return msgspec.json.encode({"ok": self.ok, "broken": self.broken, **shares, **asdict(self)}).decode()

    def render(self) -> str:
        """A table: what was judged, what was found, the verdict; then the first cases of what is wrong."""
        rows = self._rows()
        widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
        lines = [f"{name:<{widths[0]}}  {found:<{widths[1]}}  {verdict}".rstrip() for name, found, verdict in rows]
        verdict = "The crawl kept its promises." if self.ok else f"Promises broken: {', '.join(self.broken)}."
        return "\n".join([*lines, *self._cases(), "", verdict])

    def _rows(self) -> list[tuple[str, str, Verdict]]:
        def judged(name: str) -> Verdict:
            return "FAIL" if name in self.broken else "ok"

        statuses = ", ".join(f"{status}: {count:,}" for status, count in sorted(self.statuses.items()))
        fetched = self.expected - self.missing.count
        return [
            (
                "requests",
                f"{self.requests:,} to {self.hosts:,} hosts, {self.bytes / 1e6:,.1f} MB, {self.seconds:,.1f} s",
                "",
            ),
            ("by", "; ".join(self.agents) or "nobody", ""),
            ("answers", statuses, ""),
            (
                "coverage",
                f"{fetched:,} of {self.expected:,} allowed pages, {_percent(self.coverage)}",
                judged("coverage"),
            ),
            (
                "fetched twice",
                f"{self.duplicates.count:,} pages, {self.duplicate_share:.4%} of page requests",
                judged("duplicates"),
            ),
            ("robots.txt broken", f"{self.robots.count:,} requests", judged("robots")),
            ("nofollow broken", f"{self.nofollow.count:,} requests", judged("nofollow")),
            ("gaps too short", f"{self.gaps.count:,}; {self._gap()}", judged("gaps")),
            ("Retry-After broken", f"{self.retry_after.count:,} requests", judged("retry_after")),
            ("requests at once", f"{self.overlaps.count:,} overlapped another to the same host", judged("overlaps")),
            ("connections", f"at most {self.most_connections} open at a time to one host", ""),
            ("shared addresses", f"{self.shared_addresses.count:,} requests within the delay of another host's", ""),
            ("sitemaps, feeds", f"{self.listings:,} requests; {self._orphans()}", ""),
            *(self._scripted_rows() if self.scripted or self.resources else ()),
            (
                "trap URLs",
                f"{self.trap_urls:,}, {self.trap_share:.2%} of page requests",
                judged("traps") if self.max_trap_share < 1 else "",
            ),
            *((f"  {name}", _spread(hosts), "") for name, hosts in sorted(self.traps.items())),
            ("content farms", _spread(self.farms), ""),
            ("outside the plan", f"{self.outside.count:,} requests", ""),
        ]

    def _scripted_rows(self) -> list[tuple[str, str, Verdict]]:
        pages = f"{self.scripted_found:,} of {self.scripted:,} fetched, the content of {self.scripted_filled:,}"
        return [
            ("scripted pages", pages, ""),
            ("resources", f"{self.resources:,} requests; {self.resources_again.count:,} for one had before", ""),
        ]

    def _orphans(self) -> str:
        return f"{self.orphans_found:,} of the {self.orphans:,} pages found that nothing else leads to"

    def _gap(self) -> str:
        if self.smallest_gap is None or self.smallest_margin is None:
            return "no host was asked twice"
        return f"smallest {self.smallest_gap:.3f} s, {self.smallest_margin:+.3f} s to what was promised"

    def _cases(self) -> list[str]:
        named = {
            "missing pages": self.missing,
            "fetched twice": self.duplicates,
            "robots.txt broken": self.robots,
            "nofollow broken": self.nofollow,
            "gaps too short": self.gaps,
            "Retry-After broken": self.retry_after,
            "requests at once": self.overlaps,
            "outside the plan": self.outside,
            "resources fetched twice": self.resources_again,
        }
        lines: list[str] = []
        for name, finding in named.items():
            if finding.count:
                lines += ["", f"{name} (first {len(finding.examples)} of {finding.count:,}):"]
                lines += [f"  {example}" for example in finding.examples]
        return lines


def _spread(hosts: dict[str, int]) -> str:
    """How many on how many hosts, and which had most."""
    largest = sorted(hosts.items(), key=lambda each: each[1], reverse=True)[:LARGEST]
    most = ", ".join(f"{name} {count:,}" for name, count in largest)
    total = f"{sum(hosts.values()):,} on {len(hosts):,} {'host' if len(hosts) == 1 else 'hosts'}"
    return f"{total}: {most}" if most else total


def _percent(share: float) -> str:
    """Rounded down: 100 % means all."""
    return f"{int(share * 10_000) / 100:.2f} %"
