"""The nouns of a crawl: one word each, shared by every stage, with no behaviour that needs I/O.

What the web does to us is a value here (an `Outcome`); what we do wrong is an exception (`errors`).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NewType, TypeAlias

import msgspec

Instant = NewType("Instant", float)
"""A moment: Unix seconds, UTC."""
Seconds = NewType("Seconds", float)
Bytes = NewType("Bytes", int)
HostKey = NewType("HostKey", str)
"""A host name in lower case, without a port: the unit of politeness."""
SiteKey = NewType("SiteKey", str)
"""A registrable domain (or a bare address): the unit of ownership and of budgets."""
Origin = NewType("Origin", str)
"""scheme://host[:port]: the unit of robots.txt."""
Partition = NewType("Partition", int)
UrlId = NewType("UrlId", bytes)
"""Partition (2 bytes, big endian) + xxh3-128 of the URL's key (16 bytes): the name of a URL in State."""

BUCKETS = 8
"""Priority buckets, 0 the most urgent."""
LISTING = "sitemaps"
"""The `Link.kind` of a sitemap file, as against a page that one lists ("sitemap")."""
RESOURCE = "resource"
"""The kind of what a page's scripts ask for: fetched and stored like a page, but none."""
_NO_PAGES = (LISTING, RESOURCE)
ANSWER = "answer"
"""The kind of what is told back to the page that asked for a resource."""
MENTION = "mention"
"""The kind of a link whose URL its owner knows from us: the news is that this site links to that one."""


class Status(enum.IntEnum):
    """Where a URL stands. Few on purpose; the reason is in the record."""

    PENDING = 0
    FETCHED = 1
    DUPLICATE = 2
    """Fetched; its content is byte for byte that of another URL."""
    REDIRECTED = 3
    GONE = 4
    """A 4xx that will not heal."""
    BLOCKED = 5
    """robots.txt forbids it."""
    REFUSED = 6
    """We refuse it: scope, guard, content type, size."""
    DEAD = 7
    """Parked after its last attempt; can be re-driven."""


class Fault(enum.Enum):
    """Who is to blame when no usable answer came."""

    REFUSED = enum.auto()
    """Nobody: we do not want it, or may not touch it. Asking again would give the same."""
    HOST = enum.auto()
    """The host, whichever page it was asked for."""
    UNSURE = enum.auto()
    """The host, or this page of it."""
    OURS = enum.auto()
    """Our side of it: neither the page nor its host."""


class FailureKind(enum.StrEnum):
    """Why no usable answer came."""

    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    TIMEOUT = "timeout"
    PROTOCOL = "protocol"
    TRUNCATED = "truncated"
    TOO_LARGE = "too_large"
    BAD_CONTENT = "bad_content"
    """The body could not be decoded (wrong Content-Encoding, a decompression bomb)."""
    UNWANTED = "unwanted"
    """The content-type gate closed before the body was read."""
    GUARD = "guard"
    """The address is not one a crawler may touch."""
    PROXY = "proxy"
    """The proxy is at fault, not the host behind it."""
    CROWDED = "crowded"
    """Too much was under way here: nobody's fault but ours."""

    @property
    def fault(self) -> Fault:
        return _FAULTS[self]


_FAULTS = {
    FailureKind.DNS: Fault.HOST,
    FailureKind.CONNECT: Fault.HOST,
    FailureKind.TLS: Fault.UNSURE,
    FailureKind.TIMEOUT: Fault.UNSURE,
    FailureKind.PROTOCOL: Fault.UNSURE,
    FailureKind.TRUNCATED: Fault.UNSURE,
    FailureKind.TOO_LARGE: Fault.REFUSED,
    FailureKind.BAD_CONTENT: Fault.REFUSED,
    FailureKind.UNWANTED: Fault.REFUSED,
    FailureKind.GUARD: Fault.REFUSED,
    FailureKind.PROXY: Fault.OURS,
    FailureKind.CROWDED: Fault.OURS,
}


@dataclass(slots=True, frozen=True)
class Route:
    """How the requests to a host leave us (`policy.egress`). All empty: straight, from whichever address."""

    proxy: str = ""
    """scheme://host:port of the proxy that looks the name up and connects; empty for none."""
    user: str = ""
    """Whom the proxy takes us for. Tor gives each user circuits of its own."""
    password_env: str = ""
    """The environment variable with the password; the password itself is in no value of ours."""
    slack: Seconds = Seconds(0.0)
    """How much longer than straight connecting, and the first byte, may take."""
    source: str = ""
    """The address of ours that the connection leaves from."""
    refusal: str = ""
    """Why there is no way to the host."""


