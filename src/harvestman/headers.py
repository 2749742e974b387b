"""Header fields, read by one set of rules: from the wire and from the store alike. Pure."""

from __future__ import annotations

from collections.abc import Iterable


def parse_fields(lines: Iterable[bytes], encoding: str = "latin-1") -> dict[str, str]:
    """Field lines as lower-case names and their values; repeats joined by ', '.

    A folded line continues the field before it; a line without a name and a colon is not a field and is left out.
    Only ASCII blanks are trimmed: to latin-1 the last byte of a UTF-8 'à' is one too.
    """
    fields: dict[str, str] = {}
    name = ""
    for line in lines:
        label, colon, rest = line.partition(b":")
        if line[:1] in (b" ", b"\t"):
            more = line.strip().decode(encoding, "replace")
            if more and name:
                fields[name] = f"{fields[name]} {more}"
            continue
        name = label.strip().decode(encoding, "replace").lower() if colon else ""
        if name:
            value = rest.strip().decode(encoding, "replace")
            fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return fields
