"""How much of a crawl a site may take: pages a day that are earned, a limit for the crawl, a share of it.

Inside a site nothing is decided here: the queues of a host give the best URL first, so what a large site is given goes
to the best of what is known of it, and what is found on a day without budget left competes for the next.
"""

from __future__ import annotations

import math
from typing import Final
from zlib import crc32

from harvestman.config import Budget
from harvestman.model import Instant, SiteKey, SiteRecord
from harvestman.policy.novelty import farm, share

DAY: Final = 86_400
NEVER: Final = Instant(1e12)
TRUSTED_BY: Final = 200
"""Linking sites that earn a site the full budget. The sketch tells numbers apart up to about 270."""
SHARE_FROM: Final = 1_000
"""Pages of a crawl before shares of it mean anything."""
SHARE_PAUSE: Final = 600.0
"""Until a site above its share is looked at again: longer than the patience, so that a crawl with nothing else ends."""
_BITS = 64


def linker(site: SiteKey) -> int:
    """The place of a linking site in every sketch: one of 64, so that many sites share it."""
    return crc32(site.encode()) & _BITS - 1


def linked(sketch: int, linker: int) -> int:
    """The sketch of linking sites with one more in it."""
    return sketch | 1 << linker


def linkers(sketch: int) -> float:
    """About how many sites are in a sketch (linear counting); a full one counts as if half a bit were empty."""
    return _BITS * math.log(_BITS / max(0.5, _BITS - sketch.bit_count()))


def allowance(site: SiteRecord, rules: Budget) -> int:
    """The pages a day a site has earned: by a seed, or by the links of other sites and the share of new pages."""
    most = rules.pages_per_day
    least = min(rules.unearned_per_day, most)
    earned = 1.0 if site.vouched else min(1.0, linkers(site.linkers) / TRUSTED_BY) * share(site)
    pages = least + int((most - least) * earned)
    return math.ceil(pages * rules.farm_cut) if farm(site, rules) else pages


def spent(site: SiteRecord, now: Instant, again: bool = False) -> None:
    """Charge a site for a page fetched now; one that we had counts for the day, not as another page."""
    day = _day(now)
    if day > site.day:
        site.day, site.today = day, 0
    site.today += 1
    site.fetched += not again


def wait(site: SiteRecord, crawled: int, rules: Budget, now: Instant) -> Instant | None:
    """None when a site may be asked now, else when to look again; `crawled` are the pages of the whole crawl so far."""
    if rules.pages and site.fetched >= rules.pages:
        return NEVER
    day = _day(now)
    if site.day == day and site.today >= allowance(site, rules):
        return Instant(float((day + 1) * DAY))
    if rules.share < 1 and crawled >= SHARE_FROM and site.fetched >= rules.share * crawled:
        return Instant(now + SHARE_PAUSE)
    return None


def _day(now: Instant) -> int:
    return int(now // DAY)
