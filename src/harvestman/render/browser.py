"""A Chromium without a network, that makes documents of pages which are built by scripts.

It never sends anything: every request of a page is decided in `page`, from the archive. That is the first wall. The
second is the browser's own configuration: a proxy that does not exist, for loopback too; a resolver that knows no name
and no address; no UDP. The third, where the system allows it, is a network namespace with nothing in it. And a page
cannot start programs: those that a browser hands foreign addresses to (mailto:) are replaced by one that does nothing.

Every page has a context of its own, with cookies and storage that die with it. The process is started when it is first
needed and replaced after some pages, or when a page has brought it down.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harvestman.errors import ConfigError
from harvestman.model import Instant
from harvestman.render.cdp import BrowserGone, CommandRefused, Pipe, Said, end, start
from harvestman.render.tab import HOLD, Archived, Provide, Tab, Wanted

__all__ = ["Archived", "Browser", "Provide", "Rendered", "Wanted", "find_browser"]

NAMES = (
    "chromium-headless-shell",
    "chrome-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
"""The shells first: the same engine without windows, at a quarter of the CPU and a third of the memory."""

FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    # No way out.
    "--proxy-server=http://nowhere.invalid:1",
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-domain-reliability",
    "--dns-prefetch-disable",
    "--no-pings",
    "--deny-permission-prompts",
    # Nothing that a reader would look at, and nobody to ask.
    "--blink-settings=imagesEnabled=false",
    "--disable-remote-fonts",
    "--disable-gpu",
    "--disable-software-rasterizer",
    "--disable-extensions",
    "--disable-component-extensions-with-background-pages",
    "--disable-default-apps",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-notifications",
    "--mute-audio",
    "--no-first-run",
    "--no-default-browser-check",
    "--password-store=basic",
    "--lang=en-US",
    # Fewer processes: one document is open at a time, so there is no second site to keep from it.
    "--in-process-gpu",
    "--disable-site-isolation-trials",
    "--enable-features=NetworkServiceInProcess2",
    "--disable-features=SpareRendererForSitePerProcess,IsolateOrigins,site-per-process,IsolateSandboxedIframes,Translate,OptimizationHints,"
    "MediaRouter,AcceptCHFrame,PaintHolding,Prerender2,BackForwardCache,GlobalMediaControls,WebTransport",
    "--js-flags=--max-old-space-size=512",
)

HANDLERS = ("xdg-open", "xdg-email", "xdg-mime", "xdg-settings")
"""What a browser starts for addresses that it does not know itself."""

PREFERENCES = {"webrtc": {"ip_handling_policy": "disable_non_proxied_udp"}}
"""What a shell takes from its command line, and a full browser does not; nor does that for a page without a window
(measured), so `page` takes away what would send the datagrams."""

SHELL = "HeadlessChrome/"
"""What a headless shell calls itself. The others would open a window for every page, at 300 ms of CPU, unless told not
to; a shell has none."""

START = 30.0
"""Seconds for a browser to start, which takes one where nothing else is done."""
LOOK_EVERY = 0.5
"""Seconds between looks at a page's memory."""
MEMORY = 2 << 30
"""Bytes that all processes of the browser may hold; shared ones count in each, some 0.5 GB in all when idle."""
SALVAGE = 1.0
"""Seconds for the document of a page whose time is up."""
DISPOSE = 0.5
"""Seconds to be rid of a page."""
SHARED_MEMORY = Path("/dev/shm")
ENOUGH_SHARED = 512 << 20


@dataclass(slots=True)
class Rendered:
    html: str
    """The document as it stood in the end, with its doctype; '' when there is none."""
    url: str
    """Where the page says it is (history.pushState)."""
    leads_to: str = ""
    """Where it wanted to go, and was not let; '' if nowhere."""
    cut: str = ""
    """Why this is not the whole of it: 'time' (this is what stood there then), 'crash', 'size'; '' when it is."""
    seconds: float = 0.0
    """On the wall."""


