"""How much of our time and memory one fetch may take."""

from __future__ import annotations

from dataclasses import dataclass

from harvestman.model import Bytes, Seconds


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps of one fetch. Times are kept to a quarter of a second, sizes to the byte."""

    connect: Seconds = Seconds(5.0)
    """TCP and TLS handshake together."""
    first_byte: Seconds = Seconds(10.0)
    """From the start of the request, connecting included, to the first byte of the answer."""
    total_html: Seconds = Seconds(5.0)
    """From the first byte to the last, for pages, robots.txt and error answers."""
    total_large: Seconds = Seconds(30.0)
    """The same for documents that are large by nature: PDF."""
    body: Bytes = Bytes(10_000_000)
    """Wire bytes; a 2xx page above it is refused."""
    error_body: Bytes = Bytes(1_000_000)
    """Wire bytes kept of an answer that is not 2xx; the rest is cut."""
    robots_body: Bytes = Bytes(1024 * 1024 + 1)
    """Wire bytes kept of a robots.txt: one more than is read, so that a reader can tell it was cut."""
    head: Bytes = Bytes(256 * 1024)
    """All header bytes of one answer: interim heads, the final head and trailers."""
    pieces: int = 100_000
    """Chunks (or reads) a body may come in. A million of one byte each would keep a worker busy for a second."""
    held: Bytes = Bytes(256 << 20)
    """All bodies under way together. Beyond it only small ones grow; a large one is dropped and asked for again."""
    idle: Seconds = Seconds(60.0)
    """How long a connection may lie idle and still be used again."""
