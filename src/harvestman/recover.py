"""After a crash: raw records that were stored but not yet taken in are read again, not fetched again.

A page that crashed the worker twice while being read is parked, so that it cannot stop the crawl for ever.
"""

from __future__ import annotations

from harvestman.frontier.frontier import Frontier
from harvestman.frontier.routing import Router
from harvestman.harvest import Harvest, Taken
from harvestman.model import Instant, Lease, RecordRef, Response, Status, UrlId
from harvestman.policy import urls
from harvestman.policy.outcomes import Decision
from harvestman.ports import Changes, State

TRIES = 2


async def replayed(
    found: list[tuple[RecordRef, Response]], state: State, harvest: Harvest, frontier: Frontier, router: Router
) -> list[Taken]:
    """Take in what an earlier process stored after its last commit. The results are staged in the frontier."""
    if not found:
        return []
    tries = int(await state.mark("replays") or b"0")
    await state.commit(Changes(marks={"replays": b"%d" % (tries + 1)}))
    leases = [_lease(response, router) for _, response in found]
    records = await state.records([lease.id for lease in leases])
    waiting = [
        (lease, record, response, ref)
        for lease, record, (ref, response) in zip(leases, records, found, strict=True)
        if record is not None and record.status is Status.PENDING and record.url == lease.url
    ]
    if tries >= TRIES:
        parked = Decision(Status.DEAD, "the worker died twice while reading this page", error="poison")
        group = [Taken(lease, record, response, parked, ref=ref) for lease, record, response, ref in waiting]
    else:
        group = await harvest.gather(waiting)
    for taken in group:
        frontier.settle_replayed(taken.lease, taken.record, taken.decision, taken.visit())
    frontier.changes.contents.update(harvest.contents)
    frontier.changes.marks["replays"] = b"0"
    return group


def _lease(response: Response, router: Router) -> Lease:
    url = response.url
    name = urls.host_of(url)
    url_id: UrlId = router.id_of(url)
    return Lease(name, "", url, url_id, None, urls.origin_of(url), taken=Instant(response.started))
