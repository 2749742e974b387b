"""WARC, CDXJ, WACZ and WET, judged by the tools of others."""

from __future__ import annotations

import gzip
import io
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from formats.small import HOME, Small, write
from hypothesis import given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]  # ships no types

from harvestman.cli.main import main
from harvestman.errors import UrlError
from harvestman.layout import Layout
from harvestman.policy.urls import request_form
from harvestman.store.cdxj import build_index
from harvestman.store.cdxj import surt as our_surt

BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    return write(tmp_path_factory.mktemp("archive") / "crawl")


@pytest.fixture(scope="module")
def wacz(layout: Layout) -> Path:
    assert main(["export", str(layout.data), "--format", "wacz", "--text"]) == 0
    return layout.data / "export" / "crawl.wacz"


@pytest.fixture(scope="module")
def wet(layout: Layout) -> Path:
    assert main(["export", str(layout.data), "--format", "wet"]) == 0
    (found,) = (layout.data / "export" / "wet").iterdir()
    return found


def tool(*words: str | Path) -> str:
    """Run a program of another package; it must be content."""
    done = subprocess.run([BIN / words[0], *words[1:]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def warcs(layout: Layout) -> list[Path]:
    return sorted(layout.warc.glob("*.warc.gz"))


# -- WARC and CDXJ ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_warcio_and_fastwarc_find_every_digest_right(layout: Layout, wet: Path) -> None:
    for path in (*warcs(layout), wet):
        tool("warcio", "check", path)
        assert "verified successfully" in tool("fastwarc", "check", path)


def test_the_index_is_that_of_cdxj_indexer(layout: Layout) -> None:
    from cdxj_indexer.main import CDXJIndexer  # type: ignore[import-untyped]  # ships no types

    theirs = io.StringIO()
    CDXJIndexer(theirs, [str(path) for path in warcs(layout)], sort=True).process_all()
    assert build_index(layout.warc).read_text() == theirs.getvalue()
    assert len(theirs.getvalue().splitlines()) == 11


PIECES = [
    "a", "A", "sid=" + "0f" * 16, "phpsessid=" + "Ab" * 16, "cfid=1&cftoken=2", "b=1", "&", "?", "/", "%20", "~", "=",
    "é", ";jsessionid=" + "0" * 32, "(S(" + "a1" * 12 + "))/", "x.aspx", "//", ".", "+", "%2F", "www.",
    "jsessionid=" + "1" * 32, "aspsessionid" + "q" * 8 + "=" + "z" * 24,
]  # fmt: skip


@settings(deadline=None)
@given(st.sampled_from(["http://example.org", "https://www2.example.org:8080"]), st.lists(st.sampled_from(PIECES)))
def test_keys_are_those_replay_tools_look_for(origin: str, pieces: list[str]) -> None:
    from surt import surt as their_surt  # type: ignore[import-untyped]  # ships no types

    try:
        url = request_form(f"{origin}/{''.join(pieces)}")
    except UrlError:
        return
    assert our_surt(url) == their_surt(url)


def replayed(path: Path, entry: dict[str, str]) -> tuple[Any, bytes]:
    """The record at the place an index line names, read as replay tools do, and its body."""
    with path.open("rb") as file:
        file.seek(int(entry["offset"]))
        member = io.BytesIO(file.read(int(entry["length"])))
    record = next(iter(ArchiveIterator(member)))
    return record, record.content_stream().read()


def test_every_line_leads_to_its_record(layout: Layout) -> None:
    bodies: dict[str, bytes] = {}
    for line in build_index(layout.warc).read_text().splitlines():
        entry = json.loads(line.split(" ", 2)[2])
        record, body = replayed(layout.warc / entry["filename"], entry)
        assert record.rec_headers.get_header("WARC-Target-URI") == entry["url"]
        assert record.http_headers.get_statuscode() == entry["status"]
        if entry["mime"] != "warc/revisit":
            bodies[entry["digest"]] = body
    revisits = [json.loads(line.split(" ", 2)[2]) for line in build_index(layout.warc).read_text().splitlines()]
    revisits = [entry for entry in revisits if entry["mime"] == "warc/revisit"]
    assert len(revisits) == 2
    assert all(b"First version" in bodies[entry["digest"]] for entry in revisits)


# -- WACZ ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_wacz_validate_is_content(wacz: Path) -> None:
    assert "the passed WACZ is valid" in tool("wacz", "validate", "-f", wacz)


def test_the_package_says_what_is_in_it(wacz: Path) -> None:
    with zipfile.ZipFile(wacz) as package:
        about = json.loads(package.read("datapackage.json"))
        assert about["wacz_version"] == "1.1.1"
        assert about["mainPageUrl"] == HOME
        listed = {each["path"]: each for each in about["resources"]}
        assert set(package.namelist()) == {*listed, "datapackage.json", "datapackage-digest.json"}
        for path, each in listed.items():
            content = package.read(path)
            assert each["bytes"] == len(content)
            assert each["hash"] == "sha256:" + sha256(content).hexdigest()
            if not path.startswith("pages/"):
                assert package.getinfo(path).compress_type == zipfile.ZIP_STORED
        digest = json.loads(package.read("datapackage-digest.json"))
        assert digest["hash"] == "sha256:" + sha256(package.read("datapackage.json")).hexdigest()


def test_the_archive_in_the_package_is_ours_and_its_index_too(layout: Layout, wacz: Path) -> None:
    with zipfile.ZipFile(wacz) as package:
        for path in warcs(layout):
            assert package.read(f"archive/{path.name}") == path.read_bytes()
        packed = package.read("indexes/index.cdx.gz")
        assert gzip.decompress(packed) == build_index(layout.warc).read_bytes()
        meta, *blocks = package.read("indexes/index.idx").decode().splitlines()
    assert json.loads(meta.split(" ", 2)[2])["filename"] == "index.cdx.gz"
    for line in blocks:
        place = json.loads(line.split(" ", 2)[2])
        block = packed[place["offset"] : place["offset"] + place["length"]]
        assert place["digest"] == "sha256:" + sha256(block).hexdigest()
        assert gzip.decompress(block).decode().startswith(line.partition("{")[0])


def listed(wacz: Path, name: str) -> Iterator[dict[str, str]]:
    with zipfile.ZipFile(wacz) as package:
        head, *lines = package.read(f"pages/{name}.jsonl").decode().splitlines()
    assert json.loads(head)["format"] == "json-pages-1.0"
    yield from map(json.loads, lines)


def test_seeds_are_the_pages_and_the_rest_are_extra(wacz: Path) -> None:
    assert [page["url"] for page in listed(wacz, "pages")] == [HOME, HOME]
    extra = list(listed(wacz, "extraPages"))
    assert f"{HOME}hidden" not in {page["url"] for page in extra}
    assert {page["title"] for page in extra} == {"A title", "Seite ü"}
    assert "Page a. é" in {page["text"] for page in extra}


def test_a_package_of_a_running_crawl_has_what_is_committed(tmp_path: Path) -> None:
    with Small(tmp_path / "crawl", warc_bytes=600) as small:
        for number in range(3):
            small.page(f"{HOME}{number}")
            small.commit()
        small.page(f"{HOME}late")
        small.flush()
        target = tmp_path / "it.wacz"
        assert main(["export", str(small.layout.data), "--format", "wacz", "--output", str(target)]) == 0
    with zipfile.ZipFile(target) as package:
        index = gzip.decompress(package.read("indexes/index.cdx.gz")).decode()
    assert index.count("\n") == 3
    assert "late" not in index


# -- WET -------------------------------------------------------------------------------------------------------------


def test_text_refers_to_the_record_it_was_made_of(layout: Layout, wet: Path) -> None:
    origins = {}
    for path in warcs(layout):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                origins[record.rec_headers.get_header("WARC-Record-ID")] = record.rec_headers.get_header(
                    "WARC-Target-URI"
                )
    found = []
    with wet.open("rb") as file:
        info, *records = [(record.rec_headers, record.content_stream().read()) for record in ArchiveIterator(file)]
    assert info[0].get_header("WARC-Type") == "warcinfo"
    for head, text in records:
        assert head.get_header("WARC-Type") == "conversion"
        assert head.get_header("Content-Type") == "text/plain"
        assert origins[head.get_header("WARC-Refers-To")] == head.get_header("WARC-Target-URI")
        found.append((text.decode(), head.get_header("WARC-Identified-Content-Language")))
    assert found == [
        ("Welcome.\nFirst version.", "eng"), ("Page a. é", "deu"), ("Page b.", "eng"),
        ("Welcome.\nSecond version.", "eng"),
    ]  # fmt: skip


def test_one_wet_for_each_warc_and_the_same_again(tmp_path: Path) -> None:
    with Small(tmp_path / "crawl", warc_bytes=600) as small:
        for number in range(3):
            small.page(f"{HOME}{number}", noindex=number == 2)
            small.commit()
    words = ["export", str(tmp_path / "crawl"), "--format", "wet", "--include-noindex"]
    assert main(words) == 0
    directory = tmp_path / "crawl" / "export" / "wet"
    names = [path.name.removesuffix(".wet.gz") + ".gz" for path in sorted(directory.iterdir())]
    assert names == [path.name for path in warcs(small.layout)]

    def ids() -> list[str]:
        texts = [gzip.decompress(path.read_bytes()).decode() for path in sorted(directory.iterdir())]
        return re.findall(r"^WARC-Record-ID: (.*)$", "".join(texts), re.MULTILINE)

    before = ids()
    assert main(words) == 0
    assert ids() == before
    assert len(set(before)) == 6


@pytest.mark.parametrize("format", ["wacz", "wet", "dataset"])
def test_what_cannot_be_is_refused(
    layout: Layout, tmp_path: Path, capsys: pytest.CaptureFixture[str], format: str
) -> None:
    assert main(["export", str(layout.data), "--format", format, "--output", "-"]) == 2
    assert main(["export", str(layout.data), "--format", format, "--output", str(tmp_path / "no" / "x")]) == 2
    assert main(["export", str(layout.data), "--format", format, "--links"]) == 2
    said = capsys.readouterr().err
    assert "cannot be written to stdout" in said
    assert "No such file or directory" in said
    assert f"--links means nothing to {format}" in said
    assert list(tmp_path.iterdir()) == []
