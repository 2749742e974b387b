"""Foreign sitemaps as seed files: what others read of them, we read."""

from __future__ import annotations

from typing import Any

import suites
from cases import for_each

from harvestman.errors import UsageError
from harvestman.policy.urls import from_seed
from harvestman.seeds import read_seeds

pytestmark = suites.needed

DIFFERENT = {
    "sitemap-067": "a URL with an entity that is not expanded is not what its author wrote",
    "sitemap-019": "the case rewrites the URLs with a filter of its own",
    "sitemap-034": "the location rule (only URLs below the sitemap's own) is for sitemaps from the web, not for seeds",
    "sitemap-050": "the location rule, as above",
}


def cases() -> list[dict[str, Any]]:
    if not (suites.ROOT / "sitemap").exists():
        return []
    kinds = ("XML", "urlset")
    rows = suites.rows("sitemap/sitemaps.jsonl")
    return [case for case in rows if case.get("type") in kinds and "error" not in case]


@for_each("case", [case for case in cases() if case["id"] not in DIFFERENT])
def test_a_sitemap_gives_its_urls(case: dict[str, Any]) -> None:
    assert read_seeds(suites.ROOT / "sitemap" / case["file"]).urls == list(dict.fromkeys(map(from_seed, case["urls"])))


@for_each("case", [case for case in cases() if case["id"] in DIFFERENT])
def test_the_differences_are_still_there(case: dict[str, Any]) -> None:
    try:
        found = read_seeds(suites.ROOT / "sitemap" / case["file"]).urls
    except UsageError:
        found = []
    assert len(found) != case["count"] or found != case["urls"]
