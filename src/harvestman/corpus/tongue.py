"""The language of a document, and how sure the model is of it: more of the text is looked at than on the hot path."""

from __future__ import annotations

from harvestman.pages.language import told

_SAMPLE = 1_000


def language_of(text: str) -> tuple[str, float]:
    """The ISO 639-1 code (639-3 where there is none) and the model's confidence; ('', 0.0) for too short a text."""
    start = max(0, (len(text) - _SAMPLE) // 2)  # the middle: what a page begins and ends with is the least typical
    return told(text[start : start + _SAMPLE])
