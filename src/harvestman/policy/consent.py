"""May this crawl begin? What a polite operator must have said before anything outside the machine is asked.

Outside loopback a crawl needs a contact, and keeps at least a tenth of a second between two requests to a host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network, ip_address, ip_network

from harvestman.config import Config
from harvestman.errors import UsageError
from harvestman.model import HostKey
from harvestman.policy.guard import Guard
from harvestman.policy.urls import host_of

SHORTEST_DELAY = 0.1
"""Seconds between two requests to a host outside loopback: the pace of the site cap, 10 a second."""
GENTLE_DELAY = 1.0
"""Below this the owner of a host should have agreed; the command line says so."""
_LOOPBACK = IPv4Network("127.0.0.0/8")
_URL = re.compile(r"https?://[^\s/?#@]+\.[^\s/?#@]+([/?#]\S*)?", re.IGNORECASE)
_MAIL = re.compile(r"(mailto:)?[^\s@()<>]+@[^\s@()<>]+\.[^\s@()<>.]+", re.IGNORECASE)


def refuse_rudeness(config: Config, seeds: Iterable[str]) -> None:
    """Raise UsageError, with the cure, for a crawl that may not begin. `seeds`: all it was ever given, one pass."""
    _check_contact(config.contact)
    if stays_home(config, _checked_seeds(Guard(config.allow, config.ports), seeds)):
        return
    if not config.contact:
        raise UsageError(_NO_CONTACT)
    for name, delay in (("delay", config.politeness.delay), ("politeness.ip_delay", config.politeness.ip_delay)):
        if delay < SHORTEST_DELAY:
            raise UsageError(
                f"{name} {delay:g} s is too fast for servers that are not yours: outside loopback it is at least "
                f"{SHORTEST_DELAY:g} s (1 s is the default, and what strangers should get)"
            )


def stays_home(config: Config, seeds: Iterable[str]) -> bool:
    """Whether nothing outside loopback can be touched. Looks at every seed, and keeps none: there may be millions.

    Loopback seeds with a scope that cannot leave them; or the simulated web: names under .test, answered by a name
    server on loopback, with loopback allowed. Such a name server alone proves nothing: 127.0.0.53 answers for the
    whole Internet, so from a loopback seed a wide scope could lead anywhere.
    """
    simulated = _simulated(config)
    narrow = config.scope in ("site", "host", "path")
    at_home = (simulated or narrow) and all(proxy.url == "direct" for proxy in config.proxies)
    for seed in seeds:
        host = host_of(seed)
        at_home = at_home and ((simulated and host.endswith(".test")) or (narrow and _loopback(host)))
    return at_home


def hurried(config: Config) -> bool:
    """Whether the delay is shorter than strangers should get."""
    return config.politeness.delay < GENTLE_DELAY


_NO_CONTACT = """a crawl outside this machine needs --contact: a URL or an e-mail address that answers for it.
It is sent in the User-Agent of every request, so that the owner of a server can ask you to slow down or to stop:
  harvestman crawl https://example.org --contact https://your.site/about-our-crawler
To try Harvestman without touching the Internet: harvestman crawl --sim"""


def _check_contact(contact: str) -> None:
    # It becomes part of a header: nothing but visible ASCII may be in it.
    if contact and not (contact.isascii() and (_URL.fullmatch(contact) or _MAIL.fullmatch(contact))):
        raise UsageError(
            f"--contact {contact!r} is neither a URL (https://your.site/crawler) "
            "nor an e-mail address (crawl@your.site)"
        )


def _checked_seeds(guard: Guard, seeds: Iterable[str]) -> Iterator[str]:
    """A seed on an address or a port that the guard would refuse could only ever fail: say so now."""
    for seed in seeds:
        if reason := guard.port_refusal(seed):
            raise UsageError(f"seed {seed}: {reason}")
        host = host_of(seed)
        address = "127.0.0.1" if _named_loopback(host) else host
        if _is_address(address) and (reason := guard.refusal(address)):
            literal = ip_address(address)
            network = _LOOPBACK if literal in _LOOPBACK else f"{address}/{literal.max_prefixlen}"
            raise UsageError(f"seed {seed}: {reason}; if that is what you want, add --allow {network}")
        yield seed


def _simulated(config: Config) -> bool:
    servers = [text.rpartition(":")[0] if text.count(":") == 1 else text for text in config.name_servers]
    allowed = (ip_network(text.strip(), strict=False) for text in config.allow)
    covered = any(isinstance(network, IPv4Network) and network.supernet_of(_LOOPBACK) for network in allowed)
    return covered and bool(servers) and all(_loopback(HostKey(server.strip("[]"))) for server in servers)


def _loopback(host: HostKey) -> bool:
    return _named_loopback(host) or (_is_address(host) and ip_address(host).is_loopback)


def _named_loopback(host: HostKey) -> bool:
    return host == "localhost" or host.endswith(".localhost")


def _is_address(host: str) -> bool:
    if not (host[-1:].isdigit() or ":" in host):  # spares names, of which there may be millions, an exception each
        return False
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
