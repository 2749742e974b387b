"""Host names to addresses, with a cache that forgives a resolver's bad hour.

A name is looked up once however many ask for it; an answer is fresh for its TTL (never less than five minutes) and may
be used for a day more when the resolver fails, for a week when it goes on failing; failures are remembered for a short
while. What a name server denies is not there: no old address serves for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias, assert_never

from harvestman.fetch.dnswire import AT_ONCE, Found, Lookup, NoAnswer, NoSuchName, Wire
from harvestman.fetch.nameservers import Upstream, as_address, read_hosts, read_upstreams
from harvestman.model import Instant, Seconds

_FOREVER: Final = Instant(float("inf"))
_LOCALHOST: Final = ("127.0.0.1", "::1")
_PATIENCE: Final = Seconds(2.0)
_ELSEWHERE: Final = {
    "onion": ".onion names are not in the DNS (RFC 7686): they are reached through Tor",
    "local": ".local names are not in the DNS (RFC 6762): they belong to one network",
    "alt": ".alt names are not in the DNS (RFC 9476)",
    "invalid": ".invalid names do not exist (RFC 6761)",
}
"""Last labels that no name server is asked about: it would only learn what is none of its business."""

Changed: TypeAlias = Callable[[str, tuple[str, ...], tuple[str, ...]], None]
"""Told of a host, its addresses so far and its addresses from now on, which have none in common."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """What is known of a host: addresses in order of preference, or why there are none."""

    addresses: tuple[str, ...]
    error: str | None
    expires: Instant
    """Until when this may be used without asking again."""
    stale: bool = False
    """The addresses are past their time; the resolver did not answer (`error` says how)."""
    good_until: Instant = Instant(0.0)
    """When the last known addresses went, or will go, past their time."""
    last: tuple[str, ...] = ()
    """The addresses that a name server told last, even when they are too old to be used."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """How long answers are kept."""

    floor: Seconds
    """The least a found address is fresh, whatever its TTL."""
    ceiling: Seconds
    stale: Seconds
    """How long past its time an address may serve while the resolver fails."""
    last: Seconds
    """The same when it failed before as well: then an older address is better than none."""
    no_such_name: Seconds
    no_answer: Seconds
    """Until a failed look-up without any address is tried again ..."""
    recheck: Seconds
    """... and one that an old address serves for."""


DEFAULT_FRESHNESS: Final = Freshness(
    floor=Seconds(300),
    ceiling=Seconds(86400),
    stale=Seconds(86400),
    last=Seconds(7 * 86400),
    no_such_name=Seconds(300),
    no_answer=Seconds(1),
    recheck=Seconds(30),
)


class Resolver:
    """Resolves host names (lower case, as URLs carry them).

    Promises:
    - `resolve` never raises for what a name server does; `Resolution.error` says what went wrong;
    - look-ups of one host that run at the same time share one question on the wire;
    - an IP literal is its own address; `localhost` and the hosts file come before any name server;
    - no name server is asked about names that are not in the DNS (.onion, .local);
    - at most `max_entries` hosts are remembered; the least recently used go first.
    """

    def __init__(
        self,
        *,
        upstreams: Sequence[Upstream],
        now: Callable[[], Instant],
        hosts: Mapping[str, tuple[str, ...]] | None = None,
        freshness: Freshness = DEFAULT_FRESHNESS,
        max_entries: int = 100_000,
        patience: Seconds = _PATIENCE,
        tries: int = 3,
        ca_file: str | None = None,
        families: Sequence[int] = (4, 6),
    ) -> None:
        """`upstreams`: whom to ask, in this order; empty for the system's. `ca_file`: whom those over HTTPS trust.

        `families`: of addresses that can be reached, the preferred first.
        """
        self._now = now
        self._freshness = freshness
        self._hosts = hosts if hosts is not None else read_hosts(Path("/etc/hosts"))
        servers = upstreams or read_upstreams(Path("/etc/resolv.conf"))
        self._wire = Wire(servers, patience=patience, tries=tries, ca_file=ca_file, families=families)
        self._cache = _Recent(max_entries)
        self._asking: dict[str, asyncio.Task[Resolution]] = {}
        self.hits = 0
        """Answers from memory."""
        self.misses = 0
        """Questions put to a name server while somebody waited for the answer."""
        self.prefetched = 0
        """Those put before anybody did."""
        self.changed: Changed | None = None

    def peek(self, host: str) -> Resolution | None:
        """What is known without asking anybody: a fresh answer, or None."""
        known = self._cache.get(host)
        if known is not None and known.expires > self._now():
            self.hits += 1
            return known
        return None

    async def resolve(self, host: str) -> Resolution:
        """What is known of `host`; a name server is asked when nothing fresh is."""
        known = self.peek(host)
        if known is not None:
            return known
        local = self._local(host)
        if local is not None:
            self._cache.put(host, local)
            return local
        task = self._asking.get(host)
        if task is None:
            self.misses += 1
            task = self._start(host)
        # Shielded: one impatient caller must not take the answer from the others.
        return await asyncio.shield(task)

    def prefetch(self, hosts: Iterable[str], until: Instant) -> None:
        """Ask about hosts that will be needed and whose answer is not there or will not be fresh by `until`.

        Half of the questions that may be under way are left to those who wait; what finds no room now comes again. A
        name that failed is not asked about before it must be.
        """
        for host in hosts:
            if len(self._asking) >= AT_ONCE // 2:
                return
            known = self._cache.get(host)
            needed = known is None or (known.expires <= until and not known.error)
            if needed and host not in self._asking and self._local(host) is None:
                self.prefetched += 1
                self._start(host)

    def _start(self, host: str) -> asyncio.Task[Resolution]:
        task = self._asking[host] = asyncio.create_task(self._ask(host), name=f"dns {host}")
        return task

    def _local(self, host: str) -> Resolution | None:
        """Names that need no name server."""
        literal = as_address(host)
        if literal is not None:
            return Resolution((literal,), None, _FOREVER)
        name = host.lower().rstrip(".")
        addresses = self._hosts.get(name)
        if addresses is None and (name == "localhost" or name.endswith(".localhost")):
            addresses = _LOCALHOST
        if addresses:
            return Resolution(addresses, None, _FOREVER)
        reason = _ELSEWHERE.get(name.rpartition(".")[2])
        return Resolution((), reason, _FOREVER) if reason else None

    async def _ask(self, host: str) -> Resolution:
        try:
            found = await self._wire.lookup(host)
            before = self._cache.get(host)
            resolution = self._judge(found, before)
            self._cache.put(host, resolution)
            if before is not None:
                self._compare(host, before.last, resolution.last)
            return resolution
        finally:
            del self._asking[host]

    def _compare(self, host: str, before: tuple[str, ...], after: tuple[str, ...]) -> None:
        if self.changed is not None and before and after and not set(before) & set(after):
            self.changed(host, before, after)

    def _judge(self, found: Lookup, before: Resolution | None) -> Resolution:
        now, keep = self._now(), self._freshness
        match found:
            case Found(addresses, ttl):
                until = Instant(now + min(max(ttl, keep.floor), keep.ceiling))
                return Resolution(addresses, None, until, good_until=until, last=addresses)
            case NoSuchName(reason):
                return Resolution((), reason, Instant(now + keep.no_such_name))
            case NoAnswer(reason):
                return self._make_do(reason, before, now)
        assert_never(found)

    def _make_do(self, reason: str, before: Resolution | None, now: Instant) -> Resolution:
        """Nobody answered: the last known addresses serve, unless they are too old for that."""
        keep = self._freshness
        if before is None or not before.last:
            return Resolution((), reason, Instant(now + keep.no_answer))
        longest = max(keep.stale, keep.last) if before.error else keep.stale
        stale = now < before.good_until + longest
        again = Instant(now + (keep.recheck if stale else keep.no_answer))
        return Resolution(before.last if stale else (), reason, again, stale, before.good_until, before.last)

    async def close(self) -> None:
        """Stop asking; look-ups still running end with an error."""
        asking = tuple(self._asking.values())
        self._wire.close()
        await asyncio.gather(*asking, return_exceptions=True)


class _Recent:
    """A bounded map that forgets what was not used lately: two plain dicts, the younger filled, the older drained.

    About half the memory of an ordered map with links, for eviction that is exact only to half the capacity.
    """

    def __init__(self, capacity: int) -> None:
        self._half = max(1, capacity // 2)
        self._young: dict[str, Resolution] = {}
        self._old: dict[str, Resolution] = {}

    def get(self, host: str) -> Resolution | None:
        found = self._young.get(host)
        if found is None:
            found = self._old.pop(host, None)
            if found is not None:
                self.put(host, found)
        return found

    def put(self, host: str, resolution: Resolution) -> None:
        if len(self._young) >= self._half and host not in self._young:
            self._old, self._young = self._young, {}
        self._young[host] = resolution

    def __len__(self) -> int:
        return len(self._young.keys() | self._old.keys())
