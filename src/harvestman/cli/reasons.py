"""An explanation in words, for people."""

from __future__ import annotations

from harvestman.cli import words
from harvestman.cli.explain import Explanation, Found, HostSays, InBrowser, Queued, RobotsSay, Visited
from harvestman.cli.judged import TRAP, Again, JobSays, Score, SiteSays, Trapped, Tried
from harvestman.model import LISTING, RESOURCE, Instant
from harvestman.policy.validators import DISTRUST
from harvestman.views import MAX_PLACE

CHAIN_SHOWN = 12
WANTS_SHOWN = 5
COPY_SHOWN = 40


def told(explanation: Explanation, now: Instant) -> str:
    """The verdict first, then what it rests on."""
    typed = explanation.verdict == "not-a-url"
    lines = [repr(explanation.url) if typed else explanation.url, f"  {verdict(explanation, now)}"]
    if explanation.spelt:
        lines.append(f"  known as {explanation.spelt}")
    lines += _decided(explanation, now)
    if explanation.visit:
        lines += _visit(explanation.visit, explanation.verdict)
    if explanation.render:
        lines += _in_browser(explanation.render, now)
    if explanation.found:
        lines += _found(explanation.found)
    if explanation.job:
        lines.append(_row("job", _job(explanation.job)))
    if explanation.robots:
        lines += _robots(explanation.robots, explanation.host, now)
        if explanation.verdict == "robots":
            lines += _copy(explanation.robots)
    if explanation.host:
        lines += _host(explanation.host, now)
    if explanation.site:
        lines += _site(explanation.site)
        if explanation.site.spent and explanation.verdict != "waiting":
            lines.append(_row("", budgeted(explanation.site, now)))
    return "\n".join(lines)


def _decided(explanation: Explanation, now: Instant) -> list[str]:
    """What the verdict rests on first of all."""
    lines: list[str] = []
    if explanation.trap:
        lines += _trap(explanation.trap)
    if len(explanation.trail) > 1 or explanation.verdict in ("dead", "waiting"):
        lines += _trail(explanation.trail)
    if explanation.cure:
        lines.append(_row("cure", explanation.cure))
    if explanation.onward:
        lines += _onward(explanation, now)
    if explanation.again:
        lines += _again(explanation.again, now)
    if explanation.score:
        lines += _score(explanation.score, explanation.found, explanation.queue)
    return lines


def _row(name: str, text: str) -> str:
    return f"  {name:<10}{text}"


# -- the verdict -----------------------------------------------------------------------------------------------------


def verdict(explanation: Explanation, now: Instant) -> str:
    """What became of it, in one line."""
    visit = explanation.visit
    reason = visit.reason if visit else "unknown"
    target = visit.target if visit else ""
    match explanation.verdict:
        case "fetched":
            return f"fetched: HTTP {visit.status if visit else 0}, {reason}"
        case "duplicate":
            return f"fetched, and a duplicate: its content is byte for byte that of {target}"
        case "redirected":
            return f"redirected to {target}" if target else f"redirected, and not followed: {reason}"
        case "gone":
            return f"gone: {reason}, which does not heal by asking again"
        case "blocked":
            return f"forbidden: {reason}"
        case "refused" if reason.startswith(TRAP):
            return f"refused by us, as part of a trap: {reason.removeprefix(TRAP)}"
        case "refused":
            return f"refused by us: {reason}"
        case "dead":
            return f"a dead letter: every attempt failed, the last with {reason}"
        case "waiting":
            return _waiting(explanation, now)
        case "not-a-url":
            return f"not a URL we could crawl: {explanation.admission.reason if explanation.admission else reason}"
        case "robots":
            return "asked for on its own, before any page of its origin, and kept for a day; it is no page of the crawl"
    return _unseen(explanation)


def _unseen(explanation: Explanation) -> str:
    admission = explanation.admission
    if admission is None or admission.admitted:
        return "never seen: no followed link led to it" + (f" ({admission.reason})" if admission else "")
    return f"never seen, and would not be crawled: {admission.reason}"


