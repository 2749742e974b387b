"""What a user can set: unknown keys, wrong types and contradictions are refused with a cure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from cases import for_each

from harvestman.config import Caches, Config, Limits, Memory, Politeness, Region, Retention, Retry, check, load
from harvestman.errors import ConfigError
from harvestman.model import Seconds


def written(directory: Path, text: str) -> Path:
    path = directory / "crawl.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    assert load(written(tmp_path, "")) == Config()


def test_what_is_set_is_set_and_the_rest_stays(tmp_path: Path) -> None:
    found = load(
        written(tmp_path, 'seeds = ["a.test"]\nworkers = 2\n[politeness]\ndelay = 3\n[limits]\nmax_pages = 9\n')
    )
    assert (found.seeds, found.workers, found.politeness.delay, found.limits.max_pages) == (("a.test",), 2, 3.0, 9)
    assert found.politeness.site_rate == 10.0
    assert check(found) is found


def test_the_politeness_asked_for_is_the_default() -> None:
    rules, retry = Politeness(), Retry()
    assert (rules.delay, rules.site_rate, rules.max_delay) == (1.0, 10.0, 60.0)
    assert (retry.attempts, retry.first, retry.longest, retry.sick_after) == (5, 1.0, 3600.0, 5)
    assert retry.sick_for == 6 * 3600.0
    assert (Limits().max_hops, Limits().max_depth) == (5, 20)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("wokers = 2", "unknown setting wokers; did you mean workers?"),
        ("[politeness]\ndelai = 2", "unknown setting politeness.delai; did you mean politeness.delay?"),
        ("[limits]\nmaxpages = 2", "did you mean limits.max_pages?"),
        ("zzzzzz = 1", "known keys: agent, allow,"),
        ("[ignore]\nrobots = true", "unknown setting ignore"),
        ("ignore_robots = true", "unknown setting ignore_robots"),
    ],
)
def test_an_unknown_key_is_refused_with_a_suggestion(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(written(tmp_path, text))
    assert words in str(refused.value)
    assert "crawl.toml" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('workers = "two"', "workers"),
        ("workers = 1.5", "workers"),
        ("seeds = 5", "seeds"),
        ("seeds = [1]", "seeds"),
        ('[politeness]\ndelay = "slow"', "politeness.delay"),
        ("politeness = 5", "politeness"),
        ("[[politeness]]\ndelay = 5", "politeness"),
        ("contact = true", "contact"),
    ],
)
def test_a_wrong_type_is_refused_with_the_key_and_the_file(tmp_path: Path, text: str, key: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(written(tmp_path, text))
    assert key in str(refused.value)
    assert "crawl.toml" in str(refused.value)


def test_a_missing_file_and_bad_toml_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load(written(tmp_path, "workers = = 2"))
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load(tmp_path / "bytes.toml")
    with pytest.raises(ConfigError, match="bytes"):
        load(tmp_path / "bytes.toml")


def test_a_directory_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path)


@for_each(
    ("config", "key"),
    [
        (Config(workers=0), "workers"),
        (Config(workers=65, partitions=64), "partitions"),
        (Config(partitions=70_000), "partitions"),
        (Config(in_flight=0), "in_flight"),
        (Config(ports=(80, 0)), "ports"),
        (Config(ports=(65_536,)), "ports"),
        (Config(politeness=msgspec.convert({"delay": -1}, Politeness)), "politeness.delay"),
        (Config(politeness=msgspec.convert({"delay": float("nan")}, Politeness)), "politeness.delay"),
        (Config(politeness=msgspec.convert({"delay": float("inf")}, Politeness)), "politeness.delay"),
        (Config(politeness=msgspec.convert({"ip_delay": -1}, Politeness)), "politeness.ip_delay"),
        (Config(politeness=Politeness(site_rate=0)), "politeness.site_rate"),
        (Config(politeness=Politeness(site_rate=11)), "politeness.site_rate"),
        (Config(politeness=Politeness(site_rate=float("nan"))), "politeness.site_rate"),
        (Config(limits=Limits(max_pages=-1)), "max_pages"),
        (Config(limits=Limits(max_depth=-1)), "max_depth"),
        (Config(limits=Limits(max_hops=-1)), "max_hops"),
        (Config(limits=Limits(body_bytes=0)), "limits.body_bytes"),
        (Config(limits=Limits(decoded_ratio=0)), "limits.decoded_ratio"),
        (Config(limits=Limits(connect=Seconds(float("inf")))), "limits.connect"),
        (Config(limits=Limits(total_html=Seconds(0))), "limits.total_html"),
        (Config(retry=Retry(attempts=0)), "retry.attempts"),
        (Config(retry=Retry(sick_after=0)), "retry.sick_after"),
        (Config(retry=msgspec.convert({"first": 0}, Retry)), "retry.first"),
        (Config(retry=msgspec.convert({"first": 10, "longest": 5}, Retry)), "retry.longest"),
        (Config(memory=Memory(resident_hosts=0)), "memory.resident_hosts"),
        (Config(memory=Memory(window=0)), "memory.window"),
        (Config(memory=Memory(seen_capacity=0)), "memory.seen_capacity"),
        (Config(memory=Memory(fingerprints=0)), "memory.fingerprints"),
        (Config(memory=Memory(rules=0)), "memory.rules"),
    ],
)
def test_contradictions_are_refused_by_name(config: Config, key: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check(config)
    assert key in str(refused.value)


@for_each(
    ("regions", "words"),
    [
        ((Region("EU"),), "EU: a name is of a-z"),
        ((Region("eu"), Region("eu")), "'eu' is named twice"),
        ((Region("eu", tlds=("de",)), Region("us", tlds=("DE",))), "tlds 'de' is named twice"),
        ((Region("eu", networks=("10.0.0.0/8",)), Region("us", networks=("10.0.0.0/8",))), "is named twice"),
        ((Region("eu", networks=("10.0.0.1/8",)),), "eu: networks '10.0.0.1/8'"),
        ((Region("eu", tlds=("*.de",)),), "write de, co.uk or example.org"),
        ((Region("eu", workers=0),), "eu: workers must be at least 1"),
        ((Region("eu", workers=65),), "no more than the 64 partitions"),
        ((Region("eu", slow=Seconds(-1.0)),), "eu: slow"),
        ((Region("eu", content="../eu"),), "eu: content"),
        ((Region("eu", content="/eu"),), "eu: content"),
        ((Region("eu", content="state"),), "eu: content 'state'"),
        (tuple(Region(f"r{number}") for number in range(257)), "256 are the most"),
    ],
)
def test_regions_that_cannot_be_are_refused(regions: tuple[Region, ...], words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check(Config(regions=regions))
    assert str(refused.value).startswith("regions: ")
    assert words in str(refused.value)


def test_the_workers_of_a_crawl_are_those_of_its_regions(tmp_path: Path) -> None:
    text = '[[regions]]\nname = "eu"\nworkers = 2\ntlds = ["de"]\n[[regions]]\nname = "us-east"\ncontent = "us"\n'
    found = check(load(written(tmp_path, text)))
    assert (found.workers, [region.name for region in found.regions]) == (3, ["eu", "us-east"])
    assert check(found) == found
    with pytest.raises(ConfigError, match=r"they have 3 workers, not 2: leave workers \(--workers\) away"):
        check(msgspec.structs.replace(found, workers=2))
    with pytest.raises(ConfigError, match=r"unknown setting regions\.tld; did you mean regions\.tlds\?"):
        load(written(tmp_path, '[[regions]]\nname = "eu"\ntld = ["de"]\n'))


def test_the_defaults_contradict_nothing() -> None:
    assert check(Config()) == Config()


def keys(kind: type[msgspec.Struct]) -> Iterator[str]:
    for field in msgspec.structs.fields(kind):
        yield field.name
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from keys(field.type)


def test_no_key_turns_robots_txt_off() -> None:
    assert [key for key in keys(Config) if "robot" in key or "ignore" in key or "obey" in key] == ["robots"]
    for hours in (0, -1, 25):  # caches.robots: how long a copy is used, a day at most (RFC 9309)
        with pytest.raises(ConfigError, match=r"caches\.robots"):
            check(Config(caches=Caches(robots=Seconds(hours * 3600.0))))


def test_the_name_we_give_says_who_answers_for_us() -> None:
    assert Config(contact="https://a.test/bot").user_agent("1.2") == "Harvestman/1.2 (+https://a.test/bot)"
    assert Config().user_agent("1.2") == "Harvestman/1.2"


ASKED_FOR = {
    "traps.url_length": 2_048,
    "limits.max_hops": 5,
    "render.share": 0.1,
    "render.seconds": 10.0,
    "render.recycle": 100,
    "limits.max_depth": 20,
    "limits.connect": 5.0,
    "limits.first_byte": 10.0,
    "limits.total_html": 5.0,
    "limits.total_large": 30.0,
    "limits.body_bytes": 10_000_000,
    "limits.decoded_bytes": 20_000_000,
    "limits.decoded_ratio": 250,
    "limits.error_bytes": 1_000_000,
    "limits.head_bytes": 262_144,
    "limits.pieces": 100_000,
    "memory.bodies": 96 << 20,
    "memory.rules": 48 << 20,
    "politeness.delay": 1.0,
    "politeness.site_rate": 10.0,
    "caches.robots": 86_400.0,
    "politeness.onion_delay": 5.0,
    "egress.per_address": 1_000,
    "memory.tls_connections": 256,
    "caches.dns": 300.0,
    "caches.dns_stale": 86_400.0,
    "caches.dns_last": 7 * 86_400.0,
    "budget.pages_per_day": 500_000,
    "budget.unearned_per_day": 10_000,
    "traps.shape_urls": 100,
    "traps.novelty_pages": 50,
    "budget.farm": 0.95,
    "budget.farm_cut": 0.1,
    "memory.seen_errors": 1e-4,
    "memory.fingerprints": 500_000,
    "retry.attempts": 5,
    "recrawl.news": 3_600.0,
    "recrawl.blog": 86_400.0,
    "recrawl.docs": 7 * 86_400.0,
    "recrawl.shortest": 15 * 60.0,
    "recrawl.longest": 30 * 86_400.0,
}
"""The defaults of DESIGN section 12 (all but rendering, which does not exist yet; normalisation is tests/policy)."""


def test_the_defaults_the_mission_asks_for_are_settings(tmp_path: Path) -> None:
    for name, default in ASKED_FOR.items():
        section, key = name.split(".")
        assert getattr(getattr(Config(), section), key) == default, name
        file = tmp_path / "crawl.toml"
        other = default / 2 if isinstance(default, float) else default - 1
        file.write_text(f"[{section}]\n{key} = {other}\n", encoding="utf-8")
        assert getattr(getattr(check(load(file)), section), key) == other, name


def test_retention_is_a_list_of_rules(tmp_path: Path) -> None:
    rule = "[[retention]]\nolder_than = 86400\n"
    found = check(load(written(tmp_path, f'{rule}kinds = ["pdf", "response"]\n{rule}')))
    assert found.retention == (Retention(Seconds(86_400.0), ("pdf", "response")), Retention(Seconds(86_400.0)))
    with pytest.raises(ConfigError, match=r"retention\.kinds: 'word' is none of response, revisit"):
        check(load(written(tmp_path, f'{rule}kinds = ["word"]\n')))
    with pytest.raises(ConfigError, match="older_than must be above 0"):
        check(load(written(tmp_path, "[[retention]]\nolder_than = 0\n")))
    with pytest.raises(ConfigError, match=r"unknown setting retention\.kind; did you mean retention\.kinds\?"):
        load(written(tmp_path, f'{rule}kind = ["pdf"]\n'))
    with pytest.raises(ConfigError, match="older_than"):
        load(written(tmp_path, '[[retention]]\nkinds = ["pdf"]\n'))


@pytest.mark.parametrize("name", ["removed.jsonl", "removing.jsonl", "settings.json", "crawl.json"])
def test_a_region_keeps_its_content_out_of_the_way(name: str) -> None:
    with pytest.raises(ConfigError, match="no name for a directory of its own"):
        check(Config(regions=(Region("eu", content=name), Region("us"))))


def test_proxies_are_tables_and_their_keys_are_checked_too(tmp_path: Path) -> None:
    tor = '[[proxies]]\nmatch = ["*.onion"]\nurl = "socks5h://127.0.0.1:9050"\n'
    text = f'{tor}[[proxies]]\nmatch = ["*"]\nurl = "direct"\n'
    found = check(load(written(tmp_path, text)))
    assert [(proxy.match, proxy.url) for proxy in found.proxies] == [
        (("*.onion",), "socks5h://127.0.0.1:9050"), (("*",), "direct"),
    ]  # fmt: skip
    with pytest.raises(ConfigError, match=r"proxies\.pasword_env; did you mean proxies\.password_env\?"):
        load(written(tmp_path, text + 'pasword_env = "X"\n'))
    with pytest.raises(ConfigError, match="record or refuse"):
        check(load(written(tmp_path, '[fetch]\ninvalid_certificates = "ignore"\n')))
