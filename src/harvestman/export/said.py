"""What a page says of itself (`model.Data`), as one JSON text for a column or a line."""

from __future__ import annotations

from typing import Any

import msgspec

from harvestman.model import Data


def said(data: Data) -> str | None:
    """An object with what there is of `meta`, `json_ld`, `microdata`, `asks`; None when there is nothing.

    Author and dates have columns of their own.
    """
    found: dict[str, Any] = {}
    if data.meta:
        found["meta"] = data.meta
    if data.json_ld:
        found["json_ld"] = [_in_one_line(block) for block in data.json_ld]
    if data.microdata:
        found["microdata"] = [_in_one_line(item) for item in data.microdata]
    if data.asks:
        found["asks"] = data.asks
    return msgspec.json.encode(found).decode() if found else None


def _in_one_line(block: str) -> msgspec.Raw | str:
    """The block itself; as a string, should it be more than can be read here."""
    try:
        return msgspec.Raw(msgspec.json.format(block, indent=-1).encode())
    except (msgspec.MsgspecError, RecursionError):
        return block
