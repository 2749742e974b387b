"""Whom TLS connections trust, and which sites are known to have a certificate that is not valid."""

from __future__ import annotations

import os
import ssl
from typing import Final

from harvestman.model import Seconds

_CA_FILES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def default_ca_file() -> str | None:
    """The system's certificate authorities: pycurl's wheels know only the paths of the machine they were built on."""
    found = ssl.get_default_verify_paths().cafile
    return next((path for path in (found, *_CA_FILES) if path and os.path.exists(path)), None)


class KnownBad:
    """Remembers for a while why a site's certificate is not valid, so that not every page fails a handshake first."""

    def __init__(self, keep: Seconds, capacity: int = 10_000) -> None:
        self._keep = keep
        self._capacity = capacity
        self._sites: dict[str, tuple[str, float]] = {}

    def note(self, site: str, reason: str, moment: float) -> None:
        """`site` failed verification at `moment`. A full memory starts afresh: forgetting costs one handshake."""
        if len(self._sites) >= self._capacity:
            self._sites.clear()
        self._sites[site] = reason, moment + self._keep

    def reason(self, site: str, moment: float) -> str | None:
        """Why verification would fail, when that is known and still recent."""
        reason, until = self._sites.get(site, ("", 0.0))
        return reason if moment < until else None
