"""What a user can set: one tree of frozen structs, every key documented in docs/configuration.md.

Unknown keys are refused with a suggestion. There is no key that ignores robots.txt.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from ipaddress import ip_address, ip_network
from itertools import chain
from math import inf
from pathlib import Path
from typing import TypeAlias

import msgspec

from harvestman.errors import ConfigError
from harvestman.model import Seconds


class Politeness(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How often a host may be asked. Times in seconds."""

    delay: Seconds = Seconds(1.0)
    """Between the end of one answer of a host and the next request to it."""
    ip_delay: Seconds = Seconds(0.1)
    """The same for an address that several hosts share."""
    site_rate: float = 10.0
    """Requests per second to one site, over all its hosts."""
    slow: Seconds = Seconds(2.0)
    """An answer slower than this stretches the delay."""
    max_delay: Seconds = Seconds(60.0)
    """The longest adaptive delay; what robots.txt or Retry-After ask may be longer and is obeyed."""
    onion_delay: Seconds = Seconds(5.0)
    """As `delay`, for .onion hosts: volunteers carry every request over six relays."""


class Retry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happens after a failure."""

    attempts: int = 5
    """After this many failed attempts a URL is parked in the dead-letter list."""
    first: Seconds = Seconds(1.0)
    longest: Seconds = Seconds(3600.0)
    sick_after: int = 5
    """Consecutive failures that put a host on the sick list."""
    sick_for: Seconds = Seconds(6 * 3600.0)


class Priority(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What makes a URL urgent: the weights of the parts of its score, each part in 0..1."""

    authority: float = 0.3
    """What other sites, and other pages, think of it."""
    freshness: float = 0.3
    """How much our copy needs a new look; 1 for a page never seen."""
    source: float = 0.2
    """Where it was found: a seed, a sitemap, a link."""
    depth: float = 0.2
    """How near to a seed."""
    sitemap_boost: float = 0.05
    news_boost: float = 0.1
    """For pages that look like news."""


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much of the crawl one site may take."""

    pages_per_day: int = 500_000
    """The most any site gets."""
    unearned_per_day: int = 10_000
    """What a site gets before other sites' links and its own novelty have earned it more."""
    pages: int = 0
    """The most a site gets over the whole crawl; 0 for no limit."""
    share: float = 1.0
    """The largest part of a crawl's pages that one site may have; 1 for no limit."""
    farm: float = 0.95
    """A site with this share of near-duplicates is a content farm ..."""
    farm_cut: float = 0.1
    """... and gets this part of its budget."""


