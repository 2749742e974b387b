"""Words as the corpus counts them: in scripts without spaces every character is one."""

from __future__ import annotations

import re

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Thai, Lao, Burmese, Khmer, kana, Han. Korean has spaces."""
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+(?:['’][^\W{_UNSPACED}]+)*")
_UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")


def words_of(text: str) -> list[str]:
    """The words of a text in lower case."""
    return _WORD.findall(text.lower())


def is_unspaced(word: str) -> bool:
    """Whether it is a character of a script without spaces."""
    return len(word) == 1 and _UNSPACED_CHARACTER.match(word) is not None
