"""What a crawl has decided about a URL and its site: facts for `why`, `status` and the summary.

The policies are asked again with what is durably known, so that what is shown is what they do, not a copy of it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from harvestman.config import Config
from harvestman.model import LISTING, Instant, Job, Seconds, SiteRecord, Status, UrlRecord
from harvestman.policy import budget, kinds, novelty, priority, revisit, traps, urgency, validators
from harvestman.policy.novelty import EVERY

TRAP = "trap: "
"""How the reason of a URL that was refused as part of a trap begins."""


class JobSays(msgspec.Struct):
    """Whose depth limit, scope and recrawl time apply to it."""

    id: int
    name: str
    priority: str
    max_depth: int
    scope: str
    ttl: Seconds


class Score(msgspec.Struct):
    """How urgent it is, by what that is made of: weighted parts that add up, then what they come from."""

    total: float
    parts: dict[str, float]
    """authority, freshness, source, depth, boosts."""
    bucket: int
    """Where it would be queued by what is known now."""
    last: str
    """Why it comes last whatever its score; empty for most."""
    cash: float
    """What links gave the page, in average pages."""
    site_cash: float
    linkers: int
    """Other sites that link to its site, about."""
    taken: int
    """Pages of its site that we have."""
    stale: float
    """How likely our copy is stale; 1 when there is none."""
    steps: int
    """From the root of its host."""
    looks_like: str
    """news, blog, docs or other."""


class Again(msgspec.Struct):
    """When a page is visited again, and what that rests on."""

    due: Instant
    tier: str
    """hourly, daily or weekly+."""
    basis: str
    """ttl (its job says so), visits (what they found) or kind (what pages of its kind do)."""
    every: Seconds
    """How often it is believed to change; with a ttl, how often its job asks for it."""
    kind: str
    visits: int
    """After the first."""
    changes: int
    told: Instant
    """When a sitemap says that it changed, if that was after our last look; else 0."""
    trust: float
    """How far the site's dates are believed, 0 to 1."""
    dated: int
    truthful: int


class Trapped(msgspec.Struct):
    """The trap it is part of."""

    name: str
    shape: str
    """As `harvestman traps` lists it."""
    refused: int
    since: Instant
    example: str
    pardoned: bool


class Tried(msgspec.Struct):
    """An attempt that failed."""

    at: Instant
    reason: str


class SiteSays(msgspec.Struct):
    """What its site has earned, and used."""

    site: str
    fetched: int
    today: int
    allowance: int
    """Pages a day."""
    setting: str
    """The one that would change the allowance."""
    vouched: bool
    linkers: int
    novel: float
    """The part of its pages that were new."""
    flagged: str
    traps: int
    """Shapes of URLs that are stopped."""
    spent: str
    """Which limit is reached: day, share or pages; empty when it may be asked."""
    until: Instant
    """When that ends; 0 when it may be asked, or never."""
    lied: Instant
    """When it was found to say "not modified" of pages that were; 0 when it was not, or is believed again."""
    barren: bool
    """Its ETags recognise nothing: only its dates are sent."""


# -- one URL ---------------------------------------------------------------------------------------------------------


def job_says(job: Job) -> JobSays:
    return JobSays(job.id, job.name, job.priority, job.max_depth, job.scope, job.ttl)


def score(record: UrlRecord, site: SiteRecord, job: Job, config: Config, now: Instant) -> Score:
    """How urgent it is by what is known now."""
    need = urgency.need(record, now)
    parts = urgency.parts(record, site, job, need, config)
    return Score(
        round(parts.total, 4), {name: round(part, 4) for name, part in parts._asdict().items()},
        bucket=urgency.bucket(record, site, job, need, config), last=_last(record, site, config),
        cash=round(record.cash, 4), site_cash=round(site.cash, 4), linkers=round(budget.linkers(site.linkers)),
        taken=site.fetched, stale=round(need, 4), steps=priority.steps(record.url),
        looks_like=kinds.page_kind(record.url, record.kind),
    )  # fmt: skip


def _last(record: UrlRecord, site: SiteRecord, config: Config) -> str:
    if novelty.exhausted(site, config.traps):
        return f"the last {site.shapes.get(EVERY, 0):,} pages of its site brought nothing new"
    looks = traps.suspect(record.url) if record.change is None else ""
    return f"it looks like part of a trap ({looks}), and waits for others to show whether it is one" if looks else ""


