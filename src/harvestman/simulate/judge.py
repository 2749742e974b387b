"""Politeness judged from the servers' side: every request as they saw it, against what was promised to them.

Nothing the crawler says about itself is used, and nothing of the frontier's code: what a gap must be is computed anew
from the configuration and from the answers that were given. It keeps a few numbers for each host, so a month of
requests to a million hosts costs some forty megabytes.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from harvestman.config import Config

TOLERANCE = 1e-3
CASES = 5
"""Examples kept of each kind of broken promise."""
SHOWN = 2_000
"""Hosts whose smallest gap is kept for the picture."""
ROOM = 100_000
"""Addresses and sites remembered before those at rest are forgotten."""


@dataclass(slots=True)
class Line:
    """One request and its answer, as the server would log it."""

    host: int
    """Its number."""
    site: int
    address: str
    url: str
    robots: bool
    started: float
    finished: float
    status: int
    """0 when there was no answer."""
    retry_after: float = 0.0
    """Seconds that the answer asked for."""
    crawl_delay: float = 0.0
    """What the host's robots.txt asks for."""
    forbidden: bool = False
    """Its robots.txt forbids this page."""

    @property
    def failed(self) -> bool:
        """Did the host fail? A failure of ours alone (an unwanted type) does not occur in the model."""
        return self.status == 0 or self.status >= 500 or self.status == 429


@dataclass
class Broken:
    """A promise that was not kept: how often, and the first few cases."""

    count: int = 0
    cases: list[str] = field(default_factory=list)

    def add(self, case: str) -> None:
        self.count += 1
        if len(self.cases) < CASES:
            self.cases.append(case)


class Judge:
    """Sees requests in the order of their beginnings."""

    def __init__(self, config: Config, hosts: int) -> None:
        self._rules = config.politeness
        self._retry = config.retry
        self._end = array("d", bytes(8 * hosts))
        """Per host, when its last answer was out; 0 when it was never asked."""
        self._quiet = array("d", bytes(8 * hosts))
        """Until when its Retry-After asks for quiet."""
        self._backed_off = array("d", bytes(8 * hosts))
        """Until when its failures keep us away: back-off, sick list."""
        self._failures = array("B", bytes(hosts))
        self._ruled = array("B", bytes(hosts))
        """Whether its robots.txt was ever answered."""
        self._addresses: dict[str, tuple[float, int]] = {}
        self._sites: dict[int, tuple[int, float]] = {}
        self.asked = array("I", bytes(4 * hosts))
        self.unwell = array("I", bytes(4 * hosts))
        """Answers of each host that were failures."""
        self.failing = array("B", bytes(hosts))
        """Whether its last answer was one."""
        self.shown: dict[int, tuple[float, float]] = {}
        """Host -> (promised, smallest gap), for some of them."""
        self.requests = self.retries_asked = self.sick_spells = 0
        self.smallest_gap = float("inf")
        self.least_margin = float("inf")
        """The smallest excess of a gap over what was promised for it."""
        self.broken = {
            name: Broken()
            for name in (
                "overlap", "gap", "crawl_delay", "retry_after", "back_off", "address_overlap", "address_gap",
                "site_rate", "robots_first", "robots_forbidden",
            )
        }  # fmt: skip

    @property
    def ok(self) -> bool:
        return not any(each.count for each in self.broken.values())

    def saw(self, line: Line) -> None:
        self.requests += 1
        self.asked[line.host] += 1
        if self._end[line.host]:
            self._judge_gap(line)
        self._judge_address(line)
        self._judge_site(line)
        self._judge_robots(line)
        self._note(line)

    def _judge_gap(self, line: Line) -> None:
        host, gap = line.host, line.started - self._end[line.host]
        # Its Crawl-delay is not known while its robots.txt is being asked for.
        promised = max(self._rules.delay, 0.0 if line.robots else line.crawl_delay)
        self.smallest_gap = min(self.smallest_gap, gap)
        due = max(self._quiet[host], self._backed_off[host])
        self.least_margin = min(self.least_margin, gap - promised, line.started - due)
        if host in self.shown or len(self.shown) < SHOWN:
            before = self.shown.get(host, (promised, gap))
            self.shown[host] = (max(promised, before[0]), min(gap, before[1]))
        if gap < -TOLERANCE:
            self._break("overlap", line, f"{-gap:.3f} s before the last answer was out")
        elif gap < self._rules.delay - TOLERANCE:
            self._break("gap", line, f"{gap:.3f} s after the last answer")
        elif gap < promised - TOLERANCE:
            self._break("crawl_delay", line, f"{gap:.3f} s after the last answer, {promised:g} s are asked for")
        for name, until in (("retry_after", self._quiet[host]), ("back_off", self._backed_off[host])):
            if line.started < until - TOLERANCE:
                self._break(name, line, f"{until - line.started:.3f} s too soon")

    def _judge_address(self, line: Line) -> None:
        end, host = self._addresses.get(line.address, (0.0, line.host))
        if host != line.host and line.started < end - TOLERANCE:
            self._break("address_overlap", line, f"{line.address} had not yet answered for another host")
        elif host != line.host and line.started < end + self._rules.ip_delay - TOLERANCE:
            self._break("address_gap", line, f"{line.address} answered {line.started - end:.3f} s ago for another host")
        self._addresses[line.address] = (line.finished, line.host)
        if len(self._addresses) > ROOM:
            rested = line.started - 60
            self._addresses = {name: last for name, last in self._addresses.items() if last[0] > rested}

    def _judge_site(self, line: Line) -> None:
        """Requests in a second to all hosts of a site, in windows of a second that begin with a request."""
        count, began = self._sites.get(line.site, (0, 0.0))
        if line.started >= began + 1.0 - TOLERANCE:
            count, began = 0, line.started
        # A slot that was due in the last second may be taken in this one.
        if count + 1 > self._rules.site_rate + 1:
            self._break("site_rate", line, f"request {count + 1} to its site within a second")
        self._sites[line.site] = (count + 1, began)
        if len(self._sites) > ROOM:
            self._sites = {site: last for site, last in self._sites.items() if last[1] > line.started - 60}

    def _judge_robots(self, line: Line) -> None:
        if line.robots:
            self._ruled[line.host] |= 200 <= line.status < 500 and line.status != 429
        elif not self._ruled[line.host]:
            self._break("robots_first", line, "before its robots.txt was answered")
        elif line.forbidden:
            self._break("robots_forbidden", line, "its robots.txt forbids it")

    def _note(self, line: Line) -> None:
        """What this answer promises for the next request."""
        host = line.host
        self._end[host] = line.finished
        self._quiet[host] = line.finished + line.retry_after if line.retry_after else 0.0
        self.retries_asked += line.retry_after > 0
        self.failing[host] = line.failed
        if not line.failed:
            self._failures[host] = 0
            return
        self.unwell[host] += 1
        failures = self._failures[host] + 1
        wait = min(self._retry.longest, self._retry.first * 2.0 ** (failures - 1))
        if failures >= self._retry.sick_after:
            failures, wait = 0, self._retry.sick_for
            self.sick_spells += 1
        self._failures[host] = failures
        self._backed_off[host] = line.finished + wait

    def _break(self, name: str, line: Line, words: str) -> None:
        self.broken[name].add(f"{line.started:.3f} {line.url} ({line.status or 'no answer'}): {words}")
