"""Who answers for a crawl: required before anything outside loopback is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address, ip_network

from harvestman.config import Config
from harvestman.errors import UsageError
from harvestman.policy.urls import host_of

_CONTACT = re.compile(r"https?://[^\s/]+\.[^\s]+|(?:mailto:)?[^\s@]+@[^\s@]+\.[^\s@]+", re.IGNORECASE)


def require_contact(config: Config, seeds: Iterable[str]) -> None:
    """Raise UsageError when a crawl could leave this machine and names nobody who answers for it."""
    if config.contact:
        if not _CONTACT.fullmatch(config.contact) or not config.contact.isascii() or "\n" in config.contact:
            raise UsageError(f"contact {config.contact!r} must be a URL or an e-mail address that people can reach")
        return
    if _stays_home(config, seeds):
        return
    raise UsageError(
        "this crawl would ask servers that are not yours. Say who answers for it with --contact URL_OR_EMAIL (or "
        "`contact` in the configuration): it is sent in the User-Agent, so that site owners can reach you"
    )


def _stays_home(config: Config, seeds: Iterable[str]) -> bool:
    """Every name is resolved by a server on this machine and only loopback may be touched, or every seed is local."""
    if config.allow and all(_loopback_network(network) for network in config.allow) and _loopback(config.dns):
        return True
    return config.scope in ("site", "host", "path") and all(_local(host_of(seed)) for seed in seeds)


def _loopback_network(text: str) -> bool:
    try:
        return ip_network(text, strict=False).is_loopback
    except ValueError:
        return False


def _loopback(dns: str) -> bool:
    return bool(dns) and _local(dns.rpartition(":")[0] or dns)


def _local(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
