"""Removes content codings, never trusting what a body says of its own size."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

import brotli  # type: ignore[import-untyped]  # the package ships no types
import zstandard
from isal import igzip_lib

DEFAULT_LIMIT: Final = 20_000_000
"""Bytes a page may decode to."""
MAX_RATIO: Final = 250
"""How many times its wire size a body may decode to. Dense HTML tables reach 100; bombs start at 1,000."""
RATIO_FLOOR: Final = 1_000_000
"""Below this size a high ratio harms nobody."""
MAX_CODINGS: Final = 4
_MAX_WINDOW: Final = 8 * 1024 * 1024
"""RFC 9659: the largest window a zstd content coding may ask for."""
_PIECE: Final = 4096
_INFLATE_FAULTS: Final = (cast(type[Exception], igzip_lib.error), EOFError, ValueError)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


@dataclass(frozen=True, slots=True)
class BadBody:
    """A body that cannot be decoded, and why."""

    reason: str


_Decoder: TypeAlias = Callable[[bytes, int], bytes | None]
"""Decodes at most `room` bytes of a body: what it could read of a broken one, None when that is nothing at all."""


def decode(body: bytes, encoding: str, limit: int = DEFAULT_LIMIT) -> bytes | BadBody:
    """The body without its content codings (the value of Content-Encoding, several in the order applied).

    - A body that is plainly not in the coding it claims (readable text) comes back as it is.
    - A truncated or broken body gives what could be read of it, if anything could.
    - More than `limit` bytes, or far more than the wire size allows, is a `BadBody`; memory stays within `limit`.
    - A coding nobody has heard of is ignored, as browsers do.
    """
    codings = [name for part in encoding.split(",") if (name := part.strip().lower()) not in _IDENTITY]
    if len(codings) > MAX_CODINGS:
        return BadBody(f"{len(codings)} content codings on top of each other")
    room = min(limit, max(RATIO_FLOOR, MAX_RATIO * len(body)))
    for name in reversed(codings):
        decoded = _remove(body, name, room)
        if isinstance(decoded, BadBody):
            return decoded
        body = decoded
    return body


def _remove(body: bytes, name: str, room: int) -> bytes | BadBody:
    if name in _UNSUPPORTED:
        return BadBody(f"content coding {name} is not supported")
    decoder = _DECODERS.get(name)
    if decoder is None or not body:
        return body
    if _contradicts(body, name):
        return body if _readable(body) else BadBody(f"not {name}, whatever the header says")
    decoded = decoder(body, room + 1)
    if decoded is None:
        return BadBody(f"broken {name} data")
    if len(decoded) > room:
        return BadBody(f"decodes to more than {room} bytes")
    return decoded


def _contradicts(body: bytes, name: str) -> bool:
    """Whether the first bytes rule the coding out."""
    match name:
        case "gzip" | "x-gzip":
            return body[:2] != b"\x1f\x8b"
        case "zstd":
            return body[:4] != b"\x28\xb5\x2f\xfd" and body[1:4] != b"\x2a\x4d\x18"
        case _:
            # deflate and br have no magic number: text would decode to a few bytes of noise before it fails.
            return not _zlib_header(body) and _readable(body)


def _readable(body: bytes) -> bool:
    return _CONTROL.search(body, 0, 512) is None


def _zlib_header(body: bytes) -> bool:
    return len(body) > 1 and body[0] & 0x0F == 8 and (body[0] << 8 | body[1]) % 31 == 0


def _gzip(body: bytes, room: int) -> bytes | None:
    """All members of a gzip body; what follows the last one is ignored."""
    parts: list[bytes] = []
    while body[:2] == b"\x1f\x8b" and room > 0:
        # The trailer's size makes one allocation of the right size likely. A lie costs speed, nothing else.
        hint = int.from_bytes(body[-4:], "little") + 1
        part, body = _inflate(body, igzip_lib.DECOMP_GZIP, room, hint)
        if part is None:
            break
        parts.append(part)
        room -= len(part)
    return b"".join(parts) if parts else None


def _deflate(body: bytes, room: int) -> bytes | None:
    flag = igzip_lib.DECOMP_ZLIB if _zlib_header(body) else igzip_lib.DECOMP_DEFLATE
    return _inflate(body, flag, room, 8 * len(body))[0]


def _inflate(body: bytes, flag: int, room: int, hint: int) -> tuple[bytes | None, bytes]:
    """One deflate stream, at most `room` bytes of it, and the bytes behind it. `hint` is its likely size."""
    stream = igzip_lib.IgzipDecompressor(flag)
    try:
        # With a limit far above the need the library allocates all of it: 0.06 ms a page instead of 0.03.
        part = stream.decompress(body, min(room, hint, 64 * len(body)))
        parts = [part]
        while not stream.eof and not stream.needs_input and (room := room - len(part)) > 0:
            part = stream.decompress(b"", min(room, 4 * len(part) + _PIECE))
            parts.append(part)
    except _INFLATE_FAULTS:
        return _salvage(igzip_lib.IgzipDecompressor(flag), body, room), b""
    if stream.eof:
        return b"".join(parts), stream.unused_data
    return b"".join(parts) or None, b""


def _salvage(stream: igzip_lib.IgzipDecompressor, body: bytes, room: int) -> bytes | None:
    """What comes out before the stream breaks."""
    parts: list[bytes] = []
    for start in range(0, len(body), _PIECE):
        try:
            part = stream.decompress(body[start : start + _PIECE], room)
        except _INFLATE_FAULTS:
            break
        parts.append(part)
        room -= len(part)
        if stream.eof or room <= 0:
            break
    return b"".join(parts) or None


def _brotli(body: bytes, room: int) -> bytes | None:
    stream = brotli.Decompressor()
    parts: list[bytes] = []
    piece = body
    try:
        while room > 0 and not stream.is_finished():
            part: bytes = stream.process(piece, output_buffer_limit=room)
            parts.append(part)
            room -= len(part)
            if not part and stream.can_accept_more_data():
                break
            piece = b""
    except brotli.error:
        return b"".join(parts) or None
    return b"".join(parts) if stream.is_finished() else b"".join(parts) or None


def _zstd(body: bytes, room: int) -> bytes | None:
    parts: list[bytes] = []
    reader = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).stream_reader(body, read_across_frames=True)
    try:
        while room > 0 and (part := reader.read(min(room, 1 << 17))):
            parts.append(part)
            room -= len(part)
    except zstandard.ZstdError:
        return b"".join(parts) or None
    return b"".join(parts) or _empty_frame(body)


def _empty_frame(body: bytes) -> bytes | None:
    try:
        return b"" if zstandard.get_frame_parameters(body).content_size == 0 else None
    except zstandard.ZstdError:
        return None


_IDENTITY: Final = frozenset({"", "identity", "none"})
_UNSUPPORTED: Final = frozenset({"compress", "x-compress", "dcb", "dcz", "exi", "pack200-gzip"})
_DECODERS: Final[dict[str, _Decoder]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