def again(record: UrlRecord, site: SiteRecord, job: Job | None) -> Again | None:
    """None for what is not visited again."""
    change = record.change
    if change is None or not record.due or record.status not in (Status.FETCHED, Status.DUPLICATE):
        return None
    ttl = job.ttl if job else Seconds(0.0)
    return Again(
        record.due, revisit.tier(Seconds(record.due - change.looked)),
        "ttl" if ttl else "visits" if change.visits else "kind", ttl or Seconds(change.exposure / change.shape),
        "blog" if record.kind == LISTING else kinds.page_kind(record.url, record.kind), change.visits, change.changes,
        record.modified if record.modified > change.looked else Instant(0.0),
        round(revisit.trust(site.dated, site.truthful), 4), site.dated, site.truthful,
    )  # fmt: skip


def trail(record: UrlRecord) -> list[Tried]:
    return [Tried(each.at, each.reason) for each in record.trail]


def trapped(record: UrlRecord, site: SiteRecord) -> Trapped | None:
    """The trap a URL was refused for, or will be when its turn comes."""
    if record.status is Status.PENDING:
        key = traps.caught(site, record.url, record.via)
        return _row(key, site) if key else None
    said = record.visit.reason if record.status is Status.REFUSED and record.visit else ""
    if not said.startswith(TRAP):
        return None
    # A name has no slash, and every shape begins with one.
    name, _, rest = said.removeprefix(TRAP).partition(" /")
    keys = (f"/{rest}", f"{name} /{rest}", f"{name} {EVERY}")
    for key in keys:
        if key in site.traps and site.traps[key].name == name:
            return _row(key, site)
    return Trapped(name, f"/{rest}", 0, Instant(0.0), "", False)  # forgotten: the site has too many


def _row(key: str, site: SiteRecord) -> Trapped:
    trap = site.traps[key]
    return Trapped(trap.name, key, trap.refused, trap.at, trap.example, trap.pardoned)


def would_trap(url: str, site: SiteRecord | None, config: Config) -> str:
    """The trap that a URL nobody has seen would be refused for: name and shape; empty for most."""
    shape = traps.shape_of(url)
    name = traps.refusal(url, config.traps)
    if name is not None and not (site and (known := site.traps.get(f"{name} {shape}")) and known.pardoned):
        return f"{name} {shape}"
    key = traps.caught(site, url) if site else ""
    return f"{site.traps[key].name} {key}" if site and key else ""


# -- its site --------------------------------------------------------------------------------------------------------


def site_says(site: SiteRecord, crawled: int, config: Config, now: Instant) -> SiteSays:
    """`crawled`: pages of the worker that owns it."""
    rules, held = config.budget, site.validators
    until = budget.wait(site, crawled, rules, now)
    today = site.today if site.day == int(now // budget.DAY) else 0
    allowance = budget.allowance(site, rules)
    if until is None:
        spent = ""
    elif until >= budget.NEVER:
        spent = "pages"
    else:
        spent = "day" if today >= allowance else "share"
    return SiteSays(
        site.site, site.fetched, today, allowance, _setting(site, config), site.vouched,
        round(budget.linkers(site.linkers)), round(novelty.share(site), 4), site.flagged,
        sum(not trap.pardoned for trap in site.traps.values()), spent,
        until if until is not None and until < budget.NEVER else Instant(0.0),
        held.lied if held and validators.distrusted(held, now) else Instant(0.0),
        held is not None and held.barren >= validators.BARREN,
    )  # fmt: skip


def _setting(site: SiteRecord, config: Config) -> str:
    rules = config.budget
    if novelty.farm(site, rules):
        return "budget.farm_cut"
    most = site.vouched or rules.unearned_per_day >= rules.pages_per_day
    return "budget.pages_per_day" if most else "budget.unearned_per_day"


def spent(sites: Iterable[tuple[SiteRecord, int]], config: Config, now: Instant) -> list[SiteSays]:
    """Those sites that have used up what they may have, the first to go on first."""
    said = (site_says(site, crawled, config, now) for site, crawled in sites)
    return sorted((each for each in said if each.spent), key=lambda each: (each.until, each.site))