def _waiting(explanation: Explanation, now: Instant) -> str:
    """The one thing it waits for first of all."""
    host, robots, queue, site = explanation.host, explanation.robots, explanation.queue, explanation.site
    if host and host.sick_until > now:
        rest = words.ahead(host.sick_until, now)
        return f"waiting: its host failed too often and rests until {rest}{_last_failure(explanation)}"
    if robots and robots.unreachable_since and robots.standing != "rules":
        return (
            f"waiting: robots.txt cannot be had ({robots.reason}), which forbids everything; "
            f"it is asked for again {words.ahead(_asked_again(robots, host), now)}"
        )
    if explanation.trap:
        return f"waiting, and refused when its turn comes: it is part of a trap{_place(queue)}"
    if site and site.spent and not (queue and queue.retry_at > site.until):
        return f"waiting: {budgeted(site, now)}"
    if queue and queue.retry_at:
        return f"waiting to be tried again {words.ahead(queue.retry_at, now)}{_attempts(explanation, queue)}"
    return f"waiting in the queue of its host{_place(queue)}"


def _last_failure(explanation: Explanation) -> str:
    robots, visit = explanation.robots, explanation.visit
    if robots and robots.unreachable_since:
        return f"; its robots.txt cannot be had: {robots.reason}"
    return f"; the last failure: {visit.reason}" if visit and visit.reason else ""


def _asked_again(robots: RobotsSay, host: HostSays | None) -> Instant:
    """Not before the host may be asked for anything."""
    return max(robots.expires, host.next_allowed, host.sick_until) if host else robots.expires


def _attempts(explanation: Explanation, queue: Queued) -> str:
    last = f", the last with {explanation.visit.reason}" if explanation.visit else ""
    return f": {queue.attempts} of {queue.most_attempts} attempts failed{last}" if queue.attempts else last


def _place(queue: Queued | None) -> str:
    if queue is None:
        return ""
    before = f"more than {MAX_PLACE:,}" if queue.before >= MAX_PLACE else f"{queue.before:,}"
    return f", {before} before it (bucket {queue.bucket}, 0 is the most urgent)"


def budgeted(site: SiteSays, now: Instant) -> str:
    """Why a site is not asked, and until when."""
    match site.spent:
        case "day":
            return (
                f"its site has had {site.today:,} pages today, of {site.allowance:,} a day it may have "
                f"({site.setting}); it goes on {words.ahead(site.until, now)}"
            )
        case "share":
            return (
                f"its site has had {words.plural(site.fetched, 'page')}, all of its share of the crawl (budget.share)"
            )
    return f"its site has had the {words.plural(site.fetched, 'page')} it may have in all (budget.pages)"


# -- what was decided ------------------------------------------------------------------------------------------------


def _trap(trap: Trapped) -> list[str]:
    if not trap.since:
        return []
    pardoned = ", pardoned since" if trap.pardoned else ""
    return [
        _row("trap", f"{_titled(trap)}: {words.plural(trap.refused, 'URL')} refused since {words.moment(trap.since)}"),
        _row("", f"stopped at {trap.example}{pardoned}"),
    ]


def _onward(explanation: Explanation, now: Instant) -> list[str]:
    """Where a redirect ends, and for how long that is believed."""
    here, steps = explanation.spelt or explanation.url, explanation.onward
    lines = []
    if steps[-1] in (here, *steps[:-1]):
        loop = [here, *steps]
        lines.append(_row("loop", " -> ".join(loop[loop.index(steps[-1]) :])))
    elif len(steps) > 1:
        lines.append(_row("leads", " -> ".join(steps)))
    if explanation.believed_until:
        lines.append(_row("for good", f"asked again {words.ahead(explanation.believed_until, now)}"))
    return lines


def _in_browser(render: InBrowser, now: Instant) -> list[str]:
    """It is built by scripts: what a browser made of it, and what it waits for."""
    lines = []
    if render.done:
        ended = "" if render.outcome == "ok" else f", ended by: {render.outcome}"
        lines.append(_row("rendered", f"{words.moment(render.done)}{ended}"))
    if render.due:
        turns = f", {words.plural(render.rounds, 'time')} so far" if render.rounds else ""
        lines.append(_row("rendering", f"waits for the browser{turns}; its turn {words.ahead(render.due, now)}"))
        lines += [_row("", f"needs {url}") for url in render.wants[:WANTS_SHOWN]]
    return lines