DIRECT = Route()


@dataclass(slots=True, frozen=True)
class Request:
    """One GET to one vetted address."""

    url: str
    address: str
    """The IP the connection is pinned to: the proxy's, where the route has one."""
    robots: bool = False
    """A robots.txt request: TLS is verified, any content type is taken, a long body is cut, not refused."""
    listing: bool = False
    """A sitemap or a resource: any content type is taken."""
    etag: str = ""
    last_modified: str = ""
    route: Route = DIRECT


@dataclass(slots=True, frozen=True)
class Response:
    """What came over the wire, before any judgement."""

    url: str
    status: int
    head: bytes
    """Status line and header lines as received, ending in a blank line."""
    headers: dict[str, str]
    """Lower-case names; repeated fields joined by ', '."""
    body: bytes
    """As transferred: chunking removed, content encoding kept."""
    address: str
    started: Instant
    first_byte: Instant
    finished: Instant
    request_head: bytes = b""
    """The request as sent, for the WARC request record."""
    tls_error: str | None = None
    """Why the certificate is not valid, when the page was fetched all the same."""


@dataclass(slots=True, frozen=True)
class Failure:
    """No usable answer."""

    url: str
    kind: FailureKind
    detail: str
    address: str
    started: Instant
    finished: Instant


Answer: TypeAlias = Response | Failure


