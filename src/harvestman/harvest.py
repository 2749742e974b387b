"""What becomes of a group of answers: decode, recognise duplicates, store raw, parse, choose the links to follow.

Raw content is durable before it is parsed: the WARC record is written first, always.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from random import Random
from typing import TypeAlias

import msgspec

from harvestman import media
from harvestman.config import Config
from harvestman.copying import Copying
from harvestman.fetch.decode import BadBody, decode
from harvestman.fetch.heads import readable
from harvestman.frontier.routing import Routed, Router
from harvestman.model import (
    LISTING,
    MENTION,
    RESOURCE,
    Answer,
    Discovery,
    Failure,
    FailureKind,
    Instant,
    Lease,
    Link,
    Origin,
    Page,
    Parsed,
    RecordRef,
    Response,
    SiteKey,
    Status,
    Tally,
    UrlRecord,
    Visit,
)  # fmt: skip
from harvestman.pages.directives import from_header
from harvestman.pages.language import language
from harvestman.pages.parse import parse
from harvestman.pages.scripted import needs_browser
from harvestman.pages.sitemap import looks_like, read, sources
from harvestman.policy import budget, refresh, traps
from harvestman.policy.copies import Print
from harvestman.policy.importance import PAGE, Grains, Importance, rank, share
from harvestman.policy.outcomes import Decision, decide, excused, refreshed
from harvestman.policy.rendering import PERHAPS
from harvestman.policy.scope import Scope
from harvestman.policy.urls import Base, host_of
from harvestman.ports import Content, Jobs, State
from harvestman.store.records import CONVERTED
from harvestman.store.records import sha256 as payload_digest
from harvestman.store.warc import WarcWriter

NOT_MODIFIED = 304
JOBS_AT_ONCE = 4
"""Jobs whose links are remembered; of others a link is looked up in the seen-set once more."""
AcceptUrl = Callable[[str], bool]
Sent: TypeAlias = tuple[Mapping[str, str], bytes]
"""Headers and decoded body."""
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
    print: Print | None = None
    """The fingerprint of its text, if it has any."""
    links: list[Routed] = field(default_factory=list)
    share: float = 0.0
    """What each of its links was given."""
    scripted: str = ""
    """Why it needs a browser."""
    rendered: bool = False
    """It comes from the browser, not from its server."""

    def count(self, tally: Tally) -> int:
        """Add it to the tally; 1 when it is a page."""
        status, page = self.decision.status, self.record.is_page
        if self.rendered:
            tally.rendered += 1
            return 0
        if isinstance(self.answer, Response):
            tally.bytes += len(self.answer.body)
        if self.decision.error and (page or status is not Status.GONE):  # few sites have a sitemap
            tally.error(self.decision.error)
        if not page or status not in (Status.FETCHED, Status.DUPLICATE):
            return 0
        tally.pages += 1
        tally.duplicates += self.decision.status is Status.DUPLICATE
        return 1

    @property
    def news(self) -> list[str]:
        """Its links on its own site that nobody here had met before: others have been given more than by this page."""
        here = self.lease.host
        return [link.found.url for link in self.links if link.found.cash <= self.share and link.host == here]

    @property
    def unchanged(self) -> bool:
        """We have this page as it is: the server says so, or it is the same byte for byte."""
        record, answer = self.record, self.answer
        if record.change is None or record.visit is None or not isinstance(answer, Response):
            return False
        return answer.status == NOT_MODIFIED or bool(self.digest and self.digest == record.visit.digest)

    @property
    def content(self) -> bytes:
        """The digest of what came, or of what a 304 says we still have."""
        if self.digest or not isinstance(self.answer, Response) or self.answer.status != NOT_MODIFIED:
            return self.digest
        return self.record.visit.digest if self.record.visit and self.unchanged else b""

    def visit(self) -> Visit:
        """The durable summary."""
        answer, decision = self.answer, self.decision
        if isinstance(answer, Failure):
            return Visit(answer.finished, 0, decision.reason)
        before = self.record.visit
        if before is not None and self.unchanged:
            flaw = (answer.tls_error or "")[:256]
            # The page is the same, but it may go by another name now: the old one would never be recognised again.
            etag = answer.headers.get("etag", before.etag)[:256]
            date = answer.headers.get("last-modified", before.last_modified)[:64]
            return msgspec.structs.replace(
                before, at=answer.finished, code=answer.status, reason="unchanged", etag=etag, last_modified=date,
                tls_error=flaw,
            )  # fmt: skip
        headers = answer.headers
        return Visit(
            answer.finished, answer.status, decision.reason, self.digest, self.page.simhash if self.page else 0,
            headers.get("etag", "")[:256], headers.get("last-modified", "")[:64], headers.get("content-type", "")[:128],
            len(self.body), self.ref, decision.target or (self.original.url if self.original else ""),
            (answer.tls_error or "")[:256], *self._near(),
        )  # fmt: skip

    def _near(self) -> tuple[str, int]:
        """What it is a copy of, and how near."""
        return (self.page.near_duplicate_of or "", self.page.distance or 0) if self.page else ("", 0)


class Harvest:
    """Turns answers into stored records, pages and links. One per worker."""

    def __init__(
        self, config: Config, state: State, warc: WarcWriter, router: Router, jobs: Jobs, rng: Random,
        fanned: dict[str, int], accept: AcceptUrl | None = None,
    ) -> None:  # fmt: skip
        self._config = config
        self._state = state
        self._warc = warc
        self._router = router
        self._jobs = jobs
        self._rng = rng
        self._accept = accept
        self._met: dict[int, tuple[Scope, Importance]] = {}
        """By job: the links met lately, under a scope: what it refused is news when it has grown."""
        self._linkers: dict[SiteKey, int] = {}
        """By site: the sketch of linking sites that its owner was told of."""
        self._fanned = fanned
        """Counts pages with too many links, by what they were taken for."""
        self.contents: dict[bytes, Content] = {}
        """Content first seen in this group: to be committed with it."""
        self.copying = Copying(state, router)

    def chance(self) -> float:
        return self._rng.random()

    async def gather(self, answers: Sequence[Handed]) -> list[Taken]:
        """The whole way of a group, from answers to pages and links.

        Each step is done for all before the next begins, so that its code and tables are still in the processor's
        cache for the second one: a sixth less CPU than page by page.
        """
        self.contents = {}
        group = [self._judge(*answer) for answer in answers]
        digests = {taken.content for taken in group} - {b""}
        stored = dict(zip(digests, await self._state.contents(list(digests)), strict=True))
        rest = group
        while rest:
            now, rest = _no_two_alike(rest)
            self._take(now, stored)
        read = [(taken.page, taken.print, taken.record) for taken in group if taken.page and taken.print]
        if read:
            await self.copying.compare(read)
        return group

    def _take(self, group: list[Taken], stored: Mapping[bytes, Content | None]) -> None:
        """Answers of which no two have the same content: what one of them is does not hang on the others."""
        for taken in group:
            content = stored.get(taken.content) or self.contents.get(taken.content)
            self._recognise(taken, content)
            self._store(taken, content)
        found = [(taken, links) for taken in group if (links := self._read(taken))]
        for taken in group:
            if taken.page is not None:
                taken.page.language = language(taken.page.text)
        for taken, links in found:
            self._follow(taken, links)

    def _judge(self, lease: Lease, record: UrlRecord, answer: Answer, ref: RecordRef | None) -> Taken:
        config = self._config
        attempts = record.attempts + (not excused(lease, answer))
        chance = self._rng.random()
        rules = config.retry, config.limits
        decision = decide(lease.url, answer, attempts, record.hops, *rules, chance, record.behind)
        if isinstance(answer, Response) and answer.status == NOT_MODIFIED:
            decision = _not_modified(record, decision, attempts, answer.finished, config.retry.attempts)
        taken = Taken(lease, record, answer, decision, ref=ref)
        if decision.status is Status.FETCHED and isinstance(answer, Response) and answer.status != NOT_MODIFIED:
            self._decode(taken, answer)
        return taken

    def _decode(self, taken: Taken, answer: Response) -> None:
        limits = self._config.limits
        coding = answer.headers.get("content-encoding", "")
        body = decode(answer.body, coding, limits.decoded_bytes, limits.decoded_ratio)
        if isinstance(body, BadBody):
            words = f"{FailureKind.BAD_CONTENT}: {body.reason}"
            taken.decision = Decision(Status.REFUSED, words, error=str(FailureKind.BAD_CONTENT))
        else:
            taken.body = body
            taken.digest = sha256(body).digest()
            if "content-encoding" in answer.headers and taken.record.is_page:
                self._look_inside(taken, answer.headers.get("content-type", ""))

    def _look_inside(self, taken: Taken, content_type: str) -> None:
        """What came packed could not be judged by its first bytes on the way in."""
        claimed = media.essence(content_type)
        kind = media.real(taken.body[: media.HEAD], claimed)
        if kind and not readable(kind):
            words = f"{FailureKind.UNWANTED}: {kind}, though it says {claimed or 'nothing'}"
            taken.decision = Decision(Status.REFUSED, words, error=str(FailureKind.UNWANTED))
            taken.digest = b""

    def _recognise(self, taken: Taken, content: Content | None) -> None:
        """Is it an exact duplicate, of something stored before or earlier in the group?"""
        if content is None or not taken.body or taken.record.kind == RESOURCE:
            return
        if content.url != taken.record.url:
            taken.original = content
            taken.decision = Decision(Status.DUPLICATE, "same content as another URL")
        elif taken.unchanged:
            taken.original = content

    def _store(self, taken: Taken, content: Content | None) -> None:
        """Write the raw record: a revisit when the payload is already stored, byte for byte, or not sent at all."""
        answer = taken.answer
        if isinstance(answer, Failure) or taken.ref is not None:
            return
        if answer.status == NOT_MODIFIED:
            if content is not None:
                self._warc.write_unmodified(answer, content.url, content.at, content.payload_digest)
            return
        original = taken.original
        taken.payload = payload_digest(answer.body)
        digest = taken.digest.hex() or taken.payload.removeprefix("sha256:")
        if original is not None and original.payload_digest == taken.payload:
            taken.ref = self._warc.write_revisit(
                answer, refers_to_uri=original.url, refers_to_date=original.at, payload_digest=digest
            )
        else:
            kind = RESOURCE if taken.record.kind == RESOURCE else ""
            taken.ref = self._warc.write(answer, digest=digest, payload_digest=taken.payload, kind=kind)

    def _read(self, taken: Taken) -> list[Link]:
        """What the answer holds or leads to; the links that are to be followed."""
        if taken.record.kind == RESOURCE:
            return []
        if taken.decision.status is Status.FETCHED and taken.digest and not taken.unchanged:
            return self._read_page(taken)
        if taken.decision.target:
            self._redirect(taken)
        elif taken.original is not None and taken.record.job > taken.original.job:
            return self._read_copy(taken, taken.original)
        return []

    def _read_page(self, taken: Taken) -> list[Link]:
        answer = taken.answer
        assert isinstance(answer, Response)
        assert taken.ref is not None
        headers = answer.headers
        kind = headers.get("content-type", "")
        if self._list(taken, kind) and taken.record.kind == LISTING:
            self._know(taken, answer, taken.ref)
            return []
        parsed = self._parse(taken, taken.body, kind, headers.get("x-robots-tag", ""))
        if (parsed.refresh is not None or "refresh" in headers) and self._leads_on(taken, parsed, headers):
            return []
        if self._config.render.share:
            taken.scripted = needs_browser(parsed, taken.body)
        if taken.scripted and not taken.scripted.startswith(PERHAPS):
            # Many addresses have this shell, and what is in it is another thing at each of them.
            parsed.simhash = 0
        else:
            self._know(taken, answer, taken.ref)
        taken.page = page_of(taken, answer, parsed, kind)
        taken.print = Print(parsed.simhash, parsed.weak, parsed.sample) if parsed.simhash else None
        return [] if parsed.nofollow else parsed.links

    async def rendered(
        self, lease: Lease, record: UrlRecord, sent: Sent, html: str, leads_to: str, at: Instant
    ) -> Taken:
        """A page as a browser showed it, stored and read like one that came so.

        `sent`: what its server sent, headers and body; what that asked of us its scripts cannot take back. `leads_to`:
        where they wanted to go.
        """
        body = html.encode("utf-8", "replace")
        answer = Response(lease.url, 200, b"", {"content-type": CONVERTED}, body, "", at, at, at)
        taken = Taken(lease, record, answer, Decision(Status.FETCHED, "ok"), body, sha256(body).digest(), rendered=True)
        taken.ref = self._warc.write_conversion(lease.url, at, body, taken.digest.hex())
        headers, shell = sent
        asked = headers.get("x-robots-tag", "")
        parsed = self._parse(taken, body, CONVERTED, asked)
        before = self._parse(taken, shell, headers.get("content-type", ""), asked)
        parsed.noindex |= before.noindex
        parsed.nofollow |= before.nofollow
        page = taken.page = page_of(taken, answer, parsed, CONVERTED)
        page.language = language(page.text)
        page.rendered = True
        if leads_to and (target := Base(lease.url).resolve(leads_to)) is not None:
            parsed.links.append(Link(target, kind="refresh"))
        if parsed.simhash:
            taken.print = Print(parsed.simhash, parsed.weak, parsed.sample)
            await self.copying.compare([(page, taken.print, record)])
        self._follow(taken, [] if parsed.nofollow else parsed.links)
        return taken

    def _know(self, taken: Taken, answer: Response, ref: RecordRef) -> None:
        """Its content is known from now on: whatever has the same is a duplicate of this."""
        if taken.original is None:
            payload = taken.payload or payload_digest(answer.body)
            content = Content(taken.record.url, answer.started, payload, ref, taken.record.job)
            self.contents.setdefault(taken.digest, content)

    def _leads_on(self, taken: Taken, parsed: Parsed, headers: dict[str, str]) -> bool:
        """A page that leads on by itself, by its head or a meta element: whether it was no more than a redirect.

        One that stays for a while, or leads where we do not go, is a page with one more link.
        """
        record, url, limits = taken.record, taken.lease.url, self._config.limits
        told = refresh.read(headers.get("refresh", ""))
        target = Base(url).resolve(told[1]) if told else None
        if told and target:
            parsed.links.append(Link(target, kind="refresh"))
        hop = (told[0], target) if told and target else parsed.refresh
        if hop is None or parsed.nofollow:
            return False
        decision = refreshed(url, *hop, record.hops, limits, record.behind)
        if decision is None:
            return False
        before, taken.decision = taken.decision, decision
        if decision.target:
            self._redirect(taken)
            if taken.decision is not decision:
                taken.decision = before
                return False
        return True

    # -- links -------------------------------------------------------------------------------------------------

    def _read_copy(self, taken: Taken, original: Content) -> list[Link]:
        """A copy of what an older job read: the links are followed once for this job too."""
        answer = taken.answer
        assert isinstance(answer, Response)
        headers = answer.headers
        parsed = self._parse(taken, taken.body, headers.get("content-type", ""), headers.get("x-robots-tag", ""))
        self.contents[taken.digest] = msgspec.structs.replace(original, job=taken.record.job)
        return [] if parsed.nofollow else parsed.links

    def _parse(self, taken: Taken, body: bytes, content_type: str, asked: str) -> Parsed:
        """A page whose reading fails is a fault of ours, and must not bring the worker down: its raw record is kept."""
        url, agent = taken.lease.url, self._config.agent.lower()
        met = self._lately(taken.record.job).met
        try:
            return parse(body, content_type, url, x_robots_tag=asked, agent=agent, known=met)
        except Exception as error:
            print(f"cannot read {url}: {error!r}", file=sys.stderr, flush=True)
            header = from_header(asked, agent)
            fault = f"fault: {type(error).__name__}"
            return Parsed("other", noindex=header.noindex, nofollow=header.nofollow, cut=fault)

    def _follow(self, taken: Taken, found: list[Link]) -> None:
        """The hot loop: of sixty links a page, those that are new or have become important, wanted and in scope.

        bench/pages_cpu.py.
        """
        record = taken.record
        depth, job = record.depth + 1, record.job
        if depth > self._jobs.get(job).max_depth or not found:
            return
        if len(found) * traps.FARM_LINKS > self._config.traps.fan_out:
            found, worth = self._trimmed(taken, found)
        else:
            worth = share(_to_give(taken), len(found))
        taken.share = worth / PAGE
        lately = self._lately(job)
        lately.fetched(taken.lease.url)
        told, place = lately.told, self._router.place
        admits, accept = self._jobs.scope(job).admits, self._accept
        linkers = self._linkers
        if len(linkers) > self._config.memory.recent_links // 2:
            linkers.clear()
        via, links, home = taken.lease.url, taken.links, f"{taken.lease.origin}/"
        here = place(taken.lease.host)[1]
        linker = budget.linker(here)
        for link in found:
            url = link.url
            if link.rel and "nofollow" in link.rel.split():
                continue
            cash = told(url, worth)
            if not cash and url.startswith(home):
                continue
            host, site, partition = place(host_of(url))
            # That another site links to this one is news, though the link itself was met before. Told once for each
            # place in the sketch of its linkers, which is all that the owner can keep.
            sketch = linkers.get(site, 0)
            if not cash and (site == here or sketch >> linker & 1):
                continue
            if not admits(url, host, site) or (accept is not None and not accept(url)):
                continue
            linkers[site] = budget.linked(sketch, linker)
            kind = link.kind if cash else MENTION
            links.append(Routed(Discovery(url, depth, via, kind, 0, job, cash), host, site, partition))

    def _trimmed(self, taken: Taken, found: list[Link]) -> tuple[list[Link], Grains]:
        """A page with very many links: a part of them is followed, and those of a link farm count for nothing."""
        here = self._router.place(taken.lease.host)[1]
        foreign = sum(self._router.place(host_of(link.url))[1] != here for link in found)
        fan = traps.fan_out(foreign, len(found), self._config.traps)
        if fan is None:
            return found, share(_to_give(taken), len(found))
        self._fanned[fan.name] = self._fanned.get(fan.name, 0) + 1
        return found[: fan.keep], share(_to_give(taken) if fan.important else 0.0, len(found))

    def _lately(self, job: int) -> Importance:
        scope = self._jobs.scope(job)
        known = self._met.pop(job, None)
        if known is None or known[0] != scope:
            known = scope, Importance(self._config.memory.recent_links)
        self._met[job] = known  # the job that is busy now stands last
        if len(self._met) > JOBS_AT_ONCE:
            del self._met[next(iter(self._met))]
        return known[1]

    def _list(self, taken: Taken, content_type: str) -> bool:
        """A sitemap or feed: the pages it lists become links. False when it is neither."""
        record = taken.record
        if record.kind != LISTING and not (self._config.sources.feeds and looks_like(taken.body, content_type)):
            return False
        listing = read(taken.body, taken.lease.url, content_type)
        if listing is None:
            return False
        since = record.change.looked if record.change else Instant(0.0)
        spoken_for = {self._site(url) for url in (taken.lease.url, record.via) if "://" in url}  # via may be "seed"
        told, worth = self._lately(record.job).told, share(_to_give(taken), len(listing.links) or 1)
        for link in listing.links:
            found = Discovery(link.url, record.depth + 1, taken.lease.url, link.kind, 0, record.job, 0.0, link.modified)
            if self._site(link.url) not in spoken_for:
                if link.kind != "feed":
                    continue
                # An item elsewhere is a link like any other, and its date is hearsay.
                found = msgspec.structs.replace(found, kind="a", modified=Instant(0.0))
            # Only what is wanted is told of: it is remembered as met. A date that is news is passed on all the same.
            if self._wants(found) and ((cash := told(link.url, worth)) or found.modified > since):
                taken.links.append(self._router.route(msgspec.structs.replace(found, cash=cash)))
        return True

    def _wants(self, found: Discovery) -> bool:
        """Whether its job does."""
        host, site, _ = self._router.place(host_of(found.url))
        return (
            found.depth <= self._jobs.get(found.job).max_depth
            and self._jobs.scope(found.job).admits(found.url, host, site)
            and (self._accept is None or self._accept(found.url))
        )

    def _site(self, url: str) -> SiteKey:
        return self._router.place(host_of(url))[1]

    def _redirect(self, taken: Taken) -> None:
        target, record = taken.decision.target, taken.record
        assert target is not None
        kind = LISTING if record.kind == LISTING else "redirect"
        found = Discovery(
            target, record.depth, taken.lease.url, kind, record.hops + 1, record.job, record.cash,
            behind=(*record.behind, taken.lease.url),
        )  # fmt: skip
        if self._wants(found):
            taken.links.append(self._router.route(found))
        else:
            taken.decision = Decision(Status.REDIRECTED, f"leads out of scope: {target}")

    def sitemaps(self, origin: Origin, named: Sequence[str], job: int, depth: int) -> list[Routed]:
        """Where the sitemaps of an origin are, as its robots.txt says."""
        if not self._config.sources.sitemaps or depth >= self._jobs.get(job).max_depth:
            return []
        found = (Discovery(url, depth, f"{origin}/robots.txt", LISTING, 0, job) for url in sources(origin, named))
        return [self._router.route(each) for each in found if self._wants(each)]

    def seeds(self, texts: Sequence[str], via: str, job: int) -> list[Routed]:
        """Seeds as discoveries: depth 0, worth one page each."""
        return [self._router.route(Discovery(url, 0, via, "seed", 0, job, 1.0)) for url in texts]


def _not_modified(record: UrlRecord, decision: Decision, attempts: int, now: Instant, most: int) -> Decision:
    """A page that we have stays what it is. One that we have to read (again) must be asked for whole."""
    if record.change is not None:
        return replace(decision, status=record.status)
    if attempts >= most:
        return Decision(Status.DEAD, f"HTTP 304 to a plain request (attempt {attempts} of {most})", error="http_304")
    return Decision(Status.PENDING, "HTTP 304 to a plain request", retry_at=now, error="http_304")


def _no_two_alike(group: list[Taken]) -> tuple[list[Taken], list[Taken]]:
    """The first of every content, and the others: whether they are duplicates is known when the first ones are read."""
    met: set[bytes] = set()
    first: list[Taken] = []
    others: list[Taken] = []
    for taken in group:
        (others if taken.content in met else first).append(taken)
        if taken.content:
            met.add(taken.content)
    return first, others


def _to_give(taken: Taken) -> float:
    """What a page has for its links: its rank, once; given at every visit, importance would grow without end."""
    record = taken.record
    given = record.render is not None and record.render.done > 0 if taken.rendered else record.change is not None
    return 0.0 if given else rank(record.cash, record.kind == "seed")


def page_of(taken: Taken, answer: Response, parsed: Parsed, content_type: str) -> Page:
    """The page as users see it."""
    return Page(
        taken.lease.url, answer.status, Instant(answer.finished), content_type, taken.record.depth, taken.digest.hex(),
        parsed.charset, parsed.title, parsed.description, "", parsed.text, parsed.canonical, parsed.links,
        parsed.noindex, parsed.nofollow, parsed.simhash, data=parsed.data, cut=parsed.cut,
    )  # fmt: skip
