"""The one place that turns an answer into a URL's next status and its next date."""

from __future__ import annotations

from dataclasses import dataclass

from harvestman.config import Limits, Retry
from harvestman.model import Answer, Failure, FailureKind, Instant, Lease, Response, Seconds, Status
from harvestman.policy import urls
from harvestman.policy.ladder import retry_after
from harvestman.policy.politeness import THROTTLED, back_off

REDIRECTS = (301, 302, 303, 307, 308)
FINAL = frozenset({FailureKind.UNWANTED, FailureKind.TOO_LARGE, FailureKind.BAD_CONTENT, FailureKind.GUARD})
"""Asking again would give the same."""
SLOWER = {
    FailureKind.DNS: 10.0,
    FailureKind.CONNECT: 1.0,
    FailureKind.TLS: 60.0,
    FailureKind.TIMEOUT: 2.0,
    FailureKind.PROTOCOL: 2.0,
    FailureKind.TRUNCATED: 1.0,
}
"""What heals by itself, and how much slower than the usual back-off: a name comes back in minutes, a certificate in
days; a connection that broke off may hold at once."""
_PASSING = frozenset({408, 425, 429, *range(500, 600)})


THE_HOSTS = (FailureKind.DNS, FailureKind.CONNECT)
"""Failures that no page is to blame for."""


def excused(lease: Lease, answer: Answer) -> bool:
    """Whether a failure is the host's: it failed before, with another URL, or in a way that no page is to blame for.

    Then it is no attempt of the URL. The host's back-off and the sick list see to it that such tries stay few.
    """
    if lease.failures == 0:
        return False
    if isinstance(answer, Failure):
        return not lease.own or answer.kind in THE_HOSTS
    return not lease.own or answer.status in THROTTLED


@dataclass(slots=True, frozen=True)
class Decision:
    """What becomes of a URL after an answer."""

    status: Status
    reason: str
    retry_at: Instant | None = None
    target: str | None = None
    """Where a redirect leads, in request form."""
    rename: str | None = None
    """Ask again under this spelling: a redirect that only adds or drops what the key ignores (/dir to /dir/)."""
    error: str | None = None
    """The word it is counted under when something went wrong."""


def decide(url: str, answer: Answer, attempts: int, hops: int, retry: Retry, limits: Limits, chance: float) -> Decision:
    """`attempts` counts this one."""
    if isinstance(answer, Failure):
        return _failed(answer, attempts, retry, chance)
    if answer.status in REDIRECTS and "location" in answer.headers:
        return _redirected(url, answer, hops, limits)
    if 200 <= answer.status < 300:
        return Decision(Status.FETCHED, "ok")
    if answer.status == 304:
        return Decision(Status.FETCHED, "not modified")
    if answer.status in _PASSING:
        word = "throttled" if answer.status in THROTTLED else f"http_{answer.status // 100}xx"
        asked = retry_after(answer.headers, answer.finished) or Seconds(0.0)
        wait = max(asked, back_off(attempts, retry, chance))
        return _again(f"HTTP {answer.status}", word, answer.finished, attempts, wait, retry)
    return Decision(Status.GONE, f"HTTP {answer.status}", error=f"http_{answer.status}")


def _failed(answer: Failure, attempts: int, retry: Retry, chance: float) -> Decision:
    words = f"{answer.kind}: {answer.detail}" if answer.detail else str(answer.kind)
    if answer.kind in FINAL:
        return Decision(Status.REFUSED, words, error=str(answer.kind))
    wait = Seconds(back_off(attempts, retry, chance) * SLOWER[answer.kind])
    return _again(words, str(answer.kind), answer.finished, attempts, min(wait, retry.longest), retry)


def _again(reason: str, word: str, now: Instant, attempts: int, wait: Seconds, retry: Retry) -> Decision:
    if attempts >= retry.attempts:
        return Decision(Status.DEAD, f"{reason} (attempt {attempts} of {retry.attempts})", error=word)
    return Decision(Status.PENDING, reason, retry_at=Instant(now + wait), error=word)


def _redirected(url: str, answer: Response, hops: int, limits: Limits) -> Decision:
    if hops + 1 > limits.max_hops:
        return Decision(Status.REDIRECTED, f"more than {limits.max_hops} redirects", error="redirect_limit")
    location = _readable(answer.headers["location"].strip(" \t"))
    target = url if location.startswith("#") else urls.Base(url).resolve(location)
    if target is None:
        return Decision(Status.REDIRECTED, f"bad redirect: cannot fetch {location[:80]!r}", error="bad_redirect")
    if target == url:
        return Decision(Status.REDIRECTED, "redirects to itself", error="redirect_loop")
    if urls.key(target) == urls.key(url):
        return Decision(Status.PENDING, f"HTTP {answer.status}", retry_at=answer.finished, rename=target)
    return Decision(Status.REDIRECTED, f"HTTP {answer.status}", target=target)


def _readable(location: str) -> str:
    """Return a Location as its server meant it: header values are read as latin-1, but browsers take UTF-8 for UTF-8.

    Other bytes are escaped one by one, so that the server gets back what it sent.
    """
    if location.isascii():
        return location
    try:
        raw = location.encode("latin-1")
    except UnicodeEncodeError:  # it never was bytes
        return location
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in raw)