class Link(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A link of a page, resolved and normalised."""

    url: str
    """The form we request."""
    anchor: str = ""
    rel: str = ""
    kind: str = "a"
    """Where it was found: a, area, frame, canonical, alternate (the page in another language), pagination (a <link> to
    the next page or the one before, as its rel says), refresh, redirect, seed, sitemap, feed."""
    modified: Instant = Instant(0.0)
    """When a sitemap or feed says that it changed last; 0 when nothing does."""
    place: str = ""
    """The innermost landmark around an <a>: nav, header, footer, aside or main; '' for the body. Where a URL is linked
    to from several places, main and body win."""
    language: str = ""
    """What an alternate says of its language (hreflang), in lower case."""


class Data(msgspec.Struct, omit_defaults=True):
    """What a page says of itself for machines, each part of it bounded (`pages.metadata`)."""

    author: str = ""
    """Names, joined by ', '."""
    published: str = ""
    """ISO 8601: in UTC where the page says its zone, a mere date where it says no time; '' for nothing or garbage."""
    modified: str = ""
    meta: dict[str, str] = msgspec.field(default_factory=dict)
    """By name, in lower case, the first of each: OpenGraph, Twitter, article and Dublin Core properties, author,
    generator, keywords, dates."""
    json_ld: list[str] = msgspec.field(default_factory=list)
    """Blocks of JSON-LD: each is sound JSON."""
    microdata: list[str] = msgspec.field(default_factory=list)
    """The items at the top, as JSON: '@type', '@id', and by name of a property the list of its values."""
    asks: list[str] = msgspec.field(default_factory=list)
    """What else it asks of robots: noarchive, nosnippet, noimageindex, notranslate, noai, noimageai."""
    broken: int = 0
    """Blocks of JSON-LD that are no JSON."""


class Parsed(msgspec.Struct):
    """What one pass over a body yields. Pure: the same bytes give the same value, unless `cut` names the time."""

    kind: str
    """html, text or other."""
    charset: str = ""
    title: str = ""
    description: str = ""
    text: str = ""
    canonical: str | None = None
    links: list[Link] = msgspec.field(default_factory=list)
    noindex: bool = False
    nofollow: bool = False
    simhash: int = 0
    """64 bit, over 3-word shingles of the text, weighted by the length of lines; 0 when there is no text."""
    weak: int = 0
    """The bits of the SimHash that the text hardly decided."""
    sample: bytes = b""
    """A byte of one shingle in 32 bins: texts have as many in common as they have shingles in common."""
    refresh: tuple[Seconds, str] | None = None
    """When a meta element leads on, and where to."""
    data: Data = msgspec.field(default_factory=Data)
    cut: str = ""
    """The limits at which reading it ended early, joined by ', ': size, tags, time, depth, links, meta, data."""


class Page(msgspec.Struct):
    """A fetched page as users see it."""

    url: str
    status: int
    fetched_at: Instant
    content_type: str
    depth: int
    digest: str
    """SHA-256 of the decoded body, hex."""
    charset: str = ""
    title: str = ""
    description: str = ""
    language: str = ""
    text: str = ""
    canonical: str | None = None
    links: list[Link] = msgspec.field(default_factory=list)
    noindex: bool = False
    nofollow: bool = False
    simhash: int = 0
    duplicate_of: str | None = None
    near_duplicate_of: str | None = None
    """The page that says nearly the same and stands for it (`policy.copies`) ..."""
    distance: int | None = None
    """... and how many of the 44 firm bits of its SimHash differ from that one's."""
    data: Data = msgspec.field(default_factory=Data)
    cut: str = ""
    """As `Parsed.cut`."""
    rendered: bool = False
    """It was read as its scripts had built it in a browser."""


class RecordRef(msgspec.Struct, array_like=True, frozen=True):
    """Where a raw record lies: a WARC file, an offset, a length."""

    file: str
    offset: int
    length: int


class Visit(msgspec.Struct, array_like=True):
    """The last time we asked for a URL, and what came of it."""

    at: Instant
    code: int
    """HTTP status, 0 when there was no answer."""
    reason: str = ""
    """A word a person can read: ok, 'not found', timeout, 'robots: /private/'."""
    digest: bytes = b""
    simhash: int = 0
    etag: str = ""
    last_modified: str = ""
    content_type: str = ""
    size: int = 0
    ref: RecordRef | None = None
    target: str = ""
    """Where it redirected to, or which URL it duplicates."""
    tls_error: str = ""
    """Why its certificate was not valid."""
    near: str = ""
    """The page that says nearly the same and stands for it ..."""
    distance: int = 0
    """... and how far it is, as `Page.distance`."""


class Change(msgspec.Struct, array_like=True, frozen=True):
    """What we believe of a page's changes: a Gamma distribution over its rate (Poisson), and what it rests on."""

    shape: float
    exposure: Seconds
    """The mean rate is shape / exposure, in changes a second."""
    looked: Instant
    """When its content was seen last."""
    visits: int = 0
    changes: int = 0
    streak: int = 0
    """The latest visits that agree: above 0 they found changes, below 0 they found none."""


class Attempt(msgspec.Struct, array_like=True, frozen=True):
    """One that failed."""

    at: Instant
    reason: str


class Learned(msgspec.Struct, array_like=True, frozen=True):
    """What a site's pages have taught in the browser."""

    rendered: int = 0
    gained: int = 0
    """Those that brought notably more than the raw page had."""


class Render(msgspec.Struct, array_like=True):
    """How far the rendering of a page is (`rendering`)."""

    since: Instant
    """When it was last asked for."""
    due: Instant = Instant(0.0)
    """When it is looked at again; 0 when there is nothing to do."""
    rounds: int = 0
    """Times in the browser since it was asked for."""
    wants: list[str] = msgspec.field(default_factory=list)
    """The resources it waits for ..."""
    asked: Instant = Instant(0.0)
    """... and when they were first asked for."""
    text: int = 0
    links: int = 0
    """How many characters and links it has without a browser."""
    done: Instant = Instant(0.0)
    """When it was rendered last; 0 for never."""
    outcome: str = ""
    """What came of that: ok, or why not."""


class UrlRecord(msgspec.Struct, array_like=True):
    """All we durably know of one URL. Queues and schedules can be rebuilt from these alone."""

    url: str
    status: Status
    depth: int
    bucket: int
    seq: int
    """Its place in its host's queue."""
    found: Instant
    via: str = ""
    """The page, redirect or seed list it was found on."""
    hops: int = 0
    """Redirects behind it, at most 5."""
    attempts: int = 0
    due: Instant = Instant(0.0)
    """Not before this moment: a retry when it is pending, the next visit when it was fetched; 0 for at any time."""
    visit: Visit | None = None
    kind: str = "a"
    """Where it was found, as `Link.kind`."""
    job: int = 1
    """Whose depth limit, scope and recrawl time apply: the newest job that met it."""
    cash: float = 0.0
    """The importance its in-links gave it, in pages: 1 is what an average page has."""
    change: Change | None = None
    modified: Instant = Instant(0.0)
    """When a sitemap says it changed last: put to the test at the next visit."""
    trail: list[Attempt] = msgspec.field(default_factory=list)
    """The attempts that failed since the last that did not."""
    behind: tuple[str, ...] = ()
    """The redirects that led to it, the first one first: by them a loop is known."""
    render: Render | None = None
    """For a page that needs a browser."""

    @property
    def is_page(self) -> bool:
        """For readers: neither a list of URLs nor a part of another page."""
        return self.kind not in _NO_PAGES


class HostRecord(msgspec.Struct, array_like=True):
    """The durable politeness state of one host."""

    host: HostKey
    site: SiteKey
    next_allowed: Instant = Instant(0.0)
    delay: Seconds = Seconds(0.0)
    """The adaptive delay in force; 0 before the first answer."""
    failures: int = 0
    """Consecutive ones."""
    sick_until: Instant = Instant(0.0)
    fetched: int = 0
    cursors: list[int] = msgspec.field(default_factory=list)
    """Per bucket, the first sequence number not yet consumed: reads start behind the tombstones."""


class Trap(msgspec.Struct, array_like=True):
    """A shape of URLs that is no longer followed on a site."""

    name: str
    """calendar, session id, pagination, repetition, parameters, same content ..."""
    at: Instant
    example: str
    refused: int = 0
    pardoned: bool = False
    """A person said that it is none: it is not stopped again."""


class Validators(msgspec.Struct, array_like=True, frozen=True):
    """What the ETags and dates of a site have proven to be worth."""

    unchecked: int = 0
    """Answers "not modified" since the last look without validators."""
    proven: int = 0
    """Looks that found them true."""
    doubts: int = 0
    """Looks since a conditional request last brought news that found a change."""
    lied: Instant = Instant(0.0)
    """When they were found to say "not modified" of a page that was; 0 when they were not."""
    barren: int = 0
    """The last conditional requests with an ETag that brought what we had, in a row."""


class Reach(msgspec.Struct, array_like=True, frozen=True):
    """How far a site is from a region."""

    seconds: Seconds
    """From a request to the first byte of its answer: an estimate of the median."""
    answers: int
    """Those it rests on."""


class SiteRecord(msgspec.Struct, array_like=True, weakref=True):
    """What we durably know of one site: what it has earned, what it has used, how it behaves."""

    site: SiteKey
    since: Instant
    vouched: bool = False
    """A seed of it was given: its budget needs no earning."""
    fetched: int = 0
    """Pages over the whole crawl, each once."""
    day: int = 0
    """The day (Unix days, UTC) that `today` counts."""
    today: int = 0
    novel: int = 0
    """Pages unlike the ones before them."""
    dull: int = 0
    """Pages near-identical to one of the ones before them."""
    recent: list[int] = msgspec.field(default_factory=list)
    """SimHashes of the last pages, oldest first."""
    shapes: dict[str, int] = msgspec.field(default_factory=dict)
    """Shapes of URLs under suspicion: how many of each came in a row without novelty."""
    traps: dict[str, Trap] = msgspec.field(default_factory=dict)
    """By shape."""
    cash: float = 0.0
    """The importance that links from other sites brought."""
    linkers: int = 0
    """The other sites that link here, as a 64-bit linear-counting sketch."""
    flagged: str = ""
    """Why a person should look at it; empty when nothing is wrong."""
    dated: int = 0
    """Sitemap dates that were checked against the page ..."""
    truthful: int = 0
    """... and were right."""
    looks: list[int] = msgspec.field(default_factory=list)
    """SimHashes of the last pages whose URLs looked like a trap's, oldest first."""
    validators: Validators | None = None
    """None while no further visit taught anything of them."""
    address: str = ""
    """Of the server that answered last; kept where there are regions."""
    reach: dict[str, Reach] = msgspec.field(default_factory=dict)
    """From each region that has asked it, by name."""
    render: Learned = Learned()


class RobotsRecord(msgspec.Struct, array_like=True):
    """The durable copy of one origin's robots.txt."""

    origin: Origin
    body: bytes
    """The last good copy; b'' for 'no rules'."""
    good_at: Instant
    """When the copy was fetched; 0 when there is none yet."""
    tried_at: Instant
    expires: Instant
    """When to ask again."""
    unreachable: bool = False
    """The last try failed in a way that forbids everything (5xx, 429, DNS, network)."""
    reason: str = ""
    unreachable_since: Instant = Instant(0.0)
    job: int = 1
    """The newest job that was told of its sitemaps."""


class Discovery(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A link on its way to the owner of its site."""

    url: str
    depth: int
    via: str
    kind: str = "a"
    hops: int = 0
    job: int = 1
    cash: float = 0.0
    """The importance that the links met so far give it, in pages."""
    modified: Instant = Instant(0.0)
    """When a sitemap or feed says that it changed last."""
    behind: tuple[str, ...] = ()
    """The redirects that led to it, the first one first."""
    ref: RecordRef | None = None
    """In an answer: where the resource lies; None when it cannot be had."""


@dataclass(slots=True)
class Lease:
    """Permission to make one request now. While it is out, nothing else is asked of the host or of its address."""

    host: HostKey
    address: str
    url: str
    id: UrlId
    """b'' for a robots.txt lease."""
    record: UrlRecord | None
    origin: Origin
    """Whose robots.txt this is about."""
    robots: bool = False
    hops: int = 0
    taken: Instant = Instant(0.0)
    site: SiteKey = SiteKey("")
    job: int = 1
    depth: int = 0
    """Of the URL whose robots.txt is asked for: its sitemaps belong to the same job."""
    failures: int = 0
    """How often the host has failed in a row ..."""
    own: bool = False
    """... and whether it was this URL that failed the last time."""
    etag: str = ""
    last_modified: str = ""
    """What a page that we have is asked for with, so that it is sent only if it changed."""
    route: Route = DIRECT


class Job(msgspec.Struct, frozen=True):
    """Seeds with what they ask for. Several jobs share one crawl; a page met by two belongs to the newer."""

    id: int
    """1, 2, 3 ... in the order they came."""
    name: str
    created: Instant
    priority: str = "normal"
    """critical, high, normal or low."""
    max_depth: int = 20
    scope: str = "site"
    """site, host, path, all or patterns."""
    patterns: tuple[str, ...] = ()
    ttl: Seconds = Seconds(0.0)
    """Visit its pages again after this time; 0 leaves it to what is learned of each page."""


class JobTally(msgspec.Struct):
    """How far a job is."""

    discovered: int = 0
    settled: int = 0
    pages: int = 0
    unrendered: int = 0
    """Pages that wait for a browser."""

    @property
    def over(self) -> bool:
        """All that was discovered is settled, and nothing waits to be shown."""
        return self.discovered == self.settled and not self.unrendered

    def add(self, other: JobTally) -> None:
        self.discovered += other.discovered
        self.settled += other.settled
        self.pages += other.pages
        self.unrendered += other.unrendered


class Tally(msgspec.Struct):
    """Counters of one worker over the life of the crawl; summed by whoever shows them."""

    pages: int = 0
    """Fetched with a 2xx, duplicates included."""
    duplicates: int = 0
    bytes: int = 0
    """Bodies, as transferred."""
    requests: int = 0
    dns_hits: int = 0
    """Leases whose address was at hand ..."""
    dns_misses: int = 0
    """... and those that waited for a name server."""
    robots: int = 0
    blocked: int = 0
    """URLs that robots.txt forbids."""
    discovered: int = 0
    """New URLs taken into the frontier."""
    settled: int = 0
    """URLs that need no further request, those that robots.txt forbids not counted."""
    received: int = 0
    """Parcels of links from other workers."""
    rendered: int = 0
    """Pages read as a browser shows them, each time counted ..."""
    unrendered: int = 0
    """... and those that wait for it."""
    errors: dict[str, int] = msgspec.field(default_factory=dict)
    traps: dict[str, int] = msgspec.field(default_factory=dict)
    """URLs refused as part of a trap, by its name; for 'fan-out' and 'link farm', pages with too many links."""
    alerts: list[str] = msgspec.field(default_factory=list)
    """What a person should look at: the last few."""
    jobs: dict[int, JobTally] = msgspec.field(default_factory=dict)

    def add(self, other: Tally) -> None:
        for name in (
            "pages",
            "duplicates",
            "bytes",
            "requests",
            "dns_hits",
            "dns_misses",
            "robots",
            "blocked",
            "discovered",
            "settled",
            "received",
            "rendered",
            "unrendered",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for word, count in other.errors.items():
            self.errors[word] = self.errors.get(word, 0) + count
        for word, count in other.traps.items():
            self.traps[word] = self.traps.get(word, 0) + count
        self.alerts += other.alerts
        for job, tally in other.jobs.items():
            self.jobs.setdefault(job, JobTally()).add(tally)

    def error(self, word: str) -> None:
        self.errors[word] = self.errors.get(word, 0) + 1
