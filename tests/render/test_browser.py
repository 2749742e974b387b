"""A real browser, and what it makes of pages that are built by scripts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsers import AT, SECONDS, SLACK, URL, Bench, bench, data, html, script

from harvestman.errors import ConfigError
from harvestman.render.browser import Archived, Browser, Wanted, find_browser
from harvestman.render.cdp import BrowserGone

pytestmark = pytest.mark.slow

APP = """
fetch('/api/list.json').then(answer => answer.json()).then(list => setTimeout(() => {
    for (const name of list) {
        const link = document.body.appendChild(document.createElement('a'));
        link.href = '/item/' + name;
        link.textContent = name;
    }
    document.title = new Date().toISOString();
}, 3000));
"""
BUILT = {
    "https://example.test/app.js": script(APP),
    "https://example.test/api/list.json": data('["a", "b"]'),
}
SHELL = Archived(200, {"content-type": "text/html"}, b"<!doctype html><body><script src=/app.js></script>")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with bench(tmp_path_factory.mktemp("browser") / "profile") as made:
        yield made


def test_a_page_built_by_a_script(shared: Bench) -> None:
    rendered = shared.render(SHELL, BUILT)
    assert rendered.html.startswith("<!DOCTYPE html><html><head>")
    assert '<a href="/item/a">a</a><a href="/item/b">b</a></body></html>' in rendered.html
    assert (rendered.url, rendered.leads_to, rendered.cut) == (URL, "", "")
    assert shared.wanted == [
        Wanted("https://example.test/app.js", "script"),
        Wanted("https://example.test/api/list.json", "xhr"),
    ]
    assert rendered.seconds < 3.0  # though it waits for three seconds
    assert "2023-11-14T22:13:2" in rendered.html  # the moment it was fetched, and three seconds


def test_two_renderings_are_the_same(shared: Bench) -> None:
    frames = html("", "let n = 0; (function frame() { document.title = ++n; requestAnimationFrame(frame) })()")
    assert shared.render(frames).html == shared.render(frames).html


def test_what_is_not_there_is_done_without(shared: Bench) -> None:
    rendered = shared.render(SHELL, {"https://example.test/app.js": script(APP + "document.body.append('still here')")})
    assert "still here" in rendered.html
    assert "/item/" not in rendered.html
    assert rendered.cut == ""


def test_what_nobody_looks_at_is_not_asked_for(shared: Bench) -> None:
    body = (
        "<link rel=stylesheet href=/a.css><link rel=manifest href=/m.json><link rel=icon href=/i.ico><img src=/i.png>"
        "<link rel=prefetch href=/p.js><video src=/v.mp4></video><iframe src=/frame></iframe><object data=/o></object>"
        "<style>@font-face { font-family: f; src: url(/f.woff) } p { font-family: f }</style><p>text"
    )
    posts = "fetch('/post', {method: 'POST', body: 'x'}).catch(() => document.body.append('refused'));"
    rendered = shared.render(html(body, posts + "navigator.sendBeacon('/beacon', 'x'); new EventSource('/events')"))
    assert shared.wanted == []
    assert "refused" in rendered.html


def test_where_it_goes_and_where_it_wants_to_go(shared: Bench) -> None:
    went = shared.render(html("", "history.pushState({}, '', '/there?x=1')"))
    assert (went.url, went.leads_to) == ("https://example.test/there?x=1", "")
    wants = shared.render(html("<p>stays", "location = 'https://other.test/next'"))
    assert (wants.url, wants.leads_to) == (URL, "https://other.test/next")
    assert "<p>stays" in wants.html
    refreshes = shared.render(html("<meta http-equiv=refresh content='2; url=/later'>"))
    assert refreshes.leads_to == "https://example.test/later"
    assert shared.render(html("", "location.reload()")).leads_to == ""
    posts = html("<form method=post action=/post><input name=a></form>", "document.forms[0].submit()")
    assert shared.render(posts).leads_to == ""


def test_what_a_reader_may_not_read_a_script_may_not_either(shared: Bench) -> None:
    ask = """
    const ask = (path, options) => fetch('https://api.test/' + path, options).then(answer => answer.text());
    ask('open').then(text => document.body.append('[open ' + text + ']'));
    ask('closed').catch(() => document.body.append('[closed]'));
    ask('open', {headers: {'x-key': '1'}}).then(text => document.body.append('[preflight ' + text + ']'));
    ask('closed', {headers: {'x-key': '1'}}).catch(() => document.body.append('[no preflight]'));
    """
    answers = {
        "https://api.test/open": data("1", access_control_allow_origin="*"),
        "https://api.test/closed": data("2"),
    }
    rendered = shared.render(html("", ask), answers)
    said = rendered.html.rpartition("</script>")[2]
    assert {f"{part}]" for part in said.split("]")[:-1]} == {"[open 1]", "[closed]", "[preflight 1]", "[no preflight]"}


def test_modules_workers_redirects_and_shadows(shared: Bench) -> None:
    page = """
    import('/module.js').then(module => document.body.append(module.default));
    new Worker('/worker.js').onmessage = said => document.body.append(said.data);
    fetch('/moved').then(answer => answer.text()).then(text => document.body.append(text));
    const host = document.body.appendChild(document.createElement('div'));
    host.attachShadow({mode: 'open'}).innerHTML = '<a href=/in-the-shadow>s</a>';
    new IntersectionObserver(() => document.body.append('<seen>')).observe(host);
    """
    answers = {
        "https://example.test/module.js": script("export default '<module>'"),
        "https://example.test/worker.js": script("importScripts('/part.js'); postMessage(part)"),
        "https://example.test/part.js": script("part = '<worker>'"),
        "https://example.test/moved": Archived(302, {"location": "/new"}, b""),
        "https://example.test/new": data("<redirect>"),
    }
    text = shared.render(html("", page), answers).html.rpartition("</script>")[2]
    for part in (
        "&lt;module&gt;",
        "&lt;worker&gt;",
        "&lt;redirect&gt;",
        "&lt;seen&gt;",
        '<a href="/in-the-shadow">s</a>',
    ):
        assert part in text
    assert "<template" not in text  # where nobody would look for a link


def test_answers_that_no_browser_would_take(shared: Bench) -> None:
    odd = Archived(999, {"content-type": "text/plain", "x-odd": "a\r\nb\0é", "bad name": "x"}, b"odd")
    ask = "fetch('/odd').then(() => document.body.append('[taken]'), () => document.body.append('[failed]'))"
    assert shared.render(html("", ask), {"https://example.test/odd": odd}).cut == ""
    nothing = shared.render(Archived(204, {}, b""))
    assert (nothing.html, nothing.url) == ("", URL)


def test_a_page_cannot_change_how_it_is_read(shared: Bench) -> None:
    lies = (
        "Object.defineProperty(Element.prototype, 'outerHTML', {get() { while (true); }}); Array.prototype.push = null"
    )
    assert "<p>truth" in shared.render(html("<p>truth", lies)).html


def test_half_a_character_is_no_reason_to_stop(shared: Bench) -> None:
    rendered = shared.render(html("", "alert('\\ud800'); document.body.append('a\\ud800b')"))
    assert "a\ufffdb" in rendered.html


def test_a_document_too_long_is_cut(shared: Bench) -> None:
    rendered = shared.render(html("<div hidden id=x></div>", "x.append('y'.repeat(13_000_000))"))
    assert (rendered.cut, len(rendered.html)) == ("size", 12_000_000)


def test_nothing_is_carried_to_the_next_page(shared: Bench) -> None:
    leave = """
    const before = document.cookie + localStorage.getItem('a') + name;
    document.cookie = 'a=1; max-age=1000'; localStorage.setItem('a', '2'); name = '3';
    document.title = '[' + before + ']';
    """
    assert all("[null]" in shared.render(html("", leave)).html for _ in range(2))


def test_what_provide_raises_is_raised(shared: Bench) -> None:
    async def provide(wanted: Wanted) -> Archived | None:
        raise LookupError(wanted.url)

    with pytest.raises(LookupError, match=r"app\.js"):
        shared.run(lambda: shared.browser.render(URL, SHELL, provide, AT))
    assert "/item/a" in shared.render(SHELL, BUILT).html


def test_time_is_counted(shared: Bench) -> None:
    before = shared.browser.cpu
    shared.render(SHELL, BUILT)
    assert 0.02 < shared.browser.cpu - before < 5


HOSTILE = {
    "an endless loop": "while (true);",
    "endless microtasks": "(function again() { Promise.resolve().then(again) })()",
    "endless messages": "const c = new MessageChannel(); c.port1.onmessage = () => c.port2.postMessage(1); "
    "c.port2.postMessage(1)",
    "an endless worker": "new Worker(URL.createObjectURL(new Blob(['while (true) postMessage(1)'])))",
    "endless dialogs": "while (true) alert('hello')",
    "endless writing": "while (true) document.write('<p>more')",
    "an endless document": "while (true) document.body.append(document.createElement('p'))",
    "endless reloading": "setInterval(() => location.reload(), 0); location.reload()",
    "a frame of its own": "document.body.append(Object.assign(document.createElement('iframe'), "
    "{srcdoc: '<script>while (true);</scr' + 'ipt>'}))",
    "endless requests": "let n = 0; (async () => { while (true) await fetch('/x' + n++).catch(() => 0) })()",
    "endless windows": "setInterval(() => { const a = document.createElement('a'); a.href = '/x'; a.target = '_blank'; "
    "a.click() }, 0)",
    "huge strings": "const all = []; while (true) all.push('x'.repeat(2 ** 29 - 24) + all.length)",
    "huge memory": "const all = []; while (true) all.push(new Uint8Array(1 << 26).fill(1))",
    "a debugger statement": "while (true) { debugger }",
    "a busy farewell": "onpagehide = onunload = onbeforeunload = () => { while (true); }",
    "its own end": "window.close(); location = 'about:blank'",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_whatever_it_does_it_ends_in_time_and_the_next_page_is_fine(shared: Bench, kind: str) -> None:
    rendered = shared.render(html("<p>begun", HOSTILE[kind]))
    assert rendered.seconds < SECONDS + SLACK
    assert rendered.html == "" or "<p>begun" in rendered.html
    assert "/item/a" in shared.render(SHELL, BUILT).html


def test_an_interrupted_page_gives_what_stands_there(shared: Bench) -> None:
    rendered = shared.render(html("<p>begun", "while (true);"))
    assert rendered.cut == "time"
    assert "<p>begun" in rendered.html


def test_a_new_browser_after_some_pages_and_after_death(tmp_path: Path) -> None:
    with bench(tmp_path / "profile", recycle=2) as made:
        pids = []
        for _ in range(4):
            made.run(made.browser.ready)
            pids.append(made.browser.pid)
            assert made.render(html("x")).cut == ""
        assert pids[0] == pids[1] != pids[2] == pids[3]
        made.run(made.browser.ready)
        before = made.browser.cpu
        os.kill(made.browser.pid, 9)
        assert made.render(html("x")).cut == "crash"
        assert "x" in made.render(html("x")).html
        assert made.browser.cpu >= before


def test_a_browser_must_be_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\[render\] browser: .*nothing-here is no program .*share = 0"):
        find_browser(str(tmp_path / "nothing-here"))
    with bench(tmp_path / "profile") as made:
        made.browser = Browser("/bin/false", tmp_path / "profile", seconds=1, recycle=1, user_agent="x")
        with pytest.raises(BrowserGone, match="/bin/false is no browser that starts here"):
            made.render(html("x"))
