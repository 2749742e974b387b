"""The text of a PDF, for the corpus: read in a process of its own, which may crash, hang or eat memory as it likes.

PDFium (pypdfium2, the `corpus` extra) reads 600 pages a second, eighteen times as fast as pypdf, and joins words that
the end of a line parts; but it is C++, and a PDF can be made to break that. So it runs under hard limits, one process
per document, which takes 0.1 s to start.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from harvestman.model import Bytes, Seconds

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument  # type: ignore[import-untyped]  # ships no types

_MAGIC = 1_024
"""Bytes in which a PDF says that it is one."""


@dataclass(slots=True, frozen=True)
class Limits:
    """What one document may cost."""

    body: Bytes = Bytes(50_000_000)
    pages: int = 1_000
    text: int = 5_000_000
    """Characters."""
    seconds: Seconds = Seconds(20.0)
    """Of CPU, and twice that by the clock."""
    memory: Bytes = Bytes(1 << 30)


def can_read() -> bool:
    """Whether the `corpus` extra is installed."""
    return find_spec("pypdfium2") is not None


def text_of(body: bytes, limits: Limits | None = None) -> str:
    """The text of a PDF, as far as the limits go: what was read before one of them ended it.

    Empty when it has no text, is no PDF, or is too large. Without the `corpus` extra (`can_read`) everything is empty.
    """
    limits = limits or Limits()
    if b"%PDF-" not in body[:_MAGIC] or len(body) > limits.body:
        return ""
    told = (limits.pages, limits.text, max(1, int(limits.seconds)), limits.memory)
    command = [sys.executable, "-I", "-m", __name__, *map(str, told)]
    quiet, patience = subprocess.DEVNULL, 2 * limits.seconds
    try:
        raw = subprocess.run(command, input=body, stdout=subprocess.PIPE, stderr=quiet, timeout=patience).stdout
    except subprocess.TimeoutExpired as late:
        raw = late.stdout or b""
    return raw.decode("utf-8", "ignore").strip()[: limits.text]


# -- in the other process ----------------------------------------------------------------------------------------------


def main(pages: int, characters: int, cpu: int, memory: int) -> None:
    """Read a PDF from standard input, write its text to standard output page by page."""
    _confine(cpu, memory)
    from pypdfium2 import PdfDocument, PdfiumError

    try:
        document = PdfDocument(sys.stdin.buffer.read())
        count = min(pages, len(document))
    except PdfiumError:
        return
    for number in range(count):
        text = _page(document, number)[:characters]
        characters -= len(text)
        sys.stdout.buffer.write(text.encode("utf-8", "ignore"))
        sys.stdout.buffer.flush()  # whatever the next page does, this one is safe
        if characters <= 0:
            return


def _confine(cpu: int, memory: int) -> None:
    """No more of anything than reading needs: it writes no files, and leaves none when it crashes."""
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _page(document: PdfDocument, number: int) -> str:
    """The text of one page; '' when it cannot be read."""
    from pypdfium2 import PdfiumError

    try:
        text: str = document[number].get_textpage().get_text_bounded()
    except PdfiumError:
        return ""
    # U+0002 stands where a word was parted by a hyphen at the end of a line.
    return text.replace("\x02", "").replace("\r\n", "\n").replace("\0", "") + "\n"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:5]))
