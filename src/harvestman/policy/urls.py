"""The two forms of a URL: the one we request and the key we deduplicate by.

Everything here runs once per link, some sixty times a page. CPU time per call on the reference machine: `resolve`
0.9 us (1.5 with a query), `key` 0.1 us (1.0 with a query), `host_of`, `origin_of`, `path_of` 0.2 us. The parser is
url-py (Servo's `url`): 0.6 us a join, against 2.7 us for ada-url. A regular expression that recognises hrefs which
need no parsing costs half of that join; the only short cut is for what was met before (`Base`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Container
from typing import Final

import xxhash
from url import URL, IdnaError, URLError

from harvestman.errors import UrlError
from harvestman.model import HostKey, Origin, Partition, SiteKey, UrlId

MAX_URL: Final = 8192
"""Longer than any server takes. The setting traps.url_length refuses sooner, and says so in the record."""

_TRACKING_NAMES = """
    _ga _gac _gl gad_campaignid gad_source gbraid gclid gclsrc wbraid dclid srsltid
    fbclid fb_action_ids fb_action_types fb_source igsh igshid mibextid
    msclkid yclid ysclid _openstat twclid ttclid epik li_fat_id irclickid zanpid
    mc_cid mc_eid mkt_tok _hsenc _hsmi hsCtaTracking _ke vero_conv vero_id oly_anon_id oly_enc_id
    ml_subscriber ml_subscriber_hash rb_clickid s_cid wickedid
"""
TRACKING: Final = frozenset(_TRACKING_NAMES.split())
"""Parameters that name the visitor's way to a page, never the page. `utm_*` goes as well."""

_TRACKED = re.compile(r"[?&](?=[_defghilmorstuvwyz])(?:utm_|" + "|".join(sorted(TRACKING, reverse=True)) + ")")
"""Whether a look at the single parameters is worth while. The look-ahead makes it a third faster."""

_SURROGATES = re.compile(r"[\ud800-\udfff]")
_WEB = ("http://", "https://")
_NOT_WEB = ("mailto:", "javascript:", "tel:", "data:")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")
_SLASHES = re.compile(r"[\x00-\x20]*(?:[/\\][\t\n\r]*){3,}")
_AUTHORITY = re.compile(r"[^/?#\\]*//[^/?#\\]*")
_CREDENTIALS = re.compile(r"(^https?:[/\\]?|(?<![/\\])[/\\]{2,}+)[^/\\?#]+@", re.IGNORECASE)
_PUNYCODE = re.compile(r"xn--", re.IGNORECASE)
_MASK = "xq--zq--"

_UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_HEX = "0123456789abcdefABCDEF"
_ESCAPES: Final = {
    high + low: chr(code) if chr(code) in _UNRESERVED else f"%{code:02X}"
    for high in _HEX
    for low in _HEX
    for code in (int(high + low, 16),)
}
"""Each %XX in its canonical spelling: unreserved characters decoded, hex digits in upper case."""


class Base:
    """The URL of a page, against which its links are resolved."""

    __slots__ = ("_folder", "_join", "_origin", "known", "url")

    def __init__(self, url: str, known: Container[str] = ()) -> None:
        """Raise UrlError when `url` is not one we could have fetched.

        `known`: request forms met before. What makes one of them by mere joining of strings is not parsed again:
        three of four links of a page, 0.5 us instead of 1.1.
        """
        self.url: str = request_form(url)
        self.known = known
        self._join = _joiner(self.url)
        self._origin = origin_of(self.url)
        self._folder = self.url[: self.url.partition("?")[0].rindex("/") + 1]

    def resolve(self, href: str) -> str | None:
        """Return the request form of `href`, or None for anything a crawler cannot fetch. Never raises."""
        if "#" in href:
            href = href[: href.index("#")]
            if not href:
                return None
        if self.known and (guess := self._joined(href)) in self.known:
            return guess
        if href.startswith(_NOT_WEB):
            return None
        try:
            url = str(self._join(href))
        except (URLError, UnicodeEncodeError):
            return self._resolve_odd(href)
        if "?" in url:
            url = _without_tracking(url)
        if len(url) > MAX_URL or not url.startswith(_WEB) or ("@" in url and "@" in url.split("/", 3)[2]):
            return None
        return _without_dot(url) if "./" in url or ".:" in url else url

    def _joined(self, href: str) -> str:
        """What `href` means if it needs no parsing. Whatever does need it would not be a request form by this."""
        if href[:1] == "/":
            return self._origin + href if href[:2] != "//" else ""
        if ":" in href:
            return href
        return self._folder + href if href and href[0] != "?" else ""

    def _resolve_odd(self, href: str) -> str | None:
        try:
            return _request(_href(href, self.url))
        except UrlError:
            return None


