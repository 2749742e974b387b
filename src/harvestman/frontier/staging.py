"""What has been decided since the last commit, and the numbers that put it in order."""

from __future__ import annotations

from harvestman.model import HostKey, Instant, JobTally, Partition, UrlId, UrlRecord
from harvestman.ports import Changes


class Staging:
    """Changes on their way into one atomic commit (`take` -> State.commit), and the hosts they give work to."""

    def __init__(self) -> None:
        self.changes = Changes()
        self.touched: dict[HostKey, tuple[Partition, int]] = {}
        """Hosts with new entries: partition, and a bit per bucket."""
        self.seq = 0
        """The last sequence number given out; carried over restarts, for a wall clock may be set back."""
        self.jobs: dict[int, JobTally] = {}
        self.blocked = 0
        """URLs that robots.txt forbids."""

    def take(self) -> Changes:
        changes, self.changes = self.changes, Changes()
        return changes

    def next_seq(self, now: Instant) -> int:
        """A number larger than any given before."""
        # Microseconds, always growing: an entry never lands before a cursor, whoever owned the host before.
        self.seq = max(self.seq + 1, int(now * 1e6))
        return self.seq

    def queue(self, partition: Partition, host: HostKey, url: UrlId, record: UrlRecord, now: Instant) -> None:
        """A URL into its host's queue, behind all that is there in its bucket."""
        record.seq = self.next_seq(now)
        bucket = record.bucket
        self.changes.records[url] = record
        self.changes.queued.append((partition, host, bucket, record.seq, url))
        mask = self.touched[host][1] if host in self.touched else 0
        self.touched[host] = (partition, mask | 1 << bucket)

    def job(self, number: int) -> JobTally:
        found = self.jobs.get(number)
        if found is None:
            found = self.jobs[number] = JobTally()
        return found
