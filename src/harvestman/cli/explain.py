"""The facts behind `why`: all that a crawl durably knows of one URL, gathered in one place."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from harvestman.cli import judged, words
from harvestman.cli.judged import Again, JobSays, Score, SiteSays, Trapped, Tried
from harvestman.cli.settings import remembered_config
from harvestman.config import Config
from harvestman.errors import UrlError
from harvestman.jobs import Jobs
from harvestman.layout import Layout
from harvestman.model import (
    HostRecord,
    Instant,
    Job,
    RecordRef,
    RobotsRecord,
    Seconds,
    SiteRecord,
    Status,
    UrlRecord,
    Visit,
)
from harvestman.policy import outcomes, robots, urls
from harvestman.policy.ladder import Standing, standing
from harvestman.policy.politeness import asked_delay
from harvestman.policy.scope import Scope
from harvestman.policy.sites import site_of
from harvestman.views import View

VERDICTS = (
    "waiting", "fetched", "duplicate", "redirected", "gone", "blocked", "refused", "dead", "unseen", "robots",
    "not-a-url",
)  # fmt: skip


class Stored(msgspec.Struct):
    """Where a raw record lies."""

    file: str
    offset: int
    length: int


class Visited(msgspec.Struct):
    """The last time we asked, and what came of it."""

    at: Instant
    status: int
    reason: str
    content_type: str
    size: int
    digest: str
    simhash: str
    target: str
    record: Stored | None
    tls_error: str = ""
    """Why the certificate was not valid."""
    near_duplicate_of: str = ""
    """The page that says nearly the same and stands for it ..."""
    distance: int = 0
    """... and how many firm bits of their SimHashes differ."""


class Found(msgspec.Struct):
    """How we came to know of it."""

    at: Instant
    depth: int
    kind: str
    """seed, a (a link), sitemap, redirect ..."""
    chain: list[str]
    """The page it was found on, the page that one was found on, ... to the seed."""


class RobotsSay(msgspec.Struct):
    """What the robots.txt we hold says about it today."""

    origin: str
    standing: str
    """rules, forbid (unreachable) or ask (none held, or too old)."""
    allowed: bool | None
    """By the copy we hold, even if it is to be asked for again first; None without a copy."""
    rule: str
    line: int
    text: str
    """The line itself."""
    fetched_at: Instant
    tried_at: Instant
    expires: Instant
    reason: str
    unreachable_since: Instant
    copy_bytes: int
    copy_sha256: str
    crawl_delay: float | None
    copy: str = ""
    """The copy itself, when it was asked for."""


class HostSays(msgspec.Struct):
    """How its host is being treated."""

    host: str
    site: str
    worker: int
    delay: float
    """Seconds between two requests, now in force."""
    next_allowed: Instant
    failures: int
    sick_until: Instant
    fetched: int


class Queued(msgspec.Struct):
    """What a waiting URL waits for."""

    bucket: int
    before: int
    """URLs of the same host that stand before it."""
    retry_at: Instant
    attempts: int
    most_attempts: int


class InBrowser(msgspec.Struct):
    """How far its rendering is."""

    due: Instant
    """When it is looked at again; 0 when there is nothing to do."""
    rounds: int
    wants: list[str]
    """The resources it waits for."""
    done: Instant
    """When it was rendered last; 0 for never."""
    outcome: str


class Admission(msgspec.Struct):
    """Whether the crawl would take a URL it has never seen."""

    admitted: bool
    reason: str


class Explanation(msgspec.Struct):
    """Everything `why` knows. Parts that do not apply are null."""

    url: str
    verdict: str
    """One of VERDICTS."""
    spelt: str = ""
    """The spelling under which it is known, when that differs."""
    visit: Visited | None = None
    found: Found | None = None
    queue: Queued | None = None
    host: HostSays | None = None
    robots: RobotsSay | None = None
    admission: Admission | None = None
    job: JobSays | None = None
    score: Score | None = None
    """Of what waits, or is due again."""
    again: Again | None = None
    trap: Trapped | None = None
    trail: list[Tried] = []
    """The attempts that failed since the last that did not."""
    site: SiteSays | None = None
    cure: str = ""
    """The command that would change the verdict, where there is one."""
    onward: list[str] = []
    """Where a redirect leads, where that one leads, and so on; the last was met before when they go in a circle."""
    render: InBrowser | None = None
    """For a page that is built by scripts."""
    believed_until: Instant = Instant(0.0)
    """When a permanent redirect is asked again; until then links to it count for where it leads."""


async def look(text: str, data: Path, now: Instant) -> Explanation:
    """Explain a URL of the crawl in a directory. Without a scheme both are tried, https first."""
    config = remembered_config(data)
    with View(Layout(data)) as view:
        found = await explain(text, view, config, now)
        if "://" in text or not _unknown(found):
            return found
        plain = await explain(f"http://{text}", view, config, now)
        return found if _unknown(plain) else plain


def _unknown(found: Explanation) -> bool:
    return found.verdict == "unseen" or (found.verdict == "robots" and found.robots is None)


def as_json(explanation: Explanation) -> str:
    return msgspec.json.encode(explanation).decode()


async def explain(text: str, view: View, config: Config, now: Instant) -> Explanation:
    """Gather the facts. `config` is that of the crawl: its agent, delays and limits."""
    try:
        url = urls.from_seed(_plausible(text))
    except UrlError as error:
        return Explanation(text, "not-a-url", admission=Admission(False, str(error)))
    record = await view.record(url)
    held = await view.robots(urls.origin_of(url))
    said = robots_say(url, held, config.agent, now) if held else None
    host = host_says(url, await view.host(url), said, view, config)
    if urls.path_of(url) == "/robots.txt":
        return Explanation(url, "robots", host=host, robots=_with_copy(said, held))
    known = await view.site(url)
    site = judged.site_says(known, view.crawled(url), config, now) if known else None
    if record is None:
        trap = judged.would_trap(url, known, config)
        admission = _admission(url, view.layout, said, trap)
        return Explanation(url, "unseen", host=host, robots=said, admission=admission, site=site)
    verdict = "waiting" if record.status is Status.PENDING else record.status.name.lower()
    found = Explanation(
        url, verdict, record.url if record.url != url else "",
        visited(record.visit) if record.visit else None,
        Found(record.found, record.depth, record.kind, await view.chain(record)),
        await _queued(record, view, config), host, said, site=site, trail=judged.trail(record),
    )  # fmt: skip
    found.onward = await view.onward(record)
    if record.render is not None:
        render = record.render
        found.render = InBrowser(render.due, render.rounds, render.wants, render.done, render.outcome)
    found.believed_until = record.due if outcomes.leads_to(record, now) else Instant(0.0)
    job = {each.id: each for each in Jobs(view.layout).all()}.get(record.job)
    _judge(found, record, known or SiteRecord(view.router.place(urls.host_of(url))[1], now), job, config, now)
    found.cure = _cure(found, view.layout.data, now)
    return found


def _judge(
    found: Explanation, record: UrlRecord, site: SiteRecord, job: Job | None, config: Config, now: Instant
) -> None:
    """Add what the policies say of it."""
    found.trap = judged.trapped(record, site)
    found.again = judged.again(record, site, job)
    if job is not None:
        found.job = judged.job_says(job)
        if record.status is Status.PENDING or (found.again and found.again.due <= now):
            found.score = judged.score(record, site, job, config, now)


def _cure(found: Explanation, data: Path, now: Instant) -> str:
    """Something to type."""
    trap, host = found.trap, found.host
    if trap and found.site and trap.since and not trap.pardoned:
        deed = ["traps", str(data), "--pardon", found.site.site, trap.shape]
    elif found.verdict == "dead":
        deed = ["dead", "redrive", str(data), found.spelt or found.url]
    elif found.verdict == "waiting" and host and host.sick_until > now:
        deed = ["hosts", str(data), "--forgive", host.host]
    else:
        return ""
    return f"{words.program()} {shlex.join(deed)}"


_OTHER_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+-]*:(?!\d|//)")
"""'mailto:', 'javascript:', 'nonsense:'; a host with a port or a real URL is none of them."""


def _plausible(text: str) -> str:
    """The text, unless `https://` before it would make a URL that nobody meant. Raises UrlError."""
    text = text.strip()
    if text.startswith(("/", "?", "#", ".")):
        raise UrlError("a path alone; the host is missing, as in https://example.org/path")
    if _OTHER_SCHEME.match(text):
        raise UrlError("only http and https can be crawled")
    if len(text.split()) > 1:
        raise UrlError("there is white space in it")
    return text


def _with_copy(said: RobotsSay | None, held: RobotsRecord | None) -> RobotsSay | None:
    return msgspec.structs.replace(said, copy=held.body.decode("utf-8", "replace")) if said and held else None


def visited(visit: Visit) -> Visited:
    return Visited(
        visit.at, visit.code, visit.reason, visit.content_type, visit.size, visit.digest.hex(),
        f"{visit.simhash:016x}" if visit.simhash else "", visit.target, _stored(visit.ref), visit.tls_error,
        visit.near, visit.distance,
    )  # fmt: skip


def _stored(ref: RecordRef | None) -> Stored | None:
    return Stored(ref.file, ref.offset, ref.length) if ref else None


async def _queued(record: UrlRecord, view: View, config: Config) -> Queued | None:
    if record.status is not Status.PENDING:
        return None
    before = 0 if record.due else await view.place(record)
    return Queued(record.bucket, before, record.due, record.attempts, config.retry.attempts)


def robots_say(url: str, held: RobotsRecord, agent: str, now: Instant) -> RobotsSay:
    """A fresh verdict from the copy we hold."""
    rules = robots.parse(held.body, agent)
    stands = standing(held, now)
    verdict = rules.verdict(urls.path_of(url))
    allowed = False if stands is Standing.FORBID else verdict.allowed if held.good_at else None
    return RobotsSay(
        held.origin, stands.value, allowed, verdict.rule, verdict.line, _line(held.body, verdict.line),
        held.good_at, held.tried_at, held.expires, held.reason, held.unreachable_since, len(held.body),
        sha256(held.body).hexdigest(), rules.crawl_delay,
    )  # fmt: skip


def _line(body: bytes, number: int) -> str:
    lines = body.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[number - 1].strip()[:200] if 0 < number <= len(lines) else ""


def host_says(url: str, held: HostRecord | None, said: RobotsSay | None, view: View, config: Config) -> HostSays | None:
    if held is None:
        return None
    asked = Seconds(said.crawl_delay) if said and said.crawl_delay else None
    floor = asked_delay(config.politeness, held.host, asked)
    return HostSays(
        held.host, held.site, view.worker_of(url), max(held.delay, floor), held.next_allowed, held.failures,
        held.sick_until, held.fetched,
    )  # fmt: skip


_SCOPES = {
    "site": "its site ({site}) is not that of a seed",
    "host": "its host ({host}) is not that of a seed",
    "path": "it does not lie in the directory of a seed",
    "patterns": "{line}",
}


def _admission(url: str, layout: Layout, said: RobotsSay | None, trap: str) -> Admission:
    """`trap`: the one it is part of, by name and shape."""
    host = urls.host_of(url)
    site = site_of(host)
    jobs = Jobs(layout)
    refusals = []
    for job in jobs.all():
        line = _deciding(url, job.patterns)
        if jobs.scope(job.id).admits(url, host, site):
            return _admitted(said, line, trap)
        refusals.append(f"({job.scope}): {_SCOPES[job.scope].format(site=site, host=host, line=line)}")
    return Admission(False, f"it is out of scope {'; of the next job '.join(refusals)}")


def _admitted(said: RobotsSay | None, line: str, trap: str) -> Admission:
    if trap:
        return Admission(False, f"it is in scope, but part of a trap: {trap}")
    if said and said.allowed is False:
        return Admission(False, "it is in scope, but robots.txt forbids it")
    return Admission(True, f"it is in scope{f': {line}' if line else ''}, and would be crawled if one did")


def _deciding(url: str, patterns: Sequence[str]) -> str:
    """The line of the pattern file that decides about a URL; '' when the scope has no patterns."""
    host = urls.host_of(url)
    for number, line in enumerate(patterns, 1):
        text = line.strip()
        # A scope of this line alone, turned into one that admits, admits what the line matches.
        if text[:1] in ("+", "-") and Scope.build("patterns", (), [f"+{text[1:]}"]).admits(url, host, site_of(host)):
            return f"line {number} of the patterns decides: {text!r}"
    return "no line of the patterns matches it" if patterns else ""
