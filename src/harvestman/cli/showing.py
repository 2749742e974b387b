"""What `show` does: gathers what is stored of a URL, and prints the part that was asked for."""

from __future__ import annotations

import argparse
import asyncio
import difflib
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from harvestman.cli import explain, reasons, words
from harvestman.cli.explain import Explanation
from harvestman.errors import UrlError, UsageError
from harvestman.layout import Layout
from harvestman.lookup import REVISIT, InLink, Version, body, pages_about, versions
from harvestman.model import Instant, Link, Page

FIRST_LINES, LINE = 10, 200
NUMBER = len("20260131")
"""Digits from which on a number is a date."""
SLOW = 200 << 20
"""Bytes of the page log from which on reading them is remarked upon."""
NOTHING = ("not-a-url", "unseen", "robots")
"""Verdicts of URLs of which nothing is stored."""


class Text(msgspec.Struct):
    """A version that was parsed: what --diff compares. Not every raw record is one; most say that nothing changed."""

    number: int
    """From 1, the oldest."""
    fetched_at: Instant
    chars: int
    digest: str
    """Of the decoded body."""
    rendered: bool = False
    """As a browser showed it."""


class Shown(msgspec.Struct):
    """What --json prints."""

    url: str
    verdict: str
    duplicate_of: str
    page: Page | None
    """The latest version, with its links out; of a duplicate, that of the URL it duplicates."""
    versions: list[Version]
    texts: list[Text]
    links_in: list[InLink]


def run(options: argparse.Namespace) -> int:
    now = Instant(time.time())
    if options.diff and len(options.diff) != 2:
        raise UsageError("--diff compares two versions: name both, behind the URL, or none for the last two")
    if options.limit < 0:
        raise UsageError("--limit must not be below 0")
    found = asyncio.run(explain.look(options.url, options.data, now))
    if found.verdict in NOTHING:
        print(explain.as_json(found) if options.json else reasons.told(found, now))
        return UrlError.exit_code if found.verdict == "not-a-url" else 0
    layout, url = Layout(options.data), found.spelt or found.url
    origin = found.visit.target if found.visit and found.verdict == "duplicate" else ""
    if options.raw:
        sys.stdout.buffer.write(body(layout, url, origin))
        sys.stdout.buffer.flush()
        return 0
    _remark(layout)
    seen = pages_about(layout, url, _tell)
    pages = seen.pages or (pages_about(layout, origin, _tell).pages if origin else [])
    if options.text or options.diff is not None:
        _print_text(url, pages, options.diff)
        return 0
    shown = Shown(
        url, found.verdict, origin, pages[-1] if pages else None, versions(layout, url), _texts(pages), seen.inlinks
    )
    print(_json(shown) if options.json else _told(shown, found, now, options.limit))
    return 0


def _json(shown: Shown) -> str:
    return msgspec.json.encode(shown).decode()


def _texts(pages: Sequence[Page]) -> list[Text]:
    return [
        Text(number, page.fetched_at, len(page.text), page.digest, page.rendered)
        for number, page in enumerate(pages, 1)
    ]


def _print_text(url: str, pages: list[Page], diff: list[str] | None) -> None:
    if not pages:
        print(f"{url} has no text: no page was made of it; `harvestman why` says why.", file=sys.stderr)
    elif diff is None:
        print(pages[-1].text)
    elif not diff and len(pages) < 2:
        print(f"{url} has one version only, of {words.moment(pages[-1].fetched_at)}.", file=sys.stderr)
    else:
        old, new = (version(text, pages) for text in diff or (str(len(pages) - 1), str(len(pages))))
        print("\n".join(difference(old, new)) or _alike(old, new))


def version(text: str, pages: Sequence[Page]) -> Page:
    """The version that a number or a date means, of some in their order. UsageError when there is none."""
    there = f"of {words.moment(pages[0].fetched_at)}"
    if len(pages) > 1:
        there = f"1 to {len(pages)}, {there} to {words.moment(pages[-1].fetched_at)}"
    if text.isdecimal() and len(text) < NUMBER:
        if 1 <= int(text) <= len(pages):
            return pages[int(text) - 1]
        raise UsageError(f"there is no version {text}: there is {there}")
    until = _until(text)
    then = [page for page in pages if page.fetched_at < until]
    if not then:
        raise UsageError(f"there is no version as old as {text}: there is {there}")
    return then[-1]


