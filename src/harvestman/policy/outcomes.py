"""The one place that turns an answer into a URL's next status and its next date."""

from __future__ import annotations

from dataclasses import dataclass

from harvestman.config import Limits, Retry
from harvestman.model import Answer, Failure, FailureKind, Fault, Instant, Lease, Response, Seconds, Status, UrlRecord
from harvestman.policy import refresh, urls
from harvestman.policy.ladder import retry_after
from harvestman.policy.politeness import THROTTLED, back_off

REDIRECTS = (301, 302, 303, 307, 308)
PERMANENT = (301, 308)
AT_ONCE = "refresh at once"
"""The reason kept with a page that leads on without a pause: as good as a permanent redirect."""
_NAMED = 200
"""Characters of each URL of a loop that are kept."""
SLOWER = {
    FailureKind.DNS: 10.0,
    FailureKind.CONNECT: 1.0,
    FailureKind.TLS: 60.0,
    FailureKind.TIMEOUT: 2.0,
    FailureKind.PROTOCOL: 2.0,
    FailureKind.TRUNCATED: 1.0,
    FailureKind.PROXY: 1.0,
    FailureKind.CROWDED: 30.0,
}
"""What heals by itself, and how much slower than the usual back-off: a name comes back in minutes, a certificate in
days; a connection that broke off may hold at once."""
_PASSING = frozenset({408, 425, 429, *range(500, 600)})


def excused(lease: Lease, answer: Answer) -> bool:
    """Whether a failure is the host's: it failed before, with another URL, or in a way that no page is to blame for.

    Then it is no attempt of the URL. The host's back-off and the sick list see to it that such tries stay few. A
    proxy's failure is nobody's behind it; the proxy is left alone for a while (`frontier.doors`).
    """
    if isinstance(answer, Failure) and answer.kind.fault is Fault.OURS:
        return True
    if lease.failures == 0:
        return False
    if isinstance(answer, Failure):
        return not lease.own or answer.kind.fault is Fault.HOST
    return not lease.own or answer.status in THROTTLED


@dataclass(slots=True, frozen=True)
class Decision:
    """What becomes of a URL after an answer."""

    status: Status
    reason: str
    retry_at: Instant | None = None
    target: str | None = None
    """Where a redirect leads, in request form."""
    permanent: bool = False
    """It will lead there for a long time."""
    rename: str | None = None
    """Ask again under this spelling: a redirect that only adds or drops what the key ignores (/dir to /dir/)."""
    error: str | None = None
    """The word it is counted under when something went wrong."""


def decide(
    url: str, answer: Answer, attempts: int, hops: int, retry: Retry, limits: Limits, chance: float,
    behind: tuple[str, ...] = (),
) -> Decision:  # fmt: skip
    """`attempts` counts this one; `behind`: the redirects that led here."""
    if isinstance(answer, Failure):
        return _failed(answer, attempts, retry, chance)
    if answer.status in REDIRECTS and "location" in answer.headers:
        return _redirected(url, answer, hops, limits, behind)
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
    if answer.kind.fault is Fault.REFUSED:
        return Decision(Status.REFUSED, words, error=str(answer.kind))
    wait = Seconds(back_off(attempts, retry, chance) * SLOWER[answer.kind])
    return _again(words, str(answer.kind), answer.finished, attempts, min(wait, retry.longest), retry)


def _again(reason: str, word: str, now: Instant, attempts: int, wait: Seconds, retry: Retry) -> Decision:
    if attempts >= retry.attempts:
        return Decision(Status.DEAD, f"{reason} (attempt {attempts} of {retry.attempts})", error=word)
    return Decision(Status.PENDING, reason, retry_at=Instant(now + wait), error=word)


def _redirected(url: str, answer: Response, hops: int, limits: Limits, behind: tuple[str, ...]) -> Decision:
    location = _readable(answer.headers["location"].strip(" \t"))
    target = url if location.startswith("#") else urls.Base(url).resolve(location)
    if target is None:
        return Decision(Status.REDIRECTED, f"bad redirect: cannot fetch {urls.shown(location)!r}", error="bad_redirect")
    ended = _endless(url, target, hops, limits, behind)
    if ended is not None:
        return ended
    if urls.key(target) == urls.key(url):
        return Decision(Status.PENDING, f"HTTP {answer.status}", retry_at=answer.finished, rename=target)
    permanent = answer.status in PERMANENT
    return Decision(Status.REDIRECTED, f"HTTP {answer.status}", target=target, permanent=permanent)


def refreshed(
    url: str, delay: Seconds, target: str, hops: int, limits: Limits, behind: tuple[str, ...]
) -> Decision | None:
    """What becomes of a page that leads on by itself; None when it is a page like any other."""
    if delay > refresh.SOON or urls.key(target) == urls.key(url):
        return None
    ended = _endless(url, target, hops, limits, behind)
    if ended is not None:
        return ended
    reason = f"refresh after {delay:g} s" if delay else AT_ONCE
    return Decision(Status.REDIRECTED, reason, target=target, permanent=not delay)


def leads_to(record: UrlRecord, now: Instant) -> str:
    """Where a permanent redirect leads, as long as that is believed; '' when it must be asked."""
    visit = record.visit
    if record.status is not Status.REDIRECTED or visit is None or record.due <= now:
        return ""
    return visit.target if visit.code in PERMANENT or visit.reason == AT_ONCE else ""


def _endless(url: str, target: str, hops: int, limits: Limits, behind: tuple[str, ...]) -> Decision | None:
    """A redirect that is not followed: back to where it came from, or one too many."""
    if target == url or target in behind:
        loop = (*behind[behind.index(target) :], url, target) if target in behind else (url, target)
        words = " -> ".join(each[:_NAMED] for each in loop)
        return Decision(Status.REDIRECTED, f"redirect loop: {words}", error="redirect_loop")
    if hops + 1 > limits.max_hops:
        return Decision(Status.REDIRECTED, f"more than {limits.max_hops} redirects", error="redirect_limit")
    return None


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
