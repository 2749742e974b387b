"""Host names to addresses, with a cache that forgives a resolver's bad hour.

A name is looked up once however many ask for it; an answer is fresh for its TTL (never less than five minutes) and may
be used for a day more when the resolver fails; failures are remembered for a short while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, assert_never

from harvestman.errors import UsageError
from harvestman.fetch.dnswire import Found, Lookup, NoAnswer, NoSuchName, Wire
from harvestman.fetch.nameservers import Upstream, as_address, read_hosts, read_upstreams
from harvestman.model import Instant, Seconds

_FOREVER: Final = Instant(float("inf"))
_LOCALHOST: Final = ("127.0.0.1", "::1")
_PATIENCE: Final = Seconds(2.0)


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
    """When the addresses went, or will go, past their time."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """How long answers are kept."""

    floor: Seconds
    """The least a found address is fresh, whatever its TTL."""
    ceiling: Seconds
    stale: Seconds
    """How long past its time an address may serve while the resolver fails."""
    no_such_name: Seconds
    no_answer: Seconds


DEFAULT_FRESHNESS: Final = Freshness(
    floor=Seconds(300), ceiling=Seconds(86400), stale=Seconds(86400), no_such_name=Seconds(300), no_answer=Seconds(1)
)


class Resolver:
    """Resolves host names (lower case, as URLs carry them).

    Promises:
    - `resolve` never raises for what a name server does; `Resolution.error` says what went wrong;
    - look-ups of one host that run at the same time share one question on the wire;
    - an IP literal is its own address; `localhost` and the hosts file come before any name server;
    - at most `max_entries` hosts are remembered; the least recently used go first.
    """

    def __init__(
        self,
        *,
        upstream: Upstream | None,
        now: Callable[[], Instant],
        hosts: Mapping[str, tuple[str, ...]] | None = None,
        freshness: Freshness = DEFAULT_FRESHNESS,
        max_entries: int = 100_000,
        patience: Seconds = _PATIENCE,
        tries: int = 3,
    ) -> None:
        self._now = now
        self._freshness = freshness
        self._hosts = hosts if hosts is not None else read_hosts(Path("/etc/hosts"))
        upstreams = [_checked(upstream)] if upstream else read_upstreams(Path("/etc/resolv.conf"))
        self._wire = Wire(upstreams, patience=patience, tries=tries)
        self._cache = _Recent(max_entries)
        self._asking: dict[str, asyncio.Task[Resolution]] = {}
        self.hits = 0
        """Answers from memory."""
        self.misses = 0
        """Questions put to a name server."""

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
            task = self._asking[host] = asyncio.create_task(self._ask(host), name=f"dns {host}")
        # Shielded: one impatient caller must not take the answer from the others.
        return await asyncio.shield(task)

    def _local(self, host: str) -> Resolution | None:
        """Names that need no name server."""
        literal = as_address(host)
        if literal is not None:
            return Resolution((literal,), None, _FOREVER)
        name = host.lower().rstrip(".")
        addresses = self._hosts.get(name)
        if addresses is None and (name == "localhost" or name.endswith(".localhost")):
            addresses = _LOCALHOST
        return Resolution(addresses, None, _FOREVER) if addresses else None

    async def _ask(self, host: str) -> Resolution:
        try:
            found = await self._wire.lookup(host)
            resolution = self._judge(found, self._cache.get(host))
            self._cache.put(host, resolution)
            return resolution
        finally:
            del self._asking[host]

    def _judge(self, found: Lookup, before: Resolution | None) -> Resolution:
        now, keep = self._now(), self._freshness
        match found:
            case Found(addresses, ttl):
                until = Instant(now + min(max(ttl, keep.floor), keep.ceiling))
                return Resolution(addresses, None, until, good_until=until)
            case NoSuchName(reason):
                return Resolution((), reason, Instant(now + keep.no_such_name))
            case NoAnswer(reason):
                again = Instant(now + keep.no_answer)
                if before is not None and before.addresses and now < before.good_until + keep.stale:
                    return replace(before, error=reason, expires=again, stale=True)
                return Resolution((), reason, again)
        assert_never(found)

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


def _checked(upstream: Upstream) -> Upstream:
    host, port = upstream
    address = "127.0.0.1" if host == "localhost" else as_address(host)
    if address is None:
        raise UsageError(f"a name server is named by its address: --dns {host}:{port} needs an IP, such as 9.9.9.9:53")
    return address, port
