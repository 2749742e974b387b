"""One page in the browser: what it is given, what it is refused, and what stands there in the end.

Every request of the page is held and decided here, and not one goes out. The document is the stored one; scripts and
the data they ask for come from `provide`, or fail; everything else fails at once, for nobody looks at the page.

The page's clock is virtual: it starts at the moment the page was fetched, stands still while a request is being
answered, and jumps to the next timer when nothing is left to do. So a page that waits three seconds costs
milliseconds, and two renderings of the same answers come out the same.
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from harvestman.model import Instant
from harvestman.render.cdp import BrowserGone, CommandRefused, Pipe, Said


@dataclass(slots=True, frozen=True)
class Archived:
    """An answer from the archive."""

    status: int
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    """Without transfer and content encoding."""


@dataclass(slots=True, frozen=True)
class Wanted:
    """What a page's scripts ask for."""

    url: str
    kind: str
    """script, xhr or fetch."""


Provide: TypeAlias = Callable[[Wanted], Awaitable[Archived | None]]
"""None: we do not have it, and the request fails in the browser."""

ASKED = {"script": "script", "xhr": "xhr", "fetch": "fetch", "other": "fetch"}
"""The browser's word for what `provide` is asked for, and ours. Its 'other': a worker's script, data loaded ahead."""
EMPTY_STYLE = Archived(200, {"content-type": "text/css"}, b"")
"""A stylesheet that fails makes scripts believe that something is broken; an empty one does not."""
VIRTUAL_SECONDS = 5
BUSY = 10_000
"""Tasks in a row without a pause, after which the virtual clock moves on nevertheless: a page that asks what time it is
until it is later must get on."""
HOLD = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
"""Whatever could run a script waits, when it appears, to be told to go on."""
SCREEN = {"width": 1280, "height": 1024, "deviceScaleFactor": 1, "mobile": False}
LARGEST = 12_000_000
"""Characters of a serialised document."""

DROPPED = re.compile(
    "content-(encoding|length|disposition|security-policy-report-only)|transfer-encoding|connection|keep-alive|trailer"
    "|set-cookie2?|strict-transport-security|alt-svc|nel|report-to|reporting-endpoints|clear-site-data|speculation-rules"
    "|accept-ch|critical-ch|origin-agent-cluster|cross-origin-(opener|embedder)-policy.*"
)
"""Headers the browser does not see: of encodings that are undone; of cookies, for a rendering has no past and no
future; and those that make it report, prefetch, download, ask again or change its process. What decides whether a
script runs or may read an answer (content-security-policy, access-control-*, x-content-type-options) stays: a reader's
browser would obey it too."""
NOT_IN_A_HEADER = re.compile("[^\t\x20-\x7e\x80-\xff]")

SERIALISE = """(limit => {
    const roots = [];
    const collect = root => {
        for (const element of root.querySelectorAll('*')) {
            if (element.shadowRoot) { roots.push(element.shadowRoot); collect(element.shadowRoot); }
        }
    };
    collect(document);
    const top = document.documentElement;
    if (!top) return {html: '', url: location.href};
    let html = top.outerHTML;
    if (roots.length && document.contentType === 'text/html') {
        const copy = new DOMParser().parseFromString(top.getHTML({shadowRoots: roots}), 'text/html');
        for (let shadows; (shadows = copy.querySelectorAll('template[shadowrootmode]')).length;) {
            for (const shadow of shadows) shadow.replaceWith(shadow.content);
        }
        for (const {name, value} of top.attributes) copy.documentElement.setAttribute(name, value);
        html = copy.documentElement.outerHTML;
    }
    const type = document.doctype ? new XMLSerializer().serializeToString(document.doctype) : '';
    html = type + html;
    return {html: html.slice(0, limit).toWellFormed(), url: location.href, cut: html.length > limit};
})(%d)"""
"""Run in a world of its own, where the page's scripts have changed nothing. What is in an open shadow root stands
before the other children of its host, for in a template nobody would find it."""