class Browser:
    """Renders one page at a time; whoever comes meanwhile waits.

    Promises: a rendering is over `seconds` after the browser has it, and at most 2 s more, whatever the page does; it
    sends nothing to anybody; nothing of one page is seen by the next. A browser that cannot be started at all raises
    `BrowserGone`; one that dies under a page is a `cut`, and the next page gets a new one.
    """

    def __init__(
        self,
        path: str,
        profile: Path,
        *,
        seconds: float,
        recycle: int,
        user_agent: str,
        sandbox: bool | None = None,
    ) -> None:
        self._path = path
        self._profile = profile
        self._seconds = seconds
        self._recycle = recycle
        self._user_agent = user_agent
        self._sandbox = os.geteuid() != 0 if sandbox is None else sandbox
        self._turn = asyncio.Lock()
        self._pipe: Pipe | None = None
        self.pid = 0
        """Of the browser that runs; 0: none does."""
        self._pages = 0
        self._sessions: dict[str, str] = {}
        """By target, of pages that wait to be told to go on."""
        self._windowless: dict[str, bool] = {}
        self._spent = 0.0
        self._seen = 0.0

    @property
    def cpu(self) -> float:
        """CPU seconds of all its processes so far, of those that have ended too."""
        self._seen = max(self._seen, sum(spent for _, spent, _ in _processes(self.pid)))
        return self._spent + self._seen

    async def render(self, url: str, stored: Archived, provide: Provide, at: Instant) -> Rendered:
        """The page at `url`, answered `stored`, as it stands when its scripts have nothing left to do."""
        async with self._turn:
            whole = False
            try:
                pipe = await self.ready()
                began = asyncio.get_running_loop().time()
                rendered = await self._render(pipe, url, stored, provide, at)
                whole = rendered.cut != "crash" and self._pages < self._recycle
            finally:
                if not whole:
                    await self._stop()
            rendered.seconds = asyncio.get_running_loop().time() - began
            return rendered

    async def ready(self) -> Pipe:
        """The browser that runs, started if none does."""
        return self._pipe or await self._start()

    async def close(self) -> None:
        async with self._turn:
            await self._stop()
            await asyncio.to_thread(shutil.rmtree, self._profile, ignore_errors=True)

    async def _render(self, pipe: Pipe, url: str, stored: Archived, provide: Provide, at: Instant) -> Rendered:
        until = asyncio.get_running_loop().time() + self._seconds
        self._pages += 1
        rendered = Rendered("", url, cut="crash")
        page = None
        try:
            async with asyncio.timeout_at(until):
                context = (await pipe.command("Target.createBrowserContext"))["browserContextId"]
                page = await self._page(pipe, context, url, stored, provide)
                await page.open(at)
            rendered.cut = await self._settled(page, until)
            if rendered.cut in ("", "time"):
                await self._take(page, rendered, until)
            async with asyncio.timeout_at(max(until, asyncio.get_running_loop().time() + DISPOSE)):
                await pipe.command("Target.closeTarget", {"targetId": page.target})
                await pipe.command("Target.disposeBrowserContext", {"browserContextId": context})
        except (TimeoutError, BrowserGone, CommandRefused):
            await self._stop()
        finally:
            if page is not None:
                rendered.leads_to = page.leads_to
                page.close()
        return rendered

    async def _page(self, pipe: Pipe, context: str, url: str, stored: Archived, provide: Provide) -> Tab:
        pipe.command("Browser.setDownloadBehavior", {"behavior": "deny", "browserContextId": context})
        blank = {"url": "about:blank", "browserContextId": context, **self._windowless}
        target = (await pipe.command("Target.createTarget", blank))["targetId"]
        session = self._sessions.pop(target, "")
        if not session:
            raise BrowserGone("the browser did not hold the page it was told to open")
        return Tab(pipe, session, target, url, stored, provide)

    async def _settled(self, page: Tab, until: float) -> str:
        """Until the page is ready, or its time or memory is up."""
        now = asyncio.get_running_loop().time
        while (left := until - now()) > 0:
            await asyncio.wait({page.ended}, timeout=min(left, LOOK_EVERY))
            if page.ended.done():
                return page.ended.result()
            if sum(held for *_, held in _processes(self.pid)) > MEMORY:
                await self._stop()
                return "size"
        return "time"

    async def _take(self, page: Tab, rendered: Rendered, until: float) -> None:
        """What stands there; 'time' when that cannot be told in time."""
        cut, rendered.cut = rendered.cut, "time"
        if cut:
            page.interrupt()
        async with asyncio.timeout_at(max(until, asyncio.get_running_loop().time() + SALVAGE)):
            html, where, only_a_part = await page.serialised()
        rendered.cut = "size" if only_a_part else cut
        if where.startswith(("http://", "https://")):
            rendered.html, rendered.url = html, where

    async def _start(self) -> Pipe:
        await asyncio.to_thread(_prepare, self._profile)
        alone = await asyncio.to_thread(_alone)
        self.pid, pipe = await start([*alone, self._path, *self._flags()], _environment(self._profile))
        self._pipe, self._pages, self._seen = pipe, 0, 0.0
        self._sessions.clear()
        pipe.listeners[""] = self._attached
        try:
            async with asyncio.timeout(START):
                product = (await pipe.command("Browser.getVersion"))["product"]
                await pipe.command("Target.setAutoAttach", HOLD)
        except (TimeoutError, BrowserGone, CommandRefused) as fault:
            await self._stop()
            raise BrowserGone(f"{self._path} is no browser that starts here: {fault or 'no answer'}") from fault
        self._windowless = {} if product.startswith(SHELL) else {"hidden": True, "background": True}
        return pipe

    def _flags(self) -> Iterator[str]:
        yield from FLAGS
        yield f"--user-data-dir={self._profile / 'data'}"
        yield f"--user-agent={self._user_agent}"
        if not self._sandbox:
            yield "--no-sandbox"
        if not SHARED_MEMORY.is_dir() or shutil.disk_usage(SHARED_MEMORY).free < ENOUGH_SHARED:
            yield "--disable-dev-shm-usage"

    def _attached(self, method: str, said: Said) -> None:
        """All that could run a script is held when it appears. Ours goes on; a window that a page opened is closed."""
        if self._pipe is None:
            return
        if method == "Target.detachedFromTarget" and said["sessionId"] in self._pipe.listeners:
            self._pipe.listeners[said["sessionId"]]("Inspector.detached", said)
        elif method == "Target.attachedToTarget":
            target = said["targetInfo"]
            if target.get("openerId"):
                self._pipe.command("Target.closeTarget", {"targetId": target["targetId"]})
            elif target["type"] in ("page", "other"):
                self._sessions[target["targetId"]] = said["sessionId"]

    async def _stop(self) -> None:
        pid, pipe, self.pid, self._pipe = self.pid, self._pipe, 0, None
        if pid == 0 or pipe is None:
            return
        processes = list(_processes(pid))
        self._spent += max(self._seen, sum(spent for _, spent, _ in processes))
        self._seen = 0.0
        pipe.close()
        await end(pid, [process for process, *_ in processes])