def request_form(text: str) -> str:
    """Return the form of `text` that we request; raise UrlError with the reason when there is none."""
    return _request(_href(text, None))


def from_seed(text: str) -> str:
    """Return the request form of a seed as people write it: 'example.org/path' means https."""
    text = text.strip()
    if not text:
        raise UrlError("an empty line is not a URL")
    return request_form(text if _SCHEME.match(text) else "https://" + text)


def parse_href(text: str, base: str | None) -> str | None:
    """Return the WHATWG serialisation of `text` against `base`, before anything of ours is applied; None on failure."""
    try:
        return _href(text, base)
    except UrlError:
        return None


def shown(text: str) -> str:
    """Return the beginning of what was to be a URL, for a message or a record: without the password it may carry."""
    return _CREDENTIALS.sub(r"\1***@", text)[:80]


def key(url: str) -> str:
    """Return the form by which a request form is known to be seen: one key for spellings of one page."""
    if "?" in url or "%" in url:
        return _canonical_key(url)
    if url[-1] != "/":
        return url
    bare = url.rstrip("/")
    return bare if "/" in bare[8:] else origin_of(url) + "/"


# NewTypes are called at run time (0.1 us); on this path they are promised by the annotation alone.


def host_of(url: str) -> HostKey:
    """Return the host of a request form: no port, no brackets."""
    host = url.split("/", 3)[2]
    if ":" in host:
        host = host[1 : host.index("]")] if host[0] == "[" else host[: host.index(":")]
    return host  # type: ignore[return-value]  # hot path, see above


def origin_of(url: str) -> Origin:
    """Return scheme://host[:port] of a request form."""
    return url[: url.find("/", 8)]  # type: ignore[return-value]  # hot path, see above


def path_of(url: str) -> str:
    """Return path and query of a request form, as robots.txt matches them."""
    return url[url.find("/", 8) :]


def port_of(url: str) -> int:
    """Return the port a request form is fetched from."""
    _, colon, port = url.split("/", 3)[2].rpartition(":")
    if colon and port[-1] != "]":
        return int(port)
    return 443 if url[4] == "s" else 80


def url_hash(key: str) -> str:
    """Return the public name of a URL: SHA-256 of its key, in hex."""
    return hashlib.sha256(key.encode()).hexdigest()


def url_id(key: str, partition: Partition) -> UrlId:
    """Return the name of a URL in State."""
    return UrlId(partition.to_bytes(2) + xxhash.xxh3_128_digest(key.encode()))


def partition_of(site: SiteKey, count: int) -> Partition:
    """Return the partition that owns a site, out of `count`."""
    return Partition(xxhash.xxh3_64_intdigest(site.encode()) % count)


def _request(href: str) -> str:
    """Return a parsed href without fragment and tracking; raise UrlError for what we never fetch."""
    if "#" in href:
        href = href[: href.index("#")]
    if "?" in href:
        href = _without_tracking(href)
    if len(href) > MAX_URL:
        raise UrlError(f"longer than {MAX_URL} characters: {shown(href)}...")
    if not href.startswith(_WEB):
        raise UrlError(f"only http and https can be crawled, not {shown(href)!r}")
    if "@" in href and "@" in href.split("/", 3)[2]:
        raise UrlError("a URL with a user name or password is not crawled; remove what stands before the '@'")
    return _without_dot(href)


