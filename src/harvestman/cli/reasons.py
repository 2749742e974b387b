"""An explanation in words, for people."""

from __future__ import annotations

from harvestman.cli import words
from harvestman.cli.explain import Explanation, Found, HostSays, Queued, RobotsSay, Visited
from harvestman.model import Instant
from harvestman.views import MAX_PLACE

CHAIN_SHOWN = 12


def told(explanation: Explanation, now: Instant) -> str:
    """The verdict first, then what it rests on."""
    lines = [explanation.url, f"  {_verdict(explanation, now)}"]
    if explanation.spelt:
        lines.append(f"  known as {explanation.spelt}")
    if explanation.visit:
        lines += _visit(explanation.visit, explanation.verdict)
    if explanation.found:
        lines += _found(explanation.found)
    if explanation.robots:
        lines += _robots(explanation.robots, now)
    if explanation.host:
        lines += _host(explanation.host, now)
    return "\n".join(lines)


def _row(name: str, text: str) -> str:
    return f"  {name:<10}{text}"


# -- the verdict -----------------------------------------------------------------------------------------------------


def _verdict(explanation: Explanation, now: Instant) -> str:
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
            return f"never fetched: {explanation.admission.reason if explanation.admission else reason}"
    return _unseen(explanation)


def _unseen(explanation: Explanation) -> str:
    admission = explanation.admission
    if admission is None or admission.admitted:
        return "never seen: it would be crawled, but no page fetched so far links to it"
    return f"never seen, and would not be crawled: {admission.reason}"


def _waiting(explanation: Explanation, now: Instant) -> str:
    """The one thing it waits for first of all."""
    host, robots, queue = explanation.host, explanation.robots, explanation.queue
    if host and host.sick_until > now:
        return f"waiting: its host failed too often and rests until {words.ahead(host.sick_until, now)}"
    if robots and robots.standing == "forbid":
        return (
            f"waiting: robots.txt cannot be had ({robots.reason}), which forbids everything; "
            f"it is asked for again {words.ahead(robots.expires, now)}"
        )
    if queue and queue.retry_at:
        return f"waiting to be tried again {words.ahead(queue.retry_at, now)}{_attempts(explanation, queue)}"
    return f"waiting in the queue of its host{_place(queue)}"


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


def _robots(robots: RobotsSay, now: Instant) -> list[str]:
    lines = [_row("robots", f"{robots.origin}/robots.txt: {_says(robots)}")]
    if robots.fetched_at:
        copy = f"{robots.copy_bytes:,} bytes, sha256 {robots.copy_sha256[:16]}" if robots.copy_bytes else "no rules"
        lines.append(_row("", f"copy of {words.moment(robots.fetched_at)}: {copy} ({robots.reason})"))
    else:
        lines.append(_row("", f"no copy yet; asked {words.moment(robots.tried_at)}: {robots.reason}"))
    lines.append(_row("", f"asked for again {words.ahead(robots.expires, now)}"))
    return lines


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
