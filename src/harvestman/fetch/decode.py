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
MAX_MEMBERS: Final = 2_000
"""Gzip members of one body. Files made for random access have one per 64 KB; more of them is work for nothing."""
_GZIP: Final = b"\x1f\x8b"
_WINDOW: Final = 16_384
_PIECE: Final = 4096
_TRAILER: Final = 8
"""Checksum and size behind a gzip stream."""
_INFLATE_FAULTS: Final = (cast(type[Exception], igzip_lib.error), EOFError, ValueError)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


@dataclass(frozen=True, slots=True)
class BadBody:
    """A body that cannot be decoded, and why."""

    reason: str


_Decoder: TypeAlias = Callable[[bytes, int], tuple[bytes, bool]]
"""Decodes at most `room` bytes of a body. The flag says that it ended as the coding demands: broken and cut bodies give
what could be read of them, and False."""


def decode(body: bytes, encoding: str, limit: int = DEFAULT_LIMIT, ratio: int = MAX_RATIO) -> bytes | BadBody:
    """The body without its content codings (the value of Content-Encoding, several in the order applied).

    - A body that is plainly not in the coding it claims (readable text) comes back as it is.
    - A truncated or broken body gives what could be read of it, if anything could.
    - More than `limit` bytes, or than `ratio` times the wire size, is a `BadBody`; memory stays within `limit`.
    - A coding nobody has heard of is ignored, as browsers do.
    """
    codings = [name for part in encoding.split(",") if (name := part.strip().lower()) not in _IDENTITY]
    if len(codings) > MAX_CODINGS:
        return BadBody(f"{len(codings)} content codings on top of each other")
    room = min(limit, max(RATIO_FLOOR, ratio * len(body)))
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
    decoded, whole = decoder(body, room + 1) if _plausible(body, name) else (b"", False)
    if len(decoded) > room:
        return BadBody(f"decodes to more than {room} bytes")
    if whole:
        return decoded
    if not _has_magic(body, name) and _readable(body):
        return body
    return decoded or BadBody(f"broken {name} data")


def _plausible(body: bytes, name: str) -> bool:
    """Whether the first bytes allow the coding; deflate and br have no magic number, so anything may be theirs."""
    return _has_magic(body, name) or name in ("deflate", "br")


def _has_magic(body: bytes, name: str) -> bool:
    match name:
        case "gzip" | "x-gzip":
            return body[:2] == _GZIP
        case "zstd":
            return body[:4] == b"\x28\xb5\x2f\xfd" or body[1:4] == b"\x2a\x4d\x18"
        case "deflate":
            return _zlib_header(body)
        case _:
            return False


def _readable(body: bytes) -> bool:
    return _CONTROL.search(body, 0, 512) is None


def _zlib_header(body: bytes) -> bool:
    return len(body) > 1 and body[0] & 0x0F == 8 and (body[0] << 8 | body[1]) % 31 == 0


def _gzip(body: bytes, room: int) -> tuple[bytes, bool]:
    """All members of a gzip body; what follows the last one is ignored."""
    # The trailer's size makes one allocation of the right size likely. A lie costs speed, nothing else.
    hint = int.from_bytes(body[-4:], "little") + 1
    first, whole, rest = _inflate(body, igzip_lib.DECOMP_GZIP, room, hint)
    if not whole or rest[:2] != _GZIP:
        return first, whole
    more, whole = _members(rest, room - len(first))
    return b"".join((first, *more)), whole


def _members(rest: bytes, room: int) -> tuple[list[bytes], bool]:
    """The gzip members behind the first.

    Each is read through a small window, for a stream hands back a copy of all that it did not use: ten megabytes of
    empty members, the whole rest given to each, would cost a minute.
    """
    parts: list[bytes] = []
    at = 0
    for _ in range(MAX_MEMBERS):
        stream = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP)
        while not stream.eof and room > 0 and (at < len(rest) or not stream.needs_input):
            piece = rest[at : at + _WINDOW] if stream.needs_input else b""
            at += len(piece)
            try:
                part = stream.decompress(piece, min(room, 8 * _WINDOW))
            except _INFLATE_FAULTS:
                return parts, False
            parts.append(part)
            room -= len(part)
        if not stream.eof:
            return parts, False
        at -= len(stream.unused_data)
        if rest[at : at + 2] != _GZIP:
            return parts, True
    return parts, False


def _deflate(body: bytes, room: int) -> tuple[bytes, bool]:
    """With or without the zlib wrapping: the standard asks for it, some servers leave it out."""
    flag = igzip_lib.DECOMP_ZLIB if _zlib_header(body) else igzip_lib.DECOMP_DEFLATE
    data, whole, rest = _inflate(body, flag, room, 8 * len(body))
    return data, whole and not rest


def _inflate(body: bytes, flag: int, room: int, hint: int) -> tuple[bytes, bool, bytes]:
    """One deflate stream, at most `room` bytes of it; whether it ended; the bytes behind it.

    `hint` is its likely size: given a limit far above the need, the library allocates all of it (0.06 ms a page
    instead of 0.03).
    """
    stream = igzip_lib.IgzipDecompressor(flag)
    left = room
    try:
        part = stream.decompress(body, min(left, hint, 64 * len(body)))
        parts = [part]
        while not stream.eof and not stream.needs_input and (left := left - len(part)) > 0:
            part = stream.decompress(b"", min(left, 4 * len(part) + _PIECE))
            parts.append(part)
    except _INFLATE_FAULTS:
        return _salvage(igzip_lib.IgzipDecompressor(flag), body, room), False, b""
    return b"".join(parts), stream.eof, stream.unused_data if stream.eof else b""


def _salvage(stream: igzip_lib.IgzipDecompressor, body: bytes, room: int) -> bytes:
    """What comes out before the stream breaks. The checksum at its end is left out: a wrong one costs nothing."""
    parts: list[bytes] = []
    end = max(0, len(body) - _TRAILER)
    for start in range(0, end, _PIECE):
        try:
            part = stream.decompress(body[start : min(end, start + _PIECE)], room)
        except _INFLATE_FAULTS:
            break
        parts.append(part)
        room -= len(part)
        if stream.eof or room <= 0:
            break
    return b"".join(parts)


def _brotli(body: bytes, room: int) -> tuple[bytes, bool]:
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
        return b"".join(parts), False
    return b"".join(parts), stream.is_finished()


def _zstd(body: bytes, room: int) -> tuple[bytes, bool]:
    """All frames. The library does not tell a cut frame from a whole one, so only an empty body needs a closer look."""
    parts: list[bytes] = []
    reader = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).stream_reader(body, read_across_frames=True)
    try:
        while room > 0 and (part := reader.read(min(room, 1 << 17))):
            parts.append(part)
            room -= len(part)
    except zstandard.ZstdError:
        return b"".join(parts), False
    return b"".join(parts), bool(parts) or _empty_frame(body)


def _empty_frame(body: bytes) -> bool:
    try:
        return zstandard.get_frame_parameters(body).content_size == 0
    except zstandard.ZstdError:
        return False


_IDENTITY: Final = frozenset({"", "identity", "none"})
_UNSUPPORTED: Final = frozenset({"compress", "x-compress", "dcb", "dcz", "exi", "pack200-gzip"})
_DECODERS: Final[dict[str, _Decoder]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
