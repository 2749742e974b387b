"""`harvestman takedown`: block URLs for ever, delete what is stored of them, and prove it."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

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
  harvestman takedown crawl-data --pattern '/user/jane-doe(/|$)' --reason "erasure, request 19"
  harvestman takedown crawl-data --verify                  search for all that was ever taken down
  harvestman takedown crawl-data --verify --phrase "words that stood on the page"

The crawl must not be running. Raw records and pages are written over in place, State forgets, what was made of them
(exports, corpus, graph, query cache, indexes below DIR) is removed. Then every file below DIR is searched. It may be
interrupted at any moment and run again. A URL is kept in the block list by its hash; the reason is kept as it is."""
STEPS = {
    "survey": "looking for it in every raw record and page",
    "compact": "compacting State",
    "proof": "searching everything for what is left",
}


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its options."""
    verb = verbs.add_parser(
        "takedown", help="block URLs for ever, delete what is stored of them, prove it",
        description="Block a URL, a prefix, a site or a pattern for ever and delete every stored copy.",
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    verb.set_defaults(run=run)
    verb.add_argument("data", metavar="DIR", type=Path, help="where the crawl lives; it must not be running")
    add_which(verb, ("url", "prefix", "site", "pattern"))
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
    verb.add_argument("--json", action="store_true", help="print one JSON object (default: in words)")


def add_which(verb: argparse.ArgumentParser, kinds: tuple[str, ...]) -> None:
    """The options that say which URLs are meant."""
    which = verb.add_mutually_exclusive_group()
    told = {
        "url": ("URL", "one URL, with all spellings of it"),
        "prefix": ("URL", "every URL that begins so"),
        "site": ("DOMAIN", "a whole registrable domain, with all its hosts"),
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

    wanted = chosen(options, KINDS)
    phrases = [text.encode() for text in options.phrase]
    if options.verify:
        which = Which([entry(*wanted)]) if wanted else deeds.blocked(options.data)
        proof = deeds.verify(options.data, which, phrases, ())
        print(_json({"clean": proof.clean, "proof": proof}) if options.json else told_proof(proof))
        return _judged(proof)
    if wanted is None:
        raise UsageError("takedown: of what? Name --url, --prefix, --site or --pattern, or --verify what was done")
    if not (options.reason or "").strip():
        raise UsageError("takedown: a --reason is needed, for the record")
    kind, text = wanted
    meant = entry(kind, text, options.reason.strip(), Instant(time.time()), who(options))
    order = deeds.Order(meant, text, options.dry_run, options.despite_hold, options.keep_pattern)
    done = deeds.take_down(options.data, order, _tell, phrases)
    print(_json(done) if options.json else told(done))
    return _judged(done.proof) if done.proof else 0


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
    lines += [f"  {words.plural(proof.shared, 'phrase')} of other pages, too"] if proof.shared else []
    return "\n".join([*lines, "nothing is left" if proof.clean else "NOT PROVEN"])
