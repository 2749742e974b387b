"""After a crash: raw records that were stored but not yet taken in are read again, not fetched again.

If that crashes too, they are read one by one, each named beforehand: the page that brought the worker down is then
known by its name, and parked, so that it cannot stop the crawl for ever.
"""

from __future__ import annotations

from harvestman.frontier.frontier import Frontier
from harvestman.frontier.routing import Router
from harvestman.harvest import Handed, Harvest, Taken
from harvestman.model import Instant, Lease, RecordRef, Response, Status, UrlId
from harvestman.policy import urls
from harvestman.policy.outcomes import Decision
from harvestman.ports import Changes, State

POISON = Decision(Status.DEAD, "the worker died while reading this page", error="poison")


async def replayed(
    found: list[tuple[RecordRef, Response]], state: State, harvest: Harvest, frontier: Frontier, router: Router
) -> list[Taken]:
    """Take in what an earlier process stored after its last commit. The results are staged in the frontier."""
    if not found:
        return []
    before = int(await state.mark("replays") or b"0")
    await state.commit(Changes(marks={"replays": b"%d" % (before + 1)}))
    handed = await _waiting(found, state, router)
    group = await (harvest.gather(handed) if before == 0 else _one_by_one(handed, state, harvest))
    for taken in group:
        visit, chance = taken.visit(), harvest.chance()
        await frontier.settle_replayed(
            taken.lease, taken.record, taken.answer, taken.decision, visit, chance, taken.news
        )
    frontier.changes.marks.update({"replays": b"0", "replaying": b""})
    return group


async def _one_by_one(handed: list[Handed], state: State, harvest: Harvest) -> list[Taken]:
    """Each is named before it is read, behind those that were found out before: what an earlier life ended with."""
    poisonous = [name for name in (await state.mark("replaying") or b"").split(b"\n") if name]
    group: list[Taken] = []
    contents = {}
    for lease, record, answer, ref in handed:
        name = f"{ref.file}:{ref.offset}".encode() if ref else b""
        if name in poisonous:
            group.append(Taken(lease, record, answer, POISON, ref=ref))
            continue
        await state.commit(Changes(marks={"replaying": b"\n".join([*poisonous, name])}))
        group += await harvest.gather([(lease, record, answer, ref)])
        contents.update(harvest.contents)
    harvest.contents = contents
    return group


async def _waiting(found: list[tuple[RecordRef, Response]], state: State, router: Router) -> list[Handed]:
    """The records whose URLs still wait for an answer."""
    leases = [_lease(response, router) for _, response in found]
    records = await state.records([lease.id for lease in leases])
    return [
        (lease, record, response, ref)
        for lease, record, (ref, response) in zip(leases, records, found, strict=True)
        if record is not None and record.status is Status.PENDING and record.url == lease.url
    ]


def _lease(response: Response, router: Router) -> Lease:
    url = response.url
    url_id: UrlId = router.id_of(url)
    return Lease(urls.host_of(url), "", url, url_id, None, urls.origin_of(url), taken=Instant(response.started))
