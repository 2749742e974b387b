"""What a simulated web is made from: a few numbers, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from harvestman.errors import UsageError

PROFILES = ("clean", "mixed", "wild")


@dataclass(frozen=True)
class Plan:
    """Equal plans give equal webs, on any machine and on any day."""

    hosts: int = 200
    pages: int = 50
    """Ordinary pages of each host; odd URLs (redirects, traps, binaries ...) come on top."""
    seed: int = 7
    profile: str = "mixed"
    scripted: float = 0.0
    """The share of the hosts whose pages are shells that JavaScript fills (see `apps`)."""

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise UsageError(f"unknown profile {self.profile!r}: use one of {', '.join(PROFILES)}")
        if not 1 <= self.hosts <= 1_000_000:
            raise UsageError(f"hosts must be 1 to 1,000,000, not {self.hosts}")
        if not 1 <= self.pages <= 1_000_000:
            raise UsageError(f"pages must be 1 to 1,000,000, not {self.pages}")
        if not 0.0 <= self.scripted <= 1.0:
            raise UsageError(f"the share of scripted hosts must be 0 to 1, not {self.scripted}")

    @property
    def seed_count(self) -> int:
        """How many home pages a crawl is told of; everything else is found by links."""
        return max(1, self.hosts // 20)
