"""What this machine says about names: the hosts file, its name servers, and addresses written as names."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import TypeAlias

Upstream: TypeAlias = tuple[str, int]
"""Address and port of a name server."""


def as_address(host: str) -> str | None:
    """The canonical spelling when `host` is an IP address, with or without brackets; else None."""
    try:
        return str(ipaddress.ip_address(host.removeprefix("[").removesuffix("]")))
    except ValueError:
        return None


def read_hosts(path: Path) -> dict[str, tuple[str, ...]]:
    """Names of a hosts file, IPv4 addresses first. A missing or odd file has no names."""
    hosts: dict[str, tuple[str, ...]] = {}
    for words in _lines(path):
        address = as_address(words[0])
        if address is None:
            continue
        for name in words[1:]:
            key = name.lower().rstrip(".")
            known = hosts.get(key, ())
            if address not in known:
                hosts[key] = tuple(sorted((*known, address), key=lambda a: ":" in a))
    return hosts


def read_upstreams(path: Path) -> list[Upstream]:
    """The name servers of a resolv.conf, in its order."""
    return [
        (address, 53)
        for words in _lines(path)
        if words[0] == "nameserver" and len(words) > 1 and (address := as_address(words[1])) is not None
    ]


def _lines(path: Path) -> list[list[str]]:
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return []
    return [words for line in text.splitlines() if (words := line.partition("#")[0].split())]
