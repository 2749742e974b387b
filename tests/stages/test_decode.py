"""Content codings: all of them, stacked, broken, mislabelled, and bombs."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import brotli  # type: ignore[import-untyped]  # the package ships no types
import pytest
import zstandard
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from harvestman.fetch.decode import RATIO_FLOOR, BadBody, decode

PAGE = b"<!doctype html><title>A page</title>" + b"".join(b"<p>paragraph %d of many" % n for n in range(3000))


def raw_deflate(data: bytes) -> bytes:
    return zlib.compress(data)[2:-4]


def brotli_compress(data: bytes) -> bytes:
    result = brotli.compress(data, quality=4)
    assert isinstance(result, bytes)
    return result


ENCODERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("x-gzip", gzip.compress),
    "zlib": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "br": ("br", brotli_compress),
    "zstd": ("zstd", zstandard.compress),
}
every_coding = pytest.mark.parametrize(("name", "encode"), ENCODERS.values(), ids=ENCODERS.keys())


@every_coding
def test_round_trip(name: str, encode: Callable[[bytes], bytes]) -> None:
    assert decode(encode(PAGE), name) == PAGE
    assert decode(encode(b""), name) == b""
    assert decode(encode(b"x"), name.upper()) == b"x"
    assert decode(b"", name) == b""


@given(st.binary(max_size=5000), st.lists(st.sampled_from(sorted(ENCODERS)), max_size=3))
def test_stacked_codings_round_trip(data: bytes, codings: list[str]) -> None:
    body = data
    for coding in codings:
        body = ENCODERS[coding][1](body)
    assert decode(body, ", ".join(ENCODERS[coding][0] for coding in codings)) == data


@given(st.binary(max_size=2000), st.sampled_from(["gzip", "deflate", "br", "zstd", "gzip, br", "compress", "nonsense"]))
def test_no_body_is_too_odd(body: bytes, encoding: str) -> None:
    assert isinstance(decode(body, encoding), bytes | BadBody)


@given(st.data())
def test_damage_never_raises(data: st.DataObject) -> None:
    name, encode = ENCODERS[data.draw(st.sampled_from(sorted(ENCODERS)))]
    coded = bytearray(encode(PAGE[:9000]))
    for place in data.draw(st.lists(st.integers(0, len(coded) - 1), max_size=4)):
        coded[place] ^= data.draw(st.integers(1, 255))
    assert isinstance(decode(bytes(coded[: data.draw(st.integers(0, len(coded)))]), name), bytes | BadBody)


@every_coding
def test_a_mislabelled_page_is_taken_as_it_is(name: str, encode: Callable[[bytes], bytes]) -> None:
    for text in (PAGE, b"\nplain words", b"{}", "<p>größer".encode(), "<p>größer".encode("latin-1")):
        assert decode(text, name) == text


@every_coding
def test_noise_is_a_bad_body_or_noise(name: str, encode: Callable[[bytes], bytes]) -> None:
    noise = b"\x00\x01\x02\xff\xfe" * 100
    result = decode(noise, name)
    assert isinstance(result, BadBody) or len(result) < 5000


@pytest.mark.parametrize("name", ["gzip", "zlib", "raw deflate", "br"])
def test_a_truncated_body_gives_its_beginning(name: str) -> None:
    coding, encode = ENCODERS[name]
    coded = encode(PAGE)
    result = decode(coded[: len(coded) // 2], coding)
    assert isinstance(result, bytes)
    assert len(result) > 1000
    assert PAGE.startswith(result)


def test_a_truncated_zstd_body_gives_its_whole_blocks() -> None:
    lines = b"".join(b"<p>%d</p>" % (n * n) for n in range(60_000))
    coded = zstandard.compress(lines)
    result = decode(coded[: len(coded) * 3 // 4], "zstd")
    assert isinstance(result, bytes)
    assert len(result) >= 100_000
    assert lines.startswith(result)


@every_coding
def test_hardly_begun_is_a_bad_body(name: str, encode: Callable[[bytes], bytes]) -> None:
    result = decode(encode(PAGE)[:4], name)
    assert isinstance(result, BadBody) or len(result) < 10


def test_a_broken_middle_gives_what_came_before() -> None:
    lines = b"".join(b"<p>%d</p>" % (n * n) for n in range(20_000))
    coded = bytearray(gzip.compress(lines))
    coded[len(coded) // 2 :] = b"\xff" * (len(coded) - len(coded) // 2)
    result = decode(bytes(coded), "gzip")
    assert isinstance(result, bytes)
    assert result[:50_000] == lines[:50_000]


def test_a_wrong_checksum_costs_nothing_of_the_page() -> None:
    coded = gzip.compress(PAGE)
    result = decode(coded[:-8] + b"\0" * 8, "gzip")
    assert isinstance(result, bytes)
    assert result == PAGE


def test_gzip_members_and_what_follows_them() -> None:
    assert decode(gzip.compress(b"one ") + gzip.compress(b"two"), "gzip") == b"one two"
    assert decode(gzip.compress(PAGE) + b"\0" * 20, "gzip") == PAGE
    assert decode(gzip.compress(PAGE) + b"trailing text", "gzip") == PAGE
    assert decode(gzip.compress(b"") + gzip.compress(PAGE), "gzip") == PAGE


@for_each("encoding", ["", "identity", "none", "utf-8", "binary, identity", " , "])
def test_no_coding_at_all(encoding: str) -> None:
    assert decode(PAGE, encoding) == PAGE


@pytest.mark.parametrize("encoding", ["compress", "gzip, " * 5 + "gzip", "dcb"])
def test_codings_we_do_not_take(encoding: str) -> None:
    assert isinstance(decode(gzip.compress(PAGE), encoding), BadBody)


@pytest.mark.parametrize("coding", ["gzip", "zlib", "br", "zstd", "gzip twice", "gzip that lies", "many members"])
def test_bombs_stay_within_the_limit(coding: str) -> None:
    body, encoding = bomb(coding)
    limit = 3_000_000
    tracemalloc.start()
    try:
        result = decode(body, encoding, limit)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(result, BadBody)
    assert "more than" in result.reason
    assert peak < 3 * limit


def bomb(coding: str) -> tuple[bytes, str]:
    zeros = bytes(20_000_000)
    match coding:
        case "gzip twice":
            return gzip.compress(gzip.compress(zeros)), "gzip, gzip"
        case "gzip that lies":
            return gzip.compress(zeros)[:-4] + (100).to_bytes(4, "little"), "gzip"
        case "many members":
            return gzip.compress(bytes(100_000)) * 200, "gzip"
        case _:
            name, encode = ENCODERS[coding]
            return encode(zeros), name


def test_a_ratio_no_page_has_is_a_bomb_below_the_limit() -> None:
    assert isinstance(decode(gzip.compress(bytes(5_000_000)), "gzip"), BadBody)
    small = bytes(RATIO_FLOOR)
    assert decode(gzip.compress(small), "gzip") == small


def test_a_zstd_window_above_the_standard_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=0)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    coded = compressor.compress(PAGE) + compressor.flush()
    assert isinstance(decode(coded, "zstd"), BadBody)