def _titled(trap: Trapped) -> str:
    """What is refused on sight is listed by name and shape, what was learned by its shape alone."""
    return trap.shape if trap.shape.startswith(trap.name) else f"{trap.name} {trap.shape}"


def _trail(trail: list[Tried]) -> list[str]:
    return [
        _row("tried" if number == 1 else "", f"{number}  {words.moment(each.at)}  {each.reason}")
        for number, each in enumerate(trail, 1)
    ]


_SOURCES = {
    "a": "a link", "area": "an image map", "frame": "a frame", "canonical": "a canonical link", "refresh": "a refresh",
    "redirect": "a redirect", "seed": "a seed", "sitemap": "listed in a sitemap", "feed": "listed in a feed",
    LISTING: "a sitemap",
    RESOURCE: "what a page's scripts ask for",
}  # fmt: skip


def _score(score: Score, found: Found | None, queue: Queued | None) -> list[str]:
    parts = " + ".join(f"{name} {part:.3f}" for name, part in score.parts.items())
    kind = found.kind if found else "a"
    depth = words.plural(found.depth, "link") if found else "?"
    copy = "never fetched" if score.stale >= 1.0 else f"our copy is {score.stale:.0%} likely stale"
    looks = f", looks like a {score.looks_like} page" if score.looks_like in ("news", "blog") else ""
    lines = [
        _row("score", f"{score.total:.3f} = {parts}"),
        _row(
            "",
            f"cash of {_cash(score.cash)}, {words.plural(score.linkers, 'linking site')}, "
            f"{words.plural(score.taken, 'page')} of the site taken",
        ),
        _row(
            "",
            f"{copy}; {_SOURCES.get(kind, kind)}{looks}; "
            f"{depth} from a seed, {words.plural(score.steps, 'step')} from the root of its host",
        ),
    ]
    if score.last:
        lines.append(_row("", f"last of all: {score.last}"))
    if queue and queue.bucket != score.bucket:
        lines.append(_row("", f"queued in bucket {queue.bucket}; by what is known now it would be {score.bucket}"))
    return lines


def _cash(cash: float) -> str:
    return f"{cash:.2f} pages" if cash >= 0.01 or not cash else "below 0.01 pages"


def _again(again: Again, now: Instant) -> list[str]:
    when = f"due since {words.moment(again.due)}" if again.due <= now else words.ahead(again.due, now)
    lines = [_row("again", f"{when}, {again.tier}"), _row("", _basis(again))]
    if again.told:
        checked = f"{again.truthful:,} of {again.dated:,} were right" if again.dated else "none was checked yet"
        said = f"its site says it changed {words.moment(again.told)}"
        lines.append(_row("", f"{said}; its dates are trusted {again.trust:.0%} ({checked})"))
    return lines


def _basis(again: Again) -> str:
    every = words.span(again.every)
    match again.basis:
        case "ttl":
            return f"its job asks for it every {every}"
        case "kind":
            return f"visited once so far; pages of its kind ({again.kind}) are taken to change about every {every}"
    return (
        f"it changes about every {every}, from {words.plural(again.visits, 'visit')}, {again.changes:,} of them changed"
    )


def _job(job: JobSays) -> str:
    ttl = f", every {words.span(job.ttl)}" if job.ttl else ""
    return f"{job.id} ({job.name}), {job.priority} priority{ttl}, to depth {job.max_depth}"


# -- what it rests on ------------------------------------------------------------------------------------------------


