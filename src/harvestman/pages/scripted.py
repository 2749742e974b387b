"""Which pages are shells that only a browser can fill: told from the raw bytes and what was parsed, without a tree.

A page with text to read needs none, whatever it is built with: that is nearly every page, and all it is asked is how
long its text and lines are. One with little text is taken apart into markup and scripts, and searched for the marks of
frameworks: a root with nothing in it, an element that no browser knows, a plea for JavaScript, names of bundles.

Pages that are short but whole are left alone: forms, errors, frames, pictures, pages that lead on or were cut, those
that want to be neither shown nor followed. So are **bot challenges** ("Checking your browser", captchas): whoever sends
one has said no to robots. We never try to get past them, and rather miss a shell than render one.

CPU: 0.2 us for an ordinary page, 5 to 50 us for one that is looked at, of which no more than 28 KB are read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import Final

from harvestman.model import Parsed
from harvestman.policy.rendering import PERHAPS

_PLENTY: Final = 3_000
"""Characters of text from which on a page needs no further look ..."""
_ENOUGH: Final = 1_000
_SOME_LINKS: Final = 5
"""... and those, or so many links, with which prose does not need one either."""
_LITTLE: Final = 300
"""Characters below which there is little text on a page ..."""
_TINY: Final = 60
"""... hardly any: a title, a word about loading. Where there is no more prose, `Parsed.text` is all of the page ..."""
_NONE: Final = 25
"""... or nothing but that."""
_LINE: Final = 40
"""Characters of a line, on average, from which on a text is prose and not labels of links."""
_MANY_LINKS: Final = 10
"""With so many somebody has filled the page: then only an empty root counts."""
_ANCHORS: Final = 60
_PLACES: Final = 40
"""Links that are counted, and places that are tried: a hostile page has thousands."""
_WINDOW: Final = 20_480
_END: Final = 8_192
"""Bytes that are read from the beginning and from the end of a page: what is between them is data."""
_SCRIPTS: Final = 40
_HEAD: Final = 400
"""Scripts of a page, and bytes of each, that are looked into ..."""
_SOURCE: Final = 4_096
"""... of all of them together; and of the markup from <body> on, half as much of what is before it."""
_BODY: Final = 12_288
"""Bytes from <body> on in which a crowded page has its root."""
_LARGE: Final = 4_096
"""Bytes of inline scripts that can fill a page."""
_EMPTY: Final = "empty root"

_ROOT: Final = re.compile(
    r"""id=["']?(root|app|_+next|_+nuxt|_+gatsby|svelte|elm|swagger-ui|q-app|app-?(?:[rR]oot|mount|container)"""
    r"""|(?:main|react|vue)[-_]?(?:[aA]pp|[rR]oot))["'\s/>]"""
)
"""Where frameworks put a page: names that hardly anything else has ..."""
_LIKELY: Final = re.compile(
    r"""id=["']?((?!chat|comment|consent|cookie|dialog|drawer|fb|menu|modal|nav|overlay|popup|portal|search|toast|tooltip)"""
    r"""(?:[\w-]{1,40}[-_])?(?:[aA]pp|application|[rR]oot|mount|mount-point|spa)|\w{1,40}(?:App|Root)"""
    r"""|main|content|container|page|wrapper|view|outlet|layout)["'\s/>]""",
    re.ASCII,
)
"""... and names that count on an empty page only."""
_HOLLOW: Final = re.compile(r"(?:\s|&nbsp;|<!--(?:(?!-->).){0,500}-->)*+</", re.DOTALL)
_ELEMENT: Final = re.compile(
    r"<(?!amp-|cookie|dotlottie|ion-icon|lottie|model-)([a-z][a-z0-9]*-[a-z0-9-]+|redoc)(?=[\s>])"
)
"""One that only a script can know; not those that stand for a picture."""
_NAMED_APP: Final = re.compile(r"-(?:app|main|root|shell)$|redoc")
_FRAGMENT: Final = re.compile(r"""<meta\s+name=["']?fragment["']?\s+content=["']?!""")
_FILLED: Final = re.compile(
    r"<(?:audio|canvas|embed|form|iframe|img|object|picture|table|video|EMBED|FORM|IFRAME|IMG|OBJECT|TABLE)[\s>]"
)
_BLANK: Final = re.compile(r"<main(?:\s[^>]{0,200})?>\s*</main")
_FORM: Final = re.compile(r"<(?:form|FORM)[\s>]")
_TAG: Final = re.compile(r"<[^<>]*>")

