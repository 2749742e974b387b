"""An explanation in words, for people."""

from __future__ import annotations

from harvestman.cli import words
from harvestman.cli.explain import Explanation, Found, HostSays, Queued, RobotsSay, Visited
from harvestman.model import Instant
from harvestman.views import MAX_PLACE

CHAIN_SHOWN = 12
COPY_SHOWN = 40


def told(explanation: Explanation, now: Instant) -> str:
    """The verdict first, then what it rests on."""
    typed = explanation.verdict == "not-a-url"
    lines = [repr(explanation.url) if typed else explanation.url, f"  {verdict(explanation, now)}"]
    if explanation.spelt:
        lines.append(f"  known as {explanation.spelt}")
    if explanation.visit:
        lines += _visit(explanation.visit, explanation.verdict)
    if explanation.found:
        lines += _found(explanation.found)
    if explanation.robots:
        lines += _robots(explanation.robots, explanation.host, now)
        if explanation.verdict == "robots":
            lines += _copy(explanation.robots)
    if explanation.host:
        lines += _host(explanation.host, now)
    return "\n".join(lines)


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
    host, robots, queue = explanation.host, explanation.robots, explanation.queue
    if host and host.sick_until > now:
        rest = words.ahead(host.sick_until, now)
        return f"waiting: its host failed too often and rests until {rest}{_last_failure(explanation)}"
    if robots and robots.unreachable_since and robots.standing != "rules":
        return (
            f"waiting: robots.txt cannot be had ({robots.reason}), which forbids everything; "
            f"it is asked for again {words.ahead(_asked_again(robots, host), now)}"
        )
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
    return f", {before} before it (priority {queue.bucket}, 0 is the most urgent)"


# -- what it rests on ------------------------------------------------------------------------------------------------


def _visit(visit: Visited, verdict: str) -> list[str]:
    asked = "judged" if verdict == "blocked" else "asked"
    lines = [_row(asked, words.moment(visit.at))]
    if visit.digest:
        lines.append(
            _row("content", f"{visit.content_type or 'no type'}, {words.size(visit.size)}, sha256 {visit.digest}")
        )
    if visit.record:
        record = visit.record
        lines.append(_row("record", f"warc/{record.file}, offset {record.offset:,}, {record.length:,} bytes"))
    return lines


def _found(found: Found) -> list[str]:
    links = "a seed" if found.depth == 0 else words.plural(found.depth, "link") + " from a seed"
    lines = [_row("found", f"{words.moment(found.at)}, {links}")]
    lines += [_row("", f"<- {step}") for step in found.chain[:CHAIN_SHOWN]]
    if len(found.chain) > CHAIN_SHOWN:
        lines.append(_row("", f"<- ... {len(found.chain) - CHAIN_SHOWN} more"))
    return lines


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