def _visit(visit: Visited, verdict: str) -> list[str]:
    unasked = verdict == "blocked" or visit.reason.startswith((TRAP, "budget: "))
    lines = [_row("judged" if unasked else "asked", words.moment(visit.at))]
    if visit.tls_error:
        lines.append(_row("tls_error", f"fetched all the same: {visit.tls_error}"))
    if visit.digest:
        lines.append(
            _row("content", f"{visit.content_type or 'no type'}, {words.size(visit.size)}, sha256 {visit.digest}")
        )
    if visit.near_duplicate_of:
        bits = words.plural(visit.distance, "bit")
        lines.append(_row("near copy", f"says nearly what {visit.near_duplicate_of} says ({bits} apart)"))
    if visit.record:
        record = visit.record
        lines.append(_row("record", f"warc/{record.file}, offset {record.offset:,}, {record.length:,} bytes"))
    return lines


def _found(found: Found) -> list[str]:
    links = "a seed" if found.depth == 0 else words.plural(found.depth, "link") + " from a seed"
    if found.kind == RESOURCE:
        links = _SOURCES[RESOURCE]
    lines = [_row("found", f"{words.moment(found.at)}, {links}")]
    lines += [_row("", f"<- {step}") for step in found.chain[:CHAIN_SHOWN]]
    if len(found.chain) > CHAIN_SHOWN:
        lines.append(_row("", f"<- ... {len(found.chain) - CHAIN_SHOWN} more"))
    return lines


def _believed(lied: Instant) -> Instant:
    return Instant(lied + DISTRUST)


def _robots(robots: RobotsSay, host: HostSays | None, now: Instant) -> list[str]:
    lines = [_row("robots", f"{robots.origin}/robots.txt: {_says(robots)}")]
    if robots.fetched_at:
        copy = f"{robots.copy_bytes:,} bytes, sha256 {robots.copy_sha256[:16]}" if robots.copy_bytes else "no rules"
        lines.append(_row("", f"copy of {words.moment(robots.fetched_at)}: {copy} ({robots.reason})"))
    else:
        lines.append(_row("", f"no copy yet; asked {words.moment(robots.tried_at)}: {robots.reason}"))
    lines.append(_row("", f"asked for again {words.ahead(_asked_again(robots, host), now)}"))
    return lines


def _copy(robots: RobotsSay) -> list[str]:
    """The copy we hold, as far as it is short."""
    shown = robots.copy.splitlines()
    more = [f"... {len(shown) - COPY_SHOWN:,} more lines"] if len(shown) > COPY_SHOWN else []
    return [f"    | {line}" for line in [*shown[:COPY_SHOWN], *more]]


def _says(robots: RobotsSay) -> str:
    if robots.standing == "forbid" or not robots.fetched_at:
        return "unreachable, which forbids everything"
    today = "" if robots.standing == "rules" else " (the copy is old: it is asked for again first)"
    if robots.line:
        return f"line {robots.line} {'allows' if robots.allowed else 'forbids'} it: {robots.text!r}{today}"
    return f"no rule applies to it{today}"


def _host(host: HostSays, now: Instant) -> list[str]:
    lines = [
        _row(
            "host",
            f"{host.host} (site {host.site}, worker {host.worker}), {words.plural(host.fetched, 'page')} fetched",
        ),
        _row("", f"{words.span(host.delay)} between requests; may be asked {words.ahead(host.next_allowed, now)}"),
    ]
    if host.failures:
        lines.append(_row("", f"{words.plural(host.failures, 'failure')} in a row"))
    return lines


def _site(site: SiteSays) -> list[str]:
    earned = "a seed vouches for it" if site.vouched else f"{words.plural(site.linkers, 'linking site')}"
    new = f"{site.novel:.0%} of its pages new" if site.fetched else "nothing known of its pages yet"
    lines = [
        _row(
            "site",
            f"{site.site}: {words.plural(site.fetched, 'page')}, {site.today:,} today of {site.allowance:,} a day "
            f"({earned})",
        ),
        _row("", new + (f"; {words.plural(site.traps, 'trap')}" if site.traps else "")),
    ]
    if site.flagged:
        lines.append(_row("", f"flagged: {site.flagged}"))
    if site.lied:
        told = f'it said "not modified" of pages that were ({words.moment(site.lied)})'
        lines.append(_row("", f"{told}: whole pages are asked for until {words.moment(_believed(site.lied))}"))
    if site.barren:
        lines.append(_row("", "its ETags are new with every answer: only its dates are sent"))
    return lines
