"""What a body is: a page, plain text, or something we keep but do not read."""

from __future__ import annotations

from typing import Literal

from harvestman import media

Kind = Literal["html", "text", "other"]

_KINDS: dict[str, Kind] = {**dict.fromkeys(media.HTML, "html"), "text/plain": "text"}


def kind_of(body: bytes, content_type: str) -> Kind:
    """The kind of a body: as its content type says, unless that says nothing or is plainly wrong."""
    return _KINDS.get(media.real(body[: media.HEAD], media.essence(content_type)), "other")
