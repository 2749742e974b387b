"""The main text of a page, from the tree that is there anyway: where the prose is, without what is stuck into it.

1. Paragraphs are weighed by their characters outside links; what stands in furniture (comments, a cookie banner, links
   to other pages: known by tag, class or id) counts a fifth. Pages that hardly use <p> are weighed by the text directly
   in other elements.
2. From the top of the tree down to the child that has 70 % of the prose, for as long as there is one: an article in
   parts ends at the element that holds all of them.
3. In it, furniture, captions and lists of links are cut out, unless much of the prose is in them.

On the 181 articles of the public benchmark that is F1 0.966, where the main text of turbohtml has 0.893 (0.906 with the
whole page where it finds none). tests/stages/test_text.py holds the floors, bench/pages_cpu.py has what it costs. The
work is linear in the page; where nested elements would be read over and over, it ends after so many.
"""

from __future__ import annotations

import re
from functools import lru_cache

from turbohtml import Document, Element, Node, Text

_PARAGRAPH = 25
"""Characters of a paragraph below which it is a label, not prose."""
_OWN = 60
"""The same for text directly in another element."""
_LONG = 300
"""Characters of a paragraph from which on it is no mere link, and not searched for any."""
_FEW = 300
"""Characters of prose below which a page is taken for one that does not use <p>."""
_NO_PROSE = 60
_LITTLE = 200
"""Characters of prose below which a page may be a list with a word of welcome: nothing is cut out of it."""
_FURNITURE_COUNTS = 0.2
_ASIDE_AT_MOST = 0.75
"""Part of the prose in furniture beyond which that is what the page is for: a forum, made of comments. It stays."""
_MOST = 0.7
"""Part of the prose of a node that a child must have to be the better place."""
_MUCH = 0.3
"""Part of the article's prose from which on nothing that holds it is cut out."""
_IN_LINKS = 0.6
"""Part of a list's text in links beyond which it is one of links."""
_MOST_READ = 4_000_000
"""Characters read in search of prose: paragraphs in paragraphs are read over and over."""
_MOST_CUT = 1_000
"""Elements looked at for cutting: nested ones are read over and over."""
_MOST_LINKS = 300
_LINK = 50
"""Characters that can be read in the time that it takes to find a link."""
_NAME = 200
"""Characters of a class or an id that are read."""

_NAMED = re.compile(
    r"""advert | banner | breadcrumb | byline | caption | comment | consent | cookie | copyright | disqus | footer
    | gallery | gdpr | hidden | \bmeta\b | newsletter | outbrain | paywall | pop(?:-?up|ular) | promo | recommend
    | related | shar(?:e|ing) | side-?bar | sign-?up | social | sponsor | subscri | taboola | trending""",
    re.VERBOSE,
)
_STRUCTURE = frozenset({"article", "body", "html", "main"})
"""Tags that hold the whole page or the article, whatever their classes say: those may be about a part of it."""
_ASIDE = frozenset({"a", "aside", "button", "dialog", "figcaption", "footer", "nav", "select"})
_LISTS = frozenset({"div", "ol", "ul"})
_BOXES = "aside, button, dialog, div, figcaption, footer, nav, ol, section, select, span, ul"
"""What may be cut out. Links stay: they are furniture where they hold paragraphs, not in one."""
_OTHER = "article, blockquote, center, dd, div, font, li, pre, section, span, td"
"""Where pages that hardly use <p> have their text."""


def main_text(document: Document) -> str:
    """The article of a page as plain text, or "" if there is no prose. The tree loses what is cut out."""
    own = _in_paragraphs(document)
    weights, aside = _weigh(own)
    if weights.get(document, 0.0) < _FEW:
        _add_other(document, own)
        weights, aside = _weigh(own)
    content, weight = _place(document, weights)
    if weight < _NO_PROSE:
        return ""
    if weight >= _LITTLE and aside[content] <= _ASIDE_AT_MOST * weight:
        _cut(content, weights, _MUCH * weight)
    return content.to_text().strip()


def _place(top: Node, weights: dict[Node, float]) -> tuple[Node, float]:
    """The lowest node with most of the prose of every node above it, and its weight."""
    most = weights.get(top, 0.0)
    for node, weight in weights.items():  # of children one at most has so much, and it stands after its parent
        if weight >= _MOST * most and node.parent == top:
            top, most = node, weight
    return top, most


def _weigh(own: dict[Node, int]) -> tuple[dict[Node, float], dict[Node, float]]:
    """How much prose every node has, in it and below it, and how much of that is furniture's; parents stand first."""
    furniture: dict[Node, bool] = {}
    for node in own:
        _climb(node, furniture)
    weights, aside = dict.fromkeys(furniture, 0.0), dict.fromkeys(furniture, 0.0)
    for node, inside in reversed(furniture.items()):
        size = float(own.get(node, 0))
        if inside:
            size *= _FURNITURE_COUNTS
            aside[node] += size
        weights[node] += size
        if (parent := node.parent) is not None:
            weights[parent] += weights[node]
            aside[parent] += aside[node]
    return weights, aside


def _in_paragraphs(document: Document) -> dict[Node, int]:
    """The characters of prose in the paragraphs directly under a node."""
    own: dict[Node, int] = {}
    left = _MOST_READ
    for paragraph in document.find_all("p"):
        size = len(paragraph.text)
        if size < _PARAGRAPH:
            continue
        left -= size
        if left < 0:
            break
        if size < _LONG:
            links = paragraph.find_all("a", limit=_MOST_LINKS)
            left -= _LINK * len(links)
            for link in links:
                size -= len(link.text)
        parent = paragraph.parent
        if size > 0 and parent is not None:
            own[parent] = own.get(parent, 0) + size
    return own


def _add_other(document: Document, own: dict[Node, int]) -> None:
    """The same for text that is in no paragraph."""
    for element in document.select(_OTHER):
        size = sum(len(child.data.strip()) for child in element.children if isinstance(child, Text))
        if size >= _OWN:
            own[element] = own.get(element, 0) + size


def _climb(place: Node, furniture: dict[Node, bool]) -> None:
    """Note of a node and all nodes above it, the highest first, whether they are furniture or in it."""
    path = []
    node: Node | None = place
    while node is not None and node not in furniture:
        path.append(node)
        node = node.parent
    inside = node is not None and furniture[node]
    for node in reversed(path):
        inside = inside or (isinstance(node, Element) and _is_furniture(node))
        furniture[node] = inside


def _is_furniture(element: Element) -> bool:
    tag = element.tag
    if tag in _ASIDE:
        return True
    if tag in _STRUCTURE:
        return False
    named, known = element.attr("class"), element.attr("id")
    return bool(named and _is_named_so(named[:_NAME])) or bool(known and _is_named_so(known[:_NAME]))


@lru_cache(maxsize=4_096)  # a site has few names, and the search costs 5 us
def _is_named_so(name: str) -> bool:
    return _NAMED.search(name.lower()) is not None


def _cut(content: Node, weights: dict[Node, float], much: float) -> None:
    """Take out what is no part of the article and has no more of its prose than `much`."""
    for element in content.select(_BOXES)[:_MOST_CUT]:
        if weights.get(element, 0.0) <= much and (_is_furniture(element) or _is_links(element)):
            element.decompose()


def _is_links(element: Element) -> bool:
    """Whether a list or a block is mostly links to elsewhere."""
    if element.tag not in _LISTS:
        return False
    linked = sum(len(link.text) for link in element.find_all("a", limit=_MOST_LINKS))
    return linked > 0 and linked > _IN_LINKS * len(element.text)
