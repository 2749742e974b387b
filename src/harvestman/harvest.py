"""What becomes of a group of answers: decode, recognise duplicates, store raw, parse, choose the links to follow.

Raw content is durable before it is parsed: the WARC record is written first, always.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random
from typing import TypeAlias

from harvestman.config import Config
from harvestman.fetch.decode import BadBody, decode
from harvestman.frontier.routing import Routed, Router
from harvestman.frontier.seen import Recent
from harvestman.model import (
    Answer,
    Discovery,
    Failure,
    FailureKind,
    Instant,
    Lease,
    Page,
    Parsed,
    RecordRef,
    Response,
    Status,
    Tally,
    UrlRecord,
    Visit,
)  # fmt: skip
from harvestman.pages.parse import parse
from harvestman.policy.outcomes import Decision, decide
from harvestman.policy.priority import bucket, score
from harvestman.policy.scope import Scope
from harvestman.policy.urls import host_of
from harvestman.ports import Content, State
from harvestman.store.records import sha256 as payload_digest
from harvestman.store.warc import WarcWriter

AcceptUrl = Callable[[str], bool]
Handed: TypeAlias = tuple[Lease, UrlRecord, Answer, RecordRef | None]
"""An answer as it is handed over; the ref is that of a raw record which is stored already."""


@dataclass(slots=True)
class Taken:
    """An answer to a page lease, on its way through the group."""

    lease: Lease
    record: UrlRecord
    answer: Answer
    decision: Decision
    body: bytes = b""
    """Decoded."""
    digest: bytes = b""
    payload: str = ""
    """The digest of the body as transferred."""
    ref: RecordRef | None = None
    """Set beforehand when the raw record is already stored (a replay after a crash)."""
    original: Content | None = None
    page: Page | None = None
    links: list[Routed] = field(default_factory=list)

    def count(self, tally: Tally) -> int:
        """Add it to the tally; 1 when it is a page."""
        if isinstance(self.answer, Response):
            tally.bytes += len(self.answer.body)
        if self.decision.error:
            tally.error(self.decision.error)
        tally.settled += self.decision.status is not Status.PENDING
        if self.decision.status not in (Status.FETCHED, Status.DUPLICATE):
            return 0
        tally.pages += 1
        tally.duplicates += self.decision.status is Status.DUPLICATE
        return 1

    def visit(self) -> Visit:
        """The durable summary."""
        answer, decision = self.answer, self.decision
        if isinstance(answer, Failure):
            return Visit(answer.finished, 0, decision.reason)
        headers = answer.headers
        return Visit(
            answer.finished, answer.status, decision.reason, self.digest, self.page.simhash if self.page else 0,
            headers.get("etag", "")[:256], headers.get("last-modified", "")[:64], headers.get("content-type", "")[:128],
            len(self.body), self.ref, decision.target or (self.original.url if self.original else ""),
        )  # fmt: skip


class Harvest:
    """Turns answers into stored records, pages and links. One per worker."""

    def __init__(
        self, config: Config, state: State, warc: WarcWriter, router: Router, scope: Scope, rng: Random,
        accept: AcceptUrl | None = None,
    ) -> None:  # fmt: skip
        self._config = config
        self._state = state
        self._warc = warc
        self._router = router
        self._scope = scope
        self._rng = rng
        self._accept = accept
        self._recent = Recent(config.memory.recent_links)
        self._buckets: dict[tuple[str, int], int] = {}
        self.contents: dict[bytes, Content] = {}
        """Content first seen in this group: to be committed with it."""

    def chance(self) -> float:
        return self._rng.random()

    async def gather(self, answers: Sequence[Handed]) -> list[Taken]:
        """The whole way of a group, from answers to pages and links."""
        self.contents = {}
        group = [self._judge(*answer) for answer in answers]
        known = await self._state.contents([taken.digest for taken in group if taken.digest])
        stored = dict(zip((taken.digest for taken in group if taken.digest), known, strict=True))
        for taken in group:
            self._recognise(taken, stored.get(taken.digest) or self.contents.get(taken.digest))
            self._store(taken)
            if taken.decision.status is Status.FETCHED and taken.digest:
                self._read(taken)
            elif taken.decision.target:
                self._redirect(taken)
        return group

    def _judge(self, lease: Lease, record: UrlRecord, answer: Answer, ref: RecordRef | None) -> Taken:
        config = self._config
        decision = decide(
            lease.url, answer, record.attempts + 1, record.hops, config.retry, config.limits, self._rng.random()
        )
        taken = Taken(lease, record, answer, decision, ref=ref)
        if decision.status is Status.FETCHED and isinstance(answer, Response) and answer.status != 304:
            self._decode(taken, answer)
        return taken

    def _decode(self, taken: Taken, answer: Response) -> None:
        body = decode(answer.body, answer.headers.get("content-encoding", ""), self._config.limits.decoded_bytes)
        if isinstance(body, BadBody):
            words = f"{FailureKind.BAD_CONTENT}: {body.reason}"
            taken.decision = Decision(Status.REFUSED, words, error=str(FailureKind.BAD_CONTENT))
        else:
            taken.body = body
            taken.digest = sha256(body).digest()

    def _recognise(self, taken: Taken, content: Content | None) -> None:
        """Is it an exact duplicate, of something stored before or earlier in the group?"""
        if content is not None and content.url != taken.record.url and taken.body:
            taken.original = content
            taken.decision = Decision(Status.DUPLICATE, "same content as another URL")

    def _store(self, taken: Taken) -> None:
        """Write the raw record: a revisit when the payload is already stored, byte for byte."""
        answer = taken.answer
        if isinstance(answer, Failure) or taken.ref is not None:
            return
        original = taken.original
        taken.payload = payload_digest(answer.body)
        digest = taken.digest.hex() or taken.payload.removeprefix("sha256:")
        if original is not None and original.payload_digest == taken.payload:
            taken.ref = self._warc.write_revisit(
                answer, refers_to_uri=original.url, refers_to_date=original.at, payload_digest=digest
            )
        else:
            taken.ref = self._warc.write(answer, digest=digest, payload_digest=taken.payload)

    def _read(self, taken: Taken) -> None:
        answer = taken.answer
        assert isinstance(answer, Response)
        assert taken.ref is not None
        if taken.original is None:
            payload = taken.payload or payload_digest(answer.body)
            content = Content(taken.record.url, answer.finished, payload, taken.ref)
            self.contents.setdefault(taken.digest, content)
        headers = answer.headers
        kind, agent = headers.get("content-type", ""), self._config.agent.lower()
        parsed = parse(taken.body, kind, taken.lease.url, x_robots_tag=headers.get("x-robots-tag", ""), agent=agent)
        taken.page = page_of(taken, answer, parsed, kind)
        if not parsed.nofollow:
            self._follow(taken, parsed)

    def _follow(self, taken: Taken, parsed: Parsed) -> None:
        """The hot loop: of sixty links a page, those that are new, wanted and in scope. bench/pages."""
        depth = taken.record.depth + 1
        if depth > self._config.limits.max_depth:
            return
        first_time, admits, place, accept = (
            self._recent.first_time,
            self._scope.admits,
            self._router.place,
            self._accept,
        )
        via, links, buckets = taken.lease.url, taken.links, self._buckets
        for link in parsed.links:
            url = link.url
            if (link.rel and "nofollow" in link.rel.split()) or not first_time(url):
                continue
            host, site, partition = place(host_of(url))
            if not admits(url, host, site) or (accept is not None and not accept(url)):
                continue
            rank = buckets.get((link.kind, depth))
            if rank is None:
                rank = buckets[link.kind, depth] = self._bucket(link.kind, depth)
            links.append(Routed(Discovery(url, depth, via, link.kind, 0, rank), host, site, partition))

    def _redirect(self, taken: Taken) -> None:
        target, record = taken.decision.target, taken.record
        assert target is not None
        found = Discovery(
            target, record.depth, taken.lease.url, "redirect", record.hops + 1, self._bucket("redirect", record.depth)
        )
        routed = self._router.route(found)
        if self._scope.admits(target, routed.host, routed.site) and (self._accept is None or self._accept(target)):
            taken.links.append(routed)
        else:
            taken.decision = Decision(Status.REDIRECTED, f"leads out of scope: {target}")

    def _bucket(self, kind: str, depth: int) -> int:
        return bucket(score(0.5, 1.0, kind, depth, self._config.limits.max_depth))

    def seeds(self, texts: Sequence[str], via: str) -> list[Routed]:
        """Seeds as discoveries: depth 0, the most urgent."""
        return [self._router.route(Discovery(url, 0, via, "seed", 0, self._bucket("seed", 0))) for url in texts]


def page_of(taken: Taken, answer: Response, parsed: Parsed, content_type: str) -> Page:
    """The page as users see it."""
    return Page(
        taken.lease.url, answer.status, Instant(answer.finished), content_type, taken.record.depth, taken.digest.hex(),
        parsed.charset, parsed.title, parsed.description, parsed.language, parsed.text, parsed.canonical, parsed.links,
        parsed.noindex, parsed.nofollow, parsed.simhash,
    )  # fmt: skip
