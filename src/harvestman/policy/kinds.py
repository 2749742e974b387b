"""What kind of page a URL leads to, by its looks: how often it is taken to change before we know better.

A guess that costs a few microseconds and is outweighed by the first visits. Names decide before anything else: those of
the host, then those of the folders, from the left.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal
from urllib.parse import urlsplit

Kind = Literal["news", "blog", "docs", "other"]

_NAMES: dict[Kind, str] = {
    "news": "news breaking headlines ticker newsroom nachrichten noticias actualites aktuell",
    "blog": "blog blogs weblog post posts article articles story stories journal magazine forum forums",
    "docs": "doc docs documentation wiki manual manuals man reference api help support faq kb guide guides handbook"
    " tutorial tutorials developer developers legal terms privacy imprint impressum licence license archive archives",
}
_KIND_OF: dict[str, Kind] = {name: kind for kind, names in _NAMES.items() for name in names.split()}
_DOCUMENTS = (".pdf", ".txt", ".doc", ".docx", ".odt", ".ps", ".rst", ".md")
_DATED = re.compile(r"/(?:19|20)\d\d(?:/(?:0?[1-9]|1[0-2])(?:/|$)|-(?:0[1-9]|1[0-2])-[0-3]\d)")
_WORD = re.compile(r"[a-z]+")


def page_kind(url: str, source: str = "a", title: str = "", og_type: str = "") -> Kind:
    """Guess from the URL, from where it was found (`Link.kind`), and from what the page says of itself."""
    parts = urlsplit(url)
    path = parts.path.lower()
    if path.endswith(_DOCUMENTS):
        return "docs"
    named = _first((parts.hostname or "").split(".")[:-1]) or _first(path.split("/"))
    if named:
        return named
    if path in ("", "/") or source == "feed" or _DATED.search(path):
        return "blog"
    return _first(_WORD.findall(title.lower())) or ("blog" if og_type == "article" else "other")


def _first(names: Iterable[str]) -> Kind | None:
    return next((_KIND_OF[name] for name in names if name in _KIND_OF), None)
