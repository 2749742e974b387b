"""Sets an easy handle on the way its request takes: straight to the vetted address, or through a proxy.

Through a proxy the name in the URL goes to the proxy as it is (SOCKS5 with the name, CONNECT, or the absolute URL of
plain HTTP): nothing here looks it up. The proxy's own name was looked up before; libcurl is told the address.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pycurl

from harvestman.model import Request, Route, Seconds

_SUPPRESS_CONNECT_HEADERS: Final = 265
"""CURLOPT_SUPPRESS_CONNECT_HEADERS, which pycurl has no name for: what a proxy says is not the page's head."""
_ANYTHING: Final = "-"
"""A password for a proxy that asks for none: SOCKS has no way to send an empty one (RFC 1929)."""


def proxy_host(proxy: str) -> str:
    """The host of scheme://host:port, without brackets."""
    return proxy.partition("://")[2].rpartition(":")[0].strip("[]")


class Ways:
    """Puts handles on routes. A handle remembers its route, since each option costs a microsecond."""

    def __init__(self, secrets: Mapping[str, str], connect: Seconds) -> None:
        """`secrets`: passwords by the name of their environment variable; `connect`: how long a straight way takes."""
        self._secrets = secrets
        self._connect = connect

    def aim(self, curl: pycurl.Curl, request: Request, before: Route) -> None:
        """Have the next transfer of a handle go where the request says; `before` is the route it is set on."""
        route, ip = request.route, request.address
        if route is not before and route != before:
            self._change(curl, route)
        spelt = f"[{ip}]" if ":" in ip else ip
        if route.proxy:
            self._aim_at_proxy(curl, route.proxy, spelt)
        else:
            # An empty host and port match whatever the URL names; an empty target port keeps the URL's own.
            curl.setopt(pycurl.CONNECT_TO, [f"::{spelt}:"])

    def _aim_at_proxy(self, curl: pycurl.Curl, proxy: str, ip: str) -> None:
        scheme, _, rest = proxy.partition("://")
        host, _, port = rest.rpartition(":")
        if scheme == "https":
            # Its certificate is for the name, so libcurl must know that, and the address besides.
            curl.setopt(pycurl.PROXY, proxy)
            curl.setopt(pycurl.RESOLVE, [f"{host}:{port}:{ip}"])
        else:
            curl.setopt(pycurl.PROXY, f"{scheme}://{ip}:{port}")

    def _change(self, curl: pycurl.Curl, route: Route) -> None:
        curl.setopt(pycurl.PROXY, "")
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, int((self._connect + route.slack) * 1000))
        curl.setopt(pycurl.INTERFACE, f"host!{route.source}" if route.source else "")
        if route.proxy:
            curl.unsetopt(pycurl.CONNECT_TO)  # an empty list would leave the old one
            curl.setopt(_SUPPRESS_CONNECT_HEADERS, 1)
        if route.user:
            curl.setopt(pycurl.PROXYUSERNAME, route.user)
            curl.setopt(pycurl.PROXYPASSWORD, self._secrets.get(route.password_env, _ANYTHING))
        else:
            curl.unsetopt(pycurl.PROXYUSERNAME)
            curl.unsetopt(pycurl.PROXYPASSWORD)
