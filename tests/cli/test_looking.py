"""status, why and export, on a crawl with one URL of each fate."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
import pytest
from cli import crawled

from harvestman.cli import reasons
from harvestman.cli.explain import VERDICTS, Explanation, HostSays, robots_say
from harvestman.cli.main import main
from harvestman.model import Instant, Job, Origin, RobotsRecord

ORIGIN = crawled.ORIGIN


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return crawled.write(tmp_path_factory.mktemp("looking") / "crawl").data


def run(capsys: pytest.CaptureFixture[str], *argv: str | Path) -> str:
    assert main([str(word) for word in argv]) == 0
    return capsys.readouterr().out


# -- status ----------------------------------------------------------------------------------------------------------


def test_status_counts_everything(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capsys, "status", data, "--json"))
    assert found["census"]["urls"] == 13
    assert found["census"]["by_status"] == {
        "pending": 5, "fetched": 1, "duplicate": 1, "redirected": 2, "gone": 1, "blocked": 1, "refused": 1, "dead": 1
    }  # fmt: skip
    assert found["census"]["dead"] == {"timeout": 1}
    assert found["census"]["retrying"] == 1
    assert found["census"]["hosts"] == 3
    assert found["census"]["top_hosts"][0] == {"host": "example.org", "fetched": 2, "waiting": 3, "other": 6}
    assert [host["host"] for host in found["sick_hosts"]] == ["sick.example"]
    assert found["tally"]["pages"] == 2
    assert found["disk"]["pages"] > 0


def test_status_in_words(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "status", data, "--top", "1")
    for part in (
        "not running, scope site",
        "1 seed",
        "2 workers",
        "13  URLs",
        "sick.example until",
        "timeout 1",
        "example.org",
    ):
        assert part in text, part


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        ("blocked", [f"{ORIGIN}/private/a\trobots.txt line 3: /private/"]),
        ("dead", [f"{ORIGIN}/dead\ttimeout: slow (attempt 5 of 5)"]),
        ("gone", [f"{ORIGIN}/gone\tHTTP 404"]),
        ("refused", [f"{ORIGIN}/film.mp4\tunwanted: video/mp4"]),
        ("duplicate", [f"{ORIGIN}/copy\tsame content as another URL -> {ORIGIN}/"]),
        ("redirected", [f"{ORIGIN}/old\tHTTP 301 -> {ORIGIN}/new",
                        f"{ORIGIN}/out\tleads out of scope: https://x.org/"]),
        ("fetched", [f"{ORIGIN}/\tok"]),
        ("waiting", [f"{ORIGIN}/first\tqueued", f"{ORIGIN}/retry\tconnect: refused, again 2096-10-02 07:06:40 UTC",
                     f"{ORIGIN}/second\tqueued", "https://sick.example/\tqueued", "https://silent.example/\tqueued"]),
    ],
)  # fmt: skip
def test_urls_by_status(data: Path, capsys: pytest.CaptureFixture[str], kind: str, lines: list[str]) -> None:
    assert sorted(run(capsys, "status", data, "--urls", kind).splitlines()) == lines
    found = [json.loads(line) for line in run(capsys, "status", data, "--urls", kind, "--json").splitlines()]
    assert sorted(f"{each['url']}\t{each['reason']}" for each in found) == lines


def test_urls_by_status_up_to_a_limit(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", str(data), "--urls", "waiting", "--limit", "2"]) == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 2
    assert "--limit 0" in captured.err
    assert len(run(capsys, "status", data, "--urls", "waiting", "--limit", "0").splitlines()) == 5


# -- why -------------------------------------------------------------------------------------------------------------


def why(capsys: pytest.CaptureFixture[str], data: Path, url: str) -> tuple[dict[str, object], str]:
    as_json = json.loads(run(capsys, "why", url, "--data", data, "--json"))
    return as_json, run(capsys, "why", url, "--data", data)


@pytest.mark.parametrize(
    ("url", "verdict", "parts"),
    [
        (ORIGIN, "fetched", ["HTTP 200", "offset 512", "warc/w00-", "a seed", "no rule applies", "sha256 0101"]),
        ("example.org/#top", "fetched", ["HTTP 200"]),
        (f"{ORIGIN}/copy", "duplicate", [f"that of {ORIGIN}/", "1 link from a seed", f"<- {ORIGIN}/", "<- seed"]),
        (f"{ORIGIN}/old", "redirected", [f"to {ORIGIN}/new"]),
        (f"{ORIGIN}/out", "redirected", ["not followed", "out of scope"]),
        (f"{ORIGIN}/gone", "gone", ["HTTP 404"]),
        (f"{ORIGIN}/private/a", "blocked",
         ["line 3", "'Disallow: /private/'", "copy of 2026-09-21", "3 s between requests"]),
        (f"{ORIGIN}/film.mp4", "refused", ["video/mp4"]),
        (f"{ORIGIN}/dead", "dead", ["timeout", "attempt 5 of 5"]),
        (f"{ORIGIN}/first", "waiting", ["0 before it", "may be asked 2096"]),
        (f"{ORIGIN}/second", "waiting", ["1 before it", f"<- {ORIGIN}/first", "<- seed"]),
        (f"{ORIGIN}/retry", "waiting", ["tried again 2096", "2 of 5 attempts", "connect: refused"]),
        ("https://sick.example/", "waiting", ["failed too often", "until 2096"]),
        ("https://silent.example/", "waiting", ["robots.txt cannot be had (timeout: no first byte)", "2096"]),
        (f"{ORIGIN}/new", "unseen", ["never seen: no followed link led to it", "in scope"]),
        (f"{ORIGIN}/private/b", "unseen", ["would not be crawled", "robots.txt forbids it", "line 3 forbids it"]),
        ("https://elsewhere.example/", "unseen", ["out of scope (site)", "elsewhere.example"]),
        (f"{ORIGIN}/robots.txt", "robots", ["asked for on its own", "| Disallow: /private/", "copy of 2026-09-21"]),
        ("example.org/robots.txt", "robots", ["| Crawl-delay: 3"]),
        ("https://nowhere.example/robots.txt", "robots", ["asked for on its own"]),
    ],
)  # fmt: skip
def test_why(data: Path, capsys: pytest.CaptureFixture[str], url: str, verdict: str, parts: list[str]) -> None:
    found, text = why(capsys, data, url)
    assert found["verdict"] == verdict
    assert verdict in VERDICTS
    for part in parts:
        assert part in text, text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("http://[x/", "not a URL"), ("ftp://example.org/", "only http and https"), ("/about", "the host is missing"),
        ("nonsense:", "only http and https"), ("mailto:a@example.org", "only http and https"),
        ("javascript:void(0)", "only http and https"), ("two words", "white space"),
    ],
)  # fmt: skip
def test_why_of_nonsense(data: Path, capsys: pytest.CaptureFixture[str], text: str, reason: str) -> None:
    assert main(["why", text, "--data", str(data)]) == 2
    said = capsys.readouterr().out
    assert said.startswith(f"{text!r}\n  not a URL we could crawl: ")
    assert reason in said
    assert main(["why", text, "--data", str(data), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["verdict"] == "not-a-url"


def test_robots_txt_is_not_asked_for_before_its_host() -> None:
    then = crawled.THEN
    robots = RobotsRecord(Origin(ORIGIN), b"", Instant(0.0), then, Instant(then + 2), True, "timeout", then)
    host = HostSays("example.org", "example.org", 0, 1.0, Instant(then + 5), 5, Instant(then + 600), 0)
    said = robots_say(f"{ORIGIN}/", robots, "Harvestman", then)
    text = reasons.told(Explanation(f"{ORIGIN}/", "waiting", host=host, robots=said), then)
    assert "rests until" in text
    assert "asked for again 2026-09-21 14:23:20 UTC (in 10 min)" in text


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        (f"{ORIGIN}/old/x", "line 2 of the patterns decides: '- */old/*'"),
        (f"{ORIGIN}/new/x", "line 3 of the patterns decides: '+ https://example.org/*'"),
        ("https://x.example/", "no line of the patterns matches it"),
    ],
)
def test_why_names_the_pattern(tmp_path: Path, capsys: pytest.CaptureFixture[str], url: str, reason: str) -> None:
    patterns = ("# mine", "- */old/*", "+ https://example.org/*")
    crawled.write(tmp_path / "d", job=Job(0, "", crawled.THEN, scope="patterns", patterns=patterns))
    assert reason in run(capsys, "why", url, "--data", tmp_path / "d")


def test_why_for_programs(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capsys, "why", ORIGIN, "--data", data, "--json"))
    assert found["visit"]["record"] == {"file": crawled.REF.file, "offset": 512, "length": 2000}
    assert found["robots"]["allowed"] is True
    assert found["robots"]["crawl_delay"] == 3.0
    assert found["found"]["chain"] == ["seed"]
    assert found["queue"] is None


# -- export ----------------------------------------------------------------------------------------------------------


def test_jsonl(data: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["export", str(data), "--format", "jsonl"]) == 0
    captured = capfdbinary.readouterr()
    rows = [json.loads(line) for line in captured.out.splitlines()]
    assert [row["url"] for row in rows] == [f"{ORIGIN}/", f"{ORIGIN}/other"]
    assert rows[0]["simhash"] == "8000000000000001"
    assert rows[0]["fetched_at"] == "2026-09-21T14:13:20.000Z"
    assert rows[0]["text"] == "Hello é"
    assert "links" not in rows[0]
    assert b"1 page asking not to be indexed" in captured.err


def test_jsonl_with_everything(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    assert main(["export", str(data), "--output", str(path), "--links", "--duplicates", "--include-noindex"]) == 0
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["noindex"] for row in rows] == [False, False, True, False]
    assert rows[0]["links"] == [
        {"url": f"{ORIGIN}/first", "anchor": "First", "rel": "", "kind": "a", "place": "", "language": ""}
    ]
    assert (rows[3]["url"], rows[3]["duplicate_of"], rows[3]["text"]) == (f"{ORIGIN}/copy", f"{ORIGIN}/", "")


def test_parquet(data: Path) -> None:
    assert main(["export", str(data), "--format", "parquet", "--links"]) == 0
    table = pq.read_table(data / "export" / "pages.parquet").to_pylist()
    assert [row["title"] for row in table] == ["Home", "Other"]
    assert table[0]["simhash"] == 2**63 + 1
    assert table[0]["fetched_at"].isoformat() == "2026-09-21T14:13:20+00:00"
    assert table[0]["links"][0]["anchor"] == "First"
    assert table[0]["site"] == "example.org"
    assert not list((data / "export").glob("*.part"))


def test_parquet_needs_a_file(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(data), "--format", "parquet", "--output", "-"]) == 2
    assert "--output" in capsys.readouterr().err


# -- nothing there ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("argv", [["status"], ["status", "none"], ["export", "none"], ["why", "example.org"]])
def test_without_a_crawl(
    argv: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(argv) == 3
    assert "holds no crawl" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