_MARKS: Final = (
    ("ng-app", "angularjs"), ("ng-view", "angularjs"), ("ui-view", "angularjs"), ("<router-view", "vue"),
    ("<router-outlet", "angular"), ("v-cloak", "vue"), ("data-reactroot", "react"), ('rel="import"', "polymer"),
)  # fmt: skip
_FRAMEWORKS: Final = (
    ("_next/", "next"), ("__next_f", "next"), ("_nuxt/", "nuxt"), ("__NUXT", "nuxt"), ("sveltekit", "svelte"),
    ("flutter", "flutter"), ("main.dart.js", "flutter"), ("_framework/blazor", "blazor"),
    ("/static/js/main.", "react"), ("assets/vendor-", "ember"), ("__INITIAL_STATE__", "react"),
    ("remixContext", "remix"),
)  # fmt: skip
"""In the tags of scripts and their first bytes. What any bundler writes there, short pages that are whole have too."""
_FOREIGN: Final = re.compile(
    r"addthis|ampproject|analytics|/bootstrap|clarity\.ms|cloudflareinsights|cookie|counter|doubleclick|facebook"
    r"|googlesyndication|googletagmanager|gtag/|hm\.baidu|hotjar|jquery|matomo|modernizr|piwik|plausible|sharethis"
    r"|swfobject|wp-content|wp-includes|yandex"
)
"""Scripts that write no page: those that count, advertise, ask for consent, or help others."""

_JAVASCRIPT: Final = ("javascript", "java script", "java-script", "자바스크립트", "джаваскрипт", "جافا سكريبت")
_ASKS: Final = re.compile(
    r"enabl|turn(?:ed)? (?:it )?on|switch|allow|requir|needs?\b|without|must|activ|aktiv|einschalt|erforderlich|habilit"
    r"|permit|necesit|richied|abilita|attiva|nécess|inschakel|vereist|włącz|wymaga|povol|zapn|включ|требу|увімкн|etkin"
    r"|açın|bật|有効|オン|启用|啟用|开启|開啟|打开|활성|허용|켜|تفعيل|تمكين|הפעל|เปิด|सक्षम"
)
_LOADING: Final = re.compile(
    r"loading|please wait|one moment|starting|initiali|laden|lädt|chargement|cargando|carregando|caricamento|ładowanie"
    r"|загрузка|yükleniyor|加载|載入|読み込み|로딩|تحميل"
)
_ERROR: Final = re.compile(
    r"^(?:error|fehler|erreur)\b|(?<!\d)(?:40\d|50[0-4])(?!\d)|not found|forbidden|denied|unavailable|maintenance"
    r"|nicht gefunden|introuvable|no encontrad|non trovat|не найден|見つかりません|找不到"
)
_CHALLENGE_WORDS: Final = (
    "just a moment", "checking your browser", "checking the browser", "verify you", "verifying", "verify that you",
    "are human", "are a human", "not a robot", "not a bot", "a robot?", "security check", "security verif",
    "human verif", "attention required", "pardon our", "one more step", "unusual traffic", "ddos", "captcha",
    "ad blocker", "cookies to continue", "support id", "being redirected", "access to this page", "access denied",
    "kein roboter", "kein bot", "sicherheitspr", "pas un robot", "eres un robot", "un robot", "um robô", "не робот",
    "проверка браузера", "ロボット", "人机验证", "安全验证", "安全检查", "로봇이",
)  # fmt: skip
_CHALLENGE_MARKS: Final = (
    "aptcha", "cf_chl", "orchestrate/", "challenges.cloudflare", "_Incapsula_", "_pxAppId", "_sec/cp_",
    "bm-verify", "awsWaf", "awswaf", "KPSDK", "sucuri_", "anubis", "ddos-guard", "toNumbers(", "__test=",
    "acw_sc__", "arg1=", "_____tmd", "/TSPD/", "bobcmn", "geetest", "arkoselabs", "js-challenge", "__qrator",
    "rbzns",
)  # fmt: skip
"""In scripts: of Cloudflare, Imperva, PerimeterX, Akamai, AWS, Kasada, Sucuri, Anubis, DDoS-Guard, free hosts, Alibaba,
F5, GeeTest, Arkose, Qrator, Reblaze. That Cloudflare watches a page ("challenge-platform/scripts") is no challenge."""
_CHALLENGE_BOXES: Final = (
    "aptcha", "cf-browser-verif", "turnstile", "px-block", "sec-if-cpt", "challenge-", "_Incapsula_", "anubis",
)  # fmt: skip
"""The same in markup."""


