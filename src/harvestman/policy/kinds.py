"""What kind of page a URL leads to, by its looks: how often it is taken to change before we know better.

A guess that costs a few microseconds and is outweighed by the first visits. Names decide before anything else: those of
the host, then those of the folders, from the left.
"""

from __future__ import annotations

import re
from typing import Literal

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


def page_kind(url: str, source: str = "a") -> Kind:
    """Guess from the URL, in request form, and from where it was found (`Link.kind`). Called for every new link."""
    start = url.find("//") + 2
    end = url.find("/", start)
    path = url[end:].partition("?")[0].lower()
    if path.endswith(_DOCUMENTS):
        return "docs"
    named = _first(url[start:end].split(".")[:-1]) or _first(path.split("/"))
    if named:
        return named
    if path == "/" or source == "feed" or (("/19" in path or "/20" in path) and _DATED.search(path)):
        return "blog"
    return "other"


def _first(names: list[str]) -> Kind | None:
    for name in names:
        if name in _KIND_OF:
            return _KIND_OF[name]
    return None
