"""The shells of scripted hosts, the JavaScript that fills them, and the content it asks for.

Plain JavaScript, which any browser of the last ten years runs. `apps` says who has what.
"""

from __future__ import annotations

import re
from html import escape, unescape

import msgspec

from harvestman.sim.apps import CONFIG, FRAMES, LIBRARY, LOADER, SCRIPT
from harvestman.sim.hosts import App, Variety

WAIT = 500
"""Milliseconds that a late app waits."""

# -- shells

_FRAMES = (
    ('<div id="root"{key}></div>', "You need to enable JavaScript to run this app.", False),
    ('<div id="app"{key}></div>', "We're sorry but {name} doesn't work properly without JavaScript enabled.", True),
    ('<div id="__next"{key}></div>', "", False),
    ("<app-root{key}></app-root>", "Please enable JavaScript to continue using this application.", True),
)
"""Of each framework: where it puts what it makes, what it says without JavaScript, whether its scripts are in the
head."""
assert len(_FRAMES) == FRAMES


def shell(app: App, name: str, language: str, head: str, page: str, sources: list[str]) -> bytes:
    """The HTML of a page; `page` is what the shell calls it, `head` what else is in its head."""
    place, sorry, early = _FRAMES[app.frame]
    key = f' data-key="{escape(page)}"' if app.keyed else ""
    mark = ' type="module" crossorigin' if app.variety is Variety.MODULE else " defer" if early else ""
    scripts = "".join(f'<script{mark} src="{escape(source)}"></script>\n' for source in sources)
    noscript = f"<noscript>{sorry.format(name=name)}</noscript>\n" if sorry else ""
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{name}</title>\n{head}'
        f"{scripts if early else ''}</head>\n<body>\n{noscript}{place.format(key=key)}\n"
        f"{'' if early else scripts}</body>\n</html>\n"
    ).encode()


# -- scripts

_GET = {
    False: """\
  get: function (url, then) {
    fetch(url).then(function (answer) { return answer.json(); }).then(then);
  },
""",
    True: """\
  get: function (url, then) {
    var ask = new XMLHttpRequest();
    ask.onload = function () { if (ask.status === 200) { then(JSON.parse(ask.responseText)); } };
    ask.open("GET", url);
    ask.send();
  },
""",
}
_DRAW = """\
  add: function (parent, tag, text) {
    var made = document.createElement(tag);
    if (text) { made.textContent = text; }
    return parent.appendChild(made);
  },
  draw: function (place, data) {
    var article = sim.add(sim.add(place, "main"), "article"), list = sim.add(sim.add(place, "nav"), "ul");
    document.title = data.title;
    sim.add(article, "h1", data.headline);
    data.parts.forEach(function (part) { sim.add(article, part[0], part[1]); });
    data.links.forEach(function (link) {
      var made = sim.add(sim.add(list, "li"), "a", link[1]);
      made.setAttribute("href", link[0]);
      if (link[2]) { made.setAttribute("rel", link[2]); }
    });
  }
"""
_LOADER = """\
(function () {
  var script = document.createElement("script");
  script.src = "%s";
  document.head.appendChild(script);
})();
"""
_BY = {
    True: '"/pages/" + place.dataset.key + ".json"',
    False: '"/content?path=" + encodeURIComponent(location.pathname + location.search)',
}


def _library(app: App) -> str:
    return f"window.sim = {{\n{_GET[app.xhr]}{_DRAW}}};\n"


def _fill(app: App, config: str) -> str:
    """What is done to a page."""
    draw = "sim.draw(place, data);"
    if app.variety is Variety.LATE:
        draw = f"setTimeout(function () {{ {draw} }}, {WAIT});"
    fill = f"sim.get(api + {_BY[app.keyed]}, function (data) {{ {draw} }});"
    if config:
        start = f'sim.get("{config}", function (config) {{ fill(config.api); }});'
    else:
        start = 'fill("/api");'
    return (
        '(function () {\n  var place = document.querySelector("#root, #app, #__next, app-root");\n'
        f"  function fill(api) {{\n    {fill}\n  }}\n  {start}\n}})();\n"
    )


def own(app: App, path: str, config: str) -> bytes:
    """A script on a scripted host itself; `config` is the address of the configuration, where it is asked for."""
    if path == LOADER:
        return (_LOADER % SCRIPT).encode()
    needs = "" if app.variety is Variety.CDN else _library(app)
    return (needs + _fill(app, config)).encode()


def shared(path: str) -> bytes:
    """What a host has for those of other sites."""
    if path == CONFIG:
        return b'{"api": "/api/v2"}\n'
    app = LIBRARY[path]
    return (_library(app) + ("" if path.startswith("/libs/sim-") else _fill(app, ""))).encode()


# -- content

_TITLE = re.compile(r"<title>([^<]*)</title>")
_HEADLINE = re.compile(r"<h1>([^<]*)</h1>")
_PART = re.compile(r"<(h2|p)\b[^>]*>([^<]*(?:<(?!/\1>)[^<]*)*)")
_LINK = re.compile(r'<a href="([^"]*)"(?: rel="([^"]*)")?>([^<]*)</a>')
_TAG = re.compile(r"<[^>]+>")


class Content(msgspec.Struct):
    """What a script makes a page of."""

    title: str
    headline: str
    parts: list[tuple[str, str]]
    """Paragraphs and headings: the element, its text."""
    links: list[tuple[str, str, str]]
    """Address, text, relation."""


def content(html: bytes) -> bytes:
    """The JSON a page comes as, from the HTML it would have been: so both have the same text and links."""
    page = html.decode()
    title, headline = _TITLE.search(page), _HEADLINE.search(page)
    if title is None or headline is None:
        raise ValueError("a page of the simulated web has a title and a headline")
    text = page[headline.end() : page.index("</main>", headline.end())]
    return msgspec.json.encode(
        Content(
            unescape(title[1]),
            unescape(headline[1]),
            [(tag, unescape(_TAG.sub("", inside))) for tag, inside in _PART.findall(text)],
            [(unescape(href), unescape(words), rel) for href, rel, words in _LINK.findall(page)],
        )
    )
