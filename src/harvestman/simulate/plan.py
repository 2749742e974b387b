"""What is to be simulated: how large a web, how well it behaves, and which of all such webs."""

from __future__ import annotations

from dataclasses import dataclass

from harvestman.errors import UsageError
from harvestman.model import Instant

PROFILES = ("clean", "mixed", "wild", "storm")
DAY = 86_400.0
START = Instant(19_675 * DAY)
"""Midnight, UTC, when every simulation begins."""


@dataclass(frozen=True)
class Plan:
    """The numbers that a modelled web follows from."""

    hosts: int = 1_000
    pages: int = 10_000
    """On all hosts together, about: the largest has the most, as Zipf says."""
    seed: int = 7
    profile: str = "mixed"

    def __post_init__(self) -> None:
        if not 1 <= self.hosts <= 10_000_000:
            raise UsageError("--hosts: from 1 to 10,000,000")
        if not self.hosts <= self.pages <= 10_000_000_000:
            raise UsageError("--pages: at least one for each host, and at most 10,000,000,000")
        if self.profile not in PROFILES:
            raise UsageError(f"--profile: {self.profile} is none of {', '.join(PROFILES)}")
