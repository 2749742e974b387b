"""The judge sees what it is there to see, and nothing else."""

from __future__ import annotations

from cases import for_each

from harvestman.config import Config
from harvestman.simulate.judge import Judge, Line

DEFAULTS = {"site": 0, "address": "a", "url": "https://s0.test/", "robots": False, "status": 200}


def line(started: float, finished: float, host: int = 0, **more: object) -> Line:
    given = {**DEFAULTS, "site": host, "address": f"a{host}", **more}
    return Line(host, started=started, finished=finished, **given)  # type: ignore[arg-type]


def broken(*lines: Line) -> dict[str, int]:
    judge = Judge(Config(), 10)
    judge.saw(line(1.0, 1.1, robots=True))
    for each in lines:
        judge.saw(each)
    assert judge.ok is not any(each.count for each in judge.broken.values())
    return {name: each.count for name, each in judge.broken.items() if each.count}


@for_each(
    ("lines", "wrong"),
    [
        ([line(2.1, 2.2), line(3.2, 3.3)], {}),
        ([line(2.1, 2.2), line(3.1, 3.3)], {"gap": 1}),
        ([line(2.1, 9.0), line(5.0, 5.1)], {"overlap": 1}),
        ([line(6.1, 6.2, crawl_delay=5.0), line(11.3, 11.4, crawl_delay=5.0)], {}),
        ([line(6.1, 6.2, crawl_delay=5.0), line(9.3, 9.4, crawl_delay=5.0)], {"crawl_delay": 1}),
        ([line(6.1, 6.2, crawl_delay=5.0), line(9.3, 9.4, crawl_delay=5.0, robots=True)], {}),
        ([line(3, 4, status=429, retry_after=100.0), line(104.1, 105)], {}),
        ([line(3, 4, status=429, retry_after=100.0), line(99, 105)], {"retry_after": 1}),
        ([line(3, 4, status=0), line(5.1, 6, status=0), line(8.1, 9)], {}),
        ([line(3, 4, status=0), line(5.1, 6, status=0), line(7.5, 9)], {"back_off": 1}),
        ([line(3, 4, forbidden=True)], {"robots_forbidden": 1}),
        ([line(3, 4, host=5)], {"robots_first": 1}),
        ([line(3, 4, host=5, robots=True, status=503), line(9, 10, host=5)], {"robots_first": 1}),
        ([line(3, 4, address="x"), line(3.5, 5, host=1, address="x", robots=True)], {"address_overlap": 1}),
        ([line(3, 4, address="x"), line(4.05, 5, host=1, address="x", robots=True)], {"address_gap": 1}),
        ([line(3 + n / 20, 4, host=n, site=0, robots=True) for n in range(1, 10)], {}),
        ([line(3 + n / 90, 4, host=n % 10, site=0, robots=True, address=str(n)) for n in range(10, 22)], None),
    ],
)
def test_promises(lines: list[Line], wrong: dict[str, int] | None) -> None:
    found = broken(*lines)
    if wrong is None:
        assert "site_rate" in found
    else:
        assert found == wrong


def test_five_failures_in_a_row_and_the_host_is_sick() -> None:
    judge, at = Judge(Config(), 1), 10.0
    for wait in (1, 2, 4, 8, 0):
        judge.saw(line(at, at + 1, robots=True, status=0))
        at += 1 + wait
    assert judge.ok
    assert judge.sick_spells == 1
    judge.saw(line(at + 5 * 3600, at + 5 * 3600 + 1, robots=True))
    assert judge.broken["back_off"].count == 1
    assert "too soon" in judge.broken["back_off"].cases[0]


def test_it_keeps_what_the_report_needs() -> None:
    judge = Judge(Config(), 3)
    judge.saw(line(1, 2, robots=True))
    judge.saw(line(5, 6, status=500))
    judge.saw(line(9, 9.5))
    assert (judge.smallest_gap, judge.least_margin) == (3.0, 2.0)
    assert list(judge.asked) == [3, 0, 0]
    assert list(judge.unwell) == [1, 0, 0]
    assert judge.shown == {0: (1.0, 3.0)}
    assert not judge.failing[0]