FRAMES = """(() => {
    const later = setTimeout, never = clearTimeout, clock = performance;
    window.requestAnimationFrame = call => later(() => call(clock.now()), 16);
    window.cancelAnimationFrame = frame => never(frame);
    window.requestIdleCallback = call => later(() => call({didTimeout: false, timeRemaining: () => 16}), 16);
    window.cancelIdleCallback = idle => never(idle);
    window.open = () => null;
    for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'WebTransport']) delete window[name];
    const observer = entry => class {
        constructor(call) { this._call = call; this._of = new Map(); }
        observe(element) {
            if (!this._of.has(element)) this._of.set(element, later(() => this._call([entry(element)], this), 16));
        }
        unobserve(element) { never(this._of.get(element)); this._of.delete(element); }
        disconnect() { for (const waiting of this._of.values()) never(waiting); this._of.clear(); }
        takeRecords() { return []; }
    };
    window.IntersectionObserver = observer(target => {
        const all = target.getBoundingClientRect();
        return {target, time: clock.now(), isIntersecting: true, isVisible: true, intersectionRatio: 1,
                boundingClientRect: all, intersectionRect: all, rootBounds: null};
    });
    window.ResizeObserver = observer(target => {
        const all = target.getBoundingClientRect(), size = [{inlineSize: all.width, blockSize: all.height}];
        return {target, contentRect: new DOMRect(0, 0, all.width, all.height),
                borderBoxSize: size, contentBoxSize: size, devicePixelContentBoxSize: size};
    });
})()"""
"""Nothing is painted, so the browser's own frames come when they like, or never (measured: 1 to 5 of 10 that a page
waits for, another number each time). These come by the virtual clock; and all of the page is in view, so that what it
loads when somebody scrolls there is loaded. No window opens, as nobody has clicked; and what
sends datagrams past every proxy is not there."""


