"""Whom names are asked of: the name servers somebody names, those of this machine, its hosts file; whose turn it is."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import SplitResult, urlsplit

from harvestman.errors import UsageError

REST: Final = 30.0
"""Seconds that a name server which did not answer is left alone, as long as there is another."""
_PORT: Final = 53
LARGEST: Final = 8_192
"""Bytes of an answer that are read, at most."""


class Plain(NamedTuple):
    """A name server asked over UDP, and over TCP when its answer is too long for that."""

    address: str
    port: int


class Https(NamedTuple):
    """A name server asked over HTTPS (RFC 8484)."""

    url: str
    address: str
    """Where it is: its name cannot be looked up before there is somebody to ask."""


Upstream: TypeAlias = Plain | Https


def read_upstream(text: str) -> Upstream:
    """What somebody wrote: HOST, HOST:PORT, https://HOST/PATH or https://NAME/PATH#HOST, where HOST is an IP address.

    Raises UsageError with the cure.
    """
    return _read_https(text) if text.lower().startswith("https:") else _read_plain(text)


def _read_plain(text: str) -> Plain:
    address = _server_address(text)
    host, colon, digits = text.rpartition(":")
    if address is not None:
        return Plain(address, _PORT)
    address = _server_address(host)
    if not colon or address is None or (":" in address and not host.startswith("[")):
        raise UsageError(
            f"dns {text!r}: a name server is named by its IP address, such as 9.9.9.9:53 or [2620:fe::9]:53"
        )
    if not (digits.isascii() and digits.isdigit() and 0 < int(digits) < 65_536):
        raise UsageError(f"dns {text!r}: {digits!r} is not a port")
    return Plain(address, int(digits))


def _read_https(text: str) -> Https:
    parts = _split(text)
    host = parts.hostname or ""
    address = _server_address(parts.fragment or host)
    if not host or "@" in parts.netloc or address is None:
        raise UsageError(
            f"dns {text!r}: DNS over HTTPS needs an address to begin with: https://9.9.9.9/dns-query, "
            "or a name with its address behind a #: https://dns.quad9.net/dns-query#9.9.9.9"
        )
    return Https(parts._replace(fragment="").geturl(), address)


def _split(text: str) -> SplitResult:
    try:
        if not text.isascii() or any(ch <= " " or ch == "\x7f" for ch in text):
            raise ValueError("nothing but visible ASCII may be in it")
        parts = urlsplit(text)
        _ = parts.port  # looked at, for it says if it is none
    except ValueError as fault:
        raise UsageError(f"dns {text!r} is not a URL: {fault}") from None
    return parts


def _server_address(host: str) -> str | None:
    return "127.0.0.1" if host == "localhost" else as_address(host)


class Failover:
    """Which name server is asked: the first that is well. One that failed rests, so that it costs its patience once.

    After its rest a single look-up tries it again; the others go on with the next until that one has an answer.
    """

    def __init__(self, upstreams: Sequence[Upstream]) -> None:
        self._upstreams = tuple(upstreams)
        self._resting: dict[Upstream, float] = {}

    def __len__(self) -> int:
        return len(self._upstreams)

    def choose(self, tried: Sequence[Upstream], moment: float) -> Upstream:
        """For a look-up that has tried these. When all of them rest, they are asked all the same."""
        well = [upstream for upstream in self._upstreams if self._resting.get(upstream, 0.0) <= moment]
        chosen = min(well or self._upstreams, key=tried.count)
        if chosen in self._resting:
            self._resting[chosen] = moment + REST
        return chosen

    def failed(self, upstream: Upstream, moment: float) -> None:
        """It did not answer."""
        self._resting[upstream] = moment + REST

    def answered(self, upstream: Upstream) -> None:
        """Whatever it said: it is there."""
        self._resting.pop(upstream, None)


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
        Plain(address, _PORT)
        for words in _lines(path)
        if words[0] == "nameserver" and len(words) > 1 and (address := as_address(words[1])) is not None
    ]


def _lines(path: Path) -> list[list[str]]:
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return []
    return [words for line in text.splitlines() if (words := line.partition("#")[0].split())]
