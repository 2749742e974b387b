"""A robots.txt lease is over: what its origin asks of us from now on.

A robots.txt may lie behind a redirect on another host. Asking for it there is an errand of that host, run in its turn
and at its pace, while the host it is for stays `away`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from harvestman.config import Config
from harvestman.frontier.book import Entry, RobotsBook
from harvestman.frontier.hosts import Errand, Host, Place
from harvestman.frontier.residents import Residents
from harvestman.frontier.routing import Router
from harvestman.frontier.staging import Staging
from harvestman.model import Answer, Failure, FailureKind, Fault, Instant, Lease, Response, RobotsRecord
from harvestman.policy import ladder, politeness, urls


class RobotsDesk:
    """See the module. `free` puts a host back into circulation, `enqueue` an idle one that has work again."""

    def __init__(
        self, book: RobotsBook, residents: Residents, router: Router, staging: Staging, config: Config,
        free: Callable[[Host, Instant], None], enqueue: Callable[[Host], None],
    ) -> None:  # fmt: skip
        self._book = book
        self._residents = residents
        self._router = router
        self._staging = staging
        self._config = config
        self._free = free
        self._enqueue = enqueue

    async def settled(self, asked: Host, lease: Lease, answer: Answer, body: bytes) -> tuple[str, ...] | None:
        """Learn the rules; `asked` is the host that answered. Returns the sitemaps, None when there are no rules."""
        host = self._residents.get(urls.host_of(lease.origin)) or asked
        previous = await self._book.record(host.partition, lease.origin)
        if isinstance(answer, Failure) and answer.kind.fault is Fault.OURS:
            self._note(host, lease, answer, previous)
            self._free(asked, answer.finished)
            return None
        if lease.hops and isinstance(answer, Failure) and answer.kind is FailureKind.GUARD:
            # Its robots.txt leads where we may not go, which says nothing against the host itself.
            detail = f"robots.txt leads to {answer.url}: {answer.detail}"
            answer = replace(answer, kind=FailureKind.CONNECT, detail=detail)
        record = ladder.settle(lease.origin, previous, answer, body, answer.finished, self._config.caches.robots)
        record.job = max(lease.job, previous.job if previous else 0)
        entry = self._book.learn(record)
        self._staging.changes.robots[lease.origin] = (host.partition, record)
        self.obey(host, entry)
        if asked.errands and asked.errands[0].origin == lease.origin:
            asked.errands.pop(0)
        host.away = False
        await self.give_up_errands(asked, answer.finished)
        self._free(asked, answer.finished)
        if host is not asked and host.place is Place.IDLE:
            self._free(host, answer.finished)
        return None if record.unreachable else entry.rules.sitemaps

    def _note(self, host: Host, lease: Lease, answer: Failure, previous: RobotsRecord | None) -> None:
        """It could not even be tried, which says nothing of it: it is asked for again, and `why` knows the reason."""
        record = previous or RobotsRecord(lease.origin, b"", Instant(0.0), answer.finished, Instant(0.0), job=lease.job)
        record.tried_at, record.reason = answer.finished, f"{answer.kind}: {answer.detail}"
        self._book.learn(record)
        self._staging.changes.robots[lease.origin] = (host.partition, record)

    async def moved(self, asked: Host, lease: Lease, answer: Response, target: str) -> None:
        """Ask for it where it is now, in turn and at the pace of the host it is on."""
        if asked.errands and asked.errands[0].origin == lease.origin:
            asked.errands.pop(0)
        owner = self._residents.get(urls.host_of(lease.origin)) or asked
        name, _, partition = self._router.place(urls.host_of(target))
        host = await self._residents.bring(name, partition, self._staging.changes.hosts)
        host.errands.append(Errand(target, lease))
        owner.away = host is not owner
        await self.give_up_errands(host, answer.finished)
        self._free(asked, answer.finished)
        for other in {owner, host} - {asked}:
            if other.place is Place.IDLE:
                self._free(other, answer.finished)

    async def give_up_errands(self, host: Host, now: Instant) -> None:
        """A sick host is not asked for hours: those who wait for a robots.txt on it take it for unreachable."""
        if host.clock.sick_until <= now:
            return
        for errand in host.errands:
            owner = self._residents[urls.host_of(errand.origin)]
            sick = Failure(errand.url, FailureKind.CONNECT, f"{host.name} is on the sick list", "", now, now)
            previous = await self._book.record(owner.partition, errand.origin)
            record = ladder.settle(errand.origin, previous, sick, b"", now)
            self._book.learn(record)
            self._staging.changes.robots[errand.origin] = (owner.partition, record)
            owner.away = False
            self._enqueue(owner)
        host.errands.clear()

    def obey(self, host: Host, entry: Entry) -> None:
        """Keep to the pace that this robots.txt asks for."""
        host.crawl_delay = entry.rules.crawl_delay
        floor = politeness.asked_delay(self._config.politeness, host.name, host.crawl_delay)
        host.clock = politeness.at_least(host.clock, floor)
