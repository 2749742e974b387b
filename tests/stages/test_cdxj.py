"""The index agrees with the archive it was made from."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from pathlib import Path

import pytest
from cases import for_each

from harvestman.model import Instant, RecordRef, Response
from harvestman.store.cdxj import build_index, index, surt
from harvestman.store.records import header_fields
from harvestman.store.warc import WarcWriter, read

AT = Instant(1_760_000_000.25)


def answer(url: str, body: bytes, fields: str = "Content-Type: text/html; charset=utf-8\r\n") -> Response:
    head = f"HTTP/1.1 200 OK\r\n{fields}Content-Length: {len(body)}\r\n\r\n".encode()
    return Response(url, 200, head, header_fields(head), body, "192.0.2.1", AT, AT, AT, b"GET / HTTP/1.1\r\n\r\n")


@pytest.fixture
def store(tmp_path: Path) -> WarcWriter:
    return WarcWriter(tmp_path, "w0", max_bytes=4_000, software="h", contact="c", now=lambda: AT)


def fill(store: WarcWriter, count: int = 6) -> list[tuple[RecordRef, str]]:
    written = []
    for n in range(count):
        body = os.urandom(1_500)
        response = answer(
            f"https://www.Example.org/P{9 - n}/?b=2&A=1", gzip.compress(body), "Content-Encoding: gzip\r\n"
        )
        written.append((store.write(response, digest=hashlib.sha256(body).hexdigest()), response.url))
    return written


def test_lines_are_sorted_and_agree_with_the_records(tmp_path: Path, store: WarcWriter) -> None:
    written = fill(store)
    lines = build_index(tmp_path).read_text().splitlines()
    assert lines == sorted(lines)
    entries = [json.loads(line.split(" ", 2)[2]) for line in lines]
    refs = {RecordRef(e["filename"], int(e["offset"]), int(e["length"])): e for e in entries}
    assert {(ref, entry["url"]) for ref, entry in refs.items()} == set(written)
    for ref, entry in refs.items():
        response = read(tmp_path, ref)
        assert (response.url, str(response.status)) == (entry["url"], entry["status"])
        assert entry["digest"] == "sha256:" + hashlib.sha256(response.body).hexdigest()


def test_a_line_is_what_cdxj_indexer_writes(tmp_path: Path, store: WarcWriter) -> None:
    ref = store.write(answer("http://example.org/", b"hi"), digest="")
    (line,) = index(tmp_path / ref.file)
    digest = hashlib.sha256(b"hi").hexdigest()
    assert line == (
        'org,example)/ 20251009085320 {"url": "http://example.org/", "mime": "text/html", "status": "200", '
        f'"digest": "sha256:{digest}", "length": "{ref.length}", "offset": "{ref.offset}", "filename": "{ref.file}"}}\n'
    )


def test_revisits_are_marked(tmp_path: Path, store: WarcWriter) -> None:
    ref = store.write_revisit(
        answer("http://example.org/b", b"hi"),
        refers_to_uri="http://example.org/",
        refers_to_date=AT,
        payload_digest="00",
    )
    (line,) = index(tmp_path / ref.file)
    assert json.loads(line.split(" ", 2)[2])["mime"] == "warc/revisit"


def test_index_follows_the_archive(tmp_path: Path, store: WarcWriter) -> None:
    fill(store, 2)
    assert len(build_index(tmp_path).read_text().splitlines()) == 2
    fill(store, 3)
    assert len(build_index(tmp_path).read_text().splitlines()) == 5
    for part in tmp_path.glob("*.warc.cdxj"):
        part.unlink()
    assert len(build_index(tmp_path).read_text().splitlines()) == 5


def test_an_empty_directory_has_an_empty_index(tmp_path: Path) -> None:
    assert build_index(tmp_path).read_text() == ""


@for_each(
    ("url", "key"),
    [
        ("http://www.example.com/", "com,example)/"),
        ("https://example.com", "com,example)/"),
        ("https://www2.Example.com:443/A/B/", "com,example)/a/b"),
        ("http://example.com:8080/", "com,example:8080)/"),
        ("https://example.com/?b=1&a=2&a=1", "com,example)/?a=1&a=2&b=1"),
        ("https://example.com/%7euser/%20x", "com,example)/~user/%20x"),
        ("https://example.com//a//b?x=/#frag", "com,example)/a/b?x=/"),
        ("http://127.0.0.1/", "1,0,0,127)/"),
        ("https://example.com/caf%C3%A9", "com,example)/caf%c3%a9"),
    ],
)
def test_surt_keys(url: str, key: str) -> None:
    assert surt(url) == key
