"""What a command prints on stdout: plain in a pipe, with a little colour on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

_STYLES = (
    (r"\bok$", "green"),
    (r"\bFAIL$", "bold red"),
    (r"^\S.*$", "bold"),
    (r"(?<=^  )(harvestman .*?)(?=   )", "cyan"),
    (r"The crawl kept its promises\.", "bold green"),
    (r"Promises broken: .*", "bold red"),
)
"""Patterns, tried on every line."""


def show(text: str) -> None:
    """Print, never cutting or wrapping a line."""
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        print(text)
        return
    for line in text.splitlines():
        styled = Text(line)
        for pattern, style in _STYLES:
            styled.highlight_regex(pattern, style)
        console.print(styled)
