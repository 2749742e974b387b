"""The browser sends nothing, starts nothing and does not outlive us."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from browsers import Bench, Listener, a_browser, bench, html, script

import harvestman
from harvestman.render import browser
from harvestman.render.tab import HOLD

pytestmark = pytest.mark.slow

EVERY_WAY = """
const at = '%(at)s', all = [];
const attempt = call => { try { all.push(call()) } catch (fault) {} };
const add = (name, attributes) => document.body.appendChild(Object.assign(document.createElement(name), attributes));
attempt(() => fetch(at + '/fetch').catch(() => 0));
attempt(() => fetch(at + '/no-cors', {mode: 'no-cors', method: 'POST', keepalive: true}).catch(() => 0));
attempt(() => { const ask = new XMLHttpRequest(); ask.open('GET', at + '/xhr'); ask.send() });
attempt(() => { const ask = new XMLHttpRequest(); ask.open('GET', at + '/sync', false); ask.send() });
attempt(() => new WebSocket(at.replace('http', 'ws') + '/socket'));
attempt(() => new WebTransport(at.replace('http:', 'https:') + '/transport'));
attempt(() => new EventSource(at + '/events'));
attempt(() => navigator.sendBeacon(at + '/beacon', 'x'));
attempt(() => import(at + '/module.js').catch(() => 0));
attempt(() => new Worker('/worker.js'));
attempt(() => new SharedWorker('/shared.js'));
attempt(() => navigator.serviceWorker.register('/service.js').catch(() => 0));
attempt(() => window.open(at + '/window'));
attempt(() => add('a', {href: at + '/clicked', target: '_blank', ping: at + '/ping'}).click());
attempt(() => add('a', {href: at + '/download', download: 'x'}).click());
attempt(() => add('img', {src: at + '/image'}));
attempt(() => new Image().src = at + '/image2');
attempt(() => add('video', {src: at + '/video', preload: 'auto'}));
attempt(() => add('audio', {src: at + '/audio', preload: 'auto'}));
attempt(() => add('embed', {src: at + '/embed'}));
attempt(() => add('object', {data: at + '/object'}));
attempt(() => add('iframe', {src: at + '/frame'}));
attempt(() => add('iframe', {srcdoc: `<img src="${at}/inner"><script>fetch('${at}/inner')</scr` + `ipt>`}));
attempt(() => add('style', {textContent: `@import "${at}/import.css"; p { background: url(${at}/back.png) }`}));
for (const rel of ['stylesheet', 'preload', 'prefetch', 'prerender', 'modulepreload', 'preconnect', 'dns-prefetch',
                   'manifest', 'icon', 'next']) {
    attempt(() => add('link', {rel, href: at + '/link-' + rel, as: 'script'}));
}
for (const rule of ['prerender', 'prefetch']) {
    const textContent = JSON.stringify({[rule]: [{source: 'list', urls: [at + '/' + rule]}]});
    attempt(() => add('script', {type: 'speculationrules', textContent}));
}
const call = async Peer => {
    const urls = ['stun:%(host)s', 'turn:%(host)s?transport=udp', 'turn:%(host)s?transport=tcp'];
    const peer = new Peer({iceServers: [{urls, username: 'u', credential: 'c'}]});
    peer.createDataChannel('x');
    const offer = await peer.createOffer();
    await peer.setLocalDescription(offer);
    const [address, port] = '%(host)s'.split(':');
    const sdp = offer.sdp.replace(/a=setup:actpass/g, 'a=setup:active');
    await peer.setRemoteDescription({type: 'answer', sdp}).catch(() => 0);
    await peer.addIceCandidate({candidate: `candidate:1 1 udp 2122260223 ${address} ${port} typ host`, sdpMid: '0'});
};
attempt(() => call(window.RTCPeerConnection || window.webkitRTCPeerConnection));
attempt(() => call(add('iframe', {}).contentWindow.RTCPeerConnection));
for (const sandbox of ['', 'allow-scripts']) for (const kind of ['srcdoc', 'src']) attempt(() => {
    const text = '<script>const call = ' + call + '; call(window.RTCPeerConnection)</scr' + 'ipt>';
    const frame = document.createElement('iframe');
    if (sandbox) frame.sandbox = sandbox;
    frame[kind] = kind == 'src' ? 'data:text/html,' + encodeURIComponent(text) : text;
    document.body.append(frame);
});
setTimeout(() => { document.title = 'tried ' + all.length }, 2000);
"""
LEAVING = """
attempt(() => { const form = add('form', {method: 'post', action: at + '/form'}); form.submit() });
setTimeout(() => { location = 'mailto:somebody@example.test' }, 100);
setTimeout(() => { location = 'made-up:address' }, 200);
setTimeout(() => { add('meta', {httpEquiv: 'refresh', content: '0; url=' + at + '/refresh'}) }, 300);
setTimeout(() => { location = at + '/location' }, 1000);
"""
PRELOADS = "</a.js>; rel=preload; as=script, <{at}>; rel=preconnect"


def attempts(port: int, leaving: str = "") -> str:
    return (EVERY_WAY + leaving) % {"at": f"http://127.0.0.1:{port}", "host": f"127.0.0.1:{port}"}


@pytest.fixture
def no_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    """The walls are to stand by themselves: not every system has namespaces for everybody."""
    monkeypatch.setattr(browser, "_alone", list)


@pytest.mark.usefixtures("no_namespace")
def test_no_way_leads_to_the_network(tmp_path: Path) -> None:
    """The page is at the listener's own address, or at another site's; none of its requests is answered."""
    with bench(tmp_path / "profile", seconds=5.0) as made:
        listener = Listener()
        made.run(listener.listen)
        at = f"http://127.0.0.1:{listener.port}"
        worker = script(f"importScripts('{at}/part.js')")
        for base in (at, "https://example.test"):
            page = html("<p>page", attempts(listener.port, LEAVING))
            page.headers["link"] = PRELOADS.format(at=at)
            page.headers["content-security-policy-report-only"] = f"default-src 'none'; report-uri {at}/report"
            rendered = made.render(page, {f"{base}/worker.js": worker}, f"{base}/page")
            assert "<title>tried " in rendered.html
            assert rendered.leads_to.startswith(at)
            assert f"{at}/part.js" in {wanted.url for wanted in made.wanted}
        made.run(lambda: asyncio.sleep(0.3))
        assert listener.met == []


@pytest.mark.usefixtures("no_namespace")
def test_the_second_wall_stands_without_the_first(tmp_path: Path) -> None:
    """Nothing of the page is held: it is simply opened, as anybody would open it."""
    with bench(tmp_path / "profile") as made:
        listener = Listener()
        made.run(listener.listen)
        made.run(lambda: unguarded(made, f"http://127.0.0.1:{listener.port}/"))
        made.run(
            lambda: unguarded(made, "data:text/html," + quote(f"<body><script>{attempts(listener.port)}</script>"))
        )
        assert listener.met == []


def test_the_namespace_is_empty(tmp_path: Path) -> None:
    """Where there is one: the browser's process sees no interface but a loopback of its own."""
    with bench(tmp_path / "profile") as made:
        if not browser._alone():
            pytest.skip("this system has no network namespaces for us")
        made.run(made.browser.ready)
        seen = Path("/proc", str(made.browser.pid), "net", "dev").read_text().splitlines()[2:]
        assert [line.split(":")[0].strip() for line in seen] == ["lo"]