class Tab:
    """A page in one session of the browser, from the first command to the last."""

    def __init__(self, pipe: Pipe, session: str, target: str, url: str, stored: Archived, provide: Provide) -> None:
        self._url = url
        self._pipe = pipe
        self._session = session
        self.target = target
        """The main frame is called as its target is."""
        self._stored: Archived | None = stored
        self._provide = provide
        self._answering: set[asyncio.Task[None]] = set()
        self.leads_to = ""
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """'' when the page's time is over, 'crash' when it died; or what `provide` raised."""
        pipe.listeners[session] = self._heard

    async def open(self, at: Instant) -> None:
        """Awaited before the page is asked for: it may get another process, which is told what the first one knew.

        A frame with a process of its own would be out of reach; it is held when it appears, and never let go.
        """
        ready = [
            self._tell("Fetch.enable", patterns=[{"urlPattern": "*"}]),
            self._tell("Target.setAutoAttach", **HOLD),
            self._tell("Page.enable"),
            self._tell("Inspector.enable"),
            self._tell("Page.addScriptToEvaluateOnNewDocument", source=FRAMES),
            self._tell("Emulation.setDeviceMetricsOverride", **SCREEN),
            self._tell("Emulation.setVirtualTimePolicy", policy="pause", initialVirtualTime=at),
            self._tell("Runtime.runIfWaitingForDebugger"),
        ]
        await asyncio.gather(*ready)
        self._tell("Page.navigate", url=self._url).add_done_callback(self._navigated)

    def interrupt(self) -> None:
        """Its time is up: whatever script runs is ended, and no other begins."""
        self._tell("Emulation.setScriptExecutionDisabled", value=True)
        self._tell("Emulation.setVirtualTimePolicy", policy="pause")
        self._tell("Runtime.terminateExecution")

    async def serialised(self) -> tuple[str, str, bool]:
        """The document, its address, and whether it is only the beginning of it."""
        world = await self._tell("Page.createIsolatedWorld", frameId=self.target)
        answer = await self._tell(
            "Runtime.evaluate",
            expression=SERIALISE % LARGEST,
            contextId=world["executionContextId"],
            returnByValue=True,
        )
        value = answer["result"].get("value")
        if value is None:
            return "", "", True  # longer than the longest string there can be
        return value["html"], value["url"], value.get("cut", False)

    def close(self) -> None:
        self._pipe.listeners.pop(self._session, None)
        for task in self._answering:
            task.cancel()

    def _tell(self, method: str, **params: Any) -> asyncio.Future[Said]:
        return self._pipe.command(method, params, self._session)

    def _heard(self, method: str, said: Said) -> None:
        match method:
            case "Fetch.requestPaused":
                self._decide(said)
            case "Target.attachedToTarget" if said["targetInfo"]["type"] == "worker":
                self._pipe.command("Runtime.runIfWaitingForDebugger", session=said["sessionId"])
            case "Page.javascriptDialogOpening":
                self._tell("Page.handleJavaScriptDialog", accept=False)
            case "Emulation.virtualTimeBudgetExpired":
                self._end("")
            case "Inspector.targetCrashed" | "Inspector.detached":
                self._end("crash")

    def _end(self, cut: str) -> None:
        if not self.ended.done():
            self.ended.set_result(cut)

    def _navigated(self, answer: asyncio.Future[Said]) -> None:
        """The document is there, and its clock may run; or it was none at all (204, a download)."""
        if answer.cancelled() or answer.exception() is not None:
            self._end("crash")
        elif "errorText" in answer.result():
            self._end("")
        else:
            self._tell(
                "Emulation.setVirtualTimePolicy",
                policy="pauseIfNetworkFetchesPending",
                budget=VIRTUAL_SECONDS * 1000,
                maxVirtualTimeTaskStarvationCount=BUSY,
            )

    def _decide(self, said: Said) -> None:
        request = said["request"]
        url, method, kind = request["url"], request["method"], said["resourceType"].lower()
        if not url.startswith(("http://", "https://")):
            self._tell("Fetch.continueRequest", requestId=said["requestId"])  # data: and blob: are in the page itself
        elif kind == "document":
            self._navigate(said["requestId"], url, method, said.get("frameId") == self.target)
        elif kind == "stylesheet":
            self._fulfil(said["requestId"], EMPTY_STYLE)
        elif _may_ask(kind, method, request["headers"]):
            task = asyncio.ensure_future(self._answer(said["requestId"], Wanted(url, ASKED[kind]), request["headers"]))
            self._answering.add(task)
            task.add_done_callback(self._answered)
        else:
            self._fail(said["requestId"])

    def _navigate(self, request: str, url: str, method: str, main: bool) -> None:
        """The first one is ours. Another is aborted, which leaves the document where it is, as no other failure does;
        where it led is noted, unless it was to load the page again."""
        if main and self._stored is not None:
            self._fulfil(request, self._stored)
            self._stored = None
            return
        if main and method == "GET" and not self.leads_to and url != self._url:
            self.leads_to = url
        self._fail(request, "Aborted")

    async def _answer(self, request: str, wanted: Wanted, headers: dict[str, str]) -> None:
        stored = await self._provide(wanted)
        asked = _lower(headers)
        if stored is not None and "access-control-request-method" in asked:
            stored = _permission(stored, asked)
        if stored is None:
            self._fail(request)
        else:
            self._fulfil(request, stored)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._answering.discard(task)
        if not task.cancelled() and task.exception() is not None and not self.ended.done():
            self.ended.set_exception(task.exception() or BrowserGone())

    def _fulfil(self, request: str, stored: Archived) -> None:
        headers = [
            {"name": name, "value": NOT_IN_A_HEADER.sub("", value)}
            for name, value in stored.headers.items()
            if not DROPPED.fullmatch(name)
        ]
        done = self._tell(
            "Fetch.fulfillRequest",
            requestId=request,
            responseCode=stored.status,
            responsePhrase="Stored",
            responseHeaders=headers,
            body=base64.b64encode(stored.body).decode(),
        )
        done.add_done_callback(lambda answer: self._failed(request, answer))

    def _failed(self, request: str, answer: asyncio.Future[Said]) -> None:
        """What the browser will not take as an answer is none; unanswered, the page would wait for it."""
        if not answer.cancelled() and isinstance(answer.exception(), CommandRefused):
            self._fail(request)

    def _fail(self, request: str, reason: str = "Failed") -> None:
        self._tell("Fetch.failRequest", requestId=request, errorReason=reason)


def _may_ask(kind: str, method: str, headers: dict[str, str]) -> bool:
    """Scripts and data, by GET; or whether a GET would be allowed, which its stored answer tells."""
    asked = _lower(headers)
    accept = asked.get("accept", "")
    if kind not in ASKED or (kind == "other" and accept != "*/*"):
        return False
    if "sec-purpose" in asked or accept == "text/event-stream":
        return False  # to be looked at later, or without an end
    return method == "GET" or (method == "OPTIONS" and asked.get("access-control-request-method") == "GET")


def _permission(stored: Archived, asked: dict[str, str]) -> Archived | None:
    """The answer to a preflight, which nobody has sent: who lets others read the answer lets them ask for it."""
    said = {name: value for name, value in stored.headers.items() if name.startswith("access-control-allow-")}
    if "access-control-allow-origin" not in said:
        return None
    allowed = asked.get("access-control-request-headers", "")
    return Archived(204, {**said, "access-control-allow-headers": allowed, "access-control-allow-methods": "GET"}, b"")


def _lower(headers: dict[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