@dataclass(slots=True)
class _Parts:
    """A page with its scripts taken out: each byte a character, for Python searches a str five times as fast."""

    markup: str
    heads: list[str]
    """The beginnings of its scripts: from the name of the tag on, with what is in it ..."""
    scripts: str
    """... and all of them together."""
    inline: int
    """Bytes in scripts."""


def needs_browser(parsed: Parsed, body: bytes) -> str:
    """Why a page should be rendered, in words for a person: '' if it need not, or must not.

    `body`: the content-decoded bytes that `parsed` was read from. A weak reason begins with `policy.rendering.PERHAPS`.
    """
    text, links = parsed.text, len(parsed.links)
    size = len(text)
    if size >= _PLENTY:
        return ""
    prose = size >= _LITTLE and text.count("\n") * _LINE < size
    if prose and (links >= _SOME_LINKS or size >= _ENOUGH):
        return ""
    if parsed.kind != "html" or parsed.cut or parsed.refresh is not None or (parsed.noindex and parsed.nofollow):
        return ""
    links = sum(link.kind == "a" for link in parsed.links[:_ANCHORS])  # a shell may well name its translations
    if links >= _MANY_LINKS:
        return _if_crowded(parsed, body)
    parts = _apart(body)
    if not parts.heads:
        return ""
    reason = _reason(parsed, parts, prose, links)
    return "" if not reason or _is_no_shell(parsed, parts, reason) else reason


def _if_crowded(parsed: Parsed, body: bytes) -> str:
    """Somebody has filled the page, perhaps with no more than menus around an empty root."""
    content = max(0, body.find(b"<body", 0, _WINDOW))
    root, hollow = _root(body[content : content + _BODY].decode("latin-1"), _ROOT)
    if not hollow:
        return ""
    parts = _apart(body)
    return "" if not parts.heads or _is_no_shell(parsed, parts, _EMPTY) else f"{_EMPTY}: #{root}"


def _reason(parsed: Parsed, parts: _Parts, prose: bool, links: int) -> str:
    markup, words = parts.markup, parsed.text[:_ENOUGH].lower()
    names_it = any(name in words for name in _JAVASCRIPT) or "enable JS" in parsed.text
    fallback = _in_noscript(markup) if names_it else 0
    rest = len(parsed.text) - fallback
    thin = rest < _LITTLE
    root, hollow = _root(markup, _ROOT)
    if thin and not hollow:
        likely, hollow = _root(markup, _LIKELY)
        root = likely if hollow else root
    if hollow:
        return f"{PERHAPS if prose and not thin else ''}{_EMPTY}: #{root}"
    if not thin:
        return ""
    if fallback or (names_it and _ASKS.search(words)):
        return _weighed("asks for JavaScript", rest if fallback else 0)
    if root and (rest < _NONE or (rest < _TINY and _LOADING.search(words))):
        return f"little text in #{root}"
    if _BLANK.search(markup):
        return _weighed(f"{_EMPTY}: <main>", rest)
    nothing = not words or words == parsed.title.lower() or (rest < _NONE and _LOADING.search(words) is not None)
    element, is_app = _element(markup)
    if element:
        return _weighed(f"element: <{element}>, little text", rest if is_app or nothing else _TINY)
    if _FRAGMENT.search(markup):
        return "meta fragment: asks for a snapshot"
    for mark, name in _MARKS:
        if mark in markup:
            return _weighed(f"framework: {name}, little text", rest)
    return _by_scripts(parts, rest, nothing and links == 0) or (f"{PERHAPS}little text in #{root}" if root else "")


