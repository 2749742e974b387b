"""The language of a document, and how sure the model is of it: more of the text is looked at than on the hot path."""

from __future__ import annotations

from harvestman.pages import language as hot

_SAMPLE = 1_000
_SHORTEST = 20


def language_of(text: str) -> tuple[str, float]:
    """The ISO 639-1 code (639-3 where there is none) and the model's confidence; ('', 0.0) for too short a text."""
    start = max(0, (len(text) - _SAMPLE) // 2)  # the middle: what a page begins and ends with is the least typical
    sample = " ".join(text[start : start + _SAMPLE].split())
    if len(sample) < _SHORTEST:
        return "", 0.0
    labels, chances = hot._model().predict(hot._printable(sample))
    if not labels:
        return "", 0.0
    code = labels[0].removeprefix("__label__")
    return hot._DIALECTS.get(code, code), min(1.0, float(chances[0]))
