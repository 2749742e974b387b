"""`harvestman takedown`: block URLs for ever, delete what is stored of them, and prove it."""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from typing import TYPE_CHECKING

import msgspec

from harvestman.cli.arguments import Verbs, add_data, add_json, add_verb
from harvestman.errors import StateError, UsageError
from harvestman.model import Instant

if TYPE_CHECKING:
    from harvestman.takedown.proof import Proof
    from harvestman.takedown.run import Takedown

EPILOG = """\
examples:
  harvestman takedown crawl-data --url https://example.org/page --reason "request 17" --dry-run
  harvestman takedown crawl-data --url https://example.org/page --reason "request 17"
  harvestman takedown crawl-data --prefix https://example.org/people/ --reason "request 18"
  harvestman takedown crawl-data --site example.org --reason "the owner asked"
  harvestman takedown crawl-data --urls found.csv --reason "request 18"       what a query found
  harvestman takedown crawl-data --pattern '/user/jane-doe(/|$)' --reason "erasure, request 19"
  harvestman takedown crawl-data --verify                  search for all that was ever taken down
  harvestman takedown crawl-data --verify --phrase "words that stood on the page"

The crawl must not be running. Raw records and pages are written over in place, State forgets, what was made of them
(exports, corpus, graph, query cache, indexes below DIR) is removed. Then every file below DIR is searched. It may be
interrupted at any moment and run again. A URL is kept in the block list by its hash; the reason is kept as it is."""
HEADER = "url"
"""What the first column of a CSV is called."""
STEPS = {
    "survey": "looking for it in every raw record and page",
    "compact": "compacting State",
    "proof": "searching everything for what is left",
}


def add(verbs: Verbs) -> None:
    """Add the verb and its options."""
    verb = add_verb(
        verbs, "takedown", EPILOG, run, help="block URLs for ever, delete what is stored of them, prove it",
        description="Block a URL, a prefix, a site or a pattern for ever and delete every stored copy.",
    )  # fmt: skip
    add_data(verb, "it must not be running")
    add_which(verb, ("url", "urls", "prefix", "site", "pattern"))
    verb.add_argument("--reason", metavar="TEXT", help="why, for the record (no default: it has to be given)")
    verb.add_argument("--by", metavar="NAME", default=None, help="who did it, for the record (default: $USER)")
    verb.add_argument("--dry-run", action="store_true", help="only say what would go (default: delete it)")
    verb.add_argument(
        "--despite-hold", action="store_true", help="delete what is under legal hold as well (default: refuse)"
    )
    verb.add_argument(
        "--keep-pattern", action="store_true",
        help="write what was asked for into the record in plain (default: only its SHA-256)",
    )  # fmt: skip
    verb.add_argument(
        "--verify", action="store_true",
        help="only search: for the URLs named, or for all that were ever taken down (default: delete)",
    )  # fmt: skip
    verb.add_argument(
        "--phrase", metavar="TEXT", action="append", default=[],
        help="search for these words as well; may be repeated (default: stretches of what was deleted)",
    )  # fmt: skip
    add_json(verb, "in words")


def add_which(verb: argparse.ArgumentParser, kinds: tuple[str, ...]) -> None:
    """The options that say which URLs are meant."""
    which = verb.add_mutually_exclusive_group()
    told = {
        "url": ("URL", "one URL, with all spellings of it"),
        "prefix": ("URL", "every URL that begins so"),
        "site": ("DOMAIN", "a whole registrable domain, with all its hosts"),
        "urls": (
            "FILE",
            "each URL of a list: one a line, or the first column of a CSV, if its header is url; '-' is stdin",
        ),
        "pattern": ("REGEX", "every URL in which this regular expression is found"),
    }
    for kind in kinds:
        which.add_argument(f"--{kind}", metavar=told[kind][0], help=f"{told[kind][1]} (default: none)")


def chosen(options: argparse.Namespace, kinds: tuple[str, ...]) -> tuple[str, str] | None:
    """Which of these options was given, and what stood behind it."""
    return next(((kind, text) for kind in kinds if (text := getattr(options, kind)) is not None), None)


def who(options: argparse.Namespace) -> str:
    return options.by or os.environ.get("USER") or f"uid {os.getuid()}"


