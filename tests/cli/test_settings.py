"""One Config from the command line, a file and the last run."""

from __future__ import annotations

from pathlib import Path

import pytest

from harvestman.cli import settings
from harvestman.cli.main import parser
from harvestman.errors import ConfigError, StateError
from harvestman.layout import VERSION, CrawlFile, Layout


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def settle(*argv: str) -> settings.Settings:
    return settings.settle(parser().parse_args(["crawl", *argv]))


def test_defaults() -> None:
    config = settle("https://example.org").config
    assert (config.data, config.workers, config.scope, config.politeness.delay) == ("crawl-data", 1, "site", 1.0)


def test_command_line() -> None:
    config = settle(
        "--scope", "host", "--max-pages", "5", "--max-depth", "3", "--workers", "2", "--data", "d", "--delay", "0.5",
        "--dns", "127.0.0.1:53", "--dns", "https://9.9.9.9/dns-query",
        "--allow", "10.0.0.0/8", "--allow", "127.0.0.0/8", "--contact", "me@example.org",
        "--patience", "7",
    ).config  # fmt: skip
    assert (config.scope, config.limits.max_pages, config.limits.max_depth, config.workers) == ("host", 5, 3, 2)
    assert (config.data, config.politeness.delay) == ("d", 0.5)
    assert config.name_servers == ("127.0.0.1:53", "https://9.9.9.9/dns-query")
    assert (config.allow, config.contact) == (("10.0.0.0/8", "127.0.0.0/8"), "me@example.org")
    assert config.limits.patience == 7.0


def test_precedence() -> None:
    Path("d").mkdir()
    settings.remember(
        Path("d"), {"politeness": {"delay": 3.0, "slow": 9.0}, "contact": "a@example.org", "agent": "Old"}
    )
    Path("c.toml").write_text('data = "d"\ncontact = "b@example.org"\n[politeness]\ndelay = 2.0\nmax_delay = 30.0\n')
    config = settle("--config", "c.toml", "--delay", "1.5").config
    assert (config.politeness.delay, config.politeness.max_delay, config.politeness.slow) == (1.5, 30.0, 9.0)
    assert (config.contact, config.agent) == ("b@example.org", "Old")


def test_a_short_delay_takes_the_address_delay_along() -> None:
    assert settle("--delay", "0").config.politeness.ip_delay == 0.0
    Path("c.toml").write_text("[politeness]\nip_delay = 0.2\n")
    assert settle("--delay", "0", "--config", "c.toml").config.politeness.ip_delay == 0.2


def test_what_is_not_remembered() -> None:
    Path("d").mkdir()
    given: settings.Tree = {
        "seeds": ["x"], "data": "d", "workers": 3, "scope": "all",
        "limits": {"max_pages": 5, "max_depth": 2, "patience": 9.0}, "recrawl": {"keep": True, "longest": 9e5},
    }  # fmt: skip
    settings.remember(Path("d"), given)
    assert settings.remembered(Path("d")) == {"limits": {"patience": 9.0}, "recrawl": {"longest": 9e5}}


def test_the_workers_of_a_crawl_stay() -> None:
    Layout(Path("d")).write(CrawlFile(VERSION, 64, 3))
    assert settle("--data", "d").config.workers == 3
    assert settle("--data", "d", "--workers", "2").config.workers == 2


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("dealy = 1\n", "unknown setting dealy"),
        ("[politeness]\ndealy = 1\n", "did you mean politeness.delay"),
        ("workers = 'two'\n", "workers"),
        ("= 1\n", "not valid TOML"),
    ],
)
def test_a_wrong_file(toml: str, words: str) -> None:
    Path("c.toml").write_text(toml)
    with pytest.raises(ConfigError, match=words):
        settle("--config", "c.toml")


def test_contradictions() -> None:
    with pytest.raises(ConfigError, match="workers"):
        settle("--workers", "0")
    with pytest.raises(ConfigError, match="max_pages"):
        settle("--max-pages", "-1")


def test_damaged_memory() -> None:
    Path("d").mkdir()
    Path("d/settings.json").write_text("{")
    with pytest.raises(StateError, match="delete it"):
        settle("--data", "d")


def test_spelt() -> None:
    assert settings.spelt({"a": 1, "b": {"c": "x"}}) == ["a = 1", 'b.c = "x"']