async def unguarded(made: Bench, url: str) -> None:
    pipe = await made.browser.ready()
    await pipe.command("Target.setAutoAttach", {**HOLD, "autoAttach": False})
    target = await pipe.command("Target.createTarget", {"url": url})
    await asyncio.sleep(2.5)
    await pipe.command("Target.closeTarget", target)


def test_no_program_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ones that open addresses for others are first on the PATH here; they would tell."""
    programs, told = tmp_path / "programs", tmp_path / "told"
    programs.mkdir()
    for name in ("xdg-open", "xdg-email", "gio", "gvfs-open", "sensible-browser"):
        (programs / name).write_text(f"#!/bin/sh\necho $0 $@ >> {told}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    with bench(tmp_path / "profile") as made:
        for address in ("mailto:somebody@example.test", "made-up:address", "tel:123"):
            assert "<p>page" in made.render(html("<p>page", f"location = '{address}'")).html
        made.run(lambda: asyncio.sleep(0.5))
    assert not told.exists()


PARENT = """
import asyncio, sys
from pathlib import Path
from harvestman.render.browser import Browser, Archived

async def main():
    browser = Browser(sys.argv[1], Path(sys.argv[2]), seconds=60, recycle=9, user_agent="x")
    async def provide(wanted):
        print(browser.pid, flush=True)
    page = b"<script>fetch('/x').catch(() => { while (true); })</script>"
    await browser.render("https://example.test/", Archived(200, {"content-type": "text/html"}, page), provide, 1.7e9)

asyncio.run(main())
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="processes are counted in /proc")
def test_the_browser_dies_with_us_even_while_a_page_loops(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, a_browser(), str(tmp_path / "profile")]
    source = str(Path(harvestman.__file__).parents[1])
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": source})
    assert parent.stdout is not None
    session = int(parent.stdout.readline())
    time.sleep(0.3)
    assert living(session) >= 2
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    until = time.monotonic() + 5
    while living(session) and time.monotonic() < until:
        time.sleep(0.1)
    assert living(session) == 0


def living(session: int) -> int:
    """Processes of a session that are not merely waiting to be buried."""
    count = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, _, _, its, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            count += int(its) == session and state not in "ZX"
    return count


def test_the_browser_knows_nothing_of_our_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_SECRET_KEY", "told-to-nobody")
    with bench(tmp_path / "profile") as made:
        made.run(made.browser.ready)
        assert b"told-to-nobody" not in Path("/proc", str(made.browser.pid), "environ").read_bytes()