def run(options: argparse.Namespace) -> int:
    from harvestman.policy.blocklist import KINDS, Which, entry  # here, so that other verbs start without it
    from harvestman.takedown import run as deeds

    wanted = chosen(options, (*KINDS, "urls"))
    phrases = [text.encode() for text in options.phrase]
    if options.verify:
        which = Which(entry(*each) for each in _meant(*wanted)) if wanted else deeds.blocked(options.data)
        proof = deeds.verify(options.data, which, phrases, ())
        print(_json({"clean": proof.clean, "proof": proof}) if options.json else told_proof(proof))
        return _judged(proof)
    if wanted is None:
        raise UsageError(
            "takedown: of what? Name --url, --urls, --prefix, --site or --pattern, or --verify what was done"
        )
    if not (options.reason or "").strip():
        raise UsageError("takedown: a --reason is needed, for the record")
    asked, now = _meant(*wanted), Instant(time.time())
    first, *more = (entry(*each, options.reason.strip(), now, who(options)) for each in asked)
    text = "\n".join(text for _, text in asked)
    order = deeds.Order(first, text, options.dry_run, options.despite_hold, options.keep_pattern, tuple(more))
    done = deeds.take_down(options.data, order, _tell, phrases)
    print(_json(done) if options.json else told(done))
    return _judged(done.proof) if done.proof else 0


def _meant(kind: str, text: str) -> list[tuple[str, str]]:
    """What an option asks for: (kind, what), several for a list of URLs."""
    if kind != "urls":
        return [(kind, text)]
    try:
        # An editor or a spreadsheet may have put a byte order mark before the first URL.
        with open(0 if text == "-" else text, encoding="utf-8-sig", closefd=text != "-") as file:
            lines = _listed(file.read())
    except (OSError, ValueError, csv.Error) as error:
        raise UsageError(f"--urls {text}: {error}") from None
    for number, url in lines:
        if not url.lower().startswith(("http://", "https://")):
            raise UsageError(
                f"--urls {text}, line {number}: {url!r} is no URL, it has to begin with http:// or https://; "
                f"nothing was done (a CSV needs a first line whose first column is {HEADER})"
            )
    if not lines:
        raise UsageError(f"--urls {text}: there is no URL in it")
    return [("url", url) for _, url in lines]


def _listed(text: str) -> list[tuple[int, str]]:
    """What a list names, with the line it stands in. Only a header makes it a CSV: a URL may have commas and quotes."""
    lines = text.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    head = next(csv.reader([lines[first]]), [""])
    if head[0].strip().casefold() != HEADER:
        return [(number, url) for number, line in enumerate(lines, 1) if (url := line.strip())]
    rows = csv.reader(f"{line}\n" for line in lines[first + 1 :])
    return [(first + 1 + rows.line_num, row[0].strip()) for row in rows if any(cell.strip() for cell in row)]


def _tell(step: str) -> None:
    if step in STEPS:
        print(f"{STEPS[step]} ...", file=sys.stderr)


def _json(what: object) -> str:
    return msgspec.json.encode(what).decode()


def _judged(proof: Proof) -> int:
    if not proof.clean:
        raise StateError("not proven: something is left, or could not be searched (see above); run it again, or look")
    return 0


def told(done: Takedown) -> str:
    from harvestman.cli import words

    records = ", ".join(f"{number:,} {kind}" for kind, number in sorted(done.records.items())) or "none"
    if not done.urls:
        blocked = "would be blocked" if done.dry_run else "is blocked from now on"
        nothing = f"Nothing is known of it, so nothing {'would be' if done.dry_run else 'was'} deleted; it {blocked}."
        return "\n".join([nothing, *([told_proof(done.proof)] if done.proof else [])])
    lines = [
        f"{words.plural(len(done.urls), 'URL')} {'would be taken down' if done.dry_run else 'taken down'}",
        f"  raw records  {records}",
        f"  pages        {done.pages:,}",
        f"  files        {', '.join(done.files) or 'none'}",
    ]
    lines += [f"  removed      {', '.join(done.removed)}"] if done.removed else []
    return "\n".join([*lines, *([told_proof(done.proof)] if done.proof else [])])


def told_proof(proof: Proof) -> str:
    from harvestman.cli import words

    searched = (
        f"searched: {words.plural(proof.files, 'file')} ({words.size(proof.bytes)}), {proof.records:,} raw records, "
        f"{proof.pages:,} pages, {proof.rows:,} rows of State, for {words.plural(proof.phrases, 'phrase')}"
    )
    lines = [searched, *(f"  left: {where}" for where in proof.left)]
    lines += [f"  not searched: {name}" for name in proof.unsearched]
    lines += [f"  the address itself stands in: {where} ({count:,})" for where, count in sorted(proof.named.items())]
    if proof.shared:
        cure = ": name words that only it has with --phrase" if proof.shared == proof.phrases else ""
        lines.append(f"  {proof.shared:,} of {words.plural(proof.phrases, 'phrase')} stand on other pages, too{cure}")
    return "\n".join([*lines, "nothing is left" if proof.clean else "NOT PROVEN"])