def _by_scripts(parts: _Parts, rest: int, nothing: bool) -> str:
    """The weakest signs: no more than what a page loads, and that it has little else, or nothing."""
    tags = (head.partition(">")[0] for head in parts.heads)
    own = any("src=" in tag and not _FOREIGN.search(tag) for tag in tags)
    if not own and parts.inline < _LARGE and "import" not in parts.scripts:
        return ""
    filled = _FILLED.search(parts.markup) is not None
    for mark, name in _FRAMEWORKS:
        if mark in parts.scripts:
            return _weighed(f"framework: {name}, little text", _TINY if filled else rest)
    if filled:
        return ""
    return "no text, only scripts" if nothing else f"{PERHAPS}little text, scripts"


def _weighed(reason: str, rest: int) -> str:
    """A sign on a page that says nothing else is certain; one beside a few words is not."""
    return reason if rest < _TINY else PERHAPS + reason


def _apart(body: bytes) -> _Parts:
    """Markup and scripts of what is read of a page."""
    if len(body) > _WINDOW + _END:
        body = body[:_WINDOW] + body[-_END:]
    first, *scripts = body.decode("latin-1").split("<script", _SCRIPTS)
    markup, heads, inline = [first], [], 0
    for script in scripts:
        inside, _, after = script.partition("</script>")
        heads.append(inside[:_HEAD])
        markup.append(after)
        inline += len(inside)
    return _Parts(_shortened("".join(markup)), heads, "\n".join(heads)[:_SOURCE], inline)


def _shortened(markup: str) -> str:
    """The first bytes of its head and of its body, without styles; the last ones where there is no <body>."""
    if len(markup) <= _SOURCE:
        return markup
    content = markup.find("<body")
    if content < 0:
        content = len(markup) - _SOURCE
    head, rest = markup[: min(content, _SOURCE // 2)], markup[content:]
    if rest.find("<style", 0, _SOURCE) >= 0:
        rest = _without_styles(rest)
    return head + rest[:_SOURCE]


def _without_styles(markup: str) -> str:
    pieces = markup.split("<style", _SCRIPTS)
    return pieces[0] + "".join(piece.partition("</style")[2] for piece in pieces[1:])


def _root(markup: str, names: re.Pattern[str]) -> tuple[str, bool]:
    """The name of an element that a framework may fill, and whether there is nothing in it."""
    found = ""
    for match in islice(names.finditer(markup), _PLACES):
        inside = markup.find(">", match.end() - 1) + 1
        if inside and _HOLLOW.match(markup, inside):
            return match[1], True
        found = found or match[1]
    return found, False


def _element(markup: str) -> tuple[str, bool]:
    """An element of the page's own making with nothing in it, and whether it has the name of an application instead."""
    for match in islice(_ELEMENT.finditer(markup), _PLACES):
        name = match[1]
        is_app = _NAMED_APP.search(name) is not None
        inside = markup.find(">", match.end()) + 1
        if is_app or (inside and _HOLLOW.match(markup, inside)):
            return name[:40], is_app
    return "", False


def _in_noscript(markup: str) -> int:
    """Characters that are there for those without scripts, in a page of UTF-8 or of one byte each."""
    size = end = 0
    for _ in range(4):
        start = markup.find("<noscript", end)
        if start < 0:
            break
        end = markup.find("</noscript", start)
        if end < 0:
            break
        size += len(_TAG.sub("", markup[start:end]).encode("latin-1").decode(errors="replace").strip())
    return size


def _is_no_shell(parsed: Parsed, parts: _Parts, reason: str) -> bool:
    """Whether what looks like a shell is a form, an error, a frameset, or a gate that we do not go through."""
    markup, title = parts.markup, parsed.title.lower()
    if _ERROR.search(title) or "password" in markup or "<frameset" in markup:
        return True
    if _EMPTY not in reason and (form := _FORM.search(markup)):
        before = markup[: form.start()]
        if before.rfind("<noscript") <= before.rfind("</noscript"):
            return True
    return _is_challenge(f"{title}\n{parsed.text[:_ENOUGH].lower()}", parts)


def _is_challenge(words: str, parts: _Parts) -> bool:
    return (
        any(word in words for word in _CHALLENGE_WORDS)
        or any(mark in parts.scripts for mark in _CHALLENGE_MARKS)
        or any(mark in parts.markup for mark in _CHALLENGE_BOXES)
    )
