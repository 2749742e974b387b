"""The raw store: what is written can be read by everyone, and by us after any crash."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from hypothesis import given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]  # the package has no types

from harvestman.errors import StateError
from harvestman.model import Instant, RecordRef, Response
from harvestman.store.members import compressed, members, opened, stored
from harvestman.store.records import header_fields, warc_date
from harvestman.store.warc import WarcWriter, read, replay

HTML = b"<html><title>t</title><p>" + b"hello world " * 3000
AT = Instant(1_760_000_000.25)
REQUEST = b"GET /page HTTP/1.1\r\nHost: example.org\r\nUser-Agent: Harvestman/0.1\r\n\r\n"


def answer(
    url: str = "https://example.org/page",
    body: bytes = HTML,
    fields: tuple[str, ...] = ("Content-Type: text/html",),
    *,
    status_line: str = "HTTP/1.1 200 OK",
    length: bool = True,
    tls_error: str | None = None,
    request_head: bytes = REQUEST,
) -> Response:
    lines = [status_line, *fields, *([f"Content-Length: {len(body)}"] if length else [])]
    head = ("\r\n".join(lines) + "\r\n\r\n").encode()
    status = int(status_line.split()[1])
    return Response(url, status, head, header_fields(head), body, "192.0.2.1", AT, AT, AT, request_head, tls_error)


def packed(url: str = "https://example.org/packed") -> Response:
    return answer(url, gzip.compress(HTML), ("Content-Type: text/html", "Content-Encoding: gzip"))


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def writer(directory: Path, max_bytes: int = 1_000_000_000) -> WarcWriter:
    return WarcWriter(
        directory, "w0", max_bytes=max_bytes, software="Harvestman/0.1", contact="https://c.example", now=lambda: AT
    )


def write(store: WarcWriter, response: Response) -> RecordRef:
    return store.write(response, digest=digest(HTML))


def varied() -> list[Response]:
    """One response of each sort the wire brings."""
    chunked = ("Content-Type: text/html", "Transfer-Encoding: chunked", "Set-Cookie: a=b", "Set-Cookie: c=d")
    return [
        answer(),
        packed(),
        answer("https://example.org/chunked", fields=chunked, length=False),
        answer("https://example.org/h2", status_line="HTTP/2 200", fields=("content-type: text/html",), length=False),
        answer("https://example.org/empty", b"", status_line="HTTP/1.1 404 Not Found"),
        # zstd, not br: warcio 1.8 fails to start the current brotli package, whatever the record.
        answer("https://example.org/big", os.urandom(200_000), ("Content-Encoding: zstd",)),
        answer("https://example.org/tls", tls_error="certificate has\r\nexpired"),
        answer("https://example.org/latin", fields=("Content-Type: text/html", "X-Name: caf\u00e9")),
        answer("https://example.org/unasked", request_head=b""),
    ]


@pytest.fixture
def filled(tmp_path: Path) -> tuple[Path, list[tuple[RecordRef, Response]]]:
    store = writer(tmp_path)
    written = [(write(store, response), response) for response in varied()]
    first = written[0][1]
    revisit = store.write_revisit(
        packed("https://example.org/copy"),
        refers_to_uri=first.url,
        refers_to_date=first.started,
        payload_digest=digest(HTML),
    )
    store.close()
    return tmp_path, [*written, (revisit, packed("https://example.org/copy"))]


def only_file(directory: Path) -> Path:
    (path,) = directory.glob("*.warc.gz")
    return path


def test_independent_checkers_find_nothing_wrong(filled: tuple[Path, list[tuple[RecordRef, Response]]]) -> None:
    warc = only_file(filled[0])
    tools = Path(sys.executable).parent
    for command in ([tools / "warcio", "check", "-v"], [tools / "fastwarc", "check", "-q"], ["gzip", "-t"]):
        done = subprocess.run([*command, warc], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "failed" not in done.stdout


def test_warcio_sees_every_record_and_its_fields(filled: tuple[Path, list[tuple[RecordRef, Response]]]) -> None:
    with only_file(filled[0]).open("rb") as file:
        kinds = []
        previous = ""
        for record in ArchiveIterator(file, check_digests="raise"):
            record.raw_stream.read()
            kinds.append(record.rec_type)
            if record.rec_type == "request":
                assert record.rec_headers["WARC-Concurrent-To"] == previous
            previous = record.rec_headers["WARC-Record-ID"]
    pairs = len(varied()) - 1
    assert kinds == ["warcinfo", *["response", "request"] * pairs, "response", "revisit", "request"]


def test_record_ids_are_unique(filled: tuple[Path, list[tuple[RecordRef, Response]]]) -> None:
    with only_file(filled[0]).open("rb") as file:
        names = [record.rec_headers["WARC-Record-ID"] for record in ArchiveIterator(file)]
    assert len(set(names)) == len(names)


def test_every_record_is_found_by_offset_and_length(filled: tuple[Path, list[tuple[RecordRef, Response]]]) -> None:
    directory, written = filled
    content = only_file(directory).read_bytes()
    for ref, response in written[:-1]:
        member = content[ref.offset : ref.offset + ref.length]
        record = next(iter(FastIterator(io.BytesIO(member), parse_http=True)))
        assert record.headers["WARC-Target-URI"] == response.url
        assert record.reader.read() == response.body
        again = read(directory, ref)
        assert (again.url, again.status, again.body, again.address) == (
            response.url,
            response.status,
            response.body,
            response.address,
        )
        assert again.started == again.finished == response.started
        assert again.headers["content-length"] == str(len(response.body))


def test_framing_headers_tell_the_truth_about_the_stored_body(tmp_path: Path) -> None:
    store = writer(tmp_path)
    refs = [write(store, response) for response in varied()]
    chunked, h2 = read(tmp_path, refs[2]), read(tmp_path, refs[3])
    assert b"X-Crawler-Transfer-Encoding: chunked\r\n" in chunked.head
    assert "transfer-encoding" not in chunked.headers
    assert chunked.headers["set-cookie"] == "a=b, c=d"
    assert h2.head.startswith(b"HTTP/1.1 200")
    record = opened(only_file(tmp_path).read_bytes()[refs[3].offset :][: refs[3].length])
    assert b"WARC-Protocol: h2\r\n" in record


def test_a_body_cut_short_keeps_the_length_the_server_promised(tmp_path: Path) -> None:
    response = answer(fields=("Content-Length: 999999",), length=False)
    again = read(tmp_path, write(writer(tmp_path), response))
    assert again.headers["x-crawler-content-length"] == "999999"
    assert again.headers["content-length"] == str(len(HTML))


def test_tls_error_is_kept_on_one_line(tmp_path: Path) -> None:
    again = read(tmp_path, write(writer(tmp_path), answer(tls_error="self\r\nsigned: yes")))
    assert again.tls_error == "self signed: yes"


def test_what_came_compressed_is_not_compressed_again(tmp_path: Path) -> None:
    store = writer(tmp_path)
    as_is, squeezed = write(store, packed()), write(store, answer())
    member = only_file(tmp_path).read_bytes()[as_is.offset :][: as_is.length]
    assert packed().body[20:-20] in member
    assert squeezed.length < len(HTML) / 4


def test_payload_digest_is_of_the_wire_and_ours_of_the_content(tmp_path: Path) -> None:
    response = packed()
    ref = write(writer(tmp_path), response)
    record = opened(only_file(tmp_path).read_bytes()[ref.offset :][: ref.length])
    assert f"WARC-Payload-Digest: sha256:{digest(response.body)}\r\n".encode() in record
    assert f"Harvestman-Digest: sha256:{digest(HTML)}\r\n".encode() in record


def test_revisit_names_its_original_and_keeps_the_head_only(
    filled: tuple[Path, list[tuple[RecordRef, Response]]],
) -> None:
    directory, written = filled
    ref, response = written[-1]
    record = opened(only_file(directory).read_bytes()[ref.offset :][: ref.length]).decode()
    assert "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n" in record
    assert "WARC-Refers-To-Target-URI: https://example.org/page\r\n" in record
    assert f"WARC-Refers-To-Date: {warc_date(AT)}\r\n" in record
    assert read(directory, ref).body == b""
    assert read(directory, ref).headers["content-encoding"] == "gzip"
    assert f"sha256:{digest(response.body)}" in record


def test_a_304_is_a_server_not_modified_revisit(tmp_path: Path) -> None:
    store = writer(tmp_path)
    response = answer(body=b"", status_line="HTTP/1.1 304 Not Modified")
    ref = store.write_unmodified(response, response.url, AT, f"sha256:{'ab' * 32}")
    record = opened(only_file(tmp_path).read_bytes()[ref.offset :][: ref.length])
    assert b"/revisit/server-not-modified\r\n" in record
    assert b"WARC-Payload-Digest: sha256:" + b"ab" * 32 in record
    assert store.position[1] == ref.offset + ref.length  # nothing else was written
    assert ref.length < 600


def test_a_full_file_is_followed_by_another(tmp_path: Path) -> None:
    store = writer(tmp_path, max_bytes=2_000)
    refs = [write(store, answer(f"https://example.org/{n}", os.urandom(900))) for n in range(6)]
    names = [path.name for path in sorted(tmp_path.glob("*.warc.gz"))]
    assert names == [f"w0-20251009085320-{serial:05d}.warc.gz" for serial in range(len(names))]
    assert len(names) > 1
    assert {ref.file for ref in refs} == set(names)
    assert [read(tmp_path, ref).url for ref in refs] == [f"https://example.org/{n}" for n in range(6)]
    assert store.position == (names[-1], (tmp_path / names[-1]).stat().st_size)


def test_every_file_begins_with_warcinfo(tmp_path: Path) -> None:
    writer(tmp_path).close()
    (info,) = members(only_file(tmp_path))
    assert b"WARC-Type: warcinfo" in info.data
    assert b"software: Harvestman/0.1\r\n" in info.data
    assert b"operator: https://c.example\r\n" in info.data


def test_a_new_writer_never_touches_an_old_file(tmp_path: Path) -> None:
    first = writer(tmp_path)
    write(first, answer())
    before = only_file(tmp_path).read_bytes()
    second = writer(tmp_path)
    write(second, answer())
    assert (tmp_path / first.position[0]).read_bytes() == before
    assert second.position[0].endswith("-00001.warc.gz")


def test_replay_returns_what_lies_beyond_the_position(tmp_path: Path) -> None:
    store = writer(tmp_path, max_bytes=3_000)
    write(store, answer("https://example.org/committed"))
    position = store.position
    store.sync()
    later = [(write(store, answer(f"https://example.org/{n}", os.urandom(1200))), f"/{n}") for n in range(5)]
    found = replay(tmp_path, "w0", position)
    assert [(ref, response.url[19:]) for ref, response in found] == later
    assert replay(tmp_path, "w0", store.position) == []
    assert len(replay(tmp_path, "w0", None)) == 6
    assert replay(tmp_path, "another", None) == []


def test_a_torn_tail_is_cut_at_every_byte(tmp_path: Path) -> None:
    store = writer(tmp_path)
    ref = write(store, answer("https://example.org/whole", b"kept"))
    whole = store.position[1]
    last = write(store, answer("https://example.org/torn", b"x" * 50))
    path = only_file(tmp_path)
    content = path.read_bytes()
    for end in range(whole, len(content)):
        path.write_bytes(content[:end])
        urls = [response.url for _, response in replay(tmp_path, "w0", (ref.file, 0))]
        complete = end >= last.offset + last.length
        assert urls == ["https://example.org/whole", *["https://example.org/torn"] * complete]
        assert path.stat().st_size == (last.offset + last.length if complete else whole)


def test_garbage_after_a_power_cut_is_cut_off(tmp_path: Path) -> None:
    store = writer(tmp_path)
    write(store, answer())
    path = only_file(tmp_path)
    whole = path.read_bytes()
    for garbage in (b"\0" * 5000, os.urandom(5000), whole[:40] + b"\0" * 100):
        path.write_bytes(whole + garbage)
        assert len(replay(tmp_path, "w0", None)) == 1
        assert path.read_bytes() == whole


def test_a_full_disk_leaves_no_half_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = writer(tmp_path)
    write(store, answer())
    whole = only_file(tmp_path).read_bytes()
    refusals = _one_short_write_then_refusal(os.write)
    monkeypatch.setattr(os, "write", lambda fd, data: next(refusals)(fd, data))
    with pytest.raises(OSError, match="No space"):
        write(store, answer())
    monkeypatch.undo()
    assert only_file(tmp_path).read_bytes() == whole
    assert read(tmp_path, write(store, answer())).body == HTML


def _one_short_write_then_refusal(real: Callable[[int, bytes], int]) -> Iterator[Callable[[int, bytes], int]]:
    yield lambda fd, data: real(fd, data[:100])

    def refuse(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    yield refuse


def test_reading_nowhere_says_where(tmp_path: Path) -> None:
    ref = write(writer(tmp_path), answer())
    for wrong in (RecordRef("none.warc.gz", 0, 9), RecordRef(ref.file, 5, 20), RecordRef(ref.file, ref.offset, 50)):
        with pytest.raises(StateError, match=r"no record at .*warc\.gz:\d+"):
            read(tmp_path, wrong)


@given(st.binary(max_size=300) | st.integers(65_530, 65_540).map(bytes) | st.integers(131_065, 131_075).map(bytes))
def test_members_hold_what_was_put_in(data: bytes) -> None:
    assert gzip.decompress(stored(data)) == opened(stored(data)) == data
    assert gzip.decompress(compressed(data)) == opened(compressed(data)) == data


@pytest.mark.parametrize("at", [0.0, 1_760_000_000.0, 1_760_000_000.9996, 1_760_000_000.0004])
def test_dates_are_to_the_millisecond(at: float) -> None:
    assert warc_date(Instant(at)) == warc_date(Instant(round(at, 3)))
    assert len(warc_date(Instant(at))) == len("2025-10-09T08:53:20.000Z")


def test_a_sync_that_waits_while_a_file_is_full_finds_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are closed in the same step that replaces them: at no moment does the writer hold a closed one."""
    store = writer(tmp_path, max_bytes=1)
    real = os.close
    held: list[bool] = []

    def watched(file: int) -> None:
        held.append(file == store._file)
        assert store._syncing.locked(), "a sync could run now"
        real(file)

    write(store, answer())
    with monkeypatch.context() as patch:
        patch.setattr("harvestman.store.warc.sync_directory", lambda directory: None)
        patch.setattr("harvestman.store.warc.os.close", watched)
        write(store, answer())
    store.sync()
    store.close()
    assert held == [False]