def _without_dot(url: str) -> str:
    """Drop the dot that may end a host: 'example.com.' is 'example.com', one server with one politeness clock.

    Of several dots none goes: such a host has an empty label, exists nowhere, and must not become one that does.
    """
    end = url.find("/", 8)
    host, colon, port = url[:end].rpartition(":")
    if len(host) < 6:  # that colon was the scheme's
        host, colon, port = url[:end], "", ""
    if host[-1] != "." or host[-2] in "./":
        return url
    return f"{host[:-1]}{colon}{port}{url[end:]}"


def _without_tracking(href: str) -> str:
    start = href.index("?")
    if _TRACKED.search(href, start):
        kept = [p for p in href[start + 1 :].split("&") if not _is_tracking(p)]
        href = f"{href[:start]}?{'&'.join(kept)}"
    return href[:start] if len(href) == start + 1 else href


def _is_tracking(parameter: str) -> bool:
    return parameter.partition("=")[0] in TRACKING or parameter.startswith("utm_")


def _href(text: str, base: str | None) -> str:
    """Parse as the WHATWG standard says, also where url-py alone would refuse; raise UrlError."""
    text = _SURROGATES.sub("\ufffd", text)
    if base is not None and base.startswith(_WEB) and (run := _SLASHES.match(text)):
        # In a web URL any run of slashes introduces the host.
        text = "//" + text[run.end() :]
    try:
        return str(URL.parse(text) if base is None else _joiner(base)(text))
    except IdnaError as failure:
        return _href_without_idna(text, base, failure)
    except URLError as failure:
        raise _refusal(text, failure) from failure


def _refusal(text: str, failure: URLError) -> UrlError:
    return UrlError(f"not a URL ({failure}): {shown(text)!r}")


def _joiner(base: str) -> Callable[[str], object]:
    """Return what resolves references against `base`; str() of its results are hrefs."""
    try:
        return URL.parse(base).join
    except IdnaError:
        masked = URL.parse(_masked(base))
        return lambda text: _unmasked(str(masked.join(text)))
    except URLError as failure:
        raise _refusal(base, failure) from failure


def _href_without_idna(text: str, base: str | None, failure: URLError) -> str:
    """Keep a host whose punycode is not valid: the standard lower-cases it and asks no more of it."""
    masked = _masked(text)
    if masked == text:
        raise _refusal(text, failure) from failure
    try:
        return _unmasked(str(URL.parse(masked) if base is None else _joiner(base)(masked)))
    except URLError as still:
        raise _refusal(text, still) from still


def _masked(text: str) -> str:
    authority = _AUTHORITY.match(text)
    if authority is None or not authority[0].isascii():
        return text
    return _PUNYCODE.sub(_MASK, authority[0]) + text[authority.end() :]


def _unmasked(href: str) -> str:
    end = href.find("/", 8)
    return href[:end].replace(_MASK, "xn--") + href[end:]


def _canonical_key(url: str) -> str:
    path, _, query = url.partition("?")
    start = path.find("/", 8)
    if "%" in path:
        path = path[:start] + _canonical_escapes(path[start:])
    if path[-1] == "/":
        path = path.rstrip("/")
        path = path if len(path) > start else path[:start] + "/"
    if "%" in query:
        # A request form has no tracking parameters left but those whose names were escaped.
        query = "&".join(p for p in _canonical_escapes(query).split("&") if not _is_tracking(p))
    if "&" in query:
        query = "&".join(sorted(query.split("&"))).lstrip("&")
    return f"{path}?{query}" if query else path


def _canonical_escapes(text: str) -> str:
    """Spell every %XX canonically, in one pass that a second one would not change.

    After a '%' that begins no escape ('%4%31') nothing is decoded: the digit would complete it into a new one.
    """
    head, *pieces = text.split("%")
    written = [head]
    broken = False
    for piece in pieces:
        pair = piece[:2]
        spelt = "%" + pair if broken else _ESCAPES.get(pair, "%" + pair)
        written.append(spelt + piece[2:])
        broken = len(piece) < 2
    return "".join(written)
