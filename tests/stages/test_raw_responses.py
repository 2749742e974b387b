"""Every raw response of the HTTP suite, served over loopback, each followed by a clean request.

None may hang, crash or leak into the next answer; what the suite calls well-formed is accepted, except the cases
named here with the reason.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import suites
from stages.rawserver import RawServer, fetching, get, get_page, page, run, sends

from harvestman.fetch.curl import Limits
from harvestman.model import Answer, Failure, FailureKind, Request, Response, Seconds

pytestmark = suites.needed

_NO_NUMBER = "a Content-Length that is no number: libcurl will not guess where the body ends"
_BELOW_100 = "a status code below 100, which no RFC gives a meaning to"
_GATE = "our gate does not take pages of this content type"
REFUSED = {
    "llhttp-connection-17": "a stray blank line between the interim and the final head",
    **{f"wpt-status-{n:02}": _BELOW_100 for n in (3, 4, 5, 6, 7)},
    **{f"wpt-clen-{n}": _NO_NUMBER for n in (23, 24, 25, 26, 27, 28, 29, 33, 35)},
    **{f"wpt-ce-{coding}-foo.octetstream": _GATE for coding in ("gzip", "br", "zstd")},
    **{f"curl-{n}": "the head breaks off: what is missing may be what matters" for n in (1591, 1598, 3034)},
    "curl-0374": _GATE,
}
PATIENT = Limits(first_byte=Seconds(3), total_html=Seconds(3))


async def answers() -> list[tuple[dict[str, Any], Answer]]:
    """Serve the cases one by one to one fetcher, checking after each that the next answer is untouched by it."""
    clean = page(b"clean")
    results: list[tuple[dict[str, Any], Answer]] = []
    async with RawServer({"/clean": clean}).listening() as server, fetching(PATIENT) as fetcher:
        for case in suites.rows("http/responses.jsonl"):
            server.replies["/case"] = sends((suites.ROOT / "http" / case["file"]).read_bytes())
            base = f"http://site.test:{server.port}"
            results.append((case, await get(fetcher, Request(f"{base}/case", "127.0.0.1"))))
            after = await get(fetcher, Request(f"{base}/clean", "127.0.0.1"))
            if isinstance(after, Failure):  # the end of the connection crossed the request, which went out once
                assert after.detail == "the connection broke before an answer", case["id"]
                after = await get_page(fetcher, Request(f"{base}/clean", "127.0.0.1"))
            assert after.head + after.body == clean, case["id"]
        await asyncio.sleep(0)
        assert fetcher.in_flight == 0
    return results


@pytest.mark.slow
def test_every_raw_response() -> None:
    results = run(answers())
    assert len(results) >= 390
    hung = [
        case["id"] for case, answer in results if isinstance(answer, Failure) and answer.kind is FailureKind.TIMEOUT
    ]
    assert hung == []
    refused = {case["id"] for case, answer in results if case["expect"] == "ok" and not accepted(case, answer)}
    assert refused == REFUSED.keys()


def accepted(case: dict[str, Any], answer: Answer) -> bool:
    return isinstance(answer, Response) and case.get("status") in (None, answer.status)