def find_browser(configured: str) -> str | None:
    """Where the browser is: where the settings say, or on the PATH; None when there is none."""
    if not configured:
        return next(filter(None, map(shutil.which, NAMES)), None)
    found = shutil.which(configured)
    if found is None:
        raise ConfigError(
            f"[render] browser: {configured} is no program that can be run; name the path of a Chromium or Chrome,"
            " leave the setting out to have one found on the PATH, or set share = 0 to do without"
        )
    return found


def _prepare(profile: Path) -> None:
    """A profile in which nothing has happened yet, and programs that do nothing."""
    shutil.rmtree(profile, ignore_errors=True)
    programs = profile / "bin"
    programs.mkdir(parents=True)
    nothing = shutil.which("false") or "/bin/false"
    for name in HANDLERS:
        (programs / name).symlink_to(nothing)
    preferences = profile / "data" / "Default" / "Preferences"
    preferences.parent.mkdir(parents=True)
    preferences.write_text(json.dumps(PREFERENCES))


def _alone() -> list[str]:
    """What starts a program without any network, where the system lets us: in a namespace that has none."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return []
    command = [unshare, "--net", "--map-current-user"]
    tried = subprocess.run([*command, "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return command if tried.returncode == 0 else []


def _environment(profile: Path) -> dict[str, str]:
    """Little of ours: what runs scripts of strangers need not know our keys."""
    path = f"{profile / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {"PATH": path, "HOME": str(profile), "LANG": "C.UTF-8", "TZ": "UTC"}


def _processes(session: int) -> Iterator[tuple[int, float, int]]:
    """Of every process of a session: its id, CPU seconds (with those of its ended children) and bytes of memory."""
    if session == 0 or not os.path.isdir("/proc/self"):
        return
    tick, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", "rb", buffering=0) as stat:
            # After the name, which may hold anything: the session is the 4th field, times 12th to 15th, memory 22nd.
            fields = stat.read(1024).rpartition(b")")[2].split()
            if int(fields[3]) == session:
                yield int(entry), sum(map(int, fields[11:15])) / tick, int(fields[21]) * page
