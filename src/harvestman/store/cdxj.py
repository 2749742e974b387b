"""The CDXJ index: which record holds which URL at which time, in the form replay tools search.

It is derived from the WARC files and never written while crawling: the hot path is free of it, and a lost or torn index
is simply built again. Lines are those of cdxj-indexer; keys are SURTs as pywb makes them.
"""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

from .members import Member, members
from .records import parse_record, response_of

INDEX = "index.cdxj"
_INDEXED = ("response", "revisit")
_WWW = re.compile(r"www\d*\.")
_MIME_END = re.compile(r"[;\s]")
_SESSIONS = [
    re.compile(rf"(.*){name}(?:&|$)")
    for name in (
        "jsessionid=[0-9a-z]{32}", "phpsessid=[0-9a-z]{32}", "sid=[0-9a-z]{32}", "aspsessionid[a-z]{8}=[a-z]{24}",
        "cfid=[^&]+&cftoken=[^&]+",
    )
]  # fmt: skip
_ASPX_SESSIONS = [
    re.compile(rf"(.*)/\({name}\)(?=/[^?]+\.aspx)") for name in (r"(?:[a-z]\([0-9a-z]{24}\))+", "[0-9a-z]{24}")
]
"""Session ids. Replay tools leave them out of the keys they look for, so they must not be in ours."""
_DEFAULT_PORTS = {"http": 80, "https": 443}
_ESCAPED = {code: f"%{code:02x}" for code in (*range(0x21), *range(0x7F, 0x100), ord("#"), ord("%"))}


def build_index(directory: Path) -> Path:
    """Index every WARC file in `directory` (one .cdxj each, kept while up to date), then merge into index.cdxj."""
    directory.mkdir(parents=True, exist_ok=True)
    parts = [_part(warc) for warc in sorted(directory.glob("*.warc.gz"))]
    target = directory / INDEX
    with ExitStack() as stack:
        lines = [stack.enter_context(part.open(encoding="utf-8")) for part in parts]
        _write(target, heapq.merge(*lines))
    return target


def index(warc: Path) -> Iterator[str]:
    """The index lines of one WARC file, in the order of its records, each ending in a newline."""
    for member in members(warc):
        line = _line(member, warc.name)
        if line is not None:
            yield line


def surt(url: str) -> str:
    """The key of a URL: host names reversed, so that a site's pages are neighbours, and spelling evened out."""
    parts = urlsplit(url)
    host = _WWW.sub("", (parts.hostname or "").lower(), count=1) if parts.hostname else ""
    port = f":{parts.port}" if parts.port and parts.port != _DEFAULT_PORTS.get(parts.scheme) else ""
    path = _without(_ASPX_SESSIONS, _plain_path(_evened(parts.path))) or "/"
    path = path[:-1] if len(path) > 1 and path.endswith("/") else path
    query = _without(_SESSIONS, _evened(parts.query))
    query = "&".join(sorted(query.split("&"), key=lambda pair: tuple(pair.split("=", 1))))
    return f"{','.join(reversed(host.split('.')))}{port}){path}{'?' + query if query else ''}"


def _without(patterns: list[re.Pattern[str]], text: str) -> str:
    """Without what the patterns match behind their group; of several matches the last, as others do it."""
    for pattern in patterns:
        found = pattern.match(text)
        if found:
            text = found[1] + text[found.end() :]
    return text


def _plain_path(path: str) -> str:
    """Without empty steps and dots: an escaped slash may have hidden them from us, not from others."""
    steps: list[str] = []
    for step in path.split("/"):
        if step == "..":
            steps = steps[:-1]
        elif step != ".":
            steps.append(step)
    kept = [step for step in steps if step]
    return "/" + "/".join(kept) + ("/" if path.endswith("/") and kept else "")


def _evened(text: str) -> str:
    """Lower case, with %XX only where a character needs it."""
    raw = text.encode("utf-8", "surrogatepass")
    if b"%" in raw:
        while (plain := unquote_to_bytes(raw)) != raw:
            raw = plain
    return raw.decode("latin-1").translate(_ESCAPED).lower()


def _part(warc: Path) -> Path:
    part = warc.with_suffix(".cdxj")
    if not part.exists() or part.stat().st_mtime_ns <= warc.stat().st_mtime_ns:
        _write(part, iter(sorted(index(warc))))
    return part


def _write(path: Path, lines: Iterator[str]) -> None:
    """All or nothing: readers never meet half an index."""
    unfinished = path.with_suffix(".unfinished")
    with unfinished.open("w", encoding="utf-8") as file:
        file.writelines(lines)
    unfinished.replace(path)


def _line(member: Member, file: str) -> str | None:
    fields, block = parse_record(member.data)
    kind = fields.get("warc-type")
    if kind not in _INDEXED:
        return None
    response = response_of(fields, block)
    mime = _MIME_END.split(response.headers.get("content-type", ""), maxsplit=1)[0]
    entry = {
        "url": response.url,
        "mime": "warc/revisit" if kind == "revisit" else mime,
        "status": str(response.status),
        "digest": fields.get("warc-payload-digest", ""),
        "length": str(member.length),
        "offset": str(member.offset),
        "filename": file,
    }
    digits = re.sub(r"\D", "", fields["warc-date"])[:14]
    return f"{surt(response.url)} {digits} {json.dumps({name: value for name, value in entry.items() if value})}\n"
