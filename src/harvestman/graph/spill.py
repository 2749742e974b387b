"""The first pass over the page log: links and URLs to disk, by hash, so that nobody has to remember them all.

A URL is known here by 64 bits of its deduplication key (xxh3): among a hundred million URLs the odds of two alike are
one in 3,700. URLs are thrown into BINS files by the first bits of their hash; each file is small enough to be sorted in
memory, and one behind the other they are all URLs in the order of their hashes. That order numbers the nodes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import xxhash

from harvestman.graph.rank import Hashes
from harvestman.graph.tables import Rules
from harvestman.model import LISTING, Link, Page
from harvestman.policy.sites import site_of
from harvestman.policy.urls import host_of, key, path_of

BINS: Final = 64
BATCH: Final = 1 << 16
"""Links that are written together."""
RECENT: Final = 1 << 19
"""URLs that are remembered so as not to be written again: about 50 MB."""
UNVOUCHED: Final = frozenset({"nofollow", "ugc", "sponsored"})
"""What authors mark links with that are no recommendation of theirs."""
VOTE, NOFOLLOW, LISTED = 0, 1, 2
"""What a link is: a vote, or why it is none."""
WORDS: Final = ("anchor", "rel", "kind", "place")
"""What is kept of a link beside its ends, as `Link` has it."""
_hash = xxhash.xxh3_64_intdigest
_LINK: Final = pa.schema([
    ("version", pa.int32()), ("to", pa.uint64()), ("what", pa.uint8()),
    *((name, pa.string()) for name in WORDS),
])  # fmt: skip


def hash_of(url: str) -> int:
    """The name of a URL in request form, one for all spellings of it."""
    return _hash(key(url).encode())


def canonical_of(page: Page) -> str | None:
    """The URL that a page names as its own, when that is believed: of the same site, and not the root of a host.

    Templates with the home page as the canonical URL of every page are common; a site would become one node by them.
    """
    url = page.canonical
    if url is None or path_of(url) == "/" or site_of(host_of(url)) != site_of(host_of(page.url)):
        return None
    return url


def what_is(link: Link, page: Page) -> int:
    if link.kind == LISTING:
        return LISTED
    unvouched = page.nofollow or (link.rel and not UNVOUCHED.isdisjoint(link.rel.split()))
    return NOFOLLOW if unvouched else VOTE


class Batch(NamedTuple):
    """Links, in columns; `rows` has the words that belong to them."""

    version: np.ndarray[tuple[int], np.dtype[np.int32]]
    to: Hashes
    what: np.ndarray[tuple[int], np.dtype[np.uint8]]
    rows: pa.RecordBatch


class Spill:
    """Pages in, files out. `close` it before reading what it wrote."""

    def __init__(self, place: Path, rules: Rules) -> None:
        self._place = place
        self._wordy = rules.links
        self._bins: list[list[bytes]] = [[] for _ in range(BINS)]
        self._binned = 0
        self._recent: set[int] = set()
        self._to: list[int] = []
        self._version: list[int] = []
        self._what: list[int] = []
        self._words: list[list[str]] = [[] for _ in WORDS]
        self._schema = _LINK if rules.links else pa.schema(list(_LINK)[:3])
        self._writer = pa.ipc.new_file(place / "links.arrow", self._schema)
        # By version: a page that was fetched three times has three.
        self.pages = array("Q")
        self.dates = array("d")
        self.canonicals = array("Q")
        """0 for none."""
        self.aliases = array("Q")
        self.targets = array("Q")

    def page(self, page: Page) -> None:
        version = len(self.pages)
        self.pages.append(self._met(page.url, fetched=True))
        self.dates.append(page.fetched_at)
        canonical = canonical_of(page)
        self.canonicals.append(self._met(canonical) if canonical else 0)
        links = page.links
        names = [hash_of(link.url) for link in links]
        for name, link in zip(names, links, strict=True):
            if name not in self._recent:
                self._throw(name, link.url)
        self._to += names
        self._version += [version] * len(names)
        self._what += [what_is(link, page) for link in links]
        if self._wordy:
            anchors, rels, kinds, places = self._words
            anchors += [link.anchor for link in links]
            rels += [link.rel for link in links]
            kinds += [link.kind for link in links]
            places += [link.place for link in links]
        if len(self._to) >= BATCH:
            self._write_links()

    def alias(self, url: str, target: str) -> None:
        """A URL that stands for another."""
        self.aliases.append(self._met(url))
        self.targets.append(self._met(target))

    def close(self) -> None:
        self._write_links()
        self._writer.close()
        self._write_bins()
        self._recent.clear()

    def _met(self, url: str, fetched: bool = False) -> int:
        name = hash_of(url)
        if fetched or name not in self._recent:
            self._throw(name, url, fetched)
        return name

    def _throw(self, name: int, url: str, fetched: bool = False) -> None:
        """A URL into its bin."""
        self._bins[name >> 58].append(b"%016x%c%b\n" % (name, b"+-"[not fetched], url.encode()))
        self._recent.add(name)
        self._binned += 1
        if self._binned >= BATCH:
            self._write_bins()
        if len(self._recent) >= RECENT:
            self._recent.clear()

    def _write_links(self) -> None:
        numbers = (self._version, self._to, self._what)
        arrays = [pa.array(column, field.type) for field, column in zip(self._schema, numbers, strict=False)]
        arrays += map(_texts, self._words if self._wordy else ())
        if self._to:
            self._writer.write_batch(pa.record_batch(arrays, schema=self._schema))
        self._version, self._to, self._what, self._words = [], [], [], [[] for _ in WORDS]

    def _write_bins(self) -> None:
        for number, lines in enumerate(self._bins):
            if lines:
                with _bin(self._place, number).open("ab") as file:
                    file.writelines(lines)
                lines.clear()
        self._binned = 0


def _bin(place: Path, number: int) -> Path:
    return place / f"urls-{number:02d}"


def _texts(column: list[str]) -> pa.Array:
    """As UTF-8 can hold them: a page may carry half a surrogate pair."""
    try:
        return pa.array(column, pa.string())
    except UnicodeEncodeError:
        return pa.array([text.encode("utf-8", "replace").decode() for text in column], pa.string())


def urls(place: Path) -> Iterator[tuple[list[int], list[str], list[bool]]]:
    """(hashes, URLs, whether there is a page of it), each once, by hash: a part at a time."""
    for number in range(BINS):
        found: dict[int, tuple[str, bool]] = {}
        path = _bin(place, number)
        if not path.exists():
            continue
        with path.open("rb") as lines:
            for line in lines:
                name, fetched = int(line[:16], 16), line[16:17] == b"+"
                if name not in found or (fetched and not found[name][1]):  # of the spellings, the one we asked for
                    found[name] = line[17:-1].decode(), fetched
        names = sorted(found)
        yield names, [found[name][0] for name in names], [found[name][1] for name in names]


def links(place: Path) -> Iterator[Batch]:
    """All links, in the order they came."""
    with pa.memory_map(str(place / "links.arrow")) as file:
        reader = pa.ipc.open_file(file)
        for number in range(reader.num_record_batches):
            rows = reader.get_batch(number)
            version, to, what = (rows.column(column).to_numpy() for column in range(3))
            yield Batch(version, to, what, rows)