def _until(text: str) -> Instant:
    """The end of what a date means: of that day, if it says no time; without a zone it is UTC."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{text!r} is no version: write a number, 1 being the oldest, or a date as in 2026-01-31; the URL stands "
            "before --diff"
        ) from None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    whole_day = len(text) <= len("2026-01-31")
    return Instant((at + (timedelta(days=1) if whole_day else timedelta(seconds=1))).timestamp())


def _alike(old: Page, new: Page) -> str:
    if old.fetched_at == new.fetched_at:
        return f"Both are the version of {words.moment(old.fetched_at)}."
    return "The text is the same; the page around it changed." if old.digest != new.digest else "They are the same."


def difference(old: Page, new: Page) -> list[str]:
    """The texts of two versions, as a unified diff."""
    before, after = (f"{page.url} {words.moment(page.fetched_at)}" for page in (old, new))
    return list(difflib.unified_diff(old.text.splitlines(), new.text.splitlines(), before, after, lineterm=""))


# -- in words --------------------------------------------------------------------------------------------------------


def _told(shown: Shown, found: Explanation, now: Instant, limit: int) -> str:
    lines = [shown.url, f"  {reasons.verdict(found, now)}"]
    page = shown.page
    if page is not None:
        lines += _page(page)
    lines += _versions(shown.versions, limit)
    if len(shown.texts) > 1:
        listed = [
            f"{each.number:>3}  {words.moment(each.fetched_at)}  {each.chars:,} characters"
            f"{', as a browser showed it' if each.rendered else ''}"
            for each in shown.texts
        ]
        lines += _listed("texts, for --diff", listed[::-1], limit)
    if page is not None:
        lines += _text(page.text)
        lines += _listed("links out", [_link(link) for link in page.links], limit)
    lines += _listed("links in", [_link(link) for link in shown.links_in], limit)
    return "\n".join(lines)


def _page(page: Page) -> list[str]:
    asks = [word for word, asked in (("noindex", page.noindex), ("nofollow", page.nofollow)) if asked]
    asks += page.data.asks
    facts = {
        "title": page.title,
        "about": page.description,
        "author": page.data.author,
        "published": page.data.published,
        "modified": page.data.modified,
        "rendered" if page.rendered else "fetched": (
            f"{words.moment(page.fetched_at)}, HTTP {page.status}, depth {page.depth}"
        ),
        "type": ", ".join(filter(None, (page.content_type, page.charset and f"read as {page.charset}"))),
        "language": page.language,
        "canonical": page.canonical or "",
        "nearly": _near(page),
        "asks": ", ".join(asks),
        "cut": page.cut and f"read in part only, for its {page.cut}",
        "digest": page.digest,
    }
    return [f"  {name:<10}{' '.join(fact.split())}" for name, fact in facts.items() if fact]


def _near(page: Page) -> str:
    """Of which page it is a near-duplicate."""
    return f"{page.near_duplicate_of} (distance {page.distance})" if page.near_duplicate_of else ""


def _versions(found: Sequence[Version], limit: int) -> list[str]:
    lines = []
    for version in reversed(found):
        at = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.strptime(version.at, "%Y%m%d%H%M%S"))
        kind = "as before" if version.mime == REVISIT else version.mime
        place = f"{version.file}:{version.offset}+{version.length}"
        lines.append(f"{at}  {version.status}  {kind:<12}  {version.digest.partition(':')[2][:16]}  {place}")
    return _listed("versions", lines, limit)


def _text(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return []
    more = f", the first {FIRST_LINES}; --text for all" if len(lines) > FIRST_LINES else ""
    return [
        "",
        f"text ({words.plural(len(lines), 'line')}{more})",
        *(f"  {_short(line)}" for line in lines[:FIRST_LINES]),
    ]


def _short(line: str) -> str:
    return line if len(line) <= LINE else f"{line[: LINE - 1]}…"


def _link(link: Link | InLink) -> str:
    anchor = " ".join(link.anchor.split())
    about = " ".join(filter(None, (link.place, link.rel)))
    return link.url + (f"  {anchor[:60]!r}" if anchor else "") + (f"  [{about}]" if about else "")


def _listed(name: str, lines: Sequence[str], limit: int) -> list[str]:
    more = f", {limit} shown" if len(lines) > limit else ""
    return ["", f"{name} ({len(lines):,}{more})", *(f"  {line}" for line in lines[:limit])]


# -- on the way ------------------------------------------------------------------------------------------------------


def _remark(layout: Layout) -> None:
    size = sum(path.stat().st_size for directory in layout.page_logs() for path in directory.glob("*"))
    if size > SLOW:
        print(f"Reading {words.size(size)} of pages; this takes a while.", file=sys.stderr)


def _tell(number: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{words.size(number)} read ", end="\r", file=sys.stderr, flush=True)