class Traps(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a spider trap looks like."""

    url_length: int = 2_048
    shape_urls: int = 100
    """URLs of one shape without anything new that stop the shape."""
    novelty_pages: int = 50
    """When this many pages of a site in a row bring nothing new, the site becomes least urgent."""
    site_depth: int = 100
    """Segments in a path, at most."""
    fan_out: int = 5_000
    """Links of one page that are followed, at most."""


class Recrawl(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a page is visited again. Times in seconds."""

    keep: bool = False
    """Go on for ever, visiting pages as they fall due; else a run ends when all that was due at its start is done."""
    policy: str = "optimal"
    """optimal, or the double/halve rule: double."""
    per_day: float = 0.0
    """Visits a day to pages we have; 0 for as many as they ask for."""
    shortest: Seconds = Seconds(900.0)
    longest: Seconds = Seconds(30 * 86_400.0)
    news: Seconds = Seconds(3_600.0)
    """How often a page of each kind is taken to change before we know better."""
    blog: Seconds = Seconds(86_400.0)
    docs: Seconds = Seconds(7 * 86_400.0)


class Sources(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where links come from besides pages."""

    sitemaps: bool = True
    """Those that robots.txt names; where it names none, /sitemap.xml."""
    feeds: bool = True
    """RSS and Atom."""


class Render(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Pages that are built by scripts, read as a browser shows them. Times in seconds."""

    share: float = 0.1
    """Of the crawl's time, for the browser of each worker: its CPU time may be this part of what passes while there is
    other work. 0 leaves such pages as they come."""
    seconds: Seconds = Seconds(10.0)
    """Longest time for a page in the browser."""
    recycle: int = 100
    """Pages after which the browser is started anew."""
    browser: str = ""
    """The program: Chromium or one of its kin; empty for the one that is found."""


class Fetch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is taken from a server."""

    invalid_certificates: str = "record"
    """A page whose certificate is not valid: record (it is fetched, and says so) or refuse. robots.txt: refused."""


class Proxy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A way to some hosts. The first table that matches a host decides."""

    match: tuple[str, ...]
    """Hosts: a name is that host, *.name those below it, * all."""
    url: str
    """socks5h://, http:// or https:// and HOST:PORT; direct for no proxy."""
    user: str = ""
    password_env: str = ""
    """The environment variable that holds the password."""
    at_once: int = 100
    """Requests through it at once, per worker."""
    slack: Seconds = Seconds(20.0)
    """How much longer than limits.connect and limits.first_byte allow."""


class Egress(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The addresses of this machine that requests leave from."""

    addresses: tuple[str, ...] = ()
    """Sites are spread over them, each always from the same; empty for the system's choice."""
    per_address: int = 1_000
    """Requests at once from each of them, per worker."""


class Region(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Workers in one part of the world, and the sites that are theirs. The first region has all that no rule names."""

    name: str
    workers: int = 1
    tlds: tuple[str, ...] = ()
    """Endings of sites: a top-level domain, a public suffix or a site. The longest that fits decides."""
    networks: tuple[str, ...] = ()
    """Addresses of servers (CIDR), for sites that no ending names. The smallest that fits decides."""
    slow: Seconds = Seconds(0.5)
    """A site that no rule names and whose answers begin later than this is tried from another region; 0 for never."""
    content: str = ""
    """The directory below `data` for raw records and pages of its sites; empty for the usual places."""


STORED = ("response", "revisit", "request", "page")
"""What there is of a fetch: raw records by WARC-Type, and the parsed page."""
MEDIA = ("html", "text", "pdf", "xml", "json", "image", "audio", "video", "font", "other")
"""What a body is (`media.kind_of`)."""


class Retention(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is deleted when a run has ended by itself."""

    older_than: Seconds
    """What was fetched longer ago."""
    kinds: tuple[str, ...] = ()
    """Only these: of STORED, of MEDIA; where none of a sort is named, all of it. Empty for everything."""


class Watch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What raises an alert: a crawl that leans too hard on one target, a site of weight that moves."""

    share: float = 0.2
    """Of a worker's requests, to one site or address, that raises an alert ..."""
    targets: int = 50
    """... when at least this many are being asked."""
    linkers: int = 20
    """When all addresses of a host change at once, and at least this many other sites link to its site."""


class Caches(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long what was told is believed. Times in seconds."""

    robots: Seconds = Seconds(86_400.0)
    """A robots.txt is asked for again after this time; a day at most (RFC 9309)."""
    dns: Seconds = Seconds(300.0)
    """An address is used at least so long, whatever its TTL."""
    dns_stale: Seconds = Seconds(86_400.0)
    """How long past its time an address may serve while the resolver fails ..."""
    dns_last: Seconds = Seconds(7 * 86_400.0)
    """... and when it failed before as well."""


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a crawl goes."""

    max_pages: int = 0
    """Pages in this run; 0 for no limit."""
    max_depth: int = 20
    """Links from a seed."""
    max_hops: int = 5
    """Redirects in a row."""
    patience: Seconds = Seconds(300.0)
    """A crawl ends when nothing can be asked for within this time; what waits longer stays queued for the next run."""
    body_bytes: int = 10_000_000
    """Largest body taken over the wire."""
    decoded_bytes: int = 20_000_000
    """Largest body after decompression ..."""
    decoded_ratio: int = 250
    """... and how many times its size on the wire, above a megabyte. Dense tables reach 100; bombs start at 1,000."""
    error_bytes: int = 1_000_000
    """Kept of the body of an answer that is not 2xx."""
    head_bytes: int = 256 * 1024
    """All header lines of an answer, interim answers and trailers included."""
    pieces: int = 100_000
    """Chunks (or reads) a body may come in."""
    connect: Seconds = Seconds(5.0)
    """Longest time to connect, the TLS handshake included."""
    first_byte: Seconds = Seconds(10.0)
    """Longest wait for the first line of an answer, connecting included."""
    total_html: Seconds = Seconds(5.0)
    """Longest transfer of a page, from its first line on."""
    total_large: Seconds = Seconds(30.0)
    """Longest body transfer of a large document."""
    drain: Seconds = Seconds(30.0)
    """Ctrl-C waits this long for what is in flight; what is not done by then stays queued."""


class Memory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What bounds a worker's RAM: configuration, never the size of the crawl."""

    resident_hosts: int = 10_000
    """Hosts with a place in RAM; the others wait on disk."""
    window: int = 32_000
    """Queue entries in RAM, over all hosts."""
    recent_links: int = 100_000
    """Links remembered as just seen."""
    seen_capacity: int = 2_000_000
    """URLs the first seen-filter is sized for; it grows by generations."""
    seen_errors: float = 1e-4
    """The share of new links for which the filter may ask State in vain."""
    cache_bytes: int = 32 << 20
    """RocksDB's block cache."""
    write_buffer: int = 32 << 20
    """RocksDB's memtables, in all."""
    fingerprints: int = 500_000
    """Pages that near-duplicates are recognised of, the latest ones; each takes about 39 bytes."""
    rules: int = 48 << 20
    """Bytes that the rules of robots.txt take in RAM; those used least are read again from State when needed."""
    bodies: int = 96 << 20
    """Bodies on their way, in all; beyond it those above 256 KB are dropped and asked for again."""
    tls_connections: int = 256
    """TLS connections kept open, those in use counted; each takes about 110 KB."""


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything a crawl is told."""

    seeds: tuple[str, ...] = ()
    scope: str = "site"
    """site, host, path, all, or @FILE of patterns."""
    contact: str = ""
    """A URL or e-mail address that answers for this crawl; required outside loopback."""
    agent: str = "Harvestman"
    data: str = "crawl-data"
    workers: int = 1
    partitions: int = 64
    """Fixed when a crawl begins."""
    in_flight: int = 1_000
    """Requests at once, per worker."""
    dns: str | tuple[str, ...] = ""
    """A name server, or several in the order they are asked: HOST:PORT or https://HOST/PATH; empty for the system's."""
    allow: tuple[str, ...] = ()
    """Private or loopback networks (CIDR) this crawl may touch."""
    ports: tuple[int, ...] = ()
    """Ports it may ask besides the web's own (`policy.guard.WEB_PORTS`)."""
    politeness: Politeness = Politeness()
    retry: Retry = Retry()
    priority: Priority = Priority()
    budget: Budget = Budget()
    traps: Traps = Traps()
    recrawl: Recrawl = Recrawl()
    sources: Sources = Sources()
    fetch: Fetch = Fetch()
    render: Render = Render()
    proxies: tuple[Proxy, ...] = ()
    egress: Egress = Egress()
    regions: tuple[Region, ...] = ()
    retention: tuple[Retention, ...] = ()
    watch: Watch = Watch()
    caches: Caches = Caches()
    limits: Limits = Limits()
    memory: Memory = Memory()

    @property
    def name_servers(self) -> tuple[str, ...]:
        """Those of `dns`."""
        return ((self.dns,) if self.dns else ()) if isinstance(self.dns, str) else self.dns

    def user_agent(self, version: str) -> str:
        return f"{self.agent}/{version} (+{self.contact})" if self.contact else f"{self.agent}/{version}"


_TOKEN = re.compile(r"[A-Za-z_-]+")
"""A product token of RFC 9309."""


def load(path: Path) -> Config:
    """Read a TOML file. Raises ConfigError naming the key, the file and the likely cure."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    _refuse_unknown(raw, Config, path, "")
    try:
        return msgspec.convert(raw, Config)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {error}") from None


def _refuse_unknown(raw: dict[str, object], kind: type[msgspec.Struct], path: Path, prefix: str) -> None:
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    for key, value in raw.items():
        if key not in fields:
            near = difflib.get_close_matches(key, list(fields), 1)
            hint = f"did you mean {prefix}{near[0]}?" if near else f"known keys: {', '.join(sorted(fields))}"
            raise ConfigError(f"{path}: unknown setting {prefix}{key}; {hint}")
        inner = fields[key]
        if isinstance(value, dict) and isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            _refuse_unknown(value, inner, path, f"{prefix}{key}.")
        elif (table_of := _TABLES.get(key)) is not None and isinstance(value, list):
            for table in value:
                if isinstance(table, dict):
                    _refuse_unknown(table, table_of, path, f"{prefix}{key}.")


_TABLES: dict[str, type[msgspec.Struct]] = {"proxies": Proxy, "regions": Region, "retention": Retention}
"""Settings that are lists of tables."""
_REGION = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_DIRECTORY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_TAKEN = frozenset(
    {
        *("blocked.jsonl", "browser", "corpus", "corpus.part", "crawl.json", "erasing", "export", "graph"),
        *("holds.jsonl", "jobs", "lock", "logs", "pages", "query", "regions", "removed.jsonl", "removing.jsonl"),
        *("seen", "settings.json", "state", "takedowns.jsonl", "warc"),
    }
)
"""What a crawl keeps below its data directory."""
_PROXY = re.compile(r"(?:socks5h|https?)://(?:[a-z0-9.-]+|\[[0-9a-f:.]+\]):[0-9]{1,5}")
_PATTERN = re.compile(r"\*|(?:\*\.)?[^*/:\s]+|\[?[0-9A-Fa-f:.]+\]?")


def _faults(proxy: Proxy) -> Iterator[str]:
    if proxy.url != "direct" and not _PROXY.fullmatch(proxy.url):
        shown = "the URL" if "@" in proxy.url else repr(proxy.url)
        yield f"{shown} is not socks5h://HOST:PORT, http://HOST:PORT, https://HOST:PORT or direct" + (
            "; name who you are in user and password_env" if "@" in proxy.url else ""
        )
    if not proxy.match:
        yield f"{proxy.url} matches no host"
    for pattern in proxy.match:
        if not (pattern.isascii() and _PATTERN.fullmatch(pattern)) or pattern.endswith("."):
            yield f"match {pattern!r}: write a host, *.name for those below it, or *; names in their xn-- form"
    if proxy.password_env and not proxy.user:
        yield f"{proxy.url} has a password_env and no user"
    if proxy.at_once < 1:
        yield "at_once must be at least 1"
    if not 0 <= proxy.slack < inf:
        yield "slack must not be negative, and finite"


def _regional_faults(config: Config) -> Iterator[str]:
    regions = config.regions
    for region in regions:
        yield from (f"{region.name}: {words}" for words in _faults_of_region(region, config.partitions))
    said = {
        "": Counter(region.name for region in regions),
        "tlds ": Counter(text.lower() for region in regions for text in region.tlds),
        "networks ": Counter(text.lower() for region in regions for text in region.networks),
    }
    yield from (f"{kind}{text!r} is named twice" for kind, count in said.items() for text in count if count[text] > 1)
    if len(regions) > 256:
        yield "256 are the most"
    if len(regions) * config.partitions > 65_535:
        yield f"each has {config.partitions} partitions: 65535 in all are the most"
    total = sum(region.workers for region in regions)
    if regions and config.workers not in (1, total):
        yield f"they have {total} workers, not {config.workers}: leave workers (--workers) away, a region has its own"


def _faults_of_region(region: Region, partitions: int) -> Iterator[str]:
    if not _REGION.fullmatch(region.name):
        yield "a name is of a-z, 0-9 and '-'"
    if not 1 <= region.workers <= partitions:
        yield f"workers must be at least 1, and no more than the {partitions} partitions"
    for text in region.tlds:
        if not text or not text.isascii() or text[0] == "." or text[-1] == "." or set(text) & set("*/: "):
            yield f"tlds {text!r}: write de, co.uk or example.org; names in their xn-- form"
    for text in region.networks:
        try:
            ip_network(text)
        except ValueError as error:
            yield f"networks {text!r}: {error}"
    if not 0 <= region.slow < inf:
        yield "slow must not be negative, and finite"
    if region.content and (not _DIRECTORY.fullmatch(region.content) or region.content in _TAKEN):
        yield f"content {region.content!r} is no name for a directory of its own below the data directory"


def _no_addresses(egress: Egress) -> Iterator[str]:
    for text in egress.addresses:
        try:
            ip_address(text)
        except ValueError:
            yield text


_Checks: TypeAlias = Iterable[tuple[bool, str]]
"""Whether something is wrong, and the words for it."""


def _process(config: Config) -> _Checks:
    yield (
        not _TOKEN.fullmatch(config.agent),
        f"agent {config.agent!r}: a robots.txt can only name letters, '-' and '_'",
    )
    yield config.workers < 1, "workers must be at least 1"
    yield (
        config.partitions < config.workers and not config.regions,
        "partitions must be at least as many as workers",
    )
    yield config.partitions > 65_535, "partitions must be at most 65535"
    yield config.in_flight < 1, "in_flight must be at least 1"
    yield not all(0 < port < 65_536 for port in config.ports), "ports (--allow-port) are numbers from 1 to 65535"


def _pace(politeness: Politeness, retry: Retry) -> _Checks:
    for name in ("delay", "ip_delay", "onion_delay"):
        yield not 0 <= getattr(politeness, name) < inf, f"politeness.{name} must not be negative, and finite"
    yield not politeness.site_rate > 0, "politeness.site_rate must be above 0"
    yield politeness.site_rate > 10, "politeness.site_rate: no site may be asked more than 10 times a second"
    yield retry.attempts < 1, "retry.attempts must be at least 1"
    yield retry.sick_after < 1, "retry.sick_after must be at least 1"
    yield not retry.first > 0, "retry.first must be above 0"
    yield not retry.longest >= retry.first, "retry.longest must not be shorter than retry.first"


def _sizes(limits: Limits) -> _Checks:
    """A limit of nothing would refuse everything, and one without end is none."""
    yield limits.max_pages < 0, "max_pages must not be negative (0 means no limit)"
    yield limits.max_depth < 0, "max_depth must not be negative"
    for name in ("max_hops", "drain"):
        yield getattr(limits, name) < 0, f"limits.{name} must not be negative"
    for name in ("body_bytes", "decoded_bytes", "decoded_ratio", "error_bytes", "head_bytes", "pieces"):
        yield getattr(limits, name) < 1, f"limits.{name} must be at least 1"
    for name in ("connect", "first_byte", "total_html", "total_large"):
        yield not 0 < getattr(limits, name) <= 86_400, f"limits.{name} must be above 0 and at most a day (86400)"


def _room(memory: Memory, caches: Caches) -> _Checks:
    for name in ("resident_hosts", "window", "seen_capacity", "tls_connections", "rules"):
        yield getattr(memory, name) < 1, f"memory.{name} must be at least 1"
    yield not 1 <= memory.fingerprints <= 10_000_000, "memory.fingerprints must be 1 to 10,000,000"
    yield not 0 < memory.seen_errors < 1, "memory.seen_errors must be between 0 and 1"
    yield not 0 < caches.robots <= 86_400, "caches.robots must be above 0 and at most a day (86400)"
    yield (
        min(caches.dns, caches.dns_stale, caches.dns_last) < 0,
        "caches.dns, caches.dns_stale and caches.dns_last must not be negative",
    )


def _allowances(budget: Budget, limits: Limits, watch: Watch) -> _Checks:
    yield budget.unearned_per_day < 1, "budget.unearned_per_day must be at least 1"
    yield (
        budget.pages_per_day < budget.unearned_per_day,
        "budget.pages_per_day must not be less than budget.unearned_per_day",
    )
    yield budget.pages < 0, "budget.pages must not be negative (0 means no limit)"
    yield not 0 < budget.share <= 1, "budget.share must be above 0 and at most 1"
    yield (
        budget.share < 1 and limits.patience >= 600,
        "limits.patience must be below 600 with a budget.share: a run would wait for the share for ever",
    )
    yield not 0 < budget.farm <= 1, "budget.farm must be above 0 and at most 1"
    yield not 0 <= budget.farm_cut <= 1, "budget.farm_cut must be between 0 and 1"
    yield not 0 < watch.share <= 1, "watch.share must be above 0 and at most 1"


def _choices(traps: Traps, recrawl: Recrawl) -> _Checks:
    for name, least in (("url_length", 1), ("shape_urls", 1), ("novelty_pages", 2), ("site_depth", 1), ("fan_out", 1)):
        yield getattr(traps, name) < least, f"traps.{name} must be at least {least}"
    yield recrawl.policy not in ("optimal", "double"), "recrawl.policy is optimal or double"
    yield recrawl.per_day < 0, "recrawl.per_day must not be negative (0 means no limit)"
    yield not recrawl.shortest > 0, "recrawl.shortest must be above 0"
    yield recrawl.longest < recrawl.shortest, "recrawl.longest must not be shorter than recrawl.shortest"
    yield (
        not min(recrawl.news, recrawl.blog, recrawl.docs) > 0,
        "recrawl.news, recrawl.blog and recrawl.docs must be above 0",
    )


def _ways_out(config: Config) -> _Checks:
    yield (
        config.fetch.invalid_certificates not in ("record", "refuse"),
        "fetch.invalid_certificates is record or refuse",
    )
    yield config.egress.per_address < 1, "egress.per_address must be at least 1"
    yield from ((True, f"egress.addresses: {text!r} is not an IP address") for text in _no_addresses(config.egress))
    yield from ((True, f"proxies: {words}") for proxy in config.proxies for words in _faults(proxy))
    yield from ((True, f"regions: {words}") for words in _regional_faults(config))


def _browser(render: Render) -> _Checks:
    yield not 0 <= render.share <= 1, "render.share must be between 0 (no browser) and 1"
    yield not 0 < render.seconds <= 600, "render.seconds must be above 0 and at most 600"
    yield render.recycle < 1, "render.recycle must be at least 1"


def _deletions(rules: Iterable[Retention]) -> _Checks:
    for rule in rules:
        yield not 0 < rule.older_than < inf, "retention.older_than must be above 0"
        for kind in rule.kinds:
            yield kind not in (*STORED, *MEDIA), f"retention.kinds: {kind!r} is none of {', '.join((*STORED, *MEDIA))}"


def check(config: Config) -> Config:
    """Refuse what contradicts itself, before anything starts. With regions, `workers` is the sum of theirs."""
    checks = chain(
        _process(config),
        _pace(config.politeness, config.retry),
        _sizes(config.limits),
        _room(config.memory, config.caches),
        _allowances(config.budget, config.limits, config.watch),
        _choices(config.traps, config.recrawl),
        _ways_out(config),
        _browser(config.render),
        _deletions(config.retention),
    )
    for bad, words in checks:
        if bad:
            raise ConfigError(words)
    workers = sum(region.workers for region in config.regions)
    return msgspec.structs.replace(config, workers=workers) if workers else config
