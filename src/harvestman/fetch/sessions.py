"""TLS sessions, so that a second connection to a host takes a short handshake.

libcurl keeps the sessions of 25 peers, with two tickets each, in a multi handle or in a share, and has no option for
more. A crawl comes back to a host after many others, so it needs more places: hosts are spread over many shares by
their name. What cannot grow cannot leak: `SHARES` x 25 peers x 2 tickets, 3 MB for 1,500 hosts.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

import pycurl

SHARES: Final = 64


class Sessions:
    """The shares, made as they are needed."""

    def __init__(self, shares: int = SHARES) -> None:
        self._shares: list[pycurl.CurlShare | None] = [None] * shares

    def of(self, authority: str) -> pycurl.CurlShare:
        """The share with the sessions of a host."""
        place = crc32(authority.encode()) % len(self._shares)
        share = self._shares[place]
        if share is None:
            share = self._shares[place] = pycurl.CurlShare()
            share.setopt(pycurl.SH_SHARE, pycurl.LOCK_DATA_SSL_SESSION)
        return share
